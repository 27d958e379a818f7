"""lumos release: refresh metadata once data after a release is available."""

from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.annotations import print_changed
from lumos.cli.options import (
    CommonOptions,
    Datasets,
    DryRun,
    OptionalDatasets,
    argument,
    with_options,
)
from lumos.cli.screen import Table, stdout
from lumos.cli.text import Names, print_line, print_remark
from lumos.rendering.text import format_duration, format_time, plural

if TYPE_CHECKING:
    from lumos.model.dataset import Schedule
    from lumos.model.release import DatasetSummary, ReleaseRefresh
    from lumos.releases.reports import (
        BackfillReport,
        DatasetSchedulesReport,
        LearntSchedulesReport,
        ReleaseListReport,
        ReleaseReport,
    )

app = typer.Typer(
    help="Refresh metadata once data after a release is available.", no_args_is_help=True
)
schedule_app = typer.Typer(
    help="Manage schedules of when new data of datasets is expected.", no_args_is_help=True
)
app.add_typer(schedule_app, name="schedule")

_Release = Annotated[str, argument("NAME", "The name of the release.")]
_Timezone = Annotated[
    str, typer.Option("--timezone", help="The time zone of the schedule, such as Europe/Oslo.")
]
_MAX_SHOWN = 1_000


@app.command(
    epilog="Examples:\n\nlumos release notify 2026.11\n\n"
    "lumos release notify 2026.11 --datasets 'sales/*' --at 2026-11-17T14:00Z"
)
@with_options
def notify(
    options: CommonOptions,
    name: _Release,
    datasets: Annotated[
        str | None,
        typer.Option("--datasets", metavar="PATTERN", help="Only these datasets."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="The time of the release, if not now."),
    ] = None,
) -> None:
    """Announce a release. Datasets are refreshed when their first data after it is available."""
    report = options.lumos.releases.notify(name, datasets=datasets, at=at)
    options.print(report, _print_release, options.names)
    if any(each.state == "waiting" for each in report.refreshes) and not options.json:
        print_remark("a worker refreshes them; if none is running, start one with: lumos worker")


@app.command(epilog="Example: lumos release show 2026.11")
@with_options
def show(options: CommonOptions, name: _Release) -> None:
    """Show the state of each dataset of a release, and what changed after it."""
    options.print(options.lumos.releases.show(name), _print_release, options.names)


@app.command("list", epilog="Example: lumos release list")
@with_options
def list_(options: CommonOptions) -> None:
    """List all releases."""
    options.print(options.lumos.releases.list(), _print_releases)


@app.command(epilog="Example: lumos release refresh 2026.11")
@with_options
def refresh(options: CommonOptions, name: _Release) -> None:
    """Check now whether the data that a release still waits for is available."""
    options.print(options.lumos.releases.refresh(name), _print_release, options.names)


@app.command(epilog="Example: lumos release backfill orders --from 2026-11-01 --to 2026-11-15")
@with_options
def backfill(
    options: CommonOptions,
    dataset: Annotated[str, argument("DATASET", "The name or URN of the dataset.")],
    first: Annotated[str, typer.Option("--from", metavar="TIME", help="The first partition.")],
    last: Annotated[
        str | None,
        typer.Option("--to", metavar="TIME", help="The last partition, if not the newest."),
    ] = None,
) -> None:
    """Scan a dataset and list the partitions of a range that its schedule expects.

    Exits with 1 if some are missing.
    """
    report = options.lumos.releases.backfill(dataset, first=first, last=last)
    options.print(report, _print_backfill, options.names)
    if report.missing:
        raise typer.Exit(1)


@schedule_app.command(
    "set",
    epilog="Example: lumos release schedule set orders '0 2 * * 1' --timezone Europe/Oslo --lag 6h",
)
@with_options
def set_(
    options: CommonOptions,
    dataset: Datasets,
    cron: Annotated[str, argument("CRON", "When runs start, such as '0 2 * * *' or daily.")],
    timezone: _Timezone = "UTC",
    lag: Annotated[
        str,
        typer.Option("--lag", help="The time from the start of a run until its data is available."),
    ] = "0m",
    dry_run: DryRun = False,
) -> None:
    """Set when the runs of datasets start, and when their data is available."""
    report = options.lumos.annotations.schedules.set(
        dataset, cron, timezone=timezone, lag=lag, dry_run=dry_run
    )
    options.print(report, print_changed, options.names)


@schedule_app.command(epilog="Example: lumos release schedule remove orders")
@with_options
def remove(options: CommonOptions, dataset: Datasets, dry_run: DryRun = False) -> None:
    """Remove the schedule of datasets."""
    report = options.lumos.annotations.schedules.remove(dataset, dry_run=dry_run)
    options.print(report, print_changed, options.names)


@schedule_app.command("list", epilog="Example: lumos release schedule list")
@with_options
def list_schedules(options: CommonOptions, dataset: OptionalDatasets = None) -> None:
    """List the schedules of datasets, and when their next data is available."""
    options.print(options.lumos.releases.schedules(dataset), _print_schedules, options.names)


@schedule_app.command(
    epilog="Examples:\n\nlumos release schedule learn orders\n\n"
    "lumos release schedule learn 'sales/*' --apply"
)
@with_options
def learn(
    options: CommonOptions,
    dataset: Datasets,
    timezone: _Timezone = "UTC",
    apply: Annotated[
        bool, typer.Option("--apply", help="Set schedules with a confidence of 60 % or more.")
    ] = False,
) -> None:
    """Learn the schedules of datasets from the arrival times of their partitions."""
    report = options.lumos.releases.learn(dataset, timezone=timezone, apply=apply)
    options.print(report, _print_learnt, options.names)


def _print_release(report: "ReleaseReport", names: Names) -> None:
    release = report.release
    print_line(f"Release {release.name} of {format_time(release.at)}")
    names.look_up(each.urn for each in report.refreshes)
    table = Table("DATASET", "STATE", "RUN", "PARTITION", "AVAILABLE", "DETAILS", compact=True)
    for each in report.refreshes[:_MAX_SHOWN]:
        table.add(
            names(each.urn),
            each.state,
            format_time(each.run) if each.run else "",
            each.partition or "",
            format_time(each.available) if each.available else "",
            names(_details(each)),
        )
    stdout().print(table)
    for refresh in report.refreshes:
        for text in (*refresh.changes, *refresh.affected):
            print_line(f"{names(refresh.urn)}: {names(text)}")


def _details(refresh: "ReleaseRefresh") -> str:
    if refresh.after is not None:
        return _difference(refresh.before, refresh.after)
    if refresh.reason and refresh.attempts:
        return f"{refresh.reason} after {plural(refresh.attempts, 'scan')}"
    return refresh.reason or ""


def _difference(before: "DatasetSummary", after: "DatasetSummary") -> str:
    parts = []
    if before.schema_version != after.schema_version:
        parts.append(f"schema {before.schema_version} -> {after.schema_version}")
    for noun in ("column", "row", "file"):
        old, new = getattr(before, f"{noun}s"), getattr(after, f"{noun}s")
        if old != new and old is not None and new is not None:
            sign = "+" if new > old else "-"
            parts.append(f"{sign}{plural(abs(new - old), noun)}")
    return ", ".join(parts) or "unchanged"


def _print_releases(report: "ReleaseListReport") -> None:
    table = Table(
        "RELEASE", "AT", "DATASETS",
        empty="No releases yet. Announce one with: lumos release notify NAME",
    )  # fmt: skip
    for each in report.releases:
        states = ", ".join(f"{count:,} {state}" for state, count in sorted(each.states.items()))
        table.add(each.release.name, format_time(each.release.at), states)
    stdout().print(table)


def _print_backfill(report: "BackfillReport", names: Names) -> None:
    table = Table(
        "PARTITION", "EXPECTED", "ARRIVED", empty="No partition is expected in this range."
    )
    for each in report.partitions[:_MAX_SHOWN]:
        arrived = format_time(each.arrived) if each.arrived else "yes"
        table.add(
            each.partition, format_time(each.available), arrived if each.present else "missing"
        )
    stdout().print(table)
    if report.partitions:
        present = len(report.partitions) - len(report.missing)
        total = plural(len(report.partitions), "expected partition")
        names.look_up([report.urn])
        print_line(f"{names(report.urn)} has {present:,} of {total}.")


def _print_schedules(report: "DatasetSchedulesReport", names: Names) -> None:
    names.look_up(each.urn for each in report.datasets)
    table = Table(
        "DATASET", "SCHEDULE", "LAG", "NEXT RUN", "AVAILABLE",
        empty="No dataset has a schedule. Set one with: "
        "lumos release schedule set DATASET '0 2 * * *' --lag 6h",
    )  # fmt: skip
    for each in report.datasets:
        table.add(
            names(each.urn),
            f"{each.schedule.cron} ({each.schedule.timezone})",
            _format_lag(each.schedule),
            format_time(each.next_run),
            format_time(each.next_available),
        )
    stdout().print(table)


def _print_learnt(report: "LearntSchedulesReport", names: Names) -> None:
    names.look_up(each.urn for each in report.datasets)
    table = Table("DATASET", "SCHEDULE", "LAG", ">CONFIDENCE", "", compact=True)
    for each in report.datasets:
        if each.schedule is None:
            table.add(names(each.urn), "", "", "", each.reason or "")
            continue
        text = f"{each.on_time:,} of {plural(each.partitions, 'partition')} on time"
        table.add(
            names(each.urn),
            f"{each.schedule.cron} ({each.schedule.timezone})",
            _format_lag(each.schedule),
            f"{each.confidence:.0%}",
            f"{text}; set" if each.applied else text,
        )
    stdout().print(table)


def _format_lag(schedule: "Schedule") -> str:
    return format_duration(schedule.availability_lag_minutes * 60)
