"""Whole estates: a snapshot of all schemas in Parquet, and two of them compared on Spark."""

from collections.abc import Callable
from pathlib import Path

from lumos.config import Settings
from lumos.model.change import Verdict
from lumos.model.json_codec import to_json
from lumos.model.report import FORMAT_VERSION, Report
from lumos.schemas.findings import Summary
from lumos.schemas.fingerprint_diff import table_rows
from lumos.sources.addresses import is_address
from lumos.store import Store


class SnapshotReport(Report, frozen=True, kw_only=True):
    """Where a snapshot was written, and how many datasets it has."""

    format_version: str = FORMAT_VERSION
    file: str
    datasets: int


class EstateDiffReport(Report, frozen=True, kw_only=True):
    """Where the differences were written, and their sums; `datasets` counts what changed."""

    format_version: str = FORMAT_VERSION
    folder: str
    added: int
    removed: int
    summary: Summary


class Estates:
    """Estates of any size, as `Lumos().estates` offers them."""

    def __init__(self, settings: Settings, store: Callable[[], Store]) -> None:
        self._settings = settings
        self._store = store

    def snapshot(self, file: str | Path) -> SnapshotReport:
        """Writes the present schema of every dataset that is there into a Parquet file."""
        from lumos.schemas.inventory_files import SnapshotRow, write_snapshot

        rows = (
            SnapshotRow(live.urn, live.schema.full, to_json(live.schema), live.format)
            for live in self._store().archive.live()
        )
        return SnapshotReport(file=str(file), datasets=write_snapshot(rows, file))

    def compare(self, before: str | Path, after: str | Path, *, to: str | Path) -> EstateDiffReport:
        """Compares two snapshots on Spark and writes what differs into a folder, as Parquet.

        `datasets` tells of each that differs whether it was added, removed or changed; `changes`
        has a row for each judged change. The folder must be new.
        """
        from lumos.schemas.comparison_job import compare_snapshots
        from lumos.spark.session import spark_session

        spark = self._settings.spark
        with spark_session(
            master=spark.master, settings=spark.properties(), short=False
        ) as session:
            old, new = (session.read.parquet(_place(path)) for path in (before, after))
            sums = compare_snapshots(old, new, judge=table_rows, to=_place(to))
        verdicts = {verdict.value: sums.verdicts.get(verdict.value, 0) for verdict in Verdict}
        return EstateDiffReport(
            folder=str(to),
            added=sums.added,
            removed=sums.removed,
            summary=Summary(datasets=sums.changed, changes=sum(sums.verdicts.values()), **verdicts),
        )


def _place(path: str | Path) -> str:
    """The path as Spark finds it: its working folder is not ours."""
    return str(path) if is_address(str(path)) else str(Path(path).absolute())
