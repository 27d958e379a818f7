"""The loop of a watcher, in no time at all."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.discovery.watcher import (
    MAX_BACKOFF,
    PollCounts,
    PolledSource,
    apply_jitter,
    backoff_seconds,
    poll,
)
from lumos.errors import LumosError


class SimulatedPolling:
    """A clock that only moves when somebody waits or works, and the end of it."""

    def __init__(self, end: float) -> None:
        self.now = 0.0
        self.end = end
        self.looks: list[tuple[str, float]] = []
        self.failures: list[tuple[str, str, int, float]] = []

    def clock(self) -> float:
        return self.now

    def stopped(self, seconds: float) -> bool:
        assert seconds >= 0
        self.now = min(self.end, self.now + seconds)
        return self.now >= self.end

    def source(
        self,
        name: str,
        interval: float,
        *,
        takes: float = 0.0,
        fails: Callable[[float], bool] = lambda _now: False,
    ) -> PolledSource:
        def look() -> None:
            self.looks.append((name, self.now))
            self.now += takes
            if fails(self.now):
                raise LumosError("it is not there.")

        return PolledSource(name, interval, look)

    def failed(
        self, source: PolledSource, problem: Exception, *, failures: int, wait: float
    ) -> None:
        self.failures.append((source.name, str(problem), failures, wait))

    def run(self, *sources: PolledSource, once: bool = False, chance: float = 0.0) -> PollCounts:
        return poll(
            sources,
            clock=self.clock,
            stopped=self.stopped,
            random=lambda: chance,
            failed=self.failed,
            once=once,
        )

    def times(self, name: str) -> list[float]:
        return [time for looked, time in self.looks if looked == name]


def test_each_source_is_looked_at_at_its_own_pace() -> None:
    polling = SimulatedPolling(end=31)
    assert polling.run(polling.source("a", 10), polling.source("b", 15)) == PollCounts(polls=7)
    assert polling.looks == [
        ("a", 0), ("b", 0), ("a", 10), ("b", 15), ("a", 20), ("a", 30), ("b", 30),
    ]  # fmt: skip


def test_the_interval_counts_from_the_start_of_a_look() -> None:
    polling = SimulatedPolling(end=35)
    polling.run(polling.source("a", 10, takes=4))
    assert polling.times("a") == [0, 10, 20, 30]


def test_a_look_that_takes_longer_than_the_interval_is_followed_by_the_next() -> None:
    polling = SimulatedPolling(end=40)
    polling.run(polling.source("slow", 10, takes=12), polling.source("other", 10))
    assert polling.times("slow") == [0, 12, 24, 36]
    assert polling.times("other") == [12, 24, 36]


def test_chance_makes_looks_earlier_and_never_later() -> None:
    polling = SimulatedPolling(end=100)
    polling.run(polling.source("a", 10), chance=1.0)
    assert polling.times("a") == [pytest.approx(9.0 * number) for number in range(12)]


def test_a_source_that_fails_is_asked_less_and_less_while_others_go_on() -> None:
    polling = SimulatedPolling(end=100)
    tally = polling.run(
        polling.source("bad", 5, fails=lambda _now: True), polling.source("good", 5)
    )
    assert polling.times("bad") == [0, 5, 15, 35, 75]
    assert polling.times("good") == list(range(0, 100, 5))
    assert tally == PollCounts(polls=25, failures=5)
    assert polling.failures[:2] == [
        ("bad", "it is not there.", 1, 5),
        ("bad", "it is not there.", 2, 10),
    ]


def test_a_source_that_works_again_is_back_at_its_pace() -> None:
    polling = SimulatedPolling(end=100)
    polling.run(polling.source("a", 5, fails=lambda now: now < 30))
    assert polling.times("a") == [0, 5, 15, *range(35, 100, 5)]


def test_after_a_failure_that_took_long_the_wait_begins_at_its_end() -> None:
    polling = SimulatedPolling(end=100)
    polling.run(polling.source("a", 5, takes=20, fails=lambda _now: True))
    assert polling.times("a") == [0, 25, 55, 95]


def test_an_error_that_nobody_foresaw_stops_no_other_source() -> None:
    polling = SimulatedPolling(end=12)

    def broken() -> None:
        raise ZeroDivisionError("by zero")

    polling.run(PolledSource("broken", 100, broken), polling.source("good", 5))
    assert polling.times("good") == [0, 5, 10]
    assert polling.failures == [("broken", "by zero", 1, 100)]


def test_ctrl_c_is_no_failure() -> None:
    polling = SimulatedPolling(end=10)

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        polling.run(PolledSource("a", 5, interrupted))
    assert polling.failures == []


def test_once_looks_at_everything_once_and_at_nothing_again() -> None:
    polling = SimulatedPolling(end=1000)
    sources = (polling.source("a", 10), polling.source("b", 10, fails=lambda _now: True))
    assert polling.run(*sources, once=True) == PollCounts(polls=2, failures=1)
    assert [name for name, _ in polling.looks] == ["a", "b"]
    assert polling.now == 0


def test_a_stop_between_two_sources_leaves_the_second_alone() -> None:
    polling = SimulatedPolling(end=3)
    polling.run(polling.source("a", 10, takes=5), polling.source("b", 10))
    assert [name for name, _ in polling.looks] == ["a"]


def test_without_sources_there_is_nothing_to_wait_for() -> None:
    assert SimulatedPolling(end=10).run() == PollCounts()


@given(st.integers(1, 10**6), st.floats(1, 10**6), st.floats(0, 1))
def test_waits_never_shrink_and_have_an_end(failures: int, interval: float, chance: float) -> None:
    wait = backoff_seconds(failures, interval)
    assert interval <= wait <= backoff_seconds(failures + 1, interval) <= max(interval, MAX_BACKOFF)
    assert 0.9 * wait * 0.999 <= apply_jitter(wait, lambda: chance) <= wait
