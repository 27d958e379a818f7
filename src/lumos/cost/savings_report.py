"""What removing datasets saves, which upstream cost remains, and what breaks."""

from collections.abc import Collection, Iterator
from decimal import Decimal
from typing import Final

import numpy as np

from lumos.cost.ledger import Books
from lumos.cost.report_builder import MOST_ROWS, answer, what_if
from lumos.cost.reports import (
    Broken,
    ImpactAnalysis,
    Removed,
    Rest,
    Risk,
    SavingsBreakdown,
    SavingsReport,
    Staying,
)
from lumos.cost.solver.graph import Integers
from lumos.cost.solver.savings import Savings, savings_of
from lumos.model.money import amount_of, written

_MANY: Final = 10
_MONTHS: Final = 12


def savings_report(
    books: Books,
    nodes: list[int],
    *,
    asked_for: tuple[str, ...],
    feature: str | None,
    before: Books | None,
    changes: tuple[str, ...],
) -> SavingsReport:
    """What removing some datasets and jobs saves per month."""
    savings = savings_of(books.graph, books.with_writers(nodes), books.avoidable)
    saved = books.saved_by(savings.gone)
    monthly = int(saved.sum())
    supposed = None
    if before is not None:
        was = [before.places[books.urn(node)] for node in nodes]
        gone = savings_of(before.graph, before.with_writers(was), before.avoidable).gone
        supposed = what_if(changes, int(before.saved_by(gone).sum()), monthly)
    by_type = books.by_type(saved.sum(axis=1))
    asked = set(nodes)
    stays, other_stays = _staying(books, savings)
    affected = [*savings.gone.tolist(), *savings.broken.tolist()]
    datasets = tuple(books.urn(node) for node in affected if not books.graph.is_job[node])
    return SavingsReport(
        **answer(books, assumed=0, remarks=_remarks(books, savings)),
        what_if=supposed,
        asked=asked_for or tuple(books.name(node) for node in nodes),
        feature_name=feature,
        datasets_affected=datasets,
        monthly_savings=amount_of(monthly),
        annual_savings=amount_of(monthly * _MONTHS),
        storage_savings=by_type.get("storage", Decimal(0)),
        compute_savings=by_type.get("compute", Decimal(0)),
        committed_cost=amount_of(books.monthly(int(savings.unavoidable.sum()))),
        breakdown=SavingsBreakdown(**by_type, affected_datasets=len(datasets)),
        impact_analysis=_impact(books, savings, asked),
        disappears=removed(books, savings.gone, saved.sum(axis=0), asked),
        stays=stays,
        other_stays=other_stays,
        broken=tuple(
            Broken(
                urn=books.urn(node),
                name=books.name(node),
                kind=books.kind(node),
                owners=books.labels.owners(books.urn(node)),
                is_live=bool(books.graph.live[node]),
                is_verified=books.is_verified(node),
            )
            for node in savings.broken.tolist()
        ),
        unverified=tuple(
            books.urn(node)
            for node in affected
            if not books.graph.is_job[node] and not books.is_verified(node)
        ),
        attributed_cost=amount_of(books.monthly(int(books.totals[nodes[0]])))
        if len(nodes) == 1
        else None,
    )


def removed(
    books: Books, gone: Integers, saved: Integers, asked: Collection[int] = ()
) -> tuple[Removed, ...]:
    """What is removed with its savings: what was asked for first, then the most expensive."""
    rows = [
        Removed(
            urn=books.urn(node),
            name=books.name(node),
            kind=books.kind(node),
            team=books.team(node),
            monthly=amount_of(int(amount)),
            is_asked=node in asked,
            is_verified=books.is_verified(node),
        )
        for node, amount in zip(gone.tolist(), saved, strict=True)
    ]
    return tuple(sorted(rows, key=lambda row: (not row.is_asked, -row.monthly, row.urn)))


def _staying(books: Books, savings: Savings) -> tuple[tuple[Staying, ...], Rest]:
    """Committed cost of what is removed, then the most expensive that remain, others as one."""
    own = books.own[savings.staying]
    order = np.argsort(-own, kind="stable")
    order = order[own[order] != 0]
    rows = (
        *_due(books, savings),
        *(
            _stays(books, int(savings.staying[place]), int(savings.needed_by[place]))
            for place in order[:MOST_ROWS]
        ),
    )
    rest = own[order[MOST_ROWS:]]
    return rows, Rest(count=len(rest), cost=amount_of(books.monthly(int(rest.sum()))))


def _due(books: Books, savings: Savings) -> Iterator[Staying]:
    """What is removed and still has to be paid."""
    if books.avoidable is None:
        return
    for node in savings.gone.tolist():
        if not books.avoidable[node] and books.own[node]:
            yield _stay(books, node, "committed: still due after removal")


def _stays(books: Books, node: int, needed_by: int) -> Staying:
    if needed_by < 0:
        reason = "unused, with or without this"
    elif needed_by == node:
        reason = "in use itself"
    else:
        reason = f"needed by {books.name(needed_by)}"
    return _stay(books, node, reason)


def _stay(books: Books, node: int, reason: str) -> Staying:
    return Staying(
        urn=books.urn(node),
        name=books.name(node),
        kind=books.kind(node),
        monthly=amount_of(books.monthly(int(books.own[node]))),
        reason=reason,
    )


def _impact(books: Books, savings: Savings, asked: set[int]) -> ImpactAnalysis:
    is_job, live = books.graph.is_job, books.graph.live
    broken = [node for node in savings.broken.tolist() if not is_job[node]]
    in_use = [node for node in broken if live[node] and books.is_verified(node)]
    perhaps = [node for node in broken if live[node] and not books.is_verified(node)]
    used_themselves = [node for node in asked if live[node] and _is_read(books, node)]
    doubtful = [
        node
        for node in (*asked, *broken)
        if not is_job[node] and not books.is_verified(node) and node not in perhaps
    ]
    reasons = []
    if in_use:
        reasons.append(f"breaks {_few(books, in_use)}, which {_are(in_use)} in use")
    if perhaps:
        them = "it" if len(perhaps) == 1 else "them"
        reasons.append(f"breaks {_few(books, perhaps)}; no query log shows who reads {them}")
    if len(broken) >= _MANY:
        reasons.append(f"breaks {len(broken):,} downstream datasets")
    elif broken and not (in_use or perhaps):
        reasons.append(f"breaks {_few(books, broken)}, of which no use is known")
    if used_themselves:
        reasons.append(f"{_few(books, used_themselves)} {_are(used_themselves)} still read")
    if doubtful:
        reasons.append(f"no query log shows who reads {_few(books, doubtful)}")
    unowned = [node for node in broken if not books.labels.owners(books.urn(node))]
    if unowned:
        reasons.append(f"no owner is known for {_few(books, unowned)}")
    risk: Risk = "LOW"
    if in_use or perhaps or len(broken) >= _MANY:
        risk = "HIGH"
    elif reasons:
        risk = "MEDIUM"
    return ImpactAnalysis(
        direct_datasets=sum(not is_job[node] for node in asked),
        downstream_datasets=len(broken),
        risk_level=risk,
        reasons=tuple(reasons) or ("nothing downstream needs it and no reads are recorded",),
    )


def _is_read(books: Books, node: int) -> bool:
    """Whether reads of a dataset in use are recorded."""
    return books.urn(node) in books.inputs.read


def _remarks(books: Books, savings: Savings) -> tuple[str, ...]:
    due = int(savings.unavoidable.sum())
    if not due:
        return ()
    amount = written(books.monthly(due), books.inputs.currency)
    return (f"{amount} per month is committed and still due.",)


def _few(books: Books, nodes: list[int], most: int = 3) -> str:
    names = ", ".join(books.name(node) for node in nodes[:most])
    return names if len(nodes) <= most else f"{names} and {len(nodes) - most:,} more"


def _are(nodes: list[int]) -> str:
    return "is" if len(nodes) == 1 else "are"
