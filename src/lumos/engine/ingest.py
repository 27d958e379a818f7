"""`lumos ingest`: from sources through Spark into the store."""

import getpass
import logging
import socket
import uuid
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from time import monotonic
from typing import NamedTuple, Protocol

from lumos.config import Settings
from lumos.engine.recording import Outcome, Recorder
from lumos.engine.reports import DatasetReport, IngestReport, IngestSummary
from lumos.engine.scanning import platform_of, roots_of
from lumos.engine.state import check_state, state_folder
from lumos.model.change import ChangeEvent, EventType
from lumos.model.discovery import Discovery, Problem
from lumos.platforms import Platform
from lumos.sources import LakeSource
from lumos.sources.addresses import access_of
from lumos.storage import USUAL, Access, Selection
from lumos.store import KnownDataset, Scan, Store


class Announce(Protocol):
    """Is told of every step of long work, and how far it is where that is known."""

    def __call__(self, step: str, /, *, files: int = 0, share: float | None = None) -> None: ...


_log = logging.getLogger(__name__)


class Discover(Protocol):
    """Scans a selection of files on some Spark session."""

    def __call__(
        self,
        selection: Selection,
        *,
        state: str,
        before: str | None,
        after: str,
        state_access: Access = USUAL,
        left_out: str = "",
    ) -> Discovery: ...


class _Pass(NamedTuple):
    """What one root's scan and recording came to."""

    discovery: Discovery
    outcomes: tuple[Outcome, ...]
    missing: tuple[str, ...]
    held: tuple[str, ...]


def ingest(
    settings: Settings,
    paths: Sequence[str],
    *,
    store: Callable[[], Store],
    state: str,
    announce: Announce,
    accept_removals: bool = False,
    column_stats: bool = False,
) -> IngestReport:
    """Scans the paths, or else the configured sources, and records what changed.

    The store is only opened once everything that can be checked beforehand was found in order.
    """
    started = monotonic()
    roots = roots_of(settings, paths)
    state_access = access_of(state, settings.sources)
    check_state(state, state_access)
    platform = platform_of(settings)
    announce("Starting Spark")
    from lumos.pipeline.session import spark_session

    stores: list[Store] = []

    def prepare() -> None:
        import lumos.pipeline.discovery  # noqa: F401 - takes a while, beside Spark's start

        stores.append(store())

    passes = []
    with spark_session(
        master=settings.spark.master, settings=settings.spark.properties(), meanwhile=prepare
    ) as spark:
        from lumos.pipeline.discovery import discover

        scanner = _Scanner(
            settings, stores[0], platform, state, state_access, accept_removals=accept_removals
        )
        for source, root in roots:
            step = f"Scanning {root.root}"
            announce(step)
            scan = partial(
                discover,
                spark,
                column_stats=column_stats or settings.scan.column_stats,
                watch=partial(report_progress, announce, step),
            )
            passes.append(scanner.scan(scan, source, root))
    places = tuple(root.root for _, root in roots)
    return _report(passes, places, seconds=monotonic() - started)


def report_progress(announce: Announce, step: str, files: int, share: float) -> None:
    """Passes on how far a scan is."""
    announce(step, files=files, share=share)


class _Scanner:
    """Scans one root after another and makes each scan's manifest current with its last change."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        platform: Platform | None,
        state: str,
        state_access: Access,
        *,
        accept_removals: bool,
    ) -> None:
        self._accept_removals = accept_removals
        self._settings = settings
        self._store = store
        self._platform = platform
        self._state = state
        self._state_access = state_access

    def scan(self, discover: Discover, source: LakeSource, root: Selection) -> _Pass:
        source_id = f"{source.identity}:{root.root}"
        with self._store.alone(source_id):
            _log.info("scan started", extra={"facts": {"source": source_id}})
            done = self._scan_alone(discover, source, root, source_id)
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

    def _scan_alone(
        self, discover: Discover, source: LakeSource, root: Selection, source_id: str
    ) -> _Pass:
        last = self._store.last_scan(source_id)
        folder = state_folder(self._state, source_id)
        number = 1 if last is None else int(last.scan_id.partition("-")[0]) + 1
        scan_id = f"{number:06d}-{uuid.uuid4().hex[:8]}"
        before = None if last is None else last.manifest
        scan = Scan(
            source=source_id, scan_id=scan_id, manifest=scan_id, finished_at=datetime.now(UTC)
        )
        from lumos.pipeline.manifest import Manifests

        kept = {name for name in (before,) if name is not None}
        try:
            discovery = discover(
                root,
                state=folder,
                before=before,
                after=scan_id,
                state_access=self._state_access,
                left_out=self._state,
            )
            done = self._record(source, scan, discovery)
            kept.add(scan_id)
        finally:
            # Of a scan that failed nothing stays.
            Manifests(folder, self._state_access).forget_all_but(kept)
        return done

    def _record(self, source: LakeSource, scan: Scan, discovery: Discovery) -> _Pass:
        settings = self._settings
        recorder = Recorder(
            self._store,
            source=scan.source,
            prefix=settings.cloud_version_prefix,
            platform=self._platform,
            urn_of=partial(source.urn, environment=settings.environment),
            at=scan.finished_at,
        )
        known = self._store.known(source=scan.source)
        named = (
            (source.urn(found.path, environment=settings.environment), found)
            for found in discovery.datasets
        )
        outcomes = list(recorder.record(named, known))
        for outcome in outcomes:
            if outcome.event is not None:
                _log_change(outcome.event)
        seen = {outcome.dataset.urn for outcome in outcomes}
        seen |= {
            str(source.urn(path, environment=settings.environment))
            for found in discovery.datasets
            for path in filter(None, (found.renamed_from, *found.merged_from))
        }
        gone, held = self._missing(source, discovery, known, seen)
        with self._store.transaction() as transaction:
            for dataset in gone:
                recorder.remove(transaction, dataset)
            transaction.save_scan(scan)
            transaction.audit(
                "ingest",
                scan.source,
                actor=getpass.getuser(),
                origin=socket.gethostname(),
                at=scan.finished_at,
            )
        return _Pass(discovery, tuple(outcomes), missing=_urns(gone), held=_urns(held))

    def _missing(
        self,
        source: LakeSource,
        discovery: Discovery,
        known: dict[str, KnownDataset],
        seen: set[str],
    ) -> tuple[list[KnownDataset], list[KnownDataset]]:
        """The datasets that are gone, and those whose absence is too doubtful to believe."""
        live = [dataset for dataset in known.values() if dataset.state == "live"]
        absent = [dataset for dataset in live if dataset.urn not in seen]
        unreadable = {
            str(source.urn(problem.path, environment=self._settings.environment))
            for problem in discovery.problems
            if not problem.remark
        }
        most = self._settings.scan.max_removed_share * len(live)
        if self._accept_removals:
            # Whoever says so is believed, but for places that nobody could look into.
            held = [each for each in absent if _lies_in(each, unreadable)]
        elif not discovery.complete or len(absent) > most:
            held = absent
        else:
            held = [each for each in absent if _may_hold(each, unreadable)]
        kept = {each.urn for each in held}
        return [each for each in absent if each.urn not in kept], held


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


def _report(passes: list[_Pass], roots: tuple[str, ...], *, seconds: float) -> IngestReport:
    datasets: dict[str, DatasetReport] = {}
    problems: dict[str, Problem] = {}
    for each in passes:
        datasets.update(
            {outcome.dataset.urn: _dataset_report(outcome) for outcome in each.outcomes}
        )
        problems.update({problem.path: problem for problem in each.discovery.problems})
    changes = [report.change for report in datasets.values()]
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
            datasets_new=changes.count("new"),
            datasets_changed=changes.count("changed"),
            datasets_unchanged=changes.count("unchanged"),
            datasets_missing=len(missing) + len(held),
            seconds=round(seconds, 3),
        ),
        roots=roots,
        datasets=tuple(datasets.values()),
        missing=missing,
        held=held,
        problems=tuple(problems.values()),
    )


def _dataset_report(outcome: Outcome) -> DatasetReport:
    event = outcome.event
    if event is None:
        return DatasetReport.of(outcome.dataset, change="unchanged", findings=())
    if event.type is EventType.CREATED:
        return DatasetReport.of(outcome.dataset, change="new", findings=())
    return DatasetReport.of(outcome.dataset, change="changed", findings=event.findings)
