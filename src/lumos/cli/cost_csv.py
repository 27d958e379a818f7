"""Reports on cost as comma-separated values; amounts are exact and add up."""

import csv
import io
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Final

from lumos.cost.reports import (
    CostByReport,
    CostExplainReport,
    CostReport,
    CostReportHeader,
    CostTopReport,
    CostTrendReport,
    RetireReport,
    SavingsReport,
)
from lumos.cost.wording import NOTHING_ELSE, use_text

Cells = tuple[object, ...]

# Spreadsheets evaluate cells that start with these characters.
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")


def to_csv(report: CostReportHeader) -> str:
    """A report as CSV text; names that a spreadsheet would evaluate get an apostrophe prefix."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([_cell(cell) for cell in row] for row in rows_of(report))
    return text.getvalue()


def rows_of(report: CostReportHeader) -> Iterator[Cells]:
    """The header and the rows of a report."""
    match report:
        case CostReport():
            return _report_rows(report)
        case CostTopReport():
            return _top_rows(report)
        case CostByReport():
            return _by_rows(report)
        case CostTrendReport():
            return _trend_rows(report)
        case CostExplainReport():
            return _explain_rows(report)
        case SavingsReport():
            return _savings_rows(report)
        case RetireReport():
            return _retire_rows(report)
        case _:
            raise TypeError(f"a {type(report).__name__} has no rows")


def _cell(cell: object) -> str:
    if cell is None:
        return ""
    if isinstance(cell, Decimal):
        return f"{cell:f}"
    if isinstance(cell, datetime):
        return cell.isoformat().replace("+00:00", "Z")
    text = str(cell)
    return f"'{text}" if isinstance(cell, str) and text.startswith(_FORMULA_STARTS) else text


def _report_rows(report: CostReport) -> Iterator[Cells]:
    """The parts of a total cost; the column `cost` adds up to it."""
    types = list(report.breakdown.by_type)
    yield ("dataset", "period", "currency", "upstream", "name", "kind", "team", *types, "cost")
    common = (report.dataset, report.period, report.currency)
    for each in report.breakdown.by_upstream:
        amounts = (each.by_type.get(name, Decimal(0)) for name in types)
        yield (*common, each.urn, each.name, each.kind, each.team, *amounts, each.cost)
    others = report.breakdown.others
    if others.count:
        unknown = (None for _ in types)
        yield (*common, "", f"{others.count} others", "", "", *unknown, others.cost)


def _top_rows(report: CostTopReport) -> Iterator[Cells]:
    """Datasets, the sum of others, and unattributed costs.

    The columns `own` and `retained` each add up to the total spend.
    """
    yield ("period", "currency", "urn", "name", "kind", "team", "own", "total", "retained",
           "before")  # fmt: skip
    common = (report.period, report.currency)
    for row in report.datasets:
        yield (*common, row.urn, row.name, row.kind, row.team, row.own, row.total, row.retained,
               row.before)  # fmt: skip
    others = report.others
    if others.count:
        yield (*common, "", f"{others.count} others", "", "", others.own, None, others.retained,
               others.before)  # fmt: skip
    for name, amount in report.beside.items():
        yield (*common, "", name, "", "", amount, None, amount, None)


def _by_rows(report: CostByReport) -> Iterator[Cells]:
    """Groups and unattributed costs; `own` and `retained` each add up to the total spend."""
    yield ("period", "currency", report.by, "datasets", "own", "retained", "before")
    common = (report.period, report.currency)
    for group in report.groups:
        yield (*common, group.name, group.datasets, group.own, group.retained, group.before)
    for name, amount in report.beside.items():
        yield (*common, name, None, amount, amount, None)


def _trend_rows(report: CostTrendReport) -> Iterator[Cells]:
    """Periods, the earliest first; the last one is computed now."""
    before = () if report.before is None else (report.before,)
    points = (*report.points, *before, report.now)
    types = list(dict.fromkeys(name for point in points for name in point.by_type))
    yield (
        "dataset",
        "period",
        "first_day",
        "last_day",
        "currency",
        *types,
        "cost",
        "recorded_at",
        "supposed",
    )
    for point in points:
        amounts = (point.by_type.get(name, Decimal(0)) for name in types)
        yield (report.dataset, point.period, point.first_day, point.last_day, report.currency,
               *amounts, point.cost, point.recorded_at,
               report.what_if is not None and point is report.now)  # fmt: skip


def _explain_rows(report: CostExplainReport) -> Iterator[Cells]:
    """Paths, and one row for all unlisted paths; the column `cost` adds up to the total."""
    yield ("dataset", "period", "currency", "origin", "type", "own_cost", "share", "cost", "way")
    common = (report.dataset, report.period, report.currency)
    for path in report.paths:
        urns = " -> ".join(step.urn for step in path.steps)
        yield (
            *common,
            path.steps[0].urn,
            path.type,
            path.own_cost,
            path.share,
            path.cost,
            urns,
        )
    if report.rest:
        yield (*common, "", "", None, None, report.rest, "paths that are not listed")


def _savings_rows(report: SavingsReport) -> Iterator[Cells]:
    """Removed, remaining and broken datasets; the `monthly` cost of removed datasets is saved."""
    yield ("period", "outcome", "urn", "name", "kind", "owners", "monthly", "currency", "reason")
    period = report.period
    for removed in report.disappears:
        reason = "asked for" if removed.is_asked else NOTHING_ELSE
        yield (period, "disappears", removed.urn, removed.name, removed.kind, removed.team,
               removed.monthly, report.currency, reason)  # fmt: skip
    for remaining in report.stays:
        yield (period, "stays", remaining.urn, remaining.name, remaining.kind, "",
               remaining.monthly, report.currency, remaining.reason)  # fmt: skip
    more = report.other_stays
    if more.count:
        yield (period, "stays", "", f"{more.count} others", "", "", more.cost, report.currency, "")
    for broken in report.broken:
        yield (period, "breaks", broken.urn, broken.name, broken.kind, ", ".join(broken.owners),
               None, report.currency, use_text(broken))  # fmt: skip


def _retire_rows(report: RetireReport) -> Iterator[Cells]:
    """Unused datasets and jobs as step 0, then one row for each step."""
    yield ("period", "step", "datasets", "teams", "monthly_savings", "currency", "verified")
    for each in report.unneeded:
        yield (report.period, 0, each.urn, each.team, each.monthly, report.currency,
               each.is_verified)  # fmt: skip
    for number, step in enumerate(report.steps, start=1):
        yield (report.period, number, "; ".join(step.ends), "; ".join(step.teams),
               step.monthly_savings, report.currency, step.is_verified)  # fmt: skip
