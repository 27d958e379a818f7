"""`lumos changes`: what happened to datasets, newest first, and how long it is remembered."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final

from lumos.datasets.reports import SplitDataset
from lumos.errors import MisuseError
from lumos.model.change import Cause, ChangeEvent, EventType
from lumos.model.dataset_pattern import DatasetPattern
from lumos.model.report import FORMAT_VERSION, Report
from lumos.model.time_expression import parse_duration, parse_time
from lumos.model.version import ChangeType, CloudVersion
from lumos.notifications.handlers import event_types
from lumos.schemas.affected import AffectedReport
from lumos.schemas.findings import ChangeRow, change_rows
from lumos.schemas.schema_report import SchemaReport
from lumos.schemas.version_rules import Step, change_type_of, versions_by_cloud_version
from lumos.store import KnownDataset, Store
from lumos.store.actor import audit
from lumos.store.change_log import ChangeLog, EventFilter

MILESTONES: Final = (
    EventType.DELETED,
    EventType.RESTORED,
    EventType.RENAMED,
    EventType.MERGED,
    EventType.SPLIT,
)
_TOGETHER: Final = 200
_EVER: Final = datetime.max.replace(tzinfo=UTC)
_REMEMBERED_SCHEMAS: Final = 5_000
_FORGOTTEN_AT_ONCE: Final = 10_000


class EventReport(Report, frozen=True, kw_only=True):
    """A change event; schemas are told where they changed, came or went.

    `affected_downstream` are the datasets that `affected` tells more of: which of them break by the
    change and which may, whose they were, and where. It is null where nothing hung on the dataset.
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


class ChangesSummary(Report, frozen=True, kw_only=True):
    """What a list of events came to."""

    events: int
    breaking: int
    datasets: int


class ChangesReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos changes`: the events, newest first, and what they came to."""

    format_version: str = FORMAT_VERSION
    events: tuple[EventReport, ...]
    summary: ChangesSummary


class Milestone(Report, frozen=True, kw_only=True):
    """What became of a dataset as a whole: gone, back, renamed, merged with others or split."""

    timestamp: datetime
    event: EventType
    cloud_version: str
    schema_version: str
    summary: str


class ForgetReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos db prune`: how many events of new data were let go."""

    format_version: str = FORMAT_VERSION
    before: datetime | None
    removed: int


def wanted_events(
    log: ChangeLog,
    *,
    since: str | datetime | None,
    until: str | datetime | None,
    types: Iterable[EventType | str],
    breaking: bool,
    dataset: str | None,
    limit: int | None,
) -> EventFilter:
    """The filter that a user's words mean; fails where no dataset can be meant."""
    now = datetime.now(UTC)
    start, end = _moment(since, now), _moment(until, now, end=True)
    if start is not None and end is not None and start > end:
        raise MisuseError(
            f"The period ends ({end:%Y-%m-%d %H:%M}) before it begins ({start:%Y-%m-%d %H:%M})."
        )
    return EventFilter(
        since=start,
        until=end,
        types=event_types(types),
        breaking=breaking,
        urns=None if dataset is None else _urns(log, dataset),
        limit=limit,
    )


def _urns(log: ChangeLog, text: str) -> frozenset[str]:
    pattern = DatasetPattern(text)
    urns = log.urns(pattern)
    # A pattern may match nothing yet; a name that does not exist is a slip.
    if not urns and not pattern.is_open:
        raise log.unknown(text)
    return urns


def _moment(given: str | datetime | None, now: datetime, *, end: bool = False) -> datetime | None:
    return parse_time(given, now=now, end=end) if isinstance(given, str) else given


def reports(log: ChangeLog, wanted: EventFilter) -> Iterator[EventReport]:
    """The events as they are printed, read from the store as they are asked for."""
    schemas: dict[str, SchemaReport] = {}
    events = log.events(wanted)
    while some := list(islice(events, _TOGETHER)):
        needed = {hash for event in some for hash in _changed_schemas(event) if hash}
        if len(schemas) > _REMEMBERED_SCHEMAS:
            schemas.clear()
        if new := needed - schemas.keys():
            found = log.schemas(new)
            schemas.update({hash: SchemaReport.of(schema) for hash, schema in found.items()})
        for event in some:
            yield _report(event, schemas)


def report_of(log: ChangeLog, event: ChangeEvent) -> EventReport:
    """One event as it is printed."""
    found = log.schemas({hash for hash in _changed_schemas(event) if hash})
    schemas = {hash: SchemaReport.of(schema) for hash, schema in found.items()}
    return _report(event, schemas)


def events_of(
    store: Store,
    known: KnownDataset,
    *,
    types: tuple[EventType, ...] = (),
    limit: int | None = None,
) -> Iterator[ChangeEvent]:
    """The events of one dataset, newest first, under all the names it had."""
    return store.change_log.events(_own_events(store, known, types=types, limit=limit))


def _own_events(
    store: Store,
    known: KnownDataset,
    *,
    types: tuple[EventType, ...] = (),
    limit: int | None = None,
) -> EventFilter:
    urns = store.change_log.former_urns(known.urn) | {known.urn}
    # Another dataset may have had the same URN before.
    return EventFilter(urns=urns, types=types, since=known.created_at, limit=limit)


def versions_of(store: Store, known: KnownDataset) -> dict[str, str]:
    """The schema version of every cloud version that a dataset had, oldest first."""
    begun = [
        _step(each.cloud_version, each.version)
        for each in store.archive.steps(urn=known.urn, until=_EVER)
    ]
    recorded = [
        _step(each.cloud_version, each.schema_version)
        for each in store.change_log.steps(_own_events(store, known))
    ]
    present = _step(known.cloud_version, known.schema_version)
    # Newest first: the last event of a cloud version tells what became of it.
    return versions_by_cloud_version([*begun, present], reversed(recorded))


def _step(cloud_version: str, schema_version: str) -> Step:
    return Step(CloudVersion.parse(cloud_version), schema_version)


def milestones_of(store: Store, known: KnownDataset) -> tuple[Milestone, ...]:
    """When a dataset was gone, back, renamed, merged or split, newest first."""
    return tuple(
        Milestone(
            timestamp=event.at,
            event=event.type,
            cloud_version=event.cloud_version,
            schema_version=event.schema_version,
            summary=event.summary,
        )
        for event in events_of(store, known, types=MILESTONES)
    )


def last_split(store: Store, urn: str) -> SplitDataset | None:
    """Into which datasets one was split most recently."""
    wanted = EventFilter(urns=frozenset({urn}), types=(EventType.SPLIT,), limit=1)
    return next(map(SplitDataset.of, store.change_log.events(wanted)), None)


def _changed_schemas(event: ChangeEvent) -> tuple[str | None, str | None]:
    same = event.old_schema == event.new_schema
    return (None, None) if same else (event.old_schema, event.new_schema)


def _report(event: ChangeEvent, schemas: dict[str, SchemaReport]) -> EventReport:
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
    )


class Tally:
    """Counts events as they pass by."""

    def __init__(self, events: Iterable[EventReport]) -> None:
        self._events = events
        self._datasets: set[str] = set()
        self._count = 0
        self._breaking = 0

    def __iter__(self) -> Iterator[EventReport]:
        for event in self._events:
            self._count += 1
            self._breaking += event.breaking
            self._datasets.add(event.urn)
            yield event

    @property
    def summary(self) -> ChangesSummary:
        """The sums of what has passed by."""
        return ChangesSummary(
            events=self._count, breaking=self._breaking, datasets=len(self._datasets)
        )


def forget_old_events(store: Store, age: str | timedelta | None, *, days: int) -> ForgetReport:
    """Lets go of events of new data of some age, else of some days (0 keeps them all)."""
    now = datetime.now(UTC)
    length = _age(age) if age is not None else timedelta(days=days) if days else None
    if length is None:
        return ForgetReport(before=None, removed=0)
    before, removed = now - length, 0
    # In portions, so that nobody who writes has to wait for long.
    while portion := store.change_log.forget_modified(before=before, at_most=_FORGOTTEN_AT_ONCE):
        removed += portion
    if removed:
        details = f"{removed} before {before:%Y-%m-%dT%H:%M:%SZ}"
        with store.transaction() as transaction:
            audit(transaction, "forget events", EventType.MODIFIED.value, at=now, details=details)
    return ForgetReport(before=before, removed=removed)


def _age(given: str | timedelta) -> timedelta:
    if isinstance(given, timedelta):
        return given
    age = parse_duration(given)
    if age is None:
        raise MisuseError(f"'{given}' is no age. One looks like 90d, 12h or 30m")
    return age
