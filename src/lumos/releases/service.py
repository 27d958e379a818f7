"""The service behind `lumos release`: refreshes metadata once data after a release is available.

A release is announced once. For each dataset with a schedule, the first run after the release is
found, and a job is put into the registry for the time when its data is available. The job scans
the source; while the partition of that run is missing, it puts a later job into the registry, until
the time to give up.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from shlex import quote
from typing import Final, NamedTuple

import msgspec

from lumos.annotations.service import ScheduleEditor
from lumos.config import Settings
from lumos.errors import MisuseError, UnknownName
from lumos.model.change import EventType
from lumos.model.dataset import Dataset, Schedule
from lumos.model.job import JobRequest
from lumos.model.release import DatasetSummary, Release, ReleaseRefresh
from lumos.model.time_expression import parse_time
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
from lumos.store.transaction import current_user

REFRESH: Final = "release-refresh"
MIN_CONFIDENCE: Final = 0.6
_MAX_NAME_LENGTH: Final = 200
_MAX_PARTITIONS: Final = 10_000
_MAX_EVENTS: Final = 50
# How long to wait between two looks for a late partition, and for how long in all.
_MIN_WAIT: Final = timedelta(minutes=5)
_MAX_WAIT: Final = timedelta(hours=6)
_MIN_PATIENCE: Final = timedelta(hours=6)
_MAX_PATIENCE: Final = timedelta(days=7)


class _Target(NamedTuple):
    known: KnownDataset
    refresh: ReleaseRefresh


class Releases:
    """Announces releases and refreshes the datasets after them.

    `scan` scans the sources of some datasets and publishes what changed.
    """

    def __init__(
        self,
        settings: Settings,
        store: Callable[[], Store],
        changes: ChangeHistory,
        schedules: Callable[[], ScheduleEditor],
        *,
        state: Callable[[], str],
        scan: Callable[[Sequence[str]], object],
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

        `datasets` is a name or a pattern; by default all datasets with a schedule are refreshed.
        `at` is the time of the release, by default now. To announce it again changes nothing for
        the datasets that it has already.
        """
        name = name.strip()
        if not name or len(name) > _MAX_NAME_LENGTH:
            raise MisuseError("Give the release a name of at most 200 characters, such as 2026.11.")
        store, now = self._store(), self._clock()
        moment = now if at is None else at if isinstance(at, datetime) else parse_time(at, now=now)
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
        known = store.list(DatasetFilter()) if datasets is None else find_datasets(store, datasets)
        scanned = ScannedDatasets(self._settings, store, state=self._state())
        targets = []
        for each in known:
            dataset = store.get(each.urn)
            if dataset.schedule is not None:
                refresh = self._refresh(each, dataset, dataset.schedule, release, scanned)
                targets.append(_Target(each, refresh))
            elif datasets is not None:
                reason = f"no schedule; set one with: {_set_command(each.name)}"
                refresh = ReleaseRefresh(
                    urn=each.urn, state="unscheduled", reason=reason, before=_summary(each, dataset)
                )
                targets.append(_Target(each, refresh))
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
        patience = min(max(2 * period_of(schedule, window.run), _MIN_PATIENCE), _MAX_PATIENCE)
        return ReleaseRefresh(
            urn=known.urn,
            state="waiting",
            run=window.run,
            partition=_partition_name(window, schedule, arrivals.granularity),
            available=window.available,
            next_look=window.available,
            give_up=window.available + patience,
            before=_summary(known, dataset),
        )

    def refresh(
        self, name: str, *, source: str | None = None, due_only: bool = False
    ) -> ReleaseReport:
        """Scan the datasets of a release that are waiting, and record which have arrived.

        This is what the jobs of a release do, each for one source and for the datasets whose data
        is due. Datasets that are late are looked for again later.
        """
        store, now = self._store(), self._clock()
        release = self._release(store, name)
        by_urn = {each.urn: each for each in store.list(DatasetFilter())}
        waiting = [
            each
            for each in store.releases.refreshes(name)
            if each.state == "waiting"
            and (not due_only or each.next_look is None or each.next_look <= now)
            and (source is None or each.urn not in by_urn or by_urn[each.urn].source == source)
        ]
        if not waiting:
            return self.show(name)
        sources = dict.fromkeys(by_urn[each.urn].source for each in waiting if each.urn in by_urn)
        self._scan(list(sources))
        scanned = ScannedDatasets(self._settings, store, state=self._state())
        by_urn = {each.urn: each for each in store.list(DatasetFilter())}
        after = [
            self._looked_for(store, release, each, by_urn.get(each.urn), scanned, now)
            for each in waiting
        ]
        late = [_Target(by_urn[each.urn], each) for each in after if each.state == "waiting"]
        store.releases.update(name, after, _requests(release, late))
        return self.show(name)

    def _looked_for(
        self,
        store: Store,
        release: Release,
        refresh: ReleaseRefresh,
        known: KnownDataset | None,
        scanned: ScannedDatasets,
        now: datetime,
    ) -> ReleaseRefresh:
        """A refresh after a scan."""
        tried = msgspec.structs.replace(
            refresh, attempts=refresh.attempts + 1, updated_at=now, reason=None
        )
        if known is None:
            reason = "the dataset was missing at the scan"
            return msgspec.structs.replace(tried, state="failed", reason=reason)
        dataset = store.get(known.urn)
        arrivals = _arrivals(scanned, known.urn)
        if not _has_arrived(refresh, arrivals, dataset):
            missing = refresh.partition or "data after the run"
            reason = f"{missing} has not arrived"
            is_late = refresh.give_up is not None and now >= refresh.give_up
            if is_late:
                return msgspec.structs.replace(tried, state="given up", reason=reason)
            next_look = _next_look(tried, now)
            return msgspec.structs.replace(tried, reason=reason, next_look=next_look)
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
        affected = {text for each in events if each.affected for text in [each.affected.summary]}
        return msgspec.structs.replace(
            tried,
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
        start = first if isinstance(first, datetime) else parse_time(first, now=now)
        end = (
            last
            if isinstance(last, datetime)
            else parse_time(last, now=now, end=True)
            if last
            else now
        )
        if start > end:
            raise MisuseError("The range is empty: --from is later than --to.")
        self._scan([known.source])
        arrivals = _arrivals(ScannedDatasets(self._settings, store, state=self._state()), known.urn)
        if arrivals.granularity is None:
            raise MisuseError(f"{known.name} has no partitions of time, so there is none to check.")
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
        found = []
        for each in known:
            schedule = store.get(each.urn).schedule
            if schedule is not None:
                window = next_window(schedule, now)
                found.append(
                    ScheduledDataset(
                        urn=each.urn,
                        schedule=schedule,
                        next_run=window.run,
                        next_available=window.available,
                    )
                )
        return DatasetSchedulesReport(datasets=tuple(found))

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
                    f"fewer than {MIN_ARRIVALS} of its partitions of time arrived one by one, at "
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
    """One job for all datasets of a source that are looked for at the same time."""
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


def _has_arrived(refresh: ReleaseRefresh, arrivals: Arrivals, dataset: Dataset) -> bool:
    """Whether the partition of the run is there; without partitions, any file after the run."""
    if refresh.partition is not None:
        return any(time.text == refresh.partition for time in arrivals.partitions)
    newest = arrivals.newest or (dataset.statistics and dataset.statistics.last_modified)
    return bool(newest and refresh.run and newest >= refresh.run)


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
