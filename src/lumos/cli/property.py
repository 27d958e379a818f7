"""lumos property: free-form properties of datasets and fields."""

from typing import Annotated

import typer

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

app = typer.Typer(help="Manage properties of datasets and fields.", no_args_is_help=True)


@app.command(
    "set",
    epilog="Examples:\n\nlumos property set orders sla='daily by 6am UTC' tier=1\n\n"
    "lumos property set 'sales/*' retention=5y --field email",
)
@common_options
def set_(
    options: CommonOptions,
    dataset: Datasets,
    pairs: Annotated[
        list[str],
        typer.Argument(metavar="NAME=VALUE...", help="One or more properties.", show_default=False),
    ],
    field: Fields = None,
    dry_run: DryRun = False,
) -> None:
    """Set properties of datasets, or of fields of them."""
    lumos = options.lumos
    with dataset_first(lumos, "property set", dataset, pairs):
        report = lumos.annotations.properties.set(
            dataset, _properties(pairs), fields=field or (), dry_run=dry_run
        )
    options.print(report, print_words)


@app.command(epilog="Example: lumos property remove orders sla")
@common_options
def remove(
    options: CommonOptions,
    dataset: Datasets,
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="One or more names.", show_default=False)
    ],
    field: Fields = None,
    mine: Mine = False,
    dry_run: DryRun = False,
) -> None:
    """Remove properties."""
    lumos = options.lumos
    with dataset_first(lumos, "property remove", dataset, names):
        report = lumos.annotations.properties.remove(
            dataset, *names, fields=field or (), mine=mine, dry_run=dry_run
        )
    options.print(report, print_words)


@app.command("list", epilog="Example: lumos property list orders")
@common_options
def list_(
    options: CommonOptions,
    dataset: OptionalDatasets = None,
    field: Fields = None,
) -> None:
    """List properties and how often they are used, or the values of some datasets."""
    lumos = options.lumos
    report = lumos.annotations.properties.list(dataset, fields=field or ())
    if options.json:
        print_json(report)
    else:
        print_list(report, lumos, noun="property", whole=dataset is None)


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
