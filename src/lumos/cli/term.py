"""lumos term: the glossary, and what is about its terms."""

from typing import TYPE_CHECKING, Annotated

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
    shortened,
)
from lumos.errors import MisuseError

if TYPE_CHECKING:
    from lumos.engine.people.reports import WordListReport

app = typer.Typer(help="The business glossary, and what is about its terms.", no_args_is_help=True)

_Terms = Annotated[
    list[str], typer.Argument(metavar="TERM...", help="One or more.", show_default=False)
]
_Term = Annotated[str, typer.Argument(metavar="TERM", help="Its name.", show_default=False)]
_Definition = Annotated[
    str | None, typer.Option("--definition", help="What it means.", show_default=False)
]
_Parent = Annotated[
    str | None, typer.Option("--parent", help="The term above it.", show_default=False)
]


@app.command(
    "set",
    epilog="Examples:\n\nlumos term set orders Order\n\n"
    "lumos term set 'sales/*' 'Customer Identifier' --field cust_id",
)
def set_(
    dataset: Datasets,
    terms: _Terms,
    field: Fields = None,
    definition: _Definition = None,
    parent: _Parent = None,
    dry_run: DryRun = False,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Say which terms datasets or fields are about; a new one is added to the glossary."""
    desk = lumos_of(config, store).people.terms
    if definition is not None or parent is not None:
        if len(terms) > 1:
            raise MisuseError("--definition and --parent are for one term at a time.")
        if not dry_run:
            desk.define(terms[0], definition=definition, parent=parent)
    report = desk.set(dataset, *terms, fields=field or (), dry_run=dry_run)
    print_json(report) if json else print_words(report)


@app.command(epilog="Example: lumos term remove orders Order")
def remove(
    dataset: Datasets,
    terms: _Terms,
    field: Fields = None,
    mine: Mine = False,
    dry_run: DryRun = False,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Say that datasets or fields are not about a term; the glossary keeps it."""
    report = lumos_of(config, store).people.terms.remove(
        dataset, *terms, fields=field or (), mine=mine, dry_run=dry_run
    )
    print_json(report) if json else print_words(report)


@app.command("list", epilog="Examples:\n\nlumos term list\n\nlumos term list orders")
def list_(
    dataset: SomeDatasets = None,
    field: Fields = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """List the glossary with how often its terms are used, or the terms of some datasets."""
    report = lumos_of(config, store).people.terms.list(dataset, fields=field or ())
    if json:
        print_json(report)
    elif dataset is None:
        _print_glossary(report)
    else:
        print_list(report, noun="term", whole=False)


@app.command(
    epilog="Example: lumos term define 'Customer Identifier' --definition 'Who bought' "
    "--parent Customer"
)
def define(
    term: _Term,
    definition: _Definition = None,
    display_name: Annotated[
        str | None, typer.Option("--display-name", help="As it is shown.", show_default=False)
    ] = None,
    parent: _Parent = None,
    domain: Annotated[
        str | None, typer.Option("--domain", help="Its business domain.", show_default=False)
    ] = None,
    related: Annotated[
        list[str] | None,
        typer.Option("--related", help="A term that it has to do with.", show_default=False),
    ] = None,
    owner: Annotated[
        list[str] | None,
        typer.Option("--owner", help="Who answers for its meaning.", show_default=False),
    ] = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Add a term to the glossary, or say more about one; what is not given stays."""
    report = lumos_of(config, store).people.terms.define(
        term,
        definition=definition,
        display_name=display_name,
        parent=parent,
        domain=domain,
        related=related,
        owners=owner,
    )
    if json:
        print_json(report)
    else:
        verb = "added" if report.created else "changed" if report.changed else "unchanged"
        say(f"term {term}: {verb}")


@app.command(epilog="Example: lumos term undefine 'Customer Identifier'")
def undefine(
    term: _Term, config: ConfigFile = None, store: StorePath = None, json: AsJson = False
) -> None:
    """Take a term out of the glossary that nothing is about any more."""
    report = lumos_of(config, store).people.terms.undefine(term)
    print_json(report) if json else say(f"term {term}: gone")


def _print_glossary(report: "WordListReport") -> None:
    from lumos.cli.screen import aligned

    counts = {label.name: label for label in report.labels}
    rows = []
    for term in report.glossary or ():
        used = counts.get(term.name)
        rows.append(
            (
                term.name,
                term.parent or "",
                str(used.datasets if used else 0),
                str(used.fields if used else 0),
                shortened(term.definition or ""),
            )
        )
    for line in aligned(("TERM", "PARENT", "DATASETS", "FIELDS", "DEFINITION"), rows):
        say(line)
    if not rows:
        say("The glossary is empty. Begin with: lumos term define TERM --definition TEXT")
