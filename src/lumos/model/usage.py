"""Reads on their way from a query log to the store."""

from typing import NamedTuple


class LogSum(NamedTuple):
    """Statements of a day, or those that do not count and why, and how many `times` they ran."""

    left_out: str | None
    day: int | None
    statements: int
    times: int


class FreshDay(NamedTuple):
    """How many statements of a day are to be counted, and how many of them never were before."""

    day: int
    statements: int
    new: int


class Met(NamedTuple):
    """Statements of one kind: their digest, one of them encoded, how many there are and when.

    Times are in microseconds since 1970, and days are counted from there.
    """

    query: bytes
    example: bytes
    times: int
    first: int
    last: int


class Runs(NamedTuple):
    """How often statements of one kind were run by a reader on a day, and what that moved."""

    day: int
    query: bytes
    reader: str
    times: int
    bytes: int | None
    rows: int | None
    last: int
