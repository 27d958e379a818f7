"""Rows of JSON and Avro files: records, of which only the wanted columns are kept."""

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.json as arrow_json

from lumos.formats import UnreadableFile
from lumos.formats.names import nameless
from lumos.model.conversions.arrow import type_to_arrow
from lumos.model.types import BOOLEAN, FLOAT64, INT64, Array, DataType, String, Struct
from lumos.profiles.column_names import KnownField
from lumos.profiles.records import columns_of
from lumos.profiles.rows import Batch, FileTask
from lumos.profiles.text_files import TextFile

_BLOCK: Final = 4 * 1024 * 1024
_LONGEST: Final = 64 * 1024 * 1024
_RECORDS: Final = 16 * 1024
_BETWEEN: Final = re.compile(r"[ \t\r\n,]*")
_VALUE: Final = ("value",)

_quick = msgspec.json.Decoder()
_slow = json.JSONDecoder()


def read_json(
    file: pa.NativeFile, task: FileTask, wanted: Mapping[str, DataType]
) -> Iterator[Batch]:
    """The records of a file of lines, of an array, or of objects one after the other."""
    text = TextFile(file).text()
    elsewhere = {name for name, _ in task.constants} - {*task.names}
    types = {name: type for name, type in wanted.items() if name not in elsewhere}
    found = _lines(text, types, task) if _is_of_lines(text) else _values(text, types, task)
    start = 0
    for batch in found:
        yield batch._replace(start=start, share=task.sample)
        start += batch.rows


def _is_of_lines(text: io.BufferedReader) -> bool:
    """Whether the first line is a record by itself."""
    head = text.peek(_BLOCK).lstrip()
    line, ends, _ = head.partition(b"\n")
    if not ends or not line.startswith(b"{"):
        return False
    try:
        _quick.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _lines(
    text: io.BufferedReader, types: Mapping[str, DataType], task: FileTask
) -> Iterator[Batch]:
    # A key that is no name is looked for only in records.
    schema = None if nameless(task.names) in types else _arrow_schema(types)
    left = b""
    while True:
        data = text.read(_BLOCK)
        end = data.rfind(b"\n") + 1 if data else 0
        block, left = (left + data[:end], data[end:]) if end or not data else (b"", left + data)
        if len(left) > _LONGEST:
            raise UnreadableFile("line_too_long", f"A record is longer than {_LONGEST:,} bytes.")
        if block.strip():
            yield _quickly(block, schema) or _of_block(block, types, task)
        if not data:
            return


def _arrow_schema(types: Mapping[str, DataType]) -> pa.Schema | None:
    """The types as Arrow reads JSON; nothing where it cannot."""
    if not types or not all(map(_is_plain, types.values())):
        return None
    return pa.schema([(name, type_to_arrow(type)) for name, type in types.items()])


def _is_plain(type: DataType) -> bool:
    match type:
        case Struct(members):
            return bool(members) and all(_is_plain(member.type) for member in members)
        case Array(element):
            return _is_plain(element)
        case String():
            return True
        case _:
            return type in (BOOLEAN, INT64, FLOAT64)


def _quickly(block: bytes, schema: pa.Schema | None) -> Batch | None:
    """The records as Arrow reads them; nothing where one is otherwise than all should be."""
    if schema is None:
        return None
    try:
        table = arrow_json.read_json(
            pa.BufferReader(block),
            arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
            arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        ).combine_chunks()
    except pa.ArrowException:
        return None
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    return Batch(0, table.num_rows, columns)


def _of_block(block: bytes, types: Mapping[str, DataType], task: FileTask) -> Batch:
    try:
        return _batch(_quick.decode_lines(block), types, task)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    values, bad = [], 0
    for line in block.split(b"\n"):
        try:
            if line.strip():
                values.append(_slow.decode(line.decode("utf-8", "replace")))
        except (ValueError, RecursionError):
            bad += 1
    batch = _batch(values, types, task)
    return batch._replace(bad=batch.bad + bad)


def _values(
    text: io.BufferedReader, types: Mapping[str, DataType], task: FileTask
) -> Iterator[Batch]:
    values = _Values(text)
    while some := list(islice(values, _RECORDS)):
        yield _batch(some, types, task)
    if values.bad:
        yield Batch(0, 0, {}, bad=values.bad)


class _Values:
    """The elements of arrays and the values between them, one after the other."""

    def __init__(self, text: io.BufferedReader) -> None:
        self._text = io.TextIOWrapper(text, encoding="utf-8")
        self._buffer = ""
        self._position = 0
        self._in_array = False
        self._is_all = False
        self.bad = 0

    def __iter__(self) -> Iterator[Any]:
        while True:
            self._position = self._after_space()
            if self._position == len(self._buffer):
                if not self._more():
                    return
                continue
            mark = self._buffer[self._position]
            if mark == "[" and not self._in_array:
                self._in_array, self._position = True, self._position + 1
            elif mark == "]" and self._in_array:
                self._in_array, self._position = False, self._position + 1
            else:
                try:
                    value, end = _slow.raw_decode(self._buffer, self._position)
                except ValueError:
                    if not self._more() and not self._skipped():
                        return
                    continue
                # The next piece may go on with the same number.
                if end == len(self._buffer) and self._more():
                    continue
                self._position = end
                yield value

    def _after_space(self) -> int:
        space = _BETWEEN.match(self._buffer, self._position)
        return space.end() if space else self._position

    def _more(self) -> bool:
        """Reads on, more the longer a value is; not at the end, or beyond all reason."""
        kept = self._buffer[self._position :]
        if self._is_all or len(kept) > _LONGEST:
            return False
        data = self._text.read(max(_BLOCK, len(kept)))
        self._is_all = not data
        self._buffer, self._position = kept + data, 0
        return bool(data)

    def _skipped(self) -> bool:
        """Leaves out what is no value; not where nothing follows."""
        self.bad += 1
        following = self._buffer.find("\n{", self._position + 1)
        self._position = following + 1 if following >= 0 else len(self._buffer)
        return following >= 0


def _batch(values: Sequence[Any], types: Mapping[str, DataType], task: FileTask) -> Batch:
    records = [value for value in values if isinstance(value, dict)]
    if not records and task.names == _VALUE:
        # Arrays of numbers or texts have one column.
        records = [{_VALUE[0]: value} for value in values]
    if (name := nameless(task.names)) in types:
        records = [{name: record.get(""), **record} for record in records]
    return Batch(0, len(records), columns_of(records, types), bad=len(values) - len(records))


def read_avro(
    file: pa.NativeFile, task: FileTask, wanted: Mapping[str, DataType]
) -> Iterator[Batch]:
    """The records of a container file."""
    from lumos.profiles.avro_container import reader_of

    reader = reader_of(io.BufferedReader(_Readable(file), _BLOCK))
    records = iter(reader)
    if _is_record(reader.writer_schema):
        names = _names_of(reader.writer_schema, task, wanted)
    else:
        names = {name: name for name in _VALUE if name in wanted}
        records = ({_VALUE[0]: value} for value in records)
    types = {own: wanted[name] for name, own in names.items()}
    start = 0
    while some := list(islice(records, _RECORDS)):
        columns = columns_of(some, types)
        told = {name: columns[own] for name, own in names.items()}
        yield Batch(start, len(some), told, share=task.sample)
        start += len(some)


def _is_record(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") in ("record", "error")


def _names_of(schema: Any, task: FileTask, wanted: Iterable[str]) -> dict[str, str]:
    """What a file calls the wanted columns that it has; Iceberg's tell them by ids."""
    fields = schema["fields"]
    by_id = {field["field-id"]: field["name"] for field in fields if "field-id" in field}
    present = {field["name"] for field in fields}
    known = {each.name: each for each in task.fields}
    own: dict[str, str] = {}
    for name in wanted:
        field = known.get(name) or KnownField(name)
        names = field.names_in_files
        if by_id and field.id is not None:
            names = (by_id[field.id],) if field.id in by_id else ()
        own.update((name, each) for each in names if each in present)
    return own


class _Readable(io.RawIOBase):
    """Arrow's file as Python's libraries read files."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
