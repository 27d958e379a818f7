"""Jobs from lineage reports. A job is a catalog item that includes its runs.

A report is merged into the item: values that the reporter no longer reports are removed, values of
other reporters stay, and runs are added up to a maximum.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, delete, select

from lumos.model.catalog import Job
from lumos.model.json_codec import from_json, to_json
from lumos.model.lineage import JobRun
from lumos.store import tables
from lumos.store.database import lock_in_transaction
from lumos.store.statements import among, replace

KIND: Final = "jobs"
# The number of latest runs of a job to keep.
MAX_RUNS: Final = 200


def replace_jobs(
    connection: Connection, reporter: int, jobs: Sequence[Job], *, at: datetime
) -> set[str]:
    """Replace the jobs of a reporter; return the URNs of changed jobs."""
    before = _reports_by(connection, reporter)
    changed = add_jobs(connection, reporter, jobs, at=at)
    reported = {job.urn for job in jobs}
    for urn, job in before.items():
        if urn not in reported:
            _withdraw_job(connection, reporter, job, at=at)
            changed.add(urn)
    return changed


def add_jobs(
    connection: Connection, reporter: int, jobs: Sequence[Job], *, at: datetime
) -> set[str]:
    """Add or update jobs of a reporter; return the URNs of changed jobs."""
    new = {job.urn: job for job in jobs}
    changed: set[str] = set()
    if not new:
        return changed
    _lock(connection, new)
    before = _reports_by(connection, reporter)
    stored_jobs = _stored_jobs(connection, new)
    others = _reports_by_others(connection, reporter, new)
    for urn, job in new.items():
        report = without_runs(job)
        stored = stored_jobs.get(urn)
        after = merge_job(before.get(urn), stored, report, others.get(urn, ()))
        runs = merge_runs(() if stored is None else stored.runs, job.runs)
        after = msgspec.structs.replace(after, runs=runs)
        if after != stored:
            _save_job(connection, after, at=at)
            changed.add(urn)
        if report != before.get(urn):
            row = {"reporter": reporter, "job": urn, "body": to_json(report)}
            connection.execute(replace(connection.dialect.name, tables.lineage_job), row)
    return changed


def merge_job(base: Job | None, theirs: Job | None, ours: Job, others: Sequence[Job] = ()) -> Job:
    """Merge a new report of a job (`ours`) into the stored job (`theirs`).

    Values that only the reporter's last report (`base`) had are removed, unless the last reports
    of other reporters (`others`) have them as well.
    """
    if theirs is None:
        return ours
    empty_job = Job(urn=ours.urn, name=ours.name, platform=ours.platform)
    fields: dict[str, Any] = {}
    for name in Job.__struct_fields__:
        previous, current, new = (getattr(job, name) for job in (base or empty_job, theirs, ours))
        other_values = [getattr(job, name) for job in others]
        if name == "runs":
            continue
        if isinstance(new, tuple):
            removed = {
                value
                for value in previous
                if not any(value in values for values in (new, *other_values))
            }
            fields[name] = tuple(
                dict.fromkeys((*(value for value in current if value not in removed), *new))
            )
        elif isinstance(new, dict):
            removed = {
                key for key in previous if not any(key in values for values in (new, *other_values))
            }
            changed = {key: new[key] for key in new if new[key] != previous.get(key)}
            fields[name] = {
                key: text for key, text in current.items() if key not in removed
            } | changed
        elif new == previous:
            fields[name] = current
        else:
            default = getattr(empty_job, name)
            values = (value for value in (new, *other_values) if value != default)
            fields[name] = next(values, default)
    return msgspec.structs.replace(theirs, **fields)


def merge_runs(known: Iterable[JobRun], new: Iterable[JobRun]) -> tuple[JobRun, ...]:
    """Merge runs by id, latest last; the same run may be reported twice and in any order."""
    before = tuple(known)
    runs = {run.run_id: run for run in before}
    for run in new:
        id = run.run_id
        runs[id] = _merge_run(runs[id], run) if id in runs else run
    if tuple(runs.values()) == before:
        # Without new runs, do not drop any of an imported job with more than MAX_RUNS.
        return before
    ordered = sorted(runs.values(), key=lambda run: (run.started_at, run.run_id))
    return tuple(ordered[-MAX_RUNS:])


def _merge_run(known: JobRun, new: JobRun) -> JobRun:
    """Merge two reports of a run: an ended run does not restart, and the later end is used."""
    ends = [run.ended_at for run in (known, new) if run.ended_at is not None]
    if new.state == "RUNNING":
        state = known.state
    elif known.state == "RUNNING" or known.ended_at is None:
        state = new.state
    else:
        is_later = new.ended_at is not None and new.ended_at >= known.ended_at
        state = new.state if is_later else known.state
    return JobRun(
        run_id=known.run_id,
        job=known.job,
        started_at=min(known.started_at, new.started_at),
        ended_at=max(ends, default=None),
        state=state,
    )


def without_runs(job: Job) -> Job:
    return msgspec.structs.replace(job, runs=()) if job.runs else job


def _withdraw_job(connection: Connection, reporter: int, report: Job, *, at: datetime) -> None:
    """Withdraw a reporter's job; delete the job if no other reporter has it."""
    _lock(connection, [report.urn])
    table = tables.lineage_job
    connection.execute(delete(table).where(table.c.reporter == reporter, table.c.job == report.urn))
    stored = _stored_jobs(connection, [report.urn]).get(report.urn)
    if stored is None:
        return
    empty_job = Job(urn=report.urn, name=report.name, platform=report.platform)
    others = _reports_by_others(connection, reporter, [report.urn]).get(report.urn, ())
    remaining = merge_job(report, stored, empty_job, others)
    if others or without_runs(remaining) != empty_job:
        _save_job(connection, remaining, at=at)
    else:
        item = tables.item
        connection.execute(delete(item).where(item.c.kind == KIND, item.c.key == report.urn))


def _reports_by(connection: Connection, reporter: int) -> dict[str, Job]:
    table = tables.lineage_job.c
    statement = select(table.job, table.body).where(table.reporter == reporter)
    return {row.job: from_json(row.body, Job) for row in connection.execute(statement)}


def _reports_by_others(
    connection: Connection, reporter: int, jobs: Iterable[str]
) -> dict[str, list[Job]]:
    table = tables.lineage_job.c
    statement = select(table.job, table.body).where(
        table.reporter != reporter, among(connection, table.job, jobs)
    )
    reports: dict[str, list[Job]] = {}
    for row in connection.execute(statement.order_by(table.reporter)):
        reports.setdefault(row.job, []).append(from_json(row.body, Job))
    return reports


def _stored_jobs(connection: Connection, urns: Iterable[str]) -> Mapping[str, Job]:
    item = tables.item.c
    statement = select(item.key, item.body).where(
        item.kind == KIND, among(connection, item.key, urns)
    )
    return {row.key: from_json(row.body, Job) for row in connection.execute(statement)}


def _save_job(connection: Connection, job: Job, *, at: datetime) -> None:
    row = {"kind": KIND, "key": job.urn, "body": to_json(job), "updated_at": at}
    connection.execute(replace(connection.dialect.name, tables.item), row)


def _lock(connection: Connection, urns: Iterable[str]) -> None:
    for urn in sorted(urns):
        lock_in_transaction(connection, urn)
