"""Computes trends of coverage, incidents and duplicates from times in the store (pure)."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from itertools import pairwise
from typing import NamedTuple

from lumos.model.report import FORMAT_VERSION, Report
from lumos.store.trends import Coverage, Duplicates, Repair


class MonthlyFigures(Report, frozen=True, kw_only=True):
    """The figures at the end of a month; for the current month, the figures of now.

    Only datasets that exist today are counted. An incident is a breaking change that breaks a known
    downstream dataset. It is resolved when the changed dataset has another schema, or when all
    datasets that the change broke have new data or another schema. `prevented` is the number of
    pull requests that the gate found to be breaking.
    """

    month: str
    datasets: int
    owned: int
    documented: int
    with_lineage: int
    incidents: int
    resolved: int
    hours_to_resolve: float | None
    duplicates_retired: int
    prevented: int


class TrendsReport(Report, frozen=True, kw_only=True):
    """The figures of each month, oldest first, and the duplicates that still exist."""

    format_version: str = FORMAT_VERSION
    months: tuple[MonthlyFigures, ...]
    duplicates: int
    open_incidents: int


class Incident(NamedTuple):
    """A change that broke datasets, and when it was resolved."""

    at: datetime
    resolved: datetime | None


class BreakingChange(NamedTuple):
    """A breaking change of a dataset, and the datasets that it broke."""

    urn: str
    at: datetime
    broken: tuple[str, ...]


def incidents_of(
    changes: Iterable[BreakingChange], repairs: Mapping[str, Sequence[Repair]]
) -> list[Incident]:
    """The incidents of breaking changes; `repairs` are by dataset, oldest first."""
    incidents = []
    for change in changes:
        own_repairs = (
            each.at
            for each in repairs.get(change.urn, ())
            if each.at > change.at and each.has_new_schema
        )
        downstream = [
            next((each.at for each in repairs.get(urn, ()) if each.at > change.at), None)
            for urn in change.broken
        ]
        ends = [next(own_repairs, None)]
        if None not in downstream:
            ends.append(max(filter(None, downstream), default=None))
        incidents.append(Incident(change.at, min(filter(None, ends), default=None)))
    return incidents


def trends(
    months: Sequence[datetime],
    *,
    coverage: Coverage,
    incidents: Sequence[Incident],
    duplicates: Duplicates,
    prevented: Sequence[datetime],
) -> TrendsReport:
    """The figures of months, given the start of each month and the end of the last one."""
    figures = []
    for start, end in pairwise(months):
        new_incidents = [each for each in incidents if start <= each.at < end]
        hours = [
            (each.resolved - each.at).total_seconds() / 3600
            for each in new_incidents
            if each.resolved
        ]
        figures.append(
            MonthlyFigures(
                month=f"{start:%Y-%m}",
                datasets=_count(coverage.datasets, end),
                owned=_count(coverage.owned, end),
                documented=_count(coverage.documented, end),
                with_lineage=_count(coverage.with_lineage, end),
                incidents=len(new_incidents),
                resolved=len(hours),
                hours_to_resolve=sum(hours) / len(hours) if hours else None,
                duplicates_retired=sum(start <= at < end for at in duplicates.retired),
                prevented=sum(start <= at < end for at in prevented),
            )
        )
    return TrendsReport(
        months=tuple(figures),
        duplicates=duplicates.live,
        open_incidents=sum(each.resolved is None for each in incidents),
    )


def _count(by_day: Mapping[date, int], end: datetime) -> int:
    """The sum of the counts of all days before `end`."""
    return sum(
        count for day, count in by_day.items() if datetime.combine(day, time(), tzinfo=UTC) < end
    )
