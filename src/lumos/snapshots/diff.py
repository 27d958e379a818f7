"""Compares two catalogs or snapshots."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any, Final, TypeVar

from lumos.config import Settings
from lumos.errors import LumosError, MisuseError, UnknownName
from lumos.progress import Progress
from lumos.snapshots.catalogs import SnapshotCatalogs, SnapshotNotFound
from lumos.snapshots.export import ExportOptions, export
from lumos.snapshots.format.comparison import compare
from lumos.snapshots.format.differences import COMPARED, OPTIONAL_ASPECTS, Difference
from lumos.snapshots.format.reader import open_snapshot
from lumos.snapshots.on_spark import compare_folders, compare_schemas
from lumos.snapshots.reports import DiffSummary, MigratedCount, SnapshotDiffReport, SparkDiffReport

ALL_ASPECTS: Final = (*COMPARED, *OPTIONAL_ASPECTS)
_MAX_DIFFERENCES: Final = 100_000


def diff(
    catalogs: SnapshotCatalogs,
    source: str,
    target: str,
    *,
    aspects: Iterable[str] = (),
    mapping: Path | None = None,
    progress: Progress,
) -> SnapshotDiffReport:
    """Compare two sides, each a catalog or a snapshot; `mapping` lists renamed datasets."""
    from lumos.catalogs.migration.mapping import Mapping, write_mapped
    from lumos.catalogs.raw_records import normalize_raw

    aspects_to_compare = _check_aspects(aspects)
    names = None if mapping is None else Mapping.read(mapping)
    with (
        TemporaryDirectory(prefix="lumos-") as folder,
        _export_sides(catalogs, (source, target), progress) as (before, after),
    ):
        if names is not None and not names.is_empty:
            mapped = Path(folder) / "mapped.jsonl"
            with open_snapshot(before) as snapshot:
                write_mapped(snapshot, names, mapped, created=names.target_names)
            before = mapped
        progress("comparing")
        # Raw records only have to be normalised if the sides come from different kinds of catalogs.
        kinds = {_kind_of(before), _kind_of(after)}
        summary = DiffSummaryBuilder()
        for difference in compare(
            before,
            after,
            compare_schemas=compare_schemas,
            aspects=aspects_to_compare,
            normalize=partial(normalize_raw, kinds=kinds) if len(kinds) > 1 else None,
        ):
            summary.add(difference)
        return summary.report(source, target, before)


def _kind_of(file: Path) -> str:
    """The kind of the catalog that a snapshot comes from."""
    with open_snapshot(file) as snapshot:
        return (snapshot.header.platform or "").partition(":")[0]


def diff_on_spark(
    settings: Settings, source: Path, target: Path, *, to: Path, aspects: Iterable[str] = ()
) -> SparkDiffReport:
    """Compare two Parquet snapshots on Spark."""
    from lumos.spark.session import spark_session

    aspects_to_compare = _check_aspects(aspects)
    for side in (source, target):
        if not side.exists():
            raise SnapshotNotFound(Path(side))
    if to.exists():
        raise MisuseError(f"{to} already exists. Name a new folder.")
    spark = settings.spark
    with spark_session(master=spark.master, settings=spark.properties(), short=False) as session:
        sums = compare_folders(session, source, target, to=to, aspects=aspects_to_compare)
    return SparkDiffReport(
        source=str(source),
        target=str(target),
        folder=str(to),
        added=sums.added,
        removed=sums.removed,
        changed=sums.changed,
        breaking=sums.impacts.get("breaking", 0),
        non_breaking=sums.impacts.get("non-breaking", 0),
        informational=sums.impacts.get("informational", 0),
    )


def _check_aspects(aspects: Iterable[str]) -> tuple[str, ...]:
    """The aspects to compare, by default COMPARED; raises UnknownName."""
    aspects_to_compare = tuple(aspects) or COMPARED
    for aspect in aspects_to_compare:
        if aspect not in ALL_ASPECTS:
            raise UnknownName("aspect", aspect, ALL_ASPECTS)
    return aspects_to_compare


@contextmanager
def _export_sides(
    catalogs: SnapshotCatalogs, sides: Sequence[str], progress: Progress
) -> Iterator[list[Path]]:
    """The snapshots of both sides; catalogs are exported to temporary files.

    Catalogs are read concurrently, since most of the time is spent waiting for them.
    """
    cancellation = Cancellation()

    def report(step: str, **details: Any) -> None:
        cancellation.check()
        progress(step, **details)

    # A cancelled thread may still write to the folder.
    with TemporaryDirectory(prefix="lumos-", ignore_cleanup_errors=True) as folder:
        files = [
            start_thread(
                partial(_export_side, catalogs, side, Path(folder) / f"{number}.jsonl", report),
                "lumos-export",
            )
            for number, side in enumerate(sides)
        ]
        try:
            snapshots = wait_for_all(files)
        finally:
            cancellation.cancel()
        yield snapshots


def _export_side(catalogs: SnapshotCatalogs, side: str, file: Path, progress: Progress) -> Path:
    if not catalogs.is_named(side):
        return catalogs.snapshot(side)
    options = ExportOptions(ranges=True)
    with closing(catalogs.named_for_reading(side)) as catalog:
        export(catalog, file, options, at=datetime.now(UTC), progress=progress)
    return file


class DiffSummaryBuilder:
    """Collects differences, and counts what the target lacks."""

    def __init__(self) -> None:
        self._differences: list[Difference] = []
        self._impacts: Counter[str] = Counter()
        self._aspects: Counter[str] = Counter()
        self._entries = 0
        self._last: tuple[str, str] | None = None
        self._lost_datasets: set[str] = set()
        self._lost_edges = 0
        self._lost_tags: dict[str, None] = {}

    def add(self, difference: Difference) -> None:
        if len(self._differences) < _MAX_DIFFERENCES:
            self._differences.append(difference)
        self._impacts[difference.impact] += 1
        self._aspects[difference.aspect] += 1
        if (difference.kind, difference.key) != self._last:
            self._last = (difference.kind, difference.key)
            self._entries += 1
        if difference.kind != "dataset" or difference.change != "removed":
            return
        match difference.aspect:
            case "entry":
                self._lost_datasets.add(difference.key)
            case "lineage" if _is_edge(difference.path):
                self._lost_edges += 1
            case "governance" if difference.path == "tags":
                self._lost_tags[str(difference.before)] = None

    def report(self, source: str, target: str, before: Path) -> SnapshotDiffReport:
        datasets, edges, lost_edges = self._sizes(before)
        return SnapshotDiffReport(
            source=source,
            target=target,
            datasets=MigratedCount(source=datasets, target=datasets - len(self._lost_datasets)),
            lineage_edges=MigratedCount(source=edges, target=edges - lost_edges),
            missing_tags=tuple(self._lost_tags),
            summary=DiffSummary(
                entries=self._entries,
                differences=self._impacts.total(),
                breaking=self._impacts["breaking"],
                non_breaking=self._impacts["non-breaking"],
                informational=self._impacts["informational"],
                aspects=dict(sorted(self._aspects.items())),
            ),
            differences=tuple(self._differences),
            left_out=self._impacts.total() - len(self._differences),
        )

    def _sizes(self, before: Path) -> tuple[int, int, int]:
        """The number of datasets and edges of the source, and of edges that the target lacks."""
        with open_snapshot(before) as snapshot:
            counts = snapshot.header.counts
            has_hashes = snapshot.header.hashes is not None
            if counts is not None and has_hashes and not counts.deleted and not self._lost_datasets:
                return counts.datasets, counts.lineage_edges, self._lost_edges
            datasets = edges = 0
            lost_edges = self._lost_edges
            for entry in snapshot.datasets():
                if entry.deleted:
                    continue
                upstream_edges = len(entry.lineage.upstream) if entry.lineage else 0
                datasets += 1
                edges += upstream_edges
                if entry.urn in self._lost_datasets:
                    lost_edges += upstream_edges
        return datasets, edges, lost_edges


def _is_edge(path: str) -> bool:
    """Whether a difference in lineage is about an entire upstream edge."""
    return path.startswith("upstream[") and path.endswith("]") and ".columns[" not in path


T = TypeVar("T")


class Cancelled(LumosError):
    """The work was cancelled."""

    def __init__(self) -> None:
        super().__init__("Cancelled.")


class Cancellation:
    """Cancels work in other threads."""

    def __init__(self) -> None:
        self._cancelled = Event()

    def cancel(self) -> None:
        """Cancel the work at its next check."""
        self._cancelled.set()

    def check(self) -> None:
        """Raise Cancelled if the work was cancelled."""
        if self._cancelled.is_set():
            raise Cancelled

    def until_cancelled(self, values: Iterable[T]) -> Iterator[T]:
        """Yield the values; raises Cancelled when the work is cancelled."""
        for value in values:
            self.check()
            yield value


def start_thread(work: Callable[[], T], name: str) -> "Future[T]":
    """Call `work` in a daemon thread.

    At exit, the process does not wait for the thread, as it would for an executor: a catalog may
    take minutes to time out.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            result = work()
        except BaseException as problem:  # noqa: BLE001 - raised where it is waited for
            future.set_exception(problem)
        else:
            future.set_result(result)

    Thread(target=run, name=name, daemon=True).start()
    return future


def wait_for_all(futures: "Sequence[Future[T]]") -> list[T]:
    """The results of all futures; raises the first error without waiting for the others."""
    done, _ = wait(futures, return_when=FIRST_EXCEPTION)
    for future in done:
        future.result()
    return [future.result() for future in futures]
