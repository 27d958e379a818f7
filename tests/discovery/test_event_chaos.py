"""Random changes of a lake with queues that lose, repeat and reorder, and watchers that die.

Everything is real, except that the tasks of scans run in this process instead of on Spark, that
Pub/Sub is a stub of its contract, and that the events which S3 and others would send are sent here.
"""

import json
import os
import random
import shutil
import socket
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote_plus

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from files import write_parquet
from lumos import Lumos
from lumos.config.settings import EventWebhook, StorageEventType, WatchedSource
from lumos.config.sources import (
    FileSourceSettings,
    GcsSourceSettings,
    S3SourceSettings,
    SourceSettings,
)
from lumos.discovery import event_batches
from lumos.discovery.event_consumer import EventConsumer
from lumos.discovery.lake import job
from lumos.discovery.reports import IngestReport, IngestSummary
from lumos.discovery.watch_status import EventStatus
from lumos.model.change import EventType
from lumos.sources.events import EventSource, EventSourceFailed, ObjectEvent, ReceivedMessage
from lumos.spark.tasks import Task, task_table
from lumos.store.transaction import Transaction

NAMES = [f"{word}_table" for word in ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove",
                                      "heath", "iris", "jade", "krill", "larch")]  # fmt: skip
CHANGES = int(os.environ.get("LUMOS_CHAOS_CHANGES", "2000"))
COLUMNS = ("id", "name", "total", "at", "kind")


class Killed(BaseException):
    """The watcher is killed here; nothing of it goes on."""


class QueueKilled(EventSourceFailed):
    """The queue does not answer one request."""


class LossyQueue(EventSource):
    """Keeps messages until they are acknowledged; repeats, reorders and loses some."""

    name = "lossy"

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._messages: dict[str, tuple[ObjectEvent, ...]] = {}
        self._sent = 0
        self.lost = 0

    def send(self, path: str, kind: StorageEventType) -> None:
        if self._chance.random() < 0.01:
            self.lost += 1
            return
        for _ in range(1 + (self._chance.random() < 0.2)):
            self._sent += 1
            self._messages[str(self._sent)] = (ObjectEvent(path, kind, time.time()),)

    def open(self) -> None:
        """Nothing to do."""

    def receive(self, wait: float) -> list[ReceivedMessage]:  # noqa: ARG002
        receipts = self._chance.sample(sorted(self._messages), min(50, len(self._messages)))
        found = [ReceivedMessage(each, events=self._messages[each]) for each in receipts]
        if self._chance.random() < 0.1:
            found.append(ReceivedMessage("?", "malformed", reason="not JSON"))
        return found

    def acknowledge(self, receipts: Sequence[str]) -> None:
        for receipt in receipts:
            self._messages.pop(receipt, None)

    @property
    def is_empty(self) -> bool:
        return not self._messages

    def restart(self) -> None:
        """The watcher was killed; its messages are delivered again."""


class IntakeQueue(LossyQueue):
    """Loses and repeats messages on their way to a real event source, which is killed as well.

    `deliver` gives a key and a type to the source, and `count` is how many messages it has.
    """

    def __init__(
        self,
        chance: random.Random,
        lake: Path,
        create: Callable[[], EventSource],
        deliver: Callable[[str, StorageEventType], None],
        count: Callable[[], int],
    ) -> None:
        super().__init__(chance)
        self._lake, self._create, self._deliver, self._count = lake, create, deliver, count
        self._source = create()
        self._source.open()
        self.is_durable = self._source.is_durable  # type: ignore[misc]

    def send(self, path: str, kind: StorageEventType) -> None:
        if self._chance.random() < 0.01:
            self.lost += 1
            return
        for _ in range(1 + (self._chance.random() < 0.2)):
            self._deliver(str(Path(path).relative_to(self._lake)), kind)

    def receive(self, wait: float) -> list[ReceivedMessage]:
        self._fail_sometimes()
        return [
            message._replace(events=tuple(map(self._localize, message.events)))
            for message in self._source.receive(wait)
        ]

    def _fail_sometimes(self) -> None:
        # Without leases, messages that are not acknowledged wait for the next watcher.
        if self._source.lease_seconds is not None and self._chance.random() < 0.03:
            raise QueueKilled("The queue does not answer.")

    def _localize(self, event: ObjectEvent) -> ObjectEvent:
        """The file of the lake that stands for an object of a bucket."""
        if "://" not in event.path:
            return event
        key = event.path.partition("://")[2].partition("/")[2]
        return event._replace(path=f"{self._lake}/{key}")

    def acknowledge(self, receipts: Sequence[str]) -> None:
        self._fail_sometimes()
        self._source.acknowledge(receipts)

    def reject(self, messages: Sequence[ReceivedMessage]) -> None:
        self._source.reject(messages)

    @property
    def is_empty(self) -> bool:
        return not self._count()

    def restart(self) -> None:
        self._source.close()
        self._source = self._create()
        self._source.open()

    def close(self) -> None:
        self._source.close()


def s3_message(key: str, kind: StorageEventType) -> str:
    s3 = {"bucket": {"name": "lake"}, "object": {"key": quote_plus(key)}}
    return json.dumps({"Records": [{"eventName": kind.value, "s3": s3}]})


IntakeFactory = Callable[[random.Random, Path], LossyQueue]


@pytest.fixture
def sqs_intake(moto: str, monkeypatch: pytest.MonkeyPatch) -> IntakeFactory:
    import boto3

    from lumos.sources.events import sqs

    monkeypatch.setattr(sqs, "_LEASE_SECONDS", 2)
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", moto)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush-hush")
    client = boto3.client("sqs", "us-east-1", endpoint_url=moto)
    url = client.create_queue(QueueName=f"q{uuid.uuid4().hex}")["QueueUrl"]
    source = S3SourceSettings(buckets=("lake",), region="us-east-1")

    def create(chance: random.Random, lake: Path) -> LossyQueue:
        def deliver(key: str, kind: StorageEventType) -> None:
            if chance.random() < 0.01:
                client.send_message(QueueUrl=url, MessageBody="hello")
            if chance.random() < 0.002:
                # SQS allows it once a minute.
                with suppress(client.exceptions.PurgeQueueInProgress):
                    client.purge_queue(QueueUrl=url)
            client.send_message(QueueUrl=url, MessageBody=s3_message(key, kind))

        def count() -> int:
            names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
            found = client.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
            return sum(map(int, found.values()))

        return IntakeQueue(chance, lake, lambda: sqs.SqsQueue(url, source), deliver, count)

    return create


@pytest.fixture
def azure_intake(monkeypatch: pytest.MonkeyPatch) -> Iterator[IntakeFactory]:
    from lumos.sources.events import azure_queue
    from servers.azurite import azurite_queues
    from sources.events.test_azure_queue import MadeQueue, event, source

    monkeypatch.setattr(azure_queue, "_LEASE_SECONDS", 2)
    kinds = {StorageEventType.CREATED: "BlobCreated", StorageEventType.DELETED: "BlobDeleted"}
    with azurite_queues() as endpoint:
        queue = MadeQueue(f"{endpoint}/q{uuid.uuid4().hex[:20]}")
        assert queue.request("PUT").status == 201

        def deliver(key: str, kind: StorageEventType) -> None:
            queue.send(event(key, f"Microsoft.Storage.{kinds[kind]}"))

        yield lambda chance, lake: IntakeQueue(
            chance, lake, lambda: source(queue.url), deliver, queue.count
        )


@pytest.fixture
def pubsub_intake(monkeypatch: pytest.MonkeyPatch) -> Iterator[IntakeFactory]:
    from lumos.sources.events.pubsub import PubSubSubscription
    from servers.pubsub_contract_stub import SUBSCRIPTION, PubSubContractStub

    kinds = {StorageEventType.CREATED: "OBJECT_FINALIZE", StorageEventType.DELETED: "OBJECT_DELETE"}
    with PubSubContractStub(pull_seconds=0.05) as stub:
        monkeypatch.setenv("PUBSUB_EMULATOR_HOST", stub.url.removeprefix("http://"))

        def create() -> EventSource:
            # The leases of the watcher before have expired.
            stub.clock += 11
            return PubSubSubscription(SUBSCRIPTION, GcsSourceSettings(buckets=("lake",)))

        def deliver(key: str, kind: StorageEventType) -> None:
            stub.publish({"eventType": kinds[kind], "bucketId": "lake", "objectId": key})

        def count() -> int:
            stub.clock += 1
            return stub.waiting

        yield lambda chance, lake: IntakeQueue(chance, lake, create, deliver, count)


@pytest.fixture
def webhook_intake(tmp_path: Path) -> IntakeFactory:
    from lumos.sources.events.webhook import WebhookEvents

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = EventWebhook(listen=f"127.0.0.1:{port}")

    def create(chance: random.Random, lake: Path) -> LossyQueue:
        def deliver(key: str, kind: StorageEventType) -> None:
            body = s3_message(key, kind).encode()
            request = urllib.request.Request(f"http://127.0.0.1:{port}", body, method="POST")
            with urllib.request.urlopen(request, timeout=60) as response:
                assert response.status == 200

        queue = IntakeQueue(
            chance, lake, lambda: WebhookEvents(settings, tmp_path), deliver,
            lambda: sum(each or 0 for each in queue._source.backlog()),
        )  # fmt: skip
        return queue

    return create


@pytest.fixture
def inotify_intake() -> IntakeFactory:
    from lumos.sources.events.folders import FolderEvents

    def create(chance: random.Random, lake: Path) -> LossyQueue:
        lake.mkdir()
        return IntakeQueue(
            chance, lake, lambda: FolderEvents("lake", [str(lake)]), lambda *_: None, lambda: 0
        )

    return create


@pytest.fixture
def memory_intake() -> IntakeFactory:
    return lambda chance, _lake: LossyQueue(chance)


INTAKES = ("memory", "sqs", "azure", "pubsub", "webhook", "inotify")


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the tasks of scans in this process."""

    def run_tasks(
        _spark: object, schema: pa.Schema, rows: list[Any], do: Task, _: str, **_tasks: int
    ) -> list[bytes]:
        if not rows:
            return []
        batches = task_table(schema, rows).to_batches(max_chunksize=1)
        return [each for batch in do(batches) for each in batch.columns[-1].to_pylist()]

    @contextmanager
    def session(**options: Any) -> Iterator[Any]:
        options.get("meanwhile", lambda: None)()
        yield SimpleNamespace()

    monkeypatch.setattr(job, "run_tasks", run_tasks)
    monkeypatch.setattr(job, "task_count", lambda _spark: 4)
    monkeypatch.setattr("lumos.spark.session.spark_session", session)


class Chaos:
    """A lake, its queue, and two watchers that are killed at any transaction."""

    def __init__(self, folder: Path, seed: int, intake: IntakeFactory) -> None:
        self.chance = random.Random(seed)
        self.lake = folder / "lake"
        self.queue = intake(self.chance, self.lake)
        self.section = FileSourceSettings(paths=(str(self.lake),))
        self.lumos = Lumos(overrides={"storage.path": str(folder / "lumos.db"),
                                      "scan.max_removed_share": 1.0})  # fmt: skip
        self.kills = 0
        self.deaths = 0
        self._position = 0
        # The columns of all files that each dataset has ever had.
        self._shapes: dict[str, list[set[str]]] = {name: [] for name in NAMES}
        for name in NAMES[:4]:
            self._write(name)

    def scan(self, section: SourceSettings, changed: Collection[str] | None) -> IngestReport:
        try:
            report = self.lumos._discovery._scan_unattended(section, changed)
        finally:
            self.check_new_events()
        recorded = {Path(each.urn).name for each in self.lumos.list().datasets}
        for path in changed or ():
            # What an event has named and still exists is recorded with its batch.
            if path.endswith(".parquet") and Path(path).exists():
                assert Path(path).relative_to(self.lake).parts[0] in recorded, path
        return report

    def check_new_events(self) -> None:
        """What was just recorded is true; nothing changes the lake during a scan."""
        latest = self.lumos.change_history.latest(self._position)
        self._position = latest.position
        for event in (each.event for each in latest.events):
            name = Path(event.urn).name
            exists = any((self.lake / name).rglob("*.parquet"))
            match event.type:
                case EventType.CREATED | EventType.RESTORED:
                    assert exists, event
                case EventType.DELETED:
                    assert not exists, event
            if event.new_schema is not None:
                columns = {each.name for each in event.new_schema.fields} - {"dt"}
                assert columns in self._shapes[name], event

    def change(self) -> None:
        """One random change of the lake, with the events that a storage sends."""
        name = self.chance.choice(NAMES)
        folder = self.lake / name
        match self.chance.choice(["write"] * 6 + ["delete", "drop", "commit", "rename"]):
            case "write":
                self._write(name)
            case "delete" if files := sorted(folder.rglob("*.parquet")):
                file = self.chance.choice(files)
                if not (folder / "_delta_log").exists():
                    file.unlink()
                    self.queue.send(str(file), StorageEventType.DELETED)
            case "drop" if folder.exists():
                gone = [str(each) for each in folder.rglob("*") if each.is_file()]
                shutil.rmtree(folder)
                for path in gone:
                    self.queue.send(path, StorageEventType.DELETED)
            case "commit" if not any(folder.glob("*.parquet")) and not any(folder.glob("dt=*")):
                before = set(folder.rglob("*"))
                self._shapes[name].append({"id"})
                write_deltalake(
                    str(folder), pa.table({"id": [self.chance.random()]}), mode="append"
                )
                for path in set(folder.rglob("*")) - before:
                    if path.is_file():
                        self.queue.send(str(path), StorageEventType.CREATED)
            case "rename" if folder.exists() and not (folder / "_delta_log").exists():
                other = self.lake / self.chance.choice(NAMES)
                if not other.exists():
                    moved = [each.relative_to(folder) for each in folder.rglob("*.parquet")]
                    folder.rename(other)
                    self._shapes[other.name] += self._shapes[name]
                    for path in moved:
                        self.queue.send(str(folder / path), StorageEventType.DELETED)
                        self.queue.send(str(other / path), StorageEventType.CREATED)

    def _write(self, name: str) -> None:
        folder = self.lake / name
        if (folder / "_delta_log").exists():
            return
        day = f"dt=2024-01-{self.chance.randint(1, 9):02}/"
        columns = COLUMNS[: self.chance.randint(3, 5)]
        path = folder / f"{day}part-{self.chance.randint(0, 3)}.parquet"
        rows = self.chance.randint(1, 5)
        self._shapes[name].append(set(columns))
        write_parquet(path, rows, **{each: pa.int64() for each in columns})
        self.queue.send(str(path), StorageEventType.CREATED)

    def watch(self, changes: int) -> None:
        """Changes the lake while watchers consume its events and are killed."""
        watched = WatchedSource(source=self.section, watch_mode="events")
        consumers = [self._consumer(watched) for _ in range(2)]
        while changes or not self.queue.is_empty:
            number = self.chance.randrange(2)
            consumer = consumers[number]
            for _ in range(min(changes, self.chance.randint(1, 60))):
                self.change()
                changes -= 1
            # A watcher goes on to receive after its queue has failed.
            with suppress(QueueKilled):
                consumer._sort(self.queue.receive(0))
            if consumer.ready_at is None:
                continue
            if not self.kills:
                # However short a round is, its first batch is killed before it is stored.
                self.deaths = 1
            elif self.chance.random() < 0.3:
                self.deaths = self.chance.randint(1, 6)
            try:
                consumer.process(self.scan)
                if self.chance.random() < 0.05:
                    raise Killed
            except Killed:
                self.kills += 1
                consumers[number] = self._consumer(watched)
                self.deaths = 0
                self.queue.restart()
                if not self.queue.is_durable:
                    self.scan(self.section, None)
            self.deaths = 0

    def _consumer(self, watched: WatchedSource) -> EventConsumer:
        return EventConsumer(self.queue, [watched], changed=threading.Condition())

    def inventory(self, lumos: Lumos) -> dict[str, Any]:
        """Files, rows and bytes of each dataset; which schema counts depends on the history."""
        found = {}
        for each in lumos.list().datasets:
            statistics = lumos.show(each.urn).dataset["statistics"]
            names = ("file_count", "row_count", "total_size_bytes")
            found[each.urn] = tuple(statistics[name] for name in names)
        return found

    def check_history(self) -> None:
        """Each recorded event continues the one before: nothing is recorded twice."""
        alive: dict[str, bool] = {}
        schemas: dict[str, Any] = {}
        versions: set[tuple[str, str]] = set()
        for event in reversed(list(self.lumos.change_history.iterate())):
            was_alive = alive.get(event.urn, False)
            assert (event.urn, event.cloud_version) not in versions, event
            versions.add((event.urn, event.cloud_version))
            match event.type:
                case EventType.CREATED | EventType.RESTORED:
                    assert not was_alive, event
                    alive[event.urn] = True
                case EventType.DELETED:
                    assert was_alive, event
                    alive[event.urn] = False
                case EventType.SCHEMA_CHANGED:
                    assert was_alive, event
                    assert event.old_schema != event.new_schema, event
                    assert event.old_schema == schemas.get(event.urn, event.old_schema), event
            schemas[event.urn] = event.new_schema or schemas.get(event.urn, event.new_schema)


def kill_transactions(chaos: Chaos, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills the watcher in the transaction that `deaths` counts down to."""
    save_scan, leave = Transaction.save_scan, Transaction.save_schema_version

    def count_down() -> None:
        if chaos.deaths > 0:
            chaos.deaths -= 1
            if chaos.deaths == 0:
                raise Killed

    def killed_in_scan(self: Transaction, *arguments: Any, **options: Any) -> Any:
        count_down()
        return save_scan(self, *arguments, **options)

    def killed_in_schema(self: Transaction, *arguments: Any, **options: Any) -> Any:
        count_down()
        return leave(self, *arguments, **options)

    monkeypatch.setattr(Transaction, "save_scan", killed_in_scan)
    monkeypatch.setattr(Transaction, "save_schema_version", killed_in_schema)


def run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    seed: int,
    changes: int,
    intake: IntakeFactory,
) -> Chaos:
    chaos = Chaos(tmp_path, seed, intake)
    kill_transactions(chaos, monkeypatch)
    chaos.scan(chaos.section, None)
    chaos.watch(changes)
    chaos.queue.close()
    # What events have not named is found by a scan of the whole lake.
    chaos.scan(chaos.section, None)
    chaos.check_history()
    fresh = Lumos(overrides={"storage.path": str(tmp_path / "fresh.db")})
    fresh.ingest(str(chaos.lake))
    assert chaos.inventory(chaos.lumos) == chaos.inventory(fresh)
    return chaos


@pytest.mark.usefixtures("without_spark", "workplace")
def test_a_lossy_queue_and_killed_watchers_leave_a_true_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory_intake: IntakeFactory
) -> None:
    chaos = run(tmp_path, monkeypatch, seed=1, changes=60, intake=memory_intake)
    assert chaos.queue.is_empty


@pytest.mark.usefixtures("without_spark", "workplace")
def test_what_a_killed_scan_recorded_is_not_deleted_by_events_of_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    files = [lake / f"orders/dt=2024-01-0{day}/part-0.parquet" for day in (1, 2)]
    lumos = Lumos(overrides={"storage.path": str(tmp_path / "lumos.db"),
                             "scan.max_removed_share": 1.0})  # fmt: skip
    section = FileSourceSettings(paths=(str(lake),))

    def scan(*changed: Path) -> None:
        lumos._discovery._scan_unattended(section, [str(each) for each in changed])

    write_parquet(lake / "users/part-0.parquet", id=pa.int64())
    lumos.ingest(str(lake))
    for file in files:
        write_parquet(file, id=pa.int64())

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "save_scan", die)
        with pytest.raises(Killed):
            scan(*files)
    files[0].unlink()
    scan(files[0])
    assert [Path(each.urn).name for each in lumos.list().datasets] == ["orders", "users"]
    assert lumos.show("orders").dataset["statistics"]["file_count"] == 1


@pytest.mark.slow
@pytest.mark.usefixtures("without_spark", "workplace")
@pytest.mark.parametrize("seed", range(int(os.environ.get("LUMOS_CHAOS_ROUNDS", "30"))))
def test_thirty_rounds_of_chaos_leave_a_true_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, seed: int
) -> None:
    intake = request.getfixturevalue(f"{INTAKES[seed % len(INTAKES)]}_intake")
    chaos = run(tmp_path, monkeypatch, seed=seed, changes=CHANGES, intake=intake)
    assert chaos.kills > 0


class Flood(LossyQueue):
    """A queue that a thousand messages a second arrive in."""

    name = "flood"

    def __init__(self, seconds: float, rate: int) -> None:
        super().__init__(random.Random(0))
        self._started = time.monotonic()
        self._seconds, self._rate = seconds, rate
        self._received = 0
        self.total = int(seconds * rate)
        self.acknowledged: set[str] = set()

    def receive(self, wait: float) -> list[ReceivedMessage]:
        arrived = int(min(self._seconds, time.monotonic() - self._started) * self._rate)
        if arrived == self._received:
            time.sleep(min(wait, 0.01))
        found = [
            ReceivedMessage(str(n), events=(ObjectEvent(f"/lake/t/{n}.csv", StorageEventType.CREATED),))
            for n in range(self._received, min(arrived, self._received + 80))
        ]  # fmt: skip
        self._received += len(found)
        return found

    def acknowledge(self, receipts: Sequence[str]) -> None:
        assert self.acknowledged.isdisjoint(receipts)
        self.acknowledged.update(receipts)


@pytest.mark.parametrize(
    "seconds", [2, pytest.param(60, marks=pytest.mark.slow)], ids=["short", "a minute"]
)
def test_a_thousand_events_a_second_are_drained_with_limited_memory(
    monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    monkeypatch.setattr(event_batches, "MAX_BUFFERED_MESSAGES", 500)
    flood = Flood(seconds, rate=1000)
    statuses: list[EventStatus] = []
    watched = WatchedSource(source=FileSourceSettings(paths=("/lake",)), watch_mode="events")
    consumer = EventConsumer(
        flood, [watched], changed=threading.Condition(), report_status=statuses.append
    )
    scanned: set[str] = set()
    largest = 0

    def scan(_section: SourceSettings, changed: Collection[str] | None) -> IngestReport:
        nonlocal largest
        assert changed is not None
        scanned.update(changed)
        largest = max(largest, len(changed))
        time.sleep(0.2)
        return IngestReport(
            summary=IngestSummary(), roots=(), datasets=(), missing=(), held=(), problems=()
        )

    consumer.start()
    deadline = time.monotonic() + 10 * seconds + 60
    while len(flood.acknowledged) < flood.total and time.monotonic() < deadline:
        ready_at = consumer.ready_at
        if ready_at is not None and ready_at <= time.monotonic():
            consumer.process(scan)
        time.sleep(0.005)
    consumer.stop()
    assert len(flood.acknowledged) == len(scanned) == flood.total
    # One more answer of the queue may arrive when the buffer is nearly full.
    assert largest <= 500 + 80
    assert statuses[-1].counts.acknowledged == flood.total
