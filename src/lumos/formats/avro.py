"""Avro: the header carries the schema; rows are counted where one read holds the whole file."""

from functools import lru_cache
from typing import ClassVar, Final

import msgspec

from lumos.formats.interface import (
    BinaryFormat,
    FileFacts,
    KnownSchema,
    RangedBytes,
    UnreadableFile,
)
from lumos.formats.names import with_distinct_names
from lumos.formats.varints import CutOff, Malformed, signed, within
from lumos.model.conversions.avro import schema_from_avro

_MAGIC: Final = b"Obj\x01"
# Nearly every header fits into the first read.
_READS: Final = (64 * 1024, 1024 * 1024, 16 * 1024 * 1024)
_SYNC: Final = 16
_SCHEMA: Final = b"avro.schema"


class Avro(BinaryFormat):
    name: ClassVar[str] = "avro"
    title: ClassVar[str] = "Avro"
    suffixes: ClassVar[tuple[str, ...]] = (".avro",)

    def claims_head(self, head: bytes) -> bool:
        return head.startswith(_MAGIC)

    def claims(self, file: RangedBytes) -> bool:
        return self.claims_head(file.head(_READS[0]))

    def read(self, file: RangedBytes, *, column_stats: bool = False) -> FileFacts:  # noqa: ARG002 - Avro has none
        if not self.claims(file):
            raise UnreadableFile("not_avro", "The file does not begin as Avro does.")
        try:
            data, schema, position = _header(file)
            rows = _row_count(data, position) if len(data) == file.size else None
            known = _known(schema)
        except CutOff:
            raise UnreadableFile("corrupt_file", "The Avro file is cut off.") from None
        except Malformed as problem:
            raise UnreadableFile("corrupt_file", f"The Avro file is damaged: {problem}") from None
        return FileFacts(known, rows, row_count_exact=rows is not None)


def _header(file: RangedBytes) -> tuple[bytes, bytes, int]:
    """What was read, the schema in it and the position after the header."""
    for length in _READS:
        data = file.head(length)
        try:
            return data, *_metadata(data)
        except CutOff:
            if len(data) == file.size:
                raise
    raise Malformed(f"Its header is longer than {_READS[-1]:,} bytes.")


def _metadata(data: bytes) -> tuple[bytes, int]:
    schema = None
    position = len(_MAGIC)
    while True:
        count, position = signed(data, position)
        if count == 0:
            break
        if count < 0:
            count, (_, position) = -count, signed(data, position)
        for _ in range(count):
            key, position = _bytes(data, position)
            value, position = _bytes(data, position)
            if key == _SCHEMA:
                schema = value
    if schema is None:
        raise Malformed("It has no schema.")
    return schema, within(data, position + _SYNC)


def _bytes(data: bytes, position: int) -> tuple[bytes, int]:
    length, position = signed(data, position)
    if length < 0:
        raise Malformed("A text is shorter than nothing.")
    end = within(data, position + length)
    return data[position:end], end


def _row_count(data: bytes, position: int) -> int:
    """The sum of what the blocks' headers tell; the blocks themselves stay closed."""
    sync = data[position - _SYNC : position]
    rows = 0
    while position < len(data):
        count, position = signed(data, position)
        size, position = signed(data, position)
        if count < 0 or size < 0:
            raise Malformed("A block is smaller than nothing.")
        end = within(data, position + size + _SYNC)
        if data[end - _SYNC : end] != sync:
            raise Malformed("A block does not end where it should.")
        rows += count
        position = end
    return rows


@lru_cache(maxsize=2048)
def _known(schema: bytes) -> KnownSchema:
    try:
        return KnownSchema(with_distinct_names(schema_from_avro(msgspec.json.decode(schema))))
    except RecursionError:
        raise UnreadableFile("too_deep", "The schema nests too deeply to be read.") from None
    except ValueError as problem:
        raise Malformed(f"Its schema is no JSON: {problem}") from None
