"""Exports snapshots of all entries, a selection, or the changes since another snapshot."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from lumos.errors import MisuseError
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset_pattern import DatasetPattern
from lumos.model.privacy import allowed_quality, allowed_statistics, without_ranges, without_values
from lumos.progress import Progress
from lumos.snapshots.catalogs import SnapshotCatalog
from lumos.snapshots.format.codec import canonical, digest
from lumos.snapshots.format.document import (
    DATASETS,
    GLOSSARY,
    GROUPS,
    JOBS,
    KINDS,
    OTHERS,
    USERS,
    EntryKind,
    SnapshotBase,
    SnapshotFacts,
    SnapshotHeader,
    SnapshotSelection,
)
from lumos.snapshots.format.encodings import EXTENSIONS
from lumos.snapshots.format.reader import open_snapshot
from lumos.snapshots.format.references import references_of
from lumos.snapshots.format.writer import write_snapshot
from lumos.snapshots.reports import SnapshotExportReport
from lumos.version import __version__

OPTIONAL: Final = ("cost", "quality", "statistics")
_PROGRESS_INTERVAL: Final = 500


class ExportOptions(NamedTuple):
    """Options of an export.

    With `ranges`, minimum and maximum values of columns are exported, and with `values`, all values
    in profiles. Both are data, so they are not exported by default.
    """

    omitted: tuple[str, ...] = ()
    ranges: bool = False
    values: bool = False
    selection: SnapshotSelection | None = None
    since: Path | None = None


def export(
    catalog: SnapshotCatalog,
    output: Path,
    options: ExportOptions,
    *,
    at: datetime,
    progress: Progress,
) -> SnapshotExportReport:
    """Write a snapshot of a catalog.

    Two snapshots of the same state are identical, except for the export time.
    """
    _check_output(output, catalog, options)
    base = None if options.since is None else _BaseSnapshot(options.since, options, catalog)
    options = options if base is None else base.options
    facts = _facts(catalog, options, base, at=at)
    exported = _ExportedEntries(catalog, options, base, progress)
    header = write_snapshot(
        output,
        facts,
        exported.datasets(),
        **{kind.plural: exported.items(kind) for kind in (GLOSSARY, USERS, GROUPS, JOBS, OTHERS)},
    )
    return _report(output, header, lineage_left_out=catalog.lineage_left_out())


def file_in(folder: Path, suffix: str, *, at: datetime) -> Path:
    """The path of a new snapshot in a folder, such as `lumos_snapshot_20240115_103000.yaml`."""
    return folder / f"lumos_snapshot_{at:%Y%m%d_%H%M%S}{suffix}"


def is_folder_for_snapshots(output: str | Path) -> bool:
    """Whether the output is a folder in which to create a snapshot, not the path of a snapshot."""
    path = Path(output)
    if str(output).endswith("/") or path.name in ("", ".", ".."):
        return True
    return not path.name.lower().endswith(EXTENSIONS) and (path.is_dir() or not path.suffix)


def _check_output(output: Path, catalog: SnapshotCatalog, options: ExportOptions) -> None:
    """Raise MisuseError if the output would overwrite an input."""
    inputs = {"the catalog itself": catalog.file, "the snapshot of --since": options.since}
    for description, file in inputs.items():
        if file is not None and file.exists() and output.exists() and output.samefile(file):
            raise MisuseError(f"{output} is {description}. Give the snapshot another name.")


def _facts(
    catalog: SnapshotCatalog, options: ExportOptions, base: "_BaseSnapshot | None", *, at: datetime
) -> SnapshotFacts:
    scope = "all" if options.selection is None else "selected"
    return SnapshotFacts(
        exported_at=at.replace(microsecond=0),
        exported_by=f"lumos {__version__}",
        platform=catalog.kind,
        scope="incremental" if base is not None else scope,  # type: ignore[arg-type]
        selection=options.selection,
        base=None if base is None else base.base,
        omitted=options.omitted,
    )


def _report(output: Path, header: SnapshotHeader, *, lineage_left_out: int) -> SnapshotExportReport:
    assert header.counts is not None, "the written snapshot has no counts"
    assert header.hashes is not None, "the written snapshot has no hashes"
    files = [each for each in output.rglob("*") if each.is_file()] if output.is_dir() else [output]
    return SnapshotExportReport(
        file=str(output),
        platform=header.platform or "",
        scope=header.scope,
        exported_at=header.exported_at,
        counts=header.counts,
        omitted=header.omitted,
        hash=header.hashes.overall,
        size_bytes=sum(each.stat().st_size for each in files),
        lineage_left_out=lineage_left_out,
    )


class _BaseSnapshot:
    """The snapshot of `--since`: the hashes of its entries by kind and key."""

    def __init__(self, path: Path, options: ExportOptions, catalog: SnapshotCatalog) -> None:
        with open_snapshot(path) as snapshot:
            header = snapshot.header
            if header.platform not in (None, catalog.kind):
                raise MisuseError(
                    f"{path} is a snapshot of '{header.platform}', not of '{catalog.kind}'. "
                    f"Use a snapshot of '{catalog.kind}' for --since."
                )
            if header.hashes is None or header.scope == "incremental":
                reason = (
                    "only has the changes since another snapshot"
                    if header.scope == "incremental"
                    else "has no hashes"
                )
                raise MisuseError(
                    f"{path} {reason}. Use a full snapshot that 'lumos export' wrote."
                )
            if set(header.omitted) != set(options.omitted) or options.selection is not None:
                left_out = ", ".join(header.omitted) or "nothing"
                raise MisuseError(
                    f"An export since {path} uses the same selection and omits the same aspects "
                    f"({left_out}). Remove the selection and --include options."
                )
            snapshot.check_header()
            self.base = SnapshotBase(exported_at=header.exported_at, hash=header.hashes.overall)
            self.options = options._replace(selection=header.selection)
            self._hashes: dict[str, dict[str, str]] = {kind.plural: {} for kind in KINDS}
            # Tombstones of datasets that have not occurred in the export so far.
            self._deleted: dict[str, CatalogEntry] = {}
            for kind in KINDS:
                for each in snapshot.entries(kind):
                    self._hashes[kind.plural][getattr(each, kind.key)] = _hash(each)
                    if kind is DATASETS and not each.deleted:
                        self._deleted[each.urn] = _tombstone(each)

    def mark_existing(self, entry: CatalogEntry) -> None:
        """Record that a dataset still exists, although it is no longer selected."""
        if not entry.deleted:
            self._deleted.pop(entry.urn, None)

    def changed_entries(self, kind: EntryKind, values: Iterable[Any]) -> Iterator[Any]:
        """Yield the new and changed entries and, for datasets, the deleted entries."""
        known = self._hashes[kind.plural]
        for value in values:
            key = getattr(value, kind.key)
            if kind is DATASETS:
                self._deleted.pop(key, None)
            if known.get(key) != _hash(value):
                yield value
        if kind is DATASETS:
            yield from self._deleted.values()


class _ExportedEntries:
    """The entries of a catalog to export."""

    def __init__(
        self,
        catalog: SnapshotCatalog,
        options: ExportOptions,
        base: _BaseSnapshot | None,
        progress: Progress,
    ) -> None:
        self._catalog = catalog
        self._options = options
        self._base = base
        self._progress = progress
        self._is_selected = (
            None if options.selection is None else _selection_filter(options.selection)
        )
        self._referenced_keys: dict[str, set[str]] | None = None

    def datasets(self) -> Iterator[CatalogEntry]:
        """The datasets, without omitted aspects and private values."""
        self._progress(f"exporting {self._catalog.name}")
        datasets = self._with_progress(self._catalog.datasets())
        if self._base is None:
            return map(self._without_private_values, filter(self._is_selected, datasets))
        selected = map(self._without_private_values, self._selected_since(self._base, datasets))
        return self._base.changed_entries(DATASETS, selected)

    def items(self, kind: EntryKind) -> Iterator[Any]:
        """The entries of another kind; with a selection, only those to which its datasets refer."""
        if kind is JOBS and "lineage" in self._options.omitted:
            return iter(())
        items = self._catalog.items(kind)
        if self._is_selected is not None:
            items = iter(self._referenced_entries(kind, list(items)))
        if kind is JOBS and "cost" in self._options.omitted:
            items = (msgspec.structs.replace(job, cost=None) for job in items)
        return items if self._base is None else self._base.changed_entries(kind, items)

    def _selected_since(
        self, base: _BaseSnapshot, entries: Iterator[CatalogEntry]
    ) -> Iterator[CatalogEntry]:
        for entry in entries:
            if self._is_selected is None or self._is_selected(entry):
                yield entry
            else:
                base.mark_existing(entry)

    def _with_progress(self, entries: Iterator[CatalogEntry]) -> Iterator[CatalogEntry]:
        total = self._catalog.count()
        for number, entry in enumerate(entries, start=1):
            if total and number % _PROGRESS_INTERVAL == 0:
                self._progress("", files=number, share=min(1.0, number / total), unit="datasets")
            yield entry

    def _without_private_values(self, entry: CatalogEntry) -> CatalogEntry:
        changes: dict[str, Any] = dict.fromkeys(self._options.omitted)
        statistics = allowed_statistics(entry)
        if statistics is not None and "statistics" not in changes:
            # Minimum and maximum values are data, which is not exported by default.
            exported = statistics if self._options.ranges else without_ranges(statistics)
            changes["statistics"] = exported
        quality = allowed_quality(entry)
        if quality is not None and quality.profile is not None and "quality" not in changes:
            profile = quality.profile if self._options.values else without_values(quality.profile)
            changes["quality"] = msgspec.structs.replace(quality, profile=profile)
        return msgspec.structs.replace(entry, **changes) if changes else entry

    def _referenced_entries(self, kind: EntryKind, items: Sequence[Any]) -> list[Any]:
        if self._referenced_keys is None:
            selected = filter(self._is_selected, self._catalog.datasets())
            self._referenced_keys = _references(selected)
        keys = self._referenced_keys.get(kind.plural, set())
        if kind is JOBS:
            datasets = self._referenced_keys[DATASETS.plural]
            return [job for job in items if not datasets.isdisjoint((*job.inputs, *job.outputs))]
        if kind is GLOSSARY:
            keys = _with_parents(keys, {term.name: term.parent for term in items})
        return [item for item in items if getattr(item, kind.key) in keys]


def _references(entries: Iterable[CatalogEntry]) -> dict[str, set[str]]:
    """The keys of datasets, and of the entries to which they refer, by kind."""
    keys: dict[str, set[str]] = {kind.plural: set() for kind in KINDS}
    for entry in entries:
        keys[DATASETS.plural].add(entry.urn)
        for reference in references_of(entry):
            if not reference.is_lineage:
                for kind in reference.kinds:
                    keys[kind].add(reference.key)
    return keys


def _with_parents(names: set[str], parents: dict[str, str | None]) -> set[str]:
    names_and_parents: set[str] = set()
    queue = list(names)
    while queue:
        name = queue.pop()
        if name not in names_and_parents:
            names_and_parents.add(name)
            if (parent := parents.get(name)) is not None:
                queue.append(parent)
    return names_and_parents


def _selection_filter(selection: SnapshotSelection) -> Callable[[CatalogEntry], bool]:
    patterns = [DatasetPattern(text) for text in selection.patterns]
    tags, owners = set(selection.tags), set(selection.owners)

    def is_selected(entry: CatalogEntry) -> bool:
        return (
            (not patterns or any(each.matches(entry.urn, entry.name) for each in patterns))
            and (not tags or not tags.isdisjoint(_tags(entry)))
            and (not owners or not owners.isdisjoint(_owners(entry)))
        )

    return is_selected


def _tags(entry: CatalogEntry) -> Iterator[str]:
    yield from entry.governance.tags if entry.governance else ()
    for field in entry.schema.fields if entry.schema else ():
        yield from field.tags
        for nested in field.nested:
            yield from nested.tags


def _owners(entry: CatalogEntry) -> Iterator[str]:
    return (owner.name for owner in (entry.ownership.owners if entry.ownership else ()))


def _tombstone(entry: CatalogEntry) -> CatalogEntry:
    return CatalogEntry(urn=entry.urn, name=entry.name, platform=entry.platform, deleted=True)


def _hash(value: Any) -> str:
    return digest(canonical(value))
