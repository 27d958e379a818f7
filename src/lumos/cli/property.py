"""lumos property: free-form properties of datasets and fields."""

from typing import Annotated

import typer

from lumos.cli.annotations import Fields, Mine, print_changed, print_list, suggest_dataset_first
from lumos.cli.options import (
    CommonOptions,
    Datasets,
    DryRun,
    OptionalDatasets,
    argument,
    with_options,
)
from lumos.errors import MisuseError

app = typer.Typer(help="Manage properties of datasets and fields.", no_args_is_help=True)


@app.command(
    "set",
    epilog="Examples:\n\nlumos property set orders sla='daily by 6am UTC' tier=1\n\n"
    "lumos property set 'sales/*' retention=5y --field email",
)
@with_options
def set_(
    options: CommonOptions,
    dataset: Datasets,
    pairs: Annotated[list[str], argument("NAME=VALUE...", "One or more properties.")],
    field: Fields = None,
    dry_run: DryRun = False,
) -> None:
    """Set properties of datasets, or of fields of them."""
    lumos = options.lumos
    with suggest_dataset_first(lumos, "property set", dataset, pairs):
        report = lumos.annotations.properties.set(
            dataset, _properties(pairs), fields=field or (), dry_run=dry_run
        )
    options.print(report, print_changed, options.names)


@app.command(epilog="Example: lumos property remove orders sla")
@with_options
def remove(
    options: CommonOptions,
    dataset: Datasets,
    names: Annotated[list[str], argument("NAME...", "One or more names.")],
    field: Fields = None,
    mine: Mine = False,
    dry_run: DryRun = False,
) -> None:
    """Remove properties."""
    lumos = options.lumos
    with suggest_dataset_first(lumos, "property remove", dataset, names):
        report = lumos.annotations.properties.remove(
            dataset, *names, fields=field or (), mine=mine, dry_run=dry_run
        )
    options.print(report, print_changed, options.names)


@app.command("list", epilog="Example: lumos property list orders")
@with_options
def list_(options: CommonOptions, dataset: OptionalDatasets = None, field: Fields = None) -> None:
    """List properties and how often they are used, or the values of some datasets."""
    report = options.lumos.annotations.properties.list(dataset, fields=field or ())
    options.print(report, print_list, options.names, noun="property", is_summary=dataset is None)


def _properties(pairs: list[str]) -> dict[str, str]:
    properties: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise MisuseError(
                f"'{pair}' is not NAME=VALUE, such as sla='daily by 6am UTC'. The dataset comes "
                "first: lumos property set DATASET NAME=VALUE"
            )
        properties[name.strip()] = value
    return properties
