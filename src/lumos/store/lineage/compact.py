"""All links of a store in a few arrays, for walks that come to much of it."""

from collections.abc import Collection
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lumos.store.lineage.graph import Reach

Ids = NDArray[np.int64]
_NOWHERE: Final = -1


class CompactGraph:
    """Links between numbered nodes, sorted by where they begin, for either direction."""

    def __init__(self, upstream: Ids, downstream: Ids) -> None:
        self._size = int(max(upstream.max(initial=0), downstream.max(initial=0))) + 1
        self._sorted = {
            "downstream": _Sorted(upstream, downstream, self._size),
            "upstream": _Sorted(downstream, upstream, self._size),
        }

    def reach(
        self, starts: Collection[int], *, direction: str, depth: int | None, limit: int | None
    ) -> Reach:
        """Walks level by level from some nodes; lists the nearest up to a limit, and counts all."""
        # What has no links may have no place here either.
        alone = [start for start in starts if start >= self._size]
        links = self._sorted[direction]
        depths = np.full(self._size, _NOWHERE, dtype=np.int32)
        frontier = np.fromiter((start for start in starts if start < self._size), dtype=np.int64)
        depths[frontier] = 0
        level = 0
        is_beyond = False
        while len(frontier):
            _, after = links.onward(frontier)
            fresh = after[depths[after] == _NOWHERE]
            if depth is not None and level >= depth:
                is_beyond = bool(len(fresh))
                break
            level += 1
            depths[fresh] = level
            # What several links lead to is in the level once.
            frontier = np.flatnonzero(depths == level)
        reached = np.flatnonzero(depths != _NOWHERE)
        total = len(reached)
        if limit is not None and total > limit:
            reached = reached[np.argsort(depths[reached], kind="stable")[:limit]]
        before, after = links.onward(reached)
        is_listed = np.zeros(self._size, dtype=np.bool_)
        is_listed[reached] = True
        kept = is_listed[after]
        return Reach(
            dict.fromkeys(alone, 0)
            | dict(zip(reached.tolist(), depths[reached].tolist(), strict=True)),
            list(zip(before[kept].tolist(), after[kept].tolist(), strict=True)),
            total + len(alone),
            truncated=is_beyond or len(reached) < total,
        )


class _Sorted:
    """Links by where they begin: those of node `n` end at `ends[first[n]:first[n + 1]]`."""

    def __init__(self, begins: Ids, ends: Ids, size: int) -> None:
        order = np.lexsort((ends, begins))
        self._ends = ends[order]
        self._first: NDArray[Any] = np.searchsorted(begins[order], np.arange(size + 1))

    def onward(self, nodes: Ids) -> tuple[Ids, Ids]:
        """The links that lead on from some nodes, as two columns."""
        first, last = self._first[nodes], self._first[nodes + 1]
        counts = last - first
        starts = np.cumsum(counts) - counts
        places = np.repeat(first - starts, counts) + np.arange(int(counts.sum()))
        return np.repeat(nodes, counts), self._ends[places]
