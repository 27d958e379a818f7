"""lumos cost"""

import enum
from pathlib import Path
from typing import Annotated

import typer

from lumos.cli import cost_inputs, cost_model, cost_savings
from lumos.cli.cost_options import (
    AsCsv,
    FormOption,
    MethodOption,
    MoveOption,
    PeriodOption,
    PlainFormOption,
    PriceOption,
    ScheduleOption,
    deliver,
    form_of,
    how_of,
)
from lumos.cli.forms import write
from lumos.cli.options import (
    AsJson,
    CommonOptions,
    ConfigFile,
    DatasetOrJob,
    OptionalDataset,
    OutputFile,
    StorePath,
    common_options,
    lumos_of,
    print_json,
)

app = typer.Typer(
    help="Show what datasets cost including everything upstream, and what removing them saves.",
    no_args_is_help=True,
)


class Grouping(enum.StrEnum):
    """The groups that costs are summed up by."""

    TEAM = "team"
    DOMAIN = "domain"
    PLATFORM = "platform"
    TAG = "tag"


class Rank(enum.StrEnum):
    """The amount that datasets are ranked by."""

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
    dataset: DatasetOrJob,
    period: PeriodOption = None,
    method: MethodOption = None,
    price: PriceOption = None,
    move: MoveOption = None,
    schedule: ScheduleOption = None,
    format: FormOption = None,
    output: OutputFile = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
    csv: AsCsv = False,
) -> None:
    """Show the own and upstream cost of a dataset, by cost type, team and upstream dataset."""
    form = form_of(format, output, json=json, csv=csv)
    desk, how = lumos_of(config, store).cost, how_of(period, method, price, move, schedule)
    deliver(
        form,
        output,
        lambda: desk.report(dataset, **how),
        page=lambda: desk.page(dataset, **how),
    )


@app.command(
    epilog="Examples:\n\n"
    "lumos cost top -n 10\n\n"
    "lumos cost top --by total --period 2024-01 --csv\n\n"
    "lumos cost top --price s3.standard=0.021"
)
def top(
    limit: Annotated[
        int,
        typer.Option(
            "--limit", "-n", metavar="N", min=1, max=100_000, help="Maximum number of rows."
        ),
    ] = 20,
    by: Annotated[Rank, typer.Option("--by", help="The amount to rank by.")] = Rank.RETAINED,
    period: PeriodOption = None,
    method: MethodOption = None,
    price: PriceOption = None,
    move: MoveOption = None,
    schedule: ScheduleOption = None,
    format: FormOption = None,
    output: OutputFile = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
    csv: AsCsv = False,
) -> None:
    """List the most expensive datasets."""
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
        Grouping,
        typer.Argument(metavar="GROUP", help="team, domain, platform or tag.", show_default=False),
    ],
    period: PeriodOption = None,
    method: MethodOption = None,
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
    """Sum up the own and retained cost of teams, domains, platforms or tags."""
    form = form_of(format, output, json=json, csv=csv)
    desk, how = lumos_of(config, store).cost, how_of(period, method, price, move, schedule)
    deliver(
        form,
        output,
        lambda: desk.by(grouping.value, **how),
    )


@app.command(epilog="Examples:\n\nlumos cost trend\n\nlumos cost trend ml/predictions --csv")
def trend(
    dataset: OptionalDataset = None,
    period: PeriodOption = None,
    method: MethodOption = None,
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
    """Show the recorded costs of earlier periods next to the current ones."""
    form = form_of(format, output, json=json, csv=csv)
    desk, how = lumos_of(config, store).cost, how_of(period, method, price, move, schedule)
    deliver(
        form,
        output,
        lambda: desk.trend(dataset, **how),
    )


@app.command(epilog="Example: lumos cost explain ml/predictions --limit 50")
def explain(
    dataset: DatasetOrJob,
    limit: Annotated[
        int,
        typer.Option("--limit", metavar="N", min=1, max=100_000, help="Maximum number of paths."),
    ] = 20,
    period: PeriodOption = None,
    method: MethodOption = None,
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
    """Show the lineage paths and shares behind a total cost, the largest first."""
    form = form_of(format, output, json=json, csv=csv)
    desk, how = lumos_of(config, store).cost, how_of(period, method, price, move, schedule)
    deliver(
        form,
        output,
        lambda: desk.explain(dataset, limit=limit, **how),
    )


@app.command(
    epilog="Examples:\n\nlumos cost record\n\nlumos cost record --period 2024-01 --no-aspects"
)
@common_options
def record(
    options: CommonOptions,
    period: Annotated[
        str | None,
        typer.Option(metavar="PERIOD", help="Such as 2024-01. Default: the last full month."),
    ] = None,
    aspects: Annotated[
        bool, typer.Option(help="Also store costs with datasets, so that snapshots include them.")
    ] = True,
) -> None:
    """Record the costs of a period, for trends and snapshots."""
    done = options.lumos.cost.record(period, aspects=aspects)
    if options.json:
        print_json(done)
    else:
        from lumos.cli.cost_text import print_answer

        print_answer(done)


@app.command(
    epilog="Examples:\n\nlumos cost page -o cost.html\n\nlumos cost page ml/predictions -o ml.html"
)
def page(
    dataset: OptionalDataset = None,
    output: OutputFile = Path("cost.html"),
    period: PeriodOption = None,
    method: MethodOption = None,
    price: PriceOption = None,
    move: MoveOption = None,
    schedule: ScheduleOption = None,
    config: ConfigFile = None,
    store: StorePath = None,
) -> None:
    """Write a self-contained HTML page: cost flow, most expensive datasets, teams and trend."""
    how = how_of(period, method, price, move, schedule)
    write(lumos_of(config, store).cost.page(dataset, **how), output)


cost_savings.add_to(app)
cost_model.add_to(app)
cost_inputs.add_to(app)
