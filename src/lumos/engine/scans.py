"""One scan of one source: alone with it, recorded in small steps, nothing removed in doubt."""

import getpass
import logging
import socket
import uuid
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple, TypeAlias

import msgspec

from lumos.config import Settings
from lumos.engine.recording import Outcome, Recorder, unchanged
from lumos.model.change import ChangeEvent
from lumos.model.dataset import Location
from lumos.model.discovery import Discovery, FoundDataset, Problem, Suggestion
from lumos.model.urn import Urn
from lumos.sources import LakeSource, Source, TableSource
from lumos.store import KnownDataset, Scan, Store

_log = logging.getLogger(__name__)

# Looks at the source, given what the last scan left and what this one is to be called; what it
# leaves is kept once the block has recorded everything.
Look: TypeAlias = Callable[[str | None, str], AbstractContextManager[Discovery]]


class Pass(NamedTuple):
    """What one scan and its recording came to."""

    discovery: Discovery
    outcomes: tuple[Outcome, ...]
    missing: tuple[str, ...]
    held: tuple[str, ...]
    splits: tuple[ChangeEvent, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()


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
        with look(None if last is None else last.manifest, scan_id) as discovery:
            return self._record(source, scan, discovery)

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
        if isinstance(source, LakeSource):
            parts = self._parts_of_datasets(named, scan.source, known, urn_of)
            named, outcomes, remarks = parts
        outcomes += recorder.record(named, known)
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
            suggestions=suggestions_of(discovery, urn_of),
        )

    def _parts_of_datasets(
        self,
        named: list[tuple[Urn, FoundDataset]],
        source: str,
        known: dict[str, KnownDataset],
        urn_of: Callable[[str], Urn],
    ) -> tuple[list[tuple[Urn, FoundDataset]], list[Outcome], list[Problem]]:
        """What to record, what stays as it is on record, and remarks on both.

        The pattern of a dataset may begin above the scanned root, so that the root holds a part of
        it. Where a scan of a folder above records the whole, a part changes nothing. Where a scan
        of another folder records the same pattern, this one gets a URN by its own folder.
        """
        from lumos.pipeline.patterns import folder_dataset

        root = source.partition(":")[2].rstrip("/")
        outside = {str(urn) for urn, found in named if not f"{found.path}/".startswith(f"{root}/")}
        recorded = {
            urn: each
            for urn, each in (self.store.live(outside) if outside else {}).items()
            if each.source != source
        }
        record: list[tuple[Urn, FoundDataset]] = []
        whole: list[Outcome] = []
        remarks: list[Problem] = []
        for urn, found in named:
            own = f"{root}{found.path.removeprefix(folder_dataset(root))}"
            other = recorded.get(str(urn))
            if other is None and str(urn_of(own)) not in known:
                record.append((urn, found))
                continue
            above = "" if other is None else other.source.partition(":")[2].rstrip("/")
            if other is not None and f"{root}/".startswith(f"{above}/"):
                whole.append(unchanged(found, urn, other))
                reason = f"It is a part of {urn}, which the scan of {above} records."
                remarks.append(_remark(root, "inside_dataset", reason))
            elif str(urn) in outside:
                record.append((urn_of(own), msgspec.structs.replace(found, path=own)))
                if other is not None:
                    reason = (
                        f"{above} holds a dataset of the same path pattern, {urn}. This one is "
                        f"recorded as {urn_of(own)}. Scan a folder above both to make them one."
                    )
                    remarks.append(_remark(root, "same_pattern", reason))
            else:
                record.append((urn, found))
        return record, whole, remarks

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
