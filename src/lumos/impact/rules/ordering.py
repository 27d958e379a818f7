"""In which order what is downstream is looked at, and updated."""

import heapq
from collections import deque
from collections.abc import Iterable


class Graph:
    """Datasets down the stream of one, with distances and an order in which makers come first."""

    def __init__(self, start: str, links: Iterable[tuple[str, str]]) -> None:
        self.start = start
        self.children: dict[str, list[str]] = {}
        self.parents: dict[str, list[str]] = {}
        for upstream, downstream in dict.fromkeys(links):
            if upstream != downstream and downstream != start:
                self.children.setdefault(upstream, []).append(downstream)
                self.parents.setdefault(downstream, []).append(upstream)
        self.distance = self._distances()
        self.rank = self._ranks()

    def _distances(self) -> dict[str, int]:
        found = {self.start: 0}
        waiting = deque([self.start])
        while waiting:
            urn = waiting.popleft()
            for child in self.children.get(urn, ()):
                if child not in found:
                    found[child] = found[urn] + 1
                    waiting.append(child)
        return found

    def _ranks(self) -> dict[str, int]:
        """Places in an order in which every dataset stands behind what it is made from.

        Where data flows in a circle, the nearest to the start comes first.
        """
        missing = {
            urn: sum(parent in self.distance for parent in self.parents.get(urn, ()))
            for urn in self.distance
        }
        ranks: dict[str, int] = {}
        ready = [self.start]
        stuck = [(distance, urn) for urn, distance in self.distance.items()]
        heapq.heapify(stuck)
        waiting = deque(ready)
        while len(ranks) < len(self.distance):
            if not waiting:
                _, urn = heapq.heappop(stuck)
                waiting.append(urn)
            urn = waiting.popleft()
            if urn in ranks:
                continue
            ranks[urn] = len(ranks)
            for child in self.children.get(urn, ()):
                missing[child] -= 1
                if missing[child] == 0 and child not in ranks:
                    waiting.append(child)
        return ranks

    def has_chain(self, urns: Iterable[str]) -> bool:
        """Whether one of some datasets lies downstream of another."""
        wanted = set(urns)
        behind: set[str] = set()
        for urn in sorted(self.rank, key=self.rank.__getitem__):
            if urn in behind and urn in wanted:
                return True
            if urn in behind or urn in wanted:
                behind.update(self.children.get(urn, ()))
        return False
