"""The catalog: a folder of CSV files that a job of databuilder publishes to Amundsen."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

from lumos.catalogs.amundsen.catalog import GraphCatalog
from lumos.catalogs.amundsen.csv_folder import CsvFolder, check_writable
from lumos.catalogs.interface import StoredInFile, WritesInBatches
from lumos.errors import MisuseError


class AmundsenFile(GraphCatalog, StoredInFile, WritesInBatches):
    """A folder with `nodes` and `relationships`; the first write creates it."""

    kind: ClassVar[str] = "amundsen-file"

    def __init__(self, settings: Any) -> None:
        path = settings.get("path") if isinstance(settings, dict) else None
        if not isinstance(path, str) or not path:
            raise MisuseError(
                "The platform 'amundsen-file' needs a folder, as in amundsen-file:csv, or as "
                "'path' under platform_config.amundsen-file."
            )
        self.path = Path(path)

    @classmethod
    def at(cls, address: str, configured: Any = None) -> Self:  # noqa: ARG003
        return cls({"path": address})

    @property
    def name(self) -> str:
        return f"{self.kind}:{self.path.resolve()}"

    def check_writable(self) -> None:
        check_writable(self.path)

    @contextmanager
    def batch(self) -> Iterator[None]:
        if not self._graph.saves_writes:
            yield
            return
        self._graph.saves_writes = False
        try:
            yield
            self._graph.save()
        except BaseException:
            # Discard changes in memory, which the next batch would write.
            del self.__dict__["_graph"]
            raise
        self._graph.saves_writes = True

    @cached_property
    def _graph(self) -> CsvFolder:
        return CsvFolder(self.path, platform=self.name)
