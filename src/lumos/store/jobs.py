"""The registry of jobs and schedules, which decides which worker runs which job.

All times come from one clock: that of the PostgreSQL server, or of the machine with the SQLite
file. So workers on machines with different clocks agree on when a lease has expired.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Final

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    case,
    delete,
    func,
    literal,
    or_,
    select,
    text,
    update,
)

from lumos.model.job import (
    FINISHED_STATES,
    JobLogLine,
    JobProgress,
    JobRecord,
    JobRequest,
    JobState,
    ScheduleRecord,
)
from lumos.model.json_codec import from_json, to_json
from lumos.store import audit
from lumos.store.database import Database, lock_in_transaction
from lumos.store.errors import StoreError
from lumos.store.statements import insert_if_new
from lumos.store.tables import job as table
from lumos.store.tables import job_log, schedule, schedule_run

CHANNEL: Final = "lumos_jobs"
MAX_LOG_LINES: Final = 1_000
_MAX_LINE_LENGTH: Final = 500
_MAX_ERROR_LENGTH: Final = 2_000
_PRUNE_BATCH: Final = 500
_JSON_COLUMNS: Final = ("arguments", "completed_steps", "result", "trace")
_NOT_RUNNING: Final = {"worker": None, "lease_until": None, "progress": None}

Clock = Callable[[], datetime]


class LeaseLost(StoreError):
    """The job was cancelled, or another worker has leased it; nothing was written."""

    def __init__(self, id: int) -> None:
        self.id = id
        super().__init__(
            f"Job {id} does not belong to this worker any more. See it with: lumos job show {id}"
        )


class JobRegistry:
    """Accepts jobs, leases them to workers and records their results."""

    def __init__(self, database: Database, clock: Clock | None = None) -> None:
        self._database = database
        self._clock = clock

    @cached_property
    def schedules(self) -> "ScheduleRegistry":
        return ScheduleRegistry(self._database, self)

    @property
    def notifies(self) -> bool:
        """Whether the database notifies workers of new jobs, on `CHANNEL`."""
        return self._database.allows_concurrent_writes

    def now(self, connection: Connection | None = None) -> datetime:
        """The time of the registry's clock."""
        if self._clock is not None:
            return self._clock()
        if not self._database.allows_concurrent_writes:
            return datetime.now(UTC)
        if connection is None:
            with self._database.reading() as reading:
                return self.now(reading)
        # Not CURRENT_TIMESTAMP, which is the start of the transaction.
        micros = text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        value = connection.execute(micros).scalar_one()
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=int(value))

    # Requests.

    def submit(self, request: JobRequest) -> tuple[JobRecord, bool]:
        """Add a job to the registry; return it, and whether it is new.

        If a job with the same idempotency key exists, that job is returned.
        """
        with self._database.writing() as connection:
            job, is_new = self.insert(connection, request)
            if is_new:
                self._audit(connection, "job submit", job.id, job.created_at, details=job.kind)
            return job, is_new

    def insert(self, connection: Connection, request: JobRequest) -> tuple[JobRecord, bool]:
        """Like `submit`, in a transaction of the caller."""
        now = self.now(connection)
        row = msgspec.structs.asdict(request) | {
            "arguments": to_json(request.arguments),
            "trace": request.trace and to_json(request.trace),
            "not_before": request.not_before or now,
            "state": "queued",
            "attempts": 0,
            "token": 0,
            "completed_steps": b"[]",
            "cancel_requested": False,
            "created_at": now,
        }
        statement = insert_if_new(connection.dialect.name, table)
        inserted = connection.execute(statement, row).scalar_one_or_none()
        if inserted is None:
            is_same = table.c.idempotency_key == request.idempotency_key
            return _job_record(connection.execute(select(table).where(is_same)).one()), False
        self._notify(connection)
        return self._job(connection, inserted), True

    def cancel(self, id: int) -> JobRecord | None:
        """Cancel a queued job, or ask the worker of a running one to stop it."""
        with self._database.writing() as connection:
            now = self.now(connection)
            is_queued = table.c.state == "queued"
            changes = {
                "cancel_requested": True,
                "finished_at": case(
                    (is_queued, literal(now, table.c.finished_at.type)),
                    else_=table.c.finished_at,
                ),
                "state": case((is_queued, "cancelled"), else_=table.c.state),
            }
            is_open = (table.c.id == id) & table.c.state.in_(("queued", "running"))
            changed = connection.execute(update(table).where(is_open).values(changes)).rowcount
            if changed:
                self._log(connection, id, ["Cancellation requested."], now)
                self._audit(connection, "job cancel", id, now)
            row = connection.execute(select(table).where(table.c.id == id)).one_or_none()
        return None if row is None else _job_record(row)

    def requeue(self, id: int, *, trace: dict[str, str] | None = None) -> bool:
        """Queue a failed, dead or cancelled job again, with its attempts reset to 0."""
        with self._database.writing() as connection:
            now = self.now(connection)
            values = {
                "state": "queued",
                "attempts": 0,
                "not_before": now,
                "cancel_requested": False,
                "finished_at": None,
                "error": None,
                "trace": trace and to_json(trace),
            }
            is_finished = table.c.state.in_(("failed", "dead", "cancelled"))
            statement = update(table).where(table.c.id == id, is_finished).values(values)
            if not connection.execute(statement).rowcount:
                return False
            self._log(connection, id, ["Queued again."], now)
            self._audit(connection, "job retry", id, now)
            self._notify(connection)
        return True

    def _audit(
        self, connection: Connection, action: str, id: int, at: datetime, *, details: str = ""
    ) -> None:
        entry = audit.new_entry(action, f"job {id}", at=at, details=details)
        audit.append(connection, [entry])

    # Work.

    def claim(
        self,
        worker: str,
        *,
        lease: timedelta,
        id: int | None = None,
        kind: str | None = None,
        except_kind: str | None = None,
    ) -> JobRecord | None:
        """Lease a job to a worker: the job `id`, or the ready job with the highest priority.

        Only jobs of a kind, or those of all others. Jobs whose concurrency limit is reached are not
        ready.
        """
        busy: set[str] = set()
        while True:
            with self._database.writing() as connection:
                now = self.now(connection)
                ready = [table.c.state == "queued", _is_due(now)]
                if id is not None:
                    ready.append(table.c.id == id)
                if kind is not None:
                    ready.append(table.c.kind == kind)
                if except_kind is not None:
                    ready.append(table.c.kind != except_kind)
                if busy:
                    key = table.c.concurrency_key
                    ready.append(or_(key.is_(None), key.not_in(busy)))
                first = select(table).where(*ready).order_by(table.c.priority.desc(), table.c.id)
                # Workers that claim at the same time do not wait for each other.
                first = first.limit(1).with_for_update(skip_locked=True)
                row = connection.execute(first).one_or_none()
                if row is None:
                    return None
                if row.concurrency_key is not None and self._is_busy(connection, row):
                    # In a new transaction, so that no worker waits for two locks.
                    busy.add(row.concurrency_key)
                    continue
                values = {
                    "state": "running",
                    "attempts": row.attempts + 1,
                    "token": row.token + 1,
                    "worker": worker,
                    "lease_until": now + lease,
                    "started_at": now,
                    "progress": None,
                    "error": None,
                }
                connection.execute(update(table).where(table.c.id == row.id).values(values))
                self._log(connection, row.id, [f"Attempt {row.attempts + 1} on {worker}."], now)
                return self._job(connection, row.id)

    def _is_busy(self, connection: Connection, row: Row[Any]) -> bool:
        lock_in_transaction(connection, f"job:{row.concurrency_key}")
        has_key = (table.c.concurrency_key == row.concurrency_key) & (table.c.state == "running")
        running = connection.execute(select(func.count()).where(has_key)).scalar_one()
        return bool(running >= row.concurrency_limit)

    def heartbeat(
        self,
        id: int,
        token: int,
        *,
        lease: timedelta,
        progress: JobProgress | None = None,
        lines: Sequence[str] = (),
    ) -> bool:
        """Extend a lease and record progress; return True if cancellation was requested."""
        values: dict[str, Any] = {} if progress is None else {"progress": to_json(progress)}
        with self._database.writing() as connection:
            now = self.now(connection)
            self._write(connection, id, token, lease_until=now + lease, **values)
            self._log(connection, id, lines, now)
            is_cancelled = select(table.c.cancel_requested).where(table.c.id == id)
            return bool(connection.execute(is_cancelled).scalar_one())

    def complete_step(
        self, id: int, token: int, results: Sequence[Any], *, lines: Sequence[str] = ()
    ) -> None:
        """Record the results of the steps completed so far; a later attempt skips these steps."""
        with self._database.writing() as connection:
            self._write(connection, id, token, completed_steps=to_json(results))
            line = f"Step {len(results)} succeeded."
            self._log(connection, id, [*lines, line], self.now(connection))

    def succeed(self, id: int, token: int, result: Any, *, lines: Sequence[str] = ()) -> None:
        """Record the result of a job."""
        self._finish(id, token, "succeeded", [*lines, "Succeeded."], result=to_json(result))

    def mark_cancelled(self, id: int, token: int, *, lines: Sequence[str] = ()) -> None:
        """Record that a running job has stopped after its cancellation was requested."""
        self._finish(id, token, "cancelled", [*lines, "Cancelled."])

    def fail(
        self,
        id: int,
        token: int,
        error: str,
        *,
        retry_after: timedelta | None,
        lines: Sequence[str] = (),
    ) -> JobState:
        """Record why an attempt failed, and queue the next attempt if any is left.

        Without `retry_after` the job is not retried.
        """
        error = error[:_MAX_ERROR_LENGTH]
        if retry_after is None:
            self._finish(id, token, "failed", [*lines, f"Failed: {error}"], error=error)
            return "failed"
        with self._database.writing() as connection:
            now = self.now(connection)
            limits = select(table.c.attempts, table.c.max_attempts).where(table.c.id == id)
            attempts, maximum = connection.execute(limits).one()
            values: dict[str, Any] = {**_NOT_RUNNING, "error": error}
            state: JobState = "queued" if attempts < maximum else "dead"
            if state == "queued":
                values["not_before"] = now + retry_after
                line = f"Next attempt in {retry_after.total_seconds():.1f} s."
            else:
                values["finished_at"] = now
                line = "No attempts are left."
            self._write(connection, id, token, state=state, **values)
            self._log(connection, id, [*lines, f"Failed: {error}", line], now)
            self._notify(connection)
        return state

    def release(self, id: int, token: int) -> None:
        """Return an unfinished job to the queue, without counting the attempt."""
        with self._database.writing() as connection:
            now = self.now(connection)
            values = {**_NOT_RUNNING, "state": "queued", "not_before": now}
            self._write(connection, id, token, attempts=table.c.attempts - 1, **values)
            self._log(connection, id, ["Returned to the queue by a worker that is stopping."], now)
            self._notify(connection)

    def recover(self) -> int:
        """Queue jobs again whose leases have expired, and return their number."""
        with self._database.reading() as connection:
            is_expired = (table.c.state == "running") & (table.c.lease_until < self.now(connection))
            # Usually there are none, and waiting for the write lock can be avoided.
            if connection.execute(select(table.c.id).where(is_expired).limit(1)).first() is None:
                return 0
        with self._database.writing() as connection:
            now = self.now(connection)
            expired = select(table).where(is_expired).order_by(table.c.id).limit(_PRUNE_BATCH)
            rows = connection.execute(expired.with_for_update(skip_locked=True)).all()
            for row in rows:
                values: dict[str, Any] = dict(_NOT_RUNNING)
                if row.cancel_requested:
                    values |= {"state": "cancelled", "finished_at": now}
                elif row.attempts < row.max_attempts:
                    values |= {"state": "queued", "not_before": now}
                else:
                    values |= {"state": "dead", "finished_at": now}
                    values["error"] = f"The worker {row.worker} vanished while it ran this job."
                connection.execute(update(table).where(table.c.id == row.id).values(values))
                line = f"The worker {row.worker} vanished; the job is {values['state']}."
                self._log(connection, row.id, [line], now)
            if rows:
                self._notify(connection)
        return len(rows)

    def _finish(
        self, id: int, token: int, state: JobState, lines: Sequence[str], **values: Any
    ) -> None:
        with self._database.writing() as connection:
            now = self.now(connection)
            values |= {**_NOT_RUNNING, "state": state, "finished_at": now}
            self._write(connection, id, token, **values)
            self._log(connection, id, lines, now)
            # Another job may have waited for this one because of a concurrency limit.
            self._notify(connection)

    def _write(self, connection: Connection, id: int, token: int, **values: Any) -> None:
        """Update a job, or raise LeaseLost if `token` is not the one of its current attempt."""
        is_leased = (table.c.id == id) & (table.c.token == token) & (table.c.state == "running")
        if not connection.execute(update(table).where(is_leased).values(values)).rowcount:
            raise LeaseLost(id)

    # Reads.

    def job(self, id: int) -> JobRecord | None:
        with self._database.reading() as connection:
            row = connection.execute(select(table).where(table.c.id == id)).one_or_none()
        return None if row is None else _job_record(row)

    def list(
        self,
        *,
        states: Collection[JobState] = (),
        kind: str | None = None,
        before: int | None = None,
        limit: int,
    ) -> tuple[JobRecord, ...]:
        """Jobs, newest first; `before` limits them to lower ids, to continue an earlier list."""
        conditions: list[ColumnElement[bool]] = []
        if states:
            conditions.append(table.c.state.in_(states))
        if kind is not None:
            conditions.append(table.c.kind == kind)
        if before is not None:
            conditions.append(table.c.id < before)
        statement = select(table).where(*conditions).order_by(table.c.id.desc()).limit(limit)
        with self._database.reading() as connection:
            return tuple(map(_job_record, connection.execute(statement)))

    def log(self, id: int) -> tuple[JobLogLine, ...]:
        """The last lines of a job's log."""
        columns = select(job_log.c.at, job_log.c.text).where(job_log.c.job == id)
        with self._database.reading() as connection:
            rows = connection.execute(columns.order_by(job_log.c.number)).all()
        return tuple(JobLogLine(at=at, text=line) for at, line in rows)

    def counts(self) -> dict[JobState, int]:
        """The number of jobs by state."""
        statement = select(table.c.state, func.count().label("jobs")).group_by(table.c.state)
        with self._database.reading() as connection:
            return {row.state: row.jobs for row in connection.execute(statement)}

    def ready(self) -> int:
        """The number of queued jobs that are due."""
        with self._database.reading() as connection:
            is_ready = (table.c.state == "queued") & _is_due(self.now(connection))
            return int(connection.execute(select(func.count()).where(is_ready)).scalar_one())

    def next_due(self) -> datetime | None:
        """When the next queued job is due, or None if no job waits."""
        statement = select(func.min(table.c.not_before)).where(table.c.state == "queued")
        with self._database.reading() as connection:
            found: datetime | None = connection.execute(statement).scalar()
        return found

    def prune(self, older_than: timedelta) -> int:
        """Delete jobs that finished over `older_than` ago, with their logs; return their number."""
        deleted = 0
        while True:
            with self._database.writing() as connection:
                is_old = table.c.state.in_(FINISHED_STATES) & (
                    table.c.finished_at < self.now(connection) - older_than
                )
                ids = connection.scalars(select(table.c.id).where(is_old).limit(_PRUNE_BATCH)).all()
                connection.execute(delete(job_log).where(job_log.c.job.in_(ids)))
                connection.execute(delete(table).where(table.c.id.in_(ids)))
            deleted += len(ids)
            if len(ids) < _PRUNE_BATCH:
                return deleted

    def _job(self, connection: Connection, id: int) -> JobRecord:
        return _job_record(connection.execute(select(table).where(table.c.id == id)).one())

    def _notify(self, connection: Connection) -> None:
        """Notify waiting workers when this transaction commits; on SQLite, workers poll."""
        if self.notifies:
            connection.execute(select(func.pg_notify(CHANNEL, "")))

    def _log(self, connection: Connection, id: int, lines: Iterable[str], at: datetime) -> None:
        lines = [line[:_MAX_LINE_LENGTH] for line in lines][-MAX_LOG_LINES:]
        if not lines:
            return
        last = select(func.max(job_log.c.number)).where(job_log.c.job == id)
        start = (connection.execute(last).scalar() or 0) + 1
        rows = [
            {"job": id, "number": number, "at": at, "text": line}
            for number, line in enumerate(lines, start)
        ]
        connection.execute(job_log.insert(), rows)
        first_kept = start + len(rows) - MAX_LOG_LINES
        if first_kept > 1:
            is_old = (job_log.c.job == id) & (job_log.c.number < first_kept)
            connection.execute(delete(job_log).where(is_old))


class ScheduleRegistry:
    """Reads and writes schedules, and creates jobs at their due times."""

    def __init__(self, database: Database, jobs: JobRegistry) -> None:
        self._database = database
        self._jobs = jobs

    def add(self, record: ScheduleRecord) -> bool:
        """Add a schedule; False if its name is taken."""
        row = msgspec.structs.asdict(record)
        row["arguments"] = to_json(record.arguments)
        with self._database.writing() as connection:
            statement = insert_if_new(connection.dialect.name, schedule)
            is_new = connection.execute(statement, row).first() is not None
            if is_new:
                details = f"{record.cron} {record.timezone}: {record.kind}"
                self._audit(connection, "schedule add", record.name, details=details, after=record)
            return is_new

    def schedule(self, name: str) -> ScheduleRecord | None:
        with self._database.reading() as connection:
            found = select(schedule).where(schedule.c.name == name)
            row = connection.execute(found).one_or_none()
        return None if row is None else _schedule_record(row)

    def list(self) -> tuple[ScheduleRecord, ...]:
        """All schedules by name."""
        with self._database.reading() as connection:
            rows = connection.execute(select(schedule).order_by(schedule.c.name)).all()
        return tuple(map(_schedule_record, rows))

    def due(self, now: datetime) -> tuple[ScheduleRecord, ...]:
        """The schedules that are due."""
        is_due = ~schedule.c.paused & (schedule.c.next_due <= now)
        with self._database.reading() as connection:
            rows = connection.execute(select(schedule).where(is_due)).all()
        return tuple(map(_schedule_record, rows))

    def next_due(self) -> datetime | None:
        """When the next schedule is due, or None if there is none."""
        statement = select(func.min(schedule.c.next_due)).where(~schedule.c.paused)
        with self._database.reading() as connection:
            found: datetime | None = connection.execute(statement).scalar()
        return found

    def remove(self, name: str) -> bool:
        """Remove a schedule and the record of its due times; its jobs stay."""
        with self._database.writing() as connection:
            statement = delete(schedule).where(schedule.c.name == name).returning(*schedule.c)
            row = connection.execute(statement).one_or_none()
            connection.execute(delete(schedule_run).where(schedule_run.c.schedule == name))
            if row is not None:
                self._audit(connection, "schedule remove", name, before=_schedule_record(row))
        return row is not None

    def pause(self, name: str, *, paused: bool, next_due: datetime | None = None) -> None:
        """Pause a schedule, or resume it with its next due time."""
        values: dict[str, Any] = {"paused": paused}
        if next_due is not None:
            values["next_due"] = next_due
        with self._database.writing() as connection:
            connection.execute(update(schedule).where(schedule.c.name == name).values(values))
            self._audit(connection, "schedule pause" if paused else "schedule resume", name)

    def _audit(
        self,
        connection: Connection,
        action: str,
        name: str,
        *,
        details: str = "",
        before: ScheduleRecord | None = None,
        after: ScheduleRecord | None = None,
    ) -> None:
        now = self._jobs.now(connection)
        entry = audit.new_entry(action, name, at=now, details=details, before=before, after=after)
        audit.append(connection, [entry])

    def reschedule(self, record: ScheduleRecord) -> None:
        """Set the cron expression, time zone and next due time of a schedule."""
        names = ("cron", "timezone", "next_due")
        values = {name: getattr(record, name) for name in names}
        with self._database.writing() as connection:
            named = update(schedule).where(schedule.c.name == record.name)
            connection.execute(named.values(values))
            details = f"{record.cron} {record.timezone}"
            self._audit(connection, "schedule change", record.name, details=details)

    def fire(
        self,
        record: ScheduleRecord,
        requests: Sequence[tuple[datetime, JobRequest | None]],
        *,
        next_due: datetime,
    ) -> tuple[JobRecord, ...]:
        """Create the jobs for due times; a due time whose request is None is skipped.

        Each job is created once, even if several workers try. Does nothing if another worker was
        faster, or if the schedule was paused or removed.
        """
        with self._database.writing() as connection:
            is_same = (schedule.c.name == record.name) & (schedule.c.next_due == record.next_due)
            values: dict[str, Any] = {"next_due": next_due, "last_due": requests[-1][0]}
            advance = update(schedule).where(is_same, ~schedule.c.paused).values(values)
            if not connection.execute(advance).rowcount:
                return ()
            created = []
            for due_at, request in requests:
                run = {"schedule": record.name, "due_at": due_at, "job": None}
                statement = insert_if_new(connection.dialect.name, schedule_run)
                is_new = connection.execute(statement, run).first() is not None
                if is_new and request is not None:
                    job, _ = self._jobs.insert(connection, request)
                    created.append(job)
                    is_run = (schedule_run.c.schedule == record.name) & (
                        schedule_run.c.due_at == due_at
                    )
                    connection.execute(update(schedule_run).where(is_run).values(job=job.id))
            if created:
                is_schedule = schedule.c.name == record.name
                connection.execute(
                    update(schedule).where(is_schedule).values(last_job=created[-1].id)
                )
        return tuple(created)

    def runs(self, name: str) -> tuple[tuple[datetime, int | None], ...]:
        """The due times that were handled and the ids of their jobs, newest first."""
        columns = select(schedule_run.c.due_at, schedule_run.c.job)
        statement = columns.where(schedule_run.c.schedule == name)
        with self._database.reading() as connection:
            rows = connection.execute(statement.order_by(schedule_run.c.due_at.desc())).all()
        return tuple((due_at, job) for due_at, job in rows)

    def prune(self, before: datetime) -> None:
        """Delete the records of due times before a time."""
        is_old = schedule_run.c.due_at < before
        with self._database.writing() as connection:
            connection.execute(delete(schedule_run).where(is_old))


def _is_due(now: datetime) -> ColumnElement[bool]:
    """Whether a queued job may begin.

    If the clock was set back, the times of queued jobs may be in the future. A job that was to
    begin at once, or whose last attempt began in the future, does not wait for the clock.
    """
    return or_(
        table.c.not_before <= now,
        table.c.not_before <= table.c.created_at,
        table.c.started_at > now,
    )


def _job_record(row: Row[Any]) -> JobRecord:
    values = dict(row._mapping)
    for name in _JSON_COLUMNS:
        values[name] = None if values[name] is None else from_json(values[name], Any)
    values["completed_steps"] = tuple(values["completed_steps"])
    progress = values["progress"]
    values["progress"] = None if progress is None else from_json(progress, JobProgress)
    return JobRecord(**values)


def _schedule_record(row: Row[Any]) -> ScheduleRecord:
    values = dict(row._mapping)
    values["arguments"] = from_json(values["arguments"], Any)
    return ScheduleRecord(**values)
