"""The loop of a watcher: one source after the other, each at its own pace, none held up by others.

It knows neither sources nor the time: what it looks at, the clock and how to wait are given to it.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

# The share of an interval by which looks are drawn forward at random, so that many watchers that
# were started together do not go on asking together.
_JITTER: Final = 0.1
# A source that keeps failing is asked this seldom, or at its own interval if that is longer.
LONGEST_WAIT: Final = 900.0
_MOST_DOUBLINGS: Final = 20


class Watched(NamedTuple):
    """A source: its name for people, the seconds between two looks at most, and how to look."""

    name: str
    interval: float
    look: Callable[[], None]


class Failed(Protocol):
    """Is told of a look that failed, how many did in a row, and of the wait until the next."""

    def __call__(
        self, watched: Watched, problem: Exception, *, failures: int, wait: float
    ) -> None: ...


class Tally(NamedTuple):
    """How many looks there were, and how many of them failed."""

    looks: int = 0
    failures: int = 0


class _Turn:
    """When a source is looked at next, and how often it failed since it last worked."""

    def __init__(self, watched: Watched, due: float) -> None:
        self.watched = watched
        self.due = due
        self.failures = 0


def watch(
    watched: Sequence[Watched],
    *,
    clock: Callable[[], float],
    stopped: Callable[[float], bool],
    random: Callable[[], float],
    failed: Failed,
    once: bool = False,
) -> Tally:
    """Looks at every source in its turn until `stopped`, or `once` at each.

    `stopped` waits for some seconds and says whether to stop; `random` gives numbers from 0 to 1.
    """
    turns = [_Turn(each, clock()) for each in watched]
    looks = failures = 0
    while turns:
        turn = min(turns, key=lambda each: each.due)
        if stopped(max(0.0, turn.due - clock())):
            break
        started = clock()
        looks += 1
        try:
            turn.watched.look()
        except Exception as problem:  # noqa: BLE001 - no source may stop the others
            failures += 1
            turn.failures += 1
            wait = sooner(wait_after(turn.failures, turn.watched.interval), random)
            # From now on: a source that takes minutes to fail must not be asked all the time.
            turn.due = clock() + wait
            failed(turn.watched, problem, failures=turn.failures, wait=wait)
        else:
            turn.failures = 0
            # From the start of the look on, so that what is written is found within one interval.
            turn.due = max(clock(), started + sooner(turn.watched.interval, random))
        if once:
            turns.remove(turn)
    return Tally(looks, failures)


def wait_after(failures: int, interval: float) -> float:
    """How long a source is left alone after the nth failure in a row: longer each time."""
    doubled: float = interval * 2 ** min(failures - 1, _MOST_DOUBLINGS)
    return min(max(interval, LONGEST_WAIT), doubled)


def sooner(wait: float, random: Callable[[], float]) -> float:
    """A wait that is shorter by chance, and never longer."""
    return wait * (1 - _JITTER * random())
