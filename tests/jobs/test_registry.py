"""The registry of jobs, on every database."""

import threading
from datetime import timedelta
from typing import Any

import pytest

from jobs.conftest import LEASE, START, SetClock, request
from lumos.model.job import JobProgress, JobRecord
from lumos.store import Database, JobRegistry, LeaseLost
from lumos.store.jobs import MAX_LOG_LINES


def claimed(registry: JobRegistry, worker: str = "w1") -> JobRecord:
    job = registry.claim(worker, lease=LEASE)
    assert job is not None
    return job


def state(registry: JobRegistry, id: int) -> str:
    job = registry.job(id)
    assert job is not None
    return job.state


def test_a_job_is_kept_as_it_was_requested(registry: JobRegistry) -> None:
    asked = request(
        arguments={"mode": "scan", "x": [1, None, "\u00e5"]}, priority=5, time_limit=90,
        concurrency_key="source:lake", concurrency_limit=2, not_before=START,
    )  # fmt: skip
    job, is_new = registry.submit(asked)
    assert is_new
    assert registry.job(job.id) == job
    for name in asked.__struct_fields__:
        assert getattr(job, name) == getattr(asked, name), name
    assert (job.state, job.attempts, job.token, job.created_at) == ("queued", 0, 0, START)


def test_the_same_idempotency_key_is_the_same_job(registry: JobRegistry) -> None:
    first, _ = registry.submit(request(idempotency_key="release-7"))
    second, is_new = registry.submit(request(idempotency_key="release-7", priority=9))
    assert (second, is_new) == (first, False)
    assert registry.submit(request())[1]
    assert registry.submit(request())[1]


def test_the_highest_priority_is_first_and_then_the_oldest(registry: JobRegistry) -> None:
    ids = [registry.submit(request(priority=each))[0].id for each in (0, 5, 0, 5, -3)]
    order = [claimed(registry).id for _ in ids]
    assert order == [ids[1], ids[3], ids[0], ids[2], ids[4]]
    assert registry.claim("w1", lease=LEASE) is None


def test_a_job_is_not_claimed_before_its_time(registry: JobRegistry, clock: SetClock) -> None:
    registry.submit(request(not_before=START + timedelta(hours=1)))
    assert registry.claim("w1", lease=LEASE) is None
    assert registry.ready() == 0
    assert registry.next_due() == START + timedelta(hours=1)
    clock.move(hours=1)
    assert registry.ready() == 1
    assert claimed(registry).attempts == 1


def test_jobs_do_not_wait_for_a_clock_that_was_set_back(
    registry: JobRegistry, clock: SetClock
) -> None:
    later, _ = registry.submit(request(not_before=START + timedelta(hours=2)))
    retried, _ = registry.submit(request())
    job = claimed(registry)
    registry.fail(job.id, job.token, "x", retry_after=timedelta(minutes=5))
    assert registry.claim("w1", lease=LEASE) is None
    immediate, _ = registry.submit(request())
    clock.move(hours=-1)
    assert registry.ready() == 2
    assert [claimed(registry).id for _ in range(2)] == [retried.id, immediate.id]
    # What has a time of its own keeps it.
    assert registry.claim("w1", lease=LEASE) is None
    clock.move(hours=3)
    registry.recover()
    assert later.id in [claimed(registry).id for _ in range(3)]


def test_a_concurrency_limit_holds_back_jobs_with_the_same_key_only(registry: JobRegistry) -> None:
    for key, limit in (("a", 2), ("a", 2), ("a", 2), ("b", 1), (None, 1), (None, 1)):
        registry.submit(request(concurrency_key=key, concurrency_limit=limit))
    running = [claimed(registry) for _ in range(5)]
    assert [job.concurrency_key for job in running] == ["a", "a", "b", None, None]
    assert registry.claim("w1", lease=LEASE) is None
    registry.succeed(running[0].id, running[0].token, {})
    assert claimed(registry).concurrency_key == "a"


def test_two_workers_never_get_the_same_job(database: Database) -> None:
    registry = JobRegistry(database)
    ids = {registry.submit(request(concurrency_key=f"k{each % 7}", concurrency_limit=99))[0].id
           for each in range(40)}  # fmt: skip
    taken: list[int] = []

    def take(worker: str) -> None:
        own = JobRegistry(database)
        while (job := own.claim(worker, lease=LEASE)) is not None:
            taken.append(job.id)

    threads = [threading.Thread(target=take, args=(f"w{each}",)) for each in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(ids)


def test_threads_that_claim_at_once_keep_to_a_concurrency_limit(database: Database) -> None:
    registry = JobRegistry(database)
    for _ in range(12):
        registry.submit(request(concurrency_key="one", concurrency_limit=2))
    taken: list[JobRecord] = []

    def take(worker: str) -> None:
        job = JobRegistry(database).claim(worker, lease=LEASE)
        if job is not None:
            taken.append(job)

    threads = [threading.Thread(target=take, args=(f"w{each}",)) for each in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 2
    assert registry.counts() == {"running": 2, "queued": 10}


def test_a_result_ends_a_job(registry: JobRegistry, clock: SetClock) -> None:
    registry.submit(request())
    job = claimed(registry)
    clock.move(seconds=5)
    registry.succeed(job.id, job.token, {"datasets": 3}, lines=["Scanning"])
    after = registry.job(job.id)
    assert after is not None
    assert (after.state, after.result, after.worker, after.lease_until) == (
        "succeeded", {"datasets": 3}, None, None,
    )  # fmt: skip
    assert after.finished_at == clock.now
    texts = [line.text for line in registry.log(job.id)]
    assert texts == ["Attempt 1 on w1.", "Scanning", "Succeeded."]


def test_a_failure_is_repeated_until_no_attempt_is_left(
    registry: JobRegistry, clock: SetClock
) -> None:
    registry.submit(request(max_attempts=2))
    job = claimed(registry)
    pause = timedelta(seconds=7)
    assert registry.fail(job.id, job.token, "No route.", retry_after=pause) == "queued"
    assert registry.claim("w1", lease=LEASE) is None
    clock.move(seconds=7)
    again = claimed(registry)
    assert (again.attempts, again.token) == (2, 2)
    assert registry.fail(again.id, again.token, "No route.", retry_after=pause) == "dead"
    dead = registry.job(job.id)
    assert dead is not None
    assert (dead.state, dead.error, dead.finished_at) == ("dead", "No route.", clock.now)


def test_a_permanent_failure_is_not_repeated(registry: JobRegistry) -> None:
    registry.submit(request())
    job = claimed(registry)
    assert registry.fail(job.id, job.token, "No dataset x.", retry_after=None) == "failed"
    assert registry.claim("w1", lease=LEASE) is None


@pytest.mark.parametrize("end", ["failed", "dead", "cancelled"])
def test_ended_jobs_can_be_queued_again_with_their_steps(registry: JobRegistry, end: str) -> None:
    registry.submit(request(max_attempts=1))
    job = claimed(registry)
    registry.complete_step(job.id, job.token, [{"step": 1}])
    if end == "cancelled":
        registry.mark_cancelled(job.id, job.token)
    else:
        retry = None if end == "failed" else timedelta()
        registry.fail(job.id, job.token, "x", retry_after=retry)
    assert state(registry, job.id) == end
    assert registry.requeue(job.id)
    again = claimed(registry)
    assert (again.id, again.attempts, again.completed_steps) == (job.id, 1, ({"step": 1},))
    assert not registry.requeue(job.id)


def test_a_queued_job_is_cancelled_at_once_and_a_running_one_is_asked(
    registry: JobRegistry,
) -> None:
    first = registry.submit(request(priority=1))[0].id
    second = registry.submit(request())[0].id
    running = claimed(registry)
    assert running.id == first
    assert registry.heartbeat(first, running.token, lease=LEASE) is False
    registry.cancel(first)
    registry.cancel(second)
    assert (state(registry, first), state(registry, second)) == ("running", "cancelled")
    assert registry.heartbeat(first, running.token, lease=LEASE) is True
    registry.mark_cancelled(first, running.token)
    assert state(registry, first) == "cancelled"
    assert registry.cancel(99_999) is None


def test_a_job_of_a_vanished_worker_is_taken_over_after_its_lease(
    registry: JobRegistry, clock: SetClock
) -> None:
    registry.submit(request())
    lost = claimed(registry)
    clock.move(seconds=59)
    assert registry.recover() == 0
    clock.move(seconds=2)
    assert registry.recover() == 1
    new = claimed(registry, "w2")
    assert (new.id, new.token, new.attempts) == (lost.id, lost.token + 1, 2)
    calls: list[Any] = [
        lambda: registry.succeed(lost.id, lost.token, {}),
        lambda: registry.fail(lost.id, lost.token, "x", retry_after=timedelta()),
        lambda: registry.heartbeat(lost.id, lost.token, lease=LEASE),
        lambda: registry.complete_step(lost.id, lost.token, [1]),
        lambda: registry.release(lost.id, lost.token),
        lambda: registry.mark_cancelled(lost.id, lost.token),
    ]
    for call in calls:
        with pytest.raises(LeaseLost):
            call()
    held = registry.job(lost.id)
    assert held is not None
    assert (held.state, held.worker, held.completed_steps) == ("running", "w2", ())
    registry.succeed(new.id, new.token, {})
    with pytest.raises(LeaseLost):
        registry.succeed(new.id, new.token, {})


def test_a_heartbeat_extends_the_lease_and_records_progress(
    registry: JobRegistry, clock: SetClock
) -> None:
    registry.submit(request())
    job = claimed(registry)
    clock.move(seconds=50)
    progress = JobProgress(step="Scanning", files=7, share=0.5)
    registry.heartbeat(job.id, job.token, lease=LEASE, progress=progress, lines=["seven files"])
    clock.move(seconds=50)
    assert registry.recover() == 0
    held = registry.job(job.id)
    assert held is not None
    assert held.progress == progress
    assert registry.log(job.id)[-1].text == "seven files"


def test_a_job_whose_workers_always_vanish_is_dead_in_the_end(
    registry: JobRegistry, clock: SetClock
) -> None:
    id = registry.submit(request(max_attempts=2))[0].id
    for _ in range(2):
        claimed(registry)
        clock.move(seconds=61)
        assert registry.recover() == 1
    dead = registry.job(id)
    assert dead is not None
    assert (dead.state, dead.attempts) == ("dead", 2)
    assert "vanished" in str(dead.error)


def test_a_job_that_was_asked_to_stop_is_not_taken_over(
    registry: JobRegistry, clock: SetClock
) -> None:
    id = registry.submit(request())[0].id
    claimed(registry)
    registry.cancel(id)
    clock.move(seconds=61)
    registry.recover()
    assert state(registry, id) == "cancelled"


def test_a_job_that_is_given_back_has_not_used_an_attempt(registry: JobRegistry) -> None:
    registry.submit(request(max_attempts=1))
    job = claimed(registry)
    registry.release(job.id, job.token)
    again = claimed(registry)
    assert (again.id, again.attempts) == (job.id, 1)
    assert again.token > job.token


def test_only_the_last_lines_of_a_log_are_kept(registry: JobRegistry) -> None:
    registry.submit(request())
    job = claimed(registry)
    for start in range(0, MAX_LOG_LINES + 300, 100):
        lines = [f"line {number} {'x' * 900}" for number in range(start, start + 100)]
        registry.heartbeat(job.id, job.token, lease=LEASE, lines=lines)
    log = registry.log(job.id)
    assert len(log) == MAX_LOG_LINES
    assert log[-1].text.startswith(f"line {MAX_LOG_LINES + 299} ")
    assert all(len(line.text) <= 500 for line in log)


def test_lists_are_filtered_and_continued(registry: JobRegistry) -> None:
    ids = [registry.submit(request(kind=kind))[0].id for kind in ("sync", "ingest", "sync", "sync")]
    registry.cancel(ids[3])
    assert [job.id for job in registry.list(limit=2)] == [ids[3], ids[2]]
    assert [job.id for job in registry.list(limit=2, before=ids[2])] == [ids[1], ids[0]]
    assert [job.id for job in registry.list(limit=9, kind="ingest")] == [ids[1]]
    assert [job.id for job in registry.list(limit=9, states=["cancelled"])] == [ids[3]]


def test_old_jobs_are_deleted_with_their_logs_and_open_ones_stay(
    registry: JobRegistry, clock: SetClock
) -> None:
    done = registry.submit(request(priority=1))[0].id
    waiting = registry.submit(request())[0].id
    job = claimed(registry)
    registry.succeed(job.id, job.token, {})
    clock.move(days=31)
    assert registry.prune(timedelta(days=30)) == 1
    assert registry.job(done) is None
    assert registry.log(done) == ()
    assert state(registry, waiting) == "queued"
    newer, _ = registry.submit(request())
    assert newer.id > waiting


def test_workers_with_wrong_clocks_agree_through_the_clock_of_the_registry(
    database: Database,
) -> None:
    registry = JobRegistry(database)
    registry.submit(request())
    job = claimed(registry)
    assert job.started_at is not None
    assert job.lease_until is not None
    assert timedelta() <= job.lease_until - job.started_at <= LEASE
    assert registry.recover() == 0
