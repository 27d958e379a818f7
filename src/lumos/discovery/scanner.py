"""One scan of one source: alone with it, recorded in small steps, nothing removed in doubt."""

import getpass
import logging
import socket
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from lumos.config import Settings
from lumos.discovery.recorder import Outcome, Recorder, unchanged
from lumos.discovery.schema_memory import recall_memories
from lumos.model.change import ChangeEvent, EventType
from lumos.model.dataset import Location
from lumos.model.discovery import Discovery, FoundDataset, Problem, Suggestion
from lumos.model.urn import Urn
from lumos.sources import LakeSource, Source, TableSource
from lumos.store import KnownDataset, Scan, Store
from lumos.store.records import IMPORTED

if TYPE_CHECKING:
    from lumos.discovery.current_schema import Recall, RecalledMemory

_log = logging.getLogger(__name__)

# Looks at the source, given what the last scan left, what this one is to be called, and what is
# remembered of datasets; what it leaves is kept once the block has recorded everything.
Look: TypeAlias = Callable[[str | None, str, "Recall"], AbstractContextManager[Discovery]]


class Pass(NamedTuple):
    """What one scan and its recording came to."""

    discovery: Discovery
    outcomes: tuple[Outcome, ...]
    missing: tuple[str, ...]
    held: tuple[str, ...]
    splits: tuple[ChangeEvent, ...] = ()
    removals: tuple[ChangeEvent, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()


class _Placement(NamedTuple):
    """The URN and path that a dataset is recorded by.

    `whole` is the dataset on record of which only a part was scanned.
    """

    urn: Urn
    path: str
    whole: KnownDataset | None = None
    remark: Problem | None = None


class Scanner:
    """Scans one place of a source after another, each while nobody else does."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        *,
        accept_removals: bool,
        unattended: bool = False,
    ) -> None:
        self._settings = settings
        self.store = store
        self._accept_removals = accept_removals
        self._unattended = unattended

    def scan(self, source: Source, place: str, look: Look) -> Pass:
        """Looks at a place of a source and records what changed."""
        source_id = f"{source.identity}:{place}"
        with self.store.alone(source_id):
            _log.info("scan started", extra={"facts": {"source": source_id}})
            done = self._scan_alone(source, source_id, look)
        _log.info(
            "scan finished",
            extra={
                "facts": {
                    "source": source_id,
                    "files": done.discovery.files_listed,
                    "read": done.discovery.files_read,
                    "failed": done.discovery.files_failed,
                    "datasets": len(done.outcomes),
                    "changed": sum(outcome.event is not None for outcome in done.outcomes),
                }
            },
        )
        return done

    def _scan_alone(self, source: Source, source_id: str, look: Look) -> Pass:
        last = self.store.last_scan(source_id)
        number = 1 if last is None else int(last.scan_id.partition("-")[0]) + 1
        scan_id = f"{number:06d}-{uuid.uuid4().hex[:8]}"
        scan = Scan(
            source=source_id, scan_id=scan_id, manifest=scan_id, finished_at=datetime.now(UTC)
        )
        recall = partial(self._recall, source, source_id)
        with look(None if last is None else last.manifest, scan_id, recall) as discovery:
            return self._record(source, scan, discovery)

    def _recall(
        self, source: Source, source_id: str, paths: Collection[str]
    ) -> dict[str, "RecalledMemory"]:
        """What is remembered of the datasets of some paths, whichever root was scanned."""
        urn_of = partial(source.urn, environment=self._settings.environment)
        known = self.store.known(source=source_id)
        placements = self._placements(paths, source_id, known, urn_of)
        return recall_memories(
            self.store, {path: str(each.urn) for path, each in placements.items()}
        )

    def _record(self, source: Source, scan: Scan, discovery: Discovery) -> Pass:
        settings = self._settings
        urn_of = partial(source.urn, environment=settings.environment)
        known = self.store.known(source=scan.source)
        recorder = Recorder(
            self.store,
            source=scan.source,
            prefix=settings.cloud_version_prefix,
            urn_of=urn_of,
            at=scan.finished_at,
        )
        named = [(urn_of(found.path), found) for found in discovery.datasets]
        if isinstance(source, TableSource):
            named = renamed(named, known, recorder.locations)
        remarks: list[Problem] = []
        outcomes: list[Outcome] = []
        recorded = known
        if isinstance(source, LakeSource):
            paths = {found.path for found in discovery.datasets}
            placements = self._placements(paths, scan.source, known, urn_of)
            remarks = [each.remark for each in placements.values() if each.remark is not None]
            outcomes = [
                unchanged(found, urn, whole)
                for urn, found in named
                if (whole := placements[found.path].whole) is not None
            ]
            named = [
                (place.urn, msgspec.structs.replace(found, path=place.path))
                for _, found in named
                if (place := placements[found.path]).whole is None
            ]
            named = self._with_parts(named, scan.source, urn_of)
            # Scans of other roots may have recorded some of them.
            elsewhere = self.store.live({str(urn) for urn, _ in named} - known.keys())
            recorded = known | {
                urn: each for urn, each in elsewhere.items() if each.source != IMPORTED
            }
        outcomes += recorder.record(named, recorded)
        for outcome in outcomes:
            if outcome.event is not None:
                _log_change(outcome.event)
        seen = {outcome.dataset.urn for outcome in outcomes}
        seen |= {
            str(urn_of(path))
            for _, found in named
            for path in filter(None, (found.renamed_from, *found.merged_from, found.split_from))
        }
        gone, held = self._missing(source, discovery, known, seen)
        is_news = bool(gone) or any(outcome.event is not None for outcome in outcomes)
        with self.store.transaction() as transaction:
            # Only now are all parts on record, whichever batch they were in.
            splits = recorder.record_splits(transaction, named)
            for dataset in gone:
                recorder.remove(transaction, dataset)
            transaction.save_scan(scan)
            if is_news or splits or not self._unattended:
                transaction.audit(
                    "ingest",
                    scan.source,
                    actor=getpass.getuser(),
                    origin=socket.gethostname(),
                    at=scan.finished_at,
                )
        removals = tuple(
            event for event in transaction.new_events if event.type is EventType.DELETED
        )
        for event in splits:
            _log_change(event)
        if remarks:
            problems = (*remarks, *discovery.problems)
            discovery = msgspec.structs.replace(discovery, problems=problems)
        return Pass(
            discovery,
            tuple(outcomes),
            missing=_urns(gone),
            held=_urns(held),
            splits=splits,
            removals=removals,
            suggestions=suggestions_of(discovery, urn_of),
        )

    def _placements(
        self,
        paths: Collection[str],
        source: str,
        known: Mapping[str, KnownDataset],
        urn_of: Callable[[str], Urn],
    ) -> dict[str, "_Placement"]:
        """Which dataset each path of a scanned lake is recorded as.

        The pattern of a dataset may begin above the scanned root, so that the root holds a part of
        it. Where a scan of a folder above records the whole, a part changes nothing. Where a scan
        of another folder records the same pattern, this one gets a URN by its own folder.
        """
        from lumos.discovery.grouping.patterns import folder_dataset

        root = source.partition(":")[2].rstrip("/")
        placements = {path: _Placement(urn_of(path), path) for path in paths}
        outside = {path for path in paths if not _is_inside(path, root)}
        recorded = self.store.live({str(placements[path].urn) for path in outside})
        for path in outside:
            urn = placements[path].urn
            other = recorded.get(str(urn))
            if other is not None and other.source == source:
                other = None
            folder = "" if other is None else other.source.partition(":")[2].rstrip("/")
            own = f"{root}{path.removeprefix(folder_dataset(root))}"
            if other is not None and _is_inside(root, folder):
                reason = f"It is a part of {urn}, which the scan of {folder} records."
                remark = _remark(root, "inside_dataset", reason)
                placements[path] = _Placement(urn, path, other, remark)
            elif other is not None and not _is_inside(folder, root):
                reason = (
                    f"{folder} holds a dataset of the same path pattern, {urn}. This one is "
                    f"recorded as {urn_of(own)}. Scan a folder above both to make them one."
                )
                remark = _remark(root, "same_pattern", reason)
                placements[path] = _Placement(urn_of(own), own, None, remark)
            elif str(urn_of(own)) in known:
                placements[path] = _Placement(urn_of(own), own)
        return placements

    def _with_parts(
        self,
        named: list[tuple[Urn, FoundDataset]],
        source: str,
        urn_of: Callable[[str], Urn],
    ) -> list[tuple[Urn, FoundDataset]]:
        """The datasets, joined with those parts that scans of folders inside recorded apart."""
        from lumos.discovery.grouping.patterns import folder_dataset

        inside = [
            scan.source for scan in self.store.scans() if scan.source.startswith(f"{source}/")
        ]
        parts: dict[str, list[str]] = {}
        for each in inside:
            root = each.partition(":")[2].rstrip("/")
            pattern = folder_dataset(root)
            if pattern == root:
                continue
            known = self.store.known(source=each)
            for _, found in named:
                own = f"{root}{found.path.removeprefix(pattern)}"
                record = known.get(str(urn_of(own))) if _is_inside(found.path, pattern) else None
                if record is not None and record.state == "live":
                    parts.setdefault(found.path, []).append(own)
        return [
            (
                urn,
                msgspec.structs.replace(
                    found, merged_from=(*found.merged_from, *parts[found.path])
                ),
            )
            if found.path in parts
            else (urn, found)
            for urn, found in named
        ]

    def _missing(
        self,
        source: Source,
        discovery: Discovery,
        known: dict[str, KnownDataset],
        seen: set[str],
    ) -> tuple[list[KnownDataset], list[KnownDataset]]:
        """The datasets that are gone, and those whose absence is too doubtful to believe."""
        live = [dataset for dataset in known.values() if dataset.state == "live"]
        if isinstance(source, TableSource):
            # Of tables that nobody looked for, nobody knows.
            live = [dataset for dataset in live if source.covers(_path(dataset))]
        absent = [dataset for dataset in live if dataset.urn not in seen]
        unreadable = {
            str(source.urn(problem.path, environment=self._settings.environment))
            for problem in discovery.problems
            if not problem.remark
        }
        if isinstance(source, TableSource):
            # A table that could not be read is there.
            absent = [dataset for dataset in absent if not _lies_in(dataset, unreadable)]
        most = self._settings.scan.max_removed_share * len(live)
        if self._accept_removals:
            # Whoever says so is believed, but for places that nobody could look into.
            held = [each for each in absent if _lies_in(each, unreadable)]
        elif not discovery.complete or len(absent) > most:
            held = absent
        else:
            is_lake = isinstance(source, LakeSource)
            held = [
                each
                for each in absent
                if _lies_in(each, unreadable) or (is_lake and _may_hold(each, unreadable))
            ]
        kept = {each.urn for each in held}
        return [each for each in absent if each.urn not in kept], held


def _remark(path: str, code: str, reason: str) -> Problem:
    return Problem(path=path, code=code, reason=reason, remark=True)


def _is_inside(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder}/")


def suggestions_of(discovery: Discovery, urn_of: Callable[[str], Urn]) -> tuple[Suggestion, ...]:
    """What a scan suggests to join, with URNs for paths."""
    return tuple(
        msgspec.structs.replace(each, datasets=tuple(str(urn_of(path)) for path in each.datasets))
        for each in discovery.suggestions
    )


def renamed(
    found: list[tuple[Urn, FoundDataset]],
    known: dict[str, KnownDataset],
    locations: dict[str, Location],
) -> list[tuple[Urn, FoundDataset]]:
    """The datasets, those that had another name before with that name.

    A name that is still in use stays with whatever bears it now: two tables that swap their names
    are for their readers two tables whose contents changed. A table that another section of the
    configuration knew, or just missed, has only moved: a database has one table of an identity.
    """
    there = {str(urn) for urn, _ in found}
    # Of several that had the same identity one after the other, the one that is there comes last.
    before = sorted(known.values(), key=lambda each: (each.state == "live", each.updated_at))
    former = {
        location.identity: each.urn
        for each in before
        if (location := locations.get(each.urn)) is not None
        and location.identity is not None
        and each.urn not in there
    }
    return [
        (urn, msgspec.structs.replace(each, renamed_from=old))
        if str(urn) not in known
        and (old := _former_path(former.get(each.location.identity or ""))) is not None
        else (urn, each)
        for urn, each in found
    ]


def _former_path(urn: str | None) -> str | None:
    return None if urn is None else Urn.parse(urn).path_text


def _path(dataset: KnownDataset) -> str:
    return Urn.parse(dataset.urn).path_text


def _log_change(event: ChangeEvent) -> None:
    facts = {
        "urn": event.urn,
        "event": event.type.value,
        "cloud_version": event.cloud_version,
        "schema_version": event.schema_version,
        "breaking": event.breaking,
    }
    _log.info("dataset changed", extra={"facts": facts})


def _urns(datasets: Iterable[KnownDataset]) -> tuple[str, ...]:
    return tuple(dataset.urn for dataset in datasets)


def _lies_in(dataset: KnownDataset, places: set[str]) -> bool:
    """Whether a dataset is one of the places, or below one of them."""
    return any(f"{dataset.urn}/".startswith(f"{place}/") for place in places)


def _may_hold(dataset: KnownDataset, unreadable: set[str]) -> bool:
    """Whether files that could not be read may belong to a dataset that was not found."""
    beside = dataset.urn.rpartition("/")[0]
    return any(
        f"{urn}/".startswith(f"{dataset.urn}/") or urn.rpartition("/")[0] == beside
        for urn in unreadable
    )
