"""lumos tag and lumos compliance: labels on datasets and fields."""

from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.options import (
    CommonOptions,
    Datasets,
    DryRun,
    OptionalDatasets,
    add_command,
    common_options,
    print_json,
)
from lumos.cli.words import Fields, Mine, dataset_first, print_list, print_words

if TYPE_CHECKING:
    from lumos.annotations.service import LabelEditor
    from lumos.sdk import Lumos


def add_to(app: typer.Typer) -> None:
    """Adds both groups of commands to the application."""
    app.add_typer(
        _labels("tag", "tags", "TAG", "pii"), name="tag", help="Tags on datasets and fields."
    )
    app.add_typer(
        _labels("compliance", "compliance", "LABEL", "GDPR"),
        name="compliance",
        help="Manage compliance labels of datasets and fields.",
    )


def _labels(word: str, desk: str, metavar: str, example: str) -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)
    names_argument = typer.Argument(
        metavar=f"{metavar}...", help="One or more.", show_default=False
    )

    def labels_of(lumos: "Lumos") -> "LabelEditor":
        labels: LabelEditor = getattr(lumos.annotations, desk)
        return labels

    @add_command(
        app,
        "add",
        "set",
        epilog=f"Examples:\n\nlumos {word} add orders {example}\n\n"
        f"lumos {word} add 'sales/*' {example} --field email --dry-run",
    )
    @common_options
    def add(
        options: CommonOptions,
        dataset: Datasets,
        names: Annotated[list[str], names_argument],
        field: Fields = None,
        dry_run: DryRun = False,
    ) -> None:
        """Add labels to datasets, or to fields of them."""
        lumos = options.lumos
        with dataset_first(lumos, f"{word} add", dataset, names):
            report = labels_of(lumos).set(dataset, *names, fields=field or (), dry_run=dry_run)
        options.print(report, print_words)

    @app.command(epilog=f"Example: lumos {word} remove orders {example}")
    @common_options
    def remove(
        options: CommonOptions,
        dataset: Datasets,
        names: Annotated[list[str], names_argument],
        field: Fields = None,
        mine: Mine = False,
        dry_run: DryRun = False,
    ) -> None:
        """Remove labels, whoever added them; later scans do not add them again."""
        lumos = options.lumos
        with dataset_first(lumos, f"{word} remove", dataset, names):
            report = labels_of(lumos).remove(
                dataset, *names, fields=field or (), mine=mine, dry_run=dry_run
            )
        options.print(report, print_words)

    @app.command("list", epilog=f"Example: lumos {word} list 'sales/*'")
    @common_options
    def list_(
        options: CommonOptions,
        dataset: OptionalDatasets = None,
        field: Fields = None,
    ) -> None:
        """List labels and how often they are used, or the labels of some datasets."""
        lumos = options.lumos
        report = labels_of(lumos).list(dataset, fields=field or ())
        if options.json:
            print_json(report)
        else:
            print_list(report, lumos, noun=word, whole=dataset is None)

    return app
