"""What truly disappears when datasets are shut down; not what was attributed to them."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from lumos.cost.solver.dominance import PostDominators
from lumos.cost.solver.graph import Bools, CostGraph, Integers
from lumos.cost.solver.reach import Ways


@dataclass(frozen=True, kw_only=True, eq=False)
class Savings:
    """What the end of some nodes would mean; nodes are numbers in ascending order."""

    saved: Integers
    """[k] micro-units that are not spent any more."""
    unavoidable: Integers
    """[k] micro-units of what is gone that stay due: commitments, retention, legal holds."""
    removed: Integers
    gone: Integers
    """What is removed, and what no end use needs any more."""
    broken: Integers
    """What stays and loses something that it is made from, however far up."""
    staying: Integers
    """What is upstream of the removed and stays."""
    needed_by: Integers
    """For each of `staying` an end use that needs it still, or -1 where none ever did."""


def savings_of_all(graph: CostGraph, avoidable: Bools | None = None) -> Integers:
    """[n] what removing each node alone would save, in one pass: the sum below it in the tree."""
    return PostDominators(graph).subtree_sums(avoidable_costs(graph, avoidable).sum(axis=0))


def savings_of(
    graph: CostGraph, removed: Collection[int], avoidable: Bools | None = None
) -> Savings:
    """What removing these nodes together saves, breaks, and leaves in place.

    A node is gone when it led to an end use before and now does not. End uses that only break
    still count: whoever runs them goes on paying for what they read.
    """
    with_edges = Ways(graph.nodes, graph.upstream, graph.downstream)
    against = Ways(graph.nodes, graph.downstream, graph.upstream)
    ends = np.flatnonzero(graph.live)
    out = np.zeros(graph.nodes, dtype=np.bool_)
    out[list(removed)] = True
    end_before = against.origins(ends)
    end_after = against.origins(ends, closed=out)
    gone = out | ((end_before >= 0) & (end_after < 0))
    broken = with_edges.origins(np.flatnonzero(gone)) >= 0
    upstream = against.origins(np.flatnonzero(out)) >= 0
    staying = np.flatnonzero(upstream & ~gone)
    due = avoidable_costs(graph, avoidable)[:, gone].sum(axis=1)
    return Savings(
        saved=due,
        unavoidable=graph.costs[:, gone].sum(axis=1) - due,
        removed=np.flatnonzero(out),
        gone=np.flatnonzero(gone),
        broken=np.flatnonzero(broken & ~gone),
        staying=staying,
        needed_by=end_after[staying],
    )


def avoidable_costs(graph: CostGraph, avoidable: Bools | None) -> Integers:
    """[k, n] own costs that end with their node; `avoidable` is [n] or [k, n]."""
    return graph.costs if avoidable is None else np.where(avoidable, graph.costs, 0)
