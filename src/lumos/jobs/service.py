"""The service behind `lumos job`, `lumos run` and `lumos worker`."""

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from time import sleep
from typing import Any, Final, get_args

from lumos.actor import current_actor
from lumos.config import Settings
from lumos.config.jobs import JobSettings
from lumos.config.secret import has_secret
from lumos.config.switches import FeatureDisabled
from lumos.errors import MisuseError, UnknownName
from lumos.jobs.configured_schedules import update_configured
from lumos.jobs.kinds import CHAIN, KINDS, WATCH, JobPlan, plan_job, plan_steps
from lumos.jobs.reports import JobListReport, JobReport, JobSummary, WorkerReport
from lumos.jobs.runner import JobRunner
from lumos.jobs.schedule_runs import fire_due
from lumos.jobs.store_transport import PollingTransport, PostgresTransport
from lumos.jobs.transport import JobTransport
from lumos.jobs.worker import JobOutcome, JobWorker
from lumos.model.cron import jitter_of
from lumos.model.job import (
    FINISHED_STATES,
    JobProgress,
    JobRecord,
    JobRequest,
    JobState,
    ScheduleRecord,
)
from lumos.model.json_codec import to_json
from lumos.model.time_expression import to_utc
from lumos.progress import Progress, no_progress
from lumos.store import Database, JobRegistry, Store
from lumos.store.configured import create_when_reachable
from lumos.tracing import trace_headers

_log = logging.getLogger(__name__)
MAX_PRIORITY: Final = 100
_MAX_ATTEMPTS: Final = 100
_MAX_KEY_LENGTH: Final = 200
_MAX_TIME_LIMIT: Final = 7 * 24 * 3600
_MAX_LISTED: Final = 1_000
_MAX_CONCURRENCY: Final = 64
_WAIT_SECONDS: Final = 0.5


class UnknownJob(MisuseError):
    """No job has that id."""

    def __init__(self, id: int) -> None:
        self.id = id
        super().__init__(f"There is no job {id}. See all with: lumos job list")


class Jobs:
    """Submits, shows, cancels and runs jobs."""

    def __init__(
        self,
        settings: Settings,
        *,
        store: Callable[[], Store],
        make_store: Callable[[], Store],
        database: Callable[[], Database],
        make_runner: Callable[[], JobRunner],
        send_due: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._store = store
        self._make_store = make_store
        self._database = database
        self._make_runner = make_runner
        # Sends notifications that wait for a retry or for the end of quiet hours.
        self._send_due = send_due
        self._opened: JobTransport | None = None
        self._lock = threading.Lock()

    def submit(
        self,
        kind: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        priority: int = 0,
        max_attempts: int | None = None,
        not_before: datetime | None = None,
        time_limit: int | None = None,
        idempotency_key: str | None = None,
        concurrency_key: str | None = None,
        requested_by: str | None = None,
    ) -> JobReport:
        """Put a job into the queue, from which a worker takes it.

        Of several calls with the same `idempotency_key`, only the first adds a job. Jobs with the
        same `concurrency_key` (by default their source or catalog) run one at a time, unless
        jobs.limits allows more.
        """
        request = self.request(
            plan_job(kind, arguments or {}),
            priority=priority,
            max_attempts=max_attempts,
            not_before=not_before,
            time_limit=time_limit,
            idempotency_key=idempotency_key,
            concurrency_key=concurrency_key,
            requested_by=requested_by,
        )
        return self._submit(request)

    def request(
        self,
        plan: JobPlan,
        *,
        priority: int = 0,
        max_attempts: int | None = None,
        not_before: datetime | None = None,
        time_limit: int | None = None,
        idempotency_key: str | None = None,
        concurrency_key: str | None = None,
        requested_by: str | None = None,
    ) -> JobRequest:
        """Check the values for a job, and add the defaults of the configuration."""
        for kind in plan.kinds:
            self._settings.switches.require_job(kind)
        settings = self._settings.jobs
        attempts = settings.max_attempts if max_attempts is None else max_attempts
        limit = settings.time_limit if time_limit is None else time_limit
        if WATCH in plan.kinds:
            limit = time_limit
        _check_range("priority", priority, -MAX_PRIORITY, MAX_PRIORITY)
        _check_range("number of attempts", attempts, 1, _MAX_ATTEMPTS)
        if limit is not None:
            _check_range("time limit in seconds", limit, 1, _MAX_TIME_LIMIT)
        if idempotency_key is not None and not 1 <= len(idempotency_key) <= _MAX_KEY_LENGTH:
            raise MisuseError(f"An idempotency key must have 1 to {_MAX_KEY_LENGTH} characters.")
        for name, text in (("idempotency", idempotency_key), ("concurrency", concurrency_key)):
            if text is not None and has_secret(text):
                raise MisuseError(
                    f"The {name} key contains a password or token, and jobs store no secrets. "
                    "Choose another key."
                )
        if not_before is not None and not_before.tzinfo is None:
            raise MisuseError(f"The time {not_before} needs a time zone, as in 2024-01-15T10:30Z.")
        if not_before is not None:
            not_before = to_utc(not_before)
        key = concurrency_key or plan.key(self._settings)
        return JobRequest(
            kind=plan.kind,
            arguments=plan.arguments,
            requested_by=requested_by or current_actor().name,
            priority=priority,
            max_attempts=attempts,
            not_before=not_before,
            time_limit=limit,
            idempotency_key=idempotency_key,
            concurrency_key=key,
            concurrency_limit=1 if key is None else settings.limit_of(key),
            trace=trace_headers(),
        )

    def run(
        self,
        *steps: str,
        resume: int | None = None,
        detach: bool = False,
        max_attempts: int | None = None,
        time_limit: int | None = None,
        progress: Progress = no_progress,
        requested_by: str | None = None,
    ) -> JobReport:
        """Run steps such as `ingest:sources.yaml` one after the other, as one job.

        `resume` continues an earlier job with its first unfinished step. With `detach`, a worker
        runs the job; without it, the job runs here, by default with a single attempt.
        """
        if resume is not None:
            if steps:
                raise MisuseError("Give steps or a job to resume, not both.")
            id = self.retry(resume).id
        else:
            attempts = max_attempts if detach or max_attempts is not None else 1
            request = self.request(
                plan_steps(steps),
                max_attempts=attempts,
                time_limit=time_limit,
                requested_by=requested_by,
            )
            id = self._submit(request).id
        return self.show(id) if detach else self._run_here(id, progress)

    def list(
        self,
        *,
        states: Collection[str] = (),
        kind: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> JobListReport:
        """The jobs, newest first; `before` is the last id of an earlier list to continue."""
        known = get_args(JobState)
        for state in states:
            if state not in known:
                raise UnknownName("state of jobs", state, known)
        if kind is not None and kind not in (CHAIN, *KINDS):
            raise UnknownName("kind of job", kind, (CHAIN, *KINDS))
        _check_range("limit", limit, 1, _MAX_LISTED)
        registry = self._store().jobs
        selected_states: list[Any] = list(states)
        jobs = registry.list(states=selected_states, kind=kind, before=before, limit=limit)
        return JobListReport(jobs=tuple(map(JobSummary.of, jobs)), counts=registry.counts())

    def show(self, id: int) -> JobReport:
        """A job with its result and the end of its log."""
        registry = self._store().jobs
        job = registry.job(id)
        if job is None:
            raise UnknownJob(id)
        return JobReport.with_log(job, registry.log(id))

    def cancel(self, id: int) -> JobReport:
        """Cancel a queued job, or stop a running one within seconds."""
        job = self._store().jobs.cancel(id)
        if job is None:
            raise UnknownJob(id)
        if job.state in FINISHED_STATES and job.state != "cancelled":
            raise MisuseError(f"Job {id} has {job.state} already and cannot be cancelled.")
        return self.show(id)

    def retry(self, id: int) -> JobReport:
        """Queue a failed, dead or cancelled job again; finished steps are not repeated."""
        registry = self._store().jobs
        job = registry.job(id)
        if job is None:
            raise UnknownJob(id)
        if not registry.requeue(id, trace=trace_headers()):
            raise MisuseError(
                f"Job {id} is {job.state}; only failed, dead and cancelled jobs can be retried. "
                f"See it with: lumos job show {id}"
            )
        self._transport.announce()
        return self.show(id)

    def work(
        self,
        *,
        once: bool = False,
        concurrency: int = 1,
        stop: threading.Event | None = None,
        abort: threading.Event | None = None,
        on_outcome: Callable[[JobSummary, JobOutcome], None] = lambda _job, _outcome: None,
    ) -> WorkerReport:
        """Run jobs until `stop` is set or, with `once`, until no job is ready.

        Running jobs are then finished, unless `abort` is set: in this case they are stopped and
        returned to the queue.
        """
        _check_range("number of jobs at a time", concurrency, 1, _MAX_CONCURRENCY)
        registry = create_when_reachable(self._make_store).jobs
        worker = self.worker(
            concurrency=concurrency,
            watches=not once,
            abort=abort,
            on_outcome=lambda job, outcome: on_outcome(
                JobSummary.of(registry.job(job.id) or job), outcome
            ),
        )
        try:
            worker.run_once(stop) if once else worker.run(stop or threading.Event())
        finally:
            self.close()
        outcomes = worker.outcomes
        return WorkerReport(
            succeeded=outcomes["succeeded"],
            failed=outcomes["failed"],
            retried=outcomes["retried"],
            cancelled=outcomes["cancelled"],
            lost=outcomes["lost"],
            released=outcomes["released"],
            scheduled=worker.scheduled,
        )

    def worker(
        self,
        *,
        concurrency: int = 1,
        watches: bool = False,
        abort: threading.Event | None = None,
        on_progress: Callable[[JobRecord, JobProgress], None] = lambda _job, _progress: None,
        on_outcome: Callable[[JobRecord, JobOutcome], None] = lambda _job, _outcome: None,
    ) -> JobWorker:
        """Create a worker that runs in threads of another program, such as a server.

        It runs reminders on their configured schedules. With `watches`, it also watches sources if
        change_detection.enabled is true.
        """
        registry = self._make_store().jobs
        update_configured(registry, self._settings)
        watches = watches and self._watches_sources
        if watches:
            self._request_watcher(registry)
        return self._worker(
            registry,
            concurrency=concurrency,
            watches=watches,
            abort=abort,
            on_progress=on_progress,
            on_outcome=on_outcome,
        )

    @property
    def _watches_sources(self) -> bool:
        is_on = self._settings.switches.is_on("auto_detection")
        return is_on and self._settings.change_detection.enabled is True

    def _request_watcher(self, registry: JobRegistry) -> None:
        """Put a watcher into the queue, unless there is one already: all workers share it."""
        last = next(iter(registry.list(states=(), kind=WATCH, before=None, limit=1)), None)
        if last is None or last.state in FINISHED_STATES:
            # Workers that are started at the same time use the same key, so only one job is added.
            key = f"{WATCH} after {0 if last is None else last.id}"
            request = self.request(
                plan_job(WATCH, {}), max_attempts=_MAX_ATTEMPTS, idempotency_key=key
            )
            self._submit(request)

    def _worker(self, registry: JobRegistry, **options: Any) -> JobWorker:
        return JobWorker(
            registry,
            self._transport,
            self._settings.jobs,
            make_runner=self._make_runner,
            fire=lambda: fire_due(registry, self._scheduled_request),
            on_sweep=self._send_due,
            **options,
        )

    def close(self) -> None:
        """Close the connections of the transport; the next use opens them again."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    @property
    def _transport(self) -> JobTransport:
        with self._lock:
            if self._opened is None:
                self._opened = _open_transport(self._settings.jobs, self._database())
            return self._opened

    def _scheduled_request(self, record: ScheduleRecord, due: datetime) -> JobRequest | None:
        try:
            return self.request(
                plan_job(record.kind, record.arguments),
                priority=record.priority,
                max_attempts=record.max_attempts,
                time_limit=record.time_limit,
                not_before=due + jitter_of(record.name, due, record.jitter),
                requested_by=f"schedule:{record.name}",
            )
        except FeatureDisabled as problem:
            _log.warning("The schedule '%s' was skipped. %s", record.name, problem)
            return None

    def _submit(self, request: JobRequest) -> JobReport:
        registry = self._make_store().jobs
        job, is_new = registry.submit(request)
        # Compare JSON, since values from the store have lists instead of tuples.
        if to_json([job.kind, job.arguments]) != to_json([request.kind, request.arguments]):
            raise MisuseError(
                f"The idempotency key '{request.idempotency_key}' belongs to job {job.id}, which "
                f"is a different request. See it with: lumos job show {job.id}"
            )
        if is_new and (request.not_before is None or request.not_before <= job.created_at):
            self._transport.announce()
        return JobReport.with_log(job, registry.log(job.id))

    def _run_here(self, id: int, progress: Progress) -> JobReport:
        """Run a job in this process, or wait for it if another worker has taken it."""

        def show(_job: JobRecord, now: JobProgress) -> None:
            progress(now.step, files=now.files, share=now.share, unit=now.unit)

        worker = self._worker(self._make_store().jobs, on_progress=show)
        try:
            while True:
                worker.run_job(id)
                report = self.show(id)
                if report.state in FINISHED_STATES:
                    return report
                worker.refill_queue()
                sleep(_WAIT_SECONDS)
        except KeyboardInterrupt:
            self._interrupt(worker, id)
            raise

    def _interrupt(self, worker: JobWorker, id: int) -> None:
        """Cancel the job that runs here, so that it can be resumed later."""
        registry = self._store().jobs
        job = registry.cancel(id)
        if job is not None and job.state == "running" and job.worker == worker.name:
            registry.mark_cancelled(id, job.token)


def _check_range(what: str, value: float, minimum: float, maximum: float) -> None:
    if not minimum <= value <= maximum:
        raise MisuseError(f"The {what} must be between {minimum:,} and {maximum:,}, not {value:,}.")


def _open_transport(settings: JobSettings, database: Database) -> JobTransport:
    if settings.transport == "redis":
        from lumos.jobs.redis_transport import RedisTransport

        assert settings.redis_url is not None, "checked by the settings"
        return RedisTransport(
            settings.redis_url.reveal(),
            stream=settings.stream,
            idle_seconds=settings.lease_seconds,
            poll_seconds=settings.poll_seconds,
        )
    if database.allows_concurrent_writes:
        return PostgresTransport(database)
    return PollingTransport(settings.poll_seconds)
