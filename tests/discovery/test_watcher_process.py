"""The watcher as a process of its own: a lake that changes, and a webhook that hears of it."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from files import write_parquet
from lumos import Lumos
from lumos.store import Store
from webhook import Webhook, webhook

_SECONDS = 240.0


class Watch:
    """A running `lumos watch --json` and the lines it has printed."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._errors: list[bytes] = []
        for stream, keep in (
            (process.stdout, self._lines.put),
            (process.stderr, self._errors.append),
        ):
            threading.Thread(target=self._read, args=(stream, keep), daemon=True).start()

    @staticmethod
    def _read(stream: Any, keep: Any) -> None:
        for line in stream:
            keep(line)

    def next(self, type: str) -> dict[str, Any]:
        """The next change of that type."""
        while True:
            try:
                event = json.loads(self._lines.get(timeout=_SECONDS))
            except queue.Empty:
                raise AssertionError(f"no {type} event; stderr: {self.errors}") from None
            if event["type"] == type:
                return dict(event)

    @property
    def errors(self) -> str:
        return b"".join(self._errors).decode()

    def end(self, *signals: signal.Signals) -> int:
        for number in signals:
            self.process.send_signal(number)
        return self.process.wait(timeout=_SECONDS)


@contextmanager
def watching(folder: Path, *words: str) -> Iterator[Watch]:
    process = subprocess.Popen(
        [sys.executable, "-m", "lumos", "watch", "--json", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "LUMOS_SPARK__MASTER": "local[2]"},
    )
    try:
        yield Watch(process)
    finally:
        process.kill()
        process.wait()


def write_events(lake: Path, day: str, **types: pa.DataType) -> None:
    write_parquet(lake / f"raw/events/user_events/dt={day}/part-0.parquet", **types)


FIRST = {
    "event_id": pa.string(),
    "user_id": pa.string(),
    "timestamp": pa.timestamp("us"),
    "event_type": pa.string(),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_events(tmp_path / "lake", "2023-06-01", **FIRST)
    (tmp_path / "lumos.yaml").write_text(
        "change_detection:\n"
        "  enabled: true\n"
        "  sources: [{type: file, path: lake, polling_interval: 1}]\n"
    )
    return tmp_path


@pytest.fixture
def hook(folder: Path) -> Iterator[Webhook]:
    with webhook() as opened:
        with (folder / "lumos.yaml").open("a") as file:
            file.write(
                "notifications:\n"
                f"  channels: {{data-team: '{opened.address('hush-hush')}'}}\n"
                "  changes: [{datasets: [raw/events/*], verdict: breaking, channel: data-team}]\n"
            )
        yield opened


def test_a_breaking_change_in_a_lake_is_found_versioned_and_told(
    folder: Path, hook: Webhook
) -> None:
    lake = folder / "lake"
    with watching(folder) as watch:
        created = watch.next("CREATED")
        assert (created["schema_version"], created["format_version"]) == ("1.0.0", "1.0")
        write_events(lake, "2023-09-15", **FIRST, session_id=pa.string())
        added = watch.next("SCHEMA_CHANGED")
        assert (added["schema_version"], added["breaking"]) == ("1.1.0", False)
        write_events(lake, "2024-01-10", **{**FIRST, "user_id": pa.int64()}, session_id=pa.string())
        changed = watch.next("SCHEMA_CHANGED")
        assert (changed["schema_version"], changed["breaking"]) == ("2.0.0", True)
        (change,) = changed["changes"]
        assert (change["path"], change["before"], change["after"]) == ("user_id", "STRING", "INT64")
        (received,) = hook.wait_for(1)
        code = watch.end(signal.SIGTERM)
    assert code == 0, watch.errors
    assert received["title"] == "user_events 2.0.0: breaking"
    assert "- Changed type of user_id from STRING to INT64 (breaking)" in received["message"]
    assert received["type"] == "warning"
    assert len(hook.received) == 1
    assert "hush" not in watch.errors
    lumos = Lumos(folder / "lumos.yaml")
    versions = lumos.history("user_events").versions
    assert [(each.schema_version, each.breaking_change_alert) for each in versions] == [
        ("2.0.0", "SENT"),
        ("1.1.0", None),
        ("1.0.0", None),
    ]
    alerts = Store.open(lumos.database).notification_outbox.alerts(
        [changed["event_id"], added["event_id"]]
    )
    assert {key: alert.state for key, alert in alerts.items()} == {changed["event_id"]: "SENT"}


@pytest.mark.slow
def test_a_second_signal_leaves_at_once_and_harms_nothing(folder: Path) -> None:
    with watching(folder) as watch:
        watch.next("CREATED")
        # In whatever it is doing.
        time.sleep(0.3)
        assert watch.end(signal.SIGINT, signal.SIGINT) in (0, 130), watch.errors
    write_events(folder / "lake", "2023-09-15", **FIRST, session_id=pa.string())
    with watching(folder, "--once") as watch:
        assert watch.next("SCHEMA_CHANGED")["schema_version"] == "1.1.0"
        assert watch.end() == 0, watch.errors


def descendants(pid: int) -> set[int]:
    listed = subprocess.run(
        ["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout
    parents = {int(line.split()[0]): int(line.split()[1]) for line in listed.splitlines()}
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


@pytest.mark.slow
def test_a_watcher_whose_jvm_is_killed_starts_again(folder: Path) -> None:
    with watching(folder) as watch:
        watch.next("CREATED")
        for pid in descendants(watch.process.pid):
            if b"java" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]:
                os.kill(pid, signal.SIGKILL)
        write_events(folder / "lake", "2023-09-15", **FIRST, session_id=pa.string())
        assert watch.next("SCHEMA_CHANGED")["schema_version"] == "1.1.0"
        assert "watching starts again" in watch.errors
        assert watch.end(signal.SIGTERM) == 0


@pytest.mark.slow
def test_a_watcher_that_nobody_listens_to_any_more_ends(folder: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "lumos", "watch"], cwd=folder, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert b"CREATED" in process.stdout.readline()
    process.stdout.close()
    write_events(folder / "lake", "2023-09-15", **FIRST, session_id=pa.string())
    assert process.wait(timeout=_SECONDS) == 0
