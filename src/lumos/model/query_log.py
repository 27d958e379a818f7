"""Aggregated reads, passed from the query log reader to the store."""

from typing import NamedTuple


class StatementCount(NamedTuple):
    """The numbers of statements and of their runs on one day, or with one skip reason."""

    skip_reason: str | None
    day: int | None
    statements: int
    run_count: int


class DailyStatements(NamedTuple):
    """The number of statements of one day, and how many of them were not counted before."""

    day: int
    statements: int
    new: int


class QuerySample(NamedTuple):
    """Statements with the same digest: an encoded example, the number of runs, first and last time.

    Times are microseconds since 1970.
    """

    digest: bytes
    example: bytes
    run_count: int
    first: int
    last: int


class QueryRuns(NamedTuple):
    """The runs of statements with one digest by one reader on a day, and the data they read."""

    day: int
    digest: bytes
    reader: str
    run_count: int
    bytes: int | None
    rows: int | None
    last: int
