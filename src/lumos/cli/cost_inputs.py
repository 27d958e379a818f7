"""lumos cost ingest, meters, forget, set, unset and overrides"""

from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.lines import say
from lumos.cli.options import AsJson, ConfigFile, StorePath, lumos_of, print_json
from lumos.errors import MisuseError

if TYPE_CHECKING:
    from lumos.engine.costs.sourcing import MeteringReport, OverridesReport

Target = Annotated[
    str,
    typer.Argument(
        metavar="URN", help="A dataset or job by URN, name or end of path.", show_default=False
    ),
]


def add_to(app: typer.Typer) -> None:
    """Adds these commands to those on cost."""
    app.command(
        epilog="Examples:\n\n"
        "lumos cost ingest /var/log/spark/events\n\n"
        "lumos cost ingest target/run_results.json --engine snowflake\n\n"
        "lumos cost ingest emr-january.csv --name emr"
    )(ingest)
    app.command(epilog="Example: lumos cost meters")(meters)
    app.command(epilog="Example: lumos cost forget table:emr-january")(forget)
    app.command(
        "set",
        epilog="Examples:\n\n"
        "lumos cost set market_data other=1200 --reason licence\n\n"
        "lumos cost set orders storage=80 egress=12.50 --since 2024-02-01",
    )(set_override)
    app.command(epilog="Example: lumos cost unset orders egress")(unset)
    app.command(epilog="Example: lumos cost overrides --json")(overrides)


def ingest(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Event logs of Spark, run_results.json of dbt, CSV, or folders of them.",
            show_default=False,
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(help="What these are known by. Default: spark, dbt, or the table's name."),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            help="What it ran on, by which its price is found, such as emr or snowflake.",
            show_default="spark or dbt",
        ),
    ] = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Forget first what was known by the same name.")
    ] = False,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Take in what jobs used, so that it can be priced."""
    from lumos.cli.screen import steps

    with steps() as announce:
        report = lumos_of(config, store).cost_sources.ingest(
            *paths, name=name, engine=engine, replace=replace, announce=announce
        )
    if json:
        print_json(report)
    else:
        _print_ingest(report)
    if report.problems and not report.meters:
        raise typer.Exit(1)


def meters(config: ConfigFile = None, store: StorePath = None, json: AsJson = False) -> None:
    """List who told what jobs used, and of which time."""
    from lumos.cli.screen import stdout, table

    report = lumos_of(config, store).cost_sources.meters()
    if json:
        print_json(report)
        return
    rows = table("METER", "SINCE", "UNTIL", "ROWS", right=("ROWS",))
    for each in report.meters:
        rows.add_row(
            each.reporter,
            f"{each.since:%Y-%m-%d}",
            f"{_last_day(each.since, each.until)}",
            f"{each.rows:,}",
        )
    stdout().print(rows if report.meters else "Nothing was taken in yet: lumos cost ingest PATH")


def forget(
    meter: Annotated[str, typer.Argument(metavar="METER", help="As `lumos cost meters` lists it.")],
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Take back all that a meter told, so that it can be taken in anew."""
    from lumos.cli.screen import plural

    report = lumos_of(config, store).cost_sources.forget(meter)
    if json:
        print_json(report)
    else:
        say(f"Forgot {report.reporter}, which told of {plural(report.rows, 'run')}.")


def set_override(
    target: Target,
    costs: Annotated[
        list[str],
        typer.Argument(
            metavar="TYPE=AMOUNT...",
            help="What it costs in a month: storage, compute, egress or other. Credits are "
            "below 0.",
            show_default=False,
        ),
    ],
    since: Annotated[
        str | None, typer.Option(metavar="DAY", help="From this day on. Default: always.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="DAY", help="Up to this day.")] = None,
    currency: Annotated[
        str | None, typer.Option(help="Refused unless it is the configured one.")
    ] = None,
    reason: Annotated[str, typer.Option(help="Why.")] = "",
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Set what a dataset or job costs by itself in a month, in the place of what was measured."""
    report = lumos_of(config, store).cost_sources.set(
        target,
        _amounts(costs),
        since=since,
        until=until,
        currency=currency,
        reason=reason,
    )
    _show(report, json=json)


def unset(
    target: Target,
    types: Annotated[
        list[str] | None,
        typer.Argument(metavar="TYPE...", help="Default: all cost types.", show_default=False),
    ] = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Take back what was set, so that what was measured counts again."""
    report = lumos_of(config, store).cost_sources.unset(target, types or ())
    if not json:
        say(f"{report.removed} taken back; what was measured counts again.")
    if json or report.overrides:
        _show(report, json=json)


def overrides(config: ConfigFile = None, store: StorePath = None, json: AsJson = False) -> None:
    """List what people set, with commands and in the configuration."""
    _show(lumos_of(config, store).cost_sources.overrides(), json=json)


def _amounts(costs: list[str]) -> dict[str, Decimal]:
    amounts: dict[str, Decimal] = {}
    for each in costs:
        name, mark, text = each.partition("=")
        try:
            amount = Decimal(text)
        except InvalidOperation:
            amount = Decimal("nan")
        if not mark or not amount.is_finite():
            raise MisuseError(f"'{each}' is no cost. Write storage=120 or other=-12.50")
        if name in amounts:
            raise MisuseError(f"'{name}' is said twice.")
        amounts[name] = amount
    return amounts


def _print_ingest(report: "MeteringReport") -> None:
    from lumos.cli.screen import plural, stderr, stdout

    console, remarks = stdout(), stderr()
    for each in report.meters:
        console.print(each.reporter, style="bold", end="  ")
        stretch = "nothing"
        if each.since and each.until:
            stretch = f"{each.since:%Y-%m-%d} to {_last_day(each.since, each.until)}"
        console.print(f"{plural(each.files, 'file')}, {plural(each.jobs, 'job')}, {stretch}")
        console.print(
            f"  {each.added:,} new, {each.changed:,} changed, {each.unchanged:,} as they were"
        )
    for remark in report.remarks:
        remarks.print(remark)
    for problem in report.problems:
        remarks.print(problem, style="yellow")


def _last_day(since: datetime, until: datetime) -> date:
    """The day that something ended on; what ends at midnight ended on the day before."""
    return max(until - timedelta(microseconds=1), since).date()


def _show(report: "OverridesReport", *, json: bool) -> None:
    from lumos.cli.screen import stdout, table

    if json:
        print_json(report)
        return
    rows = table("WHAT", "TYPE", "A MONTH", "SINCE", "UNTIL", "BY", "WHY", right=("A MONTH",))
    for each in report.overrides:
        rows.add_row(
            each.urn,
            each.type,
            f"{each.amount:,.2f} {each.currency}",
            str(each.since or "always"),
            str(each.until or ""),
            each.author or each.origin,
            each.reason,
        )
    stdout().print(rows if report.overrides else "Nothing is set: lumos cost set URN storage=120")
