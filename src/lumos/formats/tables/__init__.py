"""Table formats: the logs and manifests of a folder become one table, without reading its data."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Final

from lumos.formats.tables.interface import (
    Deletes,
    Entry,
    Feature,
    Folder,
    Kind,
    LiveFile,
    Past,
    TableFacts,
    TableReader,
)

__all__ = [
    "KINDS",
    "READERS",
    "Deletes",
    "Entry",
    "Feature",
    "Folder",
    "Kind",
    "LiveFile",
    "Past",
    "TableFacts",
    "TableReader",
]

# Where several lie in one root, the first one speaks for all of them.
KINDS: Final[tuple[Kind, ...]] = ("delta", "hudi", "iceberg")

# Each is a package of its own with a `Reader`, imported when a table of its kind is met.
_CLASSES: Final[dict[str, tuple[str, str]]] = {
    "delta": ("lumos.formats.tables.delta", "DeltaReader"),
    "hudi": ("lumos.formats.tables.hudi", "HudiReader"),
    "iceberg": ("lumos.formats.tables.iceberg", "IcebergReader"),
}


class _Readers(Mapping[str, TableReader]):
    """The readers by kind."""

    def __getitem__(self, kind: str) -> TableReader:
        return _reader(*_CLASSES[kind])

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)


@cache
def _reader(module: str, name: str) -> TableReader:
    reader = getattr(import_module(module), name)()
    assert isinstance(reader, TableReader)
    return reader


READERS: Final[Mapping[str, TableReader]] = _Readers()
