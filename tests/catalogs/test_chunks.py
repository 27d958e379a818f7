"""Chunks that a server takes, and the one thing in them that it does not."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.catalogs.chunks import chunked, in_halves
from lumos.errors import CatalogError, CatalogRefused, CatalogUnavailable


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 50))))
def test_chunks_hold_what_they_may_in_order_and_no_more(things: list[tuple[int, int]]) -> None:
    chunks = list(
        chunked(
            things, max_parts=7, max_bytes=60, size=lambda each: each[1], count=lambda each: each[0]
        )
    )
    assert [thing for chunk in chunks for thing in chunk] == things
    assert all(chunks)
    for chunk in chunks:
        assert sum(count for count, _ in chunk) <= 7
        assert sum(size for _, size in chunk) <= 60
    for chunk, following in pairwise(chunks):
        bigger = [*chunk, following[0]]
        assert sum(count for count, _ in bigger) > 7 or sum(size for _, size in bigger) > 60


def test_what_is_too_large_is_alone() -> None:
    chunks = chunked([1, 99, 2, 3], max_parts=10, max_bytes=10, size=lambda each: each)
    assert list(chunks) == [[1], [99], [2, 3]]


class Server:
    def __init__(self, bad: set[int], status: int = 400) -> None:
        self.bad, self.status = bad, status
        self.taken: list[int] = []
        self.calls = 0

    def send(self, numbers: Sequence[int]) -> None:
        self.calls += 1
        if wrong := self.bad.intersection(numbers):
            raise CatalogError(f"{min(wrong)} is bad", platform="x", status=self.status)
        self.taken += numbers


@pytest.mark.parametrize("bad", [set(), {0}, {7}, {63}, {3, 4, 60}])
def test_one_bad_thing_does_not_hold_up_its_neighbours(bad: set[int]) -> None:
    server = Server(bad)
    outcomes = dict(in_halves(range(64), server.send))
    assert sorted(server.taken) == sorted(set(range(64)) - bad)
    assert {number for number, problem in outcomes.items() if problem} == bad
    assert all(str(outcomes[number]) == f"{number} is bad" for number in bad)
    assert len(outcomes) == 64
    assert server.calls <= 1 + 12 * len(bad)


def test_what_is_yielded_was_taken_before() -> None:
    server = Server({5})
    for number, problem in in_halves(range(8), server.send):
        assert (number in server.taken) == (problem is None)


def test_nothing_is_sent_where_there_is_nothing() -> None:
    server = Server(set())
    assert list(in_halves([], server.send)) == []
    assert server.calls == 0


def test_a_catalog_that_does_not_let_us_in_is_not_asked_for_each_half() -> None:
    calls = []

    def send(numbers: Sequence[int]) -> None:
        calls.append(numbers)
        raise CatalogRefused("x", status=401, key="x.token", variable="X")

    with pytest.raises(CatalogRefused):
        list(in_halves(range(9), send))
    assert len(calls) == 1


def test_a_server_that_fails_at_everything_is_ill() -> None:
    server = Server(set(range(200)), status=500)
    with pytest.raises(CatalogUnavailable, match="4 is bad") as caught:
        list(in_halves(range(200), server.send))
    assert caught.value.retryable
    assert server.calls < 20


def test_a_few_things_may_make_a_server_fail() -> None:
    outcomes = dict(in_halves(range(50), Server({1, 9, 17, 30, 31, 49}, status=500).send))
    assert sum(problem is not None for problem in outcomes.values()) == 6
