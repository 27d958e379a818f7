"""`lumos ingest`: from databases, and from lakes through Spark, into the store."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, Protocol

from lumos.config import Settings
from lumos.config.sources import SourceSettings
from lumos.datasets.reports import SplitDataset
from lumos.discovery.recorder import Outcome
from lumos.discovery.reports import (
    ChangeWord,
    DatasetReport,
    GoneDataset,
    IngestReport,
    IngestSummary,
)
from lumos.discovery.resolve import Lake, ScanFailed, failure_of, places_of
from lumos.discovery.samples import known_datasets, sampled
from lumos.discovery.scanner import Pass, Scanner
from lumos.discovery.state import StateNotUsable, check_state, state_folder
from lumos.errors import LumosError
from lumos.model.change import EventType, Verdict
from lumos.model.discovery import Discovery, Problem
from lumos.progress import Progress
from lumos.schemas.affected import AffectedReport
from lumos.sources import SampledSource, TableSource
from lumos.sources.addresses import access_of
from lumos.storage import DEFAULT_ACCESS, FileSelection, StorageAccess
from lumos.storage.errors import StorageFault
from lumos.store import Store

if TYPE_CHECKING:
    from lumos.discovery.current_schema import Recall
    from lumos.discovery.grouping.state import GroupingState


class Discover(Protocol):
    """Scans a selection of files on some Spark session."""

    def __call__(
        self,
        selection: FileSelection,
        *,
        state: str,
        before: str | None,
        after: str,
        state_access: StorageAccess = DEFAULT_ACCESS,
        left_out: str = "",
        inherited: "GroupingState | None" = None,
        recall: "Recall | None" = None,
    ) -> Discovery: ...


def ingest(
    settings: Settings,
    paths: Sequence[str],
    *,
    store: Callable[[], Store],
    state: str,
    progress: Progress,
    accept_removals: bool = False,
    column_stats: bool = False,
    sections: Sequence[SourceSettings] = (),
    unattended: bool = False,
    short: bool = True,
) -> IngestReport:
    """Scans the sections, or else the paths or the configured sources, and records what changed.

    The store is only opened once everything that can be checked beforehand was found in order.
    Without lakes or samples among them, no Spark is started. Of an `unattended` scan that finds
    nothing new, no audit is kept: there may be thousands a day. Unless `short`,
    more is to come that Spark does.
    """
    started = monotonic()
    several = len(sections or paths or settings.sources) > 1
    places = places_of(settings, paths, sections, as_far_as_possible=several)
    state_access = access_of(state, (*settings.sources, *sections))
    if places.lakes:
        check_state(state, state_access)

    def scanner() -> Scanner:
        return Scanner(
            settings,
            store(),
            accept_removals=accept_removals,
            unattended=unattended,
        )

    passes: list[Pass] = []
    failures = list(places.failures)
    if places.databases:
        from lumos.lineage.views import follow_views

        tables = scanner()
        for source in places.databases:
            try:
                done = _scan_tables(tables, source, settings, progress)
                passes.append(done)
                failures += follow_views(tables.store, done)
            except LumosError as problem:
                if not several:
                    raise
                failures.append(failure_of(source.address, problem))
    if places.lakes:
        remembered = _Remembered(settings, state, state_access)
        stats = column_stats or settings.scan.column_stats
        try:
            for scanned in _scan_lakes(
                scanner, places.lakes, remembered, progress, column_stats=stats, short=short
            ):
                if isinstance(scanned, Pass):
                    passes.append(scanned)
                elif several:
                    failures.append(failure_of(*scanned))
                else:
                    raise scanned.problem
        except LumosError as problem:
            # What databases told is recorded, and is told of.
            if not passes:
                raise
            failures.append(failure_of(", ".join(root.root for _, root in places.lakes), problem))
    return _report(passes, places.addresses, failures, seconds=monotonic() - started)


def _scan_tables(
    scanner: Scanner, source: TableSource, settings: Settings, progress: Progress
) -> Pass:
    step = f"Reading {source.address}"
    progress(step)

    def watch(share: float) -> None:
        progress(step, share=share)

    def look(
        _before: str | None, _after: str, _recall: "Recall"
    ) -> AbstractContextManager[Discovery]:
        if isinstance(source, SampledSource):
            known = known_datasets(scanner.store, source, settings.environment)
            return nullcontext(sampled(source, known, settings, progress))
        return nullcontext(source.read(watch))

    return scanner.scan(source, source.scope, look)


def _scan_lakes(
    scanner: Callable[[], Scanner],
    lakes: Sequence[Lake],
    remembered: "_Remembered",
    progress: Progress,
    *,
    column_stats: bool,
    short: bool,
) -> Iterator["Pass | _FailedLake"]:
    progress("Starting Spark")
    from lumos.spark.session import spark_session

    scanners: list[Scanner] = []

    def prepare() -> None:
        import lumos.discovery.job  # noqa: F401 - takes a while, beside Spark's start

        scanners.append(scanner())

    spark = remembered.settings.spark
    with spark_session(
        master=spark.master, settings=spark.properties(), short=short, meanwhile=prepare
    ) as session:
        from lumos.discovery.job import discover

        for source, root in lakes:
            step = f"Scanning {root.root}"
            progress(step)
            scan = partial(
                discover,
                session,
                column_stats=column_stats,
                watch=partial(report_progress, progress, step),
            )
            source_id = f"{source.identity}:{root.root}"
            look = partial(remembered.look, scan, root, source_id, scanners[0].store)
            try:
                done: Pass | _FailedLake = scanners[0].scan(source, root.root, look)
            except StorageFault as problem:
                done = _FailedLake(root.root, remembered.reason_of(root.root, problem))
            yield done


class _FailedLake(NamedTuple):
    """A root that could not be scanned; the other roots are scanned all the same."""

    root: str
    problem: LumosError


class _Remembered:
    """Lets each scan of a lake begin where the last one ended, and leave as much behind."""

    def __init__(self, settings: Settings, state: str, access: StorageAccess) -> None:
        self.settings = settings
        self._state = state
        self._access = access

    @contextmanager
    def look(
        self,
        discover: Discover,
        root: FileSelection,
        source_id: str,
        store: Store,
        before: str | None,
        after: str,
        recall: "Recall",
    ) -> Iterator[Discovery]:
        from lumos.discovery.manifest import Manifests

        folder = state_folder(self._state, source_id)
        kept = {name for name in (before,) if name is not None}
        try:
            yield discover(
                root,
                state=folder,
                before=before,
                after=after,
                state_access=self._access,
                left_out=self._state,
                inherited=self._inherited(store, source_id),
                recall=recall,
            )
            kept.add(after)
        finally:
            # Of a scan that failed nothing stays.
            Manifests(folder, self._access).forget_all_but(kept)

    def reason_of(self, root: str, problem: StorageFault) -> LumosError:
        """Which storage failed a scan: that of the state if it still fails, or that of the root."""
        try:
            check_state(self._state, self._access)
        except StateNotUsable as unusable:
            return unusable
        return ScanFailed(root, problem)

    def _inherited(self, store: Store, source_id: str) -> "GroupingState | None":
        """What the last scan of the outermost folder above remembers of its grouping, if any."""
        from lumos.discovery.manifest import Manifests

        above = [
            scan for scan in store.scans() if source_id.startswith(f"{scan.source.rstrip('/')}/")
        ]
        if not above:
            return None
        outermost = min(above, key=lambda scan: len(scan.source))
        manifests = Manifests(state_folder(self._state, outermost.source), self._access)
        return manifests.grouping_of(manifests.read(outermost.manifest))


def report_progress(progress: Progress, step: str, files: int, share: float) -> None:
    """Passes on how far a scan is."""
    progress(step, files=files, share=share)


def _report(
    passes: list[Pass], roots: tuple[str, ...], failures: list[Problem], *, seconds: float
) -> IngestReport:
    datasets: dict[str, DatasetReport] = {}
    # Two sources may meet the same one; a place may have several.
    problems = {(each.path, each.code, each.reason): each for each in failures}
    for each in passes:
        datasets.update(
            {outcome.dataset.urn: _dataset_report(outcome) for outcome in each.outcomes}
        )
        problems.update({(m.path, m.code, m.reason): m for m in each.discovery.problems})
    changes = [report.change for report in datasets.values()]
    verdicts = [row.consumer for report in datasets.values() for row in report.changes]
    found = [each.discovery for each in passes]
    missing = tuple(urn for each in passes for urn in each.missing)
    held = tuple(urn for each in passes for urn in each.held)
    return IngestReport(
        summary=IngestSummary(
            files_listed=sum(discovery.files_listed for discovery in found),
            files_read=sum(discovery.files_read for discovery in found),
            files_unchanged=sum(
                discovery.files_listed - discovery.files_read for discovery in found
            ),
            files_failed=sum(discovery.files_failed for discovery in found),
            files_skipped=sum(discovery.files_skipped for discovery in found),
            tables=sum(discovery.tables for discovery in found),
            tables_read=sum(discovery.tables_read for discovery in found),
            datasets_new=changes.count("new"),
            datasets_changed=changes.count("changed"),
            datasets_unchanged=changes.count("unchanged"),
            datasets_missing=len(missing) + len(held),
            breaking_changes=verdicts.count(Verdict.BREAKING) + len(missing),
            undetermined_changes=verdicts.count(Verdict.UNDETERMINED),
            seconds=round(seconds, 3),
        ),
        roots=roots,
        datasets=tuple(datasets.values()),
        missing=missing,
        held=held,
        gone=tuple(
            GoneDataset(urn=event.urn, affected=AffectedReport.of(event))
            for each in passes
            for event in each.removals
        ),
        splits=tuple(SplitDataset.of(event) for each in passes for event in each.splits),
        problems=tuple(problems.values()),
        suggestions=tuple(each for done in passes for each in done.suggestions),
    )


def _dataset_report(outcome: Outcome) -> DatasetReport:
    event = outcome.event
    if event is None:
        return DatasetReport.of(outcome.dataset, change="unchanged")
    change: ChangeWord = "new" if event.type is EventType.CREATED else "changed"
    return DatasetReport.of(outcome.dataset, change=change, event=event, earlier=outcome.earlier)
