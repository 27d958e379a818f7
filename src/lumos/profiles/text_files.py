"""Text of files as UTF-8, whatever they are encoded and compressed with, and rows of CSV in it."""

import codecs
import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

import pyarrow as pa
import pyarrow.csv as arrow_csv

from lumos.formats.compression import compression_of
from lumos.formats.csv import Dialect, dialect_of
from lumos.formats.interface import Content, Sample
from lumos.formats.naming import promise_of
from lumos.formats.scalars import NULLS
from lumos.formats.text import encoding_of
from lumos.model.types import DataType
from lumos.profiles.rows import Batch, FileTask

_CHUNK: Final = 1024 * 1024
_BLOCK: Final = 4 * 1024 * 1024
_HEAD: Final = 64 * 1024
_CODECS: Final = {"gzip": "gzip", "zstd": "zstd", "bzip2": "bz2"}
_ROWS: Final = 64 * 1024
_SPACE: Final = " "


class _Text(io.RawIOBase):
    """Bytes of any encoding as those of UTF-8; what is no character is replaced."""

    def __init__(self, file: pa.NativeFile, encoding: str) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        while not self._left:
            data = self._file.read(_CHUNK)
            self._left = self._decoder.decode(data, not data).encode()
            if not data:
                break
        given = self._left[: len(buffer)]
        buffer[: len(given)] = given
        self._left = self._left[len(given) :]
        return len(given)


class TextFile(Content):
    """An opened file of text: its beginning, and all of it as UTF-8."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file
        self._compression = compression_of(file.read(_HEAD))

    def sample(self, length: int) -> Sample:
        with self._unpacked() as stream:
            data = stream.read(length + 1)
        return Sample(data[:length], len(data) <= length, None)

    def text(self) -> io.BufferedReader:
        """All of the text; nothing else of the file can be read meanwhile."""
        encoding = encoding_of(self.sample(_HEAD))
        return io.BufferedReader(_Text(self._unpacked(), encoding), _CHUNK)

    def _unpacked(self) -> pa.NativeFile:
        self._file.seek(0)
        kept = pa.PythonFile(_Kept(self._file), "r")
        if self._compression is None:
            return kept
        return pa.CompressedInputStream(kept, _CODECS[self._compression.name])


class _Kept(io.RawIOBase):
    """A file that stays open when somebody who reads it is through."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        data: bytes = self._file.read(None if size < 0 else size)
        return data


def read_csv(
    file: pa.NativeFile, task: FileTask, wanted: Mapping[str, DataType]
) -> Iterator[Batch]:
    """The wanted columns as texts; what stands for null is null."""
    content = TextFile(file)
    suffix = promise_of(task.path.rpartition("/")[2]).suffix
    dialect = dialect_of(content, suffix=suffix)
    names = [name for name in task.names if name in wanted]
    divide = _spaced if dialect.delimiter == _SPACE else _divided
    found = divide(content.text(), task, dialect)
    start = 0
    for batch in found:
        columns = {name: batch.column(task.names.index(name)) for name in names}
        yield Batch(start, batch.num_rows, columns, share=task.sample)
        start += batch.num_rows


def _divided(text: io.BufferedReader, task: FileTask, dialect: Dialect) -> Iterator[pa.RecordBatch]:
    odd: list[str] = []

    def keep(row: arrow_csv.InvalidRow) -> str:
        odd.append(row.text)
        return "skip"

    schema = _schema(task)
    try:
        reader = arrow_csv.open_csv(
            text,
            read_options=arrow_csv.ReadOptions(
                use_threads=False,
                block_size=_BLOCK,
                skip_rows=dialect.above,
                column_names=list(schema.names),
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=dialect.delimiter,
                quote_char='"' if dialect.quoted else False,
                escape_char=dialect.escape or False,
                newlines_in_values=dialect.quoted,
                invalid_row_handler=keep,
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
        # Rows of another width are few, but they are rows.
        if len(odd) > _ROWS:
            yield _of_lines(odd, schema, dialect)
            odd.clear()
    if odd:
        yield _of_lines(odd, schema, dialect)


def _of_lines(lines: Iterable[str], schema: pa.Schema, dialect: Dialect) -> pa.RecordBatch:
    if dialect.quoted:
        options = {"delimiter": dialect.delimiter, "escapechar": dialect.escape}
        rows: Iterable[list[str]] = csv.reader(lines, **options)  # type: ignore[arg-type]
    else:
        rows = (line.split(dialect.delimiter) for line in lines)
    return _of_rows(rows, schema)


def _spaced(text: io.BufferedReader, task: FileTask, dialect: Dialect) -> Iterator[pa.RecordBatch]:
    """Rows divided by any number of spaces."""
    lines = islice(io.TextIOWrapper(text, encoding="utf-8"), dialect.above, None)
    rows = (
        line.split()
        if '"' not in line
        else next(csv.reader([line.strip()], delimiter=_SPACE, skipinitialspace=True), [])
        for line in lines
        if line.strip()
    )
    while some := list(islice(rows, _ROWS)):
        yield _of_rows(some, _schema(task))


def _of_rows(rows: Iterable[Sequence[str]], schema: pa.Schema) -> pa.RecordBatch:
    width = len(schema)
    cells = [[*row[:width], *[""] * (width - len(row))] for row in rows]
    columns = zip(*cells, strict=True) if cells else [()] * width
    arrays = [
        pa.array([None if cell in NULLS else cell for cell in column], pa.string())
        for column in columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _schema(task: FileTask) -> pa.Schema:
    # Names need not be Unicode, and Arrow's have to.
    return pa.schema([(f"c{number}", pa.string()) for number in range(len(task.names))])
