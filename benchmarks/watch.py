"""From a file that is written to the change on record, while `lumos watch` runs on 10,000 files.

A file with a column more is put into one dataset after the other, at any moment between two polls.
Beside the times stand the memory of the watcher and of its JVM, early and late.
"""

import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import lakes

_LUMOS = str(Path(sys.executable).with_name("lumos"))
_INTERVAL = 5
_CHANGES = 20
_QUIET_POLLS = 200
_BACKLOG = int(os.environ.get("BENCH_BACKLOG", "100000"))
_EVENT_CHANGES = int(os.environ.get("BENCH_EVENT_CHANGES", "40"))
# For machines with other work.
_PATIENCE = 900.0
_FLOOD_SECONDS = int(os.environ.get("BENCH_FLOOD_SECONDS", "60"))
_FLOOD_RATE = 1000


def measure() -> dict[str, Any]:
    """Latencies at an interval of five seconds, then memory over polls without a pause."""
    lake = lakes.parquet(200, 50)
    lakes.warm_up(lake)
    with lakes.copied(lake) as root, tempfile.TemporaryDirectory() as folder:
        with _watching(folder, root, interval=_INTERVAL) as watcher:
            watcher.settle()
            found = [_found(watcher, root, number) for number in range(_CHANGES)]
        memory = _memory(folder, root)
    return {
        "files": lake.files,
        "polling_interval": _INTERVAL,
        "changes": _CHANGES,
        "from_file_to_record": _figures([each.since_written for each in found]),
        "from_poll_to_record": _figures([each.since_polled for each in found]),
        "memory": memory,
    }


def measure_events() -> dict[str, Any]:
    """Latencies with events of the kernel, beside those of batches that change nothing."""
    lake = lakes.parquet(200, 50)
    lakes.warm_up(lake)
    found: list[_Found] = []
    empty: list[float] = []
    cpu: dict[str, list[float]] = {"change": [], "empty batch": []}
    with (
        lakes.copied(lake) as root,
        tempfile.TemporaryDirectory() as folder,
        _watching(folder, root, interval=_INTERVAL, events=True) as watcher,
    ):
        watcher.settle(lake.datasets)
        # By turns, so that both meet the same load of the machine.
        for number in range(_EVENT_CHANGES):
            before = _cpu_seconds(watcher.process.pid)
            found.append(_found(watcher, root, number, within=1.0))
            time.sleep(1)
            between = _cpu_seconds(watcher.process.pid)
            empty.append(_empty_batch(folder, root, number))
            time.sleep(1)
            cpu["change"].append(between - before)
            cpu["empty batch"].append(_cpu_seconds(watcher.process.pid) - between)
    changed, unchanged = _percentiles([each.since_written for each in found]), _percentiles(empty)
    return {
        "files": lake.files,
        "changes": len(found),
        "from_file_to_record": changed,
        "from_start_of_scan_to_record": _percentiles([each.since_polled for each in found]),
        "from_file_to_end_of_empty_batch": unchanged,
        "ratio_of_medians": round(changed["median"] / unchanged["median"], 2),
        "ratio_of_95th_percentiles": round(changed["p95"] / unchanged["p95"], 2),
        "cpu_seconds": {name: _percentiles(each) for name, each in cpu.items()},
    }


def measure_backlog() -> dict[str, Any]:
    """The events of new files in one table, which wait in a queue, beside a batch without effect.

    The queue is in memory and answers with 80 messages, as SQS does for eight requests.
    """
    from lumos import Lumos
    from lumos.config.settings import StorageEventType, WatchedSource
    from lumos.config.sources import FileSourceSettings, SourceSettings
    from lumos.discovery.event_consumer import EventConsumer
    from lumos.discovery.reports import IngestReport
    from lumos.sources.events import EventSource, ObjectEvent, ReceivedMessage

    class Backlog(EventSource):
        name = "backlog"

        def __init__(self, paths: list[str]) -> None:
            sent_at = time.time() - 60
            self._messages = iter(
                ReceivedMessage(
                    # As long as the receipt handles of SQS.
                    f"{number:0400}",
                    events=(ObjectEvent(path, StorageEventType.CREATED, sent_at),),
                    sent_at=sent_at,
                )
                for number, path in enumerate(paths)
            )
            self.acknowledged = 0

        def open(self) -> None:
            """Nothing to do."""

        def receive(self, wait: float) -> list[ReceivedMessage]:
            found = list(itertools.islice(self._messages, 80))
            if not found:
                time.sleep(min(wait, 0.1))
            return found

        def acknowledge(self, receipts: Sequence[str]) -> None:
            self.acknowledged += len(receipts)

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "lake"
        for name in ("orders", "visits"):
            (root / name).mkdir(parents=True)
            pq.write_table(pa.table({"id": [1]}), root / name / "part-999999.parquet")
        lumos = Lumos(overrides={"storage.path": f"{folder}/lumos.db"})
        section = FileSourceSettings(paths=(str(root),))
        lumos.ingest(str(root))
        new = [str(root / f"orders/part-{number:06}.parquet") for number in range(_BACKLOG)]
        # More links to one file than file systems allow are links to copies.
        for start in range(0, len(new), 10_000):
            shutil.copyfile(root / "orders/part-999999.parquet", new[start])
            for path in new[start + 1 : start + 10_000]:
                os.link(new[start], path)
        scans: list[float] = []

        def scan(section: SourceSettings, changed: Collection[str] | None) -> IngestReport:
            started = time.monotonic()
            report = lumos._discovery._scan_unattended(section, changed)
            scans.append(time.monotonic() - started)
            return report

        def drain(paths: list[str]) -> float:
            started = time.monotonic()
            queue = Backlog(paths)
            consumer = EventConsumer(
                queue,
                [WatchedSource(source=section, watch_mode="events")],
                changed=threading.Condition(),
            )
            consumer.start()
            while queue.acknowledged < len(paths):
                ready_at = consumer.ready_at
                if ready_at is not None and ready_at <= time.monotonic():
                    consumer.process(scan)
                time.sleep(0.01)
            consumer.stop()
            return time.monotonic() - started

        before = _resident(os.getpid())
        seconds = drain(new)
        after = _resident(os.getpid())
        events = [each.type.value for each in lumos.change_history.iterate()]
        first, again = list(scans), drain(new)
        events_again = sum(1 for _ in lumos.change_history.iterate()) - len(events)
    return {
        "messages": len(new),
        "scans": len(first),
        "scan_seconds": round(sum(first), 1),
        "seconds": round(seconds, 1),
        "seconds_of_the_same_messages_again": round(again, 1),
        "scan_ratio_to_no_change": round(sum(first) / sum(scans[len(first) :]), 2),
        "recorded_changes": events.count("MODIFIED"),
        "scans_again": len(scans) - len(first),
        "recorded_changes_again": events_again,
        "resident_mb": {"before": before, "after": after},
    }


def measure_flood() -> dict[str, Any]:
    """A thousand new files a second for a minute, which `lumos watch` hears of from the kernel."""
    from lumos import Lumos
    from lumos.discovery.watch_status import WatchStatusFiles
    from lumos.storage import DEFAULT_ACCESS

    lake = lakes.parquet(50, 1)
    with tempfile.TemporaryDirectory() as folder, lakes.copied(lake) as root:
        files = sorted(root.rglob("*.parquet"))
        with _watching(folder, root, interval=_INTERVAL, events=True) as watcher:
            watcher.settle(len(files))
            status = WatchStatusFiles(f"{folder}/.lumos/lumos.state", DEFAULT_ACCESS)
            processes = _processes(watcher.process.pid)
            memory = [{name: _resident(pid) for name, pid in processes.items()}]
            lags: list[float] = []
            started = time.monotonic()
            for second in range(_FLOOD_SECONDS):
                for number in range(_FLOOD_RATE):
                    file = files[number % len(files)]
                    os.link(file, file.with_name(f"flood-{second:02}-{number:04}.parquet"))
                time.sleep(max(0.0, started + second + 1 - time.monotonic()))
                memory.append({name: _resident(pid) for name, pid in processes.items()})
                lags += [each.lag_seconds or 0.0 for each in status.read().event_sources]
            written = time.monotonic() - started
            lumos = Lumos(overrides={"storage.path": f"{folder}/.lumos/lumos.db"})
            expected = len(files) + _FLOOD_SECONDS * _FLOOD_RATE
            while _recorded_files(lumos) < expected:
                time.sleep(0.2)
                memory.append({name: _resident(pid) for name, pid in processes.items()})
                lags += [each.lag_seconds or 0.0 for each in status.read().event_sources]
                assert time.monotonic() - started < 600, _recorded_files(lumos)
            drained = time.monotonic() - started - written
            (final,) = status.read().event_sources
    return {
        "files": expected - len(files),
        "seconds_to_write": round(written, 1),
        "seconds_to_drain": round(drained, 1),
        "batches": final.counts.batches,
        "lag_seconds": {"median": round(statistics.median(lags), 1), "most": round(max(lags), 1)},
        "resident_mb": {
            name: {"before": memory[0][name], "most": max(each[name] for each in memory)}
            for name in memory[0]
        },
    }


def _recorded_files(lumos: Any) -> int:
    reports = (lumos.show(each.urn).dataset["statistics"] for each in lumos.list().datasets)
    return sum(each["file_count"] for each in reports)


def _empty_batch(folder: str, root: Path, number: int) -> float:
    """The seconds until a batch has been processed that names a file which is gone again."""
    from lumos.discovery.watch_status import WatchStatusFiles
    from lumos.storage import DEFAULT_ACCESS

    files = WatchStatusFiles(f"{folder}/.lumos/lumos.state", DEFAULT_ACCESS)
    before = files.read().event_sources[0].counts.batches
    started = time.monotonic()
    passing = sorted(each for each in root.iterdir() if each.is_dir())[number] / "passing.bin"
    passing.write_bytes(b"")
    passing.unlink()
    while files.read().event_sources[0].counts.batches == before:
        assert time.monotonic() - started < _PATIENCE, "No batch has been processed."
        time.sleep(0.01)
    seconds = time.monotonic() - started
    sys.stderr.write(f"  empty batch {number}: {seconds:.2f} s\n")
    return seconds


def _percentiles(seconds: list[float]) -> dict[str, float]:
    p95 = statistics.quantiles(seconds, n=20, method="inclusive")[-1]
    return {**_figures(seconds), "p95": round(p95, 2)}


class _Found(NamedTuple):
    """Seconds to a change on record, from the file's writing and from the start of the poll.

    A file that is written when a poll has just passed it waits for the next one: the polling
    interval and the second figure together are the longest that it can take.
    """

    since_written: float
    since_polled: float


def _figures(seconds: list[float]) -> dict[str, float]:
    return {"median": round(statistics.median(seconds), 2), "slowest": round(max(seconds), 2)}


class _Watcher:
    """A running watcher and the changes it has told."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self._told: Queue[tuple[datetime, dict[str, Any]]] = Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._told.put((datetime.now(UTC), json.loads(line)))

    def settle(self, datasets: int = 200) -> None:
        """Waits until the first scan has told of every dataset, and a second one has passed."""
        started = time.monotonic()
        for _ in range(datasets):
            self._told.get(timeout=_PATIENCE)
        sys.stderr.write(f"  first scan: {time.monotonic() - started:.1f} s\n")
        time.sleep(2 * _INTERVAL)

    def heard(self, name: str) -> tuple[datetime, datetime]:
        """When the next change of a dataset was told, and when the poll began that found it."""
        while True:
            at, event = self._told.get(timeout=_PATIENCE)
            if event["urn"].endswith(f"/{name}") and event["type"] == "SCHEMA_CHANGED":
                return at, datetime.fromisoformat(event["timestamp"])


@contextmanager
def _watching(
    folder: str, root: Path, *, interval: int, events: bool = False
) -> Iterator[_Watcher]:
    config = Path(folder) / "lumos.yaml"
    mode = "events" if events else "polling"
    source = f"{{type: file, path: {root}, watch_mode: {mode}}}"
    config.write_text(f"change_detection: {{sources: [{source}]}}\n", encoding="utf-8")
    process = subprocess.Popen(
        [_LUMOS, "watch", "--json", "--interval", str(interval)],
        cwd=folder,
        stdout=subprocess.PIPE,
    )
    try:
        yield _Watcher(process)
    finally:
        process.terminate()
        process.wait(timeout=60)


def _found(watcher: _Watcher, root: Path, number: int, *, within: float = _INTERVAL) -> _Found:
    """Add a file with a new column at a random moment, and wait until its change is told."""
    dataset = sorted(each for each in root.iterdir() if each.is_dir())[number]
    newest = max(dataset.rglob("*.parquet"))
    rows = pq.read_table(newest)
    wider = rows.append_column(f"added_{number}", pa.nulls(rows.num_rows, pa.int64()))
    unfinished = root.parent / f"{number}.parquet"
    pq.write_table(wider, unfinished)
    time.sleep(random.Random(number).uniform(0, within))
    unfinished.rename(newest.with_name("part-99999.parquet"))
    written = datetime.now(UTC)
    told, polled = watcher.heard(dataset.name)
    found = _Found((told - written).total_seconds(), (told - polled).total_seconds())
    sys.stderr.write(
        f"  change {number}: {found.since_written:.2f} s, "
        f"{found.since_polled:.2f} s of them in the poll\n"
    )
    return found


def _memory(folder: str, root: Path) -> dict[str, Any]:
    """Resident megabytes of the watcher and its JVM after some polls and after many."""
    with _watching(folder, root, interval=1) as watcher:
        log = Path(folder) / ".lumos" / "lumos.db"
        early = _resident_after(watcher.process.pid, log, polls=20)
        late = _resident_after(watcher.process.pid, log, polls=_QUIET_POLLS)
    return {"polls": _QUIET_POLLS, "early": early, "late": late}


def _resident_after(pid: int, store: Path, *, polls: int) -> dict[str, int]:
    from lumos.store import Database, Store

    opened = Store.open(Database.sqlite(store))
    seen: set[str] = set()
    while len(seen) < polls:
        seen |= {scan.scan_id for scan in opened.scans()}
        time.sleep(0.1)
    opened.close()
    return {name: _resident(each) for name, each in _processes(pid).items()}


def _cpu_seconds(pid: int) -> float:
    """What a process and its descendants have used; those of ended ones are in their parents'."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    children = Path(f"/proc/{pid}/task").glob("*/children")
    return own + sum(
        _cpu_seconds(int(each))
        for file in children
        for each in file.read_text(encoding="utf-8").split()
    )


def _processes(pid: int) -> dict[str, int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    java = [
        int(each)
        for each in children
        if "java" in os.path.basename(os.readlink(f"/proc/{each}/exe"))
    ]
    return {"watcher": pid, **({"jvm": java[0]} if java else {})}


def _resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20
