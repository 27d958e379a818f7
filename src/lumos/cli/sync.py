"""lumos sync"""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.options import AsJson, ConfigFile, StorePath, lumos_of, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lumos.engine.migration.reports import SyncReport
    from lumos.engine.reports import TellingReport

_MOST: Final = 20


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(
        epilog="Examples:\n\n"
        "lumos sync --all --output datahub\n\n"
        "lumos sync --output datahub\n\n"
        "lumos sync aws-data-lake shop --output openmetadata --output datahub-file:copy.json"
    )(sync)


def sync(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Sources of the configuration, by their names.",
            show_default=False,
        ),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="All sources of the configuration.")] = False,
    output: Annotated[
        list[str] | None,
        typer.Option(
            metavar="P",
            help="The catalog to tell: a configured platform, or KIND:ADDRESS. Repeatable. "
            "Default: the platform of the configuration.",
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Tell everything once more, not only what changed.")
    ] = False,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Scan sources, and tell catalogs what they have not heard of.

    Only what changed is read and told, but a catalog hears of everything the first time. A source
    that fails is named and the others go on; what a catalog cannot take now waits for the next run.
    Exit code 1 where either happened. Without names and --all, nothing is scanned, and catalogs
    hear of what waits.
    """
    from lumos.cli.screen import steps

    if sources and all:
        raise typer.BadParameter("name sources, or give --all")
    desk = lumos_of(config, store).migration
    with steps() as announce:
        report = desk.sync(
            *(sources or ()),
            outputs=output or (),
            scan=all or bool(sources),
            full=full,
            announce=announce,
        )
    if json:
        print_json(report)
    else:
        _show(report)
    if not report.is_complete:
        raise typer.Exit(1)


def _show(report: "SyncReport") -> None:
    from lumos.cli.screen import plural, stdout

    console = stdout()
    for name in report.passed_over:
        _warn(console, f"{name}: this version cannot scan it; it was passed over")
    for failure in report.failed:
        console.print("[error]", style="red", end=" ")
        console.print(f"{failure.path}: {failure.reason}")
    if report.scanned is not None:
        summary = report.scanned.summary
        _ok(
            console,
            f"{plural(len(report.scanned.datasets), 'dataset')} scanned: "
            f"{summary.datasets_new:,} new, {summary.datasets_changed:,} changed, "
            f"{summary.datasets_unchanged:,} unchanged, {summary.datasets_missing:,} missing",
        )
    for told in report.told:
        _show_told(console, told)


def _show_told(console: "Console", told: "TellingReport") -> None:
    from lumos.cli.screen import plural

    for conflict in told.conflicts[:_MOST]:
        console.print("[kept]", style="yellow", end=" ")
        console.print(f"{conflict.key} {conflict.path}: {conflict.theirs!r}, not {conflict.ours!r}")
    _show_rest(console, told.conflicts)
    for refused in told.refused[:_MOST]:
        console.print("[error]", style="red", end=" ")
        console.print(f"{refused.kind} {refused.key}: {refused.problem}")
    _show_rest(console, told.refused)
    heard = told.told + told.hidden + told.items
    if heard:
        parts = [f"{plural(told.told, 'dataset')} told, {told.unchanged:,} as they were"]
        parts += [f"{told.hidden:,} hidden"] if told.hidden else []
        parts += [f"{told.items:,} others"] if told.items else []
        _ok(console, f"{told.platform}: {', '.join(parts)}")
    elif told.is_complete:
        _ok(console, f"{told.platform}: nothing new to tell")
    if told.complaint is not None:
        _warn(console, told.complaint)


def _show_rest(console: "Console", some: "Sequence[object]") -> None:
    if (rest := len(some) - _MOST) > 0:
        console.print(f"... and {rest:,} more; --json lists them.")


def _ok(console: "Console", text: str) -> None:
    console.print("[ok]", style="green", end=" ")
    console.print(text)


def _warn(console: "Console", text: str) -> None:
    console.print("[warn]", style="yellow", end=" ")
    console.print(text)
