"""The tables and partitions of a metastore at its last scan, stored for `lumos reconcile`.

These registrations are rows of Parquet files (parts) of limited size, so that neither a scan nor a
reader holds all of them in memory. A part is named by the hash of its rows, so a scan that finds
the same registrations only writes a new index.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lumos.sources.interface import RegisteredPartition, RegisteredTable, Registration
from lumos.spark.arrays import arrow_array
from lumos.storage import DEFAULT_ACCESS, StorageAccess, storage_of

_PART_ROWS: Final = 50_000
_TABLE_COLUMNS: Final = pa.schema(
    [
        ("path", pa.string()),
        ("location", pa.string()),
        ("format", pa.string()),
        ("managed", pa.bool_()),
        ("partition_keys", pa.string()),
        ("files", pa.int64()),
        ("bytes", pa.int64()),
        ("rows", pa.int64()),
        ("partition_count", pa.int64()),
    ]
)
_PARTITION_COLUMNS: Final = pa.schema(
    [("table", pa.string()), ("values", pa.string()), ("location", pa.string())]
)
_encode_texts = msgspec.json.encode
_decode_texts = msgspec.json.Decoder(tuple[str, ...]).decode
_Row = TypeVar("_Row", RegisteredTable, RegisteredPartition)


class RegistrationPart(msgspec.Struct, frozen=True, array_like=True):
    """A part and the paths of its first and last table."""

    name: str
    first: str
    last: str


class RegistrationIndex(msgspec.Struct, kw_only=True):
    """The parts of one scan, in the order in which their rows were read."""

    tables: list[RegistrationPart] = []
    partitions: list[RegistrationPart] = []


class _Layout(NamedTuple, Generic[_Row]):
    columns: pa.Schema
    to_values: Callable[[_Row], Sequence[Any]]
    from_values: Callable[[Sequence[Any]], _Row]
    table_of: Callable[[_Row], str]


_TABLES: Final = _Layout[RegisteredTable](
    _TABLE_COLUMNS,
    lambda row: (*row[:4], _encode_texts(row.partition_keys).decode(), *row[5:]),
    lambda values: RegisteredTable._make((*values[:4], _decode_texts(values[4]), *values[5:])),
    lambda row: row.path,
)
_PARTITIONS: Final = _Layout[RegisteredPartition](
    _PARTITION_COLUMNS,
    lambda row: (row.table, _encode_texts(row.values).decode(), row.location),
    lambda values: RegisteredPartition(values[0], _decode_texts(values[1]), values[2]),
    lambda row: row.table,
)


class RegistrationStore:
    """The registrations of one source in a folder of any storage."""

    def __init__(self, folder: str, access: StorageAccess = DEFAULT_ACCESS) -> None:
        self._folder = folder
        self._storage = storage_of(folder, access)

    def writer(self, name: str) -> "RegistrationWriter":
        """A writer for the registrations of the scan with this name."""
        existing = set(self._storage.files(self._parts))
        return RegistrationWriter(self, name, existing)

    def index(self, name: str) -> RegistrationIndex | None:
        """The parts of a scan; None if the scan stored none."""
        try:
            data = self._storage.read(f"{self._folder}/{name}")
            return msgspec.msgpack.decode(data, type=RegistrationIndex)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None

    def tables(self, index: RegistrationIndex) -> Iterator[RegisteredTable]:
        """All tables of a scan."""
        return (row for part in index.tables for row in self._rows(part, _TABLES))

    def partitions(
        self, index: RegistrationIndex, *, first: str, last: str
    ) -> Iterator[RegisteredPartition]:
        """The partitions of all tables with paths from `first` to `last`."""
        for part in index.partitions:
            if part.first <= last and part.last >= first:
                for row in self._rows(part, _PARTITIONS):
                    if first <= row.table <= last:
                        yield row

    def delete_all_but(self, names: set[str]) -> None:
        """Delete the registrations of all scans except these."""
        referenced = {
            f"{part.name}.parquet"
            for name in names
            if (index := self.index(name)) is not None
            for part in (*index.tables, *index.partitions)
        }
        others = set(self._storage.files(self._folder)) - names
        unused = set(self._storage.files(self._parts)) - referenced
        self._storage.discard([f"{self._folder}/{name}" for name in others])
        self._storage.discard([f"{self._parts}/{name}" for name in unused])

    @property
    def _parts(self) -> str:
        return f"{self._folder}/registrations"

    def _rows(self, part: RegistrationPart, layout: _Layout[_Row]) -> Iterator[_Row]:
        data = self._storage.read(f"{self._parts}/{part.name}.parquet")
        table = pq.read_table(pa.BufferReader(data))
        columns = [table.column(name).to_pylist() for name in layout.columns.names]
        return map(layout.from_values, zip(*columns, strict=True))

    def write_part(self, rows: list[_Row], layout: _Layout[_Row], existing: set[str]) -> str:
        """Write rows, unless a part with the same rows exists; return the name of the part."""
        values = [tuple(layout.to_values(row)) for row in rows]
        name = hashlib.blake2b(msgspec.msgpack.encode(values), digest_size=16).hexdigest()
        if f"{name}.parquet" not in existing:
            arrays = [
                arrow_array(column, field.type)
                for column, field in zip(zip(*values, strict=True), layout.columns, strict=True)
            ]
            sink = pa.BufferOutputStream()
            table = pa.Table.from_arrays(arrays, schema=layout.columns)
            pq.write_table(table, sink, compression="zstd")
            path = f"{self._parts}/{name}.parquet"
            self._storage.write(path, sink.getvalue().to_pybytes())
        return name

    def write_index(self, name: str, index: RegistrationIndex) -> None:
        """Write the index of a scan, which makes its registrations readable."""
        self._storage.write(f"{self._folder}/{name}", msgspec.msgpack.encode(index))


class RegistrationWriter:
    """Receives tables and partitions of one scan and writes them in parts."""

    def __init__(self, store: RegistrationStore, name: str, existing: set[str]) -> None:
        self._store = store
        self._name = name
        self._existing = existing
        self._index = RegistrationIndex()
        self._tables: list[RegisteredTable] = []
        self._partitions: list[RegisteredPartition] = []

    def add(self, row: Registration) -> None:
        """Add a partition, or a table after all of its partitions."""
        match row:
            case RegisteredTable():
                self._tables.append(row)
            case RegisteredPartition():
                self._partitions.append(row)
        if len(self._tables) >= _PART_ROWS or len(self._partitions) >= _PART_ROWS:
            self._flush()

    def finish(self) -> None:
        """Write the remaining rows, then the index."""
        self._flush()
        self._store.write_index(self._name, self._index)

    def _flush(self) -> None:
        if self._tables:
            part = self._write(self._tables, _TABLES)
            self._index.tables.append(part)
            self._tables = []
        if self._partitions:
            part = self._write(self._partitions, _PARTITIONS)
            self._index.partitions.append(part)
            self._partitions = []

    def _write(self, rows: list[_Row], layout: _Layout[_Row]) -> RegistrationPart:
        paths = [layout.table_of(row) for row in rows]
        name = self._store.write_part(rows, layout, self._existing)
        return RegistrationPart(name, min(paths), max(paths))
