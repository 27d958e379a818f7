"""Files that hold query logs: which kind each is, and its rows."""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice, repeat
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, TypeAlias

import msgspec

from lumos.errors import LumosError
from lumos.model.json_codec import decode_json
from lumos.usage.query_log import server_log
from lumos.usage.query_log.layouts import (
    CSVLOG_COLUMNS,
    FIELDS,
    POSTGRES_LOG,
    Field,
    Recognised,
    recognise,
)

Form: TypeAlias = Literal["csv", "json lines", "json", "parquet", "server log"]
# The values of one logged statement, in the order of FIELDS.
Row: TypeAlias = Sequence[Any]

_HEAD: Final = 256 * 1024
_LONGEST_LINE: Final = 64 * 1024 * 1024
_LARGEST_DOCUMENT: Final = 512 * 1024 * 1024
# Logs repeat themselves and shrink well; what unfolds further was made to do harm.
_MOST_UNFOLDED: Final = 500
_DELIMITERS: Final = (",", "\t", ";", "|")
_EXAMPLES: Final = 50
_PIECE: Final = 32 * 1024 * 1024


class UnreadableLog(LumosError):
    """A file that cannot be read as a query log."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        super().__init__(f"{path} cannot be read as a query log: {problem}.")


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """A file of logged statements. `keys` leads to each field of a JSON object or Parquet row."""

    path: str
    form: Form
    size: int
    recognised: Recognised
    keys: dict[Field, tuple[str, ...]] = {}
    delimiter: str = ","
    has_header: bool = True
    compressed: bool = False
    # When the file was written, in microseconds: the time of sums that tell none.
    written_at: int = 0

    @property
    def name(self) -> str:
        """What the log is called where nobody named it: its file, without its endings."""
        if self.recognised.layout.cumulative:
            return self.recognised.layout.name
        return Path(self.path).name.partition(".")[0] or Path(self.path).name


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """A stretch of a log that can be read on its own: bytes of JSON Lines, groups of Parquet."""

    log: Log
    start: int = 0
    end: int | None = None


def look(path: str | Path, mapping: Mapping[str, str] | None = None) -> Log | None:
    """The query log in a file, or nothing where there is none. `mapping` names its columns."""
    file = Path(path)
    with file.open("rb") as stream:
        data = stream.read(_HEAD)
    facts = file.stat()
    log = _found(file, data, facts.st_size, mapping)
    return log and msgspec.structs.replace(log, written_at=facts.st_mtime_ns // 1000)


def _found(file: Path, data: bytes, size: int, mapping: Mapping[str, str] | None) -> Log | None:
    path = str(file)
    if data[:4] == b"PAR1":
        return _parquet(file, size, mapping)
    compressed = data.startswith(b"\x1f\x8b")
    if compressed:
        try:
            data = zlib.decompressobj(31).decompress(data, _HEAD)
        except zlib.error:
            return None
    text = data.decode("utf-8-sig", "replace").lstrip()
    log = (
        _json(path, data, size, mapping, compressed=compressed)
        if text[:1] in ("{", "[")
        else _delimited(text, mapping) or _server_log(text)
    )
    if log is None:
        return None
    return msgspec.structs.replace(log, path=path, size=size, compressed=compressed)


def pieces(log: Log, size: int = _PIECE) -> Iterator[Piece]:
    """The log in pieces of about a size, as far as it can be divided."""
    if log.form == "json lines" and not log.compressed:
        for start in range(0, log.size, size):
            yield Piece(log, start, min(start + size, log.size))
    elif log.form == "parquet":
        import pyarrow.parquet as pq

        for number in range(pq.read_metadata(log.path).num_row_groups):
            yield Piece(log, number, number + 1)
    else:
        yield Piece(log)


def rows(piece: Piece) -> Iterator[Row]:
    """The rows of a piece."""
    log = piece.log
    reading = {
        "csv": _csv_rows,
        "json lines": _json_lines,
        "json": _json_document,
        "parquet": _parquet_rows,
        "server log": _server_log_rows,
    }
    try:
        yield from reading[log.form](piece)
    except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
        raise UnreadableLog(log.path, f"its gzip data is damaged ({problem})") from None


@contextmanager
def _opened(path: str, *, compressed: bool, size: int) -> Iterator[BinaryIO]:
    with open(path, "rb") as stored:
        if not compressed:
            yield stored
            return
        with gzip.GzipFile(fileobj=stored) as unfolded:
            limit = _LONGEST_LINE + _MOST_UNFOLDED * size
            yield io.BufferedReader(_Bounded(unfolded, path, limit), 1024 * 1024)


class _Bounded(io.RawIOBase):
    """As much of a stream as can be believed."""

    def __init__(self, stream: BinaryIO | gzip.GzipFile, path: str, limit: int) -> None:
        self._stream = stream
        self._path = path
        self._left = limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        self._left -= len(data)
        if self._left < 0:
            raise UnreadableLog(self._path, "it unfolds to more than it can honestly hold")
        buffer[: len(data)] = data
        return len(data)


def _lines(piece: Piece) -> Iterator[str]:
    log = piece.log
    with _opened(log.path, compressed=log.compressed, size=log.size) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
        while line := text.readline(_LONGEST_LINE):
            if len(line) == _LONGEST_LINE:
                raise UnreadableLog(log.path, "it has a line of more than 64 MB")
            yield line


# CSV


def _delimited(text: str, mapping: Mapping[str, str] | None) -> Log | None:
    first = text.partition("\n")[0]
    if _is_csvlog(_cells(first, ",")):
        places = {name: place for place, name in enumerate(CSVLOG_COLUMNS)}
        columns = POSTGRES_LOG.columns
        found = {field: places[names[0]] for field, names in columns.items()}
        return _log("csv", Recognised(layout=POSTGRES_LOG, places=found), has_header=False)
    for delimiter in _DELIMITERS:
        header = _cells(first, delimiter)
        if len(header) > 1 and (recognised := recognise(header, mapping)):
            return _log("csv", recognised, delimiter=delimiter)
    return None


def _cells(line: str, delimiter: str) -> list[str]:
    """The cells of a line; none where it is not CSV."""
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


def _is_csvlog(cells: Sequence[str]) -> bool:
    """Whether this is how PostgreSQL begins a row: its time, and a session in the sixth place."""
    return (
        len(cells) >= len(CSVLOG_COLUMNS)
        and cells[0][:4].isdigit()
        and server_log.SESSION.fullmatch(cells[5]) is not None
    )


def _log(form: Form, recognised: Recognised, **facts: Any) -> Log:
    return Log(path="", form=form, size=0, recognised=recognised, **facts)


def _csv_rows(piece: Piece) -> Iterator[Row]:
    log = piece.log
    csv.field_size_limit(_LONGEST_LINE)
    places = log.recognised.places
    # What a log does not tell is at the end of each row, where nothing is.
    pick = itemgetter(*(places.get(field, -1) for field in FIELDS))
    least = max(places.values()) + 1
    reader = csv.reader(_without_nulls(_lines(piece)), delimiter=log.delimiter)
    try:
        for cells in islice(reader, 1 if log.has_header else 0, None):
            if len(cells) < least:
                if cells:
                    yield _UNREADABLE
                continue
            cells.append(None)  # type: ignore[arg-type]
            yield pick(cells)
    except csv.Error as problem:
        raise UnreadableLog(log.path, f"{problem} in line {reader.line_num:,}") from None


def _without_nulls(lines: Iterator[str]) -> Iterator[str]:
    return (line.replace("\0", "") if "\0" in line else line for line in lines)


_UNREADABLE: Final[Row] = (None,) * len(FIELDS)

# The server's own log


def _server_log(text: str) -> Log | None:
    if not server_log.is_one(text):
        return None
    return _log("server log", Recognised(layout=POSTGRES_LOG, places={}))


def _server_log_rows(piece: Piece) -> Iterator[Row]:
    for entry in server_log.entries(_lines(piece)):
        yield tuple(entry.get(field) for field in FIELDS)


# JSON


def _json(
    path: str, data: bytes, size: int, mapping: Mapping[str, str] | None, *, compressed: bool
) -> Log | None:
    lines = data.removeprefix(b"\xef\xbb\xbf").splitlines()
    # The last line may be cut.
    whole = lines[:-1] if len(data) == _HEAD else lines
    examples = [found for line in whole[:_EXAMPLES] if (found := _object(line)) is not None]
    form: Form = "json lines"
    if not examples:
        form = "json"
        if size > _LARGEST_DOCUMENT:
            return None
        with _opened(path, compressed=compressed, size=size) as stream:
            examples = _objects(stream)[:_EXAMPLES]
    keys = {
        ".".join(key).lower(): key for each in reversed(examples) for key in _keys(each)
    }  # fmt: skip
    recognised = recognise(keys, mapping)
    if recognised is None:
        return None
    ways = list(keys.values())
    found = {field: ways[place] for field, place in recognised.places.items()}
    return _log(form, recognised, keys=found)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = decode_json(line)
    except msgspec.DecodeError:
        return None
    return found if isinstance(found, dict) else None


def _objects(stream: BinaryIO) -> list[dict[str, Any]]:
    data = stream.read(_LARGEST_DOCUMENT).removeprefix(b"\xef\xbb\xbf")
    try:
        found = decode_json(data)
    except msgspec.DecodeError:
        return []
    # Some exports wrap their rows, and some logs are a single event.
    if isinstance(found, dict):
        lists = [value for value in found.values() if isinstance(value, list)]
        rows = next((each for each in lists if each and isinstance(each[0], dict)), None)
        found = [found] if rows is None or "metadata" in found else rows
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _keys(record: Mapping[str, Any], *, depth: int = 2) -> Iterator[tuple[str, ...]]:
    for name, value in record.items():
        yield (name,)
        if isinstance(value, Mapping) and depth > 1:
            yield from ((name, *rest) for rest in _keys(value, depth=depth - 1))


def _json_lines(piece: Piece) -> Iterator[Row]:
    log = piece.log
    ways = [log.keys.get(field) for field in FIELDS]
    with _opened(log.path, compressed=log.compressed, size=log.size) as stream:
        position = piece.start
        if position:
            # The line that the piece begins in belongs to the one before.
            stream.seek(position - 1)
            position += len(stream.readline(_LONGEST_LINE)) - 1
        while piece.end is None or position < piece.end:
            line = stream.readline(_LONGEST_LINE)
            if not line:
                return
            if len(line) == _LONGEST_LINE:
                raise UnreadableLog(log.path, "it has a line of more than 64 MB")
            position += len(line)
            if not line.strip():
                continue
            try:
                record = decode_json(line.removeprefix(b"\xef\xbb\xbf"))
            except msgspec.DecodeError:
                yield _UNREADABLE
                continue
            yield _picked(record, ways) if isinstance(record, dict) else _UNREADABLE


def _json_document(piece: Piece) -> Iterator[Row]:
    log = piece.log
    ways = [log.keys.get(field) for field in FIELDS]
    with _opened(log.path, compressed=log.compressed, size=log.size) as stream:
        for record in _objects(stream):
            yield _picked(record, ways)


def _picked(record: Mapping[str, Any], ways: Sequence[tuple[str, ...] | None]) -> list[Any]:
    return [None if way is None else _at(record, way) for way in ways]


def _at(record: Any, way: tuple[str, ...]) -> Any:
    for name in way:
        record = record.get(name) if isinstance(record, Mapping) else None
    return record


# Parquet


def _parquet(file: Path, size: int, mapping: Mapping[str, str] | None) -> Log | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(file).names
    except (pa.ArrowException, OSError):
        return None
    recognised = recognise(names, mapping)
    if recognised is None:
        return None
    keys = {field: (names[place],) for field, place in recognised.places.items()}
    log = _log("parquet", recognised, keys=keys)
    return msgspec.structs.replace(log, path=str(file), size=size)


def _parquet_rows(piece: Piece) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    log = piece.log
    try:
        with pq.ParquetFile(log.path) as file:
            groups = range(piece.start, file.num_row_groups if piece.end is None else piece.end)
            columns = sorted({way[0] for way in log.keys.values()})
            for batch in file.iter_batches(10_000, row_groups=groups, columns=columns):
                # Times of nanoseconds would need pandas.
                found = {name: _plain(batch.column(name)) for name in columns}
                picked = (
                    found[log.keys[field][0]] if field in log.keys else repeat(None, len(batch))
                    for field in FIELDS
                )
                yield from zip(*picked, strict=True)
    except (pa.ArrowException, OSError) as problem:
        raise UnreadableLog(log.path, str(problem).splitlines()[0].rstrip(".")) from None


def _plain(array: Any) -> list[Any]:
    import pyarrow as pa

    if pa.types.is_timestamp(array.type):
        return list(array.cast(pa.timestamp("us", array.type.tz), safe=False).to_pylist())
    return list(array.to_pylist())
