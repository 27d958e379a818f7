"""Watchers as jobs: one for all workers, beside the other jobs."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from files import write_parquet
from lumos import Lumos
from lumos.errors import MisuseError


def lumos_watching(folder: Path, *, enabled: str = "true", more: str = "") -> Lumos:
    file = folder / "lumos.yaml"
    file.write_text(
        f"change_detection:\n  enabled: {enabled}\n  sources:\n"
        f"    - {{type: file, path: {folder / 'lake'}, watch_mode: events}}\n{more}"
    )
    return Lumos(file)


def watchers(lumos: Lumos) -> list[str]:
    return [each.state for each in lumos.jobs.list(kind="watch").jobs]


def test_workers_share_one_watcher(workplace: Path) -> None:
    lumos = lumos_watching(workplace, more="jobs: {time_limit: 60, max_attempts: 3}\n")
    lumos.create_store()
    for _ in range(3):
        lumos.jobs.worker(watches=True)
    assert watchers(lumos) == ["queued"]
    (job,) = lumos.jobs.list(kind="watch").jobs
    record = lumos.create_store().jobs.job(job.id)
    assert record is not None
    # The limits of other jobs are not meant for one without an end.
    assert (record.time_limit, record.max_attempts) == (None, 100)
    lumos.jobs.cancel(job.id)
    lumos.jobs.worker(watches=True)
    assert watchers(lumos) == ["queued", "cancelled"]


@pytest.mark.parametrize(
    ("enabled", "more"),
    [("false", ""), ("", ""), ("true", "features: {auto_detection: false}\n")],
    ids=["disabled", "not said", "switched off"],
)
def test_nothing_is_watched_unless_the_configuration_says_so(
    workplace: Path, enabled: str, more: str
) -> None:
    lumos = lumos_watching(workplace, enabled=enabled, more=more)
    lumos.create_store()
    lumos.jobs.worker(watches=True)
    assert watchers(lumos) == []


def test_a_worker_that_works_once_requests_no_watcher(workplace: Path) -> None:
    lumos = lumos_watching(workplace)
    lumos.create_store()
    lumos.jobs.work(once=True)
    assert watchers(lumos) == []


def test_a_switch_refuses_watchers(workplace: Path) -> None:
    lumos = lumos_watching(workplace, more="features: {auto_detection: false}\n")
    lumos.create_store()
    with pytest.raises(MisuseError, match=r"features\.auto_detection is false"):
        lumos.jobs.submit("watch")


@pytest.mark.slow
def test_a_worker_watches_runs_other_jobs_and_hands_the_watcher_over(workplace: Path) -> None:
    write_parquet(workplace / "lake/orders/part-0.parquet", id=pa.int64())
    lumos = lumos_watching(workplace)
    lumos.create_store()

    def wait_for(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 300
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.2)
        assert condition(), lumos.jobs.list().jobs

    def changes() -> list[str]:
        return [each.type.value for each in lumos.changes().events]

    for number in (1, 2):
        stop = threading.Event()
        thread = threading.Thread(target=lambda stop=stop: lumos.jobs.work(stop=stop))
        thread.start()
        wait_for(lambda: "CREATED" in changes() and watchers(lumos) == ["running"])
        other = lumos.jobs.submit("version", {"mode": "scan"}).id
        wait_for(lambda other=other: lumos.jobs.show(other).state == "succeeded")
        # The watcher of the second worker first scans, and then waits for events.
        wait_for(lambda: any(status.updated_at for status in lumos.events.status().event_sources))
        columns = {f"c{each}": pa.string() for each in range(number)}
        write_parquet(workplace / f"lake/orders/part-{number}.parquet", id=pa.int64(), **columns)
        wait_for(lambda number=number: changes().count("SCHEMA_CHANGED") == number)
        stop.set()
        thread.join(120)
        assert not thread.is_alive()
        assert watchers(lumos) == ["queued"]
