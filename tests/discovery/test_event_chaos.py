"""Random changes of a lake with a queue that loses, repeats and reorders, and watchers that die.

Everything is real, except that the tasks of scans run in this process instead of on Spark.
"""

import os
import random
import shutil
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from files import write_parquet
from lumos import Lumos
from lumos.config.settings import StorageEventType, WatchedSource
from lumos.config.sources import FileSourceSettings, SourceSettings
from lumos.discovery import event_batches
from lumos.discovery.event_consumer import EventConsumer
from lumos.discovery.lake import job
from lumos.discovery.reports import IngestReport, IngestSummary
from lumos.discovery.watch_status import EventStatus
from lumos.model.change import EventType
from lumos.sources.events import EventSource, ObjectEvent, ReceivedMessage
from lumos.spark.tasks import Task, task_table
from lumos.store.transaction import Transaction

NAMES = [f"{word}_table" for word in ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove",
                                      "heath", "iris", "jade", "krill", "larch")]  # fmt: skip
COLUMNS = ("id", "name", "total", "at", "kind")


class Killed(BaseException):
    """The watcher is killed here; nothing of it goes on."""


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
    """A lake, its queue, and watchers that are killed at any transaction."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.lake = folder / "lake"
        self.queue = LossyQueue(self.chance)
        self.section = FileSourceSettings(paths=(str(self.lake),))
        self.lumos = Lumos(overrides={"storage.path": str(folder / "lumos.db"),
                                      "scan.max_removed_share": 1.0})  # fmt: skip
        self.kills = 0
        self.deaths = 0
        for name in NAMES[:4]:
            self._write(name)

    def scan(self, section: SourceSettings, changed: Collection[str] | None) -> IngestReport:
        return self.lumos._discovery._scan_unattended(section, changed)

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
        write_parquet(path, rows, **{each: pa.int64() for each in columns})
        self.queue.send(str(path), StorageEventType.CREATED)

    def watch(self, changes: int) -> None:
        """Changes the lake while watchers consume its events and are killed."""
        watched = WatchedSource(source=self.section, watch_mode="events")
        consumer = self._consumer(watched)
        while changes or not self.queue.is_empty:
            for _ in range(min(changes, self.chance.randint(1, 60))):
                self.change()
                changes -= 1
            consumer._sort(self.queue.receive(0))
            if consumer.ready_at is None:
                continue
            self.deaths = self.chance.randint(0, 12) if self.chance.random() < 0.3 else 0
            try:
                consumer.process(self.scan)
                if self.chance.random() < 0.05:
                    raise Killed
            except Killed:
                self.kills += 1
                consumer = self._consumer(watched)
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
        for event in reversed(list(self.lumos.iter_changes())):
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


def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, seed: int, changes: int) -> Chaos:
    chaos = Chaos(tmp_path, seed)
    kill_transactions(chaos, monkeypatch)
    chaos.scan(chaos.section, None)
    chaos.watch(changes)
    # What events have not named is found by a scan of the whole lake.
    chaos.scan(chaos.section, None)
    chaos.check_history()
    fresh = Lumos(overrides={"storage.path": str(tmp_path / "fresh.db")})
    fresh.ingest(str(chaos.lake))
    assert chaos.inventory(chaos.lumos) == chaos.inventory(fresh)
    return chaos


@pytest.mark.usefixtures("without_spark", "workplace")
def test_a_lossy_queue_and_killed_watchers_leave_a_true_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(tmp_path, monkeypatch, seed=1, changes=60).queue.is_empty


@pytest.mark.slow
@pytest.mark.usefixtures("without_spark", "workplace")
@pytest.mark.parametrize("seed", range(int(os.environ.get("LUMOS_CHAOS_ROUNDS", "30"))))
def test_thirty_rounds_of_chaos_leave_a_true_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chaos = run(tmp_path, monkeypatch, seed=seed, changes=2000)
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
