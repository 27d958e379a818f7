"""A worker for tests that kill it: each of its jobs moves the version of a dataset once."""

import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from lumos import Lumos
from lumos.config.jobs import JobSettings
from lumos.errors import LumosError
from lumos.jobs.kinds import is_permanent
from lumos.jobs.runner import AnyJobEvent, FailureEvent, JobRunner, SuccessEvent
from lumos.jobs.store_transport import PollingTransport, PostgresTransport
from lumos.jobs.transport import JobTransport
from lumos.jobs.worker import JobWorker
from lumos.model.job import JobRecord
from lumos.store import JobRegistry


class BumpRunner(JobRunner):
    """Moves the version of `orders`, and notes when it begins and ends.

    It works in a thread, so that the worker extends the lease meanwhile.
    """

    def __init__(self, lumos: Lumos, journal: Path) -> None:
        self._lumos = lumos
        self._journal = journal.open("a", buffering=1)
        self._thread: threading.Thread | None = None
        self._result: list[AnyJobEvent] = []

    def start(self, job: JobRecord) -> None:
        self._result = []
        self._thread = threading.Thread(target=self._bump, args=(job,))
        self._thread.start()

    def _bump(self, job: JobRecord) -> None:
        self._journal.write(f"begin {job.id} {job.token}\n")
        try:
            self._lumos.version.bump("orders", "DATA_UPDATE", key=f"job-{job.id}")
        except LumosError as problem:
            # As the child process of a real worker does.
            self._result = [FailureEvent(str(problem), is_permanent(problem))]
            return
        self._journal.write(f"end {job.id} {job.token}\n")
        self._result = [SuccessEvent({"token": job.token})]

    def poll(self, seconds: float) -> Sequence[AnyJobEvent]:
        assert self._thread is not None
        self._thread.join(seconds)
        return () if self._thread.is_alive() else self._result

    def stop(self) -> None:
        if self._thread is not None:
            self._thread.join()


def main(config: str, journal: str, redis_url: str, lease_seconds: str = "5") -> None:
    lumos = Lumos(config)
    registry = JobRegistry(lumos.database)
    # The least lease that settings allow would make the tests take longer.
    settings = JobSettings(
        poll_seconds=1, lease_seconds=int(lease_seconds), retry_seconds=1, max_retry_seconds=2
    )
    transport: JobTransport = PollingTransport(0.2)
    if redis_url:
        from lumos.jobs.redis_transport import RedisTransport

        transport = RedisTransport(
            redis_url, stream=journal, idle_seconds=float(lease_seconds), poll_seconds=0.2
        )
    elif lumos.database.allows_concurrent_writes:
        transport = PostgresTransport(lumos.database)
    worker = JobWorker(
        registry,
        transport,
        settings,
        make_runner=lambda: BumpRunner(lumos, Path(journal)),
        fire=lambda: 0,
    )
    worker.run(threading.Event())


if __name__ == "__main__":
    main(*sys.argv[1:])
