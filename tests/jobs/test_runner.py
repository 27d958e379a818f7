"""Jobs in a child process: real ones, with a store in SQLite."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.conftest import request
from lumos import Lumos
from lumos.errors import MisuseError
from lumos.jobs.runner import (
    AnyJobEvent,
    FailureEvent,
    JobRunner,
    ProcessRunner,
    RunnerDied,
    SuccessEvent,
)
from lumos.jobs.service import UnknownJob
from lumos.model.job import JobRecord

PATIENCE = 120


@pytest.fixture
def lumos(workplace: Path) -> Iterator[Lumos]:
    (workplace / "models").mkdir()
    (workplace / "models/totals.sql").write_text("select id from orders")
    opened = Lumos(environment={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    opened.create_store()
    yield opened
    opened.database.engine.dispose()


def record(lumos: Lumos, kind: str, arguments: dict[str, Any]) -> JobRecord:
    return lumos.create_store().jobs.submit(request(kind=kind, arguments=arguments))[0]


@pytest.fixture
def runner(lumos: Lumos) -> Iterator[ProcessRunner]:
    made = lumos.jobs._make_runner()
    assert isinstance(made, ProcessRunner)
    yield made
    made.close()


def ended(runner: JobRunner) -> AnyJobEvent:
    for _ in range(PATIENCE):
        for event in runner.poll(1):
            if isinstance(event, SuccessEvent | FailureEvent):
                return event
    raise AssertionError("the job did not end")


def test_a_child_runs_one_job_after_the_other(lumos: Lumos, runner: ProcessRunner) -> None:
    runner.start(record(lumos, "version", {"mode": "scan"}))
    first = ended(runner)
    assert isinstance(first, SuccessEvent)
    assert runner._child is not None
    process = runner._child.pid
    runner.start(record(lumos, "lineage", {"paths": ["models"]}))
    assert isinstance(ended(runner), SuccessEvent)
    assert runner._child.pid == process


def test_a_mistake_is_permanent_and_ends_the_child(lumos: Lumos, runner: ProcessRunner) -> None:
    runner.start(record(lumos, "profile", {"dataset": "missing"}))
    event = ended(runner)
    assert isinstance(event, FailureEvent)
    assert event.permanent
    assert "No dataset missing" in event.error
    assert runner._child is None


def test_a_child_that_is_killed_is_noticed_and_replaced(
    lumos: Lumos, runner: ProcessRunner
) -> None:
    runner.start(record(lumos, "version", {"mode": "scan"}))
    assert runner._child is not None
    os.kill(runner._child.pid, signal.SIGKILL)
    with pytest.raises(RunnerDied, match="SIGKILL"):
        ended(runner)
    runner.start(record(lumos, "version", {"mode": "scan"}))
    assert isinstance(ended(runner), SuccessEvent)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads processes from /proc")
def test_a_child_ends_when_its_worker_is_killed(lumos: Lumos) -> None:
    script = (
        "import os, sys\nfrom lumos import Lumos\nfrom jobs.conftest import request\n"
        "lumos = Lumos()\nrunner = lumos.jobs._make_runner()\n"
        "runner.start(lumos.create_store().jobs.submit("
        "request(kind='version', arguments={'mode': 'scan'}))[0])\n"
        "print(runner._child.pid, flush=True)\nos.kill(os.getpid(), 9)\n"
    )
    del lumos
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    worker = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False
    )
    child = int(worker.stdout)
    assert worker.returncode == -signal.SIGKILL
    gone = threading.Event()
    for _ in range(PATIENCE):
        state = Path(f"/proc/{child}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            gone.set()
            break
        gone.wait(0.5)
    assert gone.is_set()


def members(group: int) -> list[str]:
    """The commands of the processes of a group."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(rest.split()[2]) == group and rest.split()[0] != "Z":
            found.append(name.partition("(")[2])
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads processes from /proc")
def test_stopping_a_scan_ends_its_jvm(lumos: Lumos, runner: ProcessRunner, workplace: Path) -> None:
    (workplace / "lake").mkdir()
    (workplace / "lake/orders.csv").write_text("id\n1\n")
    runner.start(record(lumos, "ingest", {"paths": ["lake"]}))
    assert runner._child is not None
    group = runner._child.pid
    while "java" not in members(group):
        events = runner.poll(0.1)
        assert not any(isinstance(event, SuccessEvent | FailureEvent) for event in events)
    runner.stop()
    assert members(group) == []


def test_a_chain_is_resumed_after_its_failed_step(lumos: Lumos, workplace: Path) -> None:
    steps = ("lineage:models", "usage:queries.csv", "export:out.json")
    failed = lumos.run(*steps)
    assert (failed.state, failed.completed_steps, failed.steps) == ("failed", 1, 3)
    assert "queries.csv" in str(failed.error)
    (workplace / "queries.csv").write_text(
        "QUERY_ID,QUERY_TEXT,START_TIME,USER_NAME,EXECUTION_STATUS\n"
        "1,SELECT id FROM orders,2024-01-05 10:00:00,ANN,SUCCESS\n"
    )
    done = lumos.run(resume=failed.id)
    assert (done.id, done.state, done.completed_steps) == (failed.id, "succeeded", 3)
    assert (workplace / "out.json").exists()
    texts = [line.text for line in done.log]
    assert texts.count("Step 1 succeeded.") == 1
    assert [len(done.result["steps"]), texts[-1]] == [3, "Succeeded."]


def test_a_detached_job_waits_for_a_worker(lumos: Lumos) -> None:
    queued = lumos.run("version:scan", detach=True)
    assert (queued.state, queued.max_attempts) == ("queued", 3)
    report = lumos.jobs.work(once=True)
    assert report.succeeded == 1
    done = lumos.jobs.show(queued.id)
    assert done.state == "succeeded"
    assert done.result["format_version"]


def test_a_running_job_is_cancelled_from_outside(lumos: Lumos, workplace: Path) -> None:
    # Reading from a pipe that nobody writes to takes for ever.
    os.mkfifo(workplace / "models/endless.sql")
    job = lumos.jobs.submit("lineage", {"paths": ["models/endless.sql"]}, max_attempts=1)
    done = threading.Event()

    def work() -> None:
        lumos.jobs.work(once=True)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        while lumos.jobs.show(job.id).state == "queued":
            done.wait(0.1)
        if lumos.jobs.show(job.id).state == "running":
            lumos.jobs.cancel(job.id)
    finally:
        thread.join(PATIENCE)
    assert not thread.is_alive()
    assert lumos.jobs.show(job.id).state == "cancelled"


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"priority": 101}, "priority must be"),
        ({"max_attempts": 0}, "attempts must be"),
        ({"time_limit": -1}, "time limit in seconds must be"),
        ({"idempotency_key": ""}, "idempotency key"),
        ({"idempotency_key": "x" * 201}, "idempotency key"),
    ],
)
def test_bad_requests_are_rejected(lumos: Lumos, facts: dict[str, Any], words: str) -> None:
    with pytest.raises(MisuseError, match=words):
        lumos.jobs.submit("version", **facts)
    assert lumos.jobs.list().jobs == ()


def test_bad_questions_are_answered_with_advice(lumos: Lumos) -> None:
    for call in (lumos.jobs.show, lumos.jobs.cancel, lumos.jobs.retry):
        with pytest.raises(UnknownJob, match="lumos job list"):
            call(7)
    job = lumos.jobs.submit("version")
    with pytest.raises(MisuseError, match="only failed, dead and cancelled"):
        lumos.jobs.retry(job.id)
    with pytest.raises(MisuseError, match="No state of jobs named 'done'"):
        lumos.jobs.list(states=["done"])
    with pytest.raises(MisuseError, match="not both"):
        lumos.run("version", resume=1)


def test_the_same_key_is_the_same_job(lumos: Lumos) -> None:
    request: dict[str, Any] = {"arguments": {"paths": ["models"]}, "idempotency_key": "release-7"}
    first = lumos.jobs.submit("lineage", **request)
    assert lumos.jobs.submit("lineage", **request).id == first.id
    # A key that is used for something else is a mistake: its job would silently not be queued.
    for kind, arguments in (("version", {}), ("lineage", {"paths": ["marts"]})):
        with pytest.raises(MisuseError, match=f"belongs to job {first.id}"):
            lumos.jobs.submit(kind, arguments, idempotency_key="release-7")
    assert len(lumos.jobs.list().jobs) == 1
