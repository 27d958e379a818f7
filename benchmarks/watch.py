"""From a file that is written to the change on record, while `lumos watch` runs on 10,000 files.

A file with a column more is put into one dataset after the other, at any moment between two polls.
Beside the times stand the memory of the watcher and of its JVM, early and late.
"""

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
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
    with (
        lakes.copied(lake) as root,
        tempfile.TemporaryDirectory() as folder,
        _watching(folder, root, interval=_INTERVAL, events=True) as watcher,
    ):
        watcher.settle()
        found = [_found(watcher, root, number).since_written for number in range(_CHANGES)]
        empty = [_empty_batch(folder, root, number) for number in range(_CHANGES)]
    changed, unchanged = _percentiles(found), _percentiles(empty)
    return {
        "files": lake.files,
        "changes": _CHANGES,
        "from_file_to_record": changed,
        "from_file_to_end_of_empty_batch": unchanged,
        "ratio_of_medians": round(changed["median"] / unchanged["median"], 2),
    }


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
        time.sleep(0.01)
    seconds = time.monotonic() - started
    sys.stderr.write(f"  empty batch {number}: {seconds:.2f} s\n")
    time.sleep(1)
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

    def settle(self) -> None:
        """Waits until the first scan has told of every dataset, and a second one has passed."""
        for _ in range(200):
            self._told.get(timeout=300)
        time.sleep(2 * _INTERVAL)

    def heard(self, name: str) -> tuple[datetime, datetime]:
        """When the next change of a dataset was told, and when the poll began that found it."""
        while True:
            at, event = self._told.get(timeout=300)
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


def _found(watcher: _Watcher, root: Path, number: int) -> _Found:
    dataset = sorted(each for each in root.iterdir() if each.is_dir())[number]
    newest = max(dataset.rglob("*.parquet"))
    rows = pq.read_table(newest)
    wider = rows.append_column(f"added_{number}", pa.nulls(rows.num_rows, pa.int64()))
    unfinished = root.parent / f"{number}.parquet"
    pq.write_table(wider, unfinished)
    time.sleep(random.Random(number).uniform(0, _INTERVAL))
    unfinished.rename(newest.with_name("zz-wider.parquet"))
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
