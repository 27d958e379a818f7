"""lumos sync"""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.import_ import print_conflict
from lumos.cli.options import CommonOptions, Platforms, accept_old_options, argument, with_options
from lumos.cli.screen import print_status, stdout, steps
from lumos.cli.text import Names, print_problem, print_remark
from lumos.rendering.text import few, plural

if TYPE_CHECKING:
    from rich.console import Console

    from lumos.catalogs.migration.reports import SyncReport
    from lumos.catalogs.reports import PublishReport

_MAX_LISTED: Final = 20


app = typer.Typer()


@app.command(
    epilog="Examples:\n\n"
    "lumos sync --all --platform datahub\n\n"
    "lumos sync --platform datahub\n\n"
    "lumos sync aws-data-lake shop --platform openmetadata --platform datahub-file:copy.json",
    cls=accept_old_options(output="--platform"),
)
@with_options
def sync(
    options: CommonOptions,
    sources: Annotated[
        list[str] | None, argument("[SOURCE]...", "Names of configured sources.")
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="All configured sources.")] = False,
    platform: Platforms = None,
    full: Annotated[
        bool, typer.Option("--full", help="Publish everything, not only what changed.")
    ] = False,
) -> None:
    """Scan sources and publish changes to catalogs.

    The first run publishes everything, later runs only changes. Sources on different servers are
    read at the same time. A source that fails does not stop the others, and datasets that a catalog
    does not accept are sent again by the next run; in both cases, the exit code is 1. Without names
    and --all, nothing is scanned and pending changes are published.
    """
    if sources and all:
        raise typer.BadParameter("name sources, or give --all")
    with steps() as progress:
        report = options.lumos.migration.sync(
            *(sources or ()),
            outputs=platform or (),
            scan=all or bool(sources),
            full=full,
            progress=progress,
        )
    options.print(report, _print_report, options.names)
    if not report.is_complete:
        raise typer.Exit(1)


def _print_report(report: "SyncReport", names: Names) -> None:
    console = stdout()
    for name in report.passed_over:
        print_remark(f"{name}: skipped, this version cannot scan it")
    for failure in report.failed:
        print_problem(f"{failure.path}: {failure.reason}")
    if report.scanned is not None:
        summary = report.scanned.summary
        print_status(
            console,
            "ok",
            f"{plural(len(report.scanned.datasets), 'dataset')} scanned: "
            f"{summary.datasets_new:,} new, {summary.datasets_changed:,} changed, "
            f"{summary.datasets_unchanged:,} unchanged, {summary.datasets_missing:,} missing",
        )
    for catalog in report.published:
        _print_published(console, catalog, names)


def _print_published(console: "Console", report: "PublishReport", names: Names) -> None:
    conflicts, more = few(report.conflicts, _MAX_LISTED)
    for conflict in conflicts:
        print_conflict(console, conflict, names)
    if more:
        console.print(f"... and {more:,} more; --json lists them.")
    refused, more = few(report.refused, _MAX_LISTED)
    for each in refused:
        print_problem(f"{each.kind} {names(each.key)} was refused: {each.problem}")
    if more:
        print_problem(f"... and {more:,} more; --json lists them")
    if report.published + report.hidden + report.items:
        parts = [f"{plural(report.published, 'dataset')} published, {report.unchanged:,} unchanged"]
        parts += [f"{report.hidden:,} hidden"] if report.hidden else []
        parts += [f"{plural(report.items, 'other item')}"] if report.items else []
        print_status(console, "ok", f"{report.platform}: {', '.join(parts)}")
    elif report.is_complete:
        print_status(console, "ok", f"{report.platform}: up to date")
    if report.pending_message is not None:
        print_problem(report.pending_message)
