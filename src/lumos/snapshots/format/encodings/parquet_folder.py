"""A snapshot as a folder, with its header in `manifest.json` and its entries in Parquet files.

Each row has the key, the content hash and the JSON of an entry, so that Spark reads only the
columns it needs. The manifest lists the files; other files in the folder are ignored.
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

from lumos.decompression import ALWAYS_ALLOWED, MAX_COMPRESSION_RATIO, max_decompressed_bytes
from lumos.snapshots.format.codec import MalformedJson, decode_json
from lumos.snapshots.format.document import KINDS, EntryKind, SnapshotHeader
from lumos.snapshots.format.encodings.interface import (
    MANIFEST,
    Bodies,
    KeyedEntry,
    SnapshotContainer,
    StoredJson,
    columns_of,
    read_row,
)
from lumos.snapshots.format.encodings.json_document import json_error
from lumos.snapshots.format.errors import (
    NotASnapshot,
    SnapshotError,
    SnapshotTooLarge,
    TruncatedSnapshot,
)

ROWS_PER_FILE: Final = 50_000
ROWS_PER_GROUP: Final = 5_000
_BATCH_ROWS: Final = 500
_MAX_GROUP_BYTES: Final = 1024 * 1024 * 1024
# Names that match contain no path separators, so they cannot refer to files outside of the folder.
_FILE_NAME: Final = re.compile(r"[a-z]+-[0-9]{5}\.parquet", re.ASCII)
# The position of an entry combines the number of its file and, in these bits, that of its row.
_ROW_BITS: Final = 40
_TEXT_TYPES: Final = (pa.string(), pa.large_string(), pa.string_view())


class ParquetFolder(SnapshotContainer):
    """A folder whose files are read in batches."""

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
            manifest_keys = decode_json(self.header, dict[str, Any])
        except MalformedJson as problem:
            raise json_error(manifest, problem, self.header) from None
        known = (*SnapshotHeader.__struct_fields__, "files")
        self.unknown_keys = tuple(key for key in manifest_keys if key not in known)
        self._files = {kind.plural: self._names(manifest_keys, kind) for kind in KINDS}

    def entries(self, kind: EntryKind) -> Iterator[StoredJson | SnapshotError]:
        for number, name in enumerate(self._files[kind.plural]):
            position = number << _ROW_BITS
            for row in self._rows(kind, name):
                stored = read_row(kind, position, row)
                if isinstance(stored, str):
                    yield SnapshotError(self._folder, self.path_of(kind, position), stored)
                else:
                    yield stored
                position += 1

    def path_of(self, kind: EntryKind, position: int) -> str:
        name = self._files[kind.plural][position >> _ROW_BITS]
        return f"{name}[{position & ((1 << _ROW_BITS) - 1)}]"

    @property
    def files(self) -> dict[str, list[str]]:
        """The file names of each kind."""
        return self._files

    def count(self, kind: EntryKind) -> int:
        """The number of entries of a kind, from the metadata of the files."""
        total = 0
        for name in self._files[kind.plural]:
            with self._open_file(name) as file:
                total += file.metadata.num_rows
        return total

    def _names(self, manifest_keys: dict[str, Any], kind: EntryKind) -> list[str]:
        """The files that the manifest lists for a kind; all of them are inside the folder."""
        list_path = f"{MANIFEST}: files.{kind.plural}"
        files = manifest_keys.get("files")
        names = files.get(kind.plural, []) if isinstance(files, dict) else []
        if not isinstance(names, list):
            raise SnapshotError(self._folder, list_path, "Expected a list of file names.")
        for index, name in enumerate(names):
            problem = ""
            if not isinstance(name, str) or not _FILE_NAME.fullmatch(name):
                problem = f"{name!r} is not a snapshot file such as datasets-00000.parquet."
            elif (self._folder / name).is_symlink():
                problem = f"{name} is a symbolic link, which is not allowed."
            if problem:
                raise SnapshotError(self._folder, f"{list_path}[{index}]", problem)
        return names

    def _rows(self, kind: EntryKind, name: str) -> Iterator[tuple[Any, Any, Any]]:
        columns = list(columns_of(kind))
        with self._open_file(name) as file:
            self._check(file, name, columns)
        with self._open_file(name, columns) as file:
            limit = max_decompressed_bytes((self._folder / name).stat().st_size)
            total_size = 0
            for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
                size = sum(_decoded_size(batch.column(column)) for column in columns)
                total_size += size
                if total_size > limit:
                    text = f"It decompresses to more than {MAX_COMPRESSION_RATIO} times its size."
                    raise SnapshotTooLarge(self._folder, name, text)
                # A repeated value is stored once, but each row gets a copy, so large batches are
                # decoded row by row.
                rows = batch.num_rows if size <= ALWAYS_ALLOWED else 1
                for start in range(0, batch.num_rows, rows):
                    yield from _decode_rows(batch.slice(start, rows), columns)

    @contextmanager
    def _open_file(
        self, name: str, dictionary_columns: Iterable[str] = ()
    ) -> Iterator[pq.ParquetFile]:
        """Open a file in the folder; errors are converted to snapshot errors."""
        try:
            with pq.ParquetFile(
                self._folder / name, read_dictionary=list(dictionary_columns)
            ) as file:
                yield file
        except FileNotFoundError:
            raise TruncatedSnapshot(self._folder, name, "The file is not in the folder.") from None
        except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:
            reason = str(problem).partition("\n")[0]
            raise SnapshotError(self._folder, name, f"It cannot be read: {reason}.") from None

    def _check(self, file: pq.ParquetFile, name: str, columns: list[str]) -> None:
        schema = file.schema_arrow
        for column in columns:
            is_text = column in schema.names and schema.field(column).type in _TEXT_TYPES
            if not is_text:
                raise SnapshotError(self._folder, name, f"It has no column '{column}' of text.")
        for group in range(file.metadata.num_row_groups):
            if file.metadata.row_group(group).total_byte_size > _MAX_GROUP_BYTES:
                text = f"Its row group {group} decompresses to more than 1 GB."
                raise SnapshotTooLarge(self._folder, name, text)


def _decoded_size(column: pa.DictionaryArray) -> int:
    """The bytes that the text in a column takes after decoding."""
    lengths = pc.binary_length(column.dictionary).cast(pa.int64())
    return pc.sum(lengths.take(column.indices)).as_py() or 0


def _decode_rows(batch: pa.RecordBatch, columns: list[str]) -> Iterator[tuple[Any, Any, Any]]:
    keys, hashes, bodies = (batch.column(column).dictionary_decode() for column in columns)
    # Read the bodies as bytes, so that invalid UTF-8 is reported with its entry.
    arrays = (keys, hashes, bodies.cast(pa.binary()))
    yield from zip(*(array.to_pylist() for array in arrays), strict=True)


def write_folder(folder: Path, header: bytes, bodies: Bodies) -> None:
    folder.mkdir()
    files = {kind.plural: _write(folder, kind, bodies[kind.plural]) for kind in KINDS}
    manifest = {**decode_json(header, dict[str, msgspec.Raw]), "files": files}
    (folder / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")


def _write(folder: Path, kind: EntryKind, entries: Iterator[KeyedEntry]) -> list[str]:
    schema = pa.schema([(name, pa.string()) for name in columns_of(kind)])
    names: list[str] = []
    # A file is only created if there are entries for it.
    while first := list(islice(entries, ROWS_PER_GROUP)):
        name = f"{kind.plural}-{len(names):05}.parquet"
        with pq.ParquetWriter(folder / name, schema, compression="zstd") as writer:
            writer.write_batch(_batch(first, schema))
            for _ in range(ROWS_PER_FILE // ROWS_PER_GROUP - 1):
                if group := list(islice(entries, ROWS_PER_GROUP)):
                    writer.write_batch(_batch(group, schema))
        names.append(name)
    return names


def _batch(entries: list[KeyedEntry], schema: pa.Schema) -> pa.RecordBatch:
    keys, bodies, hashes = zip(*entries, strict=True)
    columns = [pa.array(keys), pa.array(hashes), pa.array(bodies, pa.binary()).cast(pa.string())]
    return pa.record_batch(columns, schema=schema)
