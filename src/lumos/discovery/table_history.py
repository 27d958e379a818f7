"""What a table's own log tells of its way to the present, as steps to record."""

from datetime import UTC, datetime
from typing import Final, NamedTuple

import msgspec

from lumos.model.change import Cause
from lumos.model.discovery import PastSchema, TableState
from lumos.model.schema import Schema

# Later than any scan, which is when it is taken to have happened.
_UNKNOWN: Final = datetime.max.replace(tzinfo=UTC)


class Moment(NamedTuple):
    """When something happened, by whose account, and whether anybody is to hear of it.

    `recorded_at` is where the change stands in the order of all; nothing means the time itself.
    """

    at: datetime
    cause: Cause = "scan"
    author: str | None = None
    recorded_at: datetime | None = None
    is_news: bool = True
    metadata: dict[str, str | int] = {}  # noqa: RUF012 - a tuple's default, never written to


class Way(NamedTuple):
    """Schemas between what is on record and the present one, and how the latter came about."""

    steps: tuple[PastSchema, ...]
    present: PastSchema | None


class Reached(NamedTuple):
    """The schema on record, when the scan was that recorded it, and the table's own id then."""

    schema: Schema
    at: datetime
    identity: str | None = None


def way_to(
    table: TableState, present: Schema, before: Reached | None, *, identity: str | None = None
) -> Way:
    """The steps from a schema on record, or from the beginning, to the present one."""
    past = table.past
    is_told = bool(past) and past[-1].schema.full == present.full
    last, between = (past[-1], past[:-1]) if is_told else (None, past)
    if last is not None and before is not None and last.at <= before.at:
        # What changed since is no part of the log's own history, such as which columns are
        # partitions: the table's last commit brought it, or one that wrote no data.
        at = table.at if table.at > before.at else _UNKNOWN
        last = msgspec.structs.replace(last, at=at, exact_time=False)
    if before is None:
        if last is None:
            last = PastSchema(schema=present, at=table.at, version=table.version, exact_time=False)
        return Way(between, last)
    if identity != before.identity and past and past[0].at > before.at:
        # Another table in the same place, all of whose log is news.
        return Way(between, last)
    # Snapshots have no order by name, and logs forget their beginning; schemas tell the place.
    alike = [number for number, each in enumerate(past) if each.schema.shape == before.schema.shape]
    if not alike:
        return Way((), last)
    # A schema that went and came back stands in the log twice: what came later was not seen yet.
    reached = max((number for number in alike if past[number].at <= before.at), default=alike[-1])
    return Way(between[reached + 1 :], last)


def went_on(table: TableState, *, since: datetime, now: datetime) -> bool:
    """Whether a log tells of a change of schema since then, be the schema as it was."""
    return len(table.past) > 1 and since < table.past[-1].at <= now


class Calendar:
    """Puts the times that a table tells in an order that its history on record can have.

    Clocks of writers may be behind or ahead of this machine's: no change comes before the one that
    it follows, and none after the scan that found it.
    """

    def __init__(self, *, since: datetime | None, now: datetime) -> None:
        self._is_first_look = since is None
        self._reached = since
        self._now = now

    def moment(self, step: PastSchema, *, is_creation: bool = False) -> Moment:
        """When a step happened; of the past of a table that is new here, only its birth is news."""
        at = min(step.at if self._reached is None else max(step.at, self._reached), self._now)
        self._reached = at
        facts: dict[str, str | int] = {"table_version": step.version}
        if step.operation is not None:
            facts["operation"] = step.operation
        if not step.exact_time or at != step.at:
            facts["time"] = "approximate"
        return Moment(
            at=at,
            cause="log",
            author=step.author,
            recorded_at=None if self._is_first_look else self._now,
            is_news=is_creation or not self._is_first_look,
            metadata=facts,
        )
