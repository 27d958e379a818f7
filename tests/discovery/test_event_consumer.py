"""Events from a source to scans: batches, and each change once whatever the queue does."""

import threading
import time
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec
import pytest

from lumos.config.settings import StorageEventType, WatchedSource
from lumos.config.sources import (
    AzureSourceSettings,
    FileSourceSettings,
    PostgresSourceSettings,
    S3SourceSettings,
    SourceSettings,
)
from lumos.discovery import event_batches
from lumos.discovery.event_batches import (
    BACKLOG_QUIET_SECONDS,
    MAX_BACKLOG_DELAY,
    MAX_DELAY,
    QUIET_SECONDS,
    EventBuffer,
)
from lumos.discovery.event_consumer import EventConsumer
from lumos.discovery.reports import IngestReport, IngestSummary
from lumos.discovery.targets import SOURCE_FAILED
from lumos.discovery.watch_status import EventStatus
from lumos.errors import LumosError
from lumos.model.discovery import Problem
from lumos.model.urn import Urn
from lumos.sources.events import EventSource, EventSourceFailed, ObjectEvent, ReceivedMessage
from lumos.store.database import LockHeld

CREATED, DELETED = StorageEventType.CREATED, StorageEventType.DELETED
EMPTY = IngestReport(
    summary=IngestSummary(), roots=(), datasets=(), missing=(), held=(), problems=()
)


def message(receipt: str, *paths: str, **facts: Any) -> ReceivedMessage:
    events = tuple(ObjectEvent(path, CREATED, 0.0) for path in paths)
    return ReceivedMessage(receipt, events=events, **facts)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def buffer(clock: Clock) -> EventBuffer:
    return EventBuffer(clock=clock, now=clock, changed=threading.Condition())


def test_a_batch_is_ready_when_events_stop(buffer: EventBuffer, clock: Clock) -> None:
    assert buffer.ready_at is None
    buffer.finish(seconds=3)
    buffer.add([message("1", "/a")])
    clock.now += 0.1
    buffer.add([message("2", "/b")])
    assert buffer.ready_at == pytest.approx(clock.now + QUIET_SECONDS)


@pytest.mark.parametrize(
    ("last_scan", "delay"), [(0.01, QUIET_SECONDS), (2.0, 2.0), (60.0, MAX_DELAY)]
)
def test_a_batch_waits_as_long_as_the_last_scan_took_at_most(
    buffer: EventBuffer, clock: Clock, last_scan: float, delay: float
) -> None:
    buffer.finish(seconds=last_scan)
    started = clock.now
    for number in range(100):
        buffer.add([message(f"{number}", "/a")])
        clock.now += 0.1
    assert buffer.ready_at == pytest.approx(started + delay)


def test_a_full_buffer_is_ready_at_once(
    buffer: EventBuffer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_batches, "MAX_BUFFERED_MESSAGES", 2)
    buffer.add([message("1", "/a"), message("2", "/b")])
    assert buffer.ready_at == clock.now


def test_a_backlog_is_one_batch(buffer: EventBuffer, clock: Clock) -> None:
    started = clock.now
    for number in range(1000):
        buffer.add([message(f"{number} {n}", "/a", sent_at=started - 10) for n in range(100)])
        assert buffer.ready_at == clock.now + BACKLOG_QUIET_SECONDS
        clock.now += 0.05
    assert (len(buffer.take()), clock.now - started < MAX_BACKLOG_DELAY) == (100_000, True)


def test_late_messages_that_are_no_backlog_are_not_waited_for(
    buffer: EventBuffer, clock: Clock
) -> None:
    late = [message(f"{n}", "/a", sent_at=clock.now - 600) for n in range(100)]
    buffer.add(late[:10])
    assert buffer.ready_at == clock.now + QUIET_SECONDS
    buffer.add(late)
    buffer.add([message("new", "/a", sent_at=clock.now)])
    assert buffer.ready_at == clock.now + QUIET_SECONDS


def test_only_old_leases_are_extended(buffer: EventBuffer, clock: Clock) -> None:
    buffer.add([message("1", "/a"), message("2", "/b")])
    buffer.take()
    clock.now += 30
    buffer.add([message("3", "/c"), message("2", "/b")])
    clock.now += 31
    assert buffer.renew_leases(60) == ["1"]
    assert buffer.renew_leases(60) == []
    buffer.finish(seconds=1)
    clock.now += 61
    assert buffer.renew_leases(60) == ["3", "2"]


def test_messages_of_a_failed_batch_are_kept_in_order(buffer: EventBuffer, clock: Clock) -> None:
    buffer.add([message("1", "/a")])
    assert [each.receipt for each in buffer.take()] == ["1"]
    buffer.add([message("2", "/b")])
    assert buffer.size == 2
    buffer.put_back(wait=7)
    assert buffer.ready_at == clock.now + 7
    assert [each.receipt for each in buffer.take()] == ["1", "2"]


def test_the_buffer_is_limited(buffer: EventBuffer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_batches, "MAX_BUFFERED_MESSAGES", 2)
    buffer.add([message("1", "/a")])
    assert not buffer.is_full
    buffer.take()
    buffer.add([message("2", "/b")])
    assert buffer.is_full


class FakeQueue(EventSource):
    """A queue in memory with leases that never expire unless a test says so."""

    name = "queue"
    lease_seconds = 120.0

    def __init__(self, *messages: ReceivedMessage) -> None:
        self.waiting = list(messages)
        self.acknowledged: list[str] = []
        self.rejected: list[str] = []
        self.kept: list[str] = []
        self.opened = False
        self.broken = 0

    def open(self) -> None:
        self.opened = True

    def receive(self, wait: float) -> list[ReceivedMessage]:
        if self.broken:
            self.broken -= 1
            raise EventSourceFailed("The queue does not answer.")
        if not self.waiting:
            time.sleep(min(wait, 0.01))
        found, self.waiting = self.waiting[:10], self.waiting[10:]
        return found

    def acknowledge(self, receipts: Sequence[str]) -> None:
        self.acknowledged += receipts

    def reject(self, messages: Sequence[ReceivedMessage]) -> None:
        self.rejected += [each.receipt for each in messages]

    def keep(self, receipts: Sequence[str]) -> None:
        self.kept += receipts


LAKE = WatchedSource(source=FileSourceSettings(paths=("/lake",)), watch_mode="events")


class Watch:
    """A consumer of a queue, and what it has scanned."""

    def __init__(self, queue: FakeQueue, *watched: WatchedSource) -> None:
        self.queue = queue
        self.statuses: list[EventStatus] = []
        self.scans: list[list[str] | None] = []
        self.problems: list[Exception] = []
        self.now = 1000.0
        self.consumer = EventConsumer(
            queue,
            watched or (LAKE,),
            changed=threading.Condition(),
            now=lambda: self.now,
            ignored_folder="/lake/state",
            report_status=self.statuses.append,
        )

    def scan(self, _section: SourceSettings, changed: Collection[str] | None) -> IngestReport:
        if self.problems:
            raise self.problems.pop(0)
        self.scans.append(None if changed is None else sorted(changed))
        return EMPTY

    def receive(self) -> None:
        """Takes everything that waits."""
        self.consumer._sort(self.queue.receive(0))

    def process(self) -> None:
        self.consumer.process(self.scan)

    @property
    def counts(self) -> dict[str, int]:
        self.consumer.save_status()
        counts = msgspec.structs.asdict(self.statuses[-1].counts)
        return {name: count for name, count in counts.items() if count}


def test_many_events_are_one_scan_and_are_acknowledged_after_it() -> None:
    watch = Watch(FakeQueue(*(message(f"{n}", f"/lake/a/{n}.csv") for n in range(10))))
    watch.receive()
    assert watch.queue.acknowledged == []
    watch.process()
    assert watch.scans == [[f"/lake/a/{n}.csv" for n in range(10)]]
    assert watch.queue.acknowledged == [f"{n}" for n in range(10)]
    assert watch.statuses[-1].lag_seconds == 1000.0


def test_a_duplicated_message_is_scanned_with_the_first_one() -> None:
    watch = Watch(FakeQueue(message("1", "/lake/a"), message("2", "/lake/a", delivery=2)))
    watch.receive()
    watch.process()
    assert watch.scans == [["/lake/a"]]
    assert watch.queue.acknowledged == ["1", "2"]
    assert watch.counts["delivered_again"] == 1


def test_messages_are_kept_when_the_scan_fails_and_tried_again() -> None:
    watch = Watch(FakeQueue(message("1", "/lake/a")))
    watch.receive()
    watch.problems = [LumosError("The storage is away.")]
    with pytest.raises(LumosError):
        watch.process()
    assert watch.queue.acknowledged == []
    watch.process()
    assert watch.queue.acknowledged == ["1"]
    assert watch.counts["failed_batches"] == 1


def test_the_lag_grows_while_batches_fail() -> None:
    watch = Watch(FakeQueue(message("1", "/lake/a", sent_at=990.0)))
    watch.receive()
    watch.problems = [LumosError("The storage is away.")] * 2
    for now in (1000.0, 1600.0):
        watch.now = now
        with pytest.raises(LumosError):
            watch.process()
        assert watch.statuses[-1].lag_p95_seconds == now - 990


def test_a_source_that_fails_inside_of_a_scan_keeps_the_messages_too() -> None:
    watch = Watch(FakeQueue(message("1", "/lake/a")))
    watch.receive()
    failed = Problem(path="/lake", code=SOURCE_FAILED, reason="It does not answer")
    with pytest.raises(EventSourceFailed, match="does not answer"):
        watch.consumer.process(lambda *_: msgspec.structs.replace(EMPTY, problems=(failed,)))
    assert watch.queue.acknowledged == []


def test_a_scan_by_another_watcher_is_waited_for() -> None:
    watch = Watch(FakeQueue(message("1", "/lake/a")))
    watch.receive()
    watch.problems = [LockHeld("/lake")]
    watch.process()
    assert watch.queue.acknowledged == []
    watch.process()
    assert watch.queue.acknowledged == ["1"]


def test_a_poisonous_message_cannot_block_the_others_for_long() -> None:
    watch = Watch(FakeQueue(message("1", "/lake/poison")))
    watch.receive()
    watch.problems = [ValueError("bad key")] * 3
    for _ in range(3):
        with pytest.raises(ValueError, match="bad key"):
            watch.process()
    watch.process()
    assert watch.scans == [None]
    assert watch.queue.acknowledged == ["1"]


def test_foreign_ignored_and_malformed_messages_are_counted_and_not_scanned() -> None:
    watch = Watch(
        FakeQueue(
            message("1", "/pond/a"),
            message("2", "/lake/state/manifest"),
            message("3", "/lake/_temporary/x"),
            ReceivedMessage("4", "ignored"),
            ReceivedMessage("5", "malformed", reason="not JSON"),
            ReceivedMessage("5", "malformed", reason="not JSON", delivery=2),
            message("6", "/lake/t/_delta_log/0.json"),
        )
    )
    watch.receive()
    watch.process()
    assert watch.scans == [["/lake/t/_delta_log/0.json"]]
    assert watch.queue.acknowledged == ["1", "2", "3", "4", "6"]
    assert watch.queue.rejected == ["5", "5"]
    assert (watch.counts["foreign"], watch.counts["ignored"], watch.counts["malformed"]) == (
        3,
        1,
        1,
    )


def test_only_the_configured_types_of_events_cause_scans() -> None:
    only_new = msgspec.structs.replace(LAKE, event_types=(CREATED,))
    watch = Watch(
        FakeQueue(ReceivedMessage("1", events=(ObjectEvent("/lake/a", DELETED),))), only_new
    )
    watch.receive()
    watch.process()
    assert (watch.scans, watch.queue.acknowledged) == ([], ["1"])
    # The messages of an object that was deleted and written again, in the wrong order.
    for number, kind in enumerate((CREATED, DELETED)):
        watch.queue.waiting.append(
            ReceivedMessage(f"b{number}", events=(ObjectEvent("/lake/b", kind),))
        )
    watch.receive()
    watch.process()
    assert watch.scans == [["/lake/b"]]


def test_sources_that_share_a_queue_get_their_own_events() -> None:
    buckets = [
        WatchedSource(source=S3SourceSettings(buckets=(name,)), watch_mode="events")
        for name in "ab"
    ]
    watch = Watch(FakeQueue(message("1", "s3://a/x"), message("2", "s3://b/y")), *buckets)
    watch.receive()
    watch.process()
    assert watch.scans == [["s3://a/x"], ["s3://b/y"]]


def test_messages_at_the_end_of_their_retention_cause_a_scan_of_everything(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watch = Watch(FakeQueue(message("1", "/lake/a", sent_at=1000.0 - 950)))
    watch.queue.retention_seconds = 1000.0
    watch.receive()
    watch.process()
    assert watch.scans == [None]
    assert "nearly as old as the queue keeps them" in caplog.text
    assert watch.counts["expired_batches"] == 1


def test_messages_are_kept_although_the_queue_refuses_to_reject_others() -> None:
    watch = Watch(FakeQueue(ReceivedMessage("1", "malformed"), message("2", "/lake/a")))
    watch.queue.reject = _fail  # type: ignore[method-assign]
    with pytest.raises(EventSourceFailed):
        watch.receive()
    watch.process()
    assert watch.scans == [["/lake/a"]]
    assert watch.queue.acknowledged == ["2"]


def _fail(_messages: Sequence[ReceivedMessage]) -> None:
    raise EventSourceFailed("The queue does not answer.")


def test_what_is_hidden_from_one_source_may_be_watched_by_another() -> None:
    hidden = WatchedSource(
        source=FileSourceSettings(paths=("/lake/.staging",)), watch_mode="events"
    )
    watch = Watch(FakeQueue(message("1", "/lake/.staging/a")), LAKE, hidden)
    watch.receive()
    watch.process()
    assert ["/lake/.staging/a"] in watch.scans


def missing(*names: str) -> IngestReport:
    urns = (str(Urn.of("file", ["lake", *name.split("/")])) for name in names)
    return msgspec.structs.replace(EMPTY, missing=tuple(urns))


@pytest.mark.parametrize(
    ("dataset", "path"),
    [
        pytest.param("orders", "/lake/orders/dt=1/part-0.csv", id="a file in a folder"),
        pytest.param(
            "a b/gr\u00f6\u00dfe", "/lake/a b/gr\u00f6\u00dfe/x.csv", id="encoded in URNs"
        ),
        pytest.param("orders_{date}.csv", "/lake/orders_2024.csv", id="a pattern of files"),
        pytest.param("new/orders", "/lake/new/", id="a folder around it"),
        pytest.param("orders", "abfss://lake@account.dfs.core.windows.net/orders/x", id="Azure"),
    ],
)
def test_a_change_that_an_event_names_later_was_not_missed(dataset: str, path: str) -> None:
    azure = AzureSourceSettings(buckets=("lake",), account="account")
    watch = Watch(
        FakeQueue(message("1", path)), LAKE, WatchedSource(source=azure, watch_mode="events")
    )
    watch.consumer.reconcile(missing(dataset, "other"))
    watch.receive()
    watch.process()
    watch.consumer.reconcile(missing())
    assert watch.counts["missed"] == 1


def test_an_event_of_a_database_names_all_of_its_changes() -> None:
    queue = FakeQueue(message("1", "postgresql://db/shop"))
    queue.root = "postgresql://db/shop"
    database = PostgresSourceSettings(connection_string=None, host="db")
    watch = Watch(queue, WatchedSource(source=database, watch_mode="events"))
    watch.consumer.reconcile(missing("orders"))
    watch.receive()
    watch.process()
    watch.consumer.reconcile(missing())
    assert "missed" not in watch.counts


def test_changes_that_no_event_has_named_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch(FakeQueue(message("1", "/lake/late/x.csv")))
    watch.consumer.reconcile(missing("lost", "late"))
    watch.receive()
    watch.process()
    assert "missed" not in watch.counts
    watch.consumer.reconcile(missing())
    assert watch.counts["missed"] == 1
    assert "a scan found 1 change that no event had reported: lake/lost" in caplog.text
    assert watch.counts["reconciliations"] == 2


def test_an_event_of_another_queue_of_the_source_explains_a_change() -> None:
    first, second = Watch(FakeQueue()), Watch(FakeQueue(message("1", "/lake/orders/x.csv")))
    second.consumer.peers = (first.consumer,)
    first.consumer.reconcile(missing("orders", "lost"))
    second.receive()
    second.process()
    first.consumer.reconcile(missing())
    assert first.counts["missed"] == 1


@pytest.fixture
def running() -> Iterator[Watch]:
    watch = Watch(FakeQueue())
    yield watch
    watch.consumer.stop()


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition()


def test_a_thread_receives_and_survives_a_queue_that_fails(
    running: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumos.discovery.event_consumer._MAX_WAIT", 0.01)
    running.queue.broken = 2
    running.queue.waiting = [message("1", "/lake/a")]
    running.consumer.start()
    wait_for(lambda: running.consumer.ready_at is not None)
    running.process()
    assert running.queue.acknowledged == ["1"]


def test_nothing_is_received_while_the_buffer_is_full(
    running: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_batches, "MAX_BUFFERED_MESSAGES", 10)
    running.queue.lease_seconds = 0.03
    running.queue.waiting = [message(f"{n}", f"/lake/{n}") for n in range(50)]
    running.consumer.start()
    # The leases of held messages are extended while they wait.
    wait_for(lambda: running.queue.kept)
    assert len(running.queue.waiting) == 40
    while len(running.queue.acknowledged) < 50:
        wait_for(lambda: running.consumer.ready_at is not None)
        running.process()
    assert sorted(running.queue.acknowledged, key=int) == [f"{n}" for n in range(50)]
