"""Stores the state of migrations between two catalogs, and checks whether one may start."""

from pathlib import Path
from typing import Final

import msgspec

from lumos.catalogs.migration.mapping import Mapping
from lumos.catalogs.migration.reports import MigrationReport, UnmappedName
from lumos.errors import MisuseError
from lumos.model.json_codec import from_json, to_json
from lumos.snapshots.catalogs import SnapshotCatalog
from lumos.snapshots.format.document import SnapshotCounts
from lumos.snapshots.reports import ImportReport, ImportTotals, RefusedReport
from lumos.storage import storage_of
from lumos.store import Store
from lumos.store.journal import ImportRun

_REQUEST_FILE: Final = "request.json"
_RECORD_FILE: Final = "migration.json"


class UnfinishedMigration(MisuseError):
    """An earlier migration between the same catalogs was interrupted."""

    def __init__(self, source: str, target: str, catalogs: str, run: ImportRun) -> None:
        self.run = run
        command = f"lumos migrate {catalogs}"
        if run.state == "running":
            state_text = f"was not finished. Resume it with: {command} --resume. Or roll it"
        else:
            state_text = "was rolled back in part. Roll the rest"
        super().__init__(
            f"The migration from {source} to {target} of {run.started_at:%Y-%m-%d %H:%M:%S} UTC "
            f"{state_text} back with: {command} --rollback"
        )


class MigrationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of a migration while the source is being exported."""

    source: str
    target: str
    mapping: Mapping
    keep: str | None


class MigrationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a migration after its export; `imported` is set once everything is written.

    `file` is the snapshot to import, `kept` the file in which the user wanted the export.
    `is_finished` is set once the migration is verified or rolled back, `has_missing_entries` if the
    verification found missing entries. `skipped` datasets are not in the export.
    """

    source: str
    target: str
    exported: SnapshotCounts
    # The hash of the export; migrations of earlier versions have none.
    hash: str = ""
    lineage_left_out: int = 0
    file: str
    kept: str | None
    mapping: Mapping
    needs: tuple[UnmappedName, ...]
    remarks: tuple[str, ...]
    # Files of earlier migrations. If the last one changed nothing, a rollback needs one of these.
    earlier: tuple[str, ...] = ()
    skipped: tuple[RefusedReport, ...] = ()
    imported: ImportReport | None = None
    has_missing_entries: bool = msgspec.field(default=False, name="lacking")
    is_finished: bool = msgspec.field(default=False, name="over")

    def report(self, target: str, imported: ImportReport) -> MigrationReport:
        """The report of a dry run; a migration adds its verification."""
        return MigrationReport(
            source=self.source,
            target=target,
            dry_run=True,
            resumed=False,
            exported=self.exported,
            needs=self.needs,
            imported=imported,
            verified=None,
            remarks=self.remarks,
            snapshot=self.kept,
            skipped=self.skipped,
            lineage_left_out=self.lineage_left_out,
        )


class MigrationLog:
    """The files with the state of migrations between two catalogs."""

    def __init__(self, folder: Path) -> None:
        self._request = folder / _REQUEST_FILE
        self._record = folder / _RECORD_FILE

    def last(self) -> MigrationRecord | None:
        """The last migration that was exported."""
        return (
            from_json(self._record.read_bytes(), MigrationRecord) if self._record.exists() else None
        )

    def resumable(self) -> MigrationRequest | MigrationRecord | None:
        """The interrupted export or unfinished migration that can be resumed, or None."""
        if self._request.exists():
            return from_json(self._request.read_bytes(), MigrationRequest)
        last = self.last()
        return (
            last if last is not None and not last.is_finished and Path(last.file).exists() else None
        )

    def begin(self, request: MigrationRequest) -> None:
        """Record the start of an export; the last migration can still be rolled back."""
        _write(self._request, request)

    def add(self, record: MigrationRecord) -> MigrationRecord:
        """Record a migration after its export."""
        last = self.last()
        if last is not None:
            files = dict.fromkeys((*last.earlier, last.file))
            record = msgspec.structs.replace(record, earlier=tuple(files))
        self.save(record)
        self._request.unlink(missing_ok=True)
        return record

    def save(self, record: MigrationRecord) -> None:
        _write(self._record, record)

    def reopen(self, record: MigrationRecord, store: Store) -> MigrationRecord:
        """Prepare a migration to write the entries that are missing in the target."""
        imported = record.imported
        if imported is None or not (imported.sums.refused or record.has_missing_entries):
            return record
        run = store.journal.open_run(record.target)
        # Continue the same import, so that a rollback covers all of it.
        if imported.sums.refused and run and run.id == imported.import_id and run.state == "done":
            with store.transaction() as transaction:
                transaction.journal.save_run(_restart(run))
        record = msgspec.structs.replace(record, imported=None, has_missing_entries=False)
        self.save(record)
        return record


def check_can_start(
    store: Store,
    catalog_arguments: str,
    target: SnapshotCatalog,
    log: MigrationLog,
    *,
    resume: bool,
    mapping: Mapping | None,
) -> None:
    """Fail before the export, which may take hours, if the import could not start."""
    from lumos.snapshots.importer import UnfinishedImport

    last, resumable = log.last(), log.resumable() if resume else None
    run = store.journal.open_run(target.name)
    if run is not None and run.state != "done":
        if last is None or last.file != run.file:
            raise UnfinishedImport(run)
        if not resume or run.state != "running":
            raise UnfinishedMigration(last.source, last.target, catalog_arguments, run)
        if not Path(last.file).exists():
            raise MisuseError(
                f"The migration cannot be resumed: its export {last.file} is missing. Roll it "
                f"back with: lumos migrate {catalog_arguments} --rollback"
            )
    if isinstance(resumable, MigrationRecord):
        if mapping is not None and mapping != resumable.mapping:
            raise MisuseError(
                "The unfinished migration uses another mapping. Resume it "
                "without --mapping, or undo it with --rollback and start again."
            )
    elif resumable is None and mapping is None and last is not None and not last.mapping.is_empty:
        raise MisuseError(
            "The last migration between these catalogs had a mapping; without it, the target "
            "would have entities under both names. Pass it again with --mapping, or pass an "
            "empty file to migrate without one."
        )


def _restart(run: ImportRun) -> ImportRun:
    """Restart an import with its counts of changes, since entries written again are unchanged."""
    sums = from_json(run.sums, ImportTotals)
    for tally in sums.kinds.values():
        tally.unchanged = 0
    sums.conflicts = sums.refused = 0
    sums.refusals = []
    return msgspec.structs.replace(
        run, state="running", reached_kind=None, reached_key=None, sums=to_json(sums)
    )


def _write(path: Path, state: MigrationRequest | MigrationRecord) -> None:
    storage_of(str(path)).write(str(path), to_json(state))
