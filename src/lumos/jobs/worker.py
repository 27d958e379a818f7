"""The worker: leases jobs from the registry, runs them and records their results.

While a job runs, the worker extends its lease. If the lease expires because the store cannot be
reached, the worker stops the job, since another worker may take it over.
"""

import logging
import os
import random
import socket
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from time import monotonic, sleep
from typing import Any, Final, Literal

from lumos.config.jobs import JobSettings
from lumos.errors import LumosError
from lumos.jobs.kinds import WATCH
from lumos.jobs.runner import (
    AnyJobEvent,
    FailureEvent,
    JobRunner,
    LogEvent,
    ProgressEvent,
    RunnerDied,
    StepsEvent,
    SuccessEvent,
)
from lumos.jobs.transport import JobMessage, JobTransport
from lumos.model.job import JobProgress, JobRecord
from lumos.store import JobRegistry, LeaseLost, StoreError
from lumos.tracing import AttributeValue, span, without_tracing

_log = logging.getLogger(__name__)
_MAX_HEARTBEAT_SECONDS: Final = 3.0
_TICK_SECONDS: Final = 1.0
# The interval of searching the registry for jobs whose messages were lost.
_SWEEP_SECONDS: Final = 15.0
_PRUNE_SECONDS: Final = 3600.0
_WAIT_SECONDS: Final = 30.0
_RETRY_WRITE_SECONDS: Final = 0.5

# The outcomes of an attempt. lost: another worker may run the job. released: this worker stopped.
JobOutcome = Literal["succeeded", "failed", "retried", "cancelled", "lost", "released"]
_FAILED_OUTCOMES: Final = ("failed", "retried", "lost")


def retry_delay(settings: JobSettings, attempts: int, fraction: float) -> timedelta:
    """The delay after a number of attempts: exponential backoff with full jitter.

    `fraction` is a random number from 0 to 1, the share of the longest delay.
    """
    longest = min(settings.max_retry_seconds, settings.retry_seconds * 2 ** min(attempts - 1, 30))
    return timedelta(seconds=longest * fraction)


class JobWorker:
    """Runs jobs, `concurrency` at a time; `fire` creates jobs of due schedules.

    `on_sweep` is called every few seconds while the worker runs. When `abort` is set, running jobs
    are stopped and returned to the queue. With `watches`, the worker also runs a watcher of sources
    until it is stopped, in addition to other jobs.
    """

    def __init__(
        self,
        registry: JobRegistry,
        transport: JobTransport,
        settings: JobSettings,
        *,
        make_runner: Callable[[], JobRunner],
        fire: Callable[[], int],
        on_sweep: Callable[[], None] = lambda: None,
        concurrency: int = 1,
        watches: bool = False,
        abort: threading.Event | None = None,
        on_progress: Callable[[JobRecord, JobProgress], None] = lambda _job, _progress: None,
        on_outcome: Callable[[JobRecord, JobOutcome], None] = lambda _job, _outcome: None,
    ) -> None:
        self.name = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
        self.outcomes: Counter[JobOutcome] = Counter()
        self.scheduled = 0
        self._registry = registry
        self._transport = transport
        self._settings = settings
        self._make_runner = make_runner
        self._fire = fire
        self._on_sweep = on_sweep
        self._concurrency = concurrency
        self._watches = watches
        self._on_progress = on_progress
        self._on_outcome = on_outcome
        self._lease = timedelta(seconds=settings.lease_seconds)
        self._abort = abort or threading.Event()
        self._lock = threading.Lock()

    def run(self, stop: threading.Event) -> None:
        """Run jobs until `stop` is set, then finish the running jobs."""
        ended = threading.Event()
        keeper = threading.Thread(
            target=self._maintain_queue, args=(ended,), name="lumos-job-keeper"
        )
        keeper.start()
        try:
            slots = [lambda runner: self._work(runner, stop)] * self._concurrency
            if self._watches:
                slots.append(lambda runner: self._work(runner, stop, is_watcher=True))
            self._run_slots(slots)
        finally:
            ended.set()
            keeper.join()

    def run_once(self, stop: threading.Event | None = None) -> None:
        """Run all jobs that are ready, and return when there are none left or `stop` is set."""
        self.refill_queue()
        ended = stop or threading.Event()
        self._run_slots([lambda runner: self._drain(runner, ended)] * self._concurrency)

    def run_job(self, id: int) -> bool:
        """Run one job; return False if it is not ready or another worker runs it."""
        job = self._registry.claim(self.name, lease=self._lease, id=id)
        if job is None:
            return False
        runner = self._make_runner()
        try:
            self._run(job, runner, JobMessage())
        finally:
            runner.close()
        return True

    def refill_queue(self) -> None:
        """Create jobs of due schedules, and requeue jobs of workers that have vanished."""
        if fired := self._fire():
            self.scheduled += fired
            self._transport.announce(fired)
        if recovered := self._registry.recover():
            _log.warning("Returned %d jobs of vanished workers to the queue.", recovered)
            self._transport.announce(recovered)

    def _run_slots(self, slots: Sequence[Callable[[JobRunner], None]]) -> None:
        problems: list[BaseException] = []

        def run_slot(work: Callable[[JobRunner], None]) -> None:
            runner = self._make_runner()
            try:
                work(runner)
            except BaseException as problem:  # noqa: BLE001 - raised again by the main thread
                problems.append(problem)
            finally:
                self._transport.unsubscribe()
                runner.close()

        threads = [
            threading.Thread(target=run_slot, args=(work,), name=f"lumos-job-{number}")
            for number, work in enumerate(slots)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if problems:
            raise problems[0]

    def _drain(self, runner: JobRunner, stop: threading.Event) -> None:
        while not (stop.is_set() or self._abort.is_set()):
            job = self._claim()
            if job is None:
                return
            self._run(job, runner, JobMessage())

    def _claim(self, *, is_watcher: bool = False) -> JobRecord | None:
        """Lease a job: a watcher if `is_watcher`, else a job of another kind."""
        return self._registry.claim(
            self.name,
            lease=self._lease,
            kind=WATCH if is_watcher else None,
            except_kind=None if is_watcher else WATCH,
        )

    def _work(self, runner: JobRunner, stop: threading.Event, *, is_watcher: bool = False) -> None:
        message: JobMessage = JobMessage()
        while not stop.is_set():
            try:
                # Subscribe before reading the registry, so that no message in between is missed.
                self._transport.subscribe()
                job = self._claim(is_watcher=is_watcher)
                if job is None:
                    message.settle()
                    # Read the registry again even without a message, since messages may get lost.
                    message = self._transport.wait(self._seconds_to_wait(), stop) or JobMessage()
                    continue
            except StoreError as problem:
                _log.warning("Jobs wait for the store: %s", problem)
                stop.wait(self._settings.poll_seconds)
                continue
            self._run(job, runner, message, stop if is_watcher else None)
            message.settle()
            message = JobMessage()

    def _seconds_to_wait(self) -> float:
        """The seconds to wait for a message, at most until the next job is due."""
        due = self._registry.next_due()
        if due is None:
            return _WAIT_SECONDS
        left = (due - self._registry.now()).total_seconds()
        # A job that is already due waits for other jobs with its concurrency key: poll for it.
        return min(_WAIT_SECONDS, left) if left > 0 else self._settings.poll_seconds

    def _maintain_queue(self, ended: threading.Event) -> None:
        """Run due schedules every second, announce ready jobs and, rarely, delete old jobs."""
        swept = pruned = -_PRUNE_SECONDS
        while not ended.is_set():
            try:
                self.refill_queue()
                if monotonic() - swept >= _SWEEP_SECONDS:
                    swept = monotonic()
                    self._on_sweep()
                    if ready := self._registry.ready():
                        self._transport.announce(ready)
                if self._settings.retention_days and monotonic() - pruned >= _PRUNE_SECONDS:
                    pruned = monotonic()
                    self._prune(timedelta(days=self._settings.retention_days))
            except StoreError as problem:
                _log.warning("Schedules wait for the store: %s", problem)
            ended.wait(_TICK_SECONDS)

    def _prune(self, age: timedelta) -> None:
        self._registry.prune(age)
        self._registry.schedules.prune(self._registry.now() - age)

    def _run(
        self,
        job: JobRecord,
        runner: JobRunner,
        message: JobMessage,
        stop: threading.Event | None = None,
    ) -> None:
        """Run a job until it ends or `stop` is set."""
        attempt = _Attempt(self, job, runner, message, stop or self._abort)
        facts: dict[str, AttributeValue] = {
            "lumos.job.id": job.id,
            "lumos.job.kind": job.kind,
            "lumos.attempt": job.attempts,
        }
        with (
            _logged(job),
            span(f"job {job.kind}", facts, kind="consumer", parent=job.trace) as traced,
        ):
            outcome = attempt.run()
            traced.set({"lumos.outcome": outcome})
            if outcome in _FAILED_OUTCOMES:
                traced.fail(outcome)
            with self._lock:
                self.outcomes[outcome] += 1
            self._on_outcome(job, outcome)


class _Attempt:
    """One attempt at a job, from its claim to its end."""

    def __init__(
        self,
        worker: JobWorker,
        job: JobRecord,
        runner: JobRunner,
        message: JobMessage,
        stop: threading.Event,
    ) -> None:
        self._worker = worker
        self._job = job
        self._runner = runner
        self._message = message
        self._stop = stop
        self._settings = worker._settings
        self._registry = worker._registry
        self._heartbeat_seconds = min(_MAX_HEARTBEAT_SECONDS, self._settings.lease_seconds / 4)
        # Use the monotonic clock, so that setting the system clock does not change the lease.
        self._lease_ends = monotonic() + self._settings.lease_seconds
        self._progress: JobProgress | None = None
        self._lines: list[str] = []

    def run(self) -> JobOutcome:
        try:
            return self._watch()
        except LeaseLost:
            self._runner.stop()
            return "lost"

    def _watch(self) -> JobOutcome:
        started = monotonic()
        limit = self._job.time_limit
        try:
            self._runner.start(self._job)
        except OSError as problem:
            return self._fail(f"The process of the job did not start: {problem}", permanent=False)
        while True:
            try:
                events = self._runner.poll(self._heartbeat_seconds)
            except RunnerDied as problem:
                return self._fail(str(problem), permanent=False)
            for event in events:
                outcome = self._handle(event)
                if outcome is not None:
                    return outcome
            if self._stop.is_set() or self._worker._abort.is_set():
                self._runner.stop()
                self._record(self._registry.release)
                return "released"
            if limit is not None and monotonic() - started > limit:
                self._runner.stop()
                return self._fail(
                    f"The job was stopped after its time limit of {limit} s.", permanent=False
                )
            if self._is_cancelled():
                self._runner.stop()
                self._record(self._registry.mark_cancelled, lines=self._lines)
                return "cancelled"

    def _handle(self, event: AnyJobEvent) -> JobOutcome | None:
        match event:
            case ProgressEvent():
                self._progress = event.progress
                self._worker._on_progress(self._job, event.progress)
            case LogEvent():
                self._lines.append(event.text)
            case StepsEvent():
                self._record(self._registry.complete_step, event.results, lines=self._lines)
                self._lines = []
            case SuccessEvent():
                self._record(self._registry.succeed, event.result, lines=self._lines)
                return "succeeded"
            case FailureEvent():
                return self._fail(event.error, permanent=event.permanent)
        return None

    def _is_cancelled(self) -> bool:
        """Extend the lease if it is time, and return whether the job was cancelled."""
        now = monotonic()
        if now < self._lease_ends - self._settings.lease_seconds + self._heartbeat_seconds:
            return False
        try:
            lines, progress = self._lines, self._progress
            self._lines, self._progress = [], None
            with without_tracing():
                is_cancelled = self._registry.heartbeat(
                    self._job.id,
                    self._job.token,
                    lease=self._worker._lease,
                    progress=progress,
                    lines=lines,
                )
        except LeaseLost:
            raise
        except StoreError as problem:
            self._lines = [*lines, *self._lines]
            if monotonic() >= self._lease_ends:
                _log.warning("The lease of job %d has expired: %s", self._job.id, problem)
                raise LeaseLost(self._job.id) from problem
            return False
        self._lease_ends = now + self._settings.lease_seconds
        self._message.refresh()
        return is_cancelled

    def _fail(self, error: str, *, permanent: bool) -> JobOutcome:
        delay = retry_delay(self._settings, self._job.attempts, random.random())
        retry_after = None if permanent else delay
        state = self._record(self._registry.fail, error, retry_after=retry_after, lines=self._lines)
        return "retried" if state == "queued" else "failed"

    def _record(self, write: Callable[..., Any], *values: Any, **options: Any) -> Any:
        """Write to the registry; if the store fails, try again until the lease expires."""
        while True:
            try:
                return write(self._job.id, self._job.token, *values, **options)
            except LeaseLost:
                raise
            except StoreError as problem:
                if monotonic() >= self._lease_ends:
                    raise LeaseLost(self._job.id) from problem
                sleep(_RETRY_WRITE_SECONDS)


@contextmanager
def _logged(job: JobRecord) -> Iterator[None]:
    """Log errors of the worker's own code, so that one job cannot end the worker."""
    try:
        yield
    except LumosError as problem:
        _log.warning("Job %d (%s): %s", job.id, job.kind, problem)
