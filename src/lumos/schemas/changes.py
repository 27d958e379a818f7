"""Reads, reports and prunes change events; used by `lumos changes` and others."""

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final

from lumos.errors import MisuseError
from lumos.model.change import Cause, ChangeEvent, EventType, event_types
from lumos.model.dataset_pattern import DatasetPattern
from lumos.model.report import FORMAT_VERSION, Report
from lumos.model.time_expression import parse_duration, parse_time, to_utc
from lumos.model.version import ChangeType, CloudVersion
from lumos.names import find_urn
from lumos.schemas.findings import ChangeRow, change_rows
from lumos.schemas.report_parts import AffectedReport, SchemaReport
from lumos.schemas.version_rules import VersionStep, change_type_of, versions_by_cloud_version
from lumos.store import KnownDataset, Store
from lumos.store.errors import UnknownDataset
from lumos.store.history import ChangeLog, EventFilter

# Older events cannot exist, and longer ages may lie before the first year.
_MAX_AGE: Final = timedelta(days=36_500)
MILESTONES: Final = (
    EventType.DELETED,
    EventType.RESTORED,
    EventType.RENAMED,
    EventType.MERGED,
    EventType.SPLIT,
)
_BATCH_SIZE: Final = 200
# The maximum number of events in a response to clients that follow the change log.
_MAX_LATEST_EVENTS: Final = 1_000
_END_OF_TIME: Final = datetime.max.replace(tzinfo=UTC)
_MAX_CACHED_SCHEMAS: Final = 5_000
_PRUNE_BATCH: Final = 10_000


class EventReport(Report, frozen=True, kw_only=True):
    """A change event; `old_schema` and `new_schema` are only set if the schema changed.

    `affected_downstream` are the datasets that the change affects. `affected` lists those that
    break or may break, with positions and owners; it is null if there were no downstream datasets.
    """

    event_id: str
    urn: str
    type: EventType
    change_type: ChangeType
    timestamp: datetime
    cause: Cause
    author: str | None
    source_path: str | None
    cloud_version: str
    schema_version: str
    breaking: bool
    summary: str
    flags: tuple[str, ...]
    changes: tuple[ChangeRow, ...]
    old_schema: SchemaReport | None
    new_schema: SchemaReport | None
    metadata: dict[str, str | int]
    affected_downstream: tuple[str, ...]
    affected: AffectedReport | None
    breaking_changes: int = 0


class ChangesSummary(Report, frozen=True, kw_only=True):
    """The number of events, of breaking events, and of datasets with events.

    `breaking_changes` is the number of breaking changes, of which an event may have several; the
    report of `lumos ingest` counts them in the same way.
    """

    events: int
    breaking: int
    datasets: int
    breaking_changes: int = 0


class ChangesReport(Report, frozen=True, kw_only=True):
    """The result of `lumos changes`: the events, newest first, and their counts."""

    format_version: str = FORMAT_VERSION
    events: tuple[EventReport, ...]
    summary: ChangesSummary

    @classmethod
    def of(cls, events: "Iterable[EventReport]") -> "ChangesReport":
        tally = ChangesTally(events)
        return cls(events=tuple(tally), summary=tally.summary)


class Milestone(Report, frozen=True, kw_only=True):
    """An event about the dataset itself: deleted, restored, renamed, merged or split."""

    timestamp: datetime
    event: EventType
    cloud_version: str
    schema_version: str
    summary: str


class SplitDataset(Report, frozen=True, kw_only=True):
    """A dataset that was split, and the first 1,000 of its `part_count` parts."""

    urn: str
    summary: str
    parts: tuple[str, ...]
    part_count: int

    @classmethod
    def of(cls, event: ChangeEvent) -> "SplitDataset":
        return cls(
            urn=event.urn,
            summary=event.summary,
            parts=tuple(str(event.metadata["parts"]).split()),
            part_count=int(event.metadata["part_count"]),
        )


class ForgetReport(Report, frozen=True, kw_only=True):
    """The result of `lumos db prune`: the number of deleted events, which were about new data."""

    format_version: str = FORMAT_VERSION
    before: datetime | None
    removed: int


class PositionedEvent(Report, frozen=True, kw_only=True):
    """An event and its position in the change log."""

    position: int
    event: EventReport


class LatestChanges(Report, frozen=True, kw_only=True):
    """The newest events of the change log, oldest first, and the position after them."""

    format_version: str = FORMAT_VERSION
    position: int
    events: tuple[PositionedEvent, ...]


class ChangeHistory:
    """Reads the recorded events of a store, and deletes old ones."""

    def __init__(
        self,
        store: Callable[[], Store],
        *,
        retention_days: int,
        require_tracking: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._retention_days = retention_days
        self._require_tracking = require_tracking

    def iterate(
        self,
        *,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        types: Iterable[EventType | str] = (),
        breaking: bool = False,
        dataset: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Iterator[EventReport]:
        """Yield the events of `Lumos.changes` while they are read; for millions of events."""
        self._require_tracking()
        store = self._store()
        now = datetime.now(UTC)
        start, end = _parse_time(since, now), _parse_time(until, now, end=True)
        if start is not None and end is not None and start > end:
            raise MisuseError(
                f"The period ends ({end:%Y-%m-%d %H:%M}) before it begins ({start:%Y-%m-%d %H:%M})."
            )
        event_filter = EventFilter(
            since=start,
            until=end,
            types=event_types(types),
            breaking=breaking,
            urns=None if dataset is None else _urns(store, dataset),
            limit=limit,
            after=after,
        )
        return _event_reports(store.change_log, store.change_log.events(event_filter))

    def latest(self, after: int | None = None) -> "LatestChanges":
        """The changes recorded after a position, oldest first.

        Without `after`, only the current position is returned. To follow the change log, call this
        again with the position in the last result.
        """
        self._require_tracking()
        log = self._store().change_log
        if after is None:
            return LatestChanges(position=log.position(), events=())
        events_by_position = log.newer(after, limit=_MAX_LATEST_EVENTS)
        reports = _event_reports(log, iter(events_by_position.values()))
        return LatestChanges(
            position=max(events_by_position, default=after),
            events=tuple(
                PositionedEvent(position=position, event=event)
                for position, event in zip(events_by_position, reports, strict=True)
            ),
        )

    def forget_old(self, older_than: str | timedelta | None = None) -> ForgetReport:
        """Delete old events that only record new data; no other events are deleted.

        The default age is `storage.modified_retention_days`.
        """
        return forget_old_events(self._store(), older_than, days=self._retention_days)


def _urns(store: Store, text: str) -> frozenset[str]:
    """All current and former URNs of the datasets that match a name or pattern."""
    pattern = DatasetPattern(text)
    if pattern.has_wildcards:
        return store.change_log.urns(pattern)
    try:
        urn = find_urn(store, text)
    except UnknownDataset:
        # The dataset may have been renamed or merged.
        if former_urns := store.change_log.urns(pattern):
            return former_urns
        raise
    return store.change_log.urns(DatasetPattern(urn))


def _parse_time(
    text: str | datetime | None, now: datetime, *, end: bool = False
) -> datetime | None:
    if isinstance(text, str):
        return parse_time(text, now=now, end=end)
    return None if text is None else to_utc(text)


def _event_reports(log: ChangeLog, events: Iterator[ChangeEvent]) -> Iterator[EventReport]:
    schemas: dict[str, SchemaReport] = {}
    while batch := list(islice(events, _BATCH_SIZE)):
        needed = {hash for event in batch for hash in _changed_schemas(event) if hash}
        if len(schemas) > _MAX_CACHED_SCHEMAS:
            schemas.clear()
        if missing := needed - schemas.keys():
            loaded = log.schemas(missing)
            schemas.update({hash: SchemaReport.of(schema) for hash, schema in loaded.items()})
        for event in batch:
            yield _report_with_schemas(event, schemas)


def event_report(log: ChangeLog, event: ChangeEvent) -> EventReport:
    """The report of one event."""
    loaded = log.schemas({hash for hash in _changed_schemas(event) if hash})
    schemas = {hash: SchemaReport.of(schema) for hash, schema in loaded.items()}
    return _report_with_schemas(event, schemas)


def events_of(
    store: Store,
    dataset: KnownDataset,
    *,
    types: tuple[EventType, ...] = (),
    limit: int | None = None,
) -> Iterator[ChangeEvent]:
    """The events of one dataset under its current and former URNs, newest first."""
    return store.change_log.events(_dataset_events(store, dataset, types=types, limit=limit))


def _dataset_events(
    store: Store,
    dataset: KnownDataset,
    *,
    types: tuple[EventType, ...] = (),
    limit: int | None = None,
) -> EventFilter:
    urns = frozenset({dataset.urn, *store.change_log.former_urns([dataset.urn])})
    # Another dataset may have had the same URN before.
    return EventFilter(urns=urns, types=types, since=dataset.created_at, limit=limit)


def schema_versions_of(store: Store, dataset: KnownDataset) -> dict[str, str]:
    """The schema version of each cloud version that a dataset had, oldest first."""
    version_changes = [
        _step(each.cloud_version, each.version)
        for each in store.schemas.steps(urn=dataset.urn, until=_END_OF_TIME)
    ]
    recorded = [
        _step(each.cloud_version, each.schema_version)
        for each in store.change_log.steps(_dataset_events(store, dataset))
    ]
    current = _step(dataset.cloud_version, dataset.schema_version)
    # The change log returns events newest first. The last event of a cloud version is used.
    return versions_by_cloud_version([*version_changes, current], reversed(recorded))


def _step(cloud_version: str, schema_version: str) -> VersionStep:
    return VersionStep(CloudVersion.parse(cloud_version), schema_version)


def milestones_of(
    store: Store, datasets: Collection[KnownDataset]
) -> dict[str, tuple[Milestone, ...]]:
    """The deletions, restorations, renamings, merges and splits by dataset, newest first."""
    by_current_urn = {each.urn: each for each in datasets}
    # A URN may be the current URN of one dataset and a former URN of another.
    datasets_by_urn = {urn: [dataset] for urn, dataset in by_current_urn.items()}
    for former, current in store.change_log.former_urns(by_current_urn).items():
        datasets_by_urn.setdefault(former, []).append(by_current_urn[current])
    milestones: dict[str, list[Milestone]] = {urn: [] for urn in by_current_urn}
    for event in store.change_log.events(
        EventFilter(urns=frozenset(datasets_by_urn), types=MILESTONES)
    ):
        milestone = Milestone(
            timestamp=event.at,
            event=event.type,
            cloud_version=event.cloud_version,
            schema_version=event.schema_version,
            summary=event.summary,
        )
        for dataset in datasets_by_urn[event.urn]:
            # Another dataset may have had the same URN before.
            if event.at >= dataset.created_at:
                milestones[dataset.urn].append(milestone)
    return {urn: tuple(each) for urn, each in milestones.items()}


def last_split(store: Store, urn: str) -> SplitDataset | None:
    """The most recent split of a dataset."""
    event_filter = EventFilter(urns=frozenset({urn}), types=(EventType.SPLIT,), limit=1)
    return next(map(SplitDataset.of, store.change_log.events(event_filter)), None)


def _changed_schemas(event: ChangeEvent) -> tuple[str | None, str | None]:
    is_unchanged = event.old_schema == event.new_schema
    return (None, None) if is_unchanged else (event.old_schema, event.new_schema)


def _report_with_schemas(event: ChangeEvent, schemas: dict[str, SchemaReport]) -> EventReport:
    old, new = _changed_schemas(event)
    return EventReport(
        event_id=event.event_id,
        urn=event.urn,
        type=event.type,
        change_type=change_type_of(event),
        timestamp=event.at,
        cause=event.cause,
        author=event.author,
        source_path=event.source_path,
        cloud_version=event.cloud_version,
        schema_version=event.schema_version,
        breaking=event.breaking,
        summary=event.summary,
        flags=event.flags,
        changes=change_rows(event.urn, event.findings),
        old_schema=schemas.get(old or ""),
        new_schema=schemas.get(new or ""),
        metadata=event.metadata,
        affected_downstream=event.affected_downstream,
        affected=AffectedReport.of(event),
        breaking_changes=event.breaking_changes,
    )


class ChangesTally:
    """Counts events while they are iterated."""

    def __init__(self, events: Iterable[EventReport]) -> None:
        self._events = events
        self._datasets: set[str] = set()
        self._count = 0
        self._breaking = 0
        self._breaking_changes = 0

    def __iter__(self) -> Iterator[EventReport]:
        for event in self._events:
            self._count += 1
            self._breaking += event.breaking
            self._breaking_changes += event.breaking_changes
            self._datasets.add(event.urn)
            yield event

    @property
    def summary(self) -> ChangesSummary:
        """The counts of the events that were iterated so far."""
        return ChangesSummary(
            events=self._count,
            breaking=self._breaking,
            datasets=len(self._datasets),
            breaking_changes=self._breaking_changes,
        )


def forget_old_events(store: Store, age: str | timedelta | None, *, days: int) -> ForgetReport:
    """Delete events about new data that are older than `age`, or else `days` (0 deletes none)."""
    now = datetime.now(UTC)
    max_age = _parse_age(age) if age is not None else timedelta(days=days) if days else None
    if max_age is None:
        return ForgetReport(before=None, removed=0)
    before, removed = now - max_age, 0
    # Delete in batches, so that other writers do not wait long.
    while count := store.change_log.delete_modified(before=before, limit=_PRUNE_BATCH):
        removed += count
    if removed:
        details = f"{removed} before {before:%Y-%m-%dT%H:%M:%SZ}"
        with store.transaction() as transaction:
            transaction.audit("forget events", EventType.MODIFIED.value, at=now, details=details)
    return ForgetReport(before=before, removed=removed)


def _parse_age(text: str | timedelta) -> timedelta:
    age = text if isinstance(text, timedelta) else parse_duration(text)
    if age is None or age > _MAX_AGE:
        raise MisuseError(f"'{text}' is not an age. Use for example 90d, 12h or 30m.")
    return age
