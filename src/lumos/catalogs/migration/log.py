"""The state of migrations between two catalogs, and whether another one may start."""

from pathlib import Path
from typing import Final

import msgspec

from lumos.catalogs.migration.mapping import Mapping
from lumos.catalogs.migration.reports import Need
from lumos.errors import MisuseError
from lumos.model.json_codec import from_json, to_json
from lumos.snapshots.catalogs import SnapshotCatalog
from lumos.snapshots.format.document import SnapshotCounts
from lumos.snapshots.reports import ImportReport, ImportTotals, RefusedReport
from lumos.storage import storage_of
from lumos.store import Store
from lumos.store.journal import ImportRun

_ORDER: Final = "order.json"
_RECORD: Final = "migration.json"


class UnfinishedMigration(MisuseError):
    """An earlier migration between the same catalogs was interrupted."""

    def __init__(self, source: str, target: str, catalogs: str, run: ImportRun) -> None:
        self.run = run
        command = f"lumos migrate {catalogs}"
        if run.state == "running":
            what = f"was not finished. Resume it with: {command} --resume. Or roll it"
        else:
            what = "was rolled back in part. Roll the rest"
        super().__init__(
            f"The migration from {source} to {target} of {run.started_at:%Y-%m-%d %H:%M:%S} UTC "
            f"{what} back with: {command} --rollback"
        )


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of a migration while the source is being exported."""

    source: str
    target: str
    mapping: Mapping
    keep: str | None


class MigrationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a migration after its export; `imported` is set once everything is written.

    `file` is imported, `kept` is the exported file if the user wants to keep it. A migration is
    `over` once it is verified or rolled back, and `lacking` if the verification found entries
    missing. `skipped` datasets were left out of the export.
    """

    source: str
    target: str
    exported: SnapshotCounts
    # The hash of the export; migrations of earlier versions have none.
    hash: str = ""
    file: str
    kept: str | None
    mapping: Mapping
    needs: tuple[Need, ...]
    remarks: tuple[str, ...]
    # Files of earlier migrations; one of them may be the last that changed anything.
    earlier: tuple[str, ...] = ()
    skipped: tuple[RefusedReport, ...] = ()
    imported: ImportReport | None = None
    lacking: bool = False
    over: bool = False


class MigrationLog:
    """The files with the state of migrations between two catalogs."""

    def __init__(self, folder: Path) -> None:
        self._order = folder / _ORDER
        self._record = folder / _RECORD

    def last(self) -> MigrationRecord | None:
        """The last migration that was exported."""
        return (
            from_json(self._record.read_bytes(), MigrationRecord) if self._record.exists() else None
        )

    def waiting(self) -> Order | MigrationRecord | None:
        """What can be resumed: an interrupted export, or a migration that is not over."""
        if self._order.exists():
            return from_json(self._order.read_bytes(), Order)
        last = self.last()
        return last if last is not None and not last.over and Path(last.file).exists() else None

    def begin(self, order: Order) -> None:
        """Record the start of an export; the last migration can still be rolled back."""
        _write(self._order, order)

    def add(self, record: MigrationRecord) -> MigrationRecord:
        """Record a migration after its export."""
        last = self.last()
        if last is not None:
            files = dict.fromkeys((*last.earlier, last.file))
            record = msgspec.structs.replace(record, earlier=tuple(files))
        self.save(record)
        self._order.unlink(missing_ok=True)
        return record

    def save(self, record: MigrationRecord) -> None:
        """Record the state of a migration."""
        _write(self._record, record)

    def reopened(self, record: MigrationRecord, store: Store) -> MigrationRecord:
        """The migration, ready to write the entries that are missing in the target."""
        imported = record.imported
        if imported is None or not (imported.sums.refused or record.lacking):
            return record
        run = store.journal.open(record.target)
        # The same import continues, so that all of it can be rolled back.
        if imported.sums.refused and run and run.id == imported.import_id and run.state == "done":
            with store.transaction() as transaction:
                transaction.journal.save_run(_restart(run))
        record = msgspec.structs.replace(record, imported=None, lacking=False)
        self.save(record)
        return record


def check_finished(
    store: Store,
    words: str,
    there: SnapshotCatalog,
    log: MigrationLog,
    *,
    resume: bool,
    mapping: Mapping | None,
) -> None:
    """Raise errors of the import before the export, which may take hours."""
    from lumos.snapshots.importer import UnfinishedImport

    last, waiting = log.last(), log.waiting() if resume else None
    run = store.journal.open(there.name)
    if run is not None and run.state != "done":
        if last is None or last.file != run.file:
            raise UnfinishedImport(run)
        if not resume or run.state != "running":
            raise UnfinishedMigration(last.source, last.target, words, run)
        if not Path(last.file).exists():
            raise MisuseError(
                f"The migration cannot be resumed: its export {last.file} is missing. Roll it "
                f"back with: lumos migrate {words} --rollback"
            )
    if isinstance(waiting, MigrationRecord):
        if mapping is not None and mapping != waiting.mapping:
            raise MisuseError(
                "The unfinished migration uses another mapping. Resume it "
                "without --mapping, or undo it with --rollback and start again."
            )
    elif waiting is None and mapping is None and last is not None and not last.mapping.is_empty:
        raise MisuseError(
            "The last migration between these catalogs had a mapping; without it, the target "
            "would have entities under both names. Pass it again with --mapping, or pass an "
            "empty file to migrate without one."
        )


def _restart(run: ImportRun) -> ImportRun:
    """The import from its start; changes are counted already."""
    sums = from_json(run.sums, ImportTotals)
    for tally in sums.kinds.values():
        tally.unchanged = 0
    sums.conflicts = sums.refused = 0
    sums.refusals = []
    return msgspec.structs.replace(
        run, state="running", reached_kind=None, reached_key=None, sums=to_json(sums)
    )


def _write(path: Path, what: Order | MigrationRecord) -> None:
    storage_of(str(path)).write(str(path), to_json(what))
