"""lumos cost ingest, meters, set, remove and list"""

from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.lines import say
from lumos.cli.options import (
    CommonOptions,
    DatasetOrJob,
    add_command,
    common_options,
    print_json,
)
from lumos.errors import MisuseError

if TYPE_CHECKING:
    from lumos.cost.cost_sources import MeteringReport, OverridesReport
    from lumos.sdk import Lumos


def add_to(app: typer.Typer) -> None:
    """Adds these commands to those on cost."""
    app.command(
        epilog="Examples:\n\n"
        "lumos cost ingest /var/log/spark/events\n\n"
        "lumos cost ingest target/run_results.json --engine snowflake\n\n"
        "lumos cost ingest emr-january.csv --name emr"
    )(ingest)
    app.command(epilog="Example: lumos cost meters")(meters)
    app.command(hidden=True)(forget)
    app.command(
        "set",
        epilog="Examples:\n\n"
        "lumos cost set market_data other=1200 --reason licence\n\n"
        "lumos cost set orders storage=80 egress=12.50 --since 2024-02-01",
    )(set_override)
    add_command(
        app,
        "remove",
        "unset",
        epilog="Examples:\n\n"
        "lumos cost remove orders egress\n\n"
        "lumos cost remove --meter table:emr-january",
    )(remove)
    add_command(app, "list", "overrides", epilog="Example: lumos cost list --json")(list_)


@common_options
def ingest(
    options: CommonOptions,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Spark event logs, run_results.json of dbt, CSV files, or folders of them.",
            show_default=False,
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(help="The name of this meter. Default: spark, dbt or the CSV file's name."),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            help="The engine whose prices apply, such as emr or snowflake.",
            show_default="spark or dbt",
        ),
    ] = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="First delete earlier usage of the same name.")
    ] = False,
) -> None:
    """Import the metered usage of jobs, so that it can be priced."""
    from lumos.cli.screen import steps

    with steps() as progress:
        report = options.lumos.cost_sources.ingest(
            *paths, name=name, engine=engine, replace=replace, progress=progress
        )
    if options.json:
        print_json(report)
    else:
        _print_ingest(report)
    if report.problems and not report.meters:
        raise typer.Exit(1)


@common_options
def meters(options: CommonOptions) -> None:
    """List the sources of imported usage and the time they cover."""
    from lumos.cli.screen import stdout, table

    report = options.lumos.cost_sources.meters()
    if options.json:
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
    stdout().print(
        rows
        if report.meters
        else "No usage is imported yet. Import it with: lumos cost ingest PATH"
    )


@common_options
def forget(
    options: CommonOptions,
    meter: Annotated[str, typer.Argument(metavar="METER", help="As `lumos cost meters` lists it.")],
) -> None:
    """Delete the imported usage of a meter: lumos cost remove --meter METER."""
    _remove_meter(options.lumos, meter, json=options.json)


def _remove_meter(lumos: "Lumos", meter: str, *, json: bool) -> None:
    from lumos.cli.screen import plural

    report = lumos.cost_sources.forget(meter)
    if json:
        print_json(report)
    else:
        say(f"Deleted {report.reporter} with {plural(report.rows, 'row')} of usage.")


@common_options
def set_override(
    options: CommonOptions,
    dataset: DatasetOrJob,
    costs: Annotated[
        list[str],
        typer.Argument(
            metavar="TYPE=AMOUNT...",
            help="Cost per month: storage, compute, egress or other. Credits are negative.",
            show_default=False,
        ),
    ],
    since: Annotated[
        str | None, typer.Option(metavar="DAY", help="First day. Default: always.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="DAY", help="Last day.")] = None,
    currency: Annotated[str | None, typer.Option(help="Must be the configured currency.")] = None,
    reason: Annotated[str, typer.Option(help="Why it is set.")] = "",
) -> None:
    """Set the own cost of a dataset or job per month, instead of the measured one."""
    report = options.lumos.cost_sources.set(
        dataset,
        _amounts(costs),
        since=since,
        until=until,
        currency=currency,
        reason=reason,
    )
    _show(report, json=options.json)


@common_options
def remove(
    options: CommonOptions,
    dataset: Annotated[
        str | None,
        typer.Argument(
            metavar="[DATASET]",
            help="A dataset or job by URN, name or end of path.",
            show_default=False,
        ),
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TYPE]...", help="Default: all cost types.", show_default=False),
    ] = None,
    meter: Annotated[
        str | None,
        typer.Option(
            metavar="METER", help="Instead, all that a meter told, as `lumos cost meters` lists it."
        ),
    ] = None,
) -> None:
    """Remove cost overrides, so that the measured cost applies again, or a meter."""
    if (dataset is None) == (meter is None):
        raise MisuseError("Name a dataset, or a meter: lumos cost remove DATASET")
    lumos = options.lumos
    if meter is not None:
        _remove_meter(lumos, meter, json=options.json)
        return
    assert dataset is not None
    report = lumos.cost_sources.unset(dataset, types or ())
    if not options.json:
        what = "override" if report.removed == 1 else "overrides"
        say(f"Removed {report.removed} {what}; the measured cost applies again.")
    if options.json or report.overrides:
        _show(report, json=options.json)


@common_options
def list_(options: CommonOptions) -> None:
    """List cost overrides, set by command and in the configuration."""
    _show(options.lumos.cost_sources.overrides(), json=options.json)


def _amounts(costs: list[str]) -> dict[str, Decimal]:
    amounts: dict[str, Decimal] = {}
    for each in costs:
        name, mark, text = each.partition("=")
        try:
            amount = Decimal(text)
        except InvalidOperation:
            amount = Decimal("nan")
        if not mark or not amount.is_finite():
            raise MisuseError(f"Invalid cost '{each}'. Write storage=120 or other=-12.50")
        if name in amounts:
            raise MisuseError(f"'{name}' is given twice. Keep one of them.")
        amounts[name] = amount
    return amounts


def _print_ingest(report: "MeteringReport") -> None:
    from lumos.cli.screen import plural, stderr, stdout

    console, remarks = stdout(), stderr()
    for each in report.meters:
        console.print(each.reporter, style="bold", end="  ")
        stretch = "no usage"
        if each.since and each.until:
            stretch = f"{each.since:%Y-%m-%d} to {_last_day(each.since, each.until)}"
        console.print(f"{plural(each.files, 'file')}, {plural(each.jobs, 'job')}, {stretch}")
        console.print(
            f"  {each.added:,} new, {each.changed:,} changed, {each.unchanged:,} unchanged"
        )
    for remark in report.remarks:
        remarks.print(remark)
    for problem in report.problems:
        remarks.print(problem, style="yellow")


def _last_day(since: datetime, until: datetime) -> date:
    """The last day of usage; what ends at midnight ended on the day before."""
    return max(until - timedelta(microseconds=1), since).date()


def _show(report: "OverridesReport", *, json: bool) -> None:
    from lumos.cli.screen import stdout, table

    if json:
        print_json(report)
        return
    head = ("DATASET OR JOB", "TYPE", "PER MONTH", "SINCE", "UNTIL", "SET BY", "REASON")
    rows = table(*head, right=("PER MONTH",))
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
    stdout().print(
        rows
        if report.overrides
        else "No cost override is set. Set one with: lumos cost set DATASET storage=120"
    )
