"""Records one scan of a source: its datasets, missing datasets, and the scan itself."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from lumos.config import Settings
from lumos.discovery.dataset_recorder import DatasetRecorder, RecordingOutcome, unchanged_dataset
from lumos.model.change import ChangeEvent, EventType
from lumos.model.dataset import Location
from lumos.model.discovery import Discovery, FoundDataset, Problem, Suggestion
from lumos.model.json_codec import from_json
from lumos.model.schema import Schema
from lumos.model.urn import Urn
from lumos.sources import LakeSource, Source, TableSource
from lumos.store import FinishedScan, KnownDataset, Store
from lumos.store.datasets import IMPORTED

if TYPE_CHECKING:
    from lumos.discovery.lake.dataset_schema import StoredMemory

_log = logging.getLogger(__name__)


class RecordedScan(NamedTuple):
    """The discovery of a scan and what was recorded.

    `missing` datasets are recorded as deleted. `unconfirmed` ones were not found either, but may
    still exist, so they are kept.
    """

    discovery: Discovery
    outcomes: tuple[RecordingOutcome, ...]
    missing: tuple[str, ...]
    unconfirmed: tuple[str, ...]
    splits: tuple[ChangeEvent, ...] = ()
    removals: tuple[ChangeEvent, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()

    @property
    def events(self) -> Iterator[ChangeEvent]:
        """All events that were recorded."""
        for outcome in self.outcomes:
            yield from outcome.earlier
            if outcome.event is not None:
                yield outcome.event
        yield from self.splits
        yield from self.removals


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
        """The schema memories of datasets by path, also those that scans of other roots stored."""
        known = self._store.known(source=self._scan.source)
        identities = self._identify(paths, known)
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
        known = store.known(source=scan.source)
        recorder = DatasetRecorder(
            store,
            source=scan.source,
            prefix=self._settings.cloud_version_prefix,
            tracks_schemas=self._settings.switches.is_on("schema_tracking"),
            urn_of=self._urn_of,
            at=scan.finished_at,
        )
        found = [(self._urn_of(each.path), each) for each in discovery.datasets]
        if isinstance(source, TableSource):
            found = match_renamed_tables(found, known, recorder.locations)
        outcomes: list[RecordingOutcome] = []
        recorded = known
        if isinstance(source, LakeSource):
            identities = self._identify({each.path for each in discovery.datasets}, known)
            remarks = [each.remark for each in identities.values() if each.remark is not None]
            discovery = replace(discovery, problems=(*remarks, *discovery.problems))
            outcomes = [
                unchanged_dataset(each, urn, containing)
                for urn, each in found
                if (containing := identities[each.path].containing) is not None
            ]
            found = [
                (identity.urn, replace(each, path=identity.path))
                for _, each in found
                if (identity := identities[each.path]).containing is None
            ]
            found = self._merge_parts(found)
            # Scans of other roots may have recorded some of the datasets.
            recorded_elsewhere = store.live({str(urn) for urn, _ in found} - known.keys())
            recorded = known | {
                urn: each for urn, each in recorded_elsewhere.items() if each.source != IMPORTED
            }
        outcomes += recorder.record(found, recorded)
        present = {outcome.dataset.urn for outcome in outcomes}
        present |= {str(self._urn_of(path)) for path in discovery.unscanned}
        present |= {
            str(self._urn_of(path))
            for _, each in found
            for path in filter(None, (each.renamed_from, *each.merged_from, each.split_from))
        }
        missing, unconfirmed = self._find_missing(
            discovery, known, present, accept_removals=accept_removals
        )
        has_changes = bool(missing) or any(outcome.event is not None for outcome in outcomes)
        with store.transaction() as transaction:
            # A split can only be recorded when all of its parts are.
            splits = recorder.record_splits(transaction, found)
            for dataset in missing:
                recorder.remove(transaction, dataset)
            transaction.save_scan(scan)
            if has_changes or splits or not unattended:
                transaction.audit("ingest", scan.source, at=scan.finished_at)
        recorded_scan = RecordedScan(
            discovery,
            tuple(outcomes),
            missing=tuple(each.urn for each in missing),
            unconfirmed=tuple(each.urn for each in unconfirmed),
            splits=splits,
            removals=tuple(
                event for event in transaction.new_events if event.type is EventType.DELETED
            ),
            suggestions=suggestions_with_urns(discovery.suggestions, self._urn_of),
        )
        _log_scan(scan, recorded_scan)
        return recorded_scan

    def _identify(
        self, paths: Collection[str], known: Mapping[str, KnownDataset]
    ) -> dict[str, _RecordedIdentity]:
        """Return the dataset that each path of a lake is recorded as.

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
        known: Mapping[str, KnownDataset],
        present: set[str],
        *,
        accept_removals: bool,
    ) -> tuple[list[KnownDataset], list[KnownDataset]]:
        """Return the datasets that are deleted, and those that are missing but may still exist."""
        source = self._source
        live = [dataset for dataset in known.values() if dataset.state == "live"]
        if isinstance(source, TableSource):
            # Tables that the configuration no longer selects are not missing.
            live = [dataset for dataset in live if source.covers(Urn.parse(dataset.urn).path_text)]
        absent = [dataset for dataset in live if dataset.urn not in present]
        unreadable = {
            str(self._urn_of(problem.path)) for problem in discovery.problems if not problem.remark
        }
        if isinstance(source, TableSource):
            # A table that could not be read still exists.
            absent = [dataset for dataset in absent if not _is_in_any(dataset, unreadable)]
        max_removed = self._settings.scan.max_removed_share * len(live)
        if accept_removals:
            # Datasets in folders that could not be read are kept in any case.
            unconfirmed = [each for each in absent if _is_in_any(each, unreadable)]
        elif not discovery.complete or len(absent) > max_removed:
            unconfirmed = absent
        else:
            is_lake = isinstance(source, LakeSource)
            unconfirmed = [
                each
                for each in absent
                if _is_in_any(each, unreadable) or (is_lake and _may_contain(each, unreadable))
            ]
        unconfirmed_urns = {each.urn for each in unconfirmed}
        return [each for each in absent if each.urn not in unconfirmed_urns], unconfirmed


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


def match_renamed_tables(
    found: list[tuple[Urn, FoundDataset]],
    known: Mapping[str, KnownDataset],
    locations: Mapping[str, Location],
) -> list[tuple[Urn, FoundDataset]]:
    """The tables of a database, with their earlier names if they were renamed.

    A table whose earlier name is still in use is not treated as renamed: if two tables swap names,
    readers see two tables whose contents changed. Identities are unique in a database, so a table
    that another section of the configuration recorded is found as well.
    """
    present = {str(urn) for urn, _ in found}
    # If several records have the same identity, the live one is last and takes precedence.
    records = sorted(known.values(), key=lambda each: (each.state == "live", each.updated_at))
    earlier = {
        location.identity: Urn.parse(each.urn).path_text
        for each in records
        if (location := locations.get(each.urn)) is not None
        and location.identity is not None
        and each.urn not in present
    }
    return [
        (urn, replace(each, renamed_from=earlier[each.location.identity]))
        if str(urn) not in known and each.location.identity in earlier
        else (urn, each)
        for urn, each in found
    ]


def _log_scan(scan: FinishedScan, recorded: RecordedScan) -> None:
    changes = [outcome.event for outcome in recorded.outcomes if outcome.event is not None]
    for event in (*changes, *recorded.splits):
        fields = {
            "urn": event.urn,
            "event": event.type.value,
            "cloud_version": event.cloud_version,
            "schema_version": event.schema_version,
            "breaking": event.breaking,
        }
        _log.info("dataset changed", extra={"facts": fields})
    totals = {
        "source": scan.source,
        "files": recorded.discovery.files_listed,
        "read": recorded.discovery.files_read,
        "failed": recorded.discovery.files_failed,
        "datasets": len(recorded.outcomes),
        "changed": len(changes),
    }
    _log.info("scan finished", extra={"facts": totals})


def _is_inside(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder}/")


def _is_in_any(dataset: KnownDataset, urns: Iterable[str]) -> bool:
    """Whether a dataset has one of the URNs, or lies below one of them."""
    return any(_is_inside(dataset.urn, urn) for urn in urns)


def _may_contain(dataset: KnownDataset, unreadable: Iterable[str]) -> bool:
    """Whether unreadable files may belong to a dataset that was not found."""
    folder = dataset.urn.rpartition("/")[0]
    return any(
        _is_inside(urn, dataset.urn) or urn.rpartition("/")[0] == folder for urn in unreadable
    )
