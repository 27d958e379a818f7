"""Aggregated reads, passed from the query log reader to the store."""

from typing import NamedTuple


class StatementCount(NamedTuple):
    """The number of statements of a day, or of those left out for a reason, and of their runs."""

    left_out: str | None
    day: int | None
    statements: int
    times: int


class DailyStatements(NamedTuple):
    """The number of statements of a day to count, and of those that are new."""

    day: int
    statements: int
    new: int


class QuerySample(NamedTuple):
    """Statements with the same digest: an encoded example, their number and their times.

    Times are microseconds, days are days since 1970.
    """

    query: bytes
    example: bytes
    times: int
    first: int
    last: int


class QueryRuns(NamedTuple):
    """How often a reader ran statements of one digest on a day, and the data they read."""

    day: int
    query: bytes
    reader: str
    times: int
    bytes: int | None
    rows: int | None
    last: int
