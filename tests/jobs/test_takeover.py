"""kill -9 of workers at random points: every job takes effect once, and none is lost."""

import os
import random
import signal
import subprocess
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from time import sleep

import pytest

from jobs.conftest import request
from lumos import Lumos
from recorded_lake import RecordedLake

TESTS = Path(__file__).parents[1]
WORKER = TESTS / "jobs" / "killed_worker.py"


def start(
    config: Path, journal: Path, redis_url: str = "", lease_seconds: int = 5
) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(TESTS)])}
    command = [sys.executable, WORKER, config, journal, redis_url, str(lease_seconds)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)


def run_round(
    folder: Path, stored: dict[str, object], *, jobs: int, kills: int, seed: int,
    redis_url: str = "",
) -> None:  # fmt: skip
    """One round: many jobs, two workers, and some of these are killed and replaced."""
    chance = random.Random(seed)
    folder.mkdir()
    config, journal = folder / "lumos.yaml", folder / "journal"
    journal.touch()
    settings = "".join(
        f"  {name.removeprefix('storage.')}: {value}\n" for name, value in stored.items()
    )
    config.write_text(f"storage:\n{settings}")
    lumos = Lumos(config)
    registry = lumos.create_store().jobs
    before = lumos.version.show("orders")
    # A job may lose its worker several times.
    ids = [registry.submit(request(max_attempts=50))[0].id for _ in range(jobs)]
    workers = [start(config, journal, redis_url) for _ in range(2)]
    try:
        for _ in range(kills):
            done = registry.counts().get("succeeded", 0)
            # Until some work was done, so that the kill hits a worker in its work.
            goal = min(done + chance.randint(1, max(1, jobs // kills)), jobs)
            while registry.counts().get("succeeded", 0) < goal:
                sleep(0.02)
            victim = chance.randrange(len(workers))
            workers[victim].send_signal(signal.SIGKILL)
            workers[victim].wait()
            workers[victim] = start(config, journal, redis_url)
        while registry.counts().get("succeeded", 0) < jobs:
            sleep(0.05)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    assert registry.counts() == {"succeeded": jobs}
    _check_journal(journal, ids)
    after = lumos.version.show("orders")
    assert _number(after.cloud_version) - _number(before.cloud_version) == jobs
    lumos.database.engine.dispose()


def _check_journal(journal: Path, ids: list[int]) -> None:
    """Attempts follow each other with growing tokens, and each job has an attempt that ended."""
    attempts: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for line in journal.read_text().splitlines():
        event, id, token = line.split()
        attempts[int(id)].append((event, int(token)))
    assert sorted(attempts) == ids
    for id, events in attempts.items():
        assert ("end", events[-1][1]) == events[-1], f"job {id}: {events}"
        begun = [token for event, token in events if event == "begin"]
        assert begun == sorted(set(begun)), f"job {id}: {events}"
        for (event, token), (following, next_token) in pairwise(events):
            # Nothing of an earlier attempt happens after a later one has begun.
            assert next_token > token or (event, following) == ("begin", "end"), f"job {id}"


def _number(version: str) -> int:
    return int(version.rpartition("-")[2])


@pytest.fixture
def recorded(seen: RecordedLake, stored: dict[str, object]) -> dict[str, object]:
    """A store with the dataset `orders`."""
    seen.see("orders", "id INT64")
    return stored


@pytest.mark.slow
def test_killed_workers_lose_no_job_and_repeat_none(
    recorded: dict[str, object], tmp_path: Path
) -> None:
    run_round(tmp_path / "round", recorded, jobs=40, kills=2, seed=1)


@pytest.mark.slow
def test_killed_workers_on_redis_lose_no_job_and_repeat_none(
    recorded: dict[str, object], tmp_path: Path, redis_url: str
) -> None:
    run_round(tmp_path / "round", recorded, jobs=40, kills=2, seed=2, redis_url=redis_url)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_thirty_rounds_of_five_hundred_jobs(
    recorded: dict[str, object], tmp_path: Path, seed: int
) -> None:
    run_round(tmp_path / "round", recorded, jobs=500, kills=5, seed=seed)
