"""What differs between two catalogs or snapshots, and how much of the one is in the other."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from lumos.config import Settings
from lumos.errors import MisuseError, UnknownName
from lumos.progress import Progress
from lumos.snapshots.background import Wish, all_or_first_failure, begun
from lumos.snapshots.endpoints import Catalogs, NoSnapshot
from lumos.snapshots.export import Wanted, export
from lumos.snapshots.format.comparison import compare
from lumos.snapshots.format.differences import ASPECTS_BESIDE, COMPARED, Difference
from lumos.snapshots.format.reader import open_snapshot
from lumos.snapshots.on_spark import compare_folders, judged
from lumos.snapshots.reports import DiffSummary, Migrated, SnapshotDiffReport, SparkDiffReport

EVERYTHING: Final = (*COMPARED, *ASPECTS_BESIDE)
_MOST: Final = 100_000


def diff(
    catalogs: Catalogs,
    source: str,
    target: str,
    *,
    aspects: Iterable[str] = (),
    mapping: Path | None = None,
    progress: Progress,
) -> SnapshotDiffReport:
    """Compares two sides, each a catalog or a snapshot; a mapping says what is called otherwise."""
    from lumos.catalogs.migration.mapping import Mapping, write_mapped

    looked_at = _known(aspects)
    names = None if mapping is None else Mapping.read(mapping)
    with (
        TemporaryDirectory(prefix="lumos-") as folder,
        _as_snapshots(catalogs, (source, target), progress) as (before, after),
    ):
        if names is not None and not names.is_empty:
            mapped = Path(folder) / "mapped.jsonl"
            with open_snapshot(before) as snapshot:
                # Whether the target had them before or not: they are to be compared.
                write_mapped(snapshot, names, mapped, moved=names.targets)
            before = mapped
        progress("comparing")
        findings = Findings()
        for difference in compare(before, after, judge=judged, aspects=looked_at):
            findings.add(difference)
        return findings.report(source, target, before)


def diff_on_spark(
    settings: Settings, source: Path, target: Path, *, to: Path, aspects: Iterable[str] = ()
) -> SparkDiffReport:
    """Compares two Parquet snapshots on Spark."""
    from lumos.spark.session import spark_session

    looked_at = _known(aspects)
    for side in (source, target):
        if not side.exists():
            raise NoSnapshot(Path(side))
    if to.exists():
        raise MisuseError(f"There is something at {to} already. Name a new folder.")
    spark = settings.spark
    with spark_session(master=spark.master, settings=spark.properties(), short=False) as session:
        sums = compare_folders(session, source, target, to=to, aspects=looked_at)
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


def _known(aspects: Iterable[str]) -> tuple[str, ...]:
    looked_at = tuple(aspects) or COMPARED
    for aspect in looked_at:
        if aspect not in EVERYTHING:
            raise UnknownName("aspect", aspect, EVERYTHING)
    return looked_at


@contextmanager
def _as_snapshots(
    catalogs: Catalogs, sides: Sequence[str], progress: Progress
) -> Iterator[list[Path]]:
    """The snapshots that sides are, or those of the catalogs that they name, while it takes.

    Catalogs are read beside each other: most of the time they are waited for.
    """
    wish = Wish()

    def heard(step: str, **facts: Any) -> None:
        wish.check()
        progress(step, **facts)

    # What is no longer waited for may still write into the folder.
    with TemporaryDirectory(prefix="lumos-", ignore_cleanup_errors=True) as folder:
        files = [
            begun(
                partial(_taken, catalogs, side, Path(folder) / f"{number}.jsonl", heard),
                "lumos-export",
            )
            for number, side in enumerate(sides)
        ]
        try:
            taken = all_or_first_failure(files)
        finally:
            wish.drop()
        yield taken


def _taken(catalogs: Catalogs, side: str, file: Path, progress: Progress) -> Path:
    if not catalogs.is_named(side):
        return catalogs.snapshot(side)
    everything = Wanted(ranges=True)
    with closing(catalogs.to_read(side)) as catalog:
        export(catalog, file, everything, at=datetime.now(UTC), progress=progress)
    return file


class Findings:
    """Differences as they are found, and what of the one side the other one lacks."""

    def __init__(self) -> None:
        self._kept: list[Difference] = []
        self._impacts: Counter[str] = Counter()
        self._aspects: Counter[str] = Counter()
        self._entries = 0
        self._last: tuple[str, str] | None = None
        self._lost_datasets: set[str] = set()
        self._lost_edges = 0
        self._lost_tags: dict[str, None] = {}

    def add(self, difference: Difference) -> None:
        if len(self._kept) < _MOST:
            self._kept.append(difference)
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
            datasets=Migrated(source=datasets, target=datasets - len(self._lost_datasets)),
            lineage_edges=Migrated(source=edges, target=edges - lost_edges),
            missing_tags=tuple(self._lost_tags),
            summary=DiffSummary(
                entries=self._entries,
                differences=self._impacts.total(),
                breaking=self._impacts["breaking"],
                non_breaking=self._impacts["non-breaking"],
                informational=self._impacts["informational"],
                aspects=dict(sorted(self._aspects.items())),
            ),
            differences=tuple(self._kept),
            left_out=self._impacts.total() - len(self._kept),
        )

    def _sizes(self, before: Path) -> tuple[int, int, int]:
        """How many datasets and edges the source has, and how many edges of it were lost."""
        with open_snapshot(before) as snapshot:
            counts = snapshot.header.counts
            is_told = snapshot.header.hashes is not None
            if counts is not None and is_told and not counts.deleted and not self._lost_datasets:
                return counts.datasets, counts.lineage_edges, self._lost_edges
            datasets = edges = 0
            lost_edges = self._lost_edges
            for entry in snapshot.datasets():
                if entry.deleted:
                    continue
                own = len(entry.lineage.upstream) if entry.lineage else 0
                datasets += 1
                edges += own
                if entry.urn in self._lost_datasets:
                    lost_edges += own
        return datasets, edges, lost_edges


def _is_edge(path: str) -> bool:
    """Whether a difference in lineage is about a whole edge that comes in."""
    return path.startswith("upstream[") and path.endswith("]") and ".columns[" not in path
