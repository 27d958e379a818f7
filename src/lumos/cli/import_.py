"""lumos import"""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.options import (
    CommonOptions,
    DryRun,
    OptionalSnapshot,
    Platform,
    accept_old_options,
    with_options,
)
from lumos.cli.screen import Table, print_status, stdout, steps
from lumos.cli.text import Names, print_problem, print_remark
from lumos.errors import FAILED
from lumos.rendering.text import few, plural

if TYPE_CHECKING:
    from rich.console import Console

    from lumos.catalogs.reports import PublishConflict
    from lumos.snapshots.reports import ConflictReport, EntryReport, ImportReport, RollbackReport

_MAX_LISTED: Final = 20
# Descriptions of how a catalog stores an aspect for which it has no fields.
STORAGE_TEXT: Final = {
    "properties": "in the custom properties",
    "partly": "in part natively, exactly in the custom properties",
}


app = typer.Typer()


@app.command(
    "import",
    epilog="Examples:\n\n"
    "lumos import backup.json --dry-run\n\n"
    "lumos import backup.json --platform datahub-file:metadata.json\n\n"
    "lumos import backup.json --resume\n\n"
    "lumos import --rollback",
    cls=accept_old_options(first=("--input", "-i")),
)
@with_options
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
    """Import a snapshot into a platform, without overwriting edits made there.

    The snapshot is validated before anything is written. An interrupted import, even by kill -9,
    continues with --resume or is undone with --rollback.
    """
    from lumos.snapshots.reports import RollbackReport

    if sum((dry_run, resume, rollback)) > 1:
        raise typer.BadParameter("give only one of --dry-run, --resume and --rollback")
    if file is None and not rollback:
        raise typer.BadParameter("Name the snapshot: lumos import FILE")
    snapshots = options.lumos.snapshot
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
    options.print(report, _print_report, options.names)
    if not isinstance(report, RollbackReport) and report.sums.refused:
        raise typer.Exit(FAILED)


def _print_report(report: "ImportReport | RollbackReport", names: Names) -> None:
    from lumos.snapshots.reports import ImportReport

    console = stdout()
    if isinstance(report, ImportReport):
        print_import(report, names)
        if report.dry_run:
            console.print(f"Nothing was written to {report.platform}.")
        elif report.sums.refused:
            console.print(f"Imported {report.file} into {report.platform}, except refused entries.")
        else:
            console.print(f"[ok] Imported {report.file} into {report.platform}.")
    else:
        subject = f"The import of {report.file} into {report.platform}"
        print_rollback(report, names, subject=subject)


def print_import(report: "ImportReport", names: Names) -> None:
    """Print what an import did, or would do, to the entries of each kind."""
    console, sums = stdout(), report.sums
    if report.dry_run:
        _print_entries(console, report.changes, names)
    table = Table(
        "", ">NEW", ">CHANGED", ">UNCHANGED", ">DELETED", empty="The snapshot has no entries."
    )
    for kind, tally in reversed(sums.kinds.items()):
        counts = (tally.created, tally.changed, tally.unchanged, tally.deleted)
        table.add(kind, *(f"{count:,}" for count in counts))
    console.print(table)
    for aspect, counts_by_storage in sorted(sums.held.items()):
        for storage, count in sorted(counts_by_storage.items()):
            if storage != "native":
                console.print(f"{aspect}: {STORAGE_TEXT[storage]} of {plural(count, 'dataset')}")
    if sums.seen_here:
        console.print(
            f"{plural(sums.seen_here, 'dataset')} already scanned here: schema, location and size "
            "of the scan were kept."
        )
    conflicts, _ = few(report.conflicts, _MAX_LISTED)
    names.look_up(conflict.key for conflict in conflicts)
    for conflict in conflicts:
        print_conflict(console, conflict, names)
    if more := sums.conflicts - len(conflicts):
        console.print(f"... and {plural(more, 'more edit')} kept; --json lists them.")
    refused, _ = few(report.refused, _MAX_LISTED)
    for each in refused:
        print_problem(f"{each.kind} {names(each.key)} was refused: {each.problem}")
    if more := sums.refused - len(refused):
        print_problem(f"... and {more:,} more refused; --json lists them")
    for text in report.remarks:
        print_remark(names(text))


def print_conflict(
    console: "Console", conflict: "ConflictReport | PublishConflict", names: Names
) -> None:
    """Print an edit in a catalog that was kept."""
    values = f"{conflict.theirs!r}, not {conflict.ours!r}"
    print_status(console, "kept", f"{names(conflict.key)} {conflict.path}: {values}")


def _print_entries(console: "Console", changes: "tuple[EntryReport, ...]", names: Names) -> None:
    listed, more = few(changes, _MAX_LISTED)
    names.look_up(change.key for change in listed)
    for change in listed:
        parts = f"  {', '.join(change.aspects)}" if change.change == "changed" else ""
        console.print(f"{change.change:<9}  {names(change.key)}{parts}")
    if more:
        console.print(f"... and {more:,} more changes; --json lists them.")
    if changes:
        console.print()


def print_rollback(report: "RollbackReport", names: Names, *, subject: str) -> None:
    """Print what a rollback restored, and which later edits it kept."""
    console = stdout()
    edited_entries, more = few(report.kept, _MAX_LISTED)
    names.look_up(each.key for each in edited_entries)
    for each in edited_entries:
        edited = f"{', '.join(each.aspects)} edited since the import"
        print_status(console, "kept", f"{names(each.key)}: {edited}")
    if more:
        console.print(f"... and {more:,} more; --json lists them.")
    entries = plural(report.restored, "entry", "entries")
    console.print(f"[ok] {subject} was rolled back: {entries} restored, {report.erased:,} removed.")
