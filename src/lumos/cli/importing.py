"""lumos import"""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.lines import problem, remark
from lumos.cli.names import Names
from lumos.cli.options import (
    CommonOptions,
    DryRun,
    OptionalSnapshot,
    Platform,
    common_options,
    earlier_options,
    print_json,
)
from lumos.errors import FAILED

if TYPE_CHECKING:
    from rich.console import Console

    from lumos.snapshots.reports import EntryReport, ImportReport, RollbackReport

_MOST: Final = 20


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(
        "import",
        epilog="Examples:\n\n"
        "lumos import backup.json --dry-run\n\n"
        "lumos import backup.json --platform datahub-file:estate.json\n\n"
        "lumos import backup.json --resume\n\n"
        "lumos import --rollback",
        cls=earlier_options(first=("--input", "-i")),
    )(import_snapshot)


@common_options
def import_snapshot(
    options: CommonOptions,
    file: OptionalSnapshot = None,
    platform: Platform = "local",
    dry_run: DryRun = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted import.")
    ] = False,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Restore what was there before the last import.")
    ] = False,
    allow_dangling: Annotated[
        bool,
        typer.Option(
            "--allow-dangling", help="Accept lineage to datasets that are not in the snapshot."
        ),
    ] = False,
) -> None:
    """Import a snapshot into a platform, and keep what people edited there.

    The snapshot is validated before anything is written. An interrupted import, even by kill -9,
    continues with --resume or is undone with --rollback.
    """
    from lumos.cli.screen import steps
    from lumos.snapshots.reports import RollbackReport

    if sum((dry_run, resume, rollback)) > 1:
        raise typer.BadParameter("give only one of --dry-run, --resume and --rollback")
    if file is None and not rollback:
        raise typer.BadParameter("Name the snapshot: lumos import FILE")
    lumos = options.lumos
    snapshots = lumos.snapshot
    report: ImportReport | RollbackReport
    with steps() as progress:
        if rollback:
            report = snapshots.roll_back(file, platform=platform, progress=progress)
        elif dry_run:
            assert file is not None
            report = snapshots.try_load(
                file, platform=platform, allow_dangling=allow_dangling, progress=progress
            )
        else:
            assert file is not None
            report = snapshots.load(
                file,
                platform=platform,
                resume=resume,
                allow_dangling=allow_dangling,
                progress=progress,
            )
    if options.json:
        print_json(report)
    else:
        _show(report, Names(lumos))
    if not isinstance(report, RollbackReport) and report.sums.refused:
        raise typer.Exit(FAILED)


def _show(report: "ImportReport | RollbackReport", names: Names) -> None:
    from lumos.cli.screen import stdout
    from lumos.snapshots.reports import ImportReport

    console = stdout()
    if isinstance(report, ImportReport):
        show_import(console, report, names)
        if report.dry_run:
            console.print(f"Nothing was written to {report.platform}.")
        elif report.sums.refused:
            console.print(f"Imported {report.file} into {report.platform}, except refused entries.")
        else:
            console.print(f"[ok] Imported {report.file} into {report.platform}.")
    else:
        what = f"The import of {report.file} into {report.platform}"
        show_rollback(console, report, names, what=what)


def show_import(console: "Console", report: "ImportReport", names: Names) -> None:
    """What an import did, or would do, to the entries of each kind."""
    from lumos.cli.screen import plural, table
    from lumos.schemas.wording import few

    sums = report.sums
    if report.dry_run:
        _show_entries(console, report.changes, names)
    counted = table("", "NEW", "CHANGED", "UNCHANGED", "DELETED",
                    right=("NEW", "CHANGED", "UNCHANGED", "DELETED"))  # fmt: skip
    for kind, tally in reversed(sums.kinds.items()):
        counts = (tally.created, tally.changed, tally.unchanged, tally.deleted)
        counted.add_row(kind, *(f"{count:,}" for count in counts))
    if sums.kinds:
        console.print(counted)
    else:
        console.print("The snapshot has no entries.")
    for aspect, ways in sorted(sums.held.items()):
        for how, count in sorted(ways.items()):
            if how != "native":
                console.print(f"{aspect}: {_HELD[how]} of {plural(count, 'dataset')}")
    if sums.seen_here:
        console.print(
            f"{plural(sums.seen_here, 'dataset')} already scanned here: schema, location and size "
            "of the scan were kept."
        )
    conflicts, _ = few(report.conflicts, _MOST)
    names.learn(conflict.key for conflict in conflicts)
    for conflict in conflicts:
        console.print("[kept]", style="yellow", end=" ")
        edit = f"{conflict.theirs!r}, not {conflict.ours!r}"
        console.print(f"{names(conflict.key)} {conflict.path}: {edit}")
    if rest := sums.conflicts - len(conflicts):
        console.print(f"... and {plural(rest, 'more edit')} kept; --json lists them.")
    refused, _ = few(report.refused, _MOST)
    for each in refused:
        problem(f"{each.kind} {names(each.key)} was refused: {each.problem}")
    if rest := sums.refused - len(refused):
        problem(f"... and {rest:,} more refused; --json lists them")
    for text in report.remarks:
        remark(names(text))


# How a catalog stores what it has no field for.
_HELD: Final = {
    "properties": "in the custom properties",
    "partly": "in part natively, exactly in the custom properties",
}


def _show_entries(console: "Console", changes: "tuple[EntryReport, ...]", names: Names) -> None:
    from lumos.schemas.wording import few

    shown, rest = few(changes, _MOST)
    names.learn(change.key for change in shown)
    for change in shown:
        parts = f"  {', '.join(change.aspects)}" if change.change == "changed" else ""
        console.print(f"{change.change:<9}  {names(change.key)}{parts}")
    if rest:
        console.print(f"... and {rest:,} more changes; --json lists them.")
    if changes:
        console.print()


def show_rollback(console: "Console", report: "RollbackReport", names: Names, *, what: str) -> None:
    """What a rollback restored, and what stayed."""
    from lumos.schemas.wording import few

    kept, rest = few(report.kept, _MOST)
    names.learn(each.key for each in kept)
    for each in kept:
        console.print("[kept]", style="yellow", end=" ")
        console.print(f"{names(each.key)}: {', '.join(each.aspects)} edited since the import")
    if rest:
        console.print(f"... and {rest:,} more; --json lists them.")
    entries = "1 entry" if report.restored == 1 else f"{report.restored:,} entries"
    console.print(f"[ok] {what} was rolled back: {entries} restored, {report.erased:,} removed.")
