"""The service behind `lumos release`: refreshes metadata once data after a release is available.

A release is announced once. For each dataset with a schedule, this determines the first run after
the release, and adds a job to the registry for the time when the data of that run is available. The
job scans the source. If the partition of the run is still missing, the job adds another one for a
later time, until the time to give up.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from shlex import quote
from typing import Final, NamedTuple

import msgspec

from lumos.annotations.service import ScheduleEditor
from lumos.config import Settings
from lumos.discovery.reports import IngestReport
from lumos.discovery.targets import SOURCE_FAILED
from lumos.errors import LumosError, MisuseError, UnknownName
from lumos.model.change import EventType
from lumos.model.dataset import Dataset, Schedule
from lumos.model.job import JobRequest
from lumos.model.release import DatasetSummary, Release, ReleaseRefresh
from lumos.model.time_expression import parse_time, to_utc
from lumos.names import find_dataset, find_datasets
from lumos.profiles.files import NotProfiled, ScannedDatasets
from lumos.releases.arrivals import Arrivals, arrivals_of
from lumos.releases.learning import MIN_ARRIVALS, learn_schedule
from lumos.releases.reports import (
    BackfillPartition,
    BackfillReport,
    DatasetSchedulesReport,
    LearntDatasetSchedule,
    LearntSchedulesReport,
    ReleaseListReport,
    ReleaseReport,
    ReleaseSummary,
    ScheduledDataset,
)
from lumos.releases.windows import (
    DEFAULT_OFFSET,
    Granularity,
    RunWindow,
    expected_partition,
    next_window,
    period_of,
    windows_between,
)
from lumos.schemas.changes import ChangeHistory
from lumos.store import DatasetFilter, KnownDataset, Store
from lumos.store.statements import batches
from lumos.store.transaction import current_user
from lumos.tracing import trace_headers

REFRESH: Final = "release-refresh"
MIN_CONFIDENCE: Final = 0.6
_MAX_NAME_LENGTH: Final = 200
_MAX_PARTITIONS: Final = 10_000
_MAX_EVENTS: Final = 50
# The time between two attempts to find a late partition.
_MIN_WAIT: Final = timedelta(minutes=5)
_MAX_WAIT: Final = timedelta(hours=6)
# The time after which a late partition is given up.
_MIN_TOTAL_WAIT: Final = timedelta(hours=6)
_MAX_TOTAL_WAIT: Final = timedelta(days=7)


class _Target(NamedTuple):
    known: KnownDataset
    refresh: ReleaseRefresh


class Releases:
    """Announces releases and refreshes the datasets after them.

    `scan` scans sources and publishes the changes.
    """

    def __init__(
        self,
        settings: Settings,
        store: Callable[[], Store],
        changes: ChangeHistory,
        schedules: Callable[[], ScheduleEditor],
        *,
        state: Callable[[], str],
        scan: Callable[[Sequence[str]], IngestReport],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._settings = settings
        self._store = store
        self._changes = changes
        self._schedules = schedules
        self._state = state
        self._scan = scan
        self._clock = clock

    def notify(
        self, name: str, *, datasets: str | None = None, at: str | datetime | None = None
    ) -> ReleaseReport:
        """Announce a release: schedule a refresh of each dataset for when its data is available.

        `datasets` is a name or a pattern; by default, all datasets with a schedule are refreshed.
        `at` is the time of the release, by default now. Announcing a release again adds datasets,
        without changing the refreshes of those that it already has.
        """
        if not name or len(name) > _MAX_NAME_LENGTH or name != name.strip():
            raise MisuseError(
                f"Give the release a name of at most {_MAX_NAME_LENGTH} characters, without blanks "
                "at its ends, such as 2026.11."
            )
        if not name.isprintable():
            raise MisuseError(
                f"The name of the release {name!r} contains a line break or another control "
                "character. Choose a name such as 2026.11."
            )
        store, now = self._store(), self._clock()
        moment = now if at is None else _to_utc(at, now)
        earlier = store.releases.get(name)
        release = earlier or Release(
            name=name, at=moment, created_at=now, created_by=current_user()
        )
        if earlier is not None and at is not None and earlier.at != moment:
            raise MisuseError(
                f"The release '{name}' was announced for {earlier.at:%Y-%m-%d %H:%M} UTC. "
                "Choose another name, or omit --at."
            )
        targets = self._targets(store, release, datasets)
        if not targets:
            raise MisuseError(f"No dataset has a schedule. Set one with: {_set_command('DATASET')}")
        refreshes = [each.refresh for each in targets]
        store.releases.add(release, refreshes, _requests(release, targets))
        return self.show(name)

    def _targets(self, store: Store, release: Release, datasets: str | None) -> list[_Target]:
        urns = (
            store.aspects("schedule")
            if datasets is None
            else [each.urn for each in find_datasets(store, datasets)]
        )
        scanned = ScannedDatasets(self._settings, store, state=self._state())
        targets = []
        for known, dataset in _live_entries(store, urns):
            if dataset.schedule is not None:
                refresh = self._refresh(known, dataset, dataset.schedule, release, scanned)
            else:
                reason = f"no schedule; set one with: {_set_command(known.name)}"
                before = _summary(known, dataset)
                refresh = ReleaseRefresh(
                    urn=known.urn, state="unscheduled", reason=reason, before=before
                )
            targets.append(_Target(known, refresh))
        return targets

    def _refresh(
        self,
        known: KnownDataset,
        dataset: Dataset,
        schedule: Schedule,
        release: Release,
        scanned: ScannedDatasets,
    ) -> ReleaseRefresh:
        arrivals = _arrivals(scanned, known.urn)
        window = next_window(schedule, release.at, partition_offset=_offset(arrivals, schedule))
        total_wait = min(max(2 * period_of(schedule, window.run), _MIN_TOTAL_WAIT), _MAX_TOTAL_WAIT)
        return ReleaseRefresh(
            urn=known.urn,
            state="waiting",
            run=window.run,
            partition=_partition_name(window, schedule, arrivals.granularity),
            available=window.available,
            next_look=window.available,
            give_up=window.available + total_wait,
            before=_summary(known, dataset),
        )

    def refresh(
        self, name: str, *, source: str | None = None, due_only: bool = False
    ) -> ReleaseReport:
        """Scan the waiting datasets of a release, and record those whose data has arrived.

        Each job of a release calls this for one source and, with `due_only`, only for the datasets
        whose data is due. Datasets whose data is late are checked again later.
        """
        store, now = self._store(), self._clock()
        release = self._release(store, name)
        waiting = {
            each.urn: each
            for each in store.releases.refreshes(name)
            if each.state == "waiting"
            and (not due_only or each.next_look is None or each.next_look <= now)
        }
        before = {known.urn: known.source for known, _ in _live_entries(store, waiting)}
        if source is not None:
            waiting = {urn: each for urn, each in waiting.items() if before.get(urn) == source}
        sources = dict.fromkeys(before[urn] for urn in waiting if urn in before)
        problem = self._scan_failure(list(sources)) if sources else None
        entries = {known.urn: (known, dataset) for known, dataset in _live_entries(store, waiting)}
        scanned = ScannedDatasets(self._settings, store, state=self._state())
        updated, late = [], []
        for urn, refresh in waiting.items():
            attempted = msgspec.structs.replace(
                refresh, attempts=refresh.attempts + 1, updated_at=now, reason=None
            )
            if urn not in entries:
                missing = "the dataset was missing at the scan"
                updated.append(msgspec.structs.replace(attempted, state="failed", reason=missing))
                continue
            known, dataset = entries[urn]
            reason = problem or _missing(refresh, _arrivals(scanned, urn), dataset)
            if reason is None:
                updated.append(self._complete_refresh(attempted, known, dataset, release))
            elif refresh.give_up is not None and now >= refresh.give_up:
                updated.append(msgspec.structs.replace(attempted, state="given up", reason=reason))
            else:
                next_look = _next_look(attempted, now)
                attempted = msgspec.structs.replace(attempted, reason=reason, next_look=next_look)
                updated.append(attempted)
                late.append(_Target(known, attempted))
        store.releases.update(name, updated, _requests(release, late))
        return self.show(name)

    def _scan_failure(self, sources: Sequence[str]) -> str | None:
        """Scan sources; return a reason if any of them could not be scanned.

        The caller handles that like late data: it tries again until the time to give up.
        """
        try:
            report = self._scan(sources)
        except LumosError as problem:
            return str(problem)
        failed = [each.reason for each in report.problems if each.code == SOURCE_FAILED]
        return f"the source could not be scanned: {failed[0]}" if failed else None

    def _complete_refresh(
        self, refresh: ReleaseRefresh, known: KnownDataset, dataset: Dataset, release: Release
    ) -> ReleaseRefresh:
        """Complete a refresh whose data was scanned, with the changes since the release."""
        events = list(
            self._changes.iterate(
                since=release.at,
                until=None,
                types=(EventType.SCHEMA_CHANGED,),
                breaking=False,
                dataset=known.urn,
                limit=_MAX_EVENTS,
            )
        )
        affected = {each.affected.summary for each in events if each.affected}
        return msgspec.structs.replace(
            refresh,
            state="refreshed",
            after=_summary(known, dataset),
            changes=tuple(each.summary for each in reversed(events)),
            affected=tuple(sorted(affected)),
        )

    def show(self, name: str) -> ReleaseReport:
        """A release, and the state of each of its datasets."""
        store = self._store()
        release = self._release(store, name)
        return ReleaseReport(release=release, refreshes=tuple(store.releases.refreshes(name)))

    def list(self) -> ReleaseListReport:
        """All releases, newest first."""
        store = self._store()
        summaries = (
            ReleaseSummary(
                release=each,
                states=dict(Counter(one.state for one in store.releases.refreshes(each.name))),
            )
            for each in store.releases.all()
        )
        return ReleaseListReport(releases=tuple(summaries))

    def backfill(
        self, dataset: str, *, first: str | datetime, last: str | datetime | None = None
    ) -> BackfillReport:
        """Scan a dataset and compare the partitions in a range with those of its schedule."""
        store, now = self._store(), self._clock()
        known = find_dataset(store, dataset)
        schedule = store.get(known.urn).schedule
        if schedule is None:
            raise MisuseError(
                f"{known.name} has no schedule. Set one with: {_set_command(known.name)}"
            )
        start = _to_utc(first, now)
        end = now if last is None else _to_utc(last, now, end=True)
        if start > end:
            raise MisuseError("The range is empty: --from is later than --to.")
        self._scan([known.source])
        arrivals = _arrivals(ScannedDatasets(self._settings, store, state=self._state()), known.urn)
        if arrivals.granularity is None:
            raise MisuseError(f"{known.name} has no time partitions, so there are none to check.")
        offset = _offset(arrivals, schedule)
        partitions: dict[str, BackfillPartition] = {}
        for window in windows_between(schedule, start, end, partition_offset=offset):
            if window.available > now:
                break
            time = expected_partition(window, schedule, arrivals.granularity)
            partitions.setdefault(
                time.text,
                BackfillPartition(
                    partition=time.text,
                    run=window.run,
                    available=window.available,
                    present=time in arrivals.partitions,
                    arrived=arrivals.partitions.get(time),
                ),
            )
            if len(partitions) > _MAX_PARTITIONS:
                raise MisuseError(
                    "The range has more than 10,000 partitions. Choose a shorter one."
                )
        return BackfillReport(
            urn=known.urn, schedule=schedule, partitions=tuple(partitions.values())
        )

    def schedules(self, dataset: str | None = None) -> DatasetSchedulesReport:
        """The datasets with a schedule, and when their next data is available."""
        store, now = self._store(), self._clock()
        known = store.list(DatasetFilter()) if dataset is None else find_datasets(store, dataset)
        schedules: dict[str, Schedule] = store.aspects("schedule")
        scheduled = []
        for each in known:
            if (schedule := schedules.get(each.urn)) is not None:
                window = next_window(schedule, now)
                scheduled.append(
                    ScheduledDataset(
                        urn=each.urn,
                        schedule=schedule,
                        next_run=window.run,
                        next_available=window.available,
                    )
                )
        return DatasetSchedulesReport(datasets=tuple(scheduled))

    def learn(
        self, dataset: str, *, timezone: str = "UTC", apply: bool = False
    ) -> LearntSchedulesReport:
        """Learn when data of datasets arrives from their partitions; `apply` sets the schedules.

        Only schedules with a confidence of at least 0.6 are set.
        """
        store = self._store()
        scanned = ScannedDatasets(self._settings, store, state=self._state())
        reports = []
        for known in find_datasets(store, dataset):
            learnt = learn_schedule(_arrivals(scanned, known.urn).known, timezone=timezone)
            if learnt is None:
                reason = (
                    f"fewer than {MIN_ARRIVALS} of its time partitions arrived one by one, at "
                    "regular times"
                )
                reports.append(LearntDatasetSchedule(urn=known.urn, reason=reason))
                continue
            is_applied = apply and learnt.confidence >= MIN_CONFIDENCE
            if is_applied:
                lag = timedelta(minutes=learnt.schedule.availability_lag_minutes)
                self._schedules().set(known.urn, learnt.schedule.cron, timezone=timezone, lag=lag)
            reports.append(
                LearntDatasetSchedule(
                    urn=known.urn,
                    schedule=learnt.schedule,
                    confidence=learnt.confidence,
                    partitions=learnt.partitions,
                    on_time=learnt.on_time,
                    applied=is_applied,
                )
            )
        return LearntSchedulesReport(datasets=tuple(reports))

    def _release(self, store: Store, name: str) -> Release:
        release = store.releases.get(name)
        if release is None:
            known = [each.name for each in store.releases.all()]
            raise UnknownName(
                "release", name, known, next=f"Announce it with: lumos release notify {name}"
            )
        return release


def _set_command(dataset: str) -> str:
    return f"lumos release schedule set {quote(dataset)} '0 2 * * *' --lag 6h"


def _requests(release: Release, targets: Iterable[_Target]) -> list[JobRequest]:
    """The jobs to request: one for all datasets of a source with the same time of the next look."""
    due = {
        (each.known.source, each.refresh.next_look)
        for each in targets
        if each.refresh.state == "waiting" and each.refresh.next_look is not None
    }
    return [
        JobRequest(
            kind=REFRESH,
            arguments={"release": release.name, "source": source},
            requested_by=f"release {release.name}",
            max_attempts=3,
            not_before=at,
            idempotency_key=f"{REFRESH}:{release.name}:{source}:{at.isoformat()}",
            concurrency_key=f"source:{source.partition(':')[2]}",
            trace=trace_headers(),
        )
        for source, at in sorted(due)
    ]


def _next_look(refresh: ReleaseRefresh, now: datetime) -> datetime:
    """When to look for a late partition again: intervals double with each attempt."""
    wait = min(_MIN_WAIT * (1 << min(10, max(0, refresh.attempts - 1))), _MAX_WAIT)
    # In full minutes, so that late datasets of one source share their next scan.
    due = max(refresh.available or now, now + wait)
    return due.replace(second=0, microsecond=0) + timedelta(minutes=1)


def _arrivals(scanned: ScannedDatasets, urn: str) -> Arrivals:
    try:
        return arrivals_of(scanned.locate(urn).files)
    except NotProfiled:
        # A database, or a dataset that was never scanned here: only its statistics are known.
        return Arrivals({}, None, None)


def _offset(arrivals: Arrivals, schedule: Schedule) -> int:
    learnt = learn_schedule(arrivals.known, timezone=schedule.timezone)
    return DEFAULT_OFFSET if learnt is None else learnt.partition_offset


def _partition_name(
    window: RunWindow, schedule: Schedule, granularity: Granularity | None
) -> str | None:
    if granularity is None:
        return None
    return expected_partition(window, schedule, granularity).text


def _missing(refresh: ReleaseRefresh, arrivals: Arrivals, dataset: Dataset) -> str | None:
    """Why the data of a run is missing: its partition or, without partitions, any later file."""
    if refresh.partition is not None:
        has_arrived = any(time.text == refresh.partition for time in arrivals.partitions)
        return None if has_arrived else f"{refresh.partition} has not arrived"
    newest = arrivals.newest or (dataset.statistics and dataset.statistics.last_modified)
    has_arrived = bool(newest and refresh.run and newest >= refresh.run)
    return None if has_arrived else "data after the run has not arrived"


def _live_entries(store: Store, urns: Iterable[str]) -> Iterator[tuple[KnownDataset, Dataset]]:
    """The live datasets among `urns`, sorted by URN and read in batches."""
    for batch in batches(sorted(urns)):
        for _, stored in sorted(store.entries.get_many(batch).items()):
            if stored.known.state == "live":
                yield stored.known, stored.dataset


def _to_utc(value: str | datetime, now: datetime, *, end: bool = False) -> datetime:
    """Convert a time that a user entered to UTC; times without a zone are in UTC."""
    if isinstance(value, str):
        return parse_time(value, now=now, end=end)
    return to_utc(value)


def _summary(known: KnownDataset, dataset: Dataset) -> DatasetSummary:
    statistics = dataset.statistics
    return DatasetSummary(
        schema_version=known.schema_version,
        cloud_version=known.cloud_version,
        columns=len(dataset.schema.fields) if dataset.schema else 0,
        rows=statistics.row_count if statistics else None,
        files=statistics.file_count if statistics else None,
        bytes=statistics.total_size_bytes if statistics else None,
    )
