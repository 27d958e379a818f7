"""lumos tag and lumos compliance: labels on datasets and fields."""

from typing import TYPE_CHECKING, Annotated

import typer

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

if TYPE_CHECKING:
    from lumos.engine.people.desks import Labels

_Names = Annotated[
    list[str], typer.Argument(metavar="LABEL...", help="One or more.", show_default=False)
]


def add_to(app: typer.Typer) -> None:
    """Adds both groups of commands to the application."""
    app.add_typer(_labels("tag", "tags", "pii"), name="tag", help="Tags on datasets and fields.")
    app.add_typer(
        _labels("compliance", "compliance", "GDPR"),
        name="compliance",
        help="Compliance labels on datasets and fields.",
    )


def _labels(word: str, desk: str, example: str) -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)

    def labels_of(config: ConfigFile, store: StorePath) -> "Labels":
        labels: Labels = getattr(lumos_of(config, store).people, desk)
        return labels

    @app.command(
        "set",
        epilog=f"Examples:\n\nlumos {word} set orders {example}\n\n"
        f"lumos {word} set 'sales/*' {example} --field email --dry-run",
    )
    def set_(
        dataset: Datasets,
        names: _Names,
        field: Fields = None,
        dry_run: DryRun = False,
        config: ConfigFile = None,
        store: StorePath = None,
        json: AsJson = False,
    ) -> None:
        """Put labels on a dataset, on many, or on fields of them."""
        labels = labels_of(config, store)
        report = labels.set(dataset, *names, fields=field or (), dry_run=dry_run)
        print_json(report) if json else print_words(report)

    @app.command(epilog=f"Example: lumos {word} remove orders {example}")
    def remove(
        dataset: Datasets,
        names: _Names,
        field: Fields = None,
        mine: Mine = False,
        dry_run: DryRun = False,
        config: ConfigFile = None,
        store: StorePath = None,
        json: AsJson = False,
    ) -> None:
        """Take labels off, whoever put them on; scans and reports do not bring them back."""
        labels = labels_of(config, store)
        report = labels.remove(dataset, *names, fields=field or (), mine=mine, dry_run=dry_run)
        print_json(report) if json else print_words(report)

    @app.command("list", epilog=f"Example: lumos {word} list 'sales/*'")
    def list_(
        dataset: SomeDatasets = None,
        field: Fields = None,
        config: ConfigFile = None,
        store: StorePath = None,
        json: AsJson = False,
    ) -> None:
        """List labels and how often they are used, or who put which on some datasets."""
        report = labels_of(config, store).list(dataset, fields=field or ())
        if json:
            print_json(report)
        else:
            print_list(report, noun=word, whole=dataset is None)

    return app
