"""Export: snapshots of everything, of a selection, or of changes since another snapshot."""

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
from lumos.snapshots.format.encodings import ENDINGS
from lumos.snapshots.format.reader import open_snapshot
from lumos.snapshots.format.references import references_of
from lumos.snapshots.format.writer import write_snapshot
from lumos.snapshots.reports import SnapshotExportReport
from lumos.version import __version__

OPTIONAL: Final = ("cost", "quality", "statistics")
_PROGRESS_INTERVAL: Final = 500


class ExportOptions(NamedTuple):
    """What to export of a catalog.

    `ranges` are minimum and maximum values of columns, `values` all values in profiles: both are
    data.
    """

    omitted: tuple[str, ...] = ()
    ranges: bool = False
    values: bool = False
    selection: SnapshotSelection | None = None
    since: Path | None = None


def export(
    catalog: SnapshotCatalog,
    output: Path,
    wanted: ExportOptions,
    *,
    at: datetime,
    progress: Progress,
) -> SnapshotExportReport:
    """Write a snapshot of a catalog; the same state gives the same bytes except for the time."""
    _check_output(output, catalog, wanted)
    base = None if wanted.since is None else _Since(wanted.since, wanted, catalog)
    wanted = wanted if base is None else base.wanted
    facts = _facts(catalog, wanted, base, at=at)
    portion = _Portion(catalog, wanted, base, progress)
    header = write_snapshot(
        output,
        facts,
        portion.datasets(),
        **{kind.plural: portion.items(kind) for kind in (GLOSSARY, USERS, GROUPS, JOBS, OTHERS)},
    )
    return _report(output, header, lineage_left_out=catalog.lineage_left_out())


def file_in(folder: Path, ending: str, *, at: datetime) -> Path:
    """The file name of a snapshot in a folder: lumos_snapshot_20240115_103000.yaml."""
    return folder / f"lumos_snapshot_{at:%Y%m%d_%H%M%S}{ending}"


def is_folder_for_snapshots(output: str | Path) -> bool:
    """Whether the output is a folder for snapshots rather than a snapshot."""
    path = Path(output)
    if str(output).endswith("/") or path.name in ("", ".", ".."):
        return True
    return not path.name.lower().endswith(ENDINGS) and (path.is_dir() or not path.suffix)


def _check_output(output: Path, catalog: SnapshotCatalog, wanted: ExportOptions) -> None:
    """Refuse to overwrite what is being read."""
    read = {"the catalog itself": catalog.file, "the snapshot of --since": wanted.since}
    for what, file in read.items():
        if file is not None and file.exists() and output.exists() and output.samefile(file):
            raise MisuseError(f"{output} is {what}. Give the snapshot another name.")


def _facts(
    catalog: SnapshotCatalog, wanted: ExportOptions, base: "_Since | None", *, at: datetime
) -> SnapshotFacts:
    part = "all" if wanted.selection is None else "selected"
    return SnapshotFacts(
        exported_at=at.replace(microsecond=0),
        exported_by=f"lumos {__version__}",
        platform=catalog.kind,
        scope="incremental" if base is not None else part,  # type: ignore[arg-type]
        selection=wanted.selection,
        base=None if base is None else base.base,
        omitted=wanted.omitted,
    )


def _report(output: Path, header: SnapshotHeader, *, lineage_left_out: int) -> SnapshotExportReport:
    assert header.counts is not None, "written snapshots are counted"
    assert header.hashes is not None, "written snapshots are hashed"
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


class _Since:
    """The snapshot of `--since`: the hashes of its entries by kind and key."""

    def __init__(self, path: Path, wanted: ExportOptions, catalog: SnapshotCatalog) -> None:
        with open_snapshot(path) as snapshot:
            header = snapshot.header
            if header.platform not in (None, catalog.kind):
                raise MisuseError(
                    f"{path} is a snapshot of '{header.platform}', not of '{catalog.kind}'. "
                    f"Use a snapshot of '{catalog.kind}' for --since."
                )
            if header.hashes is None or header.scope == "incremental":
                why = (
                    "only has the changes since another one"
                    if header.scope == "incremental"
                    else "has no hashes"
                )
                raise MisuseError(f"{path} {why}. Use a full snapshot that 'lumos export' wrote.")
            if set(header.omitted) != set(wanted.omitted) or wanted.selection is not None:
                left_out = ", ".join(header.omitted) or "nothing"
                raise MisuseError(
                    f"A snapshot since {path} has the selection of that one, and leaves out the "
                    f"same: {left_out}. Give no other selection and no other --include options."
                )
            snapshot.check_header()
            self.base = SnapshotBase(exported_at=header.exported_at, hash=header.hashes.overall)
            self.wanted = wanted._replace(selection=header.selection)
            self._hashes: dict[str, dict[str, str]] = {kind.plural: {} for kind in KINDS}
            self._gone: dict[str, CatalogEntry] = {}
            for kind in KINDS:
                for each in snapshot.entries(kind):
                    self._hashes[kind.plural][getattr(each, kind.key)] = _hash(each)
                    if kind is DATASETS and not each.deleted:
                        self._gone[each.urn] = _tombstone(each)

    def spare(self, entry: CatalogEntry) -> None:
        """Mark a dataset that exists but is no longer selected."""
        if not entry.deleted:
            self._gone.pop(entry.urn, None)

    def changed(self, kind: EntryKind, values: Iterable[Any]) -> Iterator[Any]:
        """The new and changed entries and, for datasets, the deleted ones."""
        known = self._hashes[kind.plural]
        for value in values:
            key = getattr(value, kind.key)
            if kind is DATASETS:
                self._gone.pop(key, None)
            if known.get(key) != _hash(value):
                yield value
        if kind is DATASETS:
            yield from self._gone.values()


class _Portion:
    """The entries of a catalog to export."""

    def __init__(
        self,
        catalog: SnapshotCatalog,
        wanted: ExportOptions,
        base: _Since | None,
        progress: Progress,
    ) -> None:
        self._catalog = catalog
        self._wanted = wanted
        self._base = base
        self._progress = progress
        self._meant = None if wanted.selection is None else _chosen(wanted.selection)
        self._referred: dict[str, set[str]] | None = None

    def datasets(self) -> Iterator[CatalogEntry]:
        """The datasets without omitted aspects and protected values."""
        self._progress(f"exporting {self._catalog.name}")
        found = self._with_progress(self._catalog.datasets())
        if self._base is None:
            return map(self._portable, filter(self._meant, found))
        kept = map(self._portable, self._selected_since(self._base, found))
        return self._base.changed(DATASETS, kept)

    def items(self, kind: EntryKind) -> Iterator[Any]:
        """The entries of another kind; with a selection, only those that its datasets refer to."""
        found = self._catalog.items(kind)
        if self._meant is not None:
            found = iter(self._referenced(kind, list(found)))
        if kind is JOBS and "cost" in self._wanted.omitted:
            found = (msgspec.structs.replace(job, cost=None) for job in found)
        return found if self._base is None else self._base.changed(kind, found)

    def _selected_since(
        self, base: _Since, entries: Iterator[CatalogEntry]
    ) -> Iterator[CatalogEntry]:
        for entry in entries:
            if self._meant is None or self._meant(entry):
                yield entry
            else:
                base.spare(entry)

    def _selected(self) -> Iterator[CatalogEntry]:
        return filter(self._meant, self._catalog.datasets())

    def _with_progress(self, entries: Iterator[CatalogEntry]) -> Iterator[CatalogEntry]:
        total = self._catalog.count()
        for number, entry in enumerate(entries, start=1):
            if total and number % _PROGRESS_INTERVAL == 0:
                self._progress("", files=number, share=min(1.0, number / total), unit="datasets")
            yield entry

    def _portable(self, entry: CatalogEntry) -> CatalogEntry:
        changes: dict[str, Any] = dict.fromkeys(self._wanted.omitted)
        statistics = allowed_statistics(entry)
        if statistics is not None and "statistics" not in changes:
            # Minimum and maximum values are data, which does not leave by default.
            exported = statistics if self._wanted.ranges else without_ranges(statistics)
            changes["statistics"] = exported
        quality = allowed_quality(entry)
        if quality is not None and quality.profile is not None and "quality" not in changes:
            profile = quality.profile if self._wanted.values else without_values(quality.profile)
            changes["quality"] = msgspec.structs.replace(quality, profile=profile)
        return msgspec.structs.replace(entry, **changes) if changes else entry

    def _referenced(self, kind: EntryKind, items: Sequence[Any]) -> list[Any]:
        if self._referred is None:
            self._referred = _references(self._selected())
        wanted = self._referred.get(kind.plural, set())
        if kind is JOBS:
            datasets = self._referred[DATASETS.plural]
            return [job for job in items if not datasets.isdisjoint((*job.inputs, *job.outputs))]
        if kind is GLOSSARY:
            wanted = _with_parents(wanted, {term.name: term.parent for term in items})
        return [item for item in items if getattr(item, kind.key) in wanted]


def _references(entries: Iterable[CatalogEntry]) -> dict[str, set[str]]:
    """The keys of datasets and of what they refer to, by kind."""
    found: dict[str, set[str]] = {kind.plural: set() for kind in KINDS}
    for entry in entries:
        found[DATASETS.plural].add(entry.urn)
        for reference in references_of(entry):
            if not reference.is_lineage:
                for kind in reference.kinds:
                    found[kind].add(reference.key)
    return found


def _with_parents(names: set[str], parents: dict[str, str | None]) -> set[str]:
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            if (parent := parents.get(name)) is not None:
                waiting.append(parent)
    return found


def _chosen(selection: SnapshotSelection) -> Callable[[CatalogEntry], bool]:
    patterns = [DatasetPattern(text) for text in selection.patterns]
    tags, owners = set(selection.tags), set(selection.owners)

    def is_meant(entry: CatalogEntry) -> bool:
        return (
            (not patterns or any(each.matches(entry.urn, entry.name) for each in patterns))
            and (not tags or not tags.isdisjoint(_tags(entry)))
            and (not owners or not owners.isdisjoint(_owners(entry)))
        )

    return is_meant


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
