"""The reader of the change log that all event streams of a process share."""

import asyncio
from typing import Any

import pytest

from lumos.model.change import EventType
from lumos.schemas import changes
from lumos.schemas.changes import EventReport, LatestChanges, PositionedEvent
from lumos.server import change_feed
from lumos.server.change_feed import ChangeFeed
from lumos.store import StoreNotUsable

FOLLOWERS = 50


class Log:
    """A change log in memory that counts how often it is read."""

    def __init__(self) -> None:
        self.positions: list[int] = []
        self.reads = 0
        self.is_down = False

    async def read(self, after: int | None) -> LatestChanges:
        self.reads += 1
        if self.is_down:
            raise StoreNotUsable("The store does not answer.")
        if after is None:
            return LatestChanges(position=max(self.positions, default=0), events=())
        found = [each for each in sorted(self.positions) if each > after][:1_000]
        events = tuple(PositionedEvent(position=each, event=event(each)) for each in found)
        return LatestChanges(position=max(found, default=after), events=events)


def event(number: int) -> EventReport:
    facts: dict[str, Any] = dict.fromkeys(EventReport.__struct_fields__)
    return EventReport(**{**facts, "event_id": str(number), "type": EventType.CREATED})


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_feed, "POLL_SECONDS", 0.01)


async def take(feed: ChangeFeed, start: int, count: int) -> list[tuple[int, int]]:
    """The resume positions and positions of the next events."""
    found: list[tuple[int, int]] = []
    stream = feed.follow(start, idle_seconds=60)
    async for each in stream:
        assert each is not None
        found.append((each[0], each[1].position))
        if len(found) == count:
            break
    await stream.aclose()  # type: ignore[attr-defined]
    return found


def test_many_streams_read_the_log_once() -> None:
    async def play() -> None:
        log = Log()
        log.positions = [1, 2, 3]
        feed = ChangeFeed(log.read)
        following = [asyncio.create_task(take(feed, 3, 3)) for _ in range(FOLLOWERS)]
        resumed = asyncio.create_task(take(feed, 1, 5))
        await asyncio.sleep(0.05)
        at_first = log.reads
        # 6 is recorded before 5, whose transaction ends later.
        log.positions += [4, 6]
        await asyncio.sleep(0.05)
        log.positions.append(5)
        for each in following:
            assert await each == [(4, 4), (6, 6), (6, 5)]
        assert await resumed == [(2, 2), (3, 3), (4, 4), (6, 6), (6, 5)]
        # One catch-up of each stream, and then one reader for all.
        assert at_first <= FOLLOWERS + 20
        assert log.reads - at_first < FOLLOWERS

    asyncio.run(asyncio.wait_for(play(), 60))


def test_streams_survive_a_store_that_cannot_be_reached() -> None:
    async def play() -> None:
        log = Log()
        feed = ChangeFeed(log.read)
        following = asyncio.create_task(take(feed, 0, 1))
        await asyncio.sleep(0.03)
        log.is_down = True
        log.positions = [1]
        await asyncio.sleep(0.05)
        assert not following.done()
        log.is_down = False
        assert await following == [(1, 1)]

    asyncio.run(asyncio.wait_for(play(), 60))


def test_a_stream_whose_client_does_not_read_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_feed, "_MAX_QUEUED_EVENTS", 5)
    assert changes._MAX_LATEST_EVENTS > 20

    async def play() -> None:
        log = Log()
        feed = ChangeFeed(log.read)
        slow = feed.follow(0, idle_seconds=0.02)
        assert await anext(slow) is None
        log.positions = list(range(1, 21))
        await asyncio.sleep(0.1)
        found = [each async for each in slow if each is not None]
        assert len(found) < 20
        # It resumes after its last event and misses nothing.
        last = found[-1][0] if found else 0
        assert [each for _, each in await take(feed, last, 20 - len(found))][-1] == 20

    asyncio.run(asyncio.wait_for(play(), 60))
