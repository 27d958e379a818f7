"""A snapshot as a folder: its header in `manifest.json`, its entries in Parquet files.

A row has an entry's key, its content hash and its JSON, so that Spark reads what it needs. The
manifest names the files; nothing else in the folder is read.
"""

import codecs
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lumos.snapshots.format.codec import MalformedJson, decode_json
from lumos.snapshots.format.document import KINDS, EntryKind, SnapshotHeader
from lumos.snapshots.format.encodings.interface import (
    ALWAYS_ALLOWED,
    MANIFEST,
    MAX_COMPRESSION_RATIO,
    Bodies,
    KeyedEntry,
    SnapshotContainer,
    StoredJson,
    columns_of,
    stored_row,
)
from lumos.snapshots.format.encodings.json_document import refusal
from lumos.snapshots.format.errors import (
    NotASnapshot,
    SnapshotError,
    SnapshotTooLarge,
    TruncatedSnapshot,
)

ROWS_IN_A_FILE: Final = 50_000
ROWS_IN_A_GROUP: Final = 5_000
_ROWS_AT_ONCE: Final = 500
_LARGEST_GROUP: Final = 1024 * 1024 * 1024
# No separator and no dots before the ending: the name cannot lead out of the folder.
_NAME: Final = re.compile(r"[a-z]+-[0-9]{5}\.parquet", re.ASCII)
_BITS_OF_ROWS: Final = 40
_TEXTS: Final = (pa.string(), pa.large_string(), pa.string_view())


class ParquetFolder(SnapshotContainer):
    """A folder whose files are read batch by batch."""

    streamed = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        manifest = folder / MANIFEST
        if not folder.is_dir():
            problem = "It is not a folder." if folder.exists() else "There is no such snapshot."
            raise NotASnapshot(folder, "", problem)
        try:
            self.header = manifest.read_bytes().removeprefix(codecs.BOM_UTF8)
        except FileNotFoundError:
            problem = f"There is no {MANIFEST} in it."
            raise NotASnapshot(folder, MANIFEST, problem) from None
        try:
            listed = decode_json(self.header, dict[str, Any])
        except MalformedJson as problem:
            raise refusal(manifest, problem, self.header) from None
        known = (*SnapshotHeader.__struct_fields__, "files")
        self.strangers = tuple(key for key in listed if key not in known)
        self._files = {kind.plural: self._names(listed, kind) for kind in KINDS}

    def entries(self, kind: EntryKind) -> Iterator[StoredJson | SnapshotError]:
        for number, name in enumerate(self._files[kind.plural]):
            position = number << _BITS_OF_ROWS
            for row in self._rows(kind, name):
                stored = stored_row(kind, position, row)
                if isinstance(stored, str):
                    yield SnapshotError(self._folder, self.place(kind, position), stored)
                else:
                    yield stored
                position += 1

    def place(self, kind: EntryKind, position: int) -> str:
        name = self._files[kind.plural][position >> _BITS_OF_ROWS]
        return f"{name}[{position & ((1 << _BITS_OF_ROWS) - 1)}]"

    @property
    def files(self) -> dict[str, list[str]]:
        """The names of the files of each kind, for readers of their own."""
        return self._files

    def count(self, kind: EntryKind) -> int:
        """How many entries of a kind the files say they have."""
        total = 0
        for name in self._files[kind.plural]:
            with self._opened(name) as file:
                total += file.metadata.num_rows
        return total

    def _names(self, listed: dict[str, Any], kind: EntryKind) -> list[str]:
        """The files that the manifest names for a kind, none of them outside the folder."""
        place = f"{MANIFEST}: files.{kind.plural}"
        files = listed.get("files")
        names = files.get(kind.plural, []) if isinstance(files, dict) else []
        if not isinstance(names, list):
            raise SnapshotError(self._folder, place, "Expected a list of file names.")
        for index, name in enumerate(names):
            problem = ""
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                problem = f"{name!r} is not a snapshot file such as datasets-00000.parquet."
            elif (self._folder / name).is_symlink():
                problem = f"{name} leads out of the folder."
            if problem:
                raise SnapshotError(self._folder, f"{place}[{index}]", problem)
        return names

    def _rows(self, kind: EntryKind, name: str) -> Iterator[tuple[Any, Any, Any]]:
        columns = list(columns_of(kind))
        with self._opened(name) as file:
            self._check(file, name, columns)
        with self._opened(name, columns) as file:
            most = max(ALWAYS_ALLOWED, MAX_COMPRESSION_RATIO * (self._folder / name).stat().st_size)
            unfolded = 0
            for batch in file.iter_batches(_ROWS_AT_ONCE, columns=columns):
                size = sum(_unfolded(batch.column(column)) for column in columns)
                unfolded += size
                if unfolded > most:
                    text = f"It decompresses to more than {MAX_COMPRESSION_RATIO} times its size."
                    raise SnapshotTooLarge(self._folder, name, text)
                # A value that many rows share is stored once, and would be in memory once for each.
                rows = batch.num_rows if size <= ALWAYS_ALLOWED else 1
                for start in range(0, batch.num_rows, rows):
                    yield from _plain(batch.slice(start, rows), columns)

    @contextmanager
    def _opened(self, name: str, folded: Iterable[str] = ()) -> Iterator[pq.ParquetFile]:
        """A file of the folder, columns that are read as they are folded, and what goes wrong."""
        try:
            with pq.ParquetFile(self._folder / name, read_dictionary=list(folded)) as file:
                yield file
        except FileNotFoundError:
            raise TruncatedSnapshot(self._folder, name, "The file is not in the folder.") from None
        except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:
            reason = str(problem).partition("\n")[0]
            raise SnapshotError(self._folder, name, f"It cannot be read: {reason}.") from None

    def _check(self, file: pq.ParquetFile, name: str, columns: list[str]) -> None:
        schema = file.schema_arrow
        for column in columns:
            is_text = column in schema.names and schema.field(column).type in _TEXTS
            if not is_text:
                raise SnapshotError(self._folder, name, f"It has no column '{column}' of text.")
        for group in range(file.metadata.num_row_groups):
            if file.metadata.row_group(group).total_byte_size > _LARGEST_GROUP:
                text = f"Its row group {group} unfolds to more than 1 GB."
                raise SnapshotTooLarge(self._folder, name, text)


def _unfolded(column: pa.DictionaryArray) -> int:
    """How many bytes the texts of a column take, each of them as often as it stands there."""
    lengths = pc.binary_length(column.dictionary).cast(pa.int64())
    return pc.sum(lengths.take(column.indices)).as_py() or 0


def _plain(batch: pa.RecordBatch, columns: list[str]) -> Iterator[tuple[Any, Any, Any]]:
    keys, hashes, bodies = (batch.column(column).dictionary_decode() for column in columns)
    # Text that is not UTF-8 is found with the entry that has it.
    rows = (keys, hashes, bodies.cast(pa.binary()))
    yield from zip(*(column.to_pylist() for column in rows), strict=True)


def open_folder(folder: Path) -> ParquetFolder:
    """Opens a folder."""
    return ParquetFolder(folder)


def write_folder(folder: Path, header: bytes, bodies: Bodies) -> None:
    """Writes a new folder."""
    folder.mkdir()
    files = {kind.plural: _write(folder, kind, bodies[kind.plural]) for kind in KINDS}
    manifest = {**decode_json(header, dict[str, msgspec.Raw]), "files": files}
    (folder / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")


def _write(folder: Path, kind: EntryKind, entries: Iterator[KeyedEntry]) -> list[str]:
    schema = pa.schema([(name, pa.string()) for name in columns_of(kind)])
    names: list[str] = []
    # A file is begun only when there is something to put into it.
    while first := list(islice(entries, ROWS_IN_A_GROUP)):
        name = f"{kind.plural}-{len(names):05}.parquet"
        with pq.ParquetWriter(folder / name, schema, compression="zstd") as writer:
            writer.write_batch(_batch(first, schema))
            for _ in range(ROWS_IN_A_FILE // ROWS_IN_A_GROUP - 1):
                if some := list(islice(entries, ROWS_IN_A_GROUP)):
                    writer.write_batch(_batch(some, schema))
        names.append(name)
    return names


def _batch(entries: list[KeyedEntry], schema: pa.Schema) -> pa.RecordBatch:
    keys, bodies, hashes = zip(*entries, strict=True)
    columns = [pa.array(keys), pa.array(hashes), pa.array(bodies, pa.binary()).cast(pa.string())]
    return pa.record_batch(columns, schema=schema)
