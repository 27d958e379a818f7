"""lumos doc: descriptions, business context and domains."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.lines import say
from lumos.cli.options import AsJson, ConfigFile, StorePath, lumos_of, print_json
from lumos.cli.words import (
    Datasets,
    DryRun,
    Fields,
    Mine,
    SomeDatasets,
    print_list,
    print_words,
)
from lumos.errors import MisuseError

if TYPE_CHECKING:
    from lumos.engine.people.reports import MissingDocsReport

_INCOMPLETE: Final = 1
_MOST: Final = 50
_FromFile = Annotated[
    Path | None,
    typer.Option("--file", metavar="FILE", help="Read the description from a file, - for stdin."),
]

app = typer.Typer(help="What people should know of datasets and fields.", no_args_is_help=True)


@app.command(
    "set",
    epilog="Examples:\n\n"
    "lumos doc set orders 'Every order of the web shop' --domain sales\n\n"
    "lumos doc set orders 'Where the parcel goes' --field address.city\n\n"
    "lumos doc set orders --file docs/orders.md",
)
def set_(
    dataset: Datasets,
    description: Annotated[
        str | None, typer.Argument(metavar="[TEXT]", help="The description.", show_default=False)
    ] = None,
    file: _FromFile = None,
    context: Annotated[
        str | None, typer.Option("--context", help="The business context.", show_default=False)
    ] = None,
    domain: Annotated[
        str | None, typer.Option("--domain", help="The business domain.", show_default=False)
    ] = None,
    field: Fields = None,
    dry_run: DryRun = False,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Write the description, business context or domain of datasets, or describe fields."""
    if description is not None and file is not None:
        raise MisuseError("Give the description as text or with --file, not both.")
    report = lumos_of(config, store).people.docs.set(
        dataset,
        description if file is None else _text(file),
        context=context,
        domain=domain,
        fields=field or (),
        dry_run=dry_run,
    )
    print_json(report) if json else print_words(report)


@app.command(epilog="Example: lumos doc remove orders --domain")
def remove(
    dataset: Datasets,
    description: Annotated[bool, typer.Option("--description", help="The description.")] = False,
    context: Annotated[bool, typer.Option("--context", help="The business context.")] = False,
    domain: Annotated[bool, typer.Option("--domain", help="The business domain.")] = False,
    field: Fields = None,
    mine: Mine = False,
    dry_run: DryRun = False,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Take documentation away: what is named, or else all of it."""
    report = lumos_of(config, store).people.docs.remove(
        dataset,
        description=description,
        context=context,
        domain=domain,
        fields=field or (),
        mine=mine,
        dry_run=dry_run,
    )
    print_json(report) if json else print_words(report)


@app.command("list", epilog="Examples:\n\nlumos doc list orders\n\nlumos doc list --missing")
def list_(
    dataset: SomeDatasets = None,
    missing: Annotated[
        bool,
        typer.Option(
            "--missing",
            help="Which datasets lack what documentation.required_fields names. Exit code 1 where "
            "any does and the mode is block_on_missing.",
        ),
    ] = False,
    field: Fields = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """List what is written of datasets and fields, and by whom; or what is missing."""
    people = lumos_of(config, store).people
    if missing:
        lacking = people.missing(dataset)
        print_json(lacking) if json else _print_missing(lacking)
        if lacking.blocks:
            raise typer.Exit(_INCOMPLETE)
        return
    report = people.docs.list(dataset, fields=field or ())
    if json:
        print_json(report)
    else:
        print_list(report, noun="documentation", whole=False)


def _text(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise MisuseError(f"There is no file {file}.") from None
    except UnicodeDecodeError:
        raise MisuseError(f"{file} is not UTF-8 text.") from None


def _print_missing(report: "MissingDocsReport") -> None:
    from lumos.cli.screen import aligned, plural

    rows = [
        (each.name, ", ".join(each.missing), ", ".join(each.owners) or "nobody", each.urn)
        for each in report.datasets[:_MOST]
    ]
    for line in aligned(("DATASET", "MISSING", "OWNERS", "URN"), rows):
        say(line)
    if (more := len(report.datasets) - _MOST) > 0:
        say(f"... and {plural(more, 'more dataset')}; --json lists them.")
    exempt = f", {len(report.exempt):,} exempt" if report.exempt else ""
    say(
        f"{report.complete:,} of {plural(report.checked, 'dataset')} documented{exempt}. "
        f"Required: {', '.join(report.required)} ({report.mode})."
    )
