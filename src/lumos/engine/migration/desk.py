"""Migrations, as `Lumos().migration` offers them."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from lumos.config import Settings
from lumos.engine.migration.mapping import Mapping, write_mapped
from lumos.engine.migration.reports import MigrationReport, Need, SyncReport
from lumos.engine.migration.surveying import Survey, needs
from lumos.engine.snapshots import Snapshots
from lumos.engine.snapshots.catalogs import Catalog, Catalogs
from lumos.engine.snapshots.exporting import Wanted, export
from lumos.engine.snapshots.reports import ImportReport, RollbackReport
from lumos.errors import LumosError, MisuseError
from lumos.model.codec import from_json, to_json
from lumos.snapshot import Counts, open_snapshot
from lumos.snapshot.document import DATASETS, GLOSSARY, GROUPS, USERS
from lumos.storage import storage_of
from lumos.store import Store
from lumos.store.journal import ImportRun
from lumos.store.locks import AlreadyHeld

if TYPE_CHECKING:
    from lumos.engine.ingest import Announce
    from lumos.engine.migration.syncing import Scan

_EXPORTED: Final = "exported.jsonl.zst"
_MAPPED: Final = "mapped.jsonl.zst"
_RECORD: Final = "migration.json"
_NAMING: Final = (GLOSSARY, USERS, GROUPS)


def _say_nothing(_step: str, **_progress: object) -> None:
    """Announces nothing."""


class UnfinishedMigration(MisuseError):
    """An earlier migration of the same catalogs was broken off."""

    def __init__(self, source: str, target: str, words: str, run: ImportRun) -> None:
        self.run = run
        words = f"lumos migrate {words}"
        if run.state == "running":
            what = f"was not finished. Go on with: {words} --resume. Or take it"
        else:
            what = "is half taken back. Take the rest"
        super().__init__(
            f"The migration from {source} to {target} of {run.started_at:%Y-%m-%d %H:%M:%S} UTC "
            f"{what} back with: {words} --rollback"
        )


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a migration that has begun; `imported` once all is written.

    `file` is what is imported, `kept` what was exported where somebody asked for it.
    """

    source: str
    target: str
    exported: Counts
    file: str
    kept: str | None
    mapping: Mapping
    needs: tuple[Need, ...]
    remarks: tuple[str, ...]
    imported: ImportReport | None = None
    verified: bool = False


class _Exported(NamedTuple):
    """What came out of the source, and the file of what goes into the target."""

    counts: Counts
    file: Path
    needs: tuple[Need, ...]
    remarks: tuple[str, ...]


class MigrationDesk:
    """Moves all that a catalog holds into another one, and proves that it is there."""

    def __init__(
        self,
        settings: Settings,
        snapshots: Callable[[], Snapshots],
        store: Callable[[], Store],
        *,
        make_store: Callable[[], Store],
        scan: "Scan",
        folder: Callable[[], Path],
    ) -> None:
        self._settings = settings
        self._snapshots = snapshots
        self._store = store
        self._make_store = make_store
        self._scan = scan
        self._folder = folder

    def migrate(
        self,
        source: str,
        target: str,
        *,
        resume: bool = False,
        mapping: str | Path | None = None,
        keep: str | Path | None = None,
        announce: "Announce" = _say_nothing,
    ) -> MigrationReport:
        """Exports, validates, imports, and reads every entry back.

        A second migration writes what changed since, and leaves what people edited in the target.
        `resume` goes on with one that was broken off. `mapping` is a file with names that are
        others in the target. What was exported is kept as `keep`, or until it is verified.
        """
        store = self._make_store()
        catalogs = Catalogs(self._settings, lambda: store)
        wanted = None if mapping is None else Mapping.read(Path(mapping))
        with (
            self._sides(catalogs, source, target) as (here, there),
            self._alone(store, here, there) as folder,
        ):
            last = _last(folder)
            words = f"--source {source} --target {target}"
            self._check_finished(store, words, there, last, resume=resume, mapping=wanted)
            is_resumed = resume and last is not None and not last.verified and _is_there(last)
            if is_resumed:
                assert last is not None
                record = last
            else:
                kept = None if keep is None else Path(keep)
                found = self._exported(here, there, wanted, folder, kept, announce)
                record = _Record(
                    source=here.name,
                    target=there.name,
                    exported=found.counts,
                    file=str(found.file.resolve()),
                    kept=None if keep is None else str(keep),
                    mapping=wanted or Mapping(),
                    needs=found.needs,
                    remarks=found.remarks,
                )
                _save(folder, record)
            if record.imported is None:
                imported = self._snapshots().load(
                    record.file,
                    platform=target,
                    resume=resume,
                    allow_dangling=True,
                    announce=announce,
                )
                record = msgspec.structs.replace(record, imported=imported)
                _save(folder, record)
            # Opened anew: what was read before the import is not what is there now.
            with closing(catalogs.named(target)) as there:
                return self._verified(record, there, store, folder, announce, resumed=is_resumed)

    def try_migrate(
        self,
        source: str,
        target: str,
        *,
        mapping: str | Path | None = None,
        keep: str | Path | None = None,
        announce: "Announce" = _say_nothing,
    ) -> MigrationReport:
        """What `migrate` would do; nothing is written but the file that is to be kept."""
        wanted = None if mapping is None else Mapping.read(Path(mapping))
        catalogs = Catalogs(self._settings, self._store)
        with (
            self._sides(catalogs, source, target) as (here, there),
            TemporaryDirectory(prefix="lumos-") as folder,
        ):
            kept = None if keep is None else Path(keep)
            found = self._exported(here, there, wanted, Path(folder), kept, announce)
            tried = self._snapshots().try_load(
                found.file, platform=target, allow_dangling=True, announce=announce
            )
        return MigrationReport(
            source=here.name,
            target=there.name,
            dry_run=True,
            resumed=False,
            exported=found.counts,
            needs=found.needs,
            imported=tried,
            verified=None,
            remarks=found.remarks,
            snapshot=None if keep is None else str(keep),
        )

    def roll_back(
        self, source: str, target: str, *, announce: "Announce" = _say_nothing
    ) -> RollbackReport:
        """Restores what the target held before the last migration, finished or not.

        What was edited since stays.
        """
        store = self._store()
        catalogs = Catalogs(self._settings, lambda: store)
        with (
            self._sides(catalogs, source, target) as (here, there),
            self._alone(store, here, there) as folder,
        ):
            last = _last(folder)
            if last is None:
                raise MisuseError(f"Nothing was migrated from {source} to {target} yet.")
            return self._snapshots().roll_back(last.file, platform=target, announce=announce)

    def sync(
        self,
        *sources: str,
        outputs: Iterable[str] = (),
        full: bool = False,
        announce: "Announce" = _say_nothing,
    ) -> SyncReport:
        """Scans the sources of these names, or all, and tells catalogs what they lack.

        A source that fails keeps the others from nothing. A catalog that is told for the first
        time, or with `full`, hears of all that the store knows; without outputs it is the one that
        is configured. What a catalog could not take now it hears of the next time.
        """
        from lumos.engine.migration.syncing import Syncing

        syncing = Syncing(self._settings, self._scan, self._make_store)
        return syncing.run(sources, outputs=tuple(outputs), full=full, announce=announce)

    @staticmethod
    @contextmanager
    def _sides(catalogs: Catalogs, source: str, target: str) -> Iterator[tuple[Catalog, Catalog]]:
        with closing(catalogs.to_read(source)) as here, closing(catalogs.named(target)) as there:
            if here.name == there.name:
                raise MisuseError(f"'{source}' and '{target}' are the same catalog, {here.name}.")
            yield here, there

    @contextmanager
    def _alone(self, store: Store, here: Catalog, there: Catalog) -> Iterator[Path]:
        """The folder of the migration between two catalogs, for this process alone."""
        what = f"migration from {here.name} to {there.name}"
        try:
            with store.alone(what):
                key = hashlib.sha256(f"{here.name}\n{there.name}".encode()).hexdigest()[:16]
                folder = self._folder() / key
                folder.mkdir(mode=0o770, parents=True, exist_ok=True)
                yield folder
        except AlreadyHeld:
            raise LumosError(f"Another {what} is running. Wait until it has ended.") from None

    @staticmethod
    def _check_finished(
        store: Store,
        words: str,
        there: Catalog,
        last: _Record | None,
        *,
        resume: bool,
        mapping: Mapping | None,
    ) -> None:
        """Refuses now, and not after an export of hours, what the import would refuse."""
        from lumos.engine.snapshots.importing import UnfinishedImport

        run = store.journal.open(there.name)
        if run is None or run.state == "done":
            if last is not None and mapping is None and not last.mapping.is_empty:
                raise MisuseError(
                    "The last migration between these catalogs had a mapping; without it, things "
                    "would stand there under both names. Give it again with --mapping, or an empty "
                    "file to do without."
                )
            return
        if last is None or last.file != run.file:
            raise UnfinishedImport(run)
        if not resume or run.state != "running":
            raise UnfinishedMigration(last.source, last.target, words, run)
        if mapping is not None and mapping != last.mapping:
            raise MisuseError(
                "The migration that waits to be resumed began with another mapping. Resume it "
                "without --mapping, or take it back with --rollback and begin anew."
            )

    def _exported(
        self,
        here: Catalog,
        there: Catalog,
        mapping: Mapping | None,
        folder: Path,
        keep: Path | None,
        announce: "Announce",
    ) -> _Exported:
        """Takes a snapshot of the source, while it is looked what the target holds."""
        file = keep or folder / _EXPORTED
        mapping = mapping or Mapping()
        everything = Wanted(ranges=True)
        with ThreadPoolExecutor(1, "lumos-survey") as thread:
            surveyed = thread.submit(_survey, there)
            report = export(here, file, everything, at=datetime.now(UTC), announce=announce)
            target = surveyed.result()
        with open_snapshot(file) as snapshot:
            source = Survey.of(snapshot.entries(DATASETS), _items(snapshot))
            unsettled = needs(source, target, mapping)
            if not mapping.is_empty:
                announce(f"mapping {here.name}")
                mapped = folder / _MAPPED
                write_mapped(snapshot, mapping, mapped)
                file = mapped
        return _Exported(
            counts=report.counts,
            file=file,
            needs=unsettled,
            remarks=(*_validated(file, here), *_unused(mapping, source)),
        )

    @staticmethod
    def _verified(
        record: _Record,
        there: Catalog,
        store: Store,
        folder: Path,
        announce: "Announce",
        *,
        resumed: bool,
    ) -> MigrationReport:
        from lumos.engine.migration.verifying import verify

        imported = record.imported
        assert imported is not None
        assert imported.import_id is not None, "it was no trial"
        file = Path(record.file)
        found = verify(file, there, store, run=imported.import_id, announce=announce)
        lost = {need.name for need in record.needs if need.kind == "tag"}
        unsettled = record.needs + tuple(
            Need(kind="tag", name=tag) for tag in found.missing_tags if tag not in lost
        )
        if found.is_whole and not imported.sums.refused:
            _save(folder, msgspec.structs.replace(record, verified=True))
            for name in (_EXPORTED, _MAPPED):
                (folder / name).unlink(missing_ok=True)
        return MigrationReport(
            source=record.source,
            target=there.name,
            dry_run=False,
            resumed=resumed,
            exported=record.exported,
            needs=unsettled,
            imported=imported,
            verified=found,
            remarks=record.remarks,
            snapshot=record.kept or (str(file) if file.exists() else None),
        )


def _survey(catalog: Catalog) -> Survey:
    items = (item for kind in _NAMING for item in catalog.items(kind))
    return Survey.of(catalog.datasets(), items)


def _items(snapshot: Any) -> Iterator[object]:
    return (item for kind in _NAMING for item in snapshot.entries(kind))


def _validated(file: Path, source: Catalog) -> tuple[str, ...]:
    """Remarks on a snapshot that is sound; what leads out of the catalog led out of it before."""
    from lumos.engine.snapshots.importing import UnsoundSnapshot
    from lumos.engine.snapshots.validating import validated

    report = validated(file)
    errors = [each for each in report.problems if each.severity == "error"]
    if unsound := tuple(each for each in errors if each.code != "reference"):
        raise UnsoundSnapshot(file, unsound, len(unsound))
    if not errors:
        return ()
    many = report.errors > 1
    count = f"{report.errors:,} references lead" if many else "1 reference leads"
    return (
        f"{count} to what {source.name} does not hold and went along all the same. "
        f"{'The first: ' if many else ''}{errors[0].text}",
    )


def _unused(mapping: Mapping, source: Survey) -> Iterator[str]:
    for what in ("tags", "terms", "owners", "datasets"):
        for name in getattr(mapping, what):
            if name not in getattr(source, what):
                yield f"The mapping names {what[:-1]} '{name}', which the source does not have."


def _is_there(record: _Record) -> bool:
    return Path(record.file).exists()


def _last(folder: Path) -> _Record | None:
    file = folder / _RECORD
    return from_json(file.read_bytes(), _Record) if file.exists() else None


def _save(folder: Path, record: _Record) -> None:
    file = str(folder / _RECORD)
    storage_of(file).write(file, to_json(record))
