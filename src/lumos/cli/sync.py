"""lumos sync"""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.lines import problem, remark
from lumos.cli.names import Names
from lumos.cli.options import (
    CommonOptions,
    Platforms,
    common_options,
    earlier_options,
    print_json,
)

if TYPE_CHECKING:
    from rich.console import Console

    from lumos.catalogs.migration.reports import SyncReport
    from lumos.catalogs.reports import PublishReport

_MOST: Final = 20


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(
        epilog="Examples:\n\n"
        "lumos sync --all --platform datahub\n\n"
        "lumos sync --platform datahub\n\n"
        "lumos sync aws-data-lake shop --platform openmetadata --platform datahub-file:copy.json",
        cls=earlier_options(output="--platform"),
    )(sync)


@common_options
def sync(
    options: CommonOptions,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SOURCE]...",
            help="Names of configured sources.",
            show_default=False,
        ),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="All configured sources.")] = False,
    platform: Platforms = None,
    full: Annotated[
        bool, typer.Option("--full", help="Publish everything, not only what changed.")
    ] = False,
) -> None:
    """Scan sources and publish changes to catalogs.

    The first run publishes everything, later ones only what changed. A source that fails does not
    stop the others, and what a catalog does not accept is sent again with the next run; both exit
    with 1. Without names and --all, nothing is scanned and pending changes are published.
    """
    from lumos.cli.screen import steps

    if sources and all:
        raise typer.BadParameter("name sources, or give --all")
    lumos = options.lumos
    desk = lumos.migration
    with steps() as progress:
        report = desk.sync(
            *(sources or ()),
            outputs=platform or (),
            scan=all or bool(sources),
            full=full,
            progress=progress,
        )
    if options.json:
        print_json(report)
    else:
        _show(report, Names(lumos))
    if not report.is_complete:
        raise typer.Exit(1)


def _show(report: "SyncReport", names: Names) -> None:
    from lumos.cli.screen import plural, stdout

    console = stdout()
    for name in report.passed_over:
        remark(f"{name}: skipped, this version cannot scan it")
    for failure in report.failed:
        problem(f"{failure.path}: {failure.reason}")
    if report.scanned is not None:
        summary = report.scanned.summary
        _ok(
            console,
            f"{plural(len(report.scanned.datasets), 'dataset')} scanned: "
            f"{summary.datasets_new:,} new, {summary.datasets_changed:,} changed, "
            f"{summary.datasets_unchanged:,} unchanged, {summary.datasets_missing:,} missing",
        )
    for told in report.told:
        _show_published(console, told, names)


def _show_published(console: "Console", report: "PublishReport", names: Names) -> None:
    from lumos.cli.screen import plural
    from lumos.schemas.wording import few

    conflicts, rest = few(report.conflicts, _MOST)
    for conflict in conflicts:
        console.print("[kept]", style="yellow", end=" ")
        edit = f"{conflict.theirs!r}, not {conflict.ours!r}"
        console.print(f"{names(conflict.key)} {conflict.path}: {edit}")
    if rest:
        console.print(f"... and {rest:,} more; --json lists them.")
    refused, rest = few(report.refused, _MOST)
    for each in refused:
        problem(f"{each.kind} {names(each.key)} was refused: {each.problem}")
    if rest:
        problem(f"... and {rest:,} more; --json lists them")
    if report.told + report.hidden + report.items:
        parts = [f"{plural(report.told, 'dataset')} published, {report.unchanged:,} unchanged"]
        parts += [f"{report.hidden:,} hidden"] if report.hidden else []
        parts += [f"{plural(report.items, 'other item')}"] if report.items else []
        _ok(console, f"{report.platform}: {', '.join(parts)}")
    elif report.is_complete:
        _ok(console, f"{report.platform}: up to date")
    if report.complaint is not None:
        problem(report.complaint)


def _ok(console: "Console", text: str) -> None:
    console.print("[ok]", style="green", end=" ")
    console.print(text)
