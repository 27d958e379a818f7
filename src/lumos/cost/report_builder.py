"""Reports on what datasets, teams and the whole estate cost."""

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec
import numpy as np

from lumos.cost.labels import NOBODY
from lumos.cost.ledger import Books
from lumos.cost.reports import (
    Breakdown,
    ByReport,
    CostReport,
    CostRow,
    GroupBy,
    GroupRow,
    Others,
    Ranking,
    Rest,
    Summary,
    TopReport,
    Trends,
    Upstream,
    WhatIfReport,
)
from lumos.cost.solver.contributions import Contributions
from lumos.cost.suggestions import Hint
from lumos.cost.trend import spent_by_type
from lumos.model.money import amount_of

# Nobody reads more rows than that, and there may be a million.
MOST_ROWS: Final = 1000
_OVERLAP: Final = "(counted under several tags)"
_HOW_TO_NAME: Final = {
    "team": "No dataset with a cost has an owner. "
    "Assign owners with: lumos owner assign DATASET OWNER",
    "domain": "No dataset with a cost has a domain. "
    "Set domains with: lumos doc set DATASET --domain DOMAIN",
    "platform": "No dataset with a cost has a platform.",
    "tag": "No dataset with a cost has a tag. Add tags with: lumos tag add DATASET TAG",
}


def answer(
    books: Books, *, assumed: int | None = None, remarks: tuple[str, ...] = ()
) -> dict[str, Any]:
    """What every report says of how it came about."""
    period = books.inputs.period
    return {
        "period": period.name,
        "first_day": period.first,
        "last_day": period.last,
        "is_monthly": period.months == 1,
        "currency": books.inputs.currency,
        "method": books.method,
        "assumed": amount_of(books.assumed if assumed is None else assumed),
        "remarks": (*books.remarks, *remarks),
    }


def what_if(changes: tuple[str, ...], before: int, after: int) -> WhatIfReport:
    """A supposition's headline."""
    return WhatIfReport(
        changes=changes,
        before=amount_of(before),
        after=amount_of(after),
        difference=amount_of(after - before),
    )


def cost_report(
    books: Books,
    node: int,
    *,
    trends: Trends,
    hints: Sequence[Hint],
    remarks: tuple[str, ...],
    before: Books | None,
    changes: tuple[str, ...],
) -> CostReport:
    """What one dataset or job costs, and why."""
    jobs = books.jobs_of(node)
    own, total = int(books.own[node]), int(books.totals[node])
    direct = own + int(jobs.sum())
    retained = int(books.retained[node])
    assumed = int(books.attribution.assumed[:, node].sum())
    supposed: dict[str, Any] = {}
    if before is not None:
        was = before.places[books.urn(node)]
        supposed = {
            "what_if": what_if(changes, int(before.totals[was]), total),
            "before": _breakdown(before, was),
        }
    return CostReport(
        **answer(books, assumed=assumed, remarks=(*_remarks(books, node), *remarks)),
        dataset=books.urn(node),
        name=books.name(node),
        kind=books.kind(node),
        team=books.team(node),
        is_live=bool(books.graph.live[node]),
        is_verified=books.is_verified(node),
        summary=Summary(
            total_cost=amount_of(total),
            direct_cost=amount_of(direct),
            attributed_cost=amount_of(total - direct),
            own_cost=amount_of(own),
            jobs_cost=amount_of(direct - own),
            retained_cost=amount_of(retained),
            passed_on_cost=amount_of(total - retained),
        ),
        breakdown=_breakdown(books, node),
        direct_by_type=books.by_type(books.graph.costs[:, node] + jobs),
        trends=trends,
        optimization=tuple(each.text for each in hints),
        potential_savings=amount_of(sum(each.monthly for each in hints)),
        cycle=books.cycle_of(node),
        **supposed,
    )


def _remarks(books: Books, node: int) -> tuple[str, ...]:
    cycle = books.cycle_of(node)
    if not cycle:
        return ()
    return (
        f"It is part of a lineage cycle of {len(cycle)}, in which cost circulates: its total can "
        "exceed the total spend.",
    )


def _breakdown(books: Books, node: int) -> Breakdown:
    made = books.made_of(node)
    sums = made.amounts.sum(axis=0)
    by_team: dict[str, int] = defaultdict(int)
    for place in np.flatnonzero(sums):
        teams = books.labels.of("team", books.urn(int(made.nodes[place])))
        for team, part in divided(int(sums[place]), teams):
            by_team[team] += part
    adding = np.flatnonzero(made.amounts.any(axis=0))
    listed = adding[np.lexsort((adding, -sums[adding]))][:MOST_ROWS]
    unlisted = len(adding) - len(listed)
    teams_first = sorted(by_team.items(), key=lambda each: (-each[1], each[0]))
    return Breakdown(
        by_type=books.by_type(books.attribution.loaded[:, node]),
        by_team={team: amount_of(amount) for team, amount in teams_first},
        by_upstream=tuple(_upstream(books, made, int(place)) for place in listed),
        others=Rest(count=unlisted, cost=amount_of(int(sums.sum() - sums[listed].sum()))),
    )


def _upstream(books: Books, made: Contributions, place: int) -> Upstream:
    node = int(made.nodes[place])
    amounts = made.amounts[:, place]
    return Upstream(
        urn=books.urn(node),
        name=books.name(node),
        kind=books.kind(node),
        team=books.team(node),
        own_cost=amount_of(int(books.own[node])),
        cost=amount_of(int(amounts.sum())),
        by_type=books.by_type(amounts),
    )


def divided(amount: int, among: tuple[str, ...]) -> list[tuple[str, int]]:
    """An amount in equal parts, to the micro-unit."""
    part, rest = divmod(amount, len(among))
    return [(name, part + (number < rest)) for number, name in enumerate(among)]


def top_report(
    books: Books,
    *,
    limit: int,
    ranked_by: Ranking,
    before: Books | None,
    changes: tuple[str, ...],
) -> TopReport:
    """The datasets that cost most."""
    ranked = {"retained": books.retained, "total": books.totals, "own": books.own}[ranked_by]
    order = np.lexsort((np.arange(len(ranked)), -ranked))
    listed = [int(node) for node in order[:limit] if ranked[node]]
    rest = np.ones(len(ranked), dtype=np.bool_)
    rest[listed] = False
    costing = rest & ((books.own != 0) | (books.retained != 0))
    rows = [books.row(node) for node in listed]
    only = books.row(int(np.flatnonzero(costing)[0])) if costing.sum() == 1 else None
    supposed: dict[str, Any] = {}
    rest_before: dict[str, Decimal] = {}
    if before is not None:
        rows = [_with_before(row, before) for row in rows]
        only = only and _with_before(only, before)
        rest_before = {
            "before": amount_of(int(before.retained.sum()))
            - sum((row.before or Decimal(0) for row in rows), Decimal(0)),
            "own_before": amount_of(int(before.own.sum()))
            - sum((row.own_before or Decimal(0) for row in rows), Decimal(0)),
        }
        supposed = _supposed(books, before, changes)
    return TopReport(
        **answer(books),
        **supposed,
        ranked_by=ranked_by,
        spent=amount_of(books.spent),
        datasets=tuple(rows),
        others=Others(
            count=int(costing.sum()),
            own=amount_of(int(books.own[rest].sum())),
            retained=amount_of(int(books.retained[rest].sum())),
            only=only,
            **rest_before,
        ),
        beside=beside_of(books),
        by_type=spent_by_type(books),
    )


def _supposed(books: Books, before: Books, changes: tuple[str, ...]) -> dict[str, Any]:
    return {
        "what_if": what_if(changes, before.spent, books.spent),
        "beside_before": beside_of(before),
    }


def _with_before(row: CostRow, before: Books) -> CostRow:
    """A row with what it was without the what-if."""
    node = before.places.get(row.urn)
    was, own = (0, 0) if node is None else (int(before.retained[node]), int(before.own[node]))
    return msgspec.structs.replace(row, before=amount_of(was), own_before=amount_of(own))


def beside_of(books: Books) -> dict[str, Decimal]:
    """What lineage does not carry, by its name."""
    return {name: amount_of(amount) for name, amount in books.beside.items()}


def by_report(
    books: Books, by: GroupBy, *, before: Books | None, changes: tuple[str, ...]
) -> ByReport:
    """What each team, domain, platform or tag owns, and what its outputs carry in the end."""
    groups = _grouped(books, by)
    earlier = {} if before is None else _grouped(before, by)
    names = sorted(
        {*groups, *earlier},
        key=lambda name: (name == _OVERLAP, -groups.get(name, _NOTHING).retained, name),
    )
    rows = tuple(
        GroupRow(
            name=name,
            datasets=group.datasets,
            own=amount_of(group.own),
            retained=amount_of(group.retained),
            before=None if before is None else amount_of(was.retained),
            own_before=None if before is None else amount_of(was.own),
        )
        for name in names
        for group, was in ((groups.get(name, _NOTHING), earlier.get(name, _NOTHING)),)
    )
    is_unnamed = all(row.name == NOBODY[by] for row in rows)
    return ByReport(
        **answer(books, remarks=(_HOW_TO_NAME[by],) if is_unnamed else ()),
        **({} if before is None else _supposed(books, before, changes)),
        by=by,
        spent=amount_of(books.spent),
        groups=rows,
        beside=beside_of(books),
    )


class _Group:
    def __init__(self) -> None:
        self.datasets = 0
        self.own = 0
        self.retained = 0


_NOTHING: Final = _Group()


def _grouped(books: Books, by: GroupBy) -> dict[str, _Group]:
    """The groups with their sums, in micro-units.

    What several teams own is divided among them. A tag is no owner: each has all that it stands on,
    and one row takes back what is counted more than once.
    """
    groups: dict[str, _Group] = defaultdict(_Group)
    counts = ~books.graph.is_job | (books.own != 0) | (books.retained != 0)
    for node in map(int, np.flatnonzero(counts)):
        names = books.labels.of(by, books.urn(node))
        own, retained = int(books.own[node]), int(books.retained[node])
        if by == "tag" and len(names) > 1:
            groups[_OVERLAP].own -= own * (len(names) - 1)
            groups[_OVERLAP].retained -= retained * (len(names) - 1)
            parts = [(name, own, retained) for name in names]
        else:
            parts = [
                (name, mine, kept)
                for (name, mine), (_, kept) in zip(
                    divided(own, names), divided(retained, names), strict=True
                )
            ]
        for name, mine, kept in parts:
            groups[name].datasets += not books.graph.is_job[node]
            groups[name].own += mine
            groups[name].retained += kept
    return dict(groups)
