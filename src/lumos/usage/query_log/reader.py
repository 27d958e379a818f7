"""Reads the statements of a log; statements that differ only in literals have the same digest."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from lumos.usage.query_log.files import LogChunk, rows, statement_in
from lumos.usage.query_log.layouts import Layout
from lumos.usage.query_log.normalization import normalize

UNKNOWN_READER: Final = "(unknown)"
# Names in reports. part_of_others: scripts whose statements are logged too, and start or error
# events; odd_reads: a read count that is not an integer.
SkipReason: TypeAlias = Literal[
    "failed", "no_statement", "no_time", "unreadable", "part_of_others", "no_reads", "odd_reads",
    "future",
]  # fmt: skip

_FAILED: Final = frozenset(
    {"fail", "failed", "failed_with_error", "failed_with_incident", "incident", "error", "canceled",
     "cancelled", "aborted", "exception", "timeout"}
)  # fmt: skip
_FALSE_VALUES: Final = frozenset({"", "0", "false", "f", "no", "null", "none", "{}"})
_MAX_NUMBER: Final = 2**62
# Long ids of letters and digits, such as UUIDs, are unique; short ones and numbers repeat on other
# servers and after a restart.
_UNIQUE_ID: Final = re.compile(r"(?=.*[a-z])(?=.*\d)[\w.:-]{16,}", re.IGNORECASE)


class LoggedStatement(NamedTuple):
    """One logged statement: digest, reader, time, number of runs, bytes and rows.

    `key` identifies it, so that it is counted once even if several exports contain it. A daily
    total (`is_sum`) replaces the earlier total.
    """

    digest: bytes
    key: int
    reader: str
    at: int
    run_count: int
    bytes: int | None
    rows: int | None
    is_sum: bool = False


class StatementExample(msgspec.Struct, frozen=True, omit_defaults=True):
    """An example of the statements with the same digest.

    `accessed` and `modified` are the objects that the log lists as read and written, as JSON.
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


class QueryLogReader:
    """Reads chunks of logs; `skipped` counts skipped statements by reason.

    `rename_reader` maps the user in the log to a reader name. Statements after `until` are skipped.
    """

    def __init__(
        self,
        *,
        dialect: str | None = None,
        rename_reader: Callable[[str], str] | None = None,
        until: int | None = None,
    ) -> None:
        self._dialect = dialect
        self._until = until
        self._rename_reader = rename_reader
        self._seen_digests: set[bytes] = set()
        self.skipped: Counter[SkipReason] = Counter()

    def read(self, chunk: LogChunk) -> Iterator[tuple[LoggedStatement, StatementExample | None]]:
        """The statements of a chunk, with an example for each new digest."""
        layout = chunk.log.recognised.layout
        dialect = self._dialect or layout.dialect
        written_at = chunk.log.written_at if layout.cumulative else 0
        repeated: Counter[int] = Counter()
        for values in rows(chunk):
            row = _LogRow(*values)
            if row.message is not None:
                row = row._replace(statement=statement_in(str(row.message)))
            if layout.abbreviated:
                row = row._replace(statement=row.sql.replace("(...)", "(?)"))
            if reason := _skip_reason(row, layout):
                self.skipped[reason] += 1
                continue
            at = microseconds(row.time) if row.time is not None else written_at
            if not at:
                self.skipped["no_time"] += 1
                continue
            if self._until is not None and at > self._until:
                self.skipped["future"] += 1
                continue
            is_sum = row.is_sum(at)
            digest = _digest(row, dialect, is_sum=is_sum)
            yield (
                self._to_statement(row, digest, at, repeated, is_sum=is_sum),
                self._example(row, digest, layout, dialect, is_sum=is_sum),
            )

    def _to_statement(
        self, row: "_LogRow", digest: bytes, at: int, repeated: Counter[int], *, is_sum: bool
    ) -> LoggedStatement:
        reader = str(row.user) if row.user not in (None, "") else UNKNOWN_READER
        read_objects = _json(row.read).decode("utf-8", "replace") if row.dataset else ""
        text = row.sql or read_objects or _json(row.accessed).decode("utf-8", "replace")
        if row.has_id:
            id = str(row.id)
            # Exports of one log may differ in the precision of times.
            distinguishing_values = (
                (str(day_of(at)),)
                if _UNIQUE_ID.fullmatch(id)
                else (str(at // MICROSECONDS_PER_SECOND), text)
            )
            key = _key(id, str(row.line), reader, read_objects, *distinguishing_values)
        else:
            # Equal rows are only distinguished by their order.
            calls = "sum" if is_sum else str(row.calls)
            key = _key(reader, str(at), str(row.line), text, calls)
            repeated[key] += 1
            key = _key(str(key), str(repeated[key]))
        return LoggedStatement(
            digest,
            key,
            reader if self._rename_reader is None else self._rename_reader(reader),
            at,
            _run_count(row.calls) or 1,
            _number(row.bytes),
            _number(row.rows),
            is_sum,
        )

    def _example(
        self, row: "_LogRow", digest: bytes, layout: Layout, dialect: str | None, *, is_sum: bool
    ) -> StatementExample | None:
        if digest in self._seen_digests:
            return None
        self._seen_digests.add(digest)
        return StatementExample(
            digest=digest,
            statement=row.sql,
            dialect=dialect,
            platform=layout.platform,
            database=row.database or None,
            schema=row.schema or None,
            accessed=_json(row.read),
            modified=_json(row.modified),
            is_sum=is_sum,
        )


class _LogRow(NamedTuple):
    """The values of a row, in the order of FIELDS."""

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
    def sql(self) -> str:
        """The text of the statement."""
        return str(self.statement or "")

    @property
    def read(self) -> Any:
        """The objects that the log itself lists as read."""
        if not self.dataset:
            return self.accessed
        return [{"objectName": self.dataset, "columns": _names(self.column), "plain": True}]

    @property
    def has_id(self) -> bool:
        return self.id not in (None, "")

    def is_sum(self, at: int) -> bool:
        """Whether this is a daily total of reads of a dataset."""
        is_counted = bool(self.dataset) and self.calls not in (None, "")
        return is_counted and not self.has_id and at % MICROSECONDS_PER_DAY == 0


def _skip_reason(row: _LogRow, layout: Layout) -> SkipReason | None:
    if row.failed is not None and _has_failed(row.failed, layout):
        return "failed"
    if layout.skipped and str(row.kind).lower() in layout.skipped:
        return "part_of_others"
    run_count = 1 if row.calls in (None, "") else _run_count(row.calls)
    if not run_count:
        return "odd_reads" if run_count is None else "no_reads"
    if row.sql or row.read:
        return None
    is_empty = row.user is None and row.time is None and row.message is None
    return "unreadable" if is_empty else "no_statement"


def _digest(row: _LogRow, dialect: str | None, *, is_sum: bool) -> bytes:
    sql = row.sql
    if sql:
        text = normalize(sql, dialect)
    else:
        text = (_json(row.read) + b"\x1f" + _json(row.modified)).decode("utf-8", "replace")
    identity = f"{text}\x1f{row.database or ''}\x1f{row.schema or ''}\x1f{'sum' * is_sum}"
    return hashlib.blake2b(identity.encode("utf-8", "replace"), digest_size=16).digest()


def _key(*values: str) -> int:
    text = "\x1f".join(values).encode("utf-8", "replace")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True)


def _has_failed(value: Any, layout: Layout) -> bool:
    if layout.failed == "status":
        return str(value).lower() in _FAILED
    return str(value).strip().lower() not in _FALSE_VALUES


def _names(column: Any) -> list[str]:
    if not column:
        return []
    if isinstance(column, str):
        return [name.strip() for name in column.split(",") if name.strip()]
    return [str(name) for name in column]


def _run_count(value: Any) -> int | None:
    """The number of runs; None if it is not an integer."""
    run_count = _number(value)
    try:
        return run_count if run_count is None or float(value) == run_count else None
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
    return number if 0 <= number < _MAX_NUMBER else None


def _json(value: Any) -> bytes:
    if value is None or value == "":
        return b""
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    return msgspec.json.encode(value, enc_hook=str)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_ZONE: Final = re.compile(r"\s+(?:UTC|GMT|Z|(?P<offset>[+-]\d\d:?\d\d?))\Z")
_OTHER_ZONE: Final = re.compile(r"\s+[A-Z]{3,5}\Z")
_NUMBER: Final = re.compile(r"\d{9,19}(?:\.\d+)?\Z")
MICROSECONDS_PER_SECOND: Final = 1_000_000
MICROSECONDS_PER_DAY: Final = 86_400 * MICROSECONDS_PER_SECOND
# Limits that separate seconds, milliseconds, microseconds and nanoseconds of this century.
_UNITS: Final = ((10**11, 1_000_000.0), (10**14, 1_000.0), (10**17, 1.0), (10**20, 0.001))


def microseconds(value: object) -> int | None:
    """The time in microseconds since 1970, UTC if it has no zone; None if it is not a time."""
    if isinstance(value, str):
        return _microseconds_from_text(value.strip())
    if isinstance(value, datetime):
        return _microseconds_from_datetime(value)
    if isinstance(value, date):
        return (value.toordinal() - _EPOCH.toordinal()) * MICROSECONDS_PER_DAY
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _microseconds_from_number(value)
    return None


def _microseconds_from_text(text: str) -> int | None:
    try:
        return _microseconds_from_datetime(datetime.fromisoformat(text))
    except ValueError:
        pass
    if _NUMBER.match(text):
        return _microseconds_from_number(float(text) if "." in text else int(text))
    try:
        if zone := _ZONE.search(text):
            return _microseconds_from_datetime(
                datetime.fromisoformat(text[: zone.start()] + (zone["offset"] or ""))
            )
        if zone := _OTHER_ZONE.search(text):
            # Zone names are ambiguous; an error of an hour is better than no reads at all.
            return _microseconds_from_datetime(datetime.fromisoformat(text[: zone.start()]))
    except ValueError:
        pass
    return None


def _microseconds_from_datetime(time: datetime) -> int:
    utc_time = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (utc_time - _EPOCH) // _MICROSECOND


def _microseconds_from_number(number: float) -> int | None:
    for limit, factor in _UNITS:
        if 0 < number < limit:
            return int(number * factor)
    return None


def moment_of(at: int) -> datetime:
    """Convert microseconds since 1970 to a datetime."""
    return _EPOCH + timedelta(microseconds=at)


def day_of(at: int) -> int:
    """The day of a time, in days since 1970."""
    return at // MICROSECONDS_PER_DAY
