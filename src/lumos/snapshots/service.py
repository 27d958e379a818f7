"""Exports, validates, imports and compares snapshots; the service behind `Lumos().snapshot`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from lumos.catalogs.configured import LOCAL
from lumos.config import Settings
from lumos.errors import MisuseError, UnknownName
from lumos.progress import Progress, no_progress
from lumos.snapshots.catalogs import LocalCatalog, PlatformCatalog, SnapshotCatalogs
from lumos.snapshots.export import OPTIONAL, ExportOptions, export, file_in, is_folder_for_snapshots
from lumos.snapshots.format.document import SnapshotSelection
from lumos.snapshots.format.encodings import EXTENSIONS
from lumos.snapshots.reports import (
    ImportReport,
    RollbackReport,
    SnapshotDiffReport,
    SnapshotExportReport,
    SparkDiffReport,
    ValidateReport,
)
from lumos.store import Database, NoStore, Store

if TYPE_CHECKING:
    from lumos.snapshots.importer import Importer

DEFAULT_EXTENSION: Final = ".yaml"


def _now() -> datetime:
    return datetime.now(UTC)


class Snapshots:
    """Exports, validates, imports and compares snapshots of catalogs.

    A platform is `local`, a kind with an address such as `datahub-file:metadata.json`, or the name
    of a configured platform.
    """

    def __init__(
        self,
        settings: Settings,
        store: Callable[[], Store],
        *,
        make_store: Callable[[], Store],
        mirror: Callable[[Sequence[str]], None],
    ) -> None:
        self._settings = settings
        self._store = store
        self._make_store = make_store
        self._mirror = mirror
        self._catalogs = SnapshotCatalogs(settings, store)

    def export(
        self,
        output: str | Path,
        *,
        platform: str = LOCAL,
        include_cost: bool = True,
        include_quality: bool = True,
        include_statistics: bool = True,
        include_ranges: bool = False,
        include_values: bool = False,
        patterns: Iterable[str] = (),
        tags: Iterable[str] = (),
        owners: Iterable[str] = (),
        since: str | Path | None = None,
        ending: str | None = None,
        progress: Progress = no_progress,
    ) -> SnapshotExportReport:
        """Write a snapshot of a platform.

        The extension of the output sets the encoding. If the output is a folder, the file is named
        after the time, with the extension `ending` (default: YAML). `patterns`, `tags` and `owners`
        select datasets that match at least one value of each. With `since`, only the changes since
        another snapshot are exported. Minimum and maximum values of columns are data, and only
        included with `include_ranges`; values in profiles are only included with
        `include_values`.
        """
        at = _now()
        selection = SnapshotSelection(
            patterns=tuple(patterns), tags=tuple(tags), owners=tuple(owners)
        )
        included = dict(
            zip(OPTIONAL, (include_cost, include_quality, include_statistics), strict=True)
        )
        included |= dict.fromkeys(self._settings.switches.hidden_aspects, False)
        options = ExportOptions(
            omitted=tuple(name for name, is_included in included.items() if not is_included),
            ranges=include_ranges,
            values=include_values,
            selection=selection if selection != SnapshotSelection() else None,
            since=None if since is None else Path(since),
        )
        file = Path(output)
        if ending is not None and ending not in EXTENSIONS:
            raise UnknownName("ending", ending, EXTENSIONS)
        if is_folder_for_snapshots(output):
            file = file_in(file, ending or DEFAULT_EXTENSION, at=at)
        elif ending is not None and not file.name.lower().endswith(ending):
            raise MisuseError(
                f"'{output}' does not end in {ending}. Give the extension or the format, not both."
            )
        with closing(self._catalogs.named_for_reading(platform)) as catalog:
            return export(catalog, file, options, at=at, progress=progress)

    def validate(self, file: str | Path, *, spark: bool = False) -> ValidateReport:
        """Check format, required fields, hashes, counts and references of a snapshot.

        With `spark`, a Parquet snapshot of any size is checked on Spark.
        """
        from lumos.snapshots.validate import validate_on_spark, validate_snapshot

        if spark:
            return validate_on_spark(self._settings, Path(file))
        return validate_snapshot(Path(file))

    def load(
        self,
        file: str | Path,
        *,
        platform: str = LOCAL,
        resume: bool = False,
        allow_dangling: bool = False,
        progress: Progress = no_progress,
    ) -> ImportReport:
        """Import a snapshot into a platform; the import can be resumed and rolled back.

        Edits since the last import are not overwritten. `resume` continues an interrupted import.
        `allow_dangling` accepts lineage to datasets that are not in the snapshot.
        """
        with self._importer(self._make_store(), platform, progress) as importer:
            return importer.run(Path(file), resume=resume, allow_dangling=allow_dangling)

    def try_load(
        self,
        file: str | Path,
        *,
        platform: str = LOCAL,
        allow_dangling: bool = False,
        progress: Progress = no_progress,
    ) -> ImportReport:
        """Report what `load` would do, without writing anything."""
        with ExitStack() as stack:
            try:
                store = self._store()
            except NoStore:
                folder = stack.enter_context(TemporaryDirectory(prefix="lumos-"))
                store = Store.open(Database.sqlite(Path(folder) / "empty.db"), create=True)
                stack.callback(store.close)
            importer = stack.enter_context(self._importer(store, platform, progress))
            return importer.preview(Path(file), allow_dangling=allow_dangling)

    def roll_back(
        self,
        file: str | Path | None = None,
        *,
        platform: str = LOCAL,
        progress: Progress = no_progress,
    ) -> RollbackReport:
        """Roll back the last import into a platform, even if it is not finished.

        With `file`, raises an error if another snapshot was imported. Edits since the import are
        not undone.
        """
        with self._importer(self._store(), platform, progress) as importer:
            return importer.rollback(None if file is None else Path(file))

    @contextmanager
    def _importer(self, store: Store, platform: str, progress: Progress) -> "Iterator[Importer]":
        from lumos.snapshots.importer import Importer
        from lumos.snapshots.local_target import LocalTarget
        from lumos.snapshots.targets import CatalogTarget, ImportTarget

        catalog = SnapshotCatalogs(self._settings, lambda: store).named(platform)
        local = None
        target: ImportTarget
        if isinstance(catalog, LocalCatalog):
            prefix = self._settings.cloud_version_prefix
            target = local = LocalTarget(catalog, prefix=prefix, now=_now)
        else:
            assert isinstance(catalog, PlatformCatalog)
            target = CatalogTarget(catalog, store)
        with closing(catalog):
            yield Importer(target, store, now=_now, progress=progress)
        if local is not None:
            self._mirror(local.written)

    def diff(
        self,
        source: str | Path,
        target: str | Path,
        *,
        aspects: Iterable[str] = (),
        mapping: str | Path | None = None,
        progress: Progress = no_progress,
    ) -> SnapshotDiffReport:
        """Compare two snapshots or platforms, in any combination.

        By default the aspects are schema, lineage, ownership, documentation, governance and
        quality. `mapping` is the mapping file of a migration from the source to the target.
        """
        from lumos.snapshots.diff import diff

        sides = (str(source), str(target))
        names = None if mapping is None else Path(mapping)
        return diff(self._catalogs, *sides, aspects=aspects, mapping=names, progress=progress)

    def diff_on_spark(
        self,
        source: str | Path,
        target: str | Path,
        *,
        to: str | Path,
        aspects: Iterable[str] = (),
    ) -> SparkDiffReport:
        """Compare the datasets of two Parquet snapshots of any size on Spark.

        Writes a new folder, with the datasets that differ in `datasets`, and a row for each
        difference in `differences`.
        """
        from lumos.snapshots.diff import diff_on_spark

        sides = (Path(source), Path(target))
        return diff_on_spark(self._settings, *sides, to=Path(to), aspects=aspects)
