"""lumos doc: descriptions, business context and domains."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.annotations import Fields, Mine, print_changed, print_list, suggest_dataset_first
from lumos.cli.gate import parse_outputs
from lumos.cli.options import (
    BREAKING,
    STDIN,
    STDOUT,
    CommonOptions,
    Datasets,
    DryRun,
    OptionalDatasets,
    argument,
    with_options,
    write,
)
from lumos.cli.screen import Table, stdout
from lumos.cli.text import Names, print_line
from lumos.errors import MisuseError
from lumos.rendering.text import few, plural

if TYPE_CHECKING:
    from lumos.annotations.reports import MissingDocsReport

_MAX_LISTED: Final = 50
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
@with_options
def set_(
    options: CommonOptions,
    dataset: Datasets,
    description: Annotated[str | None, argument("[TEXT]", "The description.")] = None,
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
    with suggest_dataset_first(lumos, "doc set", dataset, [description] if description else []):
        report = lumos.annotations.docs.set(
            dataset,
            description if file is None else _read_text(file),
            context=context,
            domain=domain,
            fields=field or (),
            dry_run=dry_run,
        )
    options.print(report, print_changed, options.names)


@app.command(epilog="Example: lumos doc remove orders --domain")
@with_options
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
    report = options.lumos.annotations.docs.remove(
        dataset,
        description=description,
        context=context,
        domain=domain,
        fields=field or (),
        mine=mine,
        dry_run=dry_run,
    )
    options.print(report, print_changed, options.names)


@app.command("list", epilog="Examples:\n\nlumos doc list orders\n\nlumos doc list --missing")
@with_options
def list_(
    options: CommonOptions,
    dataset: OptionalDatasets = None,
    missing: Annotated[
        bool,
        typer.Option(
            "--missing",
            help="List datasets that lack documentation required by documentation.required_fields. "
            "Exits with 10 if there are any and the mode is block_on_missing.",
        ),
    ] = False,
    field: Fields = None,
) -> None:
    """List the documentation of datasets and fields and its source, or what is missing."""
    annotations = options.lumos.annotations
    if not missing:
        report = annotations.docs.list(dataset, fields=field or ())
        options.print(report, print_list, options.names, noun="documentation", is_summary=False)
        return
    incomplete = annotations.missing(dataset)
    options.print(incomplete, _print_missing, options.names)
    if incomplete.blocks:
        raise typer.Exit(BREAKING)


@app.command(
    epilog="Examples:\n\nlumos doc check\n\n"
    "lumos doc check 'sales/*' --output github=- --output junit=docs.xml",
)
@with_options
def check(
    options: CommonOptions,
    dataset: OptionalDatasets = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FORMAT=FILE",
            help="Also write the report: json, markdown, github, gitlab, junit or sarif; "
            "- prints it. Repeatable.",
        ),
    ] = None,
    warn_only: Annotated[
        bool, typer.Option("--warn-only", help="Exit with 0 even if something is missing.")
    ] = False,
) -> None:
    """Check that datasets have the documentation that documentation.required_fields requires.

    Exits with 10 if something is missing and the mode is block_on_missing. Missing documentation in
    the baseline of lumos gate init is not reported.
    """
    from lumos.gate.documentation import render_documentation

    outputs = parse_outputs(output)
    report = options.lumos.gate.documentation(dataset)
    for format, file in outputs:
        write(render_documentation(report, format), None if file == STDOUT else Path(file))
    if not any(file == STDOUT for _, file in outputs):
        options.print(report, _print_missing, options.names)
    if report.blocks and not warn_only:
        raise typer.Exit(BREAKING)


def _read_text(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == STDIN else file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise MisuseError(
            f"There is no file {file}. Name one that exists, or - for stdin: --file FILE"
        ) from None
    except UnicodeDecodeError:
        raise MisuseError(f"{file} is not UTF-8 text.") from None


def _print_missing(report: "MissingDocsReport", names: Names) -> None:
    listed, more = few(report.datasets, _MAX_LISTED)
    names.look_up(each.urn for each in listed)
    table = Table("DATASET", "MISSING", "OWNERS")
    for each in listed:
        table.add(names(each.urn), ", ".join(each.missing), ", ".join(each.owners) or "-")
    stdout().print(table)
    if more:
        print_line(f"... and {more:,} more datasets; --json lists them.")
    exempt = f", {len(report.exempt):,} exempt" if report.exempt else ""
    exempt += f", {report.in_baseline:,} in the baseline" if report.in_baseline else ""
    print_line(
        f"{report.complete:,} of {plural(report.checked, 'dataset')} documented{exempt}. "
        f"Required: {', '.join(report.required)} ({report.mode})."
    )
