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
from lumos.usage.query_log.analysis import StatementAnalysis, analyse_statement
from lumos.usage.query_log.files import LogChunk, UnreadableLog
from lumos.usage.query_log.reader import LoggedStatement, QueryLogReader, StatementExample, day_of

decode_example: Final = msgspec.msgpack.Decoder(StatementExample).decode
decode_analysis: Final = msgspec.msgpack.Decoder(StatementAnalysis).decode


class NewStatements(Protocol):
    """Statements that have not been counted earlier."""

    def days(self) -> Sequence[DailyStatements]:
        """The number of statements per day, sorted by day."""

    def keys(self, first: int, last: int) -> Mapping[int, "array[int]"]:
        """The keys of the statements of each day in a period."""

    def runs(self, first: int, last: int) -> Iterator[QueryRuns]:
        """Runs of each query by each reader in a period, sorted by day."""

    def close(self) -> None:
        """Release resources."""


class LogStatements(Protocol):
    """The statements of a log."""

    def counts(self) -> Sequence[StatementCount]:
        """Statements per day, and skipped ones by reason.

        A file that could not be read has a message instead of a reason.
        """

    def frequent_queries(self, *, limit: int) -> Sequence[QuerySample]:
        """The `limit` most frequent queries, each with an example."""

    def analyse(
        self, samples: Sequence[QuerySample], analyse_example: Callable[[bytes], bytes]
    ) -> list[bytes]:
        """The encoded analysis of each query."""

    def new_statements(self, counted: Iterable[bytes]) -> NewStatements:
        """The statements that were not counted earlier, and all daily totals.

        `counted` are keys of counted statements, eight bytes each, in chunks of any length.
        """

    def close(self) -> None:
        """Release resources."""


class StatementsInMemory:
    """The statements of logs, in memory."""

    def __init__(self, chunks: Iterable[LogChunk], **options: Any) -> None:
        self._examples: dict[bytes, bytes] = {}
        self._skipped: Counter[str] = Counter()
        self._statements = list(self._read(chunks, options))

    def _read(
        self, chunks: Iterable[LogChunk], options: Mapping[str, Any]
    ) -> Iterator[LoggedStatement]:
        # Digests and readers repeat millions of times; each is stored once.
        interned: dict[Any, Any] = {}
        rows = chain.from_iterable(read_chunk(chunk, **options) for chunk in chunks)
        for digest, key, reader, *numbers, example, skip_reason in rows:
            if skip_reason is not None:
                self._skipped[skip_reason] += numbers[1]
                continue
            if example is not None:
                self._examples.setdefault(digest, example)
            yield LoggedStatement(
                interned.setdefault(digest, digest),
                key,
                interned.setdefault(reader, reader),
                *numbers,
            )

    def counts(self) -> Sequence[StatementCount]:
        days = Counter(day_of(each.at) for each in self._statements)
        return [
            *(StatementCount(None, day, count, count) for day, count in days.items()),
            *(StatementCount(reason, None, 1, count) for reason, count in self._skipped.items()),
        ]

    def frequent_queries(self, *, limit: int) -> Sequence[QuerySample]:
        run_counts: Counter[bytes] = Counter()
        first: dict[bytes, int] = {}
        last: dict[bytes, int] = {}
        for each in self._statements:
            run_counts[each.digest] += each.run_count
            first[each.digest] = min(first.get(each.digest, each.at), each.at)
            last[each.digest] = max(last.get(each.digest, each.at), each.at)
        ordered = sorted(run_counts, key=lambda digest: (-run_counts[digest], digest))
        return [
            QuerySample(
                digest, self._examples[digest], run_counts[digest], first[digest], last[digest]
            )
            for digest in ordered[:limit]
        ]

    def analyse(
        self, samples: Sequence[QuerySample], analyse_example: Callable[[bytes], bytes]
    ) -> list[bytes]:
        return [analyse_example(each.example) for each in samples]

    def new_statements(self, counted: Iterable[bytes]) -> NewStatements:
        known = {key for part in counted for key in array("q", part)}
        by_key: dict[int, LoggedStatement] = {}
        for each in self._statements:
            if each.is_sum or each.key not in known:
                earlier = by_key.get(each.key)
                # Of two totals of the same reads, the larger one is newer.
                if earlier is None or each.run_count > earlier.run_count:
                    by_key[each.key] = each
        return _NewStatementsInMemory(list(by_key.values()), known)

    def close(self) -> None:
        """Nothing to release."""


class _NewStatementsInMemory:
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
        counts: dict[tuple[int, bytes, str], QueryRuns] = {}
        for day, each in self._between(first, last):
            key = (day, each.digest, each.reader)
            earlier = counts.get(key)
            if earlier is None:
                counts[key] = QueryRuns(*key, each.run_count, each.bytes, each.rows, each.at)
            else:
                counts[key] = QueryRuns(
                    *key,
                    earlier.run_count + each.run_count,
                    add_known(earlier.bytes, each.bytes),
                    add_known(earlier.rows, each.rows),
                    max(earlier.last, each.at),
                )
        return (counts[key] for key in sorted(counts))

    def close(self) -> None:
        """Nothing to release."""


def read_chunk(chunk: LogChunk, **options: Any) -> Iterator[tuple[Any, ...]]:
    """The statements of a chunk as rows, then one row per reason for skipped statements."""
    reader = QueryLogReader(**options)
    try:
        for logged, example in reader.read(chunk):
            encoded = None if example is None else msgspec.msgpack.encode(example)
            yield (*logged, encoded, None)
    except UnreadableLog as problem:
        yield _skipped_row(str(problem), 1)
    for reason, count in reader.skipped.items():
        yield _skipped_row(reason, count)


def _skipped_row(reason: str, count: int) -> tuple[Any, ...]:
    return (None, None, None, None, count, None, None, None, None, reason)


class StatementAnalyser:
    """Maps an encoded example to its encoded analysis; sent to executors."""

    def __init__(self, columns: Mapping[tuple[str, ...], Sequence[str]]) -> None:
        self._columns = columns

    def __call__(self, example: bytes) -> bytes:
        return msgspec.msgpack.encode(
            analyse_statement(decode_example(example), columns=self._columns.get)
        )


def add_known(first: int | None, second: int | None) -> int | None:
    """The sum of the known values; None if both are unknown."""
    return second if first is None else first if second is None else first + second


class _ChunkReader:
    """Reads an encoded chunk; sent to executors with the options of the log."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = dict(options)

    def __call__(self, chunk: bytes) -> Iterator[tuple[Any, ...]]:
        return read_chunk(msgspec.msgpack.decode(chunk, type=LogChunk), **self._options)


@contextmanager
def statements_on_spark(
    settings: Settings, chunks: Iterable[LogChunk], options: Mapping[str, Any], *, state: str
) -> Iterator[LogStatements]:
    """The statements of log chunks; executors must see the files under the same paths.

    Keys of counted statements are stored in the folder `state` meanwhile.
    """
    from lumos.spark.session import spark_session
    from lumos.usage.job import KeyFolder, QueryLog

    access = access_of(state, settings.sources)
    check_state(state, access)
    spark = settings.spark
    rows = [(each.log.path, each.start, msgspec.msgpack.encode(each)) for each in chunks]
    with spark_session(
        master=spark.master, settings=spark.properties(), short=False, libraries=("sqlglot",)
    ) as session:
        log = QueryLog(session, _ChunkReader(options), rows, KeyFolder(f"{state}/usage", access))
        try:
            yield log
        finally:
            log.close()
