"""Avro: the schema is in the header; rows are only counted if the first read covers the file."""

from functools import lru_cache
from typing import ClassVar, Final

import msgspec

from lumos.formats.columns import with_distinct_names
from lumos.formats.interface import (
    BinaryFormat,
    FileFacts,
    KnownSchema,
    RangedBytes,
    UnreadableFile,
)
from lumos.formats.varints import MalformedData, TruncatedData, check_end, read_signed
from lumos.model.conversions.avro import schema_from_avro

MAGIC: Final = b"Obj\x01"
SYNC_BYTES: Final = 16
# Nearly every header fits into the first read.
_READ_LENGTHS: Final = (64 * 1024, 1024 * 1024, 16 * 1024 * 1024)


class Avro(BinaryFormat):
    name: ClassVar[str] = "avro"
    title: ClassVar[str] = "Avro"
    suffixes: ClassVar[tuple[str, ...]] = (".avro",)

    def matches_head(self, head: bytes) -> bool:
        return head.startswith(MAGIC)

    def has_magic(self, file: RangedBytes) -> bool:
        return self.matches_head(file.head(_READ_LENGTHS[0]))

    def read(self, file: RangedBytes, *, column_stats: bool = False) -> FileFacts:  # noqa: ARG002 - Avro has none
        if not self.has_magic(file):
            raise UnreadableFile("not_avro", "The file does not begin with Avro's magic bytes.")
        try:
            data, metadata, start = _read_header(file)
            if "avro.schema" not in metadata:
                raise MalformedData("It has no schema.")
            rows = _count_rows(data, start) if len(data) == file.size else None
            known = _parse_schema(metadata["avro.schema"])
        except TruncatedData:
            raise UnreadableFile("corrupt_file", "The Avro file is truncated.") from None
        except MalformedData as problem:
            raise UnreadableFile("corrupt_file", f"The Avro file is damaged: {problem}") from None
        return FileFacts(known, rows, row_count_exact=rows is not None)


def _read_header(file: RangedBytes) -> tuple[bytes, dict[str, bytes], int]:
    """Return the bytes that were read, the metadata in them and the position after the header."""
    for length in _READ_LENGTHS:
        data = file.head(length)
        try:
            return data, *parse_header(data)
        except TruncatedData:
            if len(data) == file.size:
                raise
    raise MalformedData(f"Its header is longer than {_READ_LENGTHS[-1]:,} bytes.")


def parse_header(data: bytes) -> tuple[dict[str, bytes], int]:
    """The metadata in the header of a container file, and the position of the first block."""
    metadata: dict[str, bytes] = {}
    position = len(MAGIC)
    while True:
        count, position = read_signed(data, position)
        if count == 0:
            return metadata, check_end(data, position + SYNC_BYTES)
        if count < 0:
            count, (_, position) = -count, read_signed(data, position)
        for _ in range(count):
            key, position = _read_bytes(data, position)
            metadata[key.decode("utf-8", "replace")], position = _read_bytes(data, position)


def _read_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    length, position = read_signed(data, position)
    if length < 0:
        raise MalformedData("A text has a negative length.")
    end = check_end(data, position + length)
    return data[position:end], end


def read_block(data: bytes, position: int, sync: bytes) -> tuple[int, int, int]:
    """The number of records in a block, the position of its content, and its end."""
    count, position = read_signed(data, position)
    size, position = read_signed(data, position)
    if count < 0 or size < 0:
        raise MalformedData("A block has a negative size.")
    end = check_end(data, position + size + SYNC_BYTES)
    if data[end - SYNC_BYTES : end] != sync:
        raise MalformedData("A block does not end with the sync marker.")
    return count, position, end


def _count_rows(data: bytes, position: int) -> int:
    """The sum of the row counts in the headers of blocks; their content is not decoded."""
    sync = data[position - SYNC_BYTES : position]
    rows = 0
    while position < len(data):
        count, _, position = read_block(data, position, sync)
        rows += count
    return rows


@lru_cache(maxsize=2048)
def _parse_schema(schema: bytes) -> KnownSchema:
    try:
        return KnownSchema(with_distinct_names(schema_from_avro(msgspec.json.decode(schema))))
    except RecursionError:
        raise UnreadableFile("too_deep", "The schema nests too deeply to be read.") from None
    except ValueError as problem:
        raise MalformedData(f"Its schema is not valid JSON: {problem}") from None
