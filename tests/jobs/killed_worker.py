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
    """Moves the version of `orders`, and notes when it begins and ends."""

    def __init__(self, lumos: Lumos, journal: Path) -> None:
        self._lumos = lumos
        self._journal = journal.open("a", buffering=1)
        self._result: list[AnyJobEvent] = []

    def start(self, job: JobRecord) -> None:
        self._journal.write(f"begin {job.id} {job.token}\n")
        try:
            self._lumos.version.bump("orders", "DATA_UPDATE", key=f"job-{job.id}")
        except LumosError as problem:
            # As the child process of a real worker does.
            self._result = [FailureEvent(str(problem), is_permanent(problem))]
            return
        self._journal.write(f"end {job.id} {job.token}\n")
        self._result = [SuccessEvent({"token": job.token})]

    def poll(self, seconds: float) -> Sequence[AnyJobEvent]:  # noqa: ARG002
        return self._result

    def stop(self) -> None:
        """Nothing runs between two calls."""


def main(config: str, journal: str, redis_url: str) -> None:
    lumos = Lumos(config)
    registry = JobRegistry(lumos.database)
    # The least lease that settings allow would make the test take minutes.
    settings = JobSettings(poll_seconds=1, lease_seconds=5, retry_seconds=1, max_retry_seconds=2)
    transport: JobTransport = PollingTransport(0.2)
    if redis_url:
        from lumos.jobs.redis_transport import RedisTransport

        transport = RedisTransport(redis_url, stream=journal, idle_seconds=5, poll_seconds=0.2)
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
