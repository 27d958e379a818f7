"""lumos doc: descriptions, business context and domains."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.lines import say
from lumos.cli.names import Names
from lumos.cli.options import (
    CommonOptions,
    Datasets,
    DryRun,
    OptionalDatasets,
    common_options,
    print_json,
)
from lumos.cli.words import Fields, Mine, dataset_first, print_list, print_words
from lumos.errors import MisuseError

if TYPE_CHECKING:
    from lumos.annotations.reports import MissingDocsReport
    from lumos.sdk import Lumos

_INCOMPLETE: Final = 1
_MOST: Final = 50
_FromFile = Annotated[
    Path | None,
    typer.Option("--file", metavar="FILE", help="Read the description from a file; - is stdin."),
]

app = typer.Typer(help="Manage descriptions, business context and domains.", no_args_is_help=True)


@app.command(
    "set",
    epilog="Examples:\n\n"
    "lumos doc set orders 'Every order of the web shop' --domain sales\n\n"
    "lumos doc set orders 'Where the parcel goes' --field address.city\n\n"
    "lumos doc set orders --file docs/orders.md",
)
@common_options
def set_(
    options: CommonOptions,
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
) -> None:
    """Set the description, business context or domain of datasets, or describe fields."""
    if description is not None and file is not None:
        raise MisuseError("Give the description as text or with --file, not both.")
    lumos = options.lumos
    with dataset_first(lumos, "doc set", dataset, [description] if description else []):
        report = lumos.annotations.docs.set(
            dataset,
            description if file is None else _text(file),
            context=context,
            domain=domain,
            fields=field or (),
            dry_run=dry_run,
        )
    options.print(report, print_words)


@app.command(epilog="Example: lumos doc remove orders --domain")
@common_options
def remove(
    options: CommonOptions,
    dataset: Datasets,
    description: Annotated[bool, typer.Option("--description", help="The description.")] = False,
    context: Annotated[bool, typer.Option("--context", help="The business context.")] = False,
    domain: Annotated[bool, typer.Option("--domain", help="The business domain.")] = False,
    field: Fields = None,
    mine: Mine = False,
    dry_run: DryRun = False,
) -> None:
    """Remove the named documentation, or all of it."""
    lumos = options.lumos
    report = lumos.annotations.docs.remove(
        dataset,
        description=description,
        context=context,
        domain=domain,
        fields=field or (),
        mine=mine,
        dry_run=dry_run,
    )
    options.print(report, print_words)


@app.command("list", epilog="Examples:\n\nlumos doc list orders\n\nlumos doc list --missing")
@common_options
def list_(
    options: CommonOptions,
    dataset: OptionalDatasets = None,
    missing: Annotated[
        bool,
        typer.Option(
            "--missing",
            help="Datasets without what documentation.required_fields requires. Exits with 1 if "
            "there are any and the mode is block_on_missing.",
        ),
    ] = False,
    field: Fields = None,
) -> None:
    """List the documentation of datasets and fields and its source, or what is missing."""
    lumos = options.lumos
    annotations = lumos.annotations
    if missing:
        lacking = annotations.missing(dataset)
        print_json(lacking) if options.json else _print_missing(lacking, lumos)
        if lacking.blocks:
            raise typer.Exit(_INCOMPLETE)
        return
    report = annotations.docs.list(dataset, fields=field or ())
    if options.json:
        print_json(report)
    else:
        print_list(report, lumos, noun="documentation", whole=False)


def _text(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise MisuseError(
            f"There is no file {file}. Name one that exists, or - for stdin: --file FILE"
        ) from None
    except UnicodeDecodeError:
        raise MisuseError(f"{file} is not UTF-8 text.") from None


def _print_missing(report: "MissingDocsReport", lumos: "Lumos") -> None:
    from lumos.cli.screen import aligned, plural
    from lumos.schemas.wording import few

    shown, more = few(report.datasets, _MOST)
    names = Names(lumos, (each.urn for each in shown))
    rows = [
        (names(each.urn), ", ".join(each.missing), ", ".join(each.owners) or "-") for each in shown
    ]
    for line in aligned(("DATASET", "MISSING", "OWNERS"), rows):
        say(line)
    if more:
        say(f"... and {more:,} more datasets; --json lists them.")
    exempt = f", {len(report.exempt):,} exempt" if report.exempt else ""
    say(
        f"{report.complete:,} of {plural(report.checked, 'dataset')} documented{exempt}. "
        f"Required: {', '.join(report.required)} ({report.mode})."
    )
