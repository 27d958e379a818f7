"""Statements of query logs, counted in this process or, for long logs, on Spark."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from itertools import chain
from typing import Any, Final, Protocol

import msgspec

from lumos.config import Settings
from lumos.discovery.scans import check_state
from lumos.model.query_log import DailyStatements, QueryRuns, QuerySample, StatementCount
from lumos.sources.addresses import access_of
from lumos.usage.query_log.analysis import StatementMeaning, analyse_statement
from lumos.usage.query_log.files import LogPiece, UnreadableLog
from lumos.usage.query_log.reader import Example, LoggedStatement, PieceReader, day_of

decode_example: Final = msgspec.msgpack.Decoder(Example).decode
decode_understood: Final = msgspec.msgpack.Decoder(StatementMeaning).decode


class NewStatements(Protocol):
    """Statements that have not been counted before."""

    def days(self) -> Sequence[DailyStatements]:
        """The number of statements per day, sorted by day."""

    def keys(self, first: int, last: int) -> Mapping[int, "array[int]"]:
        """The keys of the statements of each day in a period."""

    def runs(self, first: int, last: int) -> Iterator[QueryRuns]:
        """Runs of each kind of statement by each reader in a period, sorted by day."""

    def close(self) -> None:
        """Release resources."""


class LogStatements(Protocol):
    """The statements of a log."""

    def sums(self) -> Sequence[StatementCount]:
        """Statements per day, and skipped ones by reason.

        A file that could not be read has a message instead of a reason.
        """

    def met(self, *, most: int) -> Sequence[QuerySample]:
        """The `most` frequent kinds of statements."""

    def understood(
        self, met: Sequence[QuerySample], meaning: Callable[[bytes], bytes]
    ) -> list[bytes]:
        """The encoded meaning of each kind."""

    def fresh(self, counted: Iterable[bytes]) -> NewStatements:
        """The statements that were not counted before, and all daily totals.

        `counted` are keys of counted statements, eight bytes each, in chunks of any length.
        """

    def close(self) -> None:
        """Release resources."""


class StatementsInMemory:
    """The statements of logs, in memory."""

    def __init__(self, pieces: Iterable[LogPiece], **reading: Any) -> None:
        self._examples: dict[bytes, bytes] = {}
        self._skipped_row: Counter[str] = Counter()
        self._statements = list(self._read(pieces, reading))

    def _read(
        self, pieces: Iterable[LogPiece], reading: Mapping[str, Any]
    ) -> Iterator[LoggedStatement]:
        # Digests and readers repeat millions of times; each is stored once.
        known: dict[Any, Any] = {}
        rows = chain.from_iterable(read_piece(piece, **reading) for piece in pieces)
        for digest, key, reader, *facts, example, left_out in rows:
            if left_out is not None:
                self._skipped_row[left_out] += facts[1]
                continue
            if example is not None:
                self._examples.setdefault(digest, example)
            yield LoggedStatement(
                known.setdefault(digest, digest), key, known.setdefault(reader, reader), *facts
            )

    def sums(self) -> Sequence[StatementCount]:
        days = Counter(day_of(each.at) for each in self._statements)
        return [
            *(StatementCount(None, day, count, count) for day, count in days.items()),
            *(
                StatementCount(reason, None, 1, times)
                for reason, times in self._skipped_row.items()
            ),
        ]

    def met(self, *, most: int) -> Sequence[QuerySample]:
        times: Counter[bytes] = Counter()
        first: dict[bytes, int] = {}
        last: dict[bytes, int] = {}
        for each in self._statements:
            times[each.digest] += each.times
            first[each.digest] = min(first.get(each.digest, each.at), each.at)
            last[each.digest] = max(last.get(each.digest, each.at), each.at)
        ordered = sorted(times, key=lambda digest: (-times[digest], digest))
        return [
            QuerySample(digest, self._examples[digest], times[digest], first[digest], last[digest])
            for digest in ordered[:most]
        ]

    def understood(
        self, met: Sequence[QuerySample], meaning: Callable[[bytes], bytes]
    ) -> list[bytes]:
        return [meaning(each.example) for each in met]

    def fresh(self, counted: Iterable[bytes]) -> NewStatements:
        known = {key for part in counted for key in array("q", part)}
        fresh: dict[int, LoggedStatement] = {}
        for each in self._statements:
            if each.is_sum or each.key not in known:
                before = fresh.get(each.key)
                # Of two totals of the same reads, the larger one is newer.
                if before is None or each.times > before.times:
                    fresh[each.key] = each
        return _FreshInMemory(list(fresh.values()), known)

    def close(self) -> None:
        """Nothing to release."""


class _FreshInMemory:
    def __init__(self, statements: Sequence[LoggedStatement], known: Set[int]) -> None:
        self._statements = statements
        self._known = known

    def days(self) -> Sequence[DailyStatements]:
        statements = Counter(day_of(each.at) for each in self._statements)
        new = Counter(day_of(each.at) for each in self._statements if each.key not in self._known)
        return [DailyStatements(day, statements[day], new[day]) for day in sorted(statements)]

    def keys(self, first: int, last: int) -> Mapping[int, "array[int]"]:
        days: dict[int, array[int]] = {}
        for day, each in self._between(first, last):
            days.setdefault(day, array("q")).append(each.key)
        return days

    def _between(self, first: int, last: int) -> Iterator[tuple[int, LoggedStatement]]:
        days = ((day_of(each.at), each) for each in self._statements)
        return ((day, each) for day, each in days if first <= day <= last)

    def runs(self, first: int, last: int) -> Iterator[QueryRuns]:
        sums: dict[tuple[int, bytes, str], QueryRuns] = {}
        for day, each in self._between(first, last):
            key = (day, each.digest, each.reader)
            before = sums.get(key)
            if before is None:
                sums[key] = QueryRuns(*key, each.times, each.bytes, each.rows, each.at)
            else:
                sums[key] = QueryRuns(
                    *key,
                    before.times + each.times,
                    added(before.bytes, each.bytes),
                    added(before.rows, each.rows),
                    max(before.last, each.at),
                )
        return (sums[key] for key in sorted(sums))

    def close(self) -> None:
        """Nothing to release."""


def read_piece(piece: LogPiece, **reading: Any) -> Iterator[tuple[Any, ...]]:
    """The statements of a piece as rows, followed by rows of skipped statements by reason."""
    reader = PieceReader(**reading)
    try:
        for logged, example in reader.read(piece):
            encoded = None if example is None else msgspec.msgpack.encode(example)
            yield (*logged, encoded, None)
    except UnreadableLog as problem:
        yield _skipped_row(str(problem), 1)
    for reason, times in reader.left_out.items():
        yield _skipped_row(reason, times)


def _skipped_row(reason: str, times: int) -> tuple[Any, ...]:
    return (None, None, None, None, times, None, None, None, None, reason)


class MeaningEncoder:
    """Maps an encoded example to its encoded meaning; sent to executors."""

    def __init__(self, columns: Mapping[tuple[str, ...], Sequence[str]]) -> None:
        self._columns = columns

    def __call__(self, example: bytes) -> bytes:
        return msgspec.msgpack.encode(
            analyse_statement(decode_example(example), columns=self._columns.get)
        )


def added(one: int | None, other: int | None) -> int | None:
    """The sum of the known values."""
    return other if one is None else one if other is None else one + other


class _Reading:
    """Reads an encoded piece; sent to executors with the options of the log."""

    def __init__(self, reading: Mapping[str, Any]) -> None:
        self._reading = dict(reading)

    def __call__(self, piece: bytes) -> Iterator[tuple[Any, ...]]:
        return read_piece(msgspec.msgpack.decode(piece, type=LogPiece), **self._reading)


@contextmanager
def statements_on_spark(
    settings: Settings, pieces: Iterable[LogPiece], reading: Mapping[str, Any], *, state: str
) -> Iterator[LogStatements]:
    """The statements of log pieces; executors must see the files under the same paths.

    Keys of counted statements are written to the folder `state` in the meantime.
    """
    from lumos.spark.session import spark_session
    from lumos.usage.job import KeyFolder, QueryLog

    access = access_of(state, settings.sources)
    check_state(state, access)
    spark = settings.spark
    rows = [(each.log.path, each.start, msgspec.msgpack.encode(each)) for each in pieces]
    with spark_session(
        master=spark.master, settings=spark.properties(), short=False, libraries=("sqlglot",)
    ) as session:
        log = QueryLog(session, _Reading(reading), rows, KeyFolder(f"{state}/usage", access))
        try:
            yield log
        finally:
            log.close()
