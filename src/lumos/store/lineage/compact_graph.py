"""The lineage graph in numpy arrays, for walks that reach a large part of the graph."""

from collections.abc import Collection
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lumos.store.lineage.graph import Reach

Ids = NDArray[np.int64]
_UNREACHED: Final = -1


class CompactGraph:
    """All links of a store in sorted arrays, for walks that reach a large part of the graph."""

    def __init__(self, upstream: Ids, downstream: Ids) -> None:
        self._size = int(max(upstream.max(initial=0), downstream.max(initial=0))) + 1
        self._links_by_direction = {
            "downstream": _SortedLinks(upstream, downstream, self._size),
            "upstream": _SortedLinks(downstream, upstream, self._size),
        }

    def reach(
        self, starts: Collection[int], *, direction: str, depth: int | None, limit: int | None
    ) -> Reach:
        """Walk level by level from the start nodes; list the nearest ones, and count all."""
        # Nodes without links may have ids beyond the arrays.
        unlinked = [start for start in starts if start >= self._size]
        links = self._links_by_direction[direction]
        depths = np.full(self._size, _UNREACHED, dtype=np.int32)
        frontier = np.fromiter((start for start in starts if start < self._size), dtype=np.int64)
        depths[frontier] = 0
        level = 0
        is_beyond = False
        while len(frontier):
            _, after = links.outgoing_links(frontier)
            new_nodes = after[depths[after] == _UNREACHED]
            if depth is not None and level >= depth:
                is_beyond = bool(len(new_nodes))
                break
            level += 1
            depths[new_nodes] = level
            # Without duplicates, although several links may lead to one node.
            frontier = np.flatnonzero(depths == level)
        reached = np.flatnonzero(depths != _UNREACHED)
        total = len(reached)
        if limit is not None and total > limit:
            reached = reached[np.argsort(depths[reached], kind="stable")[:limit]]
        before, after = links.outgoing_links(reached)
        is_listed = np.zeros(self._size, dtype=np.bool_)
        is_listed[reached] = True
        is_inside = is_listed[after]
        return Reach(
            dict.fromkeys(unlinked, 0)
            | dict(zip(reached.tolist(), depths[reached].tolist(), strict=True)),
            list(
                zip(
                    before[is_inside].tolist(),
                    after[is_inside].tolist(),
                    strict=True,
                )
            ),
            total + len(unlinked),
            truncated=is_beyond or len(reached) < total,
        )


class _SortedLinks:
    """Links sorted by start: those of node `n` end at `ends[first[n]:first[n + 1]]`."""

    def __init__(self, starts: Ids, ends: Ids, size: int) -> None:
        order = np.lexsort((ends, starts))
        self._ends = ends[order]
        self._first: NDArray[Any] = np.searchsorted(starts[order], np.arange(size + 1))

    def outgoing_links(self, nodes: Ids) -> tuple[Ids, Ids]:
        """The links that start at the given nodes, as two columns."""
        first, last = self._first[nodes], self._first[nodes + 1]
        counts = last - first
        starts = np.cumsum(counts) - counts
        positions = np.repeat(first - starts, counts) + np.arange(int(counts.sum()))
        return np.repeat(nodes, counts), self._ends[positions]
