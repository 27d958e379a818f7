"""Builds the reports on the cost of datasets, teams and the total spend from a ledger."""

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec
import numpy as np

from lumos.cost.history import spent_by_type
from lumos.cost.ledger import NO_LABEL, CostLedger
from lumos.cost.reports import (
    CostBreakdown,
    CostByReport,
    CostExplainReport,
    CostPath,
    CostPathStep,
    CostReport,
    CostRow,
    CostSummary,
    CostTopReport,
    CostTrends,
    GroupBy,
    GroupRow,
    OtherCosts,
    Ranking,
    SavingHint,
    UnlistedCosts,
    UpstreamCost,
    WhatIfReport,
)
from lumos.cost.solver.attribution import AttributionPath, Contributions, explain_paths
from lumos.model.money import amount_of

# Longer lists are truncated, since there may be a million rows.
MAX_ROWS: Final = 1000
_OVERLAP: Final = "(counted under several tags)"
_MISSING_GROUP_HINTS: Final = {
    "team": "No dataset with a cost has an owner. "
    "Assign owners with: lumos owner assign DATASET OWNER",
    "domain": "No dataset with a cost has a domain. "
    "Set domains with: lumos doc set DATASET --domain DOMAIN",
    "platform": "No dataset with a cost has a platform.",
    "tag": "No dataset with a cost has a tag. Add tags with: lumos tag add DATASET TAG",
}


def report_header(
    ledger: CostLedger, *, assumed: int | None = None, remarks: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The fields that all cost reports share."""
    period = ledger.inputs.period
    return {
        "period": period.name,
        "first_day": period.first,
        "last_day": period.last,
        "is_monthly": period.months == 1,
        "currency": ledger.inputs.currency,
        "method": ledger.method,
        "assumed": amount_of(ledger.assumed if assumed is None else assumed),
        "remarks": (*ledger.remarks, *remarks),
    }


def what_if_report(changes: tuple[str, ...], before: int, after: int) -> WhatIfReport:
    """The effect of the assumptions on the headline amount."""
    return WhatIfReport(
        changes=changes,
        before=amount_of(before),
        after=amount_of(after),
        difference=amount_of(after - before),
    )


def cost_report(
    ledger: CostLedger,
    node: int,
    *,
    trends: CostTrends,
    hints: Sequence[SavingHint],
    remarks: tuple[str, ...],
    before: CostLedger | None,
    changes: tuple[str, ...],
) -> CostReport:
    """The cost of one dataset or job and its breakdown."""
    jobs = ledger.job_costs(node)
    own, total = int(ledger.own[node]), int(ledger.totals[node])
    direct = own + int(jobs.sum())
    retained = int(ledger.retained[node])
    assumed = int(ledger.attribution.assumed[:, node].sum())
    what_if: dict[str, Any] = {}
    if before is not None:
        previous = before.node_by_urn[ledger.urn(node)]
        what_if = {
            "what_if": what_if_report(changes, int(before.totals[previous]), total),
            "before": _breakdown(before, previous),
        }
    return CostReport(
        **report_header(ledger, assumed=assumed, remarks=(*_remarks(ledger, node), *remarks)),
        dataset=ledger.urn(node),
        name=ledger.name(node),
        kind=ledger.kind(node),
        team=ledger.team(node),
        is_live=bool(ledger.graph.live[node]),
        is_verified=ledger.is_verified(node),
        summary=CostSummary(
            total_cost=amount_of(total),
            direct_cost=amount_of(direct),
            attributed_cost=amount_of(total - direct),
            own_cost=amount_of(own),
            jobs_cost=amount_of(direct - own),
            retained_cost=amount_of(retained),
            passed_on_cost=amount_of(total - retained),
        ),
        breakdown=_breakdown(ledger, node),
        direct_by_type=ledger.by_type(ledger.graph.costs[:, node] + jobs),
        trends=trends,
        optimization=tuple(each.text for each in hints),
        potential_savings=amount_of(sum(each.monthly for each in hints)),
        cycle=ledger.cycle_of(node),
        **what_if,
    )


def _remarks(ledger: CostLedger, node: int) -> tuple[str, ...]:
    cycle = ledger.cycle_of(node)
    if not cycle:
        return ()
    return (
        f"It is part of a lineage cycle of {len(cycle)}, in which cost circulates: its total can "
        "exceed the total spend.",
    )


def _breakdown(ledger: CostLedger, node: int) -> CostBreakdown:
    contributions = ledger.contributions_to(node)
    sums = contributions.amounts.sum(axis=0)
    by_team: dict[str, int] = defaultdict(int)
    for index in np.flatnonzero(sums):
        teams = ledger.labels.of("team", ledger.urn(int(contributions.nodes[index])))
        for team, part in divide_amount(int(sums[index]), teams):
            by_team[team] += part
    contributing = np.flatnonzero(contributions.amounts.any(axis=0))
    listed = contributing[np.lexsort((contributing, -sums[contributing]))][:MAX_ROWS]
    unlisted = len(contributing) - len(listed)
    ordered_teams = sorted(by_team.items(), key=lambda each: (-each[1], each[0]))
    return CostBreakdown(
        by_type=ledger.by_type(ledger.attribution.loaded[:, node]),
        by_team={team: amount_of(amount) for team, amount in ordered_teams},
        by_upstream=tuple(_upstream(ledger, contributions, int(index)) for index in listed),
        others=UnlistedCosts(count=unlisted, cost=amount_of(int(sums.sum() - sums[listed].sum()))),
    )


def _upstream(ledger: CostLedger, contributions: Contributions, index: int) -> UpstreamCost:
    node = int(contributions.nodes[index])
    amounts = contributions.amounts[:, index]
    return UpstreamCost(
        urn=ledger.urn(node),
        name=ledger.name(node),
        kind=ledger.kind(node),
        team=ledger.team(node),
        own_cost=amount_of(int(ledger.own[node])),
        cost=amount_of(int(amounts.sum())),
        by_type=ledger.by_type(amounts),
    )


def divide_amount(amount: int, names: tuple[str, ...]) -> list[tuple[str, int]]:
    """Split an amount into equal parts that add up to it."""
    part, remainder = divmod(amount, len(names))
    return [(name, part + (number < remainder)) for number, name in enumerate(names)]


def top_report(
    ledger: CostLedger,
    *,
    limit: int,
    ranked_by: Ranking,
    before: CostLedger | None,
    changes: tuple[str, ...],
) -> CostTopReport:
    """The datasets and jobs with the highest cost."""
    amounts = {"retained": ledger.retained, "total": ledger.totals, "own": ledger.own}[ranked_by]
    order = np.lexsort((np.arange(len(amounts)), -ledger.own, -amounts))
    listed = [int(node) for node in order[:limit] if amounts[node] or ledger.own[node]]
    is_unlisted = np.ones(len(amounts), dtype=np.bool_)
    is_unlisted[listed] = False
    has_unlisted_cost = is_unlisted & ((ledger.own != 0) | (ledger.retained != 0))
    rows = [ledger.row(node) for node in listed]
    only = (
        ledger.row(int(np.flatnonzero(has_unlisted_cost)[0]))
        if has_unlisted_cost.sum() == 1
        else None
    )
    what_if: dict[str, Any] = {}
    others_before: dict[str, Decimal] = {}
    if before is not None:
        rows = [_with_previous_costs(row, before) for row in rows]
        only = only and _with_previous_costs(only, before)
        others_before = {
            "before": amount_of(int(before.retained.sum()))
            - sum((row.before or Decimal(0) for row in rows), Decimal(0)),
            "own_before": amount_of(int(before.own.sum()))
            - sum((row.own_before or Decimal(0) for row in rows), Decimal(0)),
        }
        what_if = _what_if_fields(ledger, before, changes)
    return CostTopReport(
        **report_header(ledger),
        **what_if,
        ranked_by=ranked_by,
        spent=amount_of(ledger.spent),
        datasets=tuple(rows),
        others=OtherCosts(
            count=int(has_unlisted_cost.sum()),
            own=amount_of(int(ledger.own[is_unlisted].sum())),
            retained=amount_of(int(ledger.retained[is_unlisted].sum())),
            only=only,
            **others_before,
        ),
        beside=unattributed_costs(ledger),
        by_type=spent_by_type(ledger),
    )


def _what_if_fields(
    ledger: CostLedger, before: CostLedger, changes: tuple[str, ...]
) -> dict[str, Any]:
    return {
        "what_if": what_if_report(changes, before.spent, ledger.spent),
        "beside_before": unattributed_costs(before),
    }


def _with_previous_costs(row: CostRow, before: CostLedger) -> CostRow:
    """A row with its costs without the assumptions of a what-if report."""
    node = before.node_by_urn.get(row.urn)
    previous, own = (0, 0) if node is None else (int(before.retained[node]), int(before.own[node]))
    return msgspec.structs.replace(row, before=amount_of(previous), own_before=amount_of(own))


def unattributed_costs(ledger: CostLedger) -> dict[str, Decimal]:
    """The costs that are not attributed along lineage, by reserved name."""
    return {name: amount_of(amount) for name, amount in ledger.unattributed.items()}


def by_report(
    ledger: CostLedger, by: GroupBy, *, before: CostLedger | None, changes: tuple[str, ...]
) -> CostByReport:
    """The own and retained cost of each team, domain, platform or tag."""
    groups = _group_costs(ledger, by)
    earlier = {} if before is None else _group_costs(before, by)
    names = sorted(
        {*groups, *earlier},
        key=lambda name: (name == _OVERLAP, -groups.get(name, _EMPTY_GROUP).retained, name),
    )
    rows = tuple(
        GroupRow(
            name=name,
            datasets=group.datasets,
            own=amount_of(group.own),
            retained=amount_of(group.retained),
            before=None if before is None else amount_of(previous.retained),
            own_before=None if before is None else amount_of(previous.own),
        )
        for name in names
        for group, previous in ((groups.get(name, _EMPTY_GROUP), earlier.get(name, _EMPTY_GROUP)),)
    )
    is_unnamed = all(row.name == NO_LABEL[by] for row in rows)
    return CostByReport(
        **report_header(ledger, remarks=(_MISSING_GROUP_HINTS[by],) if is_unnamed else ()),
        **({} if before is None else _what_if_fields(ledger, before, changes)),
        by=by,
        spent=amount_of(ledger.spent),
        groups=rows,
        beside=unattributed_costs(ledger),
    )


class _Group:
    def __init__(self) -> None:
        self.datasets = 0
        self.own = 0
        self.retained = 0


_EMPTY_GROUP: Final = _Group()


def _group_costs(ledger: CostLedger, by: GroupBy) -> dict[str, _Group]:
    """The sums of each group, in micro-units.

    The cost of a dataset with several teams is divided among them. With several tags, it is counted
    in full for each tag, and one row subtracts the repeated amounts.
    """
    groups: dict[str, _Group] = defaultdict(_Group)
    is_counted = ~ledger.graph.is_job | (ledger.own != 0) | (ledger.retained != 0)
    for node in map(int, np.flatnonzero(is_counted)):
        names = ledger.labels.of(by, ledger.urn(node))
        own, retained = int(ledger.own[node]), int(ledger.retained[node])
        if by == "tag" and len(names) > 1:
            groups[_OVERLAP].own -= own * (len(names) - 1)
            groups[_OVERLAP].retained -= retained * (len(names) - 1)
            parts = [(name, own, retained) for name in names]
        else:
            parts = [
                (name, own_part, retained_part)
                for (name, own_part), (_, retained_part) in zip(
                    divide_amount(own, names), divide_amount(retained, names), strict=True
                )
            ]
        for name, own_part, retained_part in parts:
            groups[name].datasets += not ledger.graph.is_job[node]
            groups[name].own += own_part
            groups[name].retained += retained_part
    return dict(groups)


def explain_report(
    ledger: CostLedger,
    node: int,
    *,
    limit: int,
    before: CostLedger | None,
    changes: tuple[str, ...],
) -> CostExplainReport:
    """The lineage paths along which cost reaches a dataset or job, the largest first."""
    explanation = explain_paths(ledger.graph, ledger.attribution, node, limit=limit)
    paths = [
        (int(path.amounts[row]), _path(ledger, path, int(row)))
        for path in explanation.paths
        for row in np.flatnonzero(path.amounts)
    ]
    paths.sort(key=lambda each: (-abs(each[0]), len(each[1].steps)))
    total = int(ledger.totals[node])
    remainder = total - sum(amount for amount, _ in paths)
    what_if = None
    if before is not None:
        what_if = what_if_report(
            changes, int(before.totals[before.node_by_urn[ledger.urn(node)]]), total
        )
    cycle = ledger.cycle_of(node)
    return CostExplainReport(
        **report_header(ledger, assumed=int(ledger.attribution.assumed[:, node].sum())),
        what_if=what_if,
        dataset=ledger.urn(node),
        name=ledger.name(node),
        total_cost=amount_of(total),
        paths=tuple(path for _, path in paths),
        rest=amount_of(remainder),
        complete=explanation.complete,
        cycles=(cycle,) if cycle else (),
    )


def _path(ledger: CostLedger, path: AttributionPath, row: int) -> CostPath:
    shares = ledger.attribution.shares
    steps = [
        CostPathStep(
            urn=ledger.urn(node),
            name=ledger.name(node),
            kind=ledger.kind(node),
            share=float(path.shares[row, index]) if index < len(path.edges) else None,
            assumed=index < len(path.edges) and bool(shares.assumed[row, path.edges[index]]),
        )
        for index, node in enumerate(path.nodes)
    ]
    return CostPath(
        type=ledger.graph.types[row],
        own_cost=amount_of(int(ledger.graph.costs[row, path.nodes[0]])),
        share=float(np.prod(path.shares[row])),
        cost=amount_of(int(path.amounts[row])),
        steps=tuple(steps),
    )
