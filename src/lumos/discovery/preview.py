"""`lumos discover`: what lies in a place, before anything is recorded."""

import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import monotonic

import msgspec

from lumos.config import Settings
from lumos.config.starter import check_overwrite, write_sources
from lumos.discovery.ingest import report_progress
from lumos.discovery.recorder import dataset_of
from lumos.discovery.reports import DatasetReport, DiscoverReport, DiscoverSummary
from lumos.discovery.resolve import Lake, places_of, sections_of
from lumos.discovery.samples import sampled
from lumos.discovery.scanner import suggestions_of
from lumos.discovery.state import check_state
from lumos.model.discovery import Discovery
from lumos.progress import Progress
from lumos.sources import SampledSource, Source
from lumos.sources.addresses import access_of
from lumos.storage import DEFAULT_ACCESS, StorageAccess


def discover(
    settings: Settings,
    paths: Sequence[str],
    *,
    state: str,
    progress: Progress,
    write_config: Path | None = None,
    force: bool = False,
) -> DiscoverReport:
    """Scans the paths afresh and tells what is there; nothing is recorded.

    What is found may become a configuration, which replaces one that is there by `force` alone.
    """
    if write_config is None:
        return _looked_at(settings, paths, state, progress)
    check_overwrite(write_config, force=force)
    found = _looked_at(settings, paths, state, progress)
    lines = [
        f"{each.location.uri if each.location else each.urn}  {each.format}"
        for each in found.datasets
    ]
    write_sources(write_config, sections_of(settings, paths), found=lines, force=force)
    return msgspec.structs.replace(found, config=str(write_config))


def _looked_at(
    settings: Settings, paths: Sequence[str], state: str, progress: Progress
) -> DiscoverReport:
    started = monotonic()
    places = places_of(settings, paths)
    looks: list[tuple[Source, Discovery]] = []
    for source in places.databases:
        progress(f"Reading {source.address}")
        if isinstance(source, SampledSource):
            found_there = sampled(source, lambda _path: None, settings, progress)
        else:
            found_there = source.read(lambda _share: None)
        looks.append((source, found_there))
    if places.lakes:
        looks += _scanned(settings, places.lakes, state, progress)
    found = [discovery for _, discovery in looks]
    datasets = tuple(
        dataset_of(each, source.urn(each.path, environment=settings.environment))
        for source, discovery in looks
        for each in discovery.datasets
    )
    return DiscoverReport(
        summary=DiscoverSummary(
            files_listed=sum(each.files_listed for each in found),
            files_failed=sum(each.files_failed for each in found),
            files_skipped=sum(each.files_skipped for each in found),
            tables=sum(each.tables for each in found),
            datasets=len(datasets),
            complete=all(each.complete for each in found),
            seconds=round(monotonic() - started, 3),
        ),
        roots=places.addresses,
        datasets=tuple(DatasetReport.of(dataset, change="new") for dataset in datasets),
        problems=tuple(problem for each in found for problem in each.problems),
        suggestions=tuple(
            suggestion
            for source, discovery in looks
            for suggestion in suggestions_of(
                discovery, partial(source.urn, environment=settings.environment)
            )
        ),
    )


def _scanned(
    settings: Settings, lakes: Iterable[Lake], state: str, progress: Progress
) -> Iterator[tuple[Source, Discovery]]:
    progress("Starting Spark")
    from lumos.discovery.job import discover as scan
    from lumos.spark.session import spark_session

    with spark_session(master=settings.spark.master, settings=settings.spark.properties()) as spark:
        for source, root in lakes:
            step = f"Scanning {root.root}"
            progress(step)
            with _passing_state(settings, state) as (folder, access):
                yield (
                    source,
                    scan(
                        spark,
                        root,
                        state=folder,
                        before=None,
                        after="found",
                        state_access=access,
                        left_out=state,
                        watch=partial(report_progress, progress, step),
                    ),
                )


@contextmanager
def _passing_state(settings: Settings, state: str) -> Iterator[tuple[str, StorageAccess]]:
    """A folder where tasks may leave what they find; nothing of it stays."""
    from lumos.discovery.manifest import Manifests
    from lumos.spark.session import is_local

    if is_local(settings.spark.master):
        with tempfile.TemporaryDirectory(prefix="lumos-") as folder:
            yield folder, DEFAULT_ACCESS
        return
    # Executors elsewhere can only write where the state of scans lies.
    access = access_of(state, settings.sources)
    check_state(state, access)
    folder = f"{state}/discover-{uuid.uuid4().hex[:8]}"
    try:
        yield folder, access
    finally:
        Manifests(folder, access).forget_all_but(set())
