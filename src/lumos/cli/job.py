"""lumos job, run and worker"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from lumos.cli.options import (
    AsJson,
    CommonOptions,
    ConfigFile,
    StorePath,
    argument,
    limit_option,
    with_options,
)
from lumos.cli.screen import Table, stdout, steps
from lumos.cli.text import is_quiet, print_line, print_problem
from lumos.rendering.text import format_time, plural, shorten

if TYPE_CHECKING:
    from lumos.jobs.reports import JobListReport, JobReport, JobSummary, WorkerReport

_MAX_ERROR_LENGTH: Final = 60
_MAX_SHOWN_LINES: Final = 20

app = typer.Typer(help="Show, stop and repeat jobs.", no_args_is_help=True)
run_app = typer.Typer()
worker_app = typer.Typer()

JobId = Annotated[int, argument("JOB", "The number of a job.", min=1)]
Steps = Annotated[
    list[str] | None,
    argument(
        "STEP...",
        "KIND or KIND:VALUE: ingest:PATH, ingest:FILE.yaml (its sources), profile:DATASET, "
        "lineage:PATH, usage:FILE, version:auto, cost-record:PERIOD, sync:CATALOG, "
        "export:FILE, remind:NAME.",
    ),
]
Attempts = Annotated[
    int | None,
    typer.Option(
        "--max-attempts", metavar="N", min=1, max=100, help="The maximum number of attempts."
    ),
]
TimeLimit = Annotated[
    int | None,
    typer.Option("--time-limit", metavar="SECONDS", min=1, help="Stop it after this time."),
]


@app.command(
    "list",
    epilog="Examples:\n\nlumos job list --state failed --state dead\n\nlumos job list --json",
)
@with_options
def list_jobs(
    options: CommonOptions,
    state: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STATE",
            help="Only in this state: queued, running, succeeded, failed, cancelled or dead. "
            "Repeatable.",
        ),
    ] = None,
    kind: Annotated[str | None, typer.Option(metavar="KIND", help="Only of this kind.")] = None,
    before: Annotated[
        int | None, typer.Option(metavar="JOB", min=1, help="Only jobs older than this one.")
    ] = None,
    limit: Annotated[int, limit_option("Show at most this many.", maximum=1_000)] = 50,
) -> None:
    """List jobs, newest first."""
    report = options.lumos.jobs.list(states=state or (), kind=kind, before=before, limit=limit)
    options.print(report, _print_list)


@app.command(epilog="Example: lumos job show 12")
@with_options
def show(options: CommonOptions, job: JobId) -> None:
    """Show a job with its progress and the end of its log; --json also prints its result."""
    options.print(options.lumos.jobs.show(job), _print_job)


@app.command(epilog="Example: lumos job cancel 12")
@with_options
def cancel(options: CommonOptions, job: JobId) -> None:
    """Cancel a queued job, or stop a running one together with its Spark jobs."""
    options.print(options.lumos.jobs.cancel(job), _print_cancelled)


@app.command(epilog="Example: lumos job retry 12")
@with_options
def retry(options: CommonOptions, job: JobId) -> None:
    """Queue a failed, dead or cancelled job again. Finished steps are not repeated."""
    options.print(options.lumos.jobs.retry(job), print_queued)


@run_app.command(
    epilog="Examples:\n\n"
    "lumos run ingest:sources.yaml lineage:models/ version:auto export:nightly.json\n\n"
    "lumos run --resume 12\n\n"
    "lumos run --detach ingest"
)
@with_options
def run(
    options: CommonOptions,
    step: Steps = None,
    resume: Annotated[
        int | None,
        typer.Option(metavar="JOB", min=1, help="Continue a job with its first unfinished step."),
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Queue the job for a worker and return at once.")
    ] = False,
    max_attempts: Attempts = None,
    time_limit: TimeLimit = None,
) -> None:
    """Run several operations one after the other, as one job.

    A failed step ends the job; --resume continues with this step. Exits with 1 if the job did not
    succeed. Without --detach, the job runs here and is not repeated.
    """
    with steps() as progress:
        report = options.lumos.run(
            *(step or ()),
            resume=resume,
            detach=detach,
            max_attempts=max_attempts,
            time_limit=time_limit,
            progress=progress,
        )
    options.print(report, print_queued if detach else _print_finished)
    if not detach and report.state != "succeeded":
        raise typer.Exit(1)


@worker_app.command(
    epilog="Examples:\n\nlumos worker --concurrency 2\n\nlumos worker --once --json"
)
def worker(
    config: ConfigFile = None,
    store: StorePath = None,
    once: Annotated[
        bool, typer.Option("--once", help="Run the jobs that are ready and exit.")
    ] = False,
    concurrency: Annotated[
        int, typer.Option(metavar="N", min=1, max=64, help="The number of jobs to run at a time.")
    ] = 1,
    json: AsJson = False,
) -> None:
    """Run jobs, and create jobs of schedules that are due.

    Any number of workers can use one store. After Ctrl-C or SIGTERM, running jobs are finished; a
    second signal stops them and returns them to the queue. With --once, exits with 1 if a job
    failed.
    """
    from lumos.tracing import start_tracing

    options = CommonOptions(config=config, store=store, json=json)
    flush_spans = start_tracing("worker", os.environ)
    stop, abort = threading.Event(), threading.Event()

    def print_outcome(job: "JobSummary", outcome: str) -> None:
        if not is_quiet():
            reason = f": {job.error}" if job.error else ""
            problems = f", {_problem_count(job)}: lumos job show {job.id}" if job.problems else ""
            print_line(f"job {job.id}  {job.kind}  {outcome}{reason}{problems}", err=True)

    with _handle_signals(stop, abort):
        report = options.lumos.jobs.work(
            once=once, concurrency=concurrency, stop=stop, abort=abort, on_outcome=print_outcome
        )
    flush_spans()
    options.print(report, _print_worked)
    if once and report.failed:
        raise typer.Exit(1)


@contextmanager
def _handle_signals(stop: threading.Event, abort: threading.Event) -> Iterator[None]:
    """Handle signals: the first lets running jobs finish, the second stops them."""

    def handle(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            abort.set()
            return
        stop.set()
        if not is_quiet():
            os.write(
                2, b"lumos: Stopping after the running jobs; press Ctrl-C again to stop them.\n"
            )

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print_list(report: "JobListReport") -> None:
    console = stdout()
    table = Table(
        "JOB", "KIND", "STATE", ">ATTEMPT", "CREATED (UTC)", "REQUESTED BY", "",
        empty="No jobs. Put one into the queue with: lumos run --detach STEP",
        compact=True,
    )  # fmt: skip
    for job in report.jobs:
        table.add(
            str(job.id),
            job.kind,
            job.state,
            f"{job.attempts}/{job.max_attempts}",
            format_time(job.created_at),
            job.requested_by,
            _remark(job),
        )
    console.print(table)
    if report.counts:
        counts = (f"{count:,} {state}" for state, count in sorted(report.counts.items()))
        console.print()
        console.print(", ".join(counts))


def _remark(job: "JobSummary") -> str:
    if job.error:
        return shorten(job.error, _MAX_ERROR_LENGTH)
    if job.state == "running" and job.progress is not None:
        share = "" if job.progress.share is None else f" {job.progress.share:.0%}"
        return f"{job.progress.step}{share}"
    done = f"step {job.completed_steps}/{job.steps}" if job.steps > 1 else ""
    problems = _problem_count(job) if job.problems else ""
    return ", ".join(filter(None, (done, problems)))


def _problem_count(job: "JobSummary") -> str:
    return plural(len(job.problems), "problem")


def _print_job(report: "JobReport") -> None:
    console = stdout()
    console.print(f"Job {report.id}  {report.kind}  {report.state}", style="bold")
    details: dict[str, Any] = {
        "requested by": report.requested_by,
        "created": format_time(report.created_at),
        "started": format_time(report.started_at) if report.started_at else None,
        "finished": format_time(report.finished_at) if report.finished_at else None,
        "next attempt": format_time(report.not_before)
        if report.state == "queued" and report.attempts
        else None,
        "attempts": f"{report.attempts} of {report.max_attempts}",
        "steps": f"{report.completed_steps} of {report.steps}" if report.steps > 1 else None,
        "worker": report.worker,
        "error": report.error,
    }
    for name, value in details.items():
        if value is not None:
            console.print(f"{name:<13} {value}")
    for problem in report.problems:
        print_problem(problem)
    if report.log:
        console.print()
    for line in report.log[-_MAX_SHOWN_LINES:]:
        console.print(f"{format_time(line.at)}  {line.text}")


def print_queued(report: "JobReport") -> None:
    """Print the state of a job that was put into the queue."""
    stdout().print(f"Job {report.id} is {report.state}. See it with: lumos job show {report.id}")


def _print_cancelled(report: "JobReport") -> None:
    if report.state == "cancelled":
        stdout().print(f"Job {report.id} is cancelled.")
    else:
        stdout().print(f"Job {report.id} is running; its worker stops it within seconds.")


def _print_finished(report: "JobReport") -> None:
    done = f"{report.completed_steps} of {plural(report.steps, 'step')}" if report.steps > 1 else ""
    problems = f", {_problem_count(report)}" if report.problems else ""
    stdout().print(f"Job {report.id} {report.state}{': ' if done else ''}{done}{problems}.")
    for problem in report.problems:
        print_problem(problem)
    if report.state != "succeeded":
        reason = report.error or f"the job was {report.state}"
        print_problem(f"{reason.rstrip('.')}. Continue with: lumos run --resume {report.id}")


def _print_worked(report: "WorkerReport") -> None:
    parts = [f"{report.succeeded:,} succeeded", f"{report.failed:,} failed"]
    for name in ("retried", "cancelled", "lost", "released", "scheduled"):
        if count := getattr(report, name):
            parts.append(f"{count:,} {name}")
    stdout().print(f"Jobs: {', '.join(parts)}.")
