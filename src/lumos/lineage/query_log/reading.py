"""The statements of a log, each known by what it has in common with others like it."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from lumos.lineage.query_log.files import Piece, Row, rows
from lumos.lineage.query_log.layouts import Layout
from lumos.lineage.query_log.moments import microseconds
from lumos.lineage.query_log.normal import normal
from lumos.lineage.query_log.server_log import statement_in

UNKNOWN_READER: Final = "(unknown)"
Left: TypeAlias = Literal["failed", "no_statement", "no_time", "unreadable", "part_of_others"]

_FAILED: Final = frozenset(
    {"fail", "failed", "failed_with_error", "failed_with_incident", "incident", "error", "canceled",
     "cancelled", "aborted", "exception", "timeout"}
)  # fmt: skip
_OFF: Final = frozenset({"", "0", "false", "f", "no", "null", "none", "{}"})
_LARGEST: Final = 2**62


class Logged(NamedTuple):
    """One logged statement: what it is like, who ran it, when, how often, and what it moved.

    `key` tells it from all others, so that it is counted once however many exports hold it.
    """

    digest: bytes
    key: int
    reader: str
    at: int
    times: int
    bytes: int | None
    rows: int | None


class Example(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of the statements with the same digest.

    `accessed` and `modified` are what the warehouse itself says it read and wrote, as JSON.
    """

    digest: bytes
    statement: str = ""
    dialect: str | None = None
    platform: str | None = None
    database: str | None = None
    schema: str | None = None
    accessed: bytes = b""
    modified: bytes = b""


class Piecewise:
    """Reads pieces of logs; `left_out` counts what is not counted, by the reason.

    `readers` says what people are called from here on.
    """

    def __init__(
        self,
        *,
        dialect: str | None = None,
        readers: Callable[[str], str] | None = None,
    ) -> None:
        self._dialect = dialect
        self._readers = readers
        self._met: set[bytes] = set()
        self.left_out: Counter[Left] = Counter()

    def read(self, piece: Piece) -> Iterator[tuple[Logged, Example | None]]:
        """The statements of a piece, and of each that is unlike all before also its text."""
        layout = piece.log.recognised.layout
        dialect = self._dialect or layout.dialect
        written_at = piece.log.written_at if layout.cumulative else 0
        repeated: Counter[int] = Counter()
        for row in rows(piece):
            found = self._read(row, layout, dialect, repeated, written_at)
            if isinstance(found, tuple):
                yield found
            else:
                self.left_out[found] += 1

    def _read(
        self,
        row: Row,
        layout: Layout,
        dialect: str | None,
        repeated: Counter[int],
        written_at: int,
    ) -> tuple[Logged, Example | None] | Left:
        (id, user, time, statement, bytes_, rows_, calls, database, schema, failed, kind, accessed,
         modified, dataset, column, message, line) = row  # fmt: skip
        if message is not None:
            statement = statement_in(message)
        elif failed is not None and _has_failed(failed, layout):
            return "failed"
        elif kind is not None and layout.skipped and str(kind).lower() in layout.skipped:
            return "part_of_others"
        if dataset:
            accessed = [{"objectName": dataset, "columns": _names(column), "plain": True}]
        if not statement and not accessed:
            is_empty = user is None and time is None and message is None
            return "unreadable" if is_empty else "no_statement"
        at = microseconds(time) if time is not None else written_at
        if not at:
            return "no_time"
        reader = str(user) if user not in (None, "") else UNKNOWN_READER
        digest, told = _digest(statement, accessed, database, schema, dialect)
        identity = (str(id), str(line)) if line is not None else (str(id),)
        if id in (None, ""):
            # Nothing tells two equal rows apart but that one comes after the other.
            key = _key(reader, str(at), *identity, statement or told.decode(), str(calls))
            repeated[key] += 1
            key = _key(str(key), str(repeated[key]))
        else:
            key = _key(*identity, reader)
        logged = Logged(
            digest,
            key,
            reader if self._readers is None else self._readers(reader),
            at,
            _number(calls) or 1,
            _number(bytes_),
            _number(rows_),
        )
        if digest in self._met:
            return logged, None
        self._met.add(digest)
        example = Example(
            digest=digest,
            statement=statement or "",
            dialect=dialect,
            platform=layout.platform,
            database=database or None,
            schema=schema or None,
            accessed=told or _json(accessed),
            modified=_json(modified),
        )
        return logged, example


def _digest(
    statement: str | None, accessed: Any, database: Any, schema: Any, dialect: str | None
) -> tuple[bytes, bytes]:
    told = b""
    if statement:
        text = normal(statement, dialect)
    else:
        told = _json(accessed)
        text = told.decode("utf-8", "replace")
    known = f"{text}\x1f{database or ''}\x1f{schema or ''}"
    return hashlib.blake2b(known.encode("utf-8", "replace"), digest_size=16).digest(), told


def _key(*facts: str) -> int:
    text = "\x1f".join(facts).encode("utf-8", "replace")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True)


def _has_failed(value: Any, layout: Layout) -> bool:
    if layout.failed == "word":
        return str(value).lower() in _FAILED
    return str(value).strip().lower() not in _OFF


def _names(column: Any) -> list[str]:
    if not column:
        return []
    if isinstance(column, str):
        return [name.strip() for name in column.split(",") if name.strip()]
    return [str(name) for name in column]


def _number(value: Any) -> int | None:
    if value is None or value == "":
        return None
    try:
        number = int(value)
    except ValueError:
        try:
            number = int(float(value))
        except (ValueError, OverflowError):
            return None
    except (TypeError, OverflowError):
        return None
    return number if 0 <= number < _LARGEST else None


def _json(value: Any) -> bytes:
    if value is None or value == "":
        return b""
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    return msgspec.json.encode(value, enc_hook=str)
