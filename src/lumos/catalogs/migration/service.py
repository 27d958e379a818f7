"""The service behind `lumos migrate` and `lumos sync`."""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from lumos.catalogs import Connects, FailedEntry, ReadsEntries, StoresItems
from lumos.catalogs.migration.certificate import (
    check_certificate,
    make_certificate,
    read_certificate,
    write_certificate,
)
from lumos.catalogs.migration.log import (
    MigrationLog,
    MigrationRecord,
    MigrationRequest,
    check_can_start,
)
from lumos.catalogs.migration.mapping import LABELS, Mapping, write_mapped
from lumos.catalogs.migration.reports import (
    CertificateCheck,
    MigrationPlan,
    MigrationReport,
    SyncReport,
    UnmappedName,
)
from lumos.catalogs.migration.unmapped_names import CatalogNames, find_unmapped_names
from lumos.catalogs.migration.verification import entry_reader, verify
from lumos.config import Settings
from lumos.errors import LumosError, MisuseError
from lumos.model.catalog import CatalogEntry, entity_urn
from lumos.progress import Progress, no_progress
from lumos.snapshots.catalogs import PlatformCatalog, SnapshotCatalog, SnapshotCatalogs
from lumos.snapshots.diff import Cancellation, start_thread
from lumos.snapshots.export import ExportOptions, export
from lumos.snapshots.format.checks import implausible_values
from lumos.snapshots.format.document import DATASETS, GLOSSARY, GROUPS, OTHERS, USERS, EntryKind
from lumos.snapshots.format.reader import open_snapshot
from lumos.snapshots.reports import RefusedReport, RollbackReport
from lumos.snapshots.service import Snapshots
from lumos.store import NoStore, Store
from lumos.store.database import LockHeld

if TYPE_CHECKING:
    from lumos.catalogs.sync import CatalogScan

OnError: TypeAlias = Literal["stop", "skip"]

_EXPORTED: Final = "exported.jsonl.zst"
_MAPPED: Final = "mapped.jsonl.zst"
_NAMED_KINDS: Final = (GLOSSARY, USERS, GROUPS, OTHERS)


class _CatalogPair(NamedTuple):
    source: SnapshotCatalog
    target: SnapshotCatalog


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
        """Export the source, validate the export, import it, and read every entry back.

        A later migration writes the changes since the last one and preserves edits in the target.
        `resume` continues an interrupted migration. `mapping` is a file with names in the target.
        The export is saved as the file `keep`; without it, it is deleted after the verification. A
        dataset that cannot be migrated stops the migration; with `on_error="skip"` it is omitted
        and reported. The certificate is written to `certificate`, or next to the store.
        """
        store = self._make_store()
        catalogs = SnapshotCatalogs(self._settings, lambda: store)
        given_mapping = None if mapping is None else Mapping.read(Path(mapping))
        with (
            self._open_catalogs(catalogs, source, target) as pair,
            self._lock_folder(store, pair) as folder,
        ):
            log = MigrationLog(folder)
            check_can_start(
                store, f"{source} {target}", pair.target, log, resume=resume, mapping=given_mapping
            )
            resumable = log.resumable() if resume else None
            if isinstance(resumable, MigrationRecord):
                record = log.reopen(resumable, store)
                if keep is not None and str(keep) != record.kept:
                    record = _keep_export(record, Path(keep), folder)
                    log.save(record)
            else:
                request = MigrationRequest(
                    source=pair.source.name,
                    target=pair.target.name,
                    mapping=given_mapping or (resumable.mapping if resumable else Mapping()),
                    keep=str(keep) if keep else (resumable.keep if resumable else None),
                )
                # Record the request first, because an export may take hours and be interrupted.
                log.begin(request)
                record = log.add(
                    self._export_source(pair, request, store, folder, progress, on_error)
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
            # Open the target again, so that nothing is read from a cache.
            with closing(catalogs.named(target)) as reopened:
                is_resumed = isinstance(resumable, MigrationRecord)
                report, hashes = self._verify(
                    record, reopened, store, folder, progress, resumed=is_resumed
                )
            finished = make_certificate(
                report, hashes, target_address=target, snapshot_hash=record.hash
            )
            file = folder / f"certificate-{finished.finished_at:%Y%m%dT%H%M%SZ}.json"
            if certificate:
                file = Path(certificate)
            write_certificate(finished, file)
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
        """Report what `migrate` would do; only the file `keep` is written."""
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
        """Plan a migration: counts and losses by aspect, calls, time and a runbook."""
        from lumos.catalogs.migration.plan import plan_migration

        start = time.perf_counter()
        with self._dry_run(source, target, mapping, None, on_error, progress) as dry_run:
            report, file, target_catalog = dry_run
            seconds = time.perf_counter() - start
            progress("planning")
            return plan_migration(
                report, file, target_catalog, catalogs=(source, target), seconds=seconds
            )

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
        given_mapping = None if mapping is None else Mapping.read(Path(mapping))
        catalogs = SnapshotCatalogs(self._settings, self._store)
        with (
            self._open_catalogs(catalogs, source, target) as pair,
            TemporaryDirectory(prefix="lumos-") as folder,
        ):
            request = MigrationRequest(
                source=pair.source.name,
                target=pair.target.name,
                mapping=given_mapping or Mapping(),
                keep=None if keep is None else str(keep),
            )
            try:
                store = self._store()
            except NoStore:
                store = None
            record = self._export_source(pair, request, store, Path(folder), progress, on_error)
            would_import = self._snapshots().try_load(
                record.file, platform=target, allow_dangling=True, progress=progress
            )
            report = record.report(pair.target.name, would_import)
            yield report, Path(record.file), pair.target

    def verify(
        self,
        certificate: str | Path,
        *,
        target: str | None = None,
        progress: Progress = no_progress,
    ) -> CertificateCheck:
        """Read the target again and compare it with the certificate of a migration.

        `target` is the new address of the target, if it has moved.
        """
        expected = read_certificate(Path(certificate))
        catalogs = SnapshotCatalogs(self._settings, self._store)
        with closing(
            catalogs.named_for_reading(target or expected.target_address)
        ) as target_catalog:
            progress(f"reading {target_catalog.name}")
            return check_certificate(expected, entry_reader(target_catalog), progress)

    def roll_back(
        self, source: str, target: str, *, progress: Progress = no_progress
    ) -> RollbackReport:
        """Restore the target to its state before the last migration, finished or not.

        Edits that users made after the migration are preserved.
        """
        store = self._store()
        catalogs = SnapshotCatalogs(self._settings, lambda: store)
        with (
            self._open_catalogs(catalogs, source, target) as pair,
            self._lock_folder(store, pair) as folder,
        ):
            log = MigrationLog(folder)
            last = log.last()
            if last is None:
                raise MisuseError(
                    f"Nothing was migrated from {source} to {target} yet. "
                    f"Begin with: lumos migrate {source} {target} --dry-run"
                )
            file = _rollback_file(store, pair.target.name, last, folder)
            report = self._snapshots().roll_back(file, platform=target, progress=progress)
            log.save(msgspec.structs.replace(last, is_finished=True))
            return report

    def sync(
        self,
        *sources: str,
        outputs: Iterable[str] = (),
        scan: bool = True,
        full: bool = False,
        progress: Progress = no_progress,
    ) -> SyncReport:
        """Scan the named sources, or all, and publish pending changes to catalogs.

        Without `scan`, or if no sources are configured, nothing is scanned. A source that fails
        does not stop the others. The first sync with a catalog publishes everything, as does
        `full`. `outputs` are catalogs to publish to instead of the configured one. The next sync
        retries entries that a catalog rejected.
        """
        from lumos.catalogs.sync import SyncRun

        run = SyncRun(self._settings, self._scan, self._make_store)
        return run.run(sources, outputs=tuple(outputs), scan=scan, full=full, progress=progress)

    @staticmethod
    @contextmanager
    def _open_catalogs(
        catalogs: SnapshotCatalogs, source: str, target: str
    ) -> Iterator[_CatalogPair]:
        with (
            closing(catalogs.named_for_reading(source)) as source_catalog,
            closing(catalogs.named(target)) as target_catalog,
        ):
            if source_catalog.name == target_catalog.name:
                raise MisuseError(
                    f"'{source}' and '{target}' are the same catalog, {source_catalog.name}."
                )
            yield _CatalogPair(source_catalog, target_catalog)

    @contextmanager
    def _lock_folder(self, store: Store, pair: _CatalogPair) -> Iterator[Path]:
        """Lock the folder of the migration between two catalogs."""
        migration_name = f"migration from {pair.source.name} to {pair.target.name}"
        try:
            with store.lock(migration_name):
                key = hashlib.sha256(
                    f"{pair.source.name}\n{pair.target.name}".encode()
                ).hexdigest()[:16]
                folder = self._folder() / key
                folder.mkdir(mode=0o770, parents=True, exist_ok=True)
                yield folder
        except LockHeld:
            raise LumosError(
                f"Another {migration_name} is running. Wait until it has ended."
            ) from None

    def _export_source(
        self,
        pair: _CatalogPair,
        request: MigrationRequest,
        store: Store | None,
        folder: Path,
        progress: Progress,
        on_error: OnError,
    ) -> MigrationRecord:
        """Export the source while the names in the target are collected."""
        for catalog in (pair.source, pair.target):
            # Fail before the export, which may take hours.
            if isinstance(catalog, PlatformCatalog) and isinstance(catalog.platform, Connects):
                catalog.platform.check()
        file = Path(request.keep) if request.keep else folder / _EXPORTED
        mapping = request.mapping
        cancellation = Cancellation()
        target_names = start_thread(
            lambda: _collect_names(pair.target, cancellation), "lumos-names"
        )

        def report_or_fail(step: str, **details: Any) -> None:
            if target_names.done():
                target_names.result()
            progress(step, **details)

        validated = ValidatedCatalog(pair.source, on_error)
        try:
            report = export(
                validated,
                file,
                ExportOptions(ranges=True),
                at=datetime.now(UTC),
                progress=report_or_fail,
            )
            target = target_names.result()
        finally:
            cancellation.cancel()
        with open_snapshot(file) as snapshot:
            items = (item for kind in _NAMED_KINDS for item in snapshot.entries(kind))
            source = CatalogNames.of(snapshot.entries(DATASETS), items)
            platform: Any = (
                pair.target.platform if isinstance(pair.target, PlatformCatalog) else None
            )
            unmapped = find_unmapped_names(
                source,
                target,
                mapping,
                shows_display_names=isinstance(platform, StoresItems)
                and platform.shows_display_names,
            )
            new_names = _new_name_remarks(mapping, source, target)
            if not mapping.is_empty:
                progress(f"mapping {pair.source.name}")
                mapped = folder / _MAPPED
                write_mapped(
                    snapshot,
                    mapping,
                    mapped,
                    created=_names_to_create(mapping, target, store, pair.target.name),
                )
                file = mapped
        return MigrationRecord(
            source=request.source,
            target=request.target,
            exported=report.counts,
            hash=report.hash,
            lineage_left_out=report.lineage_left_out,
            file=str(file.resolve()),
            kept=request.keep,
            mapping=mapping,
            needs=unmapped,
            skipped=tuple(validated.skipped),
            remarks=(
                *_validate_export(file, pair.source),
                *_unused_names(mapping, source),
                *new_names,
            ),
        )

    @staticmethod
    def _verify(
        record: MigrationRecord,
        target: SnapshotCatalog,
        store: Store,
        folder: Path,
        progress: Progress,
        *,
        resumed: bool,
    ) -> tuple[MigrationReport, dict[str, dict[str, str]]]:
        imported = record.imported
        assert imported is not None
        assert imported.import_id is not None, "a dry run cannot be verified"
        file = Path(record.file)
        verification, hashes = verify(
            file, target, store, run=imported.import_id, progress=progress
        )
        listed = {each.name for each in record.needs if each.kind == "tag"}
        unmapped = record.needs + tuple(
            UnmappedName(kind="tag", name=tag)
            for tag in verification.missing_tags
            if tag not in listed
        )
        is_finished = verification.is_whole and not imported.sums.refused
        MigrationLog(folder).save(
            msgspec.structs.replace(
                record, is_finished=is_finished, has_missing_entries=not is_finished
            )
        )
        if is_finished:
            for name in (_EXPORTED, _MAPPED):
                (folder / name).unlink(missing_ok=True)
        report = msgspec.structs.replace(
            record.report(target.name, imported),
            dry_run=False,
            resumed=resumed,
            needs=unmapped,
            verified=verification,
            snapshot=record.kept or (str(file) if file.exists() else None),
        )
        return report, hashes


def _collect_names(catalog: SnapshotCatalog, cancellation: Cancellation) -> CatalogNames:
    items = (item for kind in _NAMED_KINDS for item in catalog.items(kind))
    return CatalogNames.of(
        cancellation.until_cancelled(catalog.datasets()), cancellation.until_cancelled(items)
    )


def _rollback_file(store: Store, catalog: str, last: MigrationRecord, folder: Path) -> str | None:
    """The file of the import to roll back, or None for the newest one."""
    run, newest = store.journal.open_run(catalog), store.journal.last_run(catalog)
    if run is None or newest is None:
        return last.file
    is_ours = run.file in (last.file, *last.earlier) or Path(run.file).parent == folder.resolve()
    if not is_ours:
        return last.file
    return None if run.id == newest.id else run.file


def _keep_export(record: MigrationRecord, keep: Path, folder: Path) -> MigrationRecord:
    """Save the export of a migration as the file `keep` too."""
    exported = Path(record.kept) if record.kept else folder / _EXPORTED
    with open_snapshot(exported) as snapshot:
        write_mapped(snapshot, Mapping(), keep)
    return msgspec.structs.replace(record, kept=str(keep))


def _validate_export(file: Path, source: SnapshotCatalog) -> tuple[str, ...]:
    """Validate the export; return a remark on lineage to datasets outside of the catalog."""
    from lumos.snapshots.importer import InvalidSnapshot
    from lumos.snapshots.validate import validate_snapshot

    report = validate_snapshot(file)
    errors = [each for each in report.problems if each.severity == "error"]
    if invalid := tuple(each for each in errors if each.code != "reference"):
        raise InvalidSnapshot(file, invalid, len(invalid))
    dangling = [each for each in report.problems if each.is_lineage]
    if not dangling:
        return ()
    many = len(dangling) > 1
    count = f"{len(dangling):,} references lead" if many else "1 reference leads"
    return (
        f"{count} to datasets that {source.name} does not contain; migrated anyway. "
        f"{'The first: ' if many else ''}{dangling[0].text}",
    )


def _new_name_remarks(
    mapping: Mapping, source: CatalogNames, target: CatalogNames
) -> tuple[str, ...]:
    """Remarks on names that the mapping introduces in the target, which may be typos."""
    return tuple(
        f"The mapping renames {kind[:-1]} '{name}' to '{new}', which the target does not have yet. "
        "It is created under that name."
        for kind in ("terms", "owners")
        for name, new in getattr(mapping, kind).items()
        if name != new and name in getattr(source, kind) and new not in getattr(target, kind)
    )


def _names_to_create(
    mapping: Mapping, target: CatalogNames, store: Store | None, catalog: str
) -> frozenset[str]:
    """The new names whose entries must be created, since the target does not have them."""
    labels = (entity_urn(kind, name) for kind in LABELS for name in target.labels(kind))
    known = {*target.terms, *target.owners, *labels}
    new_names = mapping.target_names
    if store is not None:
        # Entries that an earlier migration created may be updated again.
        for kind in _NAMED_KINDS:
            known -= store.journal.bases(catalog, kind.plural, new_names).keys()
    return frozenset(new_names - known)


def _unused_names(mapping: Mapping, source: CatalogNames) -> Iterator[str]:
    for kind in ("tags", "terms", "owners", "domains", "services", "datasets"):
        for name in getattr(mapping, kind):
            if name not in getattr(source, kind):
                yield f"The mapping names {kind[:-1]} '{name}', which the source does not have."


class InvalidDataset(LumosError):
    """A dataset is not valid in a snapshot; nothing was written."""

    def __init__(self, urn: str, reason: str) -> None:
        self.urn = urn
        super().__init__(
            f"The dataset {urn} cannot be migrated: {reason.rstrip('.')}. Nothing was written. "
            "Skip such datasets with: --on-error skip"
        )


class ValidatedCatalog(SnapshotCatalog):
    """A catalog whose invalid datasets raise an error or are added to `skipped`."""

    def __init__(self, catalog: SnapshotCatalog, on_error: OnError) -> None:
        self._catalog = catalog
        self._on_error = on_error
        self.name, self.kind, self.file = catalog.name, catalog.kind, catalog.file
        self.skipped: list[RefusedReport] = []

    def datasets(self) -> Iterator[CatalogEntry]:
        for each in self._read_each():
            reason = str(each.problem) if isinstance(each, FailedEntry) else _find_error(each)
            if reason is None:
                assert isinstance(each, CatalogEntry)
                yield each
            elif self._on_error == "stop":
                raise InvalidDataset(each.urn, reason)
            else:
                self.skipped.append(
                    RefusedReport(kind=DATASETS.singular, key=each.urn, problem=reason)
                )

    def items(self, kind: EntryKind) -> Iterator[Any]:
        return self._catalog.items(kind)

    def count(self) -> int | None:
        return self._catalog.count()

    def lineage_left_out(self) -> int:
        return self._catalog.lineage_left_out()

    def close(self) -> None:
        self._catalog.close()

    def _read_each(self) -> Iterator[CatalogEntry | FailedEntry]:
        catalog = self._catalog
        if isinstance(catalog, PlatformCatalog) and isinstance(catalog.platform, ReadsEntries):
            return catalog.platform.export_each()
        return iter(catalog.datasets())


def _find_error(entry: CatalogEntry) -> str | None:
    """Why a snapshot with this dataset would be invalid, or None."""
    errors = (each for each in implausible_values(entry.urn, entry) if each.is_error)
    first = next(errors, None)
    return None if first is None else f"{first.path}: {first.text}"
