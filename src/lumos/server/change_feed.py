"""One reader of the change log for all event streams of a process."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from lumos.errors import LumosError
from lumos.model.json_codec import to_json
from lumos.schemas.changes import LatestChanges, PositionedEvent

POLL_SECONDS: Final = 1.0
# Positions to read again: a transaction that began earlier may be committed later.
_OVERLAP: Final = 200
# A client that has not read this many events is disconnected; it resumes after its last event.
_MAX_QUEUED_EVENTS: Final = 10_000

ReadChanges = Callable[[int | None], Awaitable[LatestChanges]]


class FeedEvent(NamedTuple):
    """A change: its position in the log, its type, and its body as JSON."""

    position: int
    type: str
    body: str


class ChangeFeed:
    """Reads new changes every second, once for all subscribers, as long as there are any."""

    def __init__(self, read: ReadChanges) -> None:
        self._read = read
        self._queues: set[asyncio.Queue[FeedEvent | None]] = set()
        self._polling: asyncio.Task[None] | None = None

    async def follow(
        self, start: int, *, idle_seconds: float
    ) -> AsyncIterator[tuple[int, FeedEvent] | None]:
        """Yield the changes after a position, each with the position to resume after.

        Yields None when nothing has happened for some time, and ends if the caller is too slow.
        """
        sent: dict[int, None] = {}
        newest = start
        async with self._subscribe() as queue:
            # Subscribe before reading, so that every change is either in the log or in the queue.
            fresh = await self._read_after(start, sent)
            while fresh:
                for each in fresh:
                    sent[each.position] = None
                    newest = max(newest, each.position)
                    yield newest, each
                sent = _drop_old(sent, newest)
                fresh = await self._read_after(max(start, newest - _OVERLAP), sent)
            while True:
                try:
                    event = await asyncio.wait_for(queue.get(), idle_seconds)
                except TimeoutError:
                    yield None
                    continue
                if event is None:
                    return
                if event.position <= start or event.position in sent:
                    continue
                sent[event.position] = None
                newest = max(newest, event.position)
                sent = _drop_old(sent, newest)
                yield newest, event

    async def _read_after(self, floor: int, sent: dict[int, None]) -> list[FeedEvent]:
        latest = await self._read(floor)
        return [_event(each) for each in latest.events if each.position not in sent]

    @asynccontextmanager
    async def _subscribe(self) -> AsyncIterator["asyncio.Queue[FeedEvent | None]"]:
        queue: asyncio.Queue[FeedEvent | None] = asyncio.Queue(_MAX_QUEUED_EVENTS)
        self._queues.add(queue)
        if self._polling is None or self._polling.done():
            self._polling = asyncio.create_task(self._poll())
        try:
            yield queue
        finally:
            self._queues.discard(queue)

    async def _poll(self) -> None:
        """Read changes until there are no subscribers."""
        try:
            await self._read_changes()
        finally:
            # If polling failed, end the streams: clients reconnect and resume.
            for queue in self._queues:
                self._end(queue)
            self._queues.clear()

    async def _read_changes(self) -> None:
        newest: int | None = None
        seen: dict[int, None] = {}
        while self._queues:
            try:
                if newest is None:
                    newest = (await self._read(None)).position
                latest = await self._read(max(0, newest - _OVERLAP))
            except LumosError:
                # Clients stay connected while the store cannot be reached.
                await asyncio.sleep(POLL_SECONDS)
                continue
            fresh = [each for each in latest.events if each.position not in seen]
            for each in fresh:
                seen[each.position] = None
                newest = max(newest, each.position)
                self._publish(_event(each))
            seen = _drop_old(seen, newest)
            if len(fresh) < _OVERLAP:
                await asyncio.sleep(POLL_SECONDS)

    def _publish(self, event: FeedEvent) -> None:
        for queue in list(self._queues):
            if queue.full():
                self._queues.discard(queue)
                self._end(queue)
            else:
                queue.put_nowait(event)

    @staticmethod
    def _end(queue: "asyncio.Queue[FeedEvent | None]") -> None:
        if queue.full():
            queue.get_nowait()
        queue.put_nowait(None)


def _event(recorded: PositionedEvent) -> FeedEvent:
    event = recorded.event
    return FeedEvent(recorded.position, event.type.value, to_json(event).decode())


def _drop_old(positions: dict[int, None], newest: int) -> dict[int, None]:
    return {each: None for each in positions if each > newest - 2 * _OVERLAP}
