"""The cost graph: datasets and jobs with their own cost, and the edges between them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class CostGraph:
    """A graph with n nodes, m edges and k cost types.

    Every edge occurs once; no cost is passed on along self-edges. `explicit` (the shares that users
    set) and `weights` may have one row ([1, m]) for all cost types.
    """

    urns: Sequence[str]
    types: tuple[str, ...]
    is_job: Bools
    costs: Integers
    """[k, n] own cost in micro-units; credits are negative."""
    live: Bools
    """[n] whether this is an end use: it has consumers that are not nodes of the graph."""
    upstream: Integers
    downstream: Integers
    explicit: Floats
    """[k, m] shares that users set; nan where none is set."""
    weights: Floats
    """[k, m] bytes or rows read; nan where unknown."""
    last_read: Floats
    """[m] seconds since 1970; nan where unknown."""

    def __post_init__(self) -> None:
        nodes, edges, types = self.nodes, self.edges, len(self.types)
        edge_shapes = ((1, edges), (types, edges))
        is_consistent = (
            types > 0
            and self.costs.shape == (types, nodes)
            and self.is_job.shape == self.live.shape == (nodes,)
            and self.upstream.shape == self.downstream.shape == self.last_read.shape == (edges,)
            and self.explicit.shape in edge_shapes
            and self.weights.shape in edge_shapes
        )
        if not is_consistent:
            raise ValueError("The arrays of a cost graph have inconsistent shapes.")

    @classmethod
    def of(
        cls,
        costs: Mapping[str, Mapping[str, int]],
        edges: Sequence[tuple[str, str]],
        *,
        live: Mapping[str, bool] | None = None,
        jobs: Sequence[str] = (),
        shares: Mapping[tuple[str, str], float | Mapping[str, float]] | None = None,
        weights: Mapping[tuple[str, str], float] | None = None,
        last_read: Mapping[tuple[str, str], float] | None = None,
        types: Sequence[str] | None = None,
    ) -> "CostGraph":
        """Build a small graph from names; `costs` are own costs in micro-units by node and type."""
        urns = list(costs)
        node_by_urn = {urn: number for number, urn in enumerate(urns)}
        cost_types = tuple(types or dict.fromkeys(name for own in costs.values() for name in own))
        upstream = np.array([node_by_urn[pair[0]] for pair in edges], dtype=np.int64)
        downstream = np.array([node_by_urn[pair[1]] for pair in edges], dtype=np.int64)
        end_uses = unread_nodes(len(urns), upstream, downstream)
        for urn, is_live in (live or {}).items():
            end_uses[node_by_urn[urn]] = is_live
        explicit = np.full((len(cost_types), len(edges)), np.nan)
        for number, pair in enumerate(edges):
            edge_shares = (shares or {}).get(pair, {})
            for row, name in enumerate(cost_types):
                share = edge_shares.get(name) if isinstance(edge_shares, Mapping) else edge_shares
                explicit[row, number] = np.nan if share is None else share
        edge_weights = np.array(
            [(weights or {}).get(pair, np.nan) for pair in edges], dtype=np.float64
        )
        last_reads = np.array(
            [(last_read or {}).get(pair, np.nan) for pair in edges], dtype=np.float64
        )
        own = [[costs[urn].get(name, 0) for urn in urns] for name in cost_types]
        return cls(
            urns=urns, types=cost_types, is_job=np.isin(urns, list(jobs)),
            costs=np.array(own, dtype=np.int64).reshape(len(cost_types), len(urns)), live=end_uses,
            upstream=upstream, downstream=downstream, explicit=explicit,
            weights=edge_weights.reshape(1, -1), last_read=last_reads,
        )  # fmt: skip

    @property
    def nodes(self) -> int:
        """The number of datasets and jobs."""
        return len(self.urns)

    @property
    def edges(self) -> int:
        """The number of edges, including self-edges."""
        return len(self.upstream)


def unread_nodes(nodes: int, upstream: Integers, downstream: Integers) -> Bools:
    """[n] whether no other node reads a node; such nodes are end uses by default."""
    end_uses = np.ones(nodes, dtype=np.bool_)
    end_uses[upstream[upstream != downstream]] = False
    return end_uses
