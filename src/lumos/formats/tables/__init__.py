"""Table formats: the metadata of a table is read from its folder, without reading its data."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Final

from lumos.formats.tables.interface import TableKind, TableReader

# If a root has logs of several formats, the first one is used.
KINDS: Final[tuple[TableKind, ...]] = ("delta", "hudi", "iceberg")


class _Readers(Mapping[str, TableReader]):
    """The readers by kind, imported when the first table of a kind is read."""

    def __getitem__(self, kind: str) -> TableReader:
        if kind not in KINDS:
            raise KeyError(kind)
        return _reader(kind)

    def __iter__(self) -> Iterator[str]:
        return iter(KINDS)

    def __len__(self) -> int:
        return len(KINDS)


@cache
def _reader(kind: str) -> TableReader:
    module = import_module(f"lumos.formats.tables.{kind}.reader")
    reader = getattr(module, f"{kind.capitalize()}Reader")()
    assert isinstance(reader, TableReader)
    return reader


READERS: Final[Mapping[str, TableReader]] = _Readers()
