"""The statements of logs, counted in this process; Spark does the same with long logs."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import Any, Final, Protocol

import msgspec

from lumos.model.query_log import NewStatements, QueryRuns, QuerySample, StatementCount
from lumos.usage.query_log import (
    Example,
    Logged,
    Piece,
    Piecewise,
    Understood,
    UnreadableLog,
    day_of,
    understand,
)

decode_example: Final = msgspec.msgpack.Decoder(Example).decode
decode_understood: Final = msgspec.msgpack.Decoder(Understood).decode


class Fresh(Protocol):
    """Statements that count, each once."""

    def days(self) -> Sequence[NewStatements]:
        """How many statements each day has, in their order."""

    def keys(self, first: int, last: int) -> Mapping[int, "array[int]"]:
        """What tells the statements of each of some days from all others."""

    def runs(self, first: int, last: int) -> Iterator[QueryRuns]:
        """How often each kind was run by each reader on some days, day by day."""

    def close(self) -> None:
        """Lets go of what was held."""


class Statements(Protocol):
    """The statements of a log."""

    def sums(self) -> Sequence[StatementCount]:
        """How many there are by day, and how many are not counted, by the reason.

        What could not be read is a sentence instead of a reason.
        """

    def met(self, *, most: int) -> Sequence[QuerySample]:
        """The kinds of statements, the most frequent first, and no more than `most`."""

    def understood(
        self, met: Sequence[QuerySample], meaning: Callable[[bytes], bytes]
    ) -> list[bytes]:
        """What each kind means."""

    def fresh(self, counted: Iterable[bytes]) -> Fresh:
        """The statements that are not counted yet, and all sums.

        `counted` are the keys of statements, eight bytes each, in parts of any length.
        """

    def close(self) -> None:
        """Lets go of what was held."""


class StatementsInMemory:
    """The statements of logs that are small enough for one process."""

    def __init__(self, pieces: Iterable[Piece], **reading: Any) -> None:
        self._examples: dict[bytes, bytes] = {}
        self._left_out: Counter[str] = Counter()
        self._statements = list(self._read(pieces, reading))

    def _read(self, pieces: Iterable[Piece], reading: Mapping[str, Any]) -> Iterator[Logged]:
        # Digests and readers repeat by the million, and each is kept once.
        known: dict[Any, Any] = {}
        rows = chain.from_iterable(read_piece(piece, **reading) for piece in pieces)
        for digest, key, reader, *facts, example, left_out in rows:
            if left_out is not None:
                self._left_out[left_out] += facts[1]
                continue
            if example is not None:
                self._examples.setdefault(digest, example)
            yield Logged(
                known.setdefault(digest, digest), key, known.setdefault(reader, reader), *facts
            )

    def sums(self) -> Sequence[StatementCount]:
        days = Counter(day_of(each.at) for each in self._statements)
        return [
            *(StatementCount(None, day, count, count) for day, count in days.items()),
            *(StatementCount(reason, None, 1, times) for reason, times in self._left_out.items()),
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

    def fresh(self, counted: Iterable[bytes]) -> Fresh:
        known = {key for part in counted for key in array("q", part)}
        fresh: dict[int, Logged] = {}
        for each in self._statements:
            if each.is_sum or each.key not in known:
                before = fresh.get(each.key)
                # Of two sums of the same reads the larger one is the newer one.
                if before is None or each.times > before.times:
                    fresh[each.key] = each
        return _FreshInMemory(list(fresh.values()), known)

    def close(self) -> None:
        """Nothing is held but memory."""


class _FreshInMemory:
    def __init__(self, statements: Sequence[Logged], known: Set[int]) -> None:
        self._statements = statements
        self._known = known

    def days(self) -> Sequence[NewStatements]:
        statements = Counter(day_of(each.at) for each in self._statements)
        new = Counter(day_of(each.at) for each in self._statements if each.key not in self._known)
        return [NewStatements(day, statements[day], new[day]) for day in sorted(statements)]

    def keys(self, first: int, last: int) -> Mapping[int, "array[int]"]:
        days: dict[int, array[int]] = {}
        for day, each in self._between(first, last):
            days.setdefault(day, array("q")).append(each.key)
        return days

    def _between(self, first: int, last: int) -> Iterator[tuple[int, Logged]]:
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
        """Nothing is held but memory."""


def read_piece(piece: Piece, **reading: Any) -> Iterator[tuple[Any, ...]]:
    """The statements of a piece as rows of plain values, and at last what is not counted."""
    reader = Piecewise(**reading)
    try:
        for logged, example in reader.read(piece):
            encoded = None if example is None else msgspec.msgpack.encode(example)
            yield (*logged, encoded, None)
    except UnreadableLog as problem:
        yield _left_out(str(problem), 1)
    for reason, times in reader.left_out.items():
        yield _left_out(reason, times)


def _left_out(reason: str, times: int) -> tuple[Any, ...]:
    return (None, None, None, None, times, None, None, None, None, reason)


class Meaning:
    """Says what an encoded example means, encoded; on executors as well as here."""

    def __init__(self, columns: Mapping[tuple[str, ...], Sequence[str]]) -> None:
        self._columns = columns

    def __call__(self, example: bytes) -> bytes:
        return msgspec.msgpack.encode(
            understand(decode_example(example), columns=self._columns.get)
        )


def added(one: int | None, other: int | None) -> int | None:
    """The sum of what is known."""
    return other if one is None else one if other is None else one + other
