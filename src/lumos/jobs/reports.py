"""What `lumos job`, `run`, `worker` and `schedule` report."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any, Final

from lumos.jobs.kinds import CHAIN
from lumos.model.job import (
    CatchUp,
    JobLogLine,
    JobProgress,
    JobRecord,
    JobState,
    ScheduleRecord,
)
from lumos.model.report import FORMAT_VERSION, Report

_MAX_PROBLEMS: Final = 20


class JobSummary(Report, frozen=True, kw_only=True):
    """A job in a list; `steps` and `completed_steps` count the steps of a chain.

    `problems` are those that its commands reported although they succeeded, such as files that
    could not be read.
    """

    id: int
    kind: str
    state: JobState
    priority: int
    attempts: int
    max_attempts: int
    steps: int
    completed_steps: int
    problems: tuple[str, ...]
    progress: JobProgress | None
    error: str | None
    requested_by: str
    created_at: datetime
    not_before: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @classmethod
    def of(cls, job: JobRecord) -> "JobSummary":
        """The summary of a job."""
        return cls(**_summary(job))


class JobReport(JobSummary, frozen=True, kw_only=True):
    """The report of `lumos job show`, `cancel`, `retry` and `lumos run`.

    `result` is the report of the command that the job ran, or those of all steps so far.
    """

    format_version: str = FORMAT_VERSION
    arguments: dict[str, Any]
    time_limit: int | None
    idempotency_key: str | None
    concurrency_key: str | None
    concurrency_limit: int
    cancel_requested: bool
    worker: str | None
    lease_until: datetime | None
    result: Any
    log: tuple[JobLogLine, ...]

    @classmethod
    def with_log(cls, job: JobRecord, log: tuple[JobLogLine, ...]) -> "JobReport":
        """Everything about a job."""
        result = job.result
        if result is None and job.completed_steps:
            result = {"steps": list(job.completed_steps)}
        return cls(
            **_summary(job),
            arguments=job.arguments,
            time_limit=job.time_limit,
            idempotency_key=job.idempotency_key,
            concurrency_key=job.concurrency_key,
            concurrency_limit=job.concurrency_limit,
            cancel_requested=job.cancel_requested,
            worker=job.worker,
            lease_until=job.lease_until,
            result=result,
            log=log,
        )


class JobListReport(Report, frozen=True, kw_only=True):
    """The report of `lumos job list`; `counts` are those of all jobs by state."""

    format_version: str = FORMAT_VERSION
    jobs: tuple[JobSummary, ...]
    counts: dict[JobState, int]


class WorkerReport(Report, frozen=True, kw_only=True):
    """The report of `lumos worker`: how many attempts ended how.

    `scheduled` counts jobs that were made of due schedules, `lost` jobs that other workers took
    over, and `released` those that were given back when the worker was stopped.
    """

    format_version: str = FORMAT_VERSION
    succeeded: int
    failed: int
    retried: int
    cancelled: int
    lost: int
    released: int
    scheduled: int


class ScheduleSummary(Report, frozen=True, kw_only=True):
    """A schedule; `next_due` is null while it is paused."""

    name: str
    kind: str
    arguments: dict[str, Any]
    cron: str
    timezone: str
    jitter: int
    catch_up: CatchUp
    paused: bool
    next_due: datetime | None
    last_due: datetime | None
    last_job: int | None
    priority: int
    max_attempts: int
    time_limit: int | None
    created_by: str
    created_at: datetime

    @classmethod
    def of(cls, record: ScheduleRecord) -> "ScheduleSummary":
        """The summary of a schedule."""
        return cls(**_schedule(record))


class ScheduleReport(ScheduleSummary, frozen=True, kw_only=True):
    """The report of `lumos schedule add`, `pause` and `resume`."""

    format_version: str = FORMAT_VERSION

    @classmethod
    def of(cls, record: ScheduleRecord) -> "ScheduleReport":
        return cls(**_schedule(record))


class ScheduleListReport(Report, frozen=True, kw_only=True):
    """The report of `lumos schedule list`."""

    format_version: str = FORMAT_VERSION
    schedules: tuple[ScheduleSummary, ...]


class ScheduleRemovedReport(Report, frozen=True, kw_only=True):
    """The report of `lumos schedule remove`."""

    format_version: str = FORMAT_VERSION
    name: str


def _summary(job: JobRecord) -> dict[str, Any]:
    names = (
        "id", "kind", "state", "priority", "attempts", "max_attempts", "progress", "error",
        "requested_by", "created_at", "not_before", "started_at", "finished_at",
    )  # fmt: skip
    steps = len(job.arguments["steps"]) if job.kind == CHAIN else 1
    completed = steps if job.state == "succeeded" else len(job.completed_steps)
    values = {name: getattr(job, name) for name in names}
    results = [job.result] if job.result is not None else list(job.completed_steps)
    problems = tuple(islice(_problems(results), _MAX_PROBLEMS))
    return values | {"steps": steps, "completed_steps": completed, "problems": problems}


def _problems(reports: Iterable[Any]) -> Iterator[str]:
    """The problems in the reports of commands, without remarks."""
    for report in reports:
        if not isinstance(report, dict):
            continue
        yield from _problems(report.get("steps") or ())
        found = report.get("problems")
        for problem in found if isinstance(found, list) else ():
            if isinstance(problem, str):
                yield problem
            elif not problem.get("remark") and problem.get("severity") != "remark":
                place = problem.get("path") or problem.get("place") or ""
                line = f":{problem['line']}" if problem.get("line") else ""
                yield f"{place}{line}: {problem.get('reason')}".removeprefix(": ")


def _schedule(record: ScheduleRecord) -> dict[str, Any]:
    values = {name: getattr(record, name) for name in record.__struct_fields__}
    return values | {"next_due": None if record.paused else record.next_due}
