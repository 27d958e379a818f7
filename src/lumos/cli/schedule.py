"""lumos schedule"""

from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.job import Attempts, TimeLimit, print_queued
from lumos.cli.options import CommonOptions, argument, with_options
from lumos.cli.screen import Table, stdout
from lumos.rendering.text import format_time

if TYPE_CHECKING:
    from lumos.jobs.reports import (
        ScheduleListReport,
        ScheduleRemovedReport,
        ScheduleReport,
    )

app = typer.Typer(help="Run operations at set times.", no_args_is_help=True)

ScheduleName = Annotated[str, argument("NAME", "The name of a schedule.")]


@app.command(
    epilog="Examples:\n\n"
    "lumos schedule add nightly '0 2 * * *' ingest:sources.yaml export:nightly.json "
    "--timezone Europe/Oslo\n\n"
    "lumos schedule add costs monthly cost-record --jitter 600 --catch-up all"
)
@with_options
def add(
    options: CommonOptions,
    name: ScheduleName,
    cron: Annotated[
        str,
        argument(
            "CRON",
            "Minute, hour, day, month and weekday, such as '30 6 * * 1-5', or hourly, daily, "
            "weekly, monthly.",
        ),
    ],
    step: Annotated[
        list[str], argument("STEP...", "The steps to run, as for lumos run. See: lumos run --help")
    ],
    timezone: Annotated[
        str, typer.Option(metavar="ZONE", help="The time zone of CRON, such as Europe/Oslo.")
    ] = "UTC",
    jitter: Annotated[
        int,
        typer.Option(metavar="SECONDS", min=0, help="Delay each run by up to this many seconds."),
    ] = 0,
    catch_up: Annotated[
        str,
        typer.Option(
            metavar="POLICY",
            help="What to do about runs that were missed while no worker was running: 'none' skips "
            "them, 'last' runs the schedule once, 'all' runs it once for each.",
        ),
    ] = "last",
    priority: Annotated[
        int,
        typer.Option(metavar="N", help="From -100 to 100; jobs with a higher priority run first."),
    ] = 0,
    max_attempts: Attempts = None,
    time_limit: TimeLimit = None,
) -> None:
    """Add a schedule. A worker has to be running at the due times: lumos worker"""
    report = options.lumos.schedules.add(
        name,
        cron,
        *step,
        timezone=timezone,
        jitter=jitter,
        catch_up=catch_up,
        priority=priority,
        max_attempts=max_attempts,
        time_limit=time_limit,
    )
    options.print(report, _print_schedule)


@app.command("list", epilog="Example: lumos schedule list")
@with_options
def list_schedules(options: CommonOptions) -> None:
    """List all schedules with their next and last times."""
    options.print(options.lumos.schedules.list(), _print_list)


@app.command(epilog="Example: lumos schedule remove nightly")
@with_options
def remove(options: CommonOptions, name: ScheduleName) -> None:
    """Remove a schedule, but not the jobs that it has created."""
    options.print(options.lumos.schedules.remove(name), _print_removed)


@app.command(epilog="Example: lumos schedule pause nightly")
@with_options
def pause(options: CommonOptions, name: ScheduleName) -> None:
    """Pause a schedule until it is resumed."""
    options.print(options.lumos.schedules.pause(name), _print_schedule)


@app.command(epilog="Example: lumos schedule resume nightly")
@with_options
def resume(options: CommonOptions, name: ScheduleName) -> None:
    """Resume a paused schedule. Due times during the pause are skipped."""
    options.print(options.lumos.schedules.resume(name), _print_schedule)


@app.command(epilog="Example: lumos schedule run nightly")
@with_options
def run(options: CommonOptions, name: ScheduleName) -> None:
    """Queue the job of a schedule now, in addition to its due times."""
    options.print(options.lumos.schedules.run(name), print_queued)


def _print_schedule(report: "ScheduleReport") -> None:
    if report.next_due is None:
        stdout().print(
            f"Schedule {report.name} is paused. Resume it with: lumos schedule resume {report.name}"
        )
    else:
        stdout().print(f"Schedule {report.name} is due at {format_time(report.next_due)} UTC.")


def _print_list(report: "ScheduleListReport") -> None:
    table = Table(
        "SCHEDULE", "CRON", "ZONE", "RUNS", "NEXT (UTC)", "LAST (UTC)", ">LAST JOB",
        empty="No schedules. Add one with: lumos schedule add NAME CRON STEP",
    )  # fmt: skip
    for each in report.schedules:
        steps = each.arguments.get("steps")
        kinds = [step["kind"] for step in steps] if each.kind == "chain" and steps else [each.kind]
        table.add(
            each.name,
            each.cron,
            each.timezone,
            ", ".join(kinds),
            "paused" if each.next_due is None else format_time(each.next_due),
            "" if each.last_due is None else format_time(each.last_due),
            "" if each.last_job is None else str(each.last_job),
        )
    stdout().print(table)


def _print_removed(report: "ScheduleRemovedReport") -> None:
    stdout().print(f"Removed schedule {report.name}.")
