"""lumos tag and lumos compliance: labels on datasets and fields."""

from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.annotations import Fields, Mine, print_changed, print_list, suggest_dataset_first
from lumos.cli.options import (
    CommonOptions,
    Datasets,
    DryRun,
    OptionalDatasets,
    add_command,
    argument,
    with_options,
)

if TYPE_CHECKING:
    from lumos.annotations.service import LabelEditor
    from lumos.sdk import Lumos


def _create_group(noun: str, metavar: str, example: str, help: str) -> typer.Typer:
    group = typer.Typer(no_args_is_help=True, help=help)
    names_argument = argument(f"{metavar}...", "One or more.")

    def labels_of(lumos: "Lumos") -> "LabelEditor":
        return lumos.annotations.tags if noun == "tag" else lumos.annotations.compliance

    @add_command(
        group,
        "add",
        "set",
        epilog=f"Examples:\n\nlumos {noun} add orders {example}\n\n"
        f"lumos {noun} add 'sales/*' {example} --field email --dry-run",
    )
    @with_options
    def add(
        options: CommonOptions,
        dataset: Datasets,
        names: Annotated[list[str], names_argument],
        field: Fields = None,
        dry_run: DryRun = False,
    ) -> None:
        """Add labels to datasets, or to fields of them."""
        lumos = options.lumos
        with suggest_dataset_first(lumos, f"{noun} add", dataset, names):
            report = labels_of(lumos).set(dataset, *names, fields=field or (), dry_run=dry_run)
        options.print(report, print_changed, options.names)

    @group.command(epilog=f"Example: lumos {noun} remove orders {example}")
    @with_options
    def remove(
        options: CommonOptions,
        dataset: Datasets,
        names: Annotated[list[str], names_argument],
        field: Fields = None,
        mine: Mine = False,
        dry_run: DryRun = False,
    ) -> None:
        """Remove labels, including those of others; later scans do not add them again."""
        lumos = options.lumos
        with suggest_dataset_first(lumos, f"{noun} remove", dataset, names):
            report = labels_of(lumos).remove(
                dataset, *names, fields=field or (), mine=mine, dry_run=dry_run
            )
        options.print(report, print_changed, options.names)

    @group.command("list", epilog=f"Example: lumos {noun} list 'sales/*'")
    @with_options
    def list_(
        options: CommonOptions,
        dataset: OptionalDatasets = None,
        field: Fields = None,
    ) -> None:
        """List labels and how often they are used, or the labels of some datasets."""
        report = labels_of(options.lumos).list(dataset, fields=field or ())
        options.print(report, print_list, options.names, noun=noun, is_summary=dataset is None)

    return group


app = typer.Typer()
app.add_typer(_create_group("tag", "TAG", "pii", "Manage tags of datasets and fields."), name="tag")
app.add_typer(
    _create_group(
        "compliance", "LABEL", "GDPR", "Manage compliance labels of datasets and fields."
    ),
    name="compliance",
)
