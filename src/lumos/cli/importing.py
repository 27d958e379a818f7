"""lumos import"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.options import AsJson, ConfigFile, StorePath, lumos_of, print_json
from lumos.errors import FAILED

if TYPE_CHECKING:
    from rich.console import Console

    from lumos.engine.snapshots.reports import EntryReport, ImportReport, RollbackReport

_MOST: Final = 20


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(
        "import",
        epilog="Examples:\n\n"
        "lumos import --input backup.json --dry-run\n\n"
        "lumos import --input backup.json --platform datahub-file:estate.json\n\n"
        "lumos import --input backup.json --platform local --resume\n\n"
        "lumos import --platform local --rollback",
    )(import_snapshot)


def import_snapshot(
    input: Annotated[
        Path | None,
        typer.Option("--input", "-i", metavar="FILE", help="The snapshot.", show_default=False),
    ] = None,
    platform: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="local, KIND:ADDRESS such as datahub-file:estate.json, or a configured platform.",
        ),
    ] = "local",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an import that was broken off.")
    ] = False,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Restore what was there before the last import.")
    ] = False,
    allow_dangling: Annotated[
        bool,
        typer.Option(
            "--allow-dangling", help="Also a snapshot whose lineage leads to what it has not."
        ),
    ] = False,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Bring a snapshot into a platform, and keep what people edited there.

    The snapshot is checked before anything is written. An import that was broken off, even by
    kill -9, goes on with --resume, or is taken back with --rollback.
    """
    from lumos.cli.screen import steps
    from lumos.engine.snapshots.reports import RollbackReport

    if sum((dry_run, resume, rollback)) > 1:
        raise typer.BadParameter("give only one of --dry-run, --resume and --rollback")
    if input is None and not rollback:
        raise typer.BadParameter("name the snapshot with --input")
    snapshots = lumos_of(config, store).snapshot
    report: ImportReport | RollbackReport
    with steps() as announce:
        if rollback:
            report = snapshots.roll_back(input, platform=platform, announce=announce)
        elif dry_run:
            assert input is not None
            report = snapshots.try_load(
                input, platform=platform, allow_dangling=allow_dangling, announce=announce
            )
        else:
            assert input is not None
            report = snapshots.load(
                input,
                platform=platform,
                resume=resume,
                allow_dangling=allow_dangling,
                announce=announce,
            )
    if json:
        print_json(report)
    else:
        _show(report)
    if not isinstance(report, RollbackReport) and report.sums.refused:
        raise typer.Exit(FAILED)


def _show(report: "ImportReport | RollbackReport") -> None:
    from lumos.cli.screen import stdout
    from lumos.engine.snapshots.reports import ImportReport

    console = stdout()
    if isinstance(report, ImportReport):
        show_import(console, report)
        if report.dry_run:
            console.print(f"Nothing was written to {report.platform}.")
        elif report.sums.refused:
            console.print(f"{report.file} is in {report.platform}, but for what was refused.")
        else:
            console.print(f"[ok] {report.file} is in {report.platform}.")
    else:
        what = f"The import of {report.file} into {report.platform}"
        show_rollback(console, report, what=what)


def show_import(console: "Console", report: "ImportReport") -> None:
    """What an import did, or would do, to the entries of each kind."""
    from lumos.cli.screen import plural, table

    sums = report.sums
    if report.dry_run:
        _show_entries(console, report.changes)
    counted = table("", "NEW", "CHANGED", "UNCHANGED", "DELETED",
                    right=("NEW", "CHANGED", "UNCHANGED", "DELETED"))  # fmt: skip
    for kind, tally in reversed(sums.kinds.items()):
        counts = (tally.created, tally.changed, tally.unchanged, tally.deleted)
        counted.add_row(kind, *(f"{count:,}" for count in counts))
    console.print(counted)
    for aspect, ways in sorted(sums.held.items()):
        for how, count in sorted(ways.items()):
            if how != "native":
                console.print(f"{aspect}: {_HELD[how]} of {plural(count, 'dataset')}")
    if sums.seen_here:
        console.print(
            f"{plural(sums.seen_here, 'dataset')} found by scans here: schema, place and size "
            "stayed as the scans saw them."
        )
    for conflict in report.conflicts[:_MOST]:
        console.print("[kept]", style="yellow", end=" ")
        console.print(f"{conflict.key} {conflict.path}: {conflict.theirs!r}, not {conflict.ours!r}")
    if (rest := sums.conflicts - _MOST) > 0:
        console.print(f"... and {plural(rest, 'more edit')} kept; --json lists them.")
    for each in report.refused[:_MOST]:
        console.print("[refused]", style="red", end=" ")
        console.print(f"{each.kind} {each.key}: {each.problem}")
    if (rest := sums.refused - _MOST) > 0:
        console.print(f"... and {rest:,} more refused; --json lists them.")
    for remark in report.remarks:
        console.print("[warn]", style="yellow", end=" ")
        console.print(remark)


# How a catalog holds what it has no place for.
_HELD: Final = {
    "properties": "in the custom properties",
    "partly": "in part natively, exactly in the custom properties",
}


def _show_entries(console: "Console", changes: "tuple[EntryReport, ...]") -> None:
    from lumos.cli.screen import plural

    for change in changes[:_MOST]:
        parts = f"  {', '.join(change.aspects)}" if change.change == "changed" else ""
        console.print(f"{change.change:<9}  {change.key}{parts}")
    if (rest := len(changes) - _MOST) > 0:
        console.print(f"... and {plural(rest, 'more change')}; --json lists them.")
    if changes:
        console.print()


def show_rollback(console: "Console", report: "RollbackReport", *, what: str) -> None:
    """What was taken back of an import, and what stayed."""
    for each in report.kept[:_MOST]:
        console.print("[kept]", style="yellow", end=" ")
        console.print(f"{each.key}: {', '.join(each.aspects)} edited since the import")
    if (rest := len(report.kept) - _MOST) > 0:
        console.print(f"... and {rest:,} more; --json lists them.")
    entries = "1 entry" if report.restored == 1 else f"{report.restored:,} entries"
    console.print(f"[ok] {what} is taken back: {entries} restored, {report.erased:,} removed.")
