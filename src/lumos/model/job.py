"""Jobs in the registry of the store, and schedules that create jobs."""

from datetime import datetime
from typing import Any, Final, Literal

import msgspec

# queued: waits for a worker, also between attempts. failed: another attempt would fail too. dead:
# all attempts failed.
JobState = Literal["queued", "running", "succeeded", "failed", "cancelled", "dead"]
FINISHED_STATES: Final[tuple[JobState, ...]] = ("succeeded", "failed", "cancelled", "dead")
# What to do about due times that were missed while no worker was running.
CatchUp = Literal["none", "last", "all"]


class JobProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The current step of a running job, and its share if known."""

    step: str
    files: int = 0
    share: float | None = None
    unit: str = "files"


class JobRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A job to put into the registry.

    Jobs with a higher priority run first. Of all jobs with the same `concurrency_key`, at most
    `concurrency_limit` run at the same time. A second request with the same `idempotency_key`
    returns the existing job. `trace` are the headers of the trace that the job continues.
    """

    kind: str
    arguments: dict[str, Any]
    requested_by: str
    priority: int = 0
    max_attempts: int = 1
    not_before: datetime | None = None
    time_limit: int | None = None
    idempotency_key: str | None = None
    concurrency_key: str | None = None
    concurrency_limit: int = 1
    trace: dict[str, str] | None = None


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A job in the registry.

    `token` increases with each attempt: only the worker with the current token may write.
    `completed_steps` are the results of the finished steps of a chain.
    """

    id: int
    kind: str
    arguments: dict[str, Any]
    state: JobState
    priority: int
    attempts: int
    max_attempts: int
    not_before: datetime
    time_limit: int | None
    idempotency_key: str | None
    concurrency_key: str | None
    concurrency_limit: int
    progress: JobProgress | None
    completed_steps: tuple[Any, ...]
    result: Any
    error: str | None
    token: int
    worker: str | None
    lease_until: datetime | None
    cancel_requested: bool
    requested_by: str
    trace: dict[str, str] | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class JobLogLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a job's log."""

    at: datetime
    text: str


class ScheduleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule: a job is due at the times of a cron expression in a time zone.

    `next_due` never decreases, so that no due time is repeated if the clock is set back.
    """

    name: str
    kind: str
    arguments: dict[str, Any]
    cron: str
    timezone: str
    jitter: int
    catch_up: CatchUp
    paused: bool
    next_due: datetime
    last_due: datetime | None
    last_job: int | None
    priority: int
    max_attempts: int
    time_limit: int | None
    created_by: str
    created_at: datetime
