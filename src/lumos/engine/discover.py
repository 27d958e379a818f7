"""`lumos discover`: what lies in a place, before anything is recorded."""

import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from time import monotonic

from lumos.config import Settings
from lumos.engine.ingest import Announce, report_progress
from lumos.engine.recording import dataset_of
from lumos.engine.reports import DatasetReport, DiscoverReport, DiscoverSummary
from lumos.engine.scanning import roots_of
from lumos.engine.state import check_state
from lumos.model.discovery import Discovery, Problem
from lumos.sources.addresses import access_of
from lumos.storage import USUAL, Access


def discover(
    settings: Settings, paths: Sequence[str], *, state: str, announce: Announce
) -> DiscoverReport:
    """Scans the paths afresh and tells what is there; store and configuration stay as they are."""
    started = monotonic()
    roots = roots_of(settings, paths)
    announce("Starting Spark")
    from lumos.pipeline.discovery import discover as scan
    from lumos.pipeline.session import spark_session

    found: list[Discovery] = []
    datasets: list[DatasetReport] = []
    problems: list[Problem] = []
    with spark_session(master=settings.spark.master, settings=settings.spark.properties()) as spark:
        for source, root in roots:
            step = f"Scanning {root.root}"
            announce(step)
            with _passing_state(settings, state) as (folder, access):
                discovery = scan(
                    spark,
                    root,
                    state=folder,
                    before=None,
                    after="found",
                    state_access=access,
                    left_out=state,
                    watch=partial(report_progress, announce, step),
                )
            found.append(discovery)
            problems.extend(discovery.problems)
            for each in discovery.datasets:
                urn = source.urn(each.path, environment=settings.environment)
                dataset = dataset_of(each, urn)
                datasets.append(DatasetReport.of(dataset, change="new", findings=()))
    return DiscoverReport(
        summary=DiscoverSummary(
            files_listed=sum(each.files_listed for each in found),
            files_failed=sum(each.files_failed for each in found),
            datasets=len(datasets),
            complete=all(each.complete for each in found),
            seconds=round(monotonic() - started, 3),
        ),
        roots=tuple(root.root for _, root in roots),
        datasets=tuple(datasets),
        problems=tuple(problems),
    )


@contextmanager
def _passing_state(settings: Settings, state: str) -> Iterator[tuple[str, Access]]:
    """A folder where tasks may leave what they find; nothing of it stays."""
    from lumos.pipeline.manifest import Manifests
    from lumos.pipeline.session import is_local

    if is_local(settings.spark.master):
        with tempfile.TemporaryDirectory(prefix="lumos-") as folder:
            yield folder, USUAL
        return
    # Executors elsewhere can only write where the state of scans lies.
    access = access_of(state, settings.sources)
    check_state(state, access)
    folder = f"{state}/discover-{uuid.uuid4().hex[:8]}"
    try:
        yield folder, access
    finally:
        Manifests(folder, access).forget_all_but(set())
