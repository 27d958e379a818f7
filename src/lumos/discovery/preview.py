"""`lumos discover`: reports the datasets that a scan finds, without recording them."""

import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import monotonic

from msgspec.structs import replace

from lumos.config import Settings
from lumos.config.starter import check_overwrite, write_sources
from lumos.discovery.dataset_recorder import dataset_of
from lumos.discovery.reports import DatasetReport, DiscoverReport, DiscoverSummary
from lumos.discovery.scan_recorder import suggestions_with_urns
from lumos.discovery.scans import check_state, sample_source
from lumos.discovery.targets import LakeTarget, resolve_targets, select_sections
from lumos.model.compressed_list import CompressedList
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
    """Scan the paths and report their datasets; nothing is recorded.

    `write_config` is a file for a configuration of these sources; an existing file is only replaced
    with `force`.
    """
    if write_config is None:
        return _preview(settings, paths, state, progress)
    check_overwrite(write_config, force=force)
    report = _preview(settings, paths, state, progress)
    lines = [
        f"{each.location.uri if each.location else each.urn}  {each.format}"
        for each in report.datasets
    ]
    write_sources(write_config, select_sections(settings, paths), datasets=lines, force=force)
    return replace(report, config=str(write_config))


def _preview(
    settings: Settings, paths: Sequence[str], state: str, progress: Progress
) -> DiscoverReport:
    started = monotonic()
    targets = resolve_targets(settings, paths)
    discoveries: list[tuple[Source, Discovery]] = []
    for target in targets.databases:
        source = target.source
        progress(f"Reading {source.address}")
        if isinstance(source, SampledSource):
            discovery = sample_source(source, lambda _path: None, settings, progress)
        else:
            discovery = source.read(lambda _share: None)
        discoveries.append((source, discovery))
    if targets.lakes:
        discoveries += _scan_lakes(settings, targets.lakes, state, progress)
    all_discoveries = [discovery for _, discovery in discoveries]
    datasets = CompressedList(
        DatasetReport,
        (
            DatasetReport.of(
                dataset_of(each, source.urn(each.path, environment=settings.environment)),
                change="new",
            )
            for source, discovery in discoveries
            for each in discovery.datasets
        ),
    )
    return DiscoverReport(
        summary=DiscoverSummary(
            files_listed=sum(each.files_listed for each in all_discoveries),
            files_failed=sum(each.files_failed for each in all_discoveries),
            files_skipped=sum(each.files_skipped for each in all_discoveries),
            tables=sum(each.tables for each in all_discoveries),
            datasets=len(datasets),
            complete=all(each.complete for each in all_discoveries),
            seconds=round(monotonic() - started, 3),
        ),
        roots=tuple(each.address for each in targets.all),
        datasets=datasets,
        problems=tuple(problem for each in all_discoveries for problem in each.problems),
        suggestions=tuple(
            suggestion
            for source, discovery in discoveries
            for suggestion in suggestions_with_urns(
                discovery.suggestions, partial(source.urn, environment=settings.environment)
            )
        ),
    )


def _scan_lakes(
    settings: Settings, lakes: Iterable[LakeTarget], state: str, progress: Progress
) -> Iterator[tuple[Source, Discovery]]:
    progress("Starting Spark")
    from lumos.discovery.lake.job import scan_lake
    from lumos.spark.session import spark_session

    with spark_session(master=settings.spark.master, settings=settings.spark.properties()) as spark:
        for source, selection in lakes:
            step = f"Scanning {selection.root}"
            progress(step)

            def report(files: int, share: float, step: str = step) -> None:
                progress(step, files=files, share=share)

            with _temporary_state(settings, state) as (folder, access):
                discovery = scan_lake(
                    spark,
                    selection,
                    state=folder,
                    before=None,
                    after="found",
                    state_access=access,
                    excluded_uri=state,
                    report_progress=report,
                )
            yield source, discovery


@contextmanager
def _temporary_state(settings: Settings, state: str) -> Iterator[tuple[str, StorageAccess]]:
    """A folder for the results of tasks, whose contents are deleted afterwards."""
    from lumos.discovery.lake.manifest import ManifestStore
    from lumos.spark.session import is_local

    if is_local(settings.spark.master):
        with tempfile.TemporaryDirectory(prefix="lumos-") as folder:
            yield folder, DEFAULT_ACCESS
        return
    # The executors of a cluster cannot write to a local folder, but to the folder of scan states.
    access = access_of(state, settings.sources)
    check_state(state, access)
    folder = f"{state}/discover-{uuid.uuid4().hex[:8]}"
    try:
        yield folder, access
    finally:
        ManifestStore(folder, access).delete_all_but(set())
