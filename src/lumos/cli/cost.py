"""lumos cost"""

import enum
from pathlib import Path
from typing import Annotated

import typer

from lumos.cli import cost_inputs, cost_model, cost_savings
from lumos.cli.cost_options import (
    AsCsv,
    Dataset,
    FormOption,
    MethodOption,
    MoveOption,
    OutputOption,
    PeriodOption,
    PlainFormOption,
    PriceOption,
    ScheduleOption,
    deliver,
    form_of,
    how_of,
)
from lumos.cli.forms import write
from lumos.cli.options import AsJson, ConfigFile, StorePath, lumos_of, print_json

app = typer.Typer(
    help="See what data costs through everything upstream, and what turning it off would save.",
    no_args_is_help=True,
)


class Grouping(enum.StrEnum):
    """What costs are summed up by."""

    TEAM = "team"
    DOMAIN = "domain"
    PLATFORM = "platform"
    TAG = "tag"


class Rank(enum.StrEnum):
    """Which amount decides about the order."""

    RETAINED = "retained"
    TOTAL = "total"
    OWN = "own"


@app.command(
    epilog="Examples:\n\n"
    "lumos cost report ml/predictions --period 2024-01\n\n"
    "lumos cost report orders -o orders.html\n\n"
    "lumos cost report orders --move raw/events=glacier --schedule clean_events=weekly"
)
def report(
    urn: Dataset,
    period: PeriodOption = None,
    method: MethodOption = None,
    price: PriceOption = None,
    move: MoveOption = None,
    schedule: ScheduleOption = None,
    format: FormOption = None,
    output: OutputOption = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
    csv: AsCsv = False,
) -> None:
    """Show what a dataset costs: direct, through everything upstream, by type and team."""
    form = form_of(format, output, json=json, csv=csv)
    desk, how = lumos_of(config, store).cost, how_of(period, method, price, move, schedule)
    deliver(
        form,
        output,
        lambda: desk.report(urn, **how),
        page=lambda: desk.page(urn, **how),
    )


@app.command(
    epilog="Examples:\n\n"
    "lumos cost top -n 10\n\n"
    "lumos cost top --by total --period 2024-01 --csv\n\n"
    "lumos cost top --price s3.standard=0.021"
)
def top(
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most so many.")
    ] = 20,
    by: Annotated[Rank, typer.Option("--by", help="Which amount ranks them.")] = Rank.RETAINED,
    period: PeriodOption = None,
    method: MethodOption = None,
    price: PriceOption = None,
    move: MoveOption = None,
    schedule: ScheduleOption = None,
    format: FormOption = None,
    output: OutputOption = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
    csv: AsCsv = False,
) -> None:
    """List the datasets that cost most."""
    form = form_of(format, output, json=json, csv=csv)
    desk, how = lumos_of(config, store).cost, how_of(period, method, price, move, schedule)
    deliver(
        form,
        output,
        lambda: desk.top(limit, ranked_by=by.value, **how),
        page=lambda: desk.page(**how),
    )


@app.command("by", epilog="Examples:\n\nlumos cost by team\n\nlumos cost by tag --json")
def by_group(
    grouping: Annotated[
        Grouping, typer.Argument(metavar="team|domain|platform|tag", show_default=False)
    ],
    period: PeriodOption = None,
    method: MethodOption = None,
    price: PriceOption = None,
    move: MoveOption = None,
    schedule: ScheduleOption = None,
    format: PlainFormOption = None,
    output: OutputOption = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
    csv: AsCsv = False,
) -> None:
    """Sum up what teams, domains, platforms or tags own, and what their outputs carry."""
    form = form_of(format, output, json=json, csv=csv)
    desk, how = lumos_of(config, store).cost, how_of(period, method, price, move, schedule)
    deliver(
        form,
        output,
        lambda: desk.by(grouping.value, **how),
    )


@app.command(epilog="Examples:\n\nlumos cost trend\n\nlumos cost trend ml/predictions --csv")
def trend(
    urn: Annotated[
        str | None,
        typer.Argument(metavar="[URN]", help="A dataset. Default: all that is spent."),
    ] = None,
    period: PeriodOption = None,
    method: MethodOption = None,
    price: PriceOption = None,
    move: MoveOption = None,
    schedule: ScheduleOption = None,
    format: PlainFormOption = None,
    output: OutputOption = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
    csv: AsCsv = False,
) -> None:
    """Show what was recorded of earlier periods, and what it is now."""
    form = form_of(format, output, json=json, csv=csv)
    desk, how = lumos_of(config, store).cost, how_of(period, method, price, move, schedule)
    deliver(
        form,
        output,
        lambda: desk.trend(urn, **how),
    )


@app.command(epilog="Example: lumos cost explain ml/predictions --limit 50")
def explain(
    urn: Dataset,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=100_000, help="At most so many ways.")
    ] = 20,
    period: PeriodOption = None,
    method: MethodOption = None,
    price: PriceOption = None,
    move: MoveOption = None,
    schedule: ScheduleOption = None,
    format: PlainFormOption = None,
    output: OutputOption = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
    csv: AsCsv = False,
) -> None:
    """Show every way and share that makes a total, the largest first."""
    form = form_of(format, output, json=json, csv=csv)
    desk, how = lumos_of(config, store).cost, how_of(period, method, price, move, schedule)
    deliver(
        form,
        output,
        lambda: desk.explain(urn, limit=limit, **how),
    )


@app.command(
    epilog="Examples:\n\nlumos cost record\n\nlumos cost record --period 2024-01 --no-aspects"
)
def record(
    period: Annotated[
        str | None,
        typer.Option(metavar="PERIOD", help="As in 2024-01. Default: the last whole month."),
    ] = None,
    aspects: Annotated[
        bool, typer.Option(help="Also write costs to datasets, so that snapshots carry them.")
    ] = True,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Keep the figures of a period, so that trends are real."""
    done = lumos_of(config, store).cost.record(period, aspects=aspects)
    if json:
        print_json(done)
    else:
        from lumos.cli.cost_text import print_answer

        print_answer(done)


@app.command(
    epilog="Examples:\n\nlumos cost page -o cost.html\n\nlumos cost page ml/predictions -o ml.html"
)
def page(
    urn: Annotated[
        str | None,
        typer.Argument(metavar="[URN]", help="A dataset. Default: all that is spent."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the page goes.")
    ] = Path("cost.html"),
    period: PeriodOption = None,
    method: MethodOption = None,
    price: PriceOption = None,
    move: MoveOption = None,
    schedule: ScheduleOption = None,
    config: ConfigFile = None,
    store: StorePath = None,
) -> None:
    """Write a self-contained page: how cost flows, what costs most, whose it is, how it went."""
    how = how_of(period, method, price, move, schedule)
    write(lumos_of(config, store).cost.page(urn, **how), output)


cost_savings.add_to(app)
cost_model.add_to(app)
cost_inputs.add_to(app)
