"""lumos cost savings and lumos cost retire"""

from typing import Annotated

import typer

from lumos.cli.cost_options import (
    AsCsv,
    MoveOption,
    PeriodOption,
    PlainFormOption,
    PriceOption,
    ScheduleOption,
    deliver,
    form_of,
    how_of,
)
from lumos.cli.options import AsJson, ConfigFile, OutputFile, StorePath, earlier_options, lumos_of


def add_to(app: typer.Typer) -> None:
    """Adds the commands to the group."""
    app.command(
        epilog="Examples:\n\n"
        "lumos cost savings marts/legacy_report\n\n"
        "lumos cost savings --feature recommendations\n\n"
        "lumos cost savings --tag deprecated --json"
    )(savings)
    app.command(epilog="Example: lumos cost retire --limit 10", cls=earlier_options(top="--limit"))(
        retire
    )


def savings(
    datasets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DATASET]...",
            help="Datasets or jobs by URN, name or end of path.",
            show_default=False,
        ),
    ] = None,
    feature: Annotated[
        str | None, typer.Option(metavar="NAME", help="All datasets of a configured feature.")
    ] = None,
    tag: Annotated[str | None, typer.Option(metavar="TAG", help="All datasets with a tag.")] = None,
    period: PeriodOption = None,
    price: PriceOption = None,
    move: MoveOption = None,
    schedule: ScheduleOption = None,
    format: PlainFormOption = None,
    output: OutputFile = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
    csv: AsCsv = False,
) -> None:
    """Show what removing datasets saves, which upstream cost remains, and what breaks."""
    form = form_of(format, output, json=json, csv=csv)
    desk, how = lumos_of(config, store).cost, how_of(period, None, price, move, schedule)
    deliver(form, output, lambda: desk.savings(*(datasets or ()), feature=feature, tag=tag, **how))


def retire(
    limit: Annotated[
        int,
        typer.Option(
            "--limit", "-n", metavar="N", min=1, max=1000, help="Maximum number of datasets."
        ),
    ] = 10,
    period: PeriodOption = None,
    price: PriceOption = None,
    move: MoveOption = None,
    schedule: ScheduleOption = None,
    format: PlainFormOption = None,
    output: OutputFile = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
    csv: AsCsv = False,
) -> None:
    """Show unused datasets, and which datasets to retire together for the largest savings."""
    form = form_of(format, output, json=json, csv=csv)
    desk, how = lumos_of(config, store).cost, how_of(period, None, price, move, schedule)
    deliver(form, output, lambda: desk.retire(limit, **how))
