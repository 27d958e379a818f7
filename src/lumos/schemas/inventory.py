"""Schema inventories: all schemas of a store in a Parquet file, compared on Spark."""

from collections.abc import Callable
from pathlib import Path

from lumos.config import Settings
from lumos.model.change import Verdict
from lumos.model.json_codec import to_json
from lumos.model.report import FORMAT_VERSION, Report
from lumos.schemas.findings import ChangeCounts, change_table_rows
from lumos.sources.addresses import is_address
from lumos.store import Store


class InventoryReport(Report, frozen=True, kw_only=True):
    """The file of an inventory, and the number of its datasets."""

    format_version: str = FORMAT_VERSION
    file: str
    datasets: int


class InventoryDiffReport(Report, frozen=True, kw_only=True):
    """The folder with the differences, and their counts."""

    format_version: str = FORMAT_VERSION
    folder: str
    added: int
    removed: int
    summary: ChangeCounts


class SchemaInventory:
    """Writes and compares inventories of any size."""

    def __init__(self, settings: Settings, store: Callable[[], Store]) -> None:
        self._settings = settings
        self._store = store

    def snapshot(self, file: str | Path) -> InventoryReport:
        """Write the current schema of each live dataset to a Parquet file."""
        from lumos.schemas.inventory_file import InventoryRow, write_inventory

        rows = (
            InventoryRow(live.urn, live.schema.full, to_json(live.schema), live.format)
            for live in self._store().schemas.live()
        )
        return InventoryReport(file=str(file), datasets=write_inventory(rows, file))

    def compare(
        self, before: str | Path, after: str | Path, *, to: str | Path
    ) -> InventoryDiffReport:
        """Compare two inventories on Spark, and write the differences to a new folder as Parquet.

        Its subfolder `datasets` has a row for each dataset that was added, removed or changed, and
        its subfolder `changes` a row for each change.
        """
        from lumos.schemas.comparison_job import compare_inventories
        from lumos.spark.session import spark_session

        spark = self._settings.spark
        with spark_session(
            master=spark.master, settings=spark.properties(), short=False
        ) as session:
            old, new = (session.read.parquet(_spark_path(path)) for path in (before, after))
            counts = compare_inventories(old, new, compare=change_table_rows, to=_spark_path(to))
        verdicts = {verdict.value: counts.verdicts.get(verdict.value, 0) for verdict in Verdict}
        return InventoryDiffReport(
            folder=str(to),
            added=counts.added,
            removed=counts.removed,
            summary=ChangeCounts(
                datasets=counts.changed, changes=sum(counts.verdicts.values()), **verdicts
            ),
        )


def _spark_path(path: str | Path) -> str:
    """The absolute path, because Spark has another working folder."""
    return str(path) if is_address(str(path)) else str(Path(path).absolute())
