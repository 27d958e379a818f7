"""lumos term: the glossary, and the terms of datasets and fields."""

from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.annotations import (
    MAX_VALUE_LENGTH,
    Fields,
    Mine,
    print_changed,
    print_list,
    suggest_dataset_first,
)
from lumos.cli.options import (
    CommonOptions,
    Datasets,
    DryRun,
    OptionalDatasets,
    add_command,
    argument,
    with_options,
)
from lumos.cli.screen import Table, stdout
from lumos.cli.text import print_line
from lumos.errors import MisuseError
from lumos.rendering.text import shorten

if TYPE_CHECKING:
    from lumos.annotations.reports import AnnotationListReport, AnnotationReport
    from lumos.sdk import Lumos

app = typer.Typer(
    help="Manage the glossary and the terms of datasets and fields.", no_args_is_help=True
)

_Terms = Annotated[list[str], argument("TERM...", "One or more terms.")]
_Definition = Annotated[
    str | None,
    typer.Option(
        "--definition", metavar="TEXT", help="Definition of the term.", show_default=False
    ),
]
_Parent = Annotated[
    str | None,
    typer.Option("--parent", metavar="TERM", help="The parent term.", show_default=False),
]


@app.command(
    epilog="Examples:\n\nlumos term add orders Order\n\n"
    "lumos term add 'sales/*' 'Customer Identifier' --field cust_id"
)
@with_options
def add(
    options: CommonOptions,
    dataset: Datasets,
    terms: _Terms,
    field: Fields = None,
    definition: _Definition = None,
    parent: _Parent = None,
    dry_run: DryRun = False,
) -> None:
    """Add terms to datasets or fields; a new term is added to the glossary."""
    lumos = options.lumos
    report = _add_terms(lumos, dataset, terms, field or (), definition, parent, dry_run=dry_run)
    options.print(report, print_changed, options.names)


def _add_terms(
    lumos: "Lumos",
    dataset: str,
    terms: Sequence[str],
    fields: Sequence[str],
    definition: str | None,
    parent: str | None,
    *,
    dry_run: bool,
) -> "AnnotationReport":
    glossary = lumos.annotations.terms
    with suggest_dataset_first(lumos, "term add", dataset, terms):
        if definition is not None or parent is not None:
            if len(terms) > 1:
                raise MisuseError("--definition and --parent are for one term at a time.")
            if not dry_run:
                glossary.define(terms[0], definition=definition, parent=parent)
        return glossary.set(dataset, *terms, fields=fields, dry_run=dry_run)


@app.command(epilog="Examples:\n\nlumos term remove orders Order\n\nlumos term remove Order")
@with_options
def remove(
    options: CommonOptions,
    words: Annotated[
        list[str],
        argument(
            "[DATASET] TERM...",
            "The terms to remove from a dataset. Without a dataset, one unused term to remove from "
            "the glossary.",
        ),
    ],
    field: Fields = None,
    mine: Mine = False,
    dry_run: DryRun = False,
) -> None:
    """Remove terms from datasets or fields, or a term from the glossary."""
    lumos = options.lumos
    dataset, *terms = words
    if not terms:
        if field or mine or dry_run:
            raise MisuseError(f"Name the dataset, too: lumos term remove DATASET {quote(dataset)}")
        _remove_from_glossary(options, dataset)
        return
    with suggest_dataset_first(lumos, "term remove", dataset, terms):
        report = lumos.annotations.terms.remove(
            dataset, *terms, fields=field or (), mine=mine, dry_run=dry_run
        )
    options.print(report, print_changed, options.names)


@app.command(hidden=True)
@with_options
def undefine(
    options: CommonOptions,
    term: Annotated[str, argument("TERM", "The name of the term.")],
) -> None:
    """Remove a term from the glossary: lumos term remove TERM."""
    _remove_from_glossary(options, term)


def _remove_from_glossary(options: CommonOptions, term: str) -> None:
    report = options.lumos.annotations.terms.undefine(term)
    options.print(report, lambda _: print_line(f"term {term}: removed"))


@app.command("list", epilog="Examples:\n\nlumos term list\n\nlumos term list orders")
@with_options
def list_(options: CommonOptions, dataset: OptionalDatasets = None, field: Fields = None) -> None:
    """List the glossary and how often its terms are used, or the terms of some datasets."""
    report = options.lumos.annotations.terms.list(dataset, fields=field or ())
    if dataset is None:
        options.print(report, _print_glossary)
    else:
        options.print(report, print_list, options.names, noun="term", is_summary=False)


@add_command(
    app,
    "set",
    "define",
    epilog="Example: lumos term set 'Customer Identifier' --definition 'Who bought' "
    "--parent Customer",
)
@with_options
def set_(
    options: CommonOptions,
    words: Annotated[list[str], argument("TERM", "The name of the term.")],
    definition: _Definition = None,
    display_name: Annotated[
        str | None,
        typer.Option(
            "--display-name", metavar="TEXT", help="The name to show.", show_default=False
        ),
    ] = None,
    parent: _Parent = None,
    domain: Annotated[
        str | None,
        typer.Option(
            "--domain", metavar="TEXT", help="Business domain of the term.", show_default=False
        ),
    ] = None,
    related: Annotated[
        list[str] | None,
        typer.Option(
            "--related", metavar="TERM", help="A related term. Repeatable.", show_default=False
        ),
    ] = None,
    owner: Annotated[
        list[str] | None,
        typer.Option(
            "--owner",
            metavar="OWNER",
            help="An owner of the definition. Repeatable.",
            show_default=False,
        ),
    ] = None,
    field: Annotated[list[str] | None, typer.Option("--field", "-f", hidden=True)] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", hidden=True)] = False,
) -> None:
    """Add a term to the glossary, or update the given properties of an existing term."""
    lumos = options.lumos
    term, *more = words
    if more:
        # In earlier versions, this was `lumos term add DATASET TERM`.
        annotated = _add_terms(lumos, term, more, field or (), definition, parent, dry_run=dry_run)
        options.print(annotated, print_changed, options.names)
        return
    if field or dry_run:
        raise MisuseError(
            f"To put a term on data, name the dataset: lumos term add DATASET {quote(term)}"
        )
    report = lumos.annotations.terms.define(
        term,
        definition=definition,
        display_name=display_name,
        parent=parent,
        domain=domain,
        related=related,
        owners=owner,
    )
    outcome = "added" if report.created else "changed" if report.changed else "unchanged"
    options.print(report, lambda _: print_line(f"term {term}: {outcome}"))


def _print_glossary(report: "AnnotationListReport") -> None:
    counts = {label.name: label for label in report.labels}
    table = Table(
        "TERM", "PARENT", ">DATASETS", ">FIELDS", "DEFINITION",
        empty="The glossary is empty. Add a term with: lumos term set TERM --definition TEXT",
    )  # fmt: skip
    for term in report.glossary or ():
        used = counts.get(term.name)
        table.add(
            term.name,
            term.parent or "",
            f"{used.datasets if used else 0:,}",
            f"{used.fields if used else 0:,}",
            shorten(term.definition or "", MAX_VALUE_LENGTH),
        )
    stdout().print(table)
