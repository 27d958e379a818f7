"""lumos cost ingest, meters, set, remove and list"""

from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.options import CommonOptions, DatasetOrJob, add_command, argument, with_options
from lumos.cli.screen import Table, stderr, stdout, steps
from lumos.cli.text import Names, print_line
from lumos.errors import MisuseError
from lumos.rendering.text import plural

if TYPE_CHECKING:
    from lumos.cost.cost_sources import (
        ForgottenMeter,
        MeteringReport,
        MetersReport,
        OverridesReport,
    )

app = typer.Typer()


@app.command(
    epilog="Examples:\n\n"
    "lumos cost ingest /var/log/spark/events\n\n"
    "lumos cost ingest target/run_results.json --engine snowflake\n\n"
    "lumos cost ingest emr-january.csv --name emr"
)
@with_options
def ingest(
    options: CommonOptions,
    paths: Annotated[
        list[Path],
        argument(
            "PATH...", "Spark event logs, run_results.json of dbt, CSV files, or folders of them."
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            help="The name of the meter (source of usage). Default: spark, dbt or the name of the "
            "CSV file."
        ),
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
    with steps() as progress:
        report = options.lumos.cost_sources.ingest(
            *paths, name=name, engine=engine, replace=replace, progress=progress
        )
    options.print(report, _print_ingest)
    if report.problems and not report.meters:
        raise typer.Exit(1)


@app.command(epilog="Example: lumos cost meters")
@with_options
def meters(options: CommonOptions) -> None:
    """List the sources of imported usage and the time they cover."""
    options.print(options.lumos.cost_sources.meters(), _print_meters)


@app.command(hidden=True)
@with_options
def forget(
    options: CommonOptions,
    meter: Annotated[
        str, typer.Argument(metavar="METER", help="A name listed by `lumos cost meters`.")
    ],
) -> None:
    """Delete the imported usage of a meter: lumos cost remove --meter METER."""
    options.print(options.lumos.cost_sources.forget(meter), _print_removed_meter)


@app.command(
    "set",
    epilog="Examples:\n\n"
    "lumos cost set market_data other=1200 --reason licence\n\n"
    "lumos cost set orders storage=80 egress=12.50 --since 2024-02-01",
)
@with_options
def set_override(
    options: CommonOptions,
    dataset: DatasetOrJob,
    costs: Annotated[
        list[str],
        argument(
            "TYPE=AMOUNT...",
            "Cost per month: storage, compute, egress or other. Credits are negative.",
        ),
    ],
    since: Annotated[
        str | None, typer.Option(metavar="DAY", help="First day. Default: always.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="DAY", help="Last day.")] = None,
    currency: Annotated[str | None, typer.Option(help="Must be the configured currency.")] = None,
    reason: Annotated[str, typer.Option(help="The reason, for `lumos cost list`.")] = "",
) -> None:
    """Set the own cost of a dataset or job per month, instead of the measured one."""
    report = options.lumos.cost_sources.set(
        dataset, _parse_amounts(costs), since=since, until=until, currency=currency, reason=reason
    )
    options.print(report, _print_overrides, options.names)


@add_command(
    app,
    "remove",
    "unset",
    epilog="Examples:\n\n"
    "lumos cost remove orders egress\n\n"
    "lumos cost remove --meter table:emr-january",
)
@with_options
def remove(
    options: CommonOptions,
    dataset: Annotated[
        str | None, argument("[DATASET]", "A dataset or job by URN, name or end of path.")
    ] = None,
    types: Annotated[list[str] | None, argument("[TYPE]...", "Default: all cost types.")] = None,
    meter: Annotated[
        str | None,
        typer.Option(
            metavar="METER",
            help="Instead, remove all usage from a meter that `lumos cost meters` lists.",
        ),
    ] = None,
) -> None:
    """Remove cost overrides, so that the measured cost applies again, or a meter."""
    if (dataset is None) == (meter is None):
        raise MisuseError("Name a dataset, or a meter: lumos cost remove DATASET")
    sources = options.lumos.cost_sources
    if meter is not None:
        options.print(sources.forget(meter), _print_removed_meter)
        return
    assert dataset is not None
    report = sources.unset(dataset, types or ())
    if not options.json:
        removed = plural(report.removed, "override")
        print_line(f"Removed {removed}; the measured cost applies again.")
    if options.json or report.overrides:
        options.print(report, _print_overrides, options.names)


@add_command(app, "list", "overrides", epilog="Example: lumos cost list --json")
@with_options
def list_(options: CommonOptions) -> None:
    """List cost overrides, set by command and in the configuration."""
    options.print(options.lumos.cost_sources.overrides(), _print_overrides, options.names)


def _parse_amounts(costs: list[str]) -> dict[str, Decimal]:
    amounts: dict[str, Decimal] = {}
    for each in costs:
        name, equals, text = each.partition("=")
        try:
            amount = Decimal(text)
        except InvalidOperation:
            amount = Decimal("nan")
        if not equals or not amount.is_finite():
            raise MisuseError(
                f"Invalid cost '{each}'. Write TYPE=AMOUNT, with negative credits, as in: "
                "lumos cost set orders storage=120 other=-12.50"
            )
        if name in amounts:
            raise MisuseError(f"'{name}' is given twice. Keep one of them.")
        amounts[name] = amount
    return amounts


def _print_ingest(report: "MeteringReport") -> None:
    console, remarks = stdout(), stderr()
    for each in report.meters:
        console.print(each.reporter, style="bold", end="  ")
        period = "no usage"
        if each.since and each.until:
            period = f"{each.since:%Y-%m-%d} to {_last_day(each.since, each.until)}"
        console.print(f"{plural(each.files, 'file')}, {plural(each.jobs, 'job')}, {period}")
        console.print(
            f"  {each.added:,} new, {each.changed:,} changed, {each.unchanged:,} unchanged"
        )
    for remark in report.remarks:
        remarks.print(remark)
    for problem in report.problems:
        remarks.print(problem, style="yellow")


def _print_meters(report: "MetersReport") -> None:
    table = Table(
        "METER", "SINCE", "UNTIL", ">ROWS",
        empty="No usage is imported yet. Import it with: lumos cost ingest PATH",
    )  # fmt: skip
    for each in report.meters:
        until = _last_day(each.since, each.until)
        table.add(each.reporter, f"{each.since:%Y-%m-%d}", str(until), f"{each.rows:,}")
    stdout().print(table)


def _last_day(since: datetime, until: datetime) -> date:
    """The last day of usage; usage that ends at midnight belongs to the day before."""
    return max(until - timedelta(microseconds=1), since).date()


def _print_removed_meter(report: "ForgottenMeter") -> None:
    print_line(f"Deleted {report.reporter} with {plural(report.rows, 'row')} of usage.")


def _print_overrides(report: "OverridesReport", names: Names) -> None:
    names.look_up(each.urn for each in report.overrides)
    table = Table(
        "DATASET OR JOB", "TYPE", ">PER MONTH", "SINCE", "UNTIL", "SET BY", "REASON",
        empty="No cost override is set. Set one with: lumos cost set DATASET storage=120",
    )  # fmt: skip
    for each in report.overrides:
        table.add(
            names(each.urn),
            each.type,
            f"{each.amount:,.2f} {each.currency}",
            str(each.since or "always"),
            str(each.until or ""),
            each.author or each.origin,
            each.reason,
        )
    stdout().print(table)
