"""What a worker does with a job, with runners that do as they are told."""

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from time import monotonic, sleep
from typing import Any

import pytest

from jobs.conftest import (
    FAILURE,
    LEASE,
    MISTAKE,
    SUCCESS,
    ScriptedRunner,
    SetClock,
    quick,
    request,
)
from lumos.jobs.runner import AnyJobEvent, LogEvent, ProgressEvent, StepsEvent
from lumos.jobs.store_transport import PollingTransport
from lumos.jobs.worker import JobWorker, retry_delay
from lumos.model.job import JobProgress, JobRecord
from lumos.store import JobRegistry, StoreError

Play = Callable[[JobRecord], AnyJobEvent | Sequence[AnyJobEvent]]


def worker(
    registry: JobRegistry, play: Play, *, runners: list[ScriptedRunner] | None = None, **facts: Any
) -> JobWorker:
    def make() -> ScriptedRunner:
        runner = ScriptedRunner(play)
        if runners is not None:
            runners.append(runner)
        return runner

    settings = facts.pop("settings", quick())
    return JobWorker(
        registry, PollingTransport(1), settings, make_runner=make, fire=lambda: 0, **facts
    )


def job_after(registry: JobRegistry, id: int) -> JobRecord:
    job = registry.job(id)
    assert job is not None
    return job


def test_once_runs_everything_that_is_ready(registry: JobRegistry, clock: SetClock) -> None:
    for _ in range(3):
        registry.submit(request())
    registry.submit(request(not_before=clock.now + timedelta(hours=1)))
    ran = worker(registry, lambda _job: SUCCESS)
    ran.run_once()
    assert ran.outcomes == {"succeeded": 3}
    assert registry.counts() == {"succeeded": 3, "queued": 1}


def test_a_worker_that_is_stopped_finishes_its_job_and_takes_no_other(
    registry: JobRegistry,
) -> None:
    for _ in range(3):
        registry.submit(request())
    stop = threading.Event()

    def play(_job: JobRecord) -> AnyJobEvent:
        stop.set()
        return SUCCESS

    worker(registry, play).run_once(stop)
    assert registry.counts() == {"succeeded": 1, "queued": 2}


def test_events_are_recorded(registry: JobRegistry) -> None:
    id = registry.submit(request())[0].id
    seen: list[JobProgress] = []
    progress = JobProgress(step="Scanning", files=3)
    events = [LogEvent("Scanning"), ProgressEvent(progress), StepsEvent([{"a": 1}]), SUCCESS]
    worker(registry, lambda _job: events, on_progress=lambda _job, now: seen.append(now)).run_once()
    after = job_after(registry, id)
    assert (after.completed_steps, after.result) == (({"a": 1},), {"done": True})
    assert seen == [progress]
    texts = [line.text for line in registry.log(id)][1:]
    assert texts == ["Scanning", "Step 1 succeeded.", "Succeeded."]


def test_a_mistake_is_not_repeated(registry: JobRegistry) -> None:
    id = registry.submit(request())[0].id
    ran = worker(registry, lambda _job: MISTAKE)
    ran.run_once()
    after = job_after(registry, id)
    assert (after.state, after.error, after.attempts) == ("failed", "No dataset x.", 1)
    assert ran.outcomes == {"failed": 1}


def test_all_attempts_fail_and_the_job_is_dead(registry: JobRegistry, clock: SetClock) -> None:
    id = registry.submit(request(max_attempts=3))[0].id
    ran = worker(registry, lambda _job: FAILURE)
    for _ in range(5):
        ran.run_once()
        clock.move(seconds=10)
    after = job_after(registry, id)
    assert (after.state, after.attempts) == ("dead", 3)
    assert ran.outcomes == {"retried": 2, "failed": 1}


def test_a_process_that_dies_is_a_failed_attempt(registry: JobRegistry, clock: SetClock) -> None:
    id = registry.submit(request())[0].id

    def play(job: JobRecord) -> AnyJobEvent:
        if job.attempts == 1:
            raise ProcessLookupError
        return SUCCESS

    ran = worker(registry, play)
    ran.run_once()
    assert "SIGKILL" in str(job_after(registry, id).error)
    clock.move(seconds=10)
    ran.run_once()
    assert job_after(registry, id).state == "succeeded"


def test_a_job_beyond_its_time_limit_is_stopped(registry: JobRegistry) -> None:
    id = registry.submit(request(time_limit=1, max_attempts=1))[0].id
    runners: list[ScriptedRunner] = []
    worker(registry, lambda _job: [], runners=runners).run_once()
    after = job_after(registry, id)
    assert (after.state, after.error) == (
        "dead",
        "The job was stopped after its time limit of 1 s.",
    )
    assert runners[0].stopped >= 1


@pytest.fixture
def beating(monkeypatch: pytest.MonkeyPatch) -> None:
    """A heartbeat with each look at the runner."""
    monkeypatch.setattr("lumos.jobs.worker._MAX_HEARTBEAT_SECONDS", 0.0)


@pytest.mark.usefixtures("beating")
def test_a_running_job_that_is_cancelled_is_stopped(registry: JobRegistry) -> None:
    id = registry.submit(request())[0].id
    runners: list[ScriptedRunner] = []

    def play(_job: JobRecord) -> Sequence[AnyJobEvent]:
        registry.cancel(id)
        return []

    ran = worker(registry, play, runners=runners)
    ran.run_once()
    assert job_after(registry, id).state == "cancelled"
    assert ran.outcomes == {"cancelled": 1}
    assert runners[0].stopped >= 1


@pytest.mark.usefixtures("beating")
def test_a_job_that_was_taken_over_is_stopped_and_not_written(
    registry: JobRegistry, clock: SetClock
) -> None:
    id = registry.submit(request())[0].id
    runners: list[ScriptedRunner] = []

    def play(_job: JobRecord) -> Sequence[AnyJobEvent]:
        clock.move(seconds=120)
        registry.recover()
        assert registry.claim("other", lease=LEASE, id=id) is not None
        return []

    ran = worker(registry, play, runners=runners)
    ran.run_once()
    assert ran.outcomes == {"lost": 1}
    assert runners[0].stopped >= 1
    assert job_after(registry, id).worker == "other"


def test_an_aborted_worker_gives_its_jobs_back(registry: JobRegistry) -> None:
    id = registry.submit(request(max_attempts=1))[0].id
    abort = threading.Event()

    def play(_job: JobRecord) -> Sequence[AnyJobEvent]:
        abort.set()
        return []

    ran = worker(registry, play, abort=abort)
    ran.run_once()
    after = job_after(registry, id)
    assert (after.state, after.attempts, after.worker) == ("queued", 0, None)
    assert ran.outcomes == {"released": 1}


@pytest.mark.usefixtures("beating")
def test_a_store_that_is_away_for_a_while_delays_the_result_only(
    registry: JobRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = registry.submit(request())[0].id
    monkeypatch.setattr("lumos.jobs.worker._RETRY_WRITE_SECONDS", 0.0)
    failures = iter(range(3))
    succeed = registry.succeed

    def unreliable(*args: Any, **options: Any) -> None:
        if next(failures, None) is not None:
            raise StoreError("The store does not answer.")
        succeed(*args, **options)

    monkeypatch.setattr(registry, "succeed", unreliable)
    ran = worker(registry, lambda _job: SUCCESS)
    ran.run_once()
    assert ran.outcomes == {"succeeded": 1}
    assert job_after(registry, id).state == "succeeded"


@pytest.mark.usefixtures("beating")
def test_a_job_is_stopped_when_its_lease_cannot_be_extended(
    registry: JobRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.submit(request())
    runners: list[ScriptedRunner] = []

    def away(*_args: Any, **_options: Any) -> bool:
        raise StoreError("The store does not answer.")

    monkeypatch.setattr(registry, "heartbeat", away)
    passed = iter(range(0, 10_000, 5))
    monkeypatch.setattr("lumos.jobs.worker.monotonic", lambda: float(next(passed)))
    ran = worker(registry, lambda _job: [], runners=runners)
    ran.run_once()
    assert ran.outcomes == {"lost": 1}
    assert runners[0].stopped >= 1


def test_the_back_off_grows_has_full_jitter_and_a_limit() -> None:
    settings = quick(retry_seconds=10, max_retry_seconds=100)
    longest = [retry_delay(settings, attempt, 1.0).total_seconds() for attempt in range(1, 7)]
    assert longest == [10, 20, 40, 80, 100, 100]
    assert retry_delay(settings, 3, 0.0) == timedelta()
    assert retry_delay(settings, 3, 0.5).total_seconds() == 20
    assert retry_delay(settings, 100, 1.0).total_seconds() == 100


def test_a_watcher_runs_beside_other_jobs_until_the_worker_is_stopped(
    registry: JobRegistry,
) -> None:
    watcher = registry.submit(request(kind="watch", max_attempts=100))[0].id
    ids = [registry.submit(request())[0].id for _ in range(3)]
    stop = threading.Event()
    ran: list[int] = []

    def play(job: JobRecord) -> Sequence[AnyJobEvent]:
        ran.append(job.id)
        # A watcher has no end of its own.
        return [] if job.kind == "watch" else [SUCCESS]

    started = worker(registry, play, watches=True, concurrency=1)

    def stop_after_all() -> None:
        deadline = monotonic() + 60
        while monotonic() < deadline:
            if watcher in ran and started.outcomes["succeeded"] == len(ids):
                break
            sleep(0.02)
        stop.set()

    threading.Thread(target=stop_after_all).start()
    started.run(stop)
    assert started.outcomes == {"succeeded": 3, "released": 1}
    job = job_after(registry, watcher)
    assert (job.state, job.attempts) == ("queued", 0)


def test_a_worker_that_does_not_watch_leaves_watchers_to_others(registry: JobRegistry) -> None:
    registry.submit(request(kind="watch"))
    registry.submit(request())
    ran = worker(registry, lambda _job: SUCCESS)
    ran.run_once()
    assert ran.outcomes == {"succeeded": 1}
    assert registry.counts() == {"succeeded": 1, "queued": 1}
