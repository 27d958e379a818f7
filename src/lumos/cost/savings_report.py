"""Reports on savings: removing datasets, retiring unused ones, and runs without readers."""

from collections.abc import Collection, Iterator, Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np

from lumos.config import Settings
from lumos.cost.inputs.usage import jobs_by_reader, reads_known_since
from lumos.cost.ledger import CostLedger
from lumos.cost.report_builder import MAX_ROWS, report_header, what_if_report
from lumos.cost.reports import (
    BrokenNode,
    ImpactAnalysis,
    RemainingCost,
    RemovedNode,
    RetireReport,
    RetireStep,
    Risk,
    SavingHint,
    SavingsBreakdown,
    SavingsReport,
    UnlistedCosts,
)
from lumos.cost.solver.graph import Integers
from lumos.cost.solver.retirement import RetirementGroup, RetirementPlan, plan_retirement
from lumos.cost.solver.savings import Savings, savings_of
from lumos.model.money import amount_of, format_money
from lumos.store import Store
from lumos.usage.unread import log_scope_of

_HIGH_RISK_COUNT: Final = 10
_MONTHS: Final = 12


def savings_report(
    ledger: CostLedger,
    nodes: list[int],
    *,
    request: tuple[str, ...],
    feature: str | None,
    before: CostLedger | None,
    changes: tuple[str, ...],
) -> SavingsReport:
    """The monthly savings of removing datasets and jobs, remaining costs, and broken datasets."""
    savings = savings_of(ledger.graph, ledger.with_writers(nodes), ledger.avoidable)
    saved = ledger.saved_by(savings.obsolete)
    monthly = int(saved.sum())
    what_if = None
    if before is not None:
        previous_nodes = [before.node_by_urn[ledger.urn(node)] for node in nodes]
        obsolete = savings_of(
            before.graph, before.with_writers(previous_nodes), before.avoidable
        ).obsolete
        what_if = what_if_report(changes, int(before.saved_by(obsolete).sum()), monthly)
    by_type = ledger.by_type(saved.sum(axis=1))
    requested = set(nodes)
    stays, other_stays = _remaining_costs(ledger, savings)
    affected = [*savings.obsolete.tolist(), *savings.broken.tolist()]
    datasets = tuple(ledger.urn(node) for node in affected if not ledger.graph.is_job[node])
    return SavingsReport(
        **report_header(ledger, assumed=0, remarks=_remarks(ledger, savings)),
        what_if=what_if,
        asked=request or tuple(ledger.name(node) for node in nodes),
        feature_name=feature,
        datasets_affected=datasets,
        monthly_savings=amount_of(monthly),
        annual_savings=amount_of(monthly * _MONTHS),
        storage_savings=by_type.get("storage", Decimal(0)),
        compute_savings=by_type.get("compute", Decimal(0)),
        committed_cost=amount_of(ledger.monthly(int(savings.unavoidable.sum()))),
        breakdown=SavingsBreakdown(**by_type, affected_datasets=len(datasets)),
        impact_analysis=_impact(ledger, savings, requested),
        disappears=removed_nodes(ledger, savings.obsolete, saved.sum(axis=0), requested),
        stays=stays,
        other_stays=other_stays,
        broken=tuple(
            BrokenNode(
                urn=ledger.urn(node),
                name=ledger.name(node),
                kind=ledger.kind(node),
                owners=ledger.labels.owners(ledger.urn(node)),
                is_live=bool(ledger.graph.live[node]),
                is_verified=ledger.is_verified(node),
            )
            for node in savings.broken.tolist()
        ),
        unverified=tuple(
            ledger.urn(node)
            for node in affected
            if not ledger.graph.is_job[node] and not ledger.is_verified(node)
        ),
        attributed_cost=amount_of(ledger.monthly(int(ledger.totals[nodes[0]])))
        if len(nodes) == 1
        else None,
    )


def removed_nodes(
    ledger: CostLedger, removed: Integers, saved: Integers, requested: Collection[int] = ()
) -> tuple[RemovedNode, ...]:
    """The removed nodes with their savings: the requested ones first, then the most expensive."""
    rows = [
        RemovedNode(
            urn=ledger.urn(node),
            name=ledger.name(node),
            kind=ledger.kind(node),
            team=ledger.team(node),
            monthly=amount_of(int(amount)),
            is_asked=node in requested,
            is_verified=ledger.is_verified(node),
        )
        for node, amount in zip(removed.tolist(), saved, strict=True)
    ]
    return tuple(sorted(rows, key=lambda row: (not row.is_asked, -row.monthly, row.urn)))


def _remaining_costs(
    ledger: CostLedger, savings: Savings
) -> tuple[tuple[RemainingCost, ...], UnlistedCosts]:
    """The committed cost of removed nodes, then the most expensive nodes that remain."""
    own = ledger.own[savings.remaining]
    order = np.argsort(-own, kind="stable")
    order = order[own[order] != 0]
    rows = (
        *_committed_costs(ledger, savings),
        *(
            _needed_node(ledger, int(savings.remaining[index]), int(savings.needed_by[index]))
            for index in order[:MAX_ROWS]
        ),
    )
    unlisted = own[order[MAX_ROWS:]]
    return rows, UnlistedCosts(
        count=len(unlisted), cost=amount_of(ledger.monthly(int(unlisted.sum())))
    )


def _committed_costs(ledger: CostLedger, savings: Savings) -> Iterator[RemainingCost]:
    """Committed costs of removed nodes, which must still be paid."""
    if ledger.avoidable is None:
        return
    for node in savings.obsolete.tolist():
        if not ledger.avoidable[node] and ledger.own[node]:
            yield _remaining_cost(ledger, node, "committed: still due after removal")


def _needed_node(ledger: CostLedger, node: int, needed_by: int) -> RemainingCost:
    if needed_by < 0:
        reason = "unused, with or without this"
    elif needed_by == node:
        reason = "in use itself"
    else:
        reason = f"needed by {ledger.name(needed_by)}"
    return _remaining_cost(ledger, node, reason)


def _remaining_cost(ledger: CostLedger, node: int, reason: str) -> RemainingCost:
    return RemainingCost(
        urn=ledger.urn(node),
        name=ledger.name(node),
        kind=ledger.kind(node),
        monthly=amount_of(ledger.monthly(int(ledger.own[node]))),
        reason=reason,
    )


def _impact(ledger: CostLedger, savings: Savings, requested: set[int]) -> ImpactAnalysis:
    is_job, live = ledger.graph.is_job, ledger.graph.live
    broken = [node for node in savings.broken.tolist() if not is_job[node]]
    in_use = [node for node in broken if live[node] and ledger.is_verified(node)]
    maybe_in_use = [node for node in broken if live[node] and not ledger.is_verified(node)]
    still_read = [node for node in requested if live[node] and _is_read(ledger, node)]
    unverified_nodes = [
        node
        for node in (*requested, *broken)
        if not is_job[node] and not ledger.is_verified(node) and node not in maybe_in_use
    ]
    reasons = []
    if in_use:
        reasons.append(f"breaks {_join_names(ledger, in_use)}, which {_is_or_are(in_use)} in use")
    if maybe_in_use:
        pronoun = "it" if len(maybe_in_use) == 1 else "them"
        reasons.append(
            f"breaks {_join_names(ledger, maybe_in_use)}; no query log shows who reads {pronoun}"
        )
    if len(broken) >= _HIGH_RISK_COUNT:
        reasons.append(f"breaks {len(broken):,} downstream datasets")
    elif broken and not (in_use or maybe_in_use):
        reasons.append(f"breaks {_join_names(ledger, broken)}, of which no use is known")
    if still_read:
        reasons.append(f"{_join_names(ledger, still_read)} {_is_or_are(still_read)} still read")
    if unverified_nodes:
        reasons.append(f"no query log shows who reads {_join_names(ledger, unverified_nodes)}")
    unowned = [node for node in broken if not ledger.labels.owners(ledger.urn(node))]
    if unowned:
        reasons.append(f"no owner is known for {_join_names(ledger, unowned)}")
    risk: Risk = "LOW"
    if in_use or maybe_in_use or len(broken) >= _HIGH_RISK_COUNT:
        risk = "HIGH"
    elif reasons:
        risk = "MEDIUM"
    return ImpactAnalysis(
        direct_datasets=sum(not is_job[node] for node in requested),
        downstream_datasets=len(broken),
        risk_level=risk,
        reasons=tuple(reasons) or ("nothing downstream needs it and no reads are recorded",),
    )


def _is_read(ledger: CostLedger, node: int) -> bool:
    """Whether reads of a dataset are recorded."""
    return ledger.urn(node) in ledger.inputs.read


def _remarks(ledger: CostLedger, savings: Savings) -> tuple[str, ...]:
    committed = int(savings.unavoidable.sum())
    if not committed:
        return ()
    amount = format_money(ledger.monthly(committed), ledger.inputs.currency)
    return (f"{amount} per month is committed and still due.",)


def _join_names(ledger: CostLedger, nodes: list[int], limit: int = 3) -> str:
    names = ", ".join(ledger.name(node) for node in nodes[:limit])
    return names if len(nodes) <= limit else f"{names} and {len(nodes) - limit:,} more"


def _is_or_are(nodes: list[int]) -> str:
    return "is" if len(nodes) == 1 else "are"


def retire_report(
    ledger: CostLedger, top: int, *, before: CostLedger | None, changes: tuple[str, ...]
) -> RetireReport:
    """The (at most) `top` unread end uses that save most together, and nodes without an end use."""
    in_use = _read_end_uses(ledger)
    plan = plan_retirement(ledger.graph, top, ledger.avoidable, excluded=in_use)
    saved = [int(ledger.saved_by(group.obsolete).sum()) for group in plan.groups]
    sums = [sum(saved[: index + 1]) for index in range(len(saved))]
    unneeded = _unneeded_nodes(ledger, plan)
    what_if = None
    if before is not None:
        plan_before = plan_retirement(
            before.graph, top, before.avoidable, excluded=_read_end_uses(before)
        )
        saved_before = sum(
            int(before.saved_by(group.obsolete).sum()) for group in plan_before.groups
        )
        what_if = what_if_report(changes, saved_before, sum(saved))
    return RetireReport(
        **report_header(ledger, assumed=0),
        what_if=what_if,
        steps=tuple(
            _plan_step(ledger, group, monthly, total)
            for group, monthly, total in zip(plan.groups, saved, sums, strict=True)
        ),
        monthly_savings=amount_of(sum(saved)),
        annual_savings=amount_of(sum(saved) * _MONTHS),
        exact=plan.exact,
        in_use=len(in_use),
        unneeded=unneeded,
        unneeded_savings=amount_of(int(ledger.saved_by(plan.unneeded).sum())),
        spent=amount_of(ledger.monthly(ledger.spent)),
    )


def _read_end_uses(ledger: CostLedger) -> frozenset[int]:
    """The end uses with recorded reads."""
    return frozenset(
        node for node in np.flatnonzero(ledger.graph.live).tolist() if _is_read(ledger, node)
    )


def _plan_step(ledger: CostLedger, group: RetirementGroup, monthly: int, total: int) -> RetireStep:
    ends = group.ends.tolist()
    teams = (team for node in ends for team in ledger.labels.of("team", ledger.urn(node)))
    return RetireStep(
        datasets=tuple(ledger.urn(node) for node in group.obsolete.tolist()),
        ends=tuple(ledger.urn(node) for node in ends),
        names=tuple(ledger.name(node) for node in ends),
        teams=tuple(dict.fromkeys(teams)),
        monthly_savings=amount_of(monthly),
        cumulative=amount_of(total),
        is_verified=all(ledger.is_verified(node) for node in ends),
    )


def _unneeded_nodes(ledger: CostLedger, plan: RetirementPlan) -> tuple[RemovedNode, ...]:
    amounts = ledger.saved_by(plan.unneeded).sum(axis=0)
    costly = amounts != 0
    return removed_nodes(ledger, plan.unneeded[costly], amounts[costly])


def saving_hints(
    store: Store, settings: Settings, ledger: CostLedger, node: int
) -> list[SavingHint]:
    """Hints: remove an unread dataset, or skip runs without readers; largest savings first."""
    unread = _unread_hint(ledger, node)
    if unread is not None:
        # Hints on runs would be redundant: removing the dataset removes the jobs that only it
        # needs.
        return [unread]
    upstream = [
        int(each) for each in ledger.contributions_to(node).nodes if ledger.graph.is_job[each]
    ]
    recorded_reads = _RecordedReads(store, settings)
    hints = [_idle_runs_hint(store, ledger, job, recorded_reads) for job in upstream]
    return sorted(filter(None, hints), key=lambda hint: -hint.monthly)


class _RecordedReads:
    """The day since which reads are recorded, by dataset; reads by jobs are ignored."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    def since(self, urn: str) -> date:
        """The first day with recorded reads; `date.min` if there are none in this location."""
        source = self._sources.get(urn)
        day = None if source is None else self._first_reads.get(log_scope_of(urn, source))
        return day or date.min

    @cached_property
    def _sources(self) -> dict[str, str]:
        return self._store.usage.sources()

    @cached_property
    def _first_reads(self) -> dict[str, date]:
        jobs = jobs_by_reader(self._settings, self._store.lineage.jobs())
        return reads_known_since(self._store, self._sources.get, jobs)


def _unread_hint(ledger: CostLedger, node: int) -> SavingHint | None:
    is_end = not (ledger.graph.upstream == node).any()
    if not (is_end and ledger.is_verified(node)) or ledger.urn(node) in ledger.inputs.read:
        return None
    obsolete = savings_of(ledger.graph, ledger.with_writers([node]), ledger.avoidable).obsolete
    monthly = int(ledger.saved_by(obsolete).sum())
    if monthly <= 0:
        return None
    saved = format_money(monthly, ledger.inputs.currency)
    return SavingHint(
        f"nobody reads {ledger.name(node)}: removing it saves {saved} per month", monthly
    )


def _idle_runs_hint(
    store: Store, ledger: CostLedger, job: int, recorded_reads: _RecordedReads
) -> SavingHint | None:
    """The runs of a job whose outputs were not read before the next run."""
    period = ledger.inputs.period
    outputs = ledger.graph.downstream[ledger.graph.upstream == job]
    if not len(outputs) or not all(_are_reads_recorded(ledger, int(each)) for each in outputs):
        return None
    runs = [
        day for day in ledger.labels.run_days(ledger.urn(job)) if period.first <= day <= period.last
    ]
    if not runs:
        return None
    since = max(recorded_reads.since(ledger.urn(int(each))) for each in outputs)
    observed_runs = sorted(day for day in runs if day >= since)
    reads = {
        each.day
        for node in outputs
        for each in store.usage.of(ledger.urn(node), since=period.first)
    }
    idle = _without_reads(observed_runs, reads, period.last)
    own = ledger.monthly(int(ledger.own[job]))
    monthly = round(Fraction(own * idle, len(runs))) if idle else 0
    if monthly <= 0:
        return None
    saved = format_money(monthly, ledger.inputs.currency)
    text = (
        f"{idle:,} of {len(runs):,} runs of the job {ledger.name(job)} wrote data that nobody read "
        f"before the next run: skipping them saves {saved} per month"
    )
    return SavingHint(text, monthly)


def _are_reads_recorded(ledger: CostLedger, node: int) -> bool:
    """Whether all reads of a dataset are recorded, including reads by jobs."""
    edges = np.flatnonzero((ledger.graph.upstream == node) & (ledger.graph.downstream != node))
    is_counted = not np.isnan(ledger.graph.weights[:, edges]).any()
    return ledger.is_verified(node) and is_counted


def _without_reads(runs: Sequence[date], reads: set[date], last: date) -> int:
    """The number of runs without a read before the next run or the end of the period."""
    ends = [*(after for _, after in pairwise(runs)), last]
    return sum(
        not any(start <= day <= end for day in reads)
        for start, end in zip(runs, ends[: len(runs)], strict=True)
    )
