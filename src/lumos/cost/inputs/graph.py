"""All that costs are computed from, put together as one graph for a period."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import numpy as np

from lumos.config import Settings
from lumos.config.prices import MissingPrices, monthly_amounts, prices_of
from lumos.cost.inputs.allocations import explicit_shares
from lumos.cost.inputs.commitments import committed_nodes
from lumos.cost.inputs.compute import ComputeCosts
from lumos.cost.inputs.names import Finder
from lumos.cost.inputs.nodes import wired
from lumos.cost.inputs.overrides import override_costs
from lumos.cost.inputs.readers import readings
from lumos.cost.inputs.storage import StorageCosts
from lumos.cost.solver.graph import Bools, CostGraph, Integers
from lumos.model.metering import ADJUSTMENT, COST_TYPES, IDLE, SHARED, UNALLOCATED
from lumos.model.money import micros, reckonable
from lumos.model.period import Period

if TYPE_CHECKING:
    from lumos.store import Store

_ALWAYS_TOLD: Final = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Inputs:
    """The graph of a period, and what lineage does not carry, in micro-units of one currency.

    `read` are the datasets that somebody was seen to read, `unverified` those of which nobody can
    say whether anything else reads them. `avoidable` ([n]) is what ends with what it is spent on;
    nothing where all does.
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


def cost_graph(
    store: "Store",
    settings: Settings,
    period: Period,
    *,
    prices: Mapping[str, Decimal] | None = None,
    moves: Mapping[str, str] | None = None,
    schedules: Mapping[str, str] | None = None,
) -> Inputs:
    """What was spent in a period, where, and who reads what.

    Prices by keys such as `s3.glacier`, storage classes by dataset, and paces such as `weekly` or
    `0.5x` by job are supposed to be so, whatever is known.
    """
    listed = prices_of(settings).changed(prices or {})
    wiring = wired(store)
    finder = Finder(store, settings, wiring)
    storage = StorageCosts(store, listed, period, wiring, moves=finder.moved(moves or {}))
    compute = ComputeCosts(store, listed, period, finder, schedules=schedules or {})
    missing = {*storage.missing, *compute.missing}
    if missing:
        raise MissingPrices(missing)
    # Jobs that lineage does not know, and whose outputs it does, have become nodes by now.
    costs = np.zeros((len(COST_TYPES), len(wiring.urns)), dtype=np.int64)
    storage.put_into(costs[COST_TYPES.index("storage")])
    compute.put_into(costs)
    remarks = override_costs(costs, store, settings, listed.currency, period, finder, compute)
    costs, types = _told(costs)
    reading = readings(store, settings, wiring, period)
    graph = CostGraph(
        urns=wiring.urns,
        types=types,
        is_job=wiring.is_job,
        costs=costs,
        live=reading.live,
        upstream=wiring.upstream,
        downstream=wiring.downstream,
        explicit=explicit_shares(settings, wiring, finder, types),
        weights=reading.weights,
        last_read=reading.last_read,
    )
    held, unheld = committed_nodes(store, settings, wiring)
    beside = _beside(settings, period, compute.reserved)
    return Inputs(
        graph=graph,
        currency=listed.currency,
        period=period,
        remarks=(*storage.remarks, *compute.remarks, *remarks, *unheld),
        unallocated=beside[UNALLOCATED],
        idle=beside[IDLE],
        shared=beside[SHARED],
        adjustment=beside[ADJUSTMENT],
        read=reading.read,
        unverified=reading.unverified,
        avoidable=_avoidable(held, graph.nodes),
    )


def _told(costs: Integers) -> tuple[Integers, tuple[str, ...]]:
    """The cost types that there is something of, and those that everybody expects."""
    rows = [row for row in range(len(costs)) if row < _ALWAYS_TOLD or costs[row].any()]
    return costs[rows], tuple(COST_TYPES[row] for row in rows)


def _beside(settings: Settings, period: Period, reserved: Mapping[str, int]) -> dict[str, int]:
    """What no dataset and no job is charged with: metered, and from the configuration."""
    configured: Mapping[str, Decimal] = {
        IDLE: monthly_amounts(settings, "idle"),
        SHARED: monthly_amounts(settings, "shared"),
        ADJUSTMENT: monthly_amounts(settings, "adjustments"),
        UNALLOCATED: Decimal(0),
    }
    return {
        name: reckonable(
            reserved.get(name, 0) + round(micros(amount) * period.months), f"of {name}"
        )
        for name, amount in configured.items()
    }


def _avoidable(held: set[int], nodes: int) -> Bools | None:
    if not held:
        return None
    avoidable = np.ones(nodes, dtype=np.bool_)
    avoidable[list(held)] = False
    return avoidable
