"""Items from lineage reports: jobs, which include their runs, and consumers of datasets.

A report is merged into the item: values that the reporter no longer reports are removed, values of
other reporters stay, and runs are added up to a maximum.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from sqlalchemy import Connection, delete, select

from lumos.model.catalog import CatalogEntity, Job, consumer_entity, consumer_urn
from lumos.model.json_codec import from_json, to_json
from lumos.model.lineage import JobRun
from lumos.model.urn import SCHEME
from lumos.store import tables
from lumos.store.database import lock_in_transaction
from lumos.store.statements import among, replace

ReportedItem: TypeAlias = Job | CatalogEntity
_ItemT = TypeVar("_ItemT", bound=Job | CatalogEntity)
JOBS: Final = "jobs"
ENTITIES: Final = "others"
# The number of latest runs of a job to keep.
MAX_RUNS: Final = 200


def kind_of(urn: str) -> str:
    """The kind of a reported item; only jobs have URNs like those of datasets."""
    return JOBS if urn.startswith(SCHEME) else ENTITIES


def reporters_with_items(
    connection: Connection, items: Mapping[int, Sequence[ReportedItem]]
) -> list[int]:
    """The ids of those reporters in `items` that have new or stored items."""
    statement = select(_ITEM.reporter).distinct().where(among(connection, _ITEM.reporter, items))
    stored = set(connection.scalars(statement))
    return [reporter for reporter, new in items.items() if new or reporter in stored]


def replace_items(
    connection: Connection, reporter: int, items: Sequence[ReportedItem], *, at: datetime
) -> set[str]:
    """Replace the items of a reporter; return the URNs of changed items."""
    before = _reports_by(connection, reporter)
    changed = add_items(connection, reporter, items, at=at)
    reported = {item.urn for item in items}
    for urn, item in before.items():
        if urn not in reported:
            _retract_item(connection, reporter, item, at=at)
            changed.add(urn)
    return changed


def add_items(
    connection: Connection, reporter: int, items: Sequence[ReportedItem], *, at: datetime
) -> set[str]:
    """Add or update items of a reporter; return the URNs of changed items."""
    new = {item.urn: item for item in items}
    changed: set[str] = set()
    if not new:
        return changed
    _lock(connection, new)
    before = _reports_by(connection, reporter)
    stored_items = _stored_items(connection, new)
    others = _reports_by_others(connection, reporter, new)
    for urn, item in new.items():
        report = without_runs(item)
        stored = stored_items.get(urn)
        after: ReportedItem = merge_item(before.get(urn), stored, report, others.get(urn, ()))
        if isinstance(after, Job) and isinstance(item, Job):
            known = stored.runs if isinstance(stored, Job) else ()
            after = msgspec.structs.replace(after, runs=merge_runs(known, item.runs))
        if after != stored:
            _save_item(connection, after, at=at)
            changed.add(urn)
        if report != before.get(urn):
            row = {"reporter": reporter, "job": urn, "body": to_json(report)}
            connection.execute(replace(connection.dialect.name, tables.lineage_item), row)
    return changed


def merge_item(
    base: _ItemT | None, theirs: _ItemT | None, ours: _ItemT, others: Sequence[_ItemT] = ()
) -> _ItemT:
    """Merge a new report of an item (`ours`) into the stored item (`theirs`).

    Values that only the reporter's last report (`base`) had are removed, unless the last reports
    of other reporters (`others`) have them as well.
    """
    if theirs is None:
        return ours
    empty = _empty_item(ours)
    fields: dict[str, Any] = {}
    for name in ours.__struct_fields__:
        previous, current, new = (getattr(item, name) for item in (base or empty, theirs, ours))
        other_values = [getattr(item, name) for item in others]
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
            default = getattr(empty, name)
            values = (value for value in (new, *other_values) if value != default)
            fields[name] = next(values, default)
    return msgspec.structs.replace(theirs, **fields)


def _empty_item(item: ReportedItem) -> Any:
    if isinstance(item, Job):
        return Job(urn=item.urn, name=item.name, platform=item.platform)
    return CatalogEntity(urn=item.urn, kind=item.kind)


def merge_runs(known: Iterable[JobRun], new: Iterable[JobRun]) -> tuple[JobRun, ...]:
    """Merge runs by id, latest last; the same run may be reported twice and in any order."""
    before = tuple(known)
    runs = {run.run_id: run for run in before}
    for run in new:
        id = run.run_id
        runs[id] = _merge_run(runs[id], run) if id in runs else run
    if tuple(runs.values()) == before:
        # Nothing changed: keep all runs, since an imported job may have more than MAX_RUNS.
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


def without_runs(item: _ItemT) -> _ItemT:
    if isinstance(item, Job) and item.runs:
        return msgspec.structs.replace(item, runs=())
    return item


def _retract_item(
    connection: Connection, reporter: int, report: ReportedItem, *, at: datetime
) -> None:
    """Retract a reporter's item; delete the item if no other reporter has it."""
    _lock(connection, [report.urn])
    connection.execute(
        delete(tables.lineage_item).where(_ITEM.reporter == reporter, _ITEM.job == report.urn)
    )
    stored = _stored_items(connection, [report.urn]).get(report.urn)
    if stored is None:
        return
    empty = _empty_item(report)
    others = _reports_by_others(connection, reporter, [report.urn]).get(report.urn, ())
    remaining = merge_item(report, stored, empty, others)
    if others or without_runs(remaining) != empty:
        _save_item(connection, remaining, at=at)
    else:
        item = tables.item
        is_item = (item.c.kind == kind_of(report.urn)) & (item.c.key == report.urn)
        connection.execute(delete(item).where(is_item))


def _reports_by(connection: Connection, reporter: int) -> dict[str, Any]:
    statement = select(_ITEM.job, _ITEM.body).where(_ITEM.reporter == reporter)
    return {row.job: _decode(row.job, row.body) for row in connection.execute(statement)}


def _reports_by_others(
    connection: Connection, reporter: int, urns: Iterable[str]
) -> dict[str, list[Any]]:
    statement = select(_ITEM.job, _ITEM.body).where(
        _ITEM.reporter != reporter, among(connection, _ITEM.job, urns)
    )
    reports: dict[str, list[Any]] = {}
    for row in connection.execute(statement.order_by(_ITEM.reporter)):
        reports.setdefault(row.job, []).append(_decode(row.job, row.body))
    return reports


def _stored_items(connection: Connection, urns: Iterable[str]) -> Mapping[str, Any]:
    item = tables.item.c
    statement = select(item.key, item.body).where(
        item.kind.in_((JOBS, ENTITIES)), among(connection, item.key, urns)
    )
    return {row.key: _decode(row.key, row.body) for row in connection.execute(statement)}


def _save_item(connection: Connection, item: ReportedItem, *, at: datetime) -> None:
    row = {"kind": kind_of(item.urn), "key": item.urn, "body": to_json(item), "updated_at": at}
    connection.execute(replace(connection.dialect.name, tables.item), row)


def _decode(urn: str, body: bytes) -> Any:
    return from_json(body, Job if kind_of(urn) == JOBS else CatalogEntity)


def _lock(connection: Connection, urns: Iterable[str]) -> None:
    for urn in sorted(urns):
        lock_in_transaction(connection, urn)


_ITEM: Final = tables.lineage_item.c


def reported_consumers(
    connection: Connection, urns: Collection[str] | None = None
) -> dict[str, CatalogEntity]:
    """All reported consumers of datasets, or those with the given URNs, by their lineage URN."""
    item = tables.item.c
    is_reported = select(_ITEM.job).where(_ITEM.job == item.key).exists()
    statement = select(item.body).where(item.kind == ENTITIES, is_reported)
    if urns is not None:
        keys = [entity for urn in urns if (entity := consumer_entity(urn)) is not None]
        if not keys:
            return {}
        statement = statement.where(among(connection, item.key, keys))
    entities = (from_json(body, CatalogEntity) for body in connection.scalars(statement))
    return {consumer_urn(each.urn): each for each in entities}
