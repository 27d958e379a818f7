"""Assembles the cost graph of a period: own costs, allocated shares, usage and commitments."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import numpy as np

from lumos.config import Settings
from lumos.config.costs import Allocation
from lumos.config.prices import (
    MissingPrices,
    allocations_of,
    committed_of,
    monthly_amounts,
    prices_of,
)
from lumos.cost.inputs.nodes import CostNodes, NodeFinder, load_nodes
from lumos.cost.inputs.own_costs import ComputeCosts, StorageCosts, override_costs
from lumos.cost.inputs.usage import read_usage
from lumos.cost.solver.graph import Bools, CostGraph, Floats, Integers
from lumos.errors import MisuseError
from lumos.model.cost import ADJUSTMENT, COST_TYPES, IDLE, SHARED, UNALLOCATED
from lumos.model.dataset_pattern import DatasetPattern
from lumos.model.money import check_amount, micros
from lumos.model.period import Period

if TYPE_CHECKING:
    from lumos.config.costs import FeatureSettings
    from lumos.store import Store


def explicit_shares(
    settings: Settings, cost_nodes: CostNodes, finder: NodeFinder, types: Sequence[str]
) -> Floats:
    """[k, m] the configured shares, nan for other edges; [1, m] if no share is configured."""
    allocations = allocations_of(settings)
    edges = len(cost_nodes.upstream)
    if not allocations:
        return np.full((1, edges), np.nan)
    shares = np.full((len(types), edges), np.nan)
    for each in allocations:
        edge = _edge(each, cost_nodes, finder)
        for row, name in enumerate(types):
            share = each.share if each.share is not None else each.shares.get(name)  # type: ignore[call-overload]
            if share is None:
                continue
            if not np.isnan(shares[row, edge]):
                raise MisuseError(
                    f"The share of {each.upstream} for {each.downstream} is allocated twice. Keep "
                    "one of the allocations in the configuration."
                )
            shares[row, edge] = share
    _check_sums(shares, cost_nodes, types)
    return shares


def _edge(allocation: Allocation, cost_nodes: CostNodes, finder: NodeFinder) -> int:
    """The edge of an allocation; if a single job connects two datasets, the edge to that job."""
    start, end = (
        finder.find_configured(each, "An allocation")
        for each in (allocation.upstream, allocation.downstream)
    )
    edge = cost_nodes.edge(start, end)
    if edge is not None:
        return edge
    between = [job for job in cost_nodes.readers(start) if end in cost_nodes.readers(job)]
    jobs = [job for job in between if cost_nodes.is_job[job]]
    if len(jobs) == 1 and cost_nodes.readers(jobs[0]) == [end]:
        edge_to_job = cost_nodes.edge(start, jobs[0])
        assert edge_to_job is not None
        return edge_to_job
    names = f"{allocation.upstream} to {allocation.downstream}"
    if not jobs:
        raise MisuseError(
            f"A share is allocated from {names}, but there is no such lineage. Add it with: lumos "
            f"lineage add {allocation.upstream} {allocation.downstream}"
        )
    job_list = ", ".join(cost_nodes.urns[job] for job in jobs)
    raise MisuseError(
        f"A share is allocated from {names}, but {job_list} between them "
        f"{'writes' if len(jobs) == 1 else 'write'} other datasets too. Allocate shares to and "
        "from the jobs instead."
    )


def _check_sums(shares: Floats, cost_nodes: CostNodes, types: Sequence[str]) -> None:
    for row, name in enumerate(types):
        is_set = ~np.isnan(shares[row])
        sums = np.bincount(
            cost_nodes.upstream[is_set], shares[row][is_set], minlength=len(cost_nodes.urns)
        )
        for node in np.flatnonzero(sums > 1 + 1e-9):
            raise MisuseError(
                f"The shares of {cost_nodes.urns[node]} add up to {sums[node]:g} for {name}; "
                "at most 1 can be allocated. Lower some allocations in the configuration."
            )


def committed_nodes(
    store: "Store", settings: Settings, cost_nodes: CostNodes
) -> tuple[set[int], tuple[str, ...]]:
    """The datasets and jobs that are configured as committed, and remarks on unmatched entries.

    The remarks reveal misspelled entries, which would make savings too high.
    """
    committed = committed_of(settings)
    nodes: set[int] = set()
    unmatched: list[str] = []
    patterns = [text for each in committed for text in (*each.datasets, *each.patterns)]
    for text, found in (
        *_match_patterns(patterns, cost_nodes),
        *_match_tags(store, cost_nodes, committed),
    ):
        nodes |= found
        if not found:
            unmatched.append(text)
    remarks = tuple(
        f"'committed' in the configuration names {text}, which matches no dataset or job."
        for text in unmatched
    )
    return nodes, remarks


def _match_patterns(patterns: list[str], cost_nodes: CostNodes) -> Iterator[tuple[str, set[int]]]:
    names = {urn: job.name for urn, job in cost_nodes.jobs.items()}
    for text in patterns:
        pattern = DatasetPattern(text)
        yield (
            f"'{text}'",
            {
                node
                for node, urn in enumerate(cost_nodes.urns)
                if pattern.matches(urn, names.get(urn, ""))
            },
        )


def _match_tags(
    store: "Store", cost_nodes: CostNodes, committed: "tuple[FeatureSettings, ...]"
) -> Iterator[tuple[str, set[int]]]:
    tags = [tag for each in committed for tag in each.tags]
    governance_by_urn = store.aspects("governance") if tags else {}
    for tag in tags:
        yield (
            f"the tag '{tag}'",
            {
                cost_nodes.node_by_urn[urn]
                for urn, governance in governance_by_urn.items()
                if tag in governance.tags and urn in cost_nodes.node_by_urn
            },
        )


_ALWAYS_INCLUDED_TYPES: Final = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class CostInputs:
    """The cost graph of a period and unattributed costs, in micro-units of one currency.

    `read` are datasets with recorded reads, and `unverified` those whose reads are not recorded.
    `avoidable` ([n]) says whether removing a node ends its own cost; None if true for all nodes.
    """

    graph: CostGraph
    currency: str
    period: Period
    remarks: tuple[str, ...]
    unallocated: int
    idle: int
    shared: int
    adjustment: int
    read: frozenset[str]
    unverified: frozenset[str]
    avoidable: Bools | None


def build_inputs(
    store: "Store",
    settings: Settings,
    period: Period,
    *,
    prices: Mapping[str, Decimal] | None = None,
    moves: Mapping[str, str] | None = None,
    schedules: Mapping[str, str] | None = None,
) -> CostInputs:
    """Build the cost graph of a period from the store and the configuration.

    For a what-if report, `prices` (by keys such as `s3.glacier`), `moves` (storage classes by
    dataset) and `schedules` (such as `weekly` or `0.5x`, by job) replace the actual values.
    """
    price_list = prices_of(settings).with_changes(prices or {})
    cost_nodes = load_nodes(store)
    finder = NodeFinder(store, settings, cost_nodes)
    storage = StorageCosts(
        store, price_list, period, cost_nodes, moves=finder.resolve_moves(moves or {})
    )
    compute = ComputeCosts(store, price_list, period, finder, schedules=schedules or {})
    missing = {*storage.missing, *compute.missing}
    if missing:
        raise MissingPrices(missing)
    # Created after the compute costs, which add nodes for jobs without lineage.
    costs = np.zeros((len(COST_TYPES), len(cost_nodes.urns)), dtype=np.int64)
    storage.add_to(costs[COST_TYPES.index("storage")])
    compute.add_to(costs)
    remarks = override_costs(costs, store, settings, price_list.currency, period, finder, compute)
    costs, types = _drop_empty_types(costs)
    usage = read_usage(store, settings, cost_nodes, period)
    graph = CostGraph(
        urns=cost_nodes.urns,
        types=types,
        is_job=cost_nodes.is_job,
        costs=costs,
        live=usage.live,
        upstream=cost_nodes.upstream,
        downstream=cost_nodes.downstream,
        explicit=explicit_shares(settings, cost_nodes, finder, types),
        weights=usage.weights,
        last_read=usage.last_read,
    )
    committed_numbers, commitment_remarks = committed_nodes(store, settings, cost_nodes)
    unattributed = _unattributed(settings, period, compute.reserved)
    return CostInputs(
        graph=graph,
        currency=price_list.currency,
        period=period,
        remarks=(*storage.remarks, *compute.remarks, *remarks, *commitment_remarks),
        unallocated=unattributed[UNALLOCATED],
        idle=unattributed[IDLE],
        shared=unattributed[SHARED],
        adjustment=unattributed[ADJUSTMENT],
        read=usage.read,
        unverified=usage.unverified,
        avoidable=_avoidable_mask(committed_numbers, graph.nodes),
    )


def _drop_empty_types(costs: Integers) -> tuple[Integers, tuple[str, ...]]:
    """Remove the rows of cost types without costs, except for storage and compute."""
    rows = [row for row in range(len(costs)) if row < _ALWAYS_INCLUDED_TYPES or costs[row].any()]
    return costs[rows], tuple(COST_TYPES[row] for row in rows)


def _unattributed(
    settings: Settings, period: Period, reserved: Mapping[str, int]
) -> dict[str, int]:
    """Costs that belong to no dataset or job, from meters and from the configuration."""
    configured: Mapping[str, Decimal] = {
        IDLE: monthly_amounts(settings, "idle"),
        SHARED: monthly_amounts(settings, "shared"),
        ADJUSTMENT: monthly_amounts(settings, "adjustments"),
        UNALLOCATED: Decimal(0),
    }
    return {
        name: check_amount(
            reserved.get(name, 0) + round(micros(amount) * period.months), f"of {name}"
        )
        for name, amount in configured.items()
    }


def _avoidable_mask(committed_numbers: set[int], nodes: int) -> Bools | None:
    if not committed_numbers:
        return None
    avoidable = np.ones(nodes, dtype=np.bool_)
    avoidable[list(committed_numbers)] = False
    return avoidable
