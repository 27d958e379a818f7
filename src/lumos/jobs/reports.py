"""The reports of `lumos job`, `run`, `worker` and `schedule`."""

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
    """A job in a list; `steps` and `completed_steps` are numbers of steps of a chain.

    `problems` are the problems that its commands reported, such as files that could not be read.
    Commands can succeed in spite of problems.
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
        return cls(**_summary_fields(job))


class JobReport(JobSummary, frozen=True, kw_only=True):
    """The report of `lumos job show`, `cancel`, `retry` and `lumos run`.

    `result` is the report of the command that the job ran, or the reports of all completed steps.
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
        """The report of a job with the lines of its log."""
        result = job.result
        if result is None and job.completed_steps:
            result = {"steps": list(job.completed_steps)}
        return cls(
            **_summary_fields(job),
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
    """The report of `lumos job list`; `counts` are the numbers of all jobs by state."""

    format_version: str = FORMAT_VERSION
    jobs: tuple[JobSummary, ...]
    counts: dict[JobState, int]


class WorkerReport(Report, frozen=True, kw_only=True):
    """The report of `lumos worker`: the numbers of attempts by outcome.

    `lost` are jobs that other workers took over, and `released` jobs that were returned to the
    queue when the worker was stopped. `scheduled` is the number of jobs created from schedules.
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
        return cls(**_schedule_fields(record))


class ScheduleReport(ScheduleSummary, frozen=True, kw_only=True):
    """The report of `lumos schedule add`, `pause` and `resume`."""

    format_version: str = FORMAT_VERSION

    @classmethod
    def of(cls, record: ScheduleRecord) -> "ScheduleReport":
        return cls(**_schedule_fields(record))


class ScheduleListReport(Report, frozen=True, kw_only=True):
    """The report of `lumos schedule list`."""

    format_version: str = FORMAT_VERSION
    schedules: tuple[ScheduleSummary, ...]


class ScheduleRemovedReport(Report, frozen=True, kw_only=True):
    """The report of `lumos schedule remove`."""

    format_version: str = FORMAT_VERSION
    name: str


def _summary_fields(job: JobRecord) -> dict[str, Any]:
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
        problems = report.get("problems")
        for problem in problems if isinstance(problems, list) else ():
            if isinstance(problem, str):
                yield problem
            elif not problem.get("remark") and problem.get("severity") != "remark":
                location = problem.get("path") or problem.get("location") or ""
                line = f":{problem['line']}" if problem.get("line") else ""
                yield f"{location}{line}: {problem.get('reason')}".removeprefix(": ")


def _schedule_fields(record: ScheduleRecord) -> dict[str, Any]:
    values = {name: getattr(record, name) for name in record.__struct_fields__}
    return values | {"next_due": None if record.paused else record.next_due}
