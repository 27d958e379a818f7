"""Reads the Avro container files of table formats, with limits on memory and time.

fastavro decompresses blocks of any size, and a recursive schema can exhaust the stack. So the file
is parsed here, and fastavro only gets decompressed blocks, and a schema that is not recursive and
in which every record takes at least a byte.
"""

import bz2
import io
import lzma
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from typing import Any, Final

import fastavro
import msgspec
from fastavro.schema import SchemaParseException

from lumos.formats.avro import MAGIC, SYNC_BYTES, parse_header, read_block
from lumos.formats.compression import (
    check_block_size,
    decompress_block,
    decompress_deflate,
    decompress_snappy,
    decompress_zstd,
)
from lumos.formats.varints import MalformedData, TruncatedData

_MAX_CACHED_LENGTH: Final = 100_000
MAX_BLOCK_BYTES: Final = 64 * 1024 * 1024
MAX_CONTENT_BYTES: Final = 256 * 1024 * 1024
_MAX_DEPTH: Final = 32
# The minimum number of bytes of a value.
_MIN_BYTES_OF_PRIMITIVE: Final = {
    "null": 0, "boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8, "bytes": 1, "string": 1,
}  # fmt: skip
_NAMED_KINDS: Final = ("record", "error", "enum", "fixed")
_FASTAVRO_ERRORS: Final = (
    ArithmeticError, AttributeError, EOFError, LookupError, SchemaParseException, TypeError,
    ValueError, fastavro.read.SchemaResolutionError,
)  # fmt: skip


class AvroContainer:
    """An Avro container file; raises TruncatedData and MalformedData."""

    def __init__(self, data: bytes) -> None:
        if not data.startswith(MAGIC):
            raise MalformedData("It does not begin with Avro's magic bytes.")
        self._data = data
        self.metadata, self._start = parse_header(data)
        self._text = self.metadata.get("avro.schema", b"")
        self.schema: Any = _checked_schema(self._text, None)[0]

    def records(self, keep: Collection[str] | None = None) -> Iterator[dict[str, Any]]:
        """Yield the records with raw values; with `keep`, only with these fields.

        The fields of records below the second level are always included.
        """
        try:
            _, writer_schema = _checked_schema(self._text, None)
            _, reader_schema = (
                (None, None) if keep is None else _checked_schema(self._text, frozenset(keep))
            )
            for count, block in self._blocks():
                stream = io.BytesIO(block)
                for _ in range(count):
                    record = fastavro.schemaless_reader(stream, writer_schema, reader_schema)
                    if not isinstance(record, dict):
                        raise MalformedData("It does not contain records.")
                    yield record
                if stream.read(1):
                    raise MalformedData("A block contains more bytes than its records.")
        except (TruncatedData, MalformedData):
            raise
        except _FASTAVRO_ERRORS as problem:
            raise MalformedData(f"A record cannot be read ({type(problem).__name__}).") from None

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """Yield the number of records and the decompressed content of each block."""
        codec = self.metadata.get("avro.codec", b"null")
        decompress = CODECS.get(codec)
        if decompress is None:
            raise MalformedData(f"Its compression {codec[:20]!r} is unknown.")
        data, position = self._data, self._start
        sync = data[position - SYNC_BYTES : position]
        remaining = MAX_CONTENT_BYTES
        while position < len(data):
            count, start, position = read_block(data, position, sync)
            content = data[start : position - SYNC_BYTES]
            block = decompress(content, min(remaining, MAX_BLOCK_BYTES))
            # Every record takes at least one byte.
            if count > len(block):
                raise MalformedData("A block claims more records than it can hold.")
            remaining -= len(block)
            yield count, block


def _checked_schema(text: bytes, keep: frozenset[str] | None) -> tuple[Any, Any]:
    """The schema in the file, and a checked and simplified schema for fastavro."""
    return (_cached_check if len(text) <= _MAX_CACHED_LENGTH else _check_schema)(text, keep)


def _check_schema(text: bytes, keep: frozenset[str] | None) -> tuple[Any, Any]:
    try:
        schema = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise MalformedData("Its schema is not valid JSON.") from None
    plain = _SafeSchema().schema(schema, keep=keep)
    try:
        return schema, fastavro.parse_schema(plain)
    except _FASTAVRO_ERRORS as problem:
        raise MalformedData(f"Its schema cannot be used ({type(problem).__name__}).") from None


# Thousands of files of a table have the same schema.
_cached_check: Final = lru_cache(maxsize=16)(_check_schema)


class _SafeSchema:
    """Rejects recursive types and lists of empty values in a schema, and drops logical types."""

    def __init__(self) -> None:
        # For each named type that was read completely, the minimum bytes of a value, and its depth.
        self._complete: dict[str, tuple[int, int]] = {}
        self._open_types: set[str] = set()
        self._keep: Collection[str] | None = None

    def schema(self, schema: object, *, keep: Collection[str] | None) -> Any:
        """The simplified schema; with `keep`, records have only these fields."""
        self._keep = keep
        plain, min_bytes, _ = self._type(schema, 1)
        if min_bytes == 0:
            raise MalformedData("Its records are empty.")
        return plain

    def _type(self, schema: object, level: int) -> tuple[object, int, int]:
        if level > _MAX_DEPTH:
            raise MalformedData("Its schema nests too deeply.")
        if isinstance(schema, str):
            return schema, *self._reference(schema)
        if isinstance(schema, list):
            options = [self._type(option, level + 1) for option in schema]
            deepest = max((depth for _, _, depth in options), default=0)
            return [plain for plain, _, _ in options], 1, self._nested_level(deepest)
        if not isinstance(schema, dict):
            raise MalformedData("Its schema is not an Avro schema.")
        kind = schema.get("type")
        if kind in ("array", "map"):
            part = "items" if kind == "array" else "values"
            items, min_bytes, depth = self._type(schema.get(part), level + 1)
            if min_bytes == 0:
                raise MalformedData("A list of empty values may be endless.")
            return {"type": kind, part: items}, 1, self._nested_level(depth)
        if kind in _NAMED_KINDS:
            return self._convert_named_type(schema, kind, level)
        return self._type(kind, level + 1)

    def _reference(self, name: str) -> tuple[int, int]:
        if name in _MIN_BYTES_OF_PRIMITIVE:
            return _MIN_BYTES_OF_PRIMITIVE[name], 1
        min_bytes, depth = self._complete.get(_short_name(name), (0, 0))
        # An incomplete type contains itself. References to empty types could nest without limit.
        if _short_name(name) in self._open_types or min_bytes == 0:
            raise MalformedData("Its schema refers to an unknown type, or is recursive.")
        return min_bytes, depth

    def _convert_named_type(
        self, schema: dict[str, Any], kind: str, level: int
    ) -> tuple[object, int, int]:
        name = schema.get("name")
        if (
            not isinstance(name, str)
            or _short_name(name) in self._open_types | self._complete.keys()
        ):
            raise MalformedData("A type in its schema has no name, or a name that is used twice.")
        plain: dict[str, Any] = {
            key: schema[key] for key in ("type", "name", "namespace") if key in schema
        }
        if kind == "enum":
            plain["symbols"], min_bytes, depth = schema.get("symbols"), 1, 1
        elif kind == "fixed":
            size = schema.get("size")
            if not isinstance(size, int) or size < 0:
                raise MalformedData("A type in its schema has no size.")
            plain["size"], min_bytes, depth = size, size, 1
        else:
            self._open_types.add(_short_name(name))
            plain["fields"], min_bytes, depth = self._fields(schema.get("fields"), level)
            self._open_types.discard(_short_name(name))
        self._complete[_short_name(name)] = min_bytes, depth
        return plain, min_bytes, depth

    def _fields(self, fields: object, level: int) -> tuple[list[Any], int, int]:
        plain: list[Any] = []
        total, deepest = 0, 0
        for field in fields if isinstance(fields, list) else ():
            if not (isinstance(field, dict) and isinstance(field.get("name"), str)):
                raise MalformedData("A field in its schema has no name.")
            type, min_bytes, depth = self._type(field.get("type"), level + 1)
            total, deepest = total + min_bytes, max(deepest, depth)
            if self._keep is None or level > 2 or field["name"] in self._keep:
                plain.append({"name": field["name"], "type": type})
        return plain, total, self._nested_level(deepest)

    def _nested_level(self, depth: int) -> int:
        if depth >= _MAX_DEPTH:
            raise MalformedData("Its schema nests too deeply.")
        return depth + 1


def _short_name(name: str) -> str:
    return name.rpartition(".")[2]


def _xz(block: bytes, max_bytes: int) -> bytes:
    try:
        return decompress_block(
            lzma.LZMADecompressor(memlimit=MAX_BLOCK_BYTES * 2), block, max_bytes
        )
    except lzma.LZMAError as problem:
        raise MalformedData(f"A compressed block is damaged: {problem}") from None


CODECS: Final[dict[bytes, Callable[[bytes, int], bytes]]] = {
    b"null": check_block_size,
    b"": check_block_size,
    b"deflate": decompress_deflate,
    # A checksum of four bytes follows the content.
    b"snappy": lambda block, limit: decompress_snappy(block[:-4], limit),
    b"zstandard": decompress_zstd,
    b"bzip2": lambda block, limit: decompress_block(bz2.BZ2Decompressor(), block, limit),
    b"xz": _xz,
}
