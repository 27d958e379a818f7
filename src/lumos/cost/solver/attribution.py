"""Attribution: every node's loaded cost through all that is upstream of it, and what it retains."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from lumos.cost.solver.circulation import circulated
from lumos.cost.solver.closed_cycles import with_ends_closed
from lumos.cost.solver.graph import DEFAULT_METHOD, Bools, CostGraph, Floats, Integers, Method
from lumos.cost.solver.shares import Shares, shares
from lumos.cost.solver.topology import Topology, topology
from lumos.errors import MisuseError

_LARGEST: Final = 9e18


class AmountsTooLarge(MisuseError):
    """Amounts that do not fit into 64 bits."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Component:
    """Nodes that lead to each other. Inside, loaded costs exceed what was spent."""

    members: Integers
    loaded: Integers
    """[k] own cost of all members and what flows in from outside, as of one node."""
    closed: Bools
    """[k] whether nothing leaves, so that all of it stays where it came in."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Attribution:
    """Micro-units by cost type and node. Retained adds up to what was spent; loaded does not."""

    loaded: Integers
    retained: Integers
    shares: Shares
    components: list[Component]
    assumed: Integers
    """[k, n] the part of `loaded` that came over an edge whose share is assumed."""
    assumed_amount: Integers
    """[k] the part of all that was spent which came to where it is over such an edge."""


def attribute(graph: CostGraph, method: Method = DEFAULT_METHOD) -> Attribution:
    """Solves T = c + W'T, level by level, with the cycles of each level in between."""
    order = topology(graph.nodes, graph.upstream, graph.downstream)
    divided, closed = with_ends_closed(graph, order, shares(graph, method))
    own = graph.costs.astype(np.float64)
    if np.abs(own).sum() > _LARGEST:
        raise AmountsTooLarge("The amounts add up to more than 9 x 10^12, the largest sum allowed.")
    exact = flowed(graph, order, own, divided.values)
    sums = np.abs(exact).sum(axis=0)
    if sums.max(initial=0.0) > _LARGEST:
        node = int(np.argmax(sums))
        raise AmountsTooLarge(
            f"A lineage cycle with {graph.urns[node]} retains so little of its cost that amounts "
            "in it become too large to be computed. Allocate explicit shares to the edges that "
            "lead back, so that less cost circulates."
        )
    retained = _retained(graph, divided.kept * exact)
    loaded = np.where(divided.kept == 1.0, retained, np.rint(exact).astype(np.int64))
    assumed = np.zeros_like(exact)
    if divided.assumed.any():
        rows = 1 if divided.uniform else len(graph.types)
        certain = np.where(divided.assumed[:rows], 0.0, divided.values[:rows])
        assumed = exact - flowed(graph, order, own, np.broadcast_to(certain, divided.values.shape))
    return Attribution(
        loaded=loaded,
        retained=retained,
        shares=divided,
        components=_components(graph, order, exact, divided.values, closed),
        assumed=np.rint(assumed).astype(np.int64),
        assumed_amount=np.rint((divided.kept * assumed).sum(axis=1)).astype(np.int64),
    )


def flowed(graph: CostGraph, order: Topology, own: Floats, values: Floats) -> Floats:
    """[k, n] what comes to each node of all that is put in, its own included."""
    loaded = own.copy()
    for level in order.levels:
        if len(level.cycles):
            circulated(loaded, graph, order, level.cycles, values)
        source, target = graph.upstream[level.edges], graph.downstream[level.edges]
        for amounts, share in zip(loaded, values, strict=True):
            np.add.at(amounts, target, amounts.take(source) * share.take(level.edges))
    return loaded


def _retained(graph: CostGraph, exact: Floats) -> Integers:
    """Whole micro-units that add up to what was spent, type by type."""
    rounded = np.rint(exact).astype(np.int64)
    for row, amounts, spent in zip(rounded, exact, graph.costs.sum(axis=1), strict=True):
        missing = int(spent) - int(row.sum())
        step = 1 if missing > 0 else -1
        too_far = step * (row - amounts)
        count = min(abs(missing), int(np.count_nonzero(too_far < 0)))
        if count:
            row[np.argpartition(too_far, count - 1)[:count]] += step
        # What is left is no rounding but the error of floats, which the largest have most of.
        if missing != step * count:
            row[np.argmax(np.abs(amounts))] += missing - step * count
    return rounded


def _components(
    graph: CostGraph, order: Topology, exact: Floats, values: Floats, closed: Bools
) -> list[Component]:
    if not order.cycles:
        return []
    member = order.cycle_of >= 0
    inner = np.concatenate(order.inner)
    of_edge = order.cycle_of[graph.upstream[inner]]
    count = len(order.cycles)
    loaded = np.array(
        [
            np.bincount(order.cycle_of[member], amounts[member], minlength=count)
            - np.bincount(of_edge, (amounts[graph.upstream] * share)[inner], minlength=count)
            for amounts, share in zip(exact, values, strict=True)
        ]
    )
    whole = np.rint(loaded).astype(np.int64)
    return [
        Component(members=members, loaded=whole[:, number], closed=closed[:, number])
        for number, members in enumerate(order.cycles)
    ]
