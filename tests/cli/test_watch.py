"""`lumos watch` and the signals that end it."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lumos import Lumos
from lumos.cli.watch import _SignalHandler
from lumos.discovery.watcher import WatchReport


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
        (6, 0, "lumos: 1 source scanned: 6 datasets, 0 changes."),
        (1, 1, "lumos: 1 source scanned: 1 dataset, 1 change."),
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
