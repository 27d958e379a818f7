"""Table formats: reads the metadata in the folder of a table, not the data."""

from functools import cache
from importlib import import_module
from typing import Final

from lumos.formats.tables.interface import TableKind, TableReader

# If a root has logs of several formats, the first one is used.
KINDS: Final[tuple[TableKind, ...]] = ("delta", "hudi", "iceberg")


@cache
def table_reader(kind: str) -> TableReader:
    """The reader of a kind of table, imported when the first table of this kind is read."""
    module = import_module(f"lumos.formats.tables.{kind}.reader")
    reader = getattr(module, f"{kind.capitalize()}Reader")()
    assert isinstance(reader, TableReader)
    return reader
