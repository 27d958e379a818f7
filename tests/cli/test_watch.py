"""`lumos watch` and the signals that end it."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lumos import Lumos
from lumos.cli.watch import _SignalHandler
from lumos.discovery.watch_status import EventCounts, EventStatus, WatchStatusFiles
from lumos.discovery.watcher import WatchReport
from lumos.storage import DEFAULT_ACCESS


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_ctrl_c_while_spark_starts_ends_in_good_order(
    lumos: Any, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(**_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lumos.spark.session.spark_session", interrupted)
    (workplace / "lumos.yaml").write_text("sources: [{type: file, path: lake}]\n")
    result = lumos("watch")
    assert result.code == 0
    assert "lumos: Stopping after the running scan" in result.err


def test_one_signal_that_is_sent_twice_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    monkeypatch.setattr("os._exit", left.append)
    signals = _SignalHandler()
    signals.handle(signal.SIGTERM)
    signals.handle(signal.SIGTERM)
    assert (signals.received, signals.stop.is_set(), left) == (1, True, [])
    later = time.monotonic() + 1
    monkeypatch.setattr("lumos.cli.watch.monotonic", lambda: later)
    signals.handle(signal.SIGTERM)
    assert left == [143]


@pytest.mark.parametrize(
    ("datasets", "changes", "line"),
    [
        (6, 0, "1 source scanned: 6 datasets, 0 changes."),
        (1, 1, "1 source scanned: 1 dataset, 1 change."),
    ],
)
def test_a_single_scan_says_what_was_scanned(
    lumos: Any,
    workplace: Path,
    monkeypatch: pytest.MonkeyPatch,
    datasets: int,
    changes: int,
    line: str,
) -> None:
    report = WatchReport(looks=1, failures=0, scans=1, datasets=datasets, changes=changes)
    monkeypatch.setattr(Lumos, "watch", lambda _self, **_options: report)
    (workplace / "lumos.yaml").write_text("sources: [{type: file, path: lake}]\n")
    result = lumos("watch", "--once", "--json")
    assert (result.code, result.out, result.err.strip()) == (0, "", line)


def test_the_status_of_watchers_is_shown(lumos: Any, workplace: Path) -> None:  # noqa: ARG001
    assert "No source was watched by events yet." in lumos("watch", "status").out
    files = WatchStatusFiles(Lumos().state_uri, DEFAULT_ACCESS)
    counts = EventCounts(received=9, events=12, foreign=3, malformed=1)
    files.write(
        EventStatus(
            name="queue",
            sources=("s3://lake",),
            lag_p95_seconds=1.93,
            waiting=7,
            counts=counts,
            problem="There is no queue.",
        )
    )
    shown = lumos("watch", "status")
    assert "queue 1.9 s 0 7 12 3 1 0 " in shown.words
    polled = "queue receives no events, and its sources are polled: There is no queue."
    assert polled in " ".join(shown.err.split())
    (status,) = lumos("watch", "status", "--json").json["event_sources"]
    assert (status["waiting"], status["counts"]["events"], status["dead"]) == (7, 12, None)


def test_a_set_up_names_what_it_creates(
    lumos: Any, workplace: Path, bucket: Any, moto: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", moto)
    (workplace / "lumos.yaml").write_text(yaml.safe_dump({"sources": [bucket.section()]}))
    address, queue = f"s3://{bucket.name}", f"lumos-s3-events-{bucket.name}"
    planned = lumos("watch", "setup", address, "--dry-run")
    assert (planned.code, "Nothing was changed." in planned.err) == (0, True)
    created = lumos("watch", "setup", address)
    assert f"created queue {queue} " in created.words
    assert f"sqs_queue: arn:aws:sqs:us-east-1:123456789012:{queue}" in created.err
    removed = lumos("watch", "teardown", address)
    assert f"deleted queue {queue} " in removed.words
    wrong = lumos("watch", "setup", "/lake")
    assert (wrong.code, "Name one: lumos watch setup s3://my-bucket" in wrong.err) == (2, True)
