"""Server, workers, PostgreSQL and Redis are killed; disks fill up: no job is lost or done twice.

The whole suite takes hours. LUMOS_FAULT_ROUNDS and LUMOS_FAULT_JOBS make it smaller.
"""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx
import psycopg
import pytest

from jobs.test_takeover import _check_journal, _number, start
from lumos import Lumos
from lumos.store import JobRegistry, StoreError, StoreNotUsable
from recorded_lake import RecordedLake

pytestmark = pytest.mark.slow
PROJECT = Path(__file__).parents[2]
ROUNDS = int(os.environ.get("LUMOS_FAULT_ROUNDS", "30"))
JOBS = int(os.environ.get("LUMOS_FAULT_JOBS", "500"))
KILLS = 6
OUTAGE_SECONDS = 30
# Long enough for a worker on a busy machine to extend it.
LEASE_SECONDS = 15
# For one round; a busy machine is slow.
PATIENCE_SECONDS = 1800


def script(name: str, action: str, folder: Path, **environment: str) -> str:
    done = subprocess.run(
        [PROJECT / "scripts" / name, action, folder],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return done.stdout.strip()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class KilledPostgres:
    """A PostgreSQL server of its own, to be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.url = script("postgres", "start", folder)

    def kill(self) -> None:
        pid = (self._folder / "data" / "postmaster.pid").read_text().splitlines()[0]
        os.kill(int(pid), signal.SIGKILL)

    def start(self) -> None:
        deadline = monotonic() + 120
        while True:
            try:
                script("postgres", "restart", self._folder)
            except RuntimeError:
                # Until the last process of the killed server has noticed and ended.
                if monotonic() > deadline:
                    raise
                sleep(0.5)
            else:
                return

    def stop(self) -> None:
        script("postgres", "stop", self._folder)

    def database(self, name: str) -> str:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.url.rpartition("/")[0] + f"/{name}"


class KilledRedis:
    """A Redis server of its own, which forgets everything when it is killed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = str(free_port())
        self.url = script("redis", "start", folder, REDIS_PORT=self._port)

    def kill(self) -> None:
        os.kill(int((self._folder / "pid").read_text()), signal.SIGKILL)

    def start(self) -> None:
        script("redis", "start", self._folder, REDIS_PORT=self._port)

    def stop(self) -> None:
        script("redis", "stop", self._folder)


class KilledServer:
    """`lumos serve` on a port of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._folder = folder
        self._port = str(free_port())
        self._options = options
        self.url = f"http://127.0.0.1:{self._port}"
        self._log = (folder / "server.log").open("ab")
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "lumos", "serve", "--port", self._port, *self._options]
        self._process = subprocess.Popen(command, cwd=self._folder, stderr=self._log)

    @property
    def log(self) -> str:
        return (self._folder / "server.log").read_text()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        if self.is_running:
            self._process.terminate()
            self._process.wait(60)
        self._log.close()

    def wait_until(self, status: int, path: str = "/ready", *, seconds: float = 120) -> None:
        deadline = monotonic() + seconds
        seen: object = None
        while monotonic() < deadline:
            try:
                seen = httpx.get(f"{self.url}{path}", timeout=60).status_code
            except httpx.HTTPError as problem:
                seen = problem
            if seen == status:
                return
            sleep(0.2)
        raise AssertionError(f"{path}: {seen!r} instead of {status}")


class KilledWorker:
    """A worker whose jobs move the version of `orders`."""

    def __init__(self, config: Path, journal: Path, redis_url: str) -> None:
        self._arguments = (config, journal, redis_url)
        self.start()

    def start(self) -> None:
        self.process = start(*self._arguments, LEASE_SECONDS)

    def kill(self) -> None:
        assert self.process.poll() is None, "the worker ended by itself"
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def postgres_to_kill() -> Iterator[KilledPostgres]:
    # PostgreSQL runs as another user, who cannot enter the folders of pytest.
    folder = Path(tempfile.mkdtemp(prefix="lumos-killed-"))
    folder.chmod(0o755)
    try:
        server = KilledPostgres(folder / "postgres")
    except RuntimeError as problem:
        pytest.skip(f"No PostgreSQL here: {problem}")
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def redis_to_kill() -> Iterator[KilledRedis]:
    pytest.importorskip("redis", reason="pip install 'lumos[redis]'")
    folder = Path(tempfile.mkdtemp(prefix="lumos-killed-"))
    try:
        server = KilledRedis(folder)
    except RuntimeError as problem:
        pytest.skip(f"No Redis here: {problem}")
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


def counts(registry: JobRegistry) -> dict[str, int]:
    """The number of jobs by state; nothing while the store cannot be reached."""
    try:
        return dict(registry.counts())
    except StoreError:
        return {}


def submit_all(url: str, jobs: int, stop: threading.Event) -> None:
    """Request jobs over HTTP, each until the server has accepted it."""
    for number in range(jobs):
        body = {
            "kind": "version",
            "idempotency_key": f"request-{number}",
            "concurrency_key": f"request-{number}",
            "max_attempts": 100,
        }
        while not stop.is_set():
            try:
                answer = httpx.post(f"{url}/api/v1/jobs", json=body, timeout=15)
            except httpx.HTTPError:
                sleep(0.2)
                continue
            if answer.status_code == 200:
                break
            assert answer.status_code in (503, 504), answer.text
            sleep(0.2)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_whatever_is_killed_every_job_takes_effect_once(
    seed: int, postgres_to_kill: KilledPostgres, redis_to_kill: KilledRedis, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    store = postgres_to_kill.database(f"round_{seed}_{os.getpid()}")
    redis_url = redis_to_kill.url if seed % 2 else ""
    config, journal = tmp_path / "lumos.yaml", tmp_path / "journal"
    journal.touch()
    transport = f"jobs: {{transport: redis, redis_url: '{redis_url}'}}\n" if redis_url else ""
    limit = "server: {requests_per_minute: 1000000}\n"
    config.write_text(
        f"storage: {{backend: postgres, connection_string: '{store}'}}\n{transport}{limit}"
    )
    lumos = Lumos(config)
    RecordedLake(lumos).see("orders", "id INT64")
    registry = lumos.create_store().jobs
    before = lumos.version.show("orders").cloud_version
    server = KilledServer(tmp_path, "--workers", "0")
    workers = [KilledWorker(config, journal, redis_url) for _ in range(2)]
    stop = threading.Event()
    submitting = threading.Thread(target=submit_all, args=(server.url, JOBS, stop))
    submitting.start()
    victims: list[Any] = [server, *workers, postgres_to_kill]
    if redis_url:
        victims.append(redis_to_kill)
    deadline = monotonic() + PATIENCE_SECONDS
    try:
        for _ in range(KILLS):
            # Until some work was done, so that the kill hits processes in their work.
            goal = counts(registry).get("succeeded", 0) + chance.randint(1, max(1, JOBS // KILLS))
            while counts(registry).get("succeeded", 0) < min(goal, JOBS) and monotonic() < deadline:
                sleep(0.05)
            victim = chance.choice(victims)
            victim.kill()
            sleep(chance.uniform(0, 2))
            victim.start()
        while counts(registry).get("succeeded", 0) < JOBS and monotonic() < deadline:
            assert server.is_running, server.log[-2000:]
            assert all(each.process.poll() is None for each in workers), "a worker ended by itself"
            sleep(0.1)
        submitting.join(30)
        assert counts(registry) == {"succeeded": JOBS}
    finally:
        stop.set()
        submitting.join(60)
        for each in workers:
            each.process.kill()
            each.process.wait()
        server.stop()
    ids = [job.id for job in registry.list(limit=JOBS * 2)]
    assert len(ids) == JOBS
    _check_journal(journal, sorted(ids))
    after = lumos.version.show("orders").cloud_version
    assert _number(after) - _number(before) == JOBS
    assert lumos.audit.verify().problems == ()
    lumos.database.engine.dispose()


def test_work_waits_for_a_store_that_cannot_be_reached(
    postgres_to_kill: KilledPostgres, tmp_path: Path
) -> None:
    """For 30 seconds that include a full minute, at which a schedule is due."""
    store = postgres_to_kill.database(f"outage_{os.getpid()}")
    config = tmp_path / "lumos.yaml"
    config.write_text(f"storage: {{backend: postgres, connection_string: '{store}'}}\n")
    lumos = Lumos(config)
    RecordedLake(lumos).see("orders", "id INT64")
    lumos.schedules.add("each-minute", "* * * * *", "version:scan", catch_up="all")
    registry = lumos.create_store().jobs
    server = KilledServer(tmp_path)
    try:
        server.wait_until(200)
        second = datetime.now(UTC).second
        sleep((45 - second) % 60)
        postgres_to_kill.kill()
        minute = (datetime.now(UTC) + timedelta(minutes=1)).replace(second=0, microsecond=0)
        server.wait_until(503)
        server.wait_until(200, "/health")
        answer = httpx.get(f"{server.url}/api/v1/datasets", timeout=60)
        assert (answer.status_code, answer.headers.get("retry-after")) == (503, "1")
        assert answer.json()["detail"].startswith("The store postgresql")
        sleep(OUTAGE_SECONDS)
        postgres_to_kill.start()
        server.wait_until(200)
        deadline = monotonic() + 240
        done: set[datetime] = set()
        while minute not in done and monotonic() < deadline:
            runs = registry.schedules.runs("each-minute")
            jobs = {job: registry.job(job) for _, job in runs if job is not None}
            done = {
                due for due, job in runs
                if job is not None and (found := jobs[job]) and found.state == "succeeded"
            }  # fmt: skip
            sleep(0.5)
        assert minute in done, server.log[-3000:]
        due = sorted(due for due, _ in registry.schedules.runs("each-minute"))
        assert due == [due[0] + timedelta(minutes=number) for number in range(len(due))]
        assert server.is_running
    finally:
        server.stop()
        if not _answers(postgres_to_kill.url):
            postgres_to_kill.start()
    lumos.database.engine.dispose()


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.Error:
        return False
    return True


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", folder]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"No file system can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def fill(file: Path) -> None:
    """Write until the disk is full."""
    with file.open("wb") as output:
        while True:
            output.write(b"\0" * 65_536)
            output.flush()


def test_work_waits_for_space_on_the_disk(small_disk: Path, tmp_path: Path) -> None:
    config, journal = small_disk / "lumos.yaml", tmp_path / "journal"
    journal.touch()
    config.write_text(f"storage: {{path: {small_disk}/lumos.db}}\n")
    lumos = Lumos(config)
    RecordedLake(lumos).see("orders", "id INT64")
    before = lumos.version.show("orders").cloud_version
    registry = lumos.create_store().jobs
    server = KilledServer(tmp_path, "--workers", "0", "--config", str(config))
    try:
        server.wait_until(200)
        filler = small_disk / "filler"
        with pytest.raises(OSError, match="No space left"):
            fill(filler)
        refused = accepted = 0
        # The log of SQLite may have room for some more.
        while not refused and accepted < 5_000:
            answer = httpx.post(
                f"{server.url}/api/v1/jobs",
                json={"kind": "version", "max_attempts": 100},
                timeout=60,
            )
            if answer.status_code == 200:
                accepted += 1
                continue
            refused += 1
            assert answer.status_code == 503, answer.text
            assert "No space left on the disk" in answer.json()["detail"]
        assert refused
        # Reading goes on.
        assert httpx.get(f"{server.url}/api/v1/datasets", timeout=60).status_code == 200
        with pytest.raises(StoreNotUsable, match="No space left"):
            lumos.annotations.docs.set("orders", "x" * 90_000)
        worker = KilledWorker(config, journal, "")
        sleep(3)
        filler.unlink()
        while accepted < 20:
            lumos.jobs.submit("version", max_attempts=100)
            accepted += 1
        deadline = monotonic() + 300
        while counts(registry).get("succeeded", 0) < accepted and monotonic() < deadline:
            assert worker.process.poll() is None, "the worker ended by itself"
            sleep(0.1)
        worker.kill()
    finally:
        server.stop()
    assert counts(registry) == {"succeeded": accepted}
    after = lumos.version.show("orders").cloud_version
    assert _number(after) - _number(before) == accepted
    assert lumos.audit.verify().problems == ()
    lumos.database.engine.dispose()
