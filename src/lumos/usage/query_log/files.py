"""Recognises files of query logs, and reads their rows."""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice, repeat
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, TypeAlias

import msgspec

from lumos.decompression import max_decompressed_bytes
from lumos.errors import LumosError
from lumos.model.json_codec import decode_json
from lumos.usage.query_log.layouts import (
    CSVLOG_COLUMNS,
    FIELDS,
    POSTGRES_LOG,
    LogField,
    RecognisedLayout,
    recognise,
)

LogFileFormat: TypeAlias = Literal["csv", "json lines", "json", "parquet", "server log"]
# The values of one logged statement, in the order of FIELDS.
LogRowValues: TypeAlias = Sequence[Any]

_HEAD_BYTES: Final = 256 * 1024
_MAX_LINE_BYTES: Final = 64 * 1024 * 1024
_MAX_DOCUMENT_BYTES: Final = 512 * 1024 * 1024
_DELIMITERS: Final = (",", "\t", ";", "|")
_EXAMPLE_COUNT: Final = 50
_CHUNK_BYTES: Final = 32 * 1024 * 1024


class UnreadableLog(LumosError):
    """A file that cannot be read as a query log."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        super().__init__(f"{path} cannot be read as a query log: {problem}.")


class LogFile(msgspec.Struct, frozen=True, kw_only=True):
    """A query log file. `keys` is the path to each field in a JSON object or Parquet row."""

    path: str
    format: LogFileFormat
    size: int
    recognised: RecognisedLayout
    keys: dict[LogField, tuple[str, ...]] = {}
    delimiter: str = ","
    has_header: bool = True
    compressed: bool = False
    # File modification time in microseconds, used for totals without a time.
    written_at: int = 0

    @property
    def name(self) -> str:
        """The default name of the log: its file name without extensions."""
        if self.recognised.layout.cumulative:
            return self.recognised.layout.name
        return Path(self.path).name.partition(".")[0] or Path(self.path).name


class LogChunk(msgspec.Struct, frozen=True, array_like=True):
    """A part of a log that can be read on its own, such as a byte range or Parquet row groups."""

    log: LogFile
    start: int = 0
    end: int | None = None


def recognise_log(path: str | Path, mapping: Mapping[str, str] | None = None) -> LogFile | None:
    """Recognise a file as a query log, or return None. `mapping` names its columns."""
    file = Path(path)
    with file.open("rb") as stream:
        data = stream.read(_HEAD_BYTES)
    status = file.stat()
    log = _recognise(file, data, status.st_size, mapping)
    return log and msgspec.structs.replace(log, written_at=status.st_mtime_ns // 1000)


def _recognise(
    file: Path, data: bytes, size: int, mapping: Mapping[str, str] | None
) -> LogFile | None:
    path = str(file)
    if data[:4] == b"PAR1":
        return _recognise_parquet(file, size, mapping)
    compressed = data.startswith(b"\x1f\x8b")
    if compressed:
        try:
            data = zlib.decompressobj(31).decompress(data, _HEAD_BYTES)
        except zlib.error:
            return None
    text = data.decode("utf-8-sig", "replace").lstrip()
    is_json = text[:1] in ("{", "[")
    log = (
        _recognise_json(path, data, size, mapping, compressed=compressed)
        if is_json
        else _recognise_delimited(text, mapping)
    )
    if log is None and not is_json and is_server_log(text):
        log = _make_log("server log", RecognisedLayout(layout=POSTGRES_LOG, indexes={}))
    if log is None:
        return None
    return msgspec.structs.replace(log, path=path, size=size, compressed=compressed)


def chunks(log: LogFile, size: int = _CHUNK_BYTES) -> Iterator[LogChunk]:
    """Split a log into chunks of about `size` bytes; one chunk if its format cannot be split."""
    if log.format == "json lines" and not log.compressed:
        for start in range(0, log.size, size):
            yield LogChunk(log, start, min(start + size, log.size))
    elif log.format == "parquet":
        import pyarrow.parquet as pq

        for row_group in range(pq.read_metadata(log.path).num_row_groups):
            yield LogChunk(log, row_group, row_group + 1)
    else:
        yield LogChunk(log)


def rows(chunk: LogChunk) -> Iterator[LogRowValues]:
    """The rows of a chunk."""
    log = chunk.log
    readers = {
        "csv": _csv_rows,
        "json lines": _json_lines,
        "json": _json_document,
        "parquet": _parquet_rows,
        "server log": _server_log_rows,
    }
    try:
        yield from readers[log.format](chunk)
    except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
        raise UnreadableLog(log.path, f"its gzip data is damaged ({problem})") from None


@contextmanager
def _open(path: str, *, compressed: bool, size: int) -> Iterator[BinaryIO]:
    with open(path, "rb") as stored:
        if not compressed:
            yield stored
            return
        with gzip.GzipFile(fileobj=stored) as decompressed:
            limited = _BoundedStream(decompressed, path, max_decompressed_bytes(size))
            yield io.BufferedReader(limited, 1024 * 1024)


class _BoundedStream(io.RawIOBase):
    """A stream that raises an error if more bytes than a limit are read."""

    def __init__(self, stream: BinaryIO | gzip.GzipFile, path: str, limit: int) -> None:
        self._stream = stream
        self._path = path
        self._remaining = limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        self._remaining -= len(data)
        if self._remaining < 0:
            raise UnreadableLog(self._path, "its decompressed size exceeds the limit")
        buffer[: len(data)] = data
        return len(data)


def _lines(chunk: LogChunk) -> Iterator[str]:
    log = chunk.log
    with _open(log.path, compressed=log.compressed, size=log.size) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
        while line := text.readline(_MAX_LINE_BYTES):
            if len(line) == _MAX_LINE_BYTES:
                raise UnreadableLog(log.path, "it has a line of more than 64 MB")
            yield line


# CSV


def _recognise_delimited(text: str, mapping: Mapping[str, str] | None) -> LogFile | None:
    first = text.partition("\n")[0]
    if _is_csvlog(_cells(first, ",")):
        indexes = {name: index for index, name in enumerate(CSVLOG_COLUMNS)}
        columns = POSTGRES_LOG.columns
        field_indexes = {field: indexes[names[0]] for field, names in columns.items()}
        return _make_log(
            "csv", RecognisedLayout(layout=POSTGRES_LOG, indexes=field_indexes), has_header=False
        )
    for delimiter in _DELIMITERS:
        header = _cells(first, delimiter)
        if len(header) > 1 and (recognised := recognise(header, mapping)):
            return _make_log("csv", recognised, delimiter=delimiter)
    return None


def _cells(line: str, delimiter: str) -> list[str]:
    """The cells of a line; empty if it is not CSV."""
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


def _is_csvlog(cells: Sequence[str]) -> bool:
    """Whether this is a row of a PostgreSQL csvlog: a time first and a session id sixth."""
    return (
        len(cells) >= len(CSVLOG_COLUMNS)
        and cells[0][:4].isdigit()
        and SESSION.fullmatch(cells[5]) is not None
    )


def _make_log(format: LogFileFormat, recognised: RecognisedLayout, **options: Any) -> LogFile:
    return LogFile(path="", format=format, size=0, recognised=recognised, **options)


def _csv_rows(chunk: LogChunk) -> Iterator[LogRowValues]:
    log = chunk.log
    csv.field_size_limit(_MAX_LINE_BYTES)
    indexes = log.recognised.indexes
    # A None is appended to each row; missing fields have its index, -1.
    pick = itemgetter(*(indexes.get(field, -1) for field in FIELDS))
    min_cells = max(indexes.values()) + 1
    reader = csv.reader((line.replace("\0", "") for line in _lines(chunk)), delimiter=log.delimiter)
    try:
        for cells in islice(reader, 1 if log.has_header else 0, None):
            if len(cells) < min_cells:
                if cells:
                    yield _UNREADABLE_ROW
                continue
            cells.append(None)  # type: ignore[arg-type]
            yield pick(cells)
    except csv.Error as problem:
        raise UnreadableLog(log.path, f"{problem} in line {reader.line_num:,}") from None


_UNREADABLE_ROW: Final[LogRowValues] = (None,) * len(FIELDS)

# The server's own log


def _server_log_rows(chunk: LogChunk) -> Iterator[LogRowValues]:
    for entry in server_log_entries(_lines(chunk)):
        yield tuple(entry.get(field) for field in FIELDS)


# JSON


def _recognise_json(
    path: str, data: bytes, size: int, mapping: Mapping[str, str] | None, *, compressed: bool
) -> LogFile | None:
    lines = data.removeprefix(b"\xef\xbb\xbf").splitlines()
    # The last line may be truncated.
    complete_lines = lines[:-1] if len(data) == _HEAD_BYTES else lines
    examples = [
        record
        for line in complete_lines[:_EXAMPLE_COUNT]
        if (record := _decode_object(line)) is not None
    ]
    format: LogFileFormat = "json lines"
    if not examples:
        format = "json"
        if size > _MAX_DOCUMENT_BYTES:
            return None
        with _open(path, compressed=compressed, size=size) as stream:
            examples = _read_objects(stream)[:_EXAMPLE_COUNT]
    keys = {
        ".".join(key).lower(): key for each in reversed(examples) for key in _key_paths(each)
    }  # fmt: skip
    recognised = recognise(keys, mapping)
    if recognised is None:
        return None
    paths = list(keys.values())
    field_paths = {field: paths[index] for field, index in recognised.indexes.items()}
    return _make_log(format, recognised, keys=field_paths)


def _decode_object(line: bytes) -> dict[str, Any] | None:
    try:
        value = decode_json(line)
    except msgspec.DecodeError:
        return None
    return value if isinstance(value, dict) else None


def _read_objects(stream: BinaryIO) -> list[dict[str, Any]]:
    data = stream.read(_MAX_DOCUMENT_BYTES).removeprefix(b"\xef\xbb\xbf")
    try:
        document = decode_json(data)
    except msgspec.DecodeError:
        return []
    # Some exports wrap their rows, and some files are a single event.
    if isinstance(document, dict):
        lists = [value for value in document.values() if isinstance(value, list)]
        rows = next((each for each in lists if each and isinstance(each[0], dict)), None)
        document = [document] if rows is None or "metadata" in document else rows
    return (
        [each for each in document if isinstance(each, dict)] if isinstance(document, list) else []
    )


def _key_paths(record: Mapping[str, Any], *, depth: int = 2) -> Iterator[tuple[str, ...]]:
    for name, value in record.items():
        yield (name,)
        if isinstance(value, Mapping) and depth > 1:
            yield from ((name, *rest) for rest in _key_paths(value, depth=depth - 1))


def _json_lines(chunk: LogChunk) -> Iterator[LogRowValues]:
    log = chunk.log
    paths = [log.keys.get(field) for field in FIELDS]
    with _open(log.path, compressed=log.compressed, size=log.size) as stream:
        position = chunk.start
        if position:
            # A partial first line belongs to the previous chunk.
            stream.seek(position - 1)
            position += len(stream.readline(_MAX_LINE_BYTES)) - 1
        while chunk.end is None or position < chunk.end:
            line = stream.readline(_MAX_LINE_BYTES)
            if not line:
                return
            if len(line) == _MAX_LINE_BYTES:
                raise UnreadableLog(log.path, "it has a line of more than 64 MB")
            position += len(line)
            if not line.strip():
                continue
            try:
                record = decode_json(line.removeprefix(b"\xef\xbb\xbf"))
            except msgspec.DecodeError:
                yield _UNREADABLE_ROW
                continue
            yield _pick_values(record, paths) if isinstance(record, dict) else _UNREADABLE_ROW


def _json_document(chunk: LogChunk) -> Iterator[LogRowValues]:
    log = chunk.log
    paths = [log.keys.get(field) for field in FIELDS]
    with _open(log.path, compressed=log.compressed, size=log.size) as stream:
        for record in _read_objects(stream):
            yield _pick_values(record, paths)


def _pick_values(record: Mapping[str, Any], paths: Sequence[tuple[str, ...] | None]) -> list[Any]:
    return [None if path is None else _value_at(record, path) for path in paths]


def _value_at(record: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        record = record.get(name) if isinstance(record, Mapping) else None
    return record


# Parquet


def _recognise_parquet(file: Path, size: int, mapping: Mapping[str, str] | None) -> LogFile | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(file).names
    except (pa.ArrowException, OSError):
        return None
    recognised = recognise(names, mapping)
    if recognised is None:
        return None
    keys = {field: (names[index],) for field, index in recognised.indexes.items()}
    log = _make_log("parquet", recognised, keys=keys)
    return msgspec.structs.replace(log, path=str(file), size=size)


def _parquet_rows(chunk: LogChunk) -> Iterator[LogRowValues]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    log = chunk.log
    try:
        with pq.ParquetFile(log.path) as file:
            groups = range(chunk.start, file.num_row_groups if chunk.end is None else chunk.end)
            columns = sorted({path[0] for path in log.keys.values()})
            for batch in file.iter_batches(10_000, row_groups=groups, columns=columns):
                # Nanosecond timestamps would need pandas.
                values_by_column = {name: _to_python(batch.column(name)) for name in columns}
                columns_of_fields = (
                    values_by_column[log.keys[field][0]]
                    if field in log.keys
                    else repeat(None, len(batch))
                    for field in FIELDS
                )
                yield from zip(*columns_of_fields, strict=True)
    except (pa.ArrowException, OSError) as problem:
        raise UnreadableLog(log.path, str(problem).splitlines()[0].rstrip(".")) from None


def _to_python(array: Any) -> list[Any]:
    import pyarrow as pa

    if pa.types.is_timestamp(array.type):
        return list(array.cast(pa.timestamp("us", array.type.tz), safe=False).to_pylist())
    return list(array.to_pylist())


# The id of a PostgreSQL session: its start time and process id, in hexadecimal.
SESSION: Final = re.compile(r"[0-9a-f]{8,16}\.[0-9a-f]+")
_ENTRY: Final = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: [A-Z]{3,5}|[+-]\d\d(?::?\d\d)?)?)"
    r"(?P<prefix>.*?)\b(?P<level>LOG|ERROR|FATAL|PANIC|WARNING|NOTICE|INFO|DETAIL|HINT|STATEMENT"
    r"|CONTEXT|QUERY|LOCATION|DEBUG[1-5]):\s\s?(?P<message>.*)\Z",
    re.DOTALL,
)
_STATEMENT: Final = re.compile(
    r"(?:duration: [\d.]+ ms\s+)?(?:statement|execute [^:]+): (?P<statement>.*)", re.DOTALL
)
_PROCESS: Final = re.compile(r"\[(\d+)(?:-\d+)?\]")
_USER: Final = re.compile(
    r"\b(?:user|usr|u)=(?P<user>[^,\s]+)|(?P<name>[^\s,\[\]=@]+)@(?P<db>[^\s,]+)"
)
_DATABASE: Final = re.compile(r"\b(?:db|database|dbname)=(?P<db>[^,\s]+)")


def statement_in(message: str) -> str | None:
    """The statement in a message of the server log, if any."""
    match = _STATEMENT.match(message)
    return None if match is None else match["statement"].strip()


def is_server_log(text: str) -> bool:
    """Whether a text looks like a PostgreSQL server log."""
    return any(_ENTRY.match(line) for line in text.splitlines()[:20])


def server_log_entries(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """The LOG entries with their continuation lines."""
    entry: dict[str, Any] | None = None
    continuation: list[str] = []
    for line in lines:
        # Only a line that begins with a date can begin an entry.
        match = _ENTRY.match(line) if line[:4].isdigit() else None
        if match is None:
            continuation.append(line)
            continue
        if entry is not None:
            yield {**entry, "message": "".join((entry["message"], *continuation))}
        continuation = []
        entry = _entry(match) if match["level"] == "LOG" else None
    if entry is not None:
        yield {**entry, "message": "".join((entry["message"], *continuation))}


def _entry(match: re.Match[str]) -> dict[str, Any]:
    prefix = match["prefix"]
    process, user, database = (each.search(prefix) for each in (_PROCESS, _USER, _DATABASE))
    return {
        "time": match["time"].replace(",", "."),
        # Distinguishes sessions, as the session id does in csvlog.
        "line": process[1] if process else None,
        "user": (user["user"] or user["name"]) if user else None,
        "database": database["db"] if database else user["db"] if user else None,
        "message": match["message"],
    }
