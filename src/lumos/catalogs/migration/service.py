"""The service behind `lumos migrate` and `lumos sync`."""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import msgspec

from lumos.catalogs import Connects, HoldsItems
from lumos.catalogs.migration.certificate import (
    Certificate,
    check_certificate,
    make_certificate,
    read_certificate,
    write_certificate,
)
from lumos.catalogs.migration.log import MigrationLog, MigrationRecord, Order, check_finished
from lumos.catalogs.migration.mapping import LABELS, Mapping, write_mapped
from lumos.catalogs.migration.quarantine import OnError, SoundDatasets
from lumos.catalogs.migration.reports import (
    CertificateCheck,
    MigrationPlan,
    MigrationReport,
    Need,
    SyncReport,
)
from lumos.catalogs.migration.survey import Survey, needs
from lumos.catalogs.migration.verification import reader_of, verify
from lumos.config import Settings
from lumos.errors import LumosError, MisuseError
from lumos.model.catalog import entity_urn
from lumos.progress import Progress, no_progress
from lumos.snapshots.catalogs import PlatformCatalog, SnapshotCatalog, SnapshotCatalogs
from lumos.snapshots.diff import Cancellation, start_thread
from lumos.snapshots.export import ExportOptions, export
from lumos.snapshots.format.document import DATASETS, GLOSSARY, GROUPS, OTHERS, USERS
from lumos.snapshots.format.reader import open_snapshot
from lumos.snapshots.reports import RollbackReport
from lumos.snapshots.service import Snapshots
from lumos.store import NoStore, Store
from lumos.store.database import LockHeld

if TYPE_CHECKING:
    from lumos.catalogs.sync import CatalogScan

_EXPORTED: Final = "exported.jsonl.zst"
_MAPPED: Final = "mapped.jsonl.zst"
_NAMING: Final = (GLOSSARY, USERS, GROUPS, OTHERS)


class Migrations:
    """Migrates the contents of a catalog to another one and verifies them."""

    def __init__(
        self,
        settings: Settings,
        snapshots: Callable[[], Snapshots],
        store: Callable[[], Store],
        *,
        make_store: Callable[[], Store],
        scan: "CatalogScan",
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
        certificate: str | Path | None = None,
        on_error: OnError = "stop",
        progress: Progress = no_progress,
    ) -> MigrationReport:
        """Export, validate, import, and read every entry back.

        A second migration writes what changed since then and keeps edits in the target. `resume`
        continues an interrupted one. `mapping` is a file with names that are other ones in the
        target. The export is kept as `keep`, or deleted after the verification. A dataset that
        cannot be migrated stops the migration; with `on_error="skip"` it is left out and reported.
        The certificate is written to `certificate`, or next to the store.
        """
        store = self._make_store()
        catalogs = SnapshotCatalogs(self._settings, lambda: store)
        wanted = None if mapping is None else Mapping.read(Path(mapping))
        with (
            self._sides(catalogs, source, target) as (here, there),
            self._alone(store, here, there) as folder,
        ):
            log = MigrationLog(folder)
            check_finished(store, f"{source} {target}", there, log, resume=resume, mapping=wanted)
            waiting = log.waiting() if resume else None
            if isinstance(waiting, MigrationRecord):
                record = log.reopened(waiting, store)
                if keep is not None and str(keep) != record.kept:
                    record = _kept_as(record, Path(keep), folder)
                    log.save(record)
            else:
                order = Order(
                    source=here.name,
                    target=there.name,
                    mapping=wanted or (waiting.mapping if waiting else Mapping()),
                    keep=str(keep) if keep else (waiting.keep if waiting else None),
                )
                # Recorded first: an export may take hours and be interrupted.
                log.begin(order)
                record = log.add(
                    self._export_source(here, there, order, store, folder, progress, on_error)
                )
            if record.imported is None:
                imported = self._snapshots().load(
                    record.file,
                    platform=target,
                    resume=resume,
                    allow_dangling=True,
                    progress=progress,
                )
                record = msgspec.structs.replace(record, imported=imported)
                log.save(record)
            # Opened again, so that nothing is read from a cache.
            with closing(catalogs.named(target)) as there:
                is_resumed = isinstance(waiting, MigrationRecord)
                report, hashes = self._verify(
                    record, there, store, folder, progress, resumed=is_resumed
                )
            written = make_certificate(
                report, hashes, target_address=target, snapshot_hash=record.hash
            )
            file = Path(certificate) if certificate else _certificate_file(folder, written)
            write_certificate(written, file)
            return msgspec.structs.replace(report, certificate=str(file))

    def try_migrate(
        self,
        source: str,
        target: str,
        *,
        mapping: str | Path | None = None,
        keep: str | Path | None = None,
        on_error: OnError = "stop",
        progress: Progress = no_progress,
    ) -> MigrationReport:
        """What `migrate` would do; nothing is written except the file to keep."""
        with self._dry_run(source, target, mapping, keep, on_error, progress) as (report, _, _):
            return report

    def plan(
        self,
        source: str,
        target: str,
        *,
        mapping: str | Path | None = None,
        on_error: OnError = "stop",
        progress: Progress = no_progress,
    ) -> MigrationPlan:
        """Plan a migration: counts by aspect, what is lossy and why, calls, time and a runbook."""
        from lumos.catalogs.migration.plan import plan_migration

        start = time.perf_counter()
        with self._dry_run(source, target, mapping, None, on_error, progress) as tried:
            report, file, there = tried
            seconds = time.perf_counter() - start
            progress("planning")
            return plan_migration(report, file, there, catalogs=(source, target), seconds=seconds)

    @contextmanager
    def _dry_run(
        self,
        source: str,
        target: str,
        mapping: str | Path | None,
        keep: str | Path | None,
        on_error: OnError,
        progress: Progress,
    ) -> Iterator[tuple[MigrationReport, Path, SnapshotCatalog]]:
        """The report of a dry run, the snapshot that it would import, and the target."""
        wanted = None if mapping is None else Mapping.read(Path(mapping))
        catalogs = SnapshotCatalogs(self._settings, self._store)
        with (
            self._sides(catalogs, source, target) as (here, there),
            TemporaryDirectory(prefix="lumos-") as folder,
        ):
            order = Order(
                source=here.name,
                target=there.name,
                mapping=wanted or Mapping(),
                keep=None if keep is None else str(keep),
            )
            try:
                store = self._store()
            except NoStore:
                store = None
            found = self._export_source(here, there, order, store, Path(folder), progress, on_error)
            tried = self._snapshots().try_load(
                found.file, platform=target, allow_dangling=True, progress=progress
            )
            report = MigrationReport(
                source=here.name,
                target=there.name,
                dry_run=True,
                resumed=False,
                exported=found.exported,
                needs=found.needs,
                imported=tried,
                verified=None,
                remarks=found.remarks,
                snapshot=found.kept,
                skipped=found.skipped,
            )
            yield report, Path(found.file), there

    def verify(
        self,
        certificate: str | Path,
        *,
        target: str | None = None,
        progress: Progress = no_progress,
    ) -> CertificateCheck:
        """Read the target again and compare it with the certificate of a migration.

        `target` is where the target is now, if it was moved since.
        """
        known = read_certificate(Path(certificate))
        catalogs = SnapshotCatalogs(self._settings, self._store)
        with closing(catalogs.named_for_reading(target or known.target_address)) as there:
            progress(f"reading {there.name}")
            return check_certificate(known, reader_of(there), progress)

    def roll_back(
        self, source: str, target: str, *, progress: Progress = no_progress
    ) -> RollbackReport:
        """Restore the target to its state before the last migration, finished or not.

        Edits since then are kept.
        """
        store = self._store()
        catalogs = SnapshotCatalogs(self._settings, lambda: store)
        with (
            self._sides(catalogs, source, target) as (here, there),
            self._alone(store, here, there) as folder,
        ):
            log = MigrationLog(folder)
            last = log.last()
            if last is None:
                raise MisuseError(
                    f"Nothing was migrated from {source} to {target} yet. "
                    f"Begin with: lumos migrate {source} {target} --dry-run"
                )
            file = _rollback_file(store, there, last, folder)
            report = self._snapshots().roll_back(file, platform=target, progress=progress)
            log.save(msgspec.structs.replace(last, over=True))
            return report

    def sync(
        self,
        *sources: str,
        outputs: Iterable[str] = (),
        scan: bool = True,
        full: bool = False,
        progress: Progress = no_progress,
    ) -> SyncReport:
        """Scan the named sources, or all, and publish what catalogs lack.

        Without `scan`, or if no sources are configured, only what is still unpublished goes out. A
        source that fails does not stop the others. A catalog that is published to for the first
        time, and every catalog with `full`, gets everything. `outputs` are catalogs to publish to
        instead of the configured one. What a catalog rejects is retried by the next sync.
        """
        from lumos.catalogs.sync import SyncRun

        syncing = SyncRun(self._settings, self._scan, self._make_store)
        return syncing.run(sources, outputs=tuple(outputs), scan=scan, full=full, progress=progress)

    @staticmethod
    @contextmanager
    def _sides(
        catalogs: SnapshotCatalogs, source: str, target: str
    ) -> Iterator[tuple[SnapshotCatalog, SnapshotCatalog]]:
        with (
            closing(catalogs.named_for_reading(source)) as here,
            closing(catalogs.named(target)) as there,
        ):
            if here.name == there.name:
                raise MisuseError(f"'{source}' and '{target}' are the same catalog, {here.name}.")
            yield here, there

    @contextmanager
    def _alone(self, store: Store, here: SnapshotCatalog, there: SnapshotCatalog) -> Iterator[Path]:
        """The folder of the migration between two catalogs, for this process alone."""
        what = f"migration from {here.name} to {there.name}"
        try:
            with store.lock(what):
                key = hashlib.sha256(f"{here.name}\n{there.name}".encode()).hexdigest()[:16]
                folder = self._folder() / key
                folder.mkdir(mode=0o770, parents=True, exist_ok=True)
                yield folder
        except LockHeld:
            raise LumosError(f"Another {what} is running. Wait until it has ended.") from None

    def _export_source(
        self,
        here: SnapshotCatalog,
        there: SnapshotCatalog,
        order: Order,
        store: Store | None,
        folder: Path,
        progress: Progress,
        on_error: OnError,
    ) -> MigrationRecord:
        """Export the source while the names in the target are collected."""
        for catalog in (here, there):
            # Errors are raised now, not after an export of hours.
            if isinstance(catalog, PlatformCatalog) and isinstance(catalog.platform, Connects):
                catalog.platform.check()
        file = Path(order.keep) if order.keep else folder / _EXPORTED
        mapping = order.mapping
        cancellation = Cancellation()
        surveyed = start_thread(lambda: _survey(there, cancellation), "lumos-survey")

        def report_or_fail(step: str, **facts: Any) -> None:
            if surveyed.done():
                surveyed.result()
            progress(step, **facts)

        sound = SoundDatasets(here, on_error)
        try:
            report = export(
                sound,
                file,
                ExportOptions(ranges=True),
                at=datetime.now(UTC),
                progress=report_or_fail,
            )
            target = surveyed.result()
        finally:
            cancellation.cancel()
        with open_snapshot(file) as snapshot:
            source = Survey.of(snapshot.entries(DATASETS), _items(snapshot))
            platform: Any = there.platform if isinstance(there, PlatformCatalog) else None
            unmapped = needs(
                source,
                target,
                mapping,
                shows_display_names=isinstance(platform, HoldsItems)
                and platform.shows_display_names,
            )
            new_names = _names_new_to_target(mapping, source, target)
            if not mapping.is_empty:
                progress(f"mapping {here.name}")
                mapped = folder / _MAPPED
                write_mapped(snapshot, mapping, mapped, moved=_moved(mapping, target, store, there))
                file = mapped
        return MigrationRecord(
            source=order.source,
            target=order.target,
            exported=report.counts,
            hash=report.hash,
            file=str(file.resolve()),
            kept=order.keep,
            mapping=mapping,
            needs=unmapped,
            skipped=tuple(sound.skipped),
            remarks=(*_validated(file, here), *_unused(mapping, source), *new_names),
        )

    @staticmethod
    def _verify(
        record: MigrationRecord,
        there: SnapshotCatalog,
        store: Store,
        folder: Path,
        progress: Progress,
        *,
        resumed: bool,
    ) -> tuple[MigrationReport, dict[str, dict[str, str]]]:
        imported = record.imported
        assert imported is not None
        assert imported.import_id is not None, "it was not a dry run"
        file = Path(record.file)
        found, hashes = verify(file, there, store, run=imported.import_id, progress=progress)
        lost = {need.name for need in record.needs if need.kind == "tag"}
        unmapped = record.needs + tuple(
            Need(kind="tag", name=tag) for tag in found.missing_tags if tag not in lost
        )
        is_over = found.is_whole and not imported.sums.refused
        MigrationLog(folder).save(
            msgspec.structs.replace(record, over=is_over, lacking=not is_over)
        )
        if is_over:
            for name in (_EXPORTED, _MAPPED):
                (folder / name).unlink(missing_ok=True)
        report = MigrationReport(
            source=record.source,
            target=there.name,
            dry_run=False,
            resumed=resumed,
            exported=record.exported,
            needs=unmapped,
            imported=imported,
            verified=found,
            remarks=record.remarks,
            snapshot=record.kept or (str(file) if file.exists() else None),
            skipped=record.skipped,
        )
        return report, hashes


def _certificate_file(folder: Path, certificate: Certificate) -> Path:
    return folder / f"certificate-{certificate.finished_at:%Y%m%dT%H%M%SZ}.json"


def _survey(catalog: SnapshotCatalog, cancellation: Cancellation) -> Survey:
    items = (item for kind in _NAMING for item in catalog.items(kind))
    return Survey.of(
        cancellation.until_cancelled(catalog.datasets()), cancellation.until_cancelled(items)
    )


def _rollback_file(
    store: Store, there: SnapshotCatalog, last: MigrationRecord, folder: Path
) -> str | None:
    """The file of the import to roll back, or None for the newest one."""
    run, newest = store.journal.open(there.name), store.journal.last(there.name)
    if run is None or newest is None:
        return last.file
    is_ours = run.file in (last.file, *last.earlier) or Path(run.file).parent == folder.resolve()
    if not is_ours:
        return last.file
    return None if run.id == newest.id else run.file


def _kept_as(record: MigrationRecord, keep: Path, folder: Path) -> MigrationRecord:
    """The migration with its export kept as another file."""
    exported = Path(record.kept) if record.kept else folder / _EXPORTED
    with open_snapshot(exported) as snapshot:
        write_mapped(snapshot, Mapping(), keep)
    return msgspec.structs.replace(record, kept=str(keep))


def _items(snapshot: Any) -> Iterator[object]:
    return (item for kind in _NAMING for item in snapshot.entries(kind))


def _validated(file: Path, source: SnapshotCatalog) -> tuple[str, ...]:
    """Validate the export; lineage to datasets outside of the catalog is only a remark."""
    from lumos.snapshots.importer import InvalidSnapshot
    from lumos.snapshots.validate import validate_snapshot

    report = validate_snapshot(file)
    errors = [each for each in report.problems if each.severity == "error"]
    if unsound := tuple(each for each in errors if each.code != "reference"):
        raise InvalidSnapshot(file, unsound, len(unsound))
    leading_out = [each for each in report.problems if each.is_lineage]
    if not leading_out:
        return ()
    many = len(leading_out) > 1
    count = f"{len(leading_out):,} references lead" if many else "1 reference leads"
    return (
        f"{count} to what {source.name} does not contain; migrated anyway. "
        f"{'The first: ' if many else ''}{leading_out[0].text}",
    )


def _names_new_to_target(mapping: Mapping, source: Survey, target: Survey) -> tuple[str, ...]:
    """Remarks on names that the mapping introduces in the target, which may be typing errors."""
    return tuple(
        f"The mapping renames {what[:-1]} '{name}' to '{new}', which the target does not have yet. "
        "It is created under that name."
        for what in ("terms", "owners")
        for name, new in getattr(mapping, what).items()
        if name != new and name in getattr(source, what) and new not in getattr(target, what)
    )


def _moved(
    mapping: Mapping, target: Survey, store: Store | None, there: SnapshotCatalog
) -> frozenset[str]:
    """The new names that the target does not have: entries that get them are written."""
    labels = (entity_urn(kind, name) for kind in LABELS for name in target.labels(kind))
    known = {*target.terms, *target.owners, *labels}
    wanted = mapping.target_names
    if store is not None:
        # Entries that an earlier migration wrote still belong to the source.
        for kind in _NAMING:
            known -= store.journal.bases(there.name, kind.plural, wanted).keys()
    return frozenset(wanted - known)


def _unused(mapping: Mapping, source: Survey) -> Iterator[str]:
    for what in ("tags", "terms", "owners", "domains", "services", "datasets"):
        for name in getattr(mapping, what):
            if name not in getattr(source, what):
                yield f"The mapping names {what[:-1]} '{name}', which the source does not have."
