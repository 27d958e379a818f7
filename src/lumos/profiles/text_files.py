"""Reads rows of CSV and JSON files in any encoding and compression."""

import codecs
import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.json as arrow_json

from lumos.formats.columns import name_of_unnamed_column
from lumos.formats.compression import compression_of
from lumos.formats.csv import CsvDialect, dialect_of
from lumos.formats.identification import hints_from_name
from lumos.formats.inference import NULLS
from lumos.formats.interface import Content, Sample, UnreadableFile
from lumos.formats.text import encoding_of
from lumos.model.conversions.arrow import type_to_arrow
from lumos.model.types import BOOLEAN, FLOAT64, INT64, Array, DataType, String, Struct
from lumos.profiles.tasks import ChunksInput, FileTask, RowBatch
from lumos.profiles.values import arrays_from_records

_CHUNK_BYTES: Final = 1024 * 1024
_BLOCK_BYTES: Final = 4 * 1024 * 1024
_HEAD_BYTES: Final = 64 * 1024
_CODECS: Final = {"gzip": "gzip", "zstd": "zstd", "bzip2": "bz2"}
_ROWS_PER_BATCH: Final = 64 * 1024
_SPACE: Final = " "


class TextFile(Content):
    """An open text file; returns a sample of its content, or all of it as UTF-8."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file
        self._compression = compression_of(file.read(_HEAD_BYTES))

    def sample(self, length: int) -> Sample:
        with self._open_decompressed() as stream:
            data = stream.read(length + 1)
        return Sample(data[:length], len(data) <= length, None)

    def text(self) -> io.BufferedReader:
        """The whole text as UTF-8, with invalid characters replaced.

        Nothing else may read the file at the same time.
        """
        encoding = encoding_of(self.sample(_HEAD_BYTES))
        stream = self._open_decompressed()
        chunks = iter(lambda: stream.read(_CHUNK_BYTES), b"")
        texts = codecs.iterdecode(chunks, encoding, errors="replace")
        return io.BufferedReader(ChunksInput(text.encode() for text in texts), _CHUNK_BYTES)

    def _open_decompressed(self) -> pa.NativeFile:
        self._file.seek(0)
        stored = pa.PythonFile(_UnclosableInput(self._file), "r")
        if self._compression is None:
            return stored
        return pa.CompressedInputStream(stored, _CODECS[self._compression.name])


class _UnclosableInput(io.RawIOBase):
    """A file that stays open when a reader closes it."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        data: bytes = self._file.read(None if size < 0 else size)
        return data


def read_csv(
    file: pa.NativeFile, task: FileTask, wanted: Mapping[str, DataType]
) -> Iterator[RowBatch]:
    """Yield the wanted columns as text; values such as `NA` become null."""
    content = TextFile(file)
    suffix = hints_from_name(task.path.rpartition("/")[2]).suffix
    dialect = dialect_of(content, suffix=suffix)
    names = [name for name in task.names if name in wanted]
    split = _split_at_spaces if dialect.delimiter == _SPACE else _split_at_delimiter
    start = 0
    for batch in split(content.text(), task, dialect):
        columns = {name: batch.column(task.names.index(name)) for name in names}
        yield RowBatch(start, batch.num_rows, columns, share=task.sample)
        start += batch.num_rows


def _split_at_delimiter(
    text: io.BufferedReader, task: FileTask, dialect: CsvDialect
) -> Iterator[pa.RecordBatch]:
    irregular_lines: list[str] = []

    def collect(row: arrow_csv.InvalidRow) -> str:
        irregular_lines.append(row.text)
        return "skip"

    schema = _schema(task)
    try:
        reader = arrow_csv.open_csv(
            text,
            read_options=arrow_csv.ReadOptions(
                use_threads=False,
                block_size=_BLOCK_BYTES,
                skip_rows=dialect.skipped_lines,
                column_names=list(schema.names),
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=dialect.delimiter,
                quote_char='"' if dialect.quoted else False,
                escape_char=dialect.escape or False,
                newlines_in_values=dialect.quoted,
                invalid_row_handler=collect,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=schema,
                null_values=sorted(NULLS),
                strings_can_be_null=True,
            ),
        )
    except pa.ArrowInvalid as problem:
        if "Empty CSV file" in str(problem):
            return
        raise
    while True:
        try:
            yield reader.read_next_batch()
        except StopIteration:
            break
        # Rows with another number of cells are counted, too.
        if len(irregular_lines) > _ROWS_PER_BATCH:
            yield _batch_of_lines(irregular_lines, schema, dialect)
            irregular_lines.clear()
    if irregular_lines:
        yield _batch_of_lines(irregular_lines, schema, dialect)


def _batch_of_lines(lines: Iterable[str], schema: pa.Schema, dialect: CsvDialect) -> pa.RecordBatch:
    if dialect.quoted:
        options = {"delimiter": dialect.delimiter, "escapechar": dialect.escape}
        rows: Iterable[list[str]] = csv.reader(lines, **options)  # type: ignore[arg-type]
    else:
        rows = (line.split(dialect.delimiter) for line in lines)
    return _batch_of_rows(rows, schema)


def _split_at_spaces(
    text: io.BufferedReader, task: FileTask, dialect: CsvDialect
) -> Iterator[pa.RecordBatch]:
    """Yield rows whose cells are separated by any number of spaces."""
    lines = islice(io.TextIOWrapper(text, encoding="utf-8"), dialect.skipped_lines, None)
    rows = (
        line.split()
        if '"' not in line
        else next(csv.reader([line.strip()], delimiter=_SPACE, skipinitialspace=True), [])
        for line in lines
        if line.strip()
    )
    while chunk := list(islice(rows, _ROWS_PER_BATCH)):
        yield _batch_of_rows(chunk, _schema(task))


def _batch_of_rows(rows: Iterable[Sequence[str]], schema: pa.Schema) -> pa.RecordBatch:
    width = len(schema)
    cells = [[*row[:width], *[""] * (width - len(row))] for row in rows]
    columns = zip(*cells, strict=True) if cells else [()] * width
    arrays = [
        pa.array([None if cell in NULLS else cell for cell in column], pa.string())
        for column in columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _schema(task: FileTask) -> pa.Schema:
    # Use generated names: names in files may not be valid Unicode, which Arrow requires.
    return pa.schema([(f"c{number}", pa.string()) for number in range(len(task.names))])


_MAX_RECORD_BYTES: Final = 64 * 1024 * 1024
_RECORDS_PER_BATCH: Final = 16 * 1024
_SEPARATORS: Final = re.compile(r"[ \t\r\n,]*")
# The names of the columns of files whose values are not objects.
_VALUE_NAMES: Final = ("value",)

_fast_decoder = msgspec.json.Decoder()
_tolerant_decoder = json.JSONDecoder()


def read_json(
    file: pa.NativeFile, task: FileTask, wanted: Mapping[str, DataType]
) -> Iterator[RowBatch]:
    """Yield the records of a file with JSON lines, an array, or consecutive objects."""
    text = TextFile(file).text()
    constants = {name for name, _ in task.constants} - {*task.names}
    types = {name: type for name, type in wanted.items() if name not in constants}
    read_records = _read_lines if _has_json_lines(text) else _read_values
    start = 0
    for batch in read_records(text, types, task):
        yield batch._replace(start=start, share=task.sample)
        start += batch.rows


def _has_json_lines(text: io.BufferedReader) -> bool:
    """Whether the first line is a complete record."""
    head = text.peek(_BLOCK_BYTES).lstrip()
    line, newline, _ = head.partition(b"\n")
    if not newline or not line.startswith(b"{"):
        return False
    try:
        _fast_decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _read_lines(
    text: io.BufferedReader, types: Mapping[str, DataType], task: FileTask
) -> Iterator[RowBatch]:
    # Arrow cannot look up an empty key.
    schema = None if name_of_unnamed_column(task.names) in types else _arrow_schema(types)
    partial = b""
    while True:
        data = text.read(_BLOCK_BYTES)
        end = data.rfind(b"\n") + 1 if data else 0
        block, partial = (
            (partial + data[:end], data[end:]) if end or not data else (b"", partial + data)
        )
        if len(partial) > _MAX_RECORD_BYTES:
            raise UnreadableFile(
                "line_too_long", f"A record is longer than {_MAX_RECORD_BYTES:,} bytes."
            )
        if block.strip():
            yield _read_with_arrow(block, schema) or _read_block(block, types, task)
        if not data:
            return


def _arrow_schema(types: Mapping[str, DataType]) -> pa.Schema | None:
    """The schema for Arrow's JSON reader; None if it cannot read the types."""
    if not types or not all(map(_is_readable_by_arrow, types.values())):
        return None
    return pa.schema([(name, type_to_arrow(type)) for name, type in types.items()])


def _is_readable_by_arrow(type: DataType) -> bool:
    match type:
        case Struct(members):
            return bool(members) and all(_is_readable_by_arrow(member.type) for member in members)
        case Array(element):
            return _is_readable_by_arrow(element)
        case String():
            return True
        case _:
            return type in (BOOLEAN, INT64, FLOAT64)


def _read_with_arrow(block: bytes, schema: pa.Schema | None) -> RowBatch | None:
    """Read records with Arrow; None if any of them does not have the expected types."""
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
    return RowBatch(0, table.num_rows, columns)


def _read_block(block: bytes, types: Mapping[str, DataType], task: FileTask) -> RowBatch:
    try:
        return _batch(_fast_decoder.decode_lines(block), types, task)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    values, bad_records = [], 0
    for line in block.split(b"\n"):
        try:
            if line.strip():
                values.append(_tolerant_decoder.decode(line.decode("utf-8", "replace")))
        except (ValueError, RecursionError):
            bad_records += 1
    batch = _batch(values, types, task)
    return batch._replace(bad_records=batch.bad_records + bad_records)


def _read_values(
    text: io.BufferedReader, types: Mapping[str, DataType], task: FileTask
) -> Iterator[RowBatch]:
    values = _JsonValues(text)
    while chunk := list(islice(values, _RECORDS_PER_BATCH)):
        yield _batch(chunk, types, task)
    if values.bad_records:
        yield RowBatch(0, 0, {}, bad_records=values.bad_records)


class _JsonValues:
    """Iterates over the elements of arrays and the values between arrays."""

    def __init__(self, text: io.BufferedReader) -> None:
        self._text = io.TextIOWrapper(text, encoding="utf-8")
        self._buffer = ""
        self._position = 0
        self._in_array = False
        self._at_end = False
        self.bad_records = 0

    def __iter__(self) -> Iterator[Any]:
        while True:
            self._position = self._skip_separators()
            if self._position == len(self._buffer):
                if not self._read_more():
                    return
                continue
            character = self._buffer[self._position]
            if character == "[" and not self._in_array:
                self._in_array, self._position = True, self._position + 1
            elif character == "]" and self._in_array:
                self._in_array, self._position = False, self._position + 1
            else:
                try:
                    value, end = _tolerant_decoder.raw_decode(self._buffer, self._position)
                except ValueError:
                    if not self._read_more() and not self._skip_invalid():
                        return
                    continue
                # A number may continue in the next block.
                if end == len(self._buffer) and self._read_more():
                    continue
                self._position = end
                yield value

    def _skip_separators(self) -> int:
        separators = _SEPARATORS.match(self._buffer, self._position)
        return separators.end() if separators else self._position

    def _read_more(self) -> bool:
        """Read more text, twice as much for long values.

        Returns False at the end of the text, or if the current value exceeds the limit.
        """
        rest = self._buffer[self._position :]
        if self._at_end or len(rest) > _MAX_RECORD_BYTES:
            return False
        data = self._text.read(max(_BLOCK_BYTES, len(rest)))
        self._at_end = not data
        self._buffer, self._position = rest + data, 0
        return bool(data)

    def _skip_invalid(self) -> bool:
        """Skip an invalid value; return False if no other value follows."""
        self.bad_records += 1
        next_line = self._buffer.find("\n{", self._position + 1)
        self._position = next_line + 1 if next_line >= 0 else len(self._buffer)
        return next_line >= 0


def _batch(values: Sequence[Any], types: Mapping[str, DataType], task: FileTask) -> RowBatch:
    records = [value for value in values if isinstance(value, dict)]
    if not records and task.names == _VALUE_NAMES:
        # Arrays of numbers or texts have a single column.
        records = [{_VALUE_NAMES[0]: value} for value in values]
    if (name := name_of_unnamed_column(task.names)) in types:
        records = [{name: record.get(""), **record} for record in records]
    return RowBatch(
        0, len(records), arrays_from_records(records, types), bad_records=len(values) - len(records)
    )
