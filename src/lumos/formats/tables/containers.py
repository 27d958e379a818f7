"""Avro container files of table formats, read within bounds.

The library unfolds blocks however large they get, and follows schemas that hold themselves until
the process ends. So the file is taken apart here: it is given blocks that are unfolded already,
and a schema that is known to be flat and to cost bytes for every value.
"""

import bz2
import io
import lzma
import zlib
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from typing import Any, Final

import fastavro
import msgspec
import pyarrow as pa
from fastavro.schema import SchemaParseException

from lumos.formats.varints import CutOff, Malformed, signed, within

_MAGIC: Final = b"Obj\x01"
_SYNC: Final = 16
_LONGEST_KEPT: Final = 100_000
LONGEST_BLOCK: Final = 64 * 1024 * 1024
LONGEST_CONTENT: Final = 256 * 1024 * 1024
_DEEPEST: Final = 32
_PRIMITIVE: Final = {
    "null": 0, "boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8, "bytes": 1, "string": 1,
}  # fmt: skip
_NAMED: Final = ("record", "error", "enum", "fixed")
_FAULTS_OF_THE_LIBRARY: Final = (
    ArithmeticError, AttributeError, EOFError, LookupError, SchemaParseException, TypeError,
    ValueError, fastavro.read.SchemaResolutionError,
)  # fmt: skip


class Container:
    """An Avro container file; raises CutOff and Malformed."""

    def __init__(self, data: bytes) -> None:
        if not data.startswith(_MAGIC):
            raise Malformed("It does not begin as Avro does.")
        self._data = data
        self.metadata, self._start = _header(data)
        self._text = self.metadata.get("avro.schema", b"")
        self.schema: Any = _checked(self._text, None)[0]

    def records(self, keep: Collection[str] | None = None) -> Iterator[dict[str, Any]]:
        """The records with raw values; of those and of records inside, only the fields to keep."""
        try:
            _, written = _checked(self._text, None)
            _, wanted = (None, None) if keep is None else _checked(self._text, frozenset(keep))
            for count, block in self._blocks():
                stream = io.BytesIO(block)
                for _ in range(count):
                    record = fastavro.schemaless_reader(stream, written, wanted)
                    if not isinstance(record, dict):
                        raise Malformed("It does not hold records.")
                    yield record
                if stream.read(1):
                    raise Malformed("A block holds more than its records.")
        except (CutOff, Malformed):
            raise
        except _FAULTS_OF_THE_LIBRARY as problem:
            raise Malformed(f"A record cannot be read ({type(problem).__name__}).") from None

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """The number of records and the bytes of each block, one after the other."""
        codec = self.metadata.get("avro.codec", b"null")
        unfold = CODECS.get(codec)
        if unfold is None:
            raise Malformed(f"Its compression {codec[:20]!r} is not known.")
        data, position = self._data, self._start
        own_sync = data[position - _SYNC : position]
        left = LONGEST_CONTENT
        while position < len(data):
            count, position = signed(data, position)
            size, position = signed(data, position)
            if count < 0 or size < 0:
                raise Malformed("A block is smaller than nothing.")
            end = within(data, position + size + _SYNC)
            if data[end - _SYNC : end] != own_sync:
                raise Malformed("A block does not end where it should.")
            block = unfold(data[position : end - _SYNC], min(left, LONGEST_BLOCK))
            # Every record costs a byte, so that a count cannot promise more than is there.
            if count > len(block):
                raise Malformed("A block counts more records than it can hold.")
            left -= len(block)
            yield count, block
            position = end


def _checked(text: bytes, keep: frozenset[str] | None) -> tuple[Any, Any]:
    """A schema as it stands there, and as the library may be given it."""
    return (_checked_once if len(text) <= _LONGEST_KEPT else _checked_now)(text, keep)


def _checked_now(text: bytes, keep: frozenset[str] | None) -> tuple[Any, Any]:
    try:
        schema = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise Malformed("Its schema is no JSON.") from None
    plain = _Plain().schema(schema, keep=keep)
    try:
        return schema, fastavro.parse_schema(plain)
    except _FAULTS_OF_THE_LIBRARY as problem:
        raise Malformed(f"Its schema cannot be used ({type(problem).__name__}).") from None


# Thousands of files of one table have the same schema.
_checked_once: Final = lru_cache(maxsize=16)(_checked_now)


def _header(data: bytes) -> tuple[dict[str, bytes], int]:
    """What the header tells, and where the blocks begin."""
    told: dict[str, bytes] = {}
    position = len(_MAGIC)
    while True:
        count, position = signed(data, position)
        if count == 0:
            return told, within(data, position + _SYNC)
        if count < 0:
            count, (_, position) = -count, signed(data, position)
        for _ in range(count):
            key, position = _bytes(data, position)
            told[key.decode("utf-8", "replace")], position = _bytes(data, position)


def _bytes(data: bytes, position: int) -> tuple[bytes, int]:
    length, position = signed(data, position)
    if length < 0:
        raise Malformed("A text is shorter than nothing.")
    end = within(data, position + length)
    return data[position:end], end


class _Plain:
    """A schema without logical types, checked: no type holds itself, and no list is free."""

    def __init__(self) -> None:
        # The least bytes and the depth of each named type that is complete.
        self._known: dict[str, tuple[int, int]] = {}
        self._around: set[str] = set()
        self._keep: Collection[str] | None = None

    def schema(self, schema: object, *, keep: Collection[str] | None) -> Any:
        """The plain schema; with `keep`, records have only these fields."""
        self._keep = keep
        plain, least, _ = self._type(schema, 1)
        if least == 0:
            raise Malformed("Its records are empty.")
        return plain

    def _type(self, schema: object, level: int) -> tuple[object, int, int]:
        if level > _DEEPEST:
            raise Malformed("Its schema nests too deeply.")
        if isinstance(schema, str):
            return schema, *self._reference(schema)
        if isinstance(schema, list):
            options = [self._type(option, level + 1) for option in schema]
            deepest = max((depth for _, _, depth in options), default=0)
            return [plain for plain, _, _ in options], 1, self._deeper(deepest)
        if not isinstance(schema, dict):
            raise Malformed("Its schema is none of Avro.")
        kind = schema.get("type")
        if kind in ("array", "map"):
            part = "items" if kind == "array" else "values"
            items, least, depth = self._type(schema.get(part), level + 1)
            if least == 0:
                raise Malformed("A list of nothing may be endless.")
            return {"type": kind, part: items}, 1, self._deeper(depth)
        if kind in _NAMED:
            return self._named(schema, kind, level)
        return self._type(kind, level + 1)

    def _reference(self, name: str) -> tuple[int, int]:
        if name in _PRIMITIVE:
            return _PRIMITIVE[name], 1
        least, depth = self._known.get(_short(name), (0, 0))
        # What is still open holds itself; a reference that costs nothing could be doubled forever.
        if _short(name) in self._around or least == 0:
            raise Malformed("Its schema refers to a type that is not there, or to itself.")
        return least, depth

    def _named(self, schema: dict[str, Any], kind: str, level: int) -> tuple[object, int, int]:
        name = schema.get("name")
        if not isinstance(name, str) or _short(name) in self._around | self._known.keys():
            raise Malformed("A type in its schema has no name of its own.")
        plain: dict[str, Any] = {
            key: schema[key] for key in ("type", "name", "namespace") if key in schema
        }
        if kind == "enum":
            plain["symbols"], least, depth = schema.get("symbols"), 1, 1
        elif kind == "fixed":
            size = schema.get("size")
            if not isinstance(size, int) or size < 0:
                raise Malformed("A type in its schema has no size.")
            plain["size"], least, depth = size, size, 1
        else:
            self._around.add(_short(name))
            plain["fields"], least, depth = self._fields(schema.get("fields"), level)
            self._around.discard(_short(name))
        self._known[_short(name)] = least, depth
        return plain, least, depth

    def _fields(self, fields: object, level: int) -> tuple[list[Any], int, int]:
        plain: list[Any] = []
        total, deepest = 0, 0
        for field in fields if isinstance(fields, list) else ():
            if not (isinstance(field, dict) and isinstance(field.get("name"), str)):
                raise Malformed("A field in its schema has no name.")
            type, least, depth = self._type(field.get("type"), level + 1)
            total, deepest = total + least, max(deepest, depth)
            if self._keep is None or level > 2 or field["name"] in self._keep:
                plain.append({"name": field["name"], "type": type})
        return plain, total, self._deeper(deepest)

    def _deeper(self, depth: int) -> int:
        if depth >= _DEEPEST:
            raise Malformed("Its schema nests too deeply.")
        return depth + 1


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _deflate(block: bytes, most: int) -> bytes:
    return _stepwise(zlib.decompressobj(-15), block, most)


def _bzip2(block: bytes, most: int) -> bytes:
    return _stepwise(bz2.BZ2Decompressor(), block, most)


def _xz(block: bytes, most: int) -> bytes:
    return _stepwise(lzma.LZMADecompressor(memlimit=LONGEST_BLOCK * 2), block, most)


def _stepwise(decompressor: Any, block: bytes, most: int) -> bytes:
    try:
        content: bytes = decompressor.decompress(block, most + 1)
    except (zlib.error, OSError, EOFError, lzma.LZMAError):
        raise Malformed("A compressed block is damaged.") from None
    if len(content) <= most and not decompressor.eof:
        raise CutOff
    return _within(content, most)


def _zstandard(block: bytes, most: int) -> bytes:
    try:
        with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
            return _within(stream.read(most + 1), most)
    except (pa.ArrowException, OSError):
        raise Malformed("A compressed block is damaged.") from None


def _snappy(block: bytes, most: int) -> bytes:
    """Raw Snappy says first how long its content is; four bytes of checksum follow it."""
    length, shift = 0, 0
    for step in block[:5]:
        length |= (step & 0x7F) << shift
        shift += 7
        if step < 0x80:
            break
    if length > most:
        raise Malformed("A block is too large.")
    try:
        content: bytes = pa.decompress(block[:-4], length, codec="snappy", asbytes=True)
    except (pa.ArrowException, OSError):
        raise Malformed("A compressed block is damaged.") from None
    return content


def _null(block: bytes, most: int) -> bytes:
    return _within(block, most)


def _within(content: bytes, most: int) -> bytes:
    if len(content) > most:
        raise Malformed("A block is too large.")
    return content


CODECS: Final[dict[bytes, Callable[[bytes, int], bytes]]] = {
    b"null": _null,
    b"": _null,
    b"deflate": _deflate,
    b"snappy": _snappy,
    b"zstandard": _zstandard,
    b"bzip2": _bzip2,
    b"xz": _xz,
}
