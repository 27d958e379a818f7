"""`lumos ingest`: resolve -> discover -> record -> publish -> notify."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from itertools import chain
from threading import Lock
from time import monotonic
from typing import Final, NamedTuple, Protocol
from urllib.parse import urlsplit

from msgspec.structs import replace

from lumos.catalogs.auto_publisher import AutoPublisher
from lumos.config import Settings
from lumos.config.sources import SourceSettings
from lumos.discovery.reports import (
    DatasetReport,
    GoneDataset,
    IngestReport,
    IngestSummary,
)
from lumos.discovery.scan_recorder import RecordedScan
from lumos.discovery.scans import OpenScan, SourceScanner
from lumos.discovery.targets import (
    DatabaseTarget,
    LakeTarget,
    ScanTarget,
    ScanTargets,
    is_below,
    resolve_targets,
    source_failure,
)
from lumos.errors import LumosError
from lumos.lineage.reported_lineage import DatasetRead, UrnReference
from lumos.model.compressed_list import CompressedList
from lumos.model.discovery import Discovery, Problem
from lumos.progress import Progress
from lumos.schemas.changes import SplitDataset, forget_old_events
from lumos.schemas.export import mirror_schemas
from lumos.schemas.report_parts import AffectedReport
from lumos.sources import SampledSource
from lumos.sources.addresses import access_of
from lumos.storage.errors import StorageFault
from lumos.store import Store

_MAX_GROUPS: Final = 8


class MessageSender(Protocol):
    """Sends the notifications in the outbox in the background."""

    def wake(self) -> None: ...


class RowProfiler(Protocol):
    """Profiles the datasets of a report that are new, changed or not completely profiled."""

    def completed(self, scanned: IngestReport, progress: Progress) -> IngestReport: ...


class ReadRecorder(Protocol):
    """Counts reads of datasets by URN; reads that were counted before are not counted again."""

    def __call__(self, reporter: str, reads: Iterable[tuple[str, DatasetRead]]) -> object: ...


def ingest(
    settings: Settings,
    paths: Sequence[str],
    *,
    open_store: Callable[[], Store],
    state: str,
    progress: Progress,
    profiler: RowProfiler | None = None,
    publisher: AutoPublisher | None = None,
    sender: MessageSender | None = None,
    record_reads: ReadRecorder | None = None,
    accept_removals: bool = False,
    column_stats: bool = False,
    sections: Sequence[SourceSettings] = (),
    unattended: bool = False,
    changed: Collection[str] | None = None,
) -> IngestReport:
    """Scan the sections if given, else the paths, else the configured sources; record changes.

    A failing source does not stop the others. Sources on the same server are read one after
    another, and so are sources that need Spark; all others are read in parallel. Every change is
    committed to the store together with its notifications and its entry in the catalog outbox. If
    the process is killed, the next run publishes and sends the rest of both outboxes. Spark is only
    started for lakes and samples. `changed` limits the scan to these paths and the lakes that
    contain them.
    """
    started = monotonic()
    if publisher is not None:
        publisher.check()
    has_several = len(sections or paths or settings.sources) > 1
    targets = resolve_targets(settings, paths, sections, skip_unusable=has_several)
    scanner = SourceScanner(
        settings,
        targets,
        open_store=open_store,
        state=state,
        state_access=access_of(state, (*settings.sources, *sections)),
        progress=progress,
        column_stats=column_stats or settings.scan.column_stats,
        short=profiler is None,
    )
    recording = Lock()

    def scan(target: ScanTarget) -> _ScannedTarget:
        changed_here = None
        if changed is not None and isinstance(target, LakeTarget):
            changed_here = [path for path in changed if is_below(path, target.address)]
            if not changed_here:
                return _ScannedTarget()
        try:
            with scanner.begin(target) as open_scan:
                discovery = scanner.discover(open_scan, changed=changed_here)
                with recording:
                    recorded = open_scan.recorder.record(
                        discovery, accept_removals=accept_removals, unattended=unattended
                    )
                    if record_reads is not None and discovery.reads:
                        reads = _reads_by_urn(open_scan, discovery, settings)
                        record_reads(open_scan.scan.source, reads)
            if isinstance(target, LakeTarget) or not settings.switches.is_on("lineage"):
                return _ScannedTarget(recorded)
            # Imported late: the SQL parser is only needed for databases.
            from lumos.lineage.views import record_view_lineage

            with recording:
                problems = record_view_lineage(scanner.store, recorded)
            return _ScannedTarget(recorded, tuple(problems))
        except StorageFault as fault:
            failed = scanner.explain_fault(target, fault)
            if not has_several:
                raise failed from fault
            return _ScannedTarget(failures=(source_failure(target.address, failed),))
        except LumosError as problem:
            if not (has_several and isinstance(target, DatabaseTarget)):
                raise
            return _ScannedTarget(failures=(source_failure(target.address, problem),))

    # Results by id(target), since several sources may read one database.
    scanned: dict[int, _ScannedTarget] = {}

    def scan_group(group: Sequence[ScanTarget]) -> None:
        for target in group:
            scanned[id(target)] = scan(target)

    failures = list(targets.failures)
    first, *others = _groups_without_shared_limits(targets) or ([],)
    try:
        with scanner, ThreadPoolExecutor(_MAX_GROUPS) as threads:
            if others:
                _ = scanner.store
            running = [threads.submit(copy_context().run, scan_group, group) for group in others]
            try:
                scan_group(first)
            finally:
                for each in running:
                    each.result()
    except LumosError as problem:
        # Without Spark no lake can be scanned, but other results are still reported.
        if not any(each.recorded for each in scanned.values()):
            raise
        lakes = ", ".join(each.address for each in targets.lakes)
        failures.append(source_failure(lakes, problem))
    in_order = [scanned[id(each)] for each in targets.all if id(each) in scanned]
    failures += [problem for each in in_order for problem in each.failures]
    scans = [each.recorded for each in in_order if each.recorded is not None]
    addresses = [each.address for each in targets.all]
    report = build_report(scans, addresses, failures, seconds=monotonic() - started)
    changed_urns = {
        urn
        for each in scans
        for urn, change in each.changes.items()
        if change.change != "unchanged"
    }
    mirror_schemas(scanner.store, changed_urns, storage=settings.storage)
    forget_old_events(scanner.store, None, days=settings.storage.modified_retention_days)
    if profiler is not None:
        report = profiler.completed(report, progress)
    if publisher is not None:
        report = replace(report, catalog=publisher.publish(progress))
    if sender is not None:
        sender.wake()
    return report


class _ScannedTarget(NamedTuple):
    """The result of one target; nothing is recorded if it failed or has not changed."""

    recorded: RecordedScan | None = None
    failures: tuple[Problem, ...] = ()


def _groups_without_shared_limits(targets: ScanTargets) -> list[list[ScanTarget]]:
    """Targets in groups by server; the first group has the targets that need Spark, if any."""
    groups: dict[str, list[ScanTarget]] = {}
    for each in targets.all:
        if isinstance(each, LakeTarget) or isinstance(each.source, SampledSource):
            server = ""
        else:
            server = urlsplit(each.address).netloc.rpartition("@")[2] or each.address
        groups.setdefault(server, []).append(each)
    return [groups[server] for server in sorted(groups, key=bool)]


def _reads_by_urn(
    scan: OpenScan, discovery: Discovery, settings: Settings
) -> list[tuple[str, DatasetRead]]:
    """The reads that a source reported, by URN."""
    reads = []
    for read in discovery.reads:
        urn = str(scan.target.source.urn(read.path, environment=settings.environment))
        run = f"{scan.scan.source}/{read.reader}/{read.position}"
        at = scan.scan.finished_at
        dataset = UrnReference(urn=urn)
        reads.append((urn, DatasetRead(dataset=dataset, reader=read.reader, at=at, run=run)))
    return reads


def build_report(
    scans: Sequence[RecordedScan],
    targets: Sequence[str],
    failures: Sequence[Problem],
    *,
    seconds: float,
) -> IngestReport:
    """The report of several scans; `targets` are the addresses that were scanned."""
    # Two sources may report the same problem, or the same dataset.
    all_problems = (*failures, *(each for scan in scans for each in scan.discovery.problems))
    problems = {(each.path, each.code, each.reason): each for each in all_problems}
    outcomes = {urn: change for each in scans for urn, change in each.changes.items()}
    changes = Counter(each.change for each in outcomes.values())
    breaking = {id: count for each in scans for id, count in each.breaking.items()}
    discoveries = [each.discovery for each in scans]
    missing = tuple(urn for each in scans for urn in each.missing)
    unconfirmed = tuple(urn for each in scans for urn in each.unconfirmed)
    return IngestReport(
        summary=IngestSummary(
            files_listed=sum(discovery.files_listed for discovery in discoveries),
            files_read=sum(discovery.files_read for discovery in discoveries),
            files_unchanged=sum(
                discovery.files_listed - discovery.files_read for discovery in discoveries
            ),
            files_failed=sum(discovery.files_failed for discovery in discoveries),
            files_skipped=sum(discovery.files_skipped for discovery in discoveries),
            tables=sum(discovery.tables for discovery in discoveries),
            tables_read=sum(discovery.tables_read for discovery in discoveries),
            datasets_new=changes["new"],
            datasets_changed=changes["changed"],
            datasets_unchanged=changes["unchanged"],
            datasets_missing=len(missing) + len(unconfirmed),
            breaking_changes=sum(breaking.values()),
            undetermined_changes=sum(each.undetermined for each in outcomes.values()),
            seconds=round(seconds, 3),
        ),
        roots=tuple(targets),
        datasets=_join([each.datasets for each in scans], count=len(outcomes)),
        missing=missing,
        held=unconfirmed,
        gone=tuple(
            GoneDataset(urn=event.urn, affected=AffectedReport.of(event))
            for each in scans
            for event in each.removals
        ),
        splits=tuple(SplitDataset.of(event) for each in scans for event in each.splits),
        problems=tuple(problems.values()),
        suggestions=tuple(each for scan in scans for each in scan.suggestions),
    )


def _join(reports: Sequence[Sequence[DatasetReport]], *, count: int) -> Sequence[DatasetReport]:
    """The reports of several scans on `count` datasets; for each dataset, only the last report."""
    if len(reports) == 1 and len(reports[0]) == count:
        return reports[0]
    last = {each.urn: number for number, each in enumerate(chain.from_iterable(reports))}
    return CompressedList(
        DatasetReport,
        (
            each
            for number, each in enumerate(chain.from_iterable(reports))
            if last[each.urn] == number
        ),
    )
