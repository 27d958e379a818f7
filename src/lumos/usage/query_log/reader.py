"""The statements of a log, each known by what it has in common with others like it."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from lumos.usage.query_log.files import Piece, rows
from lumos.usage.query_log.layouts import Layout
from lumos.usage.query_log.moments import A_DAY, A_SECOND, day_of, microseconds
from lumos.usage.query_log.normal import normal
from lumos.usage.query_log.server_log import statement_in

UNKNOWN_READER: Final = "(unknown)"
Left: TypeAlias = Literal[
    "failed", "no_statement", "no_time", "unreadable", "part_of_others", "no_reads", "odd_reads",
    "future",
]  # fmt: skip

_FAILED: Final = frozenset(
    {"fail", "failed", "failed_with_error", "failed_with_incident", "incident", "error", "canceled",
     "cancelled", "aborted", "exception", "timeout"}
)  # fmt: skip
_OFF: Final = frozenset({"", "0", "false", "f", "no", "null", "none", "{}"})
_LARGEST: Final = 2**62
# Long ids of letters and digits, such as UUIDs, are given once; short ones and mere numbers are
# given again by other servers, and by the same one after a restart.
_GIVEN_ONCE: Final = re.compile(r"(?=.*[a-z])(?=.*\d)[\w.:-]{16,}", re.IGNORECASE)


class Logged(NamedTuple):
    """One logged statement: what it is like, who ran it, when, how often, and what it moved.

    `key` tells it from all others, so that it is counted once however many exports hold it. A sum
    of a day's reads counts again, in the place of what was said before.
    """

    digest: bytes
    key: int
    reader: str
    at: int
    times: int
    bytes: int | None
    rows: int | None
    is_sum: bool = False


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
    is_sum: bool = False


class Piecewise:
    """Reads pieces of logs; `left_out` counts what is not counted, by the reason.

    `readers` says what people are called from here on. What is dated after `until` does not count.
    """

    def __init__(
        self,
        *,
        dialect: str | None = None,
        readers: Callable[[str], str] | None = None,
        until: int | None = None,
    ) -> None:
        self._dialect = dialect
        self._until = until
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
            told = _Told(*row)
            if told.message is not None:
                told = told._replace(statement=statement_in(str(told.message)))
            if left := _left_out(told, layout):
                self.left_out[left] += 1
                continue
            at = microseconds(told.time) if told.time is not None else written_at
            if left := self._out_of_time(at):
                self.left_out[left] += 1
                continue
            assert at is not None
            is_sum = told.is_sum(at)
            digest = _digest(told, dialect, is_sum=is_sum)
            yield (
                self._logged(told, digest, at, repeated, is_sum=is_sum),
                self._example(told, digest, layout, dialect, is_sum=is_sum),
            )

    def _out_of_time(self, at: int | None) -> Left | None:
        if not at:
            return "no_time"
        return "future" if self._until is not None and at > self._until else None

    def _logged(
        self, told: "_Told", digest: bytes, at: int, repeated: Counter[int], *, is_sum: bool
    ) -> Logged:
        reader = str(told.user) if told.user not in (None, "") else UNKNOWN_READER
        read = _json(told.read).decode("utf-8", "replace") if told.dataset else ""
        text = told.said or read or _json(told.accessed).decode("utf-8", "replace")
        if told.has_id:
            id = str(told.id)
            # Exports of one log may tell times more or less exactly.
            more = (str(day_of(at)),) if _GIVEN_ONCE.fullmatch(id) else (str(at // A_SECOND), text)
            key = _key(id, str(told.line), reader, read, *more)
        else:
            # Nothing tells two equal rows apart but that one comes after the other.
            calls = "sum" if is_sum else str(told.calls)
            key = _key(reader, str(at), str(told.line), text, calls)
            repeated[key] += 1
            key = _key(str(key), str(repeated[key]))
        return Logged(
            digest,
            key,
            reader if self._readers is None else self._readers(reader),
            at,
            _times(told.calls) or 1,
            _number(told.bytes),
            _number(told.rows),
            is_sum,
        )

    def _example(
        self, told: "_Told", digest: bytes, layout: Layout, dialect: str | None, *, is_sum: bool
    ) -> Example | None:
        if digest in self._met:
            return None
        self._met.add(digest)
        return Example(
            digest=digest,
            statement=told.said,
            dialect=dialect,
            platform=layout.platform,
            database=told.database or None,
            schema=told.schema or None,
            accessed=_json(told.read),
            modified=_json(told.modified),
            is_sum=is_sum,
        )


class _Told(NamedTuple):
    """What a row tells, in the order of FIELDS."""

    id: Any
    user: Any
    time: Any
    statement: Any
    bytes: Any
    rows: Any
    calls: Any
    database: Any
    schema: Any
    failed: Any
    kind: Any
    accessed: Any
    modified: Any
    dataset: Any
    column: Any
    message: Any
    line: Any

    @property
    def said(self) -> str:
        """The statement."""
        return str(self.statement or "")

    @property
    def read(self) -> Any:
        """What the log itself says was read."""
        if not self.dataset:
            return self.accessed
        return [{"objectName": self.dataset, "columns": _names(self.column), "plain": True}]

    @property
    def has_id(self) -> bool:
        return self.id not in (None, "")

    def is_sum(self, at: int) -> bool:
        """Whether this is how often a dataset was read on a day, as it was known just then."""
        is_counted = bool(self.dataset) and self.calls not in (None, "")
        return is_counted and not self.has_id and at % A_DAY == 0


def _left_out(told: _Told, layout: Layout) -> Left | None:
    if told.failed is not None and _has_failed(told.failed, layout):
        return "failed"
    if layout.skipped and str(told.kind).lower() in layout.skipped:
        return "part_of_others"
    times = 1 if told.calls in (None, "") else _times(told.calls)
    if not times:
        return "odd_reads" if times is None else "no_reads"
    if told.said or told.read:
        return None
    is_empty = told.user is None and told.time is None and told.message is None
    return "unreadable" if is_empty else "no_statement"


def _digest(told: _Told, dialect: str | None, *, is_sum: bool) -> bytes:
    said = told.said
    if said:
        text = normal(said, dialect)
    else:
        text = (_json(told.read) + b"\x1f" + _json(told.modified)).decode("utf-8", "replace")
    known = f"{text}\x1f{told.database or ''}\x1f{told.schema or ''}\x1f{'sum' * is_sum}"
    return hashlib.blake2b(known.encode("utf-8", "replace"), digest_size=16).digest()


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


def _times(value: Any) -> int | None:
    """How often something was read; nothing where that is no whole number."""
    times = _number(value)
    try:
        return times if times is None or float(value) == times else None
    except (TypeError, ValueError):
        return None


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
