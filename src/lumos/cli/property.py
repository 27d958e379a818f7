"""lumos property: free-form properties of datasets and fields."""

from typing import Annotated

import typer

from lumos.cli.options import (
    AsJson,
    ConfigFile,
    Datasets,
    DryRun,
    OptionalDatasets,
    StorePath,
    lumos_of,
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
def set_(
    dataset: Datasets,
    pairs: Annotated[
        list[str],
        typer.Argument(metavar="NAME=VALUE...", help="One or more properties.", show_default=False),
    ],
    field: Fields = None,
    dry_run: DryRun = False,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Set properties of datasets, or of fields of them."""
    lumos = lumos_of(config, store)
    with dataset_first(lumos, "property set", dataset, pairs):
        report = lumos.people.properties.set(
            dataset, _properties(pairs), fields=field or (), dry_run=dry_run
        )
    print_json(report) if json else print_words(report, lumos)


@app.command(epilog="Example: lumos property remove orders sla")
def remove(
    dataset: Datasets,
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="One or more names.", show_default=False)
    ],
    field: Fields = None,
    mine: Mine = False,
    dry_run: DryRun = False,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Remove properties."""
    lumos = lumos_of(config, store)
    with dataset_first(lumos, "property remove", dataset, names):
        report = lumos.people.properties.remove(
            dataset, *names, fields=field or (), mine=mine, dry_run=dry_run
        )
    print_json(report) if json else print_words(report, lumos)


@app.command("list", epilog="Example: lumos property list orders")
def list_(
    dataset: OptionalDatasets = None,
    field: Fields = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """List properties and how often they are used, or the values of some datasets."""
    lumos = lumos_of(config, store)
    report = lumos.people.properties.list(dataset, fields=field or ())
    if json:
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
