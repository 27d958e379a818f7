"""What reporters say of jobs. A job is an item; its runs stand with it.

A reporter's word is merged into the item: what it said before and no longer says goes, what others
said stays, and runs are only ever added, until there are too many.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, delete, select, text

from lumos.model.catalog import Job
from lumos.model.json_codec import from_json, to_json
from lumos.model.lineage import JobRun
from lumos.store import tables
from lumos.store.lineage.rows import among
from lumos.store.locks import lock_key
from lumos.store.rows import replace

KIND: Final = "jobs"
# The latest runs of a job that are kept when a reporter tells of more.
MOST_RUNS: Final = 200


def replace_all(
    connection: Connection, reporter: int, jobs: Sequence[Job], *, at: datetime
) -> set[str]:
    """Makes a reporter's jobs exactly these; gives the URNs of those that changed."""
    before = _said(connection, reporter)
    changed = put_all(connection, reporter, jobs, at=at)
    reported = {job.urn for job in jobs}
    for urn, job in before.items():
        if urn not in reported:
            _withdraw(connection, reporter, job, at=at)
            changed.add(urn)
    return changed


def put_all(
    connection: Connection, reporter: int, jobs: Sequence[Job], *, at: datetime
) -> set[str]:
    """Adds to a reporter's jobs, or replaces what it said of them; gives what changed by it."""
    said = {job.urn: job for job in jobs}
    changed: set[str] = set()
    if not said:
        return changed
    _lock(connection, said)
    before = _said(connection, reporter)
    present = _items(connection, said)
    others = _said_by_others(connection, reporter, said)
    for urn, job in said.items():
        told = without_runs(job)
        now = present.get(urn)
        after = merged(before.get(urn), now, told, others.get(urn, ()))
        runs = merged_runs(() if now is None else now.runs, job.runs)
        after = msgspec.structs.replace(after, runs=runs)
        if after != now:
            _put(connection, after, at=at)
            changed.add(urn)
        if told != before.get(urn):
            row = {"reporter": reporter, "job": urn, "body": to_json(told)}
            connection.execute(replace(connection.dialect.name, tables.lineage_job), row)
    return changed


def merged(base: Job | None, theirs: Job | None, ours: Job, others: Sequence[Job] = ()) -> Job:
    """A job as it is known, with what a reporter says now in place of what it said before.

    What other reporters say as well stays.
    """
    if theirs is None:
        return ours
    nothing = Job(urn=ours.urn, name=ours.name, platform=ours.platform)
    fields: dict[str, Any] = {}
    for name in Job.__struct_fields__:
        was, there, new = (getattr(each, name) for each in (base or nothing, theirs, ours))
        also = [getattr(each, name) for each in others]
        if name == "runs":
            continue
        if isinstance(new, tuple):
            gone = {each for each in was if not any(each in said for said in (new, *also))}
            fields[name] = tuple(
                dict.fromkeys((*(each for each in there if each not in gone), *new))
            )
        elif isinstance(new, dict):
            gone = {key for key in was if not any(key in said for said in (new, *also))}
            changed = {key: new[key] for key in new if new[key] != was.get(key)}
            fields[name] = {key: text for key, text in there.items() if key not in gone} | changed
        elif new == was:
            fields[name] = there
        else:
            silent = getattr(nothing, name)
            said = (each for each in (new, *also) if each != silent)
            fields[name] = next(said, silent)
    return msgspec.structs.replace(theirs, **fields)


def merged_runs(known: Iterable[JobRun], told: Iterable[JobRun]) -> tuple[JobRun, ...]:
    """Runs by their ids, latest last; events may come twice and in any order."""
    before = tuple(known)
    runs = {run.run_id: run for run in before}
    for run in told:
        id = run.run_id
        runs[id] = _merged_run(runs[id], run) if id in runs else run
    if tuple(runs.values()) == before:
        # More than are kept may have been imported, and nothing is new.
        return before
    ordered = sorted(runs.values(), key=lambda run: (run.started_at, run.run_id))
    return tuple(ordered[-MOST_RUNS:])


def _merged_run(known: JobRun, told: JobRun) -> JobRun:
    """A run that has ended does not run again, and of two ends the later one counts."""
    ends = [run.ended_at for run in (known, told) if run.ended_at is not None]
    if told.state == "RUNNING":
        state = known.state
    elif known.state == "RUNNING" or known.ended_at is None:
        state = told.state
    else:
        is_later = told.ended_at is not None and told.ended_at >= known.ended_at
        state = told.state if is_later else known.state
    return JobRun(
        run_id=known.run_id,
        job=known.job,
        started_at=min(known.started_at, told.started_at),
        ended_at=max(ends, default=None),
        state=state,
    )


def without_runs(job: Job) -> Job:
    """What is said of a job itself."""
    return msgspec.structs.replace(job, runs=()) if job.runs else job


def _withdraw(connection: Connection, reporter: int, said: Job, *, at: datetime) -> None:
    """Takes a reporter's word on a job back; a job that nobody speaks of any more is gone."""
    _lock(connection, [said.urn])
    table = tables.lineage_job
    connection.execute(delete(table).where(table.c.reporter == reporter, table.c.job == said.urn))
    now = _items(connection, [said.urn]).get(said.urn)
    if now is None:
        return
    nothing = Job(urn=said.urn, name=said.name, platform=said.platform)
    others = _said_by_others(connection, reporter, [said.urn]).get(said.urn, ())
    left = merged(said, now, nothing, others)
    if others or without_runs(left) != nothing:
        _put(connection, left, at=at)
    else:
        item = tables.item
        connection.execute(delete(item).where(item.c.kind == KIND, item.c.key == said.urn))


def _said(connection: Connection, reporter: int) -> dict[str, Job]:
    table = tables.lineage_job.c
    statement = select(table.job, table.body).where(table.reporter == reporter)
    return {row.job: from_json(row.body, Job) for row in connection.execute(statement)}


def _said_by_others(
    connection: Connection, reporter: int, jobs: Iterable[str]
) -> dict[str, list[Job]]:
    table = tables.lineage_job.c
    statement = select(table.job, table.body).where(
        table.reporter != reporter, among(connection, table.job, jobs)
    )
    said: dict[str, list[Job]] = {}
    for row in connection.execute(statement.order_by(table.reporter)):
        said.setdefault(row.job, []).append(from_json(row.body, Job))
    return said


def _items(connection: Connection, urns: Iterable[str]) -> Mapping[str, Job]:
    item = tables.item.c
    statement = select(item.key, item.body).where(
        item.kind == KIND, among(connection, item.key, urns)
    )
    return {row.key: from_json(row.body, Job) for row in connection.execute(statement)}


def _put(connection: Connection, job: Job, *, at: datetime) -> None:
    row = {"kind": KIND, "key": job.urn, "body": to_json(job), "updated_at": at}
    connection.execute(replace(connection.dialect.name, tables.item), row)


def _lock(connection: Connection, urns: Iterable[str]) -> None:
    if connection.dialect.name == "postgresql":
        for urn in sorted(urns):
            connection.execute(_LOCK, {"key": lock_key(urn)})


_LOCK: Final = text("SELECT pg_advisory_xact_lock(:key)")
