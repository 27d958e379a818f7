"""The catalog: a folder of CSV files that a job of databuilder publishes to Amundsen."""

from functools import cached_property
from typing import ClassVar

from lumos.catalogs.adapter import FileCatalog
from lumos.catalogs.amundsen.catalog import GraphCatalog
from lumos.catalogs.amundsen.csv_folder import CsvFolder, check_writable


class AmundsenFile(GraphCatalog, FileCatalog):
    """A folder with `nodes` and `relationships`; the first write creates it."""

    kind: ClassVar[str] = "amundsen-file"
    example: ClassVar[str] = "csv"

    def check_writable(self) -> None:
        check_writable(self.path)

    def _write_batch(self) -> None:
        self._graph.save()

    @property
    def _graph(self) -> CsvFolder:
        return self._opened

    @cached_property
    def _opened(self) -> CsvFolder:
        return CsvFolder(self.path, platform=self.name, is_in_batch=lambda: self._in_batch)
