"""Records one scan of a source: its datasets, missing datasets, and the scan itself."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from lumos.config import Settings
from lumos.discovery.dataset_recorder import DatasetRecorder, RecordingOutcome, unchanged_dataset
from lumos.discovery.reports import DatasetReport, ScanChange
from lumos.model.change import ChangeEvent, EventType, Verdict
from lumos.model.compressed_list import CompressedList
from lumos.model.dataset import Dataset
from lumos.model.discovery import Discovery, FoundDataset, Problem, Suggestion
from lumos.model.json_codec import from_json
from lumos.model.schema import Schema
from lumos.model.urn import Urn
from lumos.sources import LakeSource, Source, TableSource
from lumos.store import DatasetState, FinishedScan, KnownDataset, Store

if TYPE_CHECKING:
    from lumos.discovery.lake.dataset_schema import StoredMemory

_log = logging.getLogger(__name__)


class RecordedChange(NamedTuple):
    """Whether a dataset is new, changed or unchanged, and its number of undetermined changes."""

    change: ScanChange
    undetermined: int = 0


_UNCHANGED: Final = RecordedChange("unchanged")


class RecordedView(msgspec.Struct, frozen=True, kw_only=True):
    """A view without its columns, and whether the scan recorded an event of it."""

    dataset: Dataset
    is_changed: bool


class RecordedScan(NamedTuple):
    """The discovery of a scan, without its datasets, and what was recorded.

    `changes` has the change of each dataset by URN, and `breaking` the number of breaking changes
    by event. `missing` datasets are recorded as deleted. `unconfirmed` datasets were not found
    either, but may still exist, so they stay live.
    """

    discovery: Discovery
    datasets: Sequence[DatasetReport]
    views: Sequence[RecordedView]
    changes: Mapping[str, RecordedChange]
    breaking: Mapping[str, int]
    missing: tuple[str, ...]
    unconfirmed: tuple[str, ...]
    splits: tuple[ChangeEvent, ...] = ()
    removals: tuple[ChangeEvent, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()


class _RecordedDatasets:
    """The data of recorded datasets that is needed until the scan ends."""

    def __init__(self) -> None:
        self.reports: CompressedList[DatasetReport] = CompressedList(DatasetReport)
        self.views: CompressedList[RecordedView] = CompressedList(RecordedView)
        self.changes: dict[str, RecordedChange] = {}
        self.breaking: dict[str, int] = {}
        self.events = 0

    def add(self, outcome: RecordingOutcome) -> None:
        """Add a dataset after it was recorded."""
        dataset, event = outcome.dataset, outcome.event
        report = _dataset_report(outcome)
        undetermined = sum(row.consumer is Verdict.UNDETERMINED for row in report.changes)
        self.reports.append(report)
        self.changes[report.urn] = (
            _UNCHANGED if event is None else RecordedChange(report.change, undetermined)
        )
        if is_view(dataset):
            view = RecordedView(dataset=replace(dataset, schema=None), is_changed=event is not None)
            self.views.append(view)
        if event is not None:
            self.events += 1
            self.count_breaking((*outcome.earlier, event))
            _log_event(event)

    def count_breaking(self, events: Iterable[ChangeEvent]) -> None:
        """Count the breaking changes of events."""
        for event in events:
            if event.breaking_changes:
                self.breaking[event.event_id] = event.breaking_changes


def _dataset_report(outcome: RecordingOutcome) -> DatasetReport:
    event = outcome.event
    if event is None:
        return DatasetReport.of(outcome.dataset, change="unchanged")
    change: ScanChange = "new" if event.type is EventType.CREATED else "changed"
    return DatasetReport.of(outcome.dataset, change=change, event=event, earlier=outcome.earlier)


def is_view(dataset: Dataset) -> bool:
    """Whether a dataset is defined by a query or, in MongoDB, by a pipeline."""
    return dataset.definition is not None or "mongodb.view_on" in (dataset.properties or {})


class _RecordedIdentity(NamedTuple):
    """The URN and path under which a dataset is recorded.

    `containing` is set if the scan only read a part of a recorded dataset.
    """

    urn: Urn
    path: str
    containing: KnownDataset | None = None
    remark: Problem | None = None


class ScanRecorder:
    """Records what one scan discovered; the scan must hold the lock of its source."""

    def __init__(
        self, settings: Settings, store: Store, source: Source, scan: FinishedScan
    ) -> None:
        self._settings = settings
        self._store = store
        self._source = source
        self._scan = scan
        self._urn_of = partial(source.urn, environment=settings.environment)

    def load_memories(self, paths: Collection[str]) -> dict[str, "StoredMemory"]:
        """The schema memories of datasets by path, also if scans of other roots stored them."""
        identities = self._identify(paths, self._store.states(source=self._scan.source))
        return load_memories(
            self._store, {path: str(each.urn) for path, each in identities.items()}
        )

    def record(
        self, discovery: Discovery, *, accept_removals: bool = False, unattended: bool = False
    ) -> RecordedScan:
        """Record the datasets in small transactions, then removals, splits and the scan in one.

        `accept_removals` deletes any number of missing datasets. An `unattended` scan without
        changes writes no audit entry, since there may be thousands a day.
        """
        store, scan, source = self._store, self._scan, self._source
        states = store.states(source=scan.source)
        recorder = DatasetRecorder(
            store,
            source=scan.source,
            prefix=self._settings.cloud_version_prefix,
            tracks_schemas=self._settings.switches.is_on("schema_tracking"),
            urn_of=self._urn_of,
            at=scan.finished_at,
        )
        results = _RecordedDatasets()
        if isinstance(source, LakeSource):
            identities = self._identify({each.path for each in discovery.datasets}, states)
            remarks = [each.remark for each in identities.values() if each.remark is not None]
            discovery = replace(discovery, problems=(*remarks, *discovery.problems))
            for each in discovery.datasets:
                if (containing := identities[each.path].containing) is not None:
                    results.add(unchanged_dataset(each, self._urn_of(each.path), containing))
            found: Iterable[tuple[Urn, FoundDataset]] = self._merge_parts(
                [
                    (identity.urn, replace(each, path=identity.path))
                    for each in discovery.datasets
                    if (identity := identities[each.path]).containing is None
                ]
            )
        else:
            found = self._continue_renamed(discovery.datasets, states)
        earlier_paths = set(discovery.unscanned)
        parts: list[tuple[Urn, FoundDataset]] = []

        def note_predecessors() -> Iterator[tuple[Urn, FoundDataset]]:
            for urn, each in found:
                earlier_paths.update(
                    filter(None, (each.renamed_from, *each.merged_from, each.split_from))
                )
                if each.split_from is not None:
                    parts.append((urn, each))
                yield urn, each

        # Scans of other roots of a lake may have recorded some of the datasets.
        of_any_source = isinstance(source, LakeSource)
        for outcome in recorder.record(note_predecessors(), of_any_source=of_any_source):
            results.add(outcome)
        present = results.changes.keys() | {str(self._urn_of(path)) for path in earlier_paths}
        missing, unconfirmed = self._find_missing(
            discovery, states, present, accept_removals=accept_removals
        )
        gone = store.known_datasets(missing)
        locations = store.aspects_of("location", missing)
        with store.transaction() as transaction:
            # A split can only be recorded after all of its parts.
            splits = recorder.record_splits(transaction, parts)
            for dataset in gone.values():
                recorder.remove(transaction, dataset, locations.get(dataset.urn))
            transaction.save_scan(scan)
            if missing or results.events or splits or not unattended:
                transaction.audit("ingest", scan.source, at=scan.finished_at)
        removals = tuple(
            event for event in transaction.new_events if event.type is EventType.DELETED
        )
        results.count_breaking((*splits, *removals))
        for event in splits:
            _log_event(event)
        _log_totals(scan, discovery, results)
        return RecordedScan(
            replace(discovery, datasets=()),
            results.reports,
            results.views,
            results.changes,
            results.breaking,
            missing=tuple(missing),
            unconfirmed=tuple(unconfirmed),
            splits=splits,
            removals=removals,
            suggestions=suggestions_with_urns(discovery.suggestions, self._urn_of),
        )

    def _continue_renamed(
        self, datasets: Sequence[FoundDataset], states: Mapping[str, DatasetState]
    ) -> Iterator[tuple[Urn, FoundDataset]]:
        """The tables of a database, with their earlier names if they were renamed.

        A table whose earlier name is still in use is not treated as renamed: if two tables swap
        names, readers see two tables whose contents changed. Identities are unique in a database,
        so a table that another section of the configuration recorded is found as well.
        """
        absent = set(states)
        if absent:
            absent -= {str(self._urn_of(each.path)) for each in datasets}
        records = self._store.known_datasets(absent) if absent else {}
        locations = self._store.aspects_of("location", absent) if absent else {}
        # If several records have the same identity, the live one is last and takes precedence.
        ordered = sorted(records.values(), key=lambda each: (each.state == "live", each.updated_at))
        earlier = {
            location.identity: Urn.parse(each.urn).path_text
            for each in ordered
            if (location := locations.get(each.urn)) is not None and location.identity is not None
        }
        for each in datasets:
            urn = self._urn_of(each.path)
            old = earlier.get(each.location.identity) if earlier else None
            if old is not None and str(urn) not in states:
                yield urn, replace(each, renamed_from=old)
            else:
                yield urn, each

    def _identify(
        self, paths: Collection[str], known: Collection[str]
    ) -> dict[str, _RecordedIdentity]:
        """Return the URN and path under which the dataset at each path of a lake is recorded.

        The pattern of a dataset may begin above the scanned root, so that the root only contains a
        part of it. If a scan of a parent folder records the dataset, the part is not recorded. If a
        scan of another folder records the same pattern, this dataset gets a URN in its own folder.
        """
        from lumos.discovery.grouping.patterns import folder_dataset

        source, urn_of = self._scan.source, self._urn_of
        root = source.partition(":")[2].rstrip("/")
        identities = {path: _RecordedIdentity(urn_of(path), path) for path in paths}
        outside = {path for path in paths if not _is_inside(path, root)}
        recorded = self._store.live({str(identities[path].urn) for path in outside})
        for path in outside:
            urn = identities[path].urn
            other = recorded.get(str(urn))
            if other is not None and other.source == source:
                other = None
            folder = "" if other is None else other.source.partition(":")[2].rstrip("/")
            own_path = f"{root}{path.removeprefix(folder_dataset(root))}"
            if other is not None and _is_inside(root, folder):
                reason = f"This folder is a part of {urn}, which the scan of {folder} records."
                remark = Problem(path=root, code="inside_dataset", reason=reason, remark=True)
                identities[path] = _RecordedIdentity(urn, path, other, remark)
            elif other is not None and not _is_inside(folder, root):
                reason = (
                    f"{folder} contains a dataset with the same path pattern, {urn}. This one is "
                    f"recorded as {urn_of(own_path)}. To make them one dataset, scan a folder "
                    "above both."
                )
                remark = Problem(path=root, code="same_pattern", reason=reason, remark=True)
                identities[path] = _RecordedIdentity(urn_of(own_path), own_path, None, remark)
            elif str(urn_of(own_path)) in known:
                identities[path] = _RecordedIdentity(urn_of(own_path), own_path)
        return identities

    def _merge_parts(self, found: list[tuple[Urn, FoundDataset]]) -> list[tuple[Urn, FoundDataset]]:
        """Merge the datasets with the parts that scans of nested folders have recorded."""
        from lumos.discovery.grouping.patterns import folder_dataset

        nested_roots = [
            scan.source
            for scan in self._store.scans()
            if scan.source.startswith(f"{self._scan.source}/")
        ]
        parts: dict[str, list[str]] = {}
        for source in nested_roots:
            root = source.partition(":")[2].rstrip("/")
            pattern = folder_dataset(root)
            if pattern == root:
                continue
            known = self._store.known(source=source)
            for _, each in found:
                if not _is_inside(each.path, pattern):
                    continue
                own_path = f"{root}{each.path.removeprefix(pattern)}"
                record = known.get(str(self._urn_of(own_path)))
                if record is not None and record.state == "live":
                    parts.setdefault(each.path, []).append(own_path)
        return [
            (
                urn,
                replace(each, merged_from=(*each.merged_from, *parts[each.path])),
            )
            if each.path in parts
            else (urn, each)
            for urn, each in found
        ]

    def _find_missing(
        self,
        discovery: Discovery,
        states: Mapping[str, DatasetState],
        present: Collection[str],
        *,
        accept_removals: bool,
    ) -> tuple[list[str], list[str]]:
        """Return the datasets that were deleted, and those that are missing but may still exist."""
        source = self._source
        live = [urn for urn, state in states.items() if state == "live"]
        if isinstance(source, TableSource):
            # Tables that the configuration no longer selects are not missing.
            live = [urn for urn in live if source.covers(Urn.parse(urn).path_text)]
        absent = [urn for urn in live if urn not in present]
        unreadable = {
            str(self._urn_of(problem.path)) for problem in discovery.problems if not problem.remark
        }
        if isinstance(source, TableSource):
            # A table that could not be read still exists.
            absent = [urn for urn in absent if not _is_in_any(urn, unreadable)]
        max_removed = self._settings.scan.max_removed_share * len(live)
        if accept_removals:
            # Datasets in folders that could not be read are kept in any case.
            unconfirmed = [urn for urn in absent if _is_in_any(urn, unreadable)]
        elif not discovery.complete or len(absent) > max_removed:
            unconfirmed = absent
        else:
            is_lake = isinstance(source, LakeSource)
            unconfirmed = [
                urn
                for urn in absent
                if _is_in_any(urn, unreadable) or (is_lake and _may_contain(urn, unreadable))
            ]
        unconfirmed_urns = set(unconfirmed)
        return [urn for urn in absent if urn not in unconfirmed_urns], unconfirmed


def load_memories(store: Store, urns: Mapping[str, str]) -> dict[str, "StoredMemory"]:
    """The schema memories of live datasets; the result has the keys of `urns`.

    Datasets that were imported, or recorded by a version that stored memories in manifests, have no
    memory in the store. Their memory is derived from the recorded schema and drift.
    """
    from lumos.discovery.lake.dataset_schema import decode_memory, memory_from_record

    recorded = store.recorded_shapes(set(urns.values()))
    without_memory = [urn for urn, each in recorded.items() if each.memory is None]
    drift = store.aspects_of("drift", without_memory)
    locations = store.aspects_of("location", without_memory)
    memories: dict[str, StoredMemory] = {}
    for path, urn in urns.items():
        each = recorded.get(urn)
        if each is None:
            continue
        if each.memory is not None:
            memories[path] = decode_memory(each.memory, each.schema, each.format)
            continue
        location = locations.get(urn)
        memories[path] = memory_from_record(
            from_json(each.schema, Schema),
            drift.get(urn, ()),
            partition_keys=() if location is None else location.partition_keys,
            format=each.format,
        )
    return memories


def suggestions_with_urns(
    suggestions: Iterable[Suggestion], urn_of: Callable[[str], Urn]
) -> tuple[Suggestion, ...]:
    """The suggestions with URNs instead of paths."""
    return tuple(
        replace(each, datasets=tuple(str(urn_of(path)) for path in each.datasets))
        for each in suggestions
    )


def _log_event(event: ChangeEvent) -> None:
    fields = {
        "urn": event.urn,
        "event": event.type.value,
        "cloud_version": event.cloud_version,
        "schema_version": event.schema_version,
        "breaking": event.breaking,
    }
    _log.info("dataset changed", extra={"facts": fields})


def _log_totals(scan: FinishedScan, discovery: Discovery, results: _RecordedDatasets) -> None:
    totals = {
        "source": scan.source,
        "files": discovery.files_listed,
        "read": discovery.files_read,
        "failed": discovery.files_failed,
        "datasets": len(results.reports),
        "changed": results.events,
    }
    _log.info("scan finished", extra={"facts": totals})


def _is_inside(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder}/")


def _is_in_any(urn: str, others: Iterable[str]) -> bool:
    """Whether a dataset has one of the URNs, or lies below one of them."""
    return any(_is_inside(urn, each) for each in others)


def _may_contain(urn: str, unreadable: Iterable[str]) -> bool:
    """Whether unreadable files may belong to a dataset that was not found."""
    folder = urn.rpartition("/")[0]
    return any(_is_inside(each, urn) or each.rpartition("/")[0] == folder for each in unreadable)
