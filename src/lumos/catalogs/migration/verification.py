"""Verifies an import: reads every entry back by its key and compares it.

Uses no searches, since the search indexes of catalogs lag behind their contents.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from lumos.catalogs import StoresItems
from lumos.catalogs.migration.certificate import BATCH_SIZE, entry_hash
from lumos.catalogs.migration.reports import AspectCount, Verification
from lumos.model.json_codec import from_json
from lumos.progress import Progress
from lumos.snapshots.catalogs import LocalCatalog, PlatformCatalog, SnapshotCatalog
from lumos.snapshots.diff import DiffSummaryBuilder
from lumos.snapshots.format.comparison import compare
from lumos.snapshots.format.document import DATASETS, KINDS, EntryKind
from lumos.snapshots.format.reader import OpenSnapshot, open_snapshot
from lumos.snapshots.format.writer import write_snapshot
from lumos.snapshots.import_merge import differing_fields
from lumos.snapshots.on_spark import compare_schemas
from lumos.snapshots.reports import MigratedCount
from lumos.snapshots.store_entries import entry_of
from lumos.store import Store

_MAX_LISTED: Final = 1000


def verify(
    file: Path, catalog: SnapshotCatalog, store: Store, *, run: str, progress: Progress
) -> tuple[Verification, dict[str, dict[str, str]]]:
    """Read all entries of a snapshot back from a catalog and compare them with the snapshot.

    `run` is the import that wrote them; its journal contains the expected entries. Also returns the
    hashes of the entries that were read, by kind and key.
    """
    progress(f"reading back from {catalog.name}")
    with open_snapshot(file) as snapshot, TemporaryDirectory(prefix="lumos-") as folder:
        reading = _ReadBack(snapshot, catalog, store, run, progress)
        copy = Path(folder) / "read-back.jsonl"
        items = {kind.plural: reading.entries(kind) for kind in KINDS if kind is not DATASETS}
        write_snapshot(copy, snapshot.header.facts, reading.entries(DATASETS), **items)
        progress("comparing")
        findings = DiffSummaryBuilder()
        for difference in compare(file, copy, compare_schemas=compare_schemas):
            findings.add(difference)
        report = findings.report(str(file), catalog.name, file)
    counts = reading.counts
    verification = Verification(
        datasets=report.datasets,
        lineage_edges=report.lineage_edges,
        items=MigratedCount(source=counts["items"], target=counts["items read"]),
        missing=tuple(reading.missing),
        unlike=tuple(reading.unlike),
        missing_tags=report.missing_tags,
        summary=report.summary,
        aspects=reading.aspects(),
    )
    return verification, reading.hashes


class _ReadBack:
    """Reads the entries of a snapshot from a catalog in batches."""

    def __init__(
        self,
        snapshot: OpenSnapshot,
        catalog: SnapshotCatalog,
        store: Store,
        run: str,
        progress: Progress,
    ) -> None:
        self._snapshot = snapshot
        self._get = entry_reader(catalog)
        self._holds_items = isinstance(catalog, LocalCatalog) or (
            isinstance(catalog, PlatformCatalog) and isinstance(catalog.platform, StoresItems)
        )
        # No journal for the store: it commits an entry together with its journal, and it sets
        # versions itself, so that entries differ from those in the journal.
        self._journal = None if isinstance(catalog, LocalCatalog) else store.journal
        self._run = run
        self._progress = progress
        self._done = 0
        self.counts = {"items": 0, "items read": 0}
        self.missing: list[str] = []
        self.unlike: list[str] = []
        self.hashes: dict[str, dict[str, str]] = {}
        self._aspects: dict[str, Counter[str]] = {}

    def entries(self, kind: EntryKind) -> Iterator[Any]:
        """Read the entries of a kind in the snapshot from the catalog."""
        if kind is not DATASETS and not self._holds_items:
            return
        header = self._snapshot.header.counts
        total = sum(getattr(header, each.plural) for each in KINDS) if header else 0
        values = self._snapshot.entries(kind)
        while batch := list(islice(values, BATCH_SIZE)):
            read_back = self._get(kind, [getattr(value, kind.key) for value in batch])
            self._compare(kind, batch, read_back)
            hashes = self.hashes.setdefault(kind.plural, {})
            hashes.update((key, entry_hash(value)) for key, value in read_back.items())
            yield from read_back.values()
            self._done += len(batch)
            if total:
                share = min(1.0, self._done / total)
                self._progress("", files=self._done, share=share, unit="entries")

    def aspects(self) -> dict[str, AspectCount]:
        """The number of entries with each aspect on both sides."""
        return {
            name: AspectCount(
                source=counts["source"], target=counts["target"], changed=counts["changed"]
            )
            for name, counts in sorted(self._aspects.items())
        }

    def _count_aspects(self, kind: EntryKind, value: Any, read_back: Any | None) -> None:
        source, target = aspects_of(value), {} if read_back is None else aspects_of(read_back)
        for name in {**source, **target}:
            counts = self._aspects.setdefault(f"{kind.singular}.{name}", Counter())
            is_in_both = name in source and name in target
            counts["source"] += name in source
            counts["target"] += name in target
            counts["changed"] += is_in_both and source[name] != target[name]

    def _compare(self, kind: EntryKind, values: Sequence[Any], read_back: dict[str, Any]) -> None:
        keys = [getattr(value, kind.key) for value in values]
        deleted = {getattr(value, kind.key) for value in values if getattr(value, "deleted", False)}
        missing = [key for key in keys if key not in read_back and key not in deleted]
        self.missing += missing[: _MAX_LISTED - len(self.missing)]
        for key, value in zip(keys, values, strict=True):
            self._count_aspects(kind, value, read_back.get(key))
        if kind is not DATASETS:
            self.counts["items"] += len(keys)
            self.counts["items read"] += len(keys) - len(missing)
        if self._journal is None:
            return
        for key, step in self._journal.planned_steps(self._run, kind.plural, keys).items():
            is_as_written = read_back.get(key) == from_json(step.after, kind.type)
            # Rejected entries are in the report of the import.
            if step.state == "done" and not is_as_written and len(self.unlike) < _MAX_LISTED:
                self.unlike.append(key)


def aspects_of(value: Any) -> dict[str, Any]:
    """The fields of an entry that are set, and each raw record as a field of its own."""
    fields: dict[str, Any] = {}
    for name in differing_fields(None, value):
        if name != "raw":
            fields[name] = getattr(value, name)
            continue
        for catalog, records in value.raw.items():
            if isinstance(records, dict):
                fields |= {f"{catalog}.{each}": record for each, record in records.items()}
            else:
                fields[catalog] = records
    return fields


def entry_reader(catalog: SnapshotCatalog) -> Callable[[EntryKind, Sequence[str]], dict[str, Any]]:
    """A function that reads the entries that exist by their keys."""
    if isinstance(catalog, LocalCatalog):
        return partial(_read_stored, catalog.store)
    platform = platform_of_catalog(catalog)

    def read(kind: EntryKind, keys: Sequence[str]) -> dict[str, Any]:
        is_dataset = kind is DATASETS
        entries = platform.get_many(keys) if is_dataset else platform.get_items(kind.type, keys)
        return dict(entries)

    return read


def _read_stored(store: Store, kind: EntryKind, keys: Sequence[str]) -> dict[str, Any]:
    if kind is DATASETS:
        entries = store.entries.get_many(keys)
        return {key: entry_of(entries[key]) for key in keys if key in entries}
    bodies = store.entries.get_items(kind.plural, keys)
    return {key: from_json(bodies[key], kind.type) for key in keys if key in bodies}


def platform_of_catalog(catalog: SnapshotCatalog) -> Any:
    """The adapter of a catalog, or None for the store."""
    return catalog.platform if isinstance(catalog, PlatformCatalog) else None
