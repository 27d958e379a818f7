"""One contract for all transports: SQLite, PostgreSQL and Redis Streams."""

import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from jobs.conftest import FAILURE, SUCCESS, ScriptedRunner, quick, request
from lumos.jobs.runner import AnyJobEvent
from lumos.jobs.store_transport import PollingTransport, PostgresTransport
from lumos.jobs.transport import JobTransport
from lumos.jobs.worker import JobOutcome, JobWorker
from lumos.model.job import JobRecord, JobRequest
from lumos.store import Database, JobRegistry, Store

PATIENCE = 60


@dataclass
class Fleet:
    """A registry with workers that learn of jobs through one transport."""

    registry: JobRegistry
    transport: JobTransport
    play: Callable[[JobRecord], AnyJobEvent] = lambda _job: SUCCESS
    stop: threading.Event = field(default_factory=threading.Event)
    changed: threading.Condition = field(default_factory=threading.Condition)
    ended: list[tuple[JobRecord, JobOutcome]] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    def submit(self, **facts: object) -> JobRecord:
        job, _ = self.registry.submit(request(**facts))
        self.transport.announce()
        return job

    def submit_silently(self, asked: JobRequest) -> JobRecord:
        """As if the message had been lost."""
        return self.registry.submit(asked)[0]

    def worker(self, concurrency: int = 1) -> JobWorker:
        return JobWorker(
            self.registry, self.transport, quick(),
            make_runner=lambda: ScriptedRunner(lambda job: self.play(job)),
            fire=lambda: 0, concurrency=concurrency, on_outcome=self.note,
        )  # fmt: skip

    def start(self, workers: int = 1) -> None:
        for _ in range(workers):
            thread = threading.Thread(target=self.worker().run, args=(self.stop,))
            thread.start()
            self.threads.append(thread)

    def note(self, job: JobRecord, outcome: JobOutcome) -> None:
        with self.changed:
            self.ended.append((job, outcome))
            self.changed.notify_all()

    def wait_for(self, count: int) -> list[tuple[JobRecord, JobOutcome]]:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.ended) >= count, PATIENCE)
        return self.ended

    def end(self) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
        self.transport.close()


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fleet]:
    if request.param == "postgres":
        database = Database.postgres(request.getfixturevalue("emptied_postgres"))
        transport: JobTransport = PostgresTransport(database)
    else:
        database = Database.sqlite(tmp_path / "lumos.db")
        transport = PollingTransport(1)
    if request.param == "redis":
        from lumos.jobs.redis_transport import RedisTransport

        url = request.getfixturevalue("redis_url")
        stream = f"jobs:{uuid.uuid4().hex}"
        transport = RedisTransport(url, stream=stream, idle_seconds=60, poll_seconds=1)
    Store.open(database, create=True)
    made = Fleet(JobRegistry(database), transport)
    yield made
    made.end()
    database.engine.dispose()


def test_a_waiting_worker_gets_a_new_job(fleet: Fleet) -> None:
    fleet.start()
    job = fleet.submit()
    ((ended, outcome),) = fleet.wait_for(1)
    assert (ended.id, outcome) == (job.id, "succeeded")
    after = fleet.registry.job(job.id)
    assert after is not None
    assert (after.state, after.result, after.attempts) == ("succeeded", {"done": True}, 1)


def test_jobs_that_were_there_before_the_worker_are_run(fleet: Fleet) -> None:
    ids = {fleet.submit().id for _ in range(5)}
    fleet.start()
    assert {job.id for job, _ in fleet.wait_for(5)} == ids


def test_a_job_whose_message_was_lost_is_run(fleet: Fleet) -> None:
    fleet.start()
    fleet.submit()
    fleet.wait_for(1)
    lost = fleet.submit_silently(request())
    fleet.wait_for(2)
    assert fleet.ended[1][0].id == lost.id


def test_priorities_hold_whatever_the_order_of_messages(fleet: Fleet) -> None:
    ids = [fleet.submit(priority=each).id for each in (-1, 0, 7)]
    fleet.start()
    assert [job.id for job, _ in fleet.wait_for(3)] == list(reversed(ids))


def test_each_of_many_jobs_is_run_once_by_several_workers(fleet: Fleet) -> None:
    fleet.start(3)
    ids = [fleet.submit().id for _ in range(60)]
    ended = fleet.wait_for(60)
    assert sorted(job.id for job, _ in ended) == ids
    assert all(outcome == "succeeded" for _, outcome in ended)


def test_a_failed_attempt_is_repeated(fleet: Fleet) -> None:
    fleet.play = lambda job: FAILURE if job.attempts == 1 else SUCCESS
    fleet.start()
    job = fleet.submit()
    assert [outcome for _, outcome in fleet.wait_for(2)] == ["retried", "succeeded"]
    after = fleet.registry.job(job.id)
    assert after is not None
    assert (after.state, after.attempts, after.error) == ("succeeded", 2, None)


def test_jobs_with_one_concurrency_key_follow_each_other(fleet: Fleet) -> None:
    running: list[int] = []
    most = []

    def play(job: JobRecord) -> AnyJobEvent:
        running.append(job.id)
        most.append(len(running))
        # Long enough for another worker to begin, if it were allowed to.
        fleet.stop.wait(0.05)
        running.remove(job.id)
        return SUCCESS

    fleet.play = play
    fleet.start(2)
    for _ in range(6):
        fleet.submit(concurrency_key="source:lake")
    fleet.wait_for(6)
    assert max(most) == 1


def test_a_worker_that_stops_leaves_the_rest_to_others(fleet: Fleet) -> None:
    fleet.start()
    fleet.submit()
    fleet.wait_for(1)
    fleet.stop.set()
    for thread in fleet.threads:
        thread.join(PATIENCE)
    fleet.submit()
    fleet.stop = threading.Event()
    fleet.start()
    assert len(fleet.wait_for(2)) == 2
