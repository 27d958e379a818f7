"""The graph of downstream datasets, and how each is derived."""

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec

from lumos.impact.rules.type_uses import StatementEffect, TableVersions
from lumos.model.lineage import Edge
from lumos.model.schema import Schema

# Returns the versions of a dataset by its URN.
Versions = Callable[[str], TableVersions]


class DatasetDerivation(msgspec.Struct, frozen=True, kw_only=True):
    """How a dataset is derived according to one reporter: edges into it, and SQL if stored.

    `tables` maps the table names in the SQL, as name parts, to URNs. `unparsed` are the datasets
    that the unparsable statement on `line` mentions.
    """

    origin: str
    edges: tuple[Edge, ...] = ()
    sql: str | None = None
    dialect: str | None = None
    file: str | None = None
    tables: tuple[tuple[tuple[str, ...], str], ...] = ()
    unparsed: tuple[str, ...] = ()
    line: int | None = None


class DownstreamGraph(Protocol):
    """The datasets downstream of a dataset."""

    def links(self, urn: str) -> Iterable[tuple[str, str]]:
        """All (upstream, downstream) links downstream of a dataset."""
        ...

    def derivations(self, urn: str) -> Sequence[DatasetDerivation]:
        """How a dataset is derived, one entry per reporter and script."""
        ...

    def schema(self, urn: str) -> Schema | None:
        """The current schema of a dataset, if known."""
        ...

    def owners(self, urn: str) -> Sequence[str]:
        """The owners of a dataset."""
        ...


class SqlAnalyzer(Protocol):
    """Analyses the SQL of a derivation with its tables before and after a change."""

    def __call__(
        self,
        derivation: DatasetDerivation,
        dataset: str,
        versions_of: Versions,
        *,
        with_fields: bool,
    ) -> Sequence[StatementEffect]:
        """The effect of each statement that writes the dataset; empty if there is none."""
        ...


class RankedGraph:
    """The datasets downstream of `start`, with distances and topological ranks."""

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
        distances = {self.start: 0}
        queue = deque([self.start])
        while queue:
            urn = queue.popleft()
            for child in self.children.get(urn, ()):
                if child not in distances:
                    distances[child] = distances[urn] + 1
                    queue.append(child)
        return distances

    def _ranks(self) -> dict[str, int]:
        """Topological ranks; a cycle starts with its dataset nearest to the start."""
        unranked_parents = {
            urn: sum(parent in self.distance for parent in self.parents.get(urn, ()))
            for urn in self.distance
        }
        ranks: dict[str, int] = {}
        by_distance = [(distance, urn) for urn, distance in self.distance.items()]
        heapq.heapify(by_distance)
        queue = deque([self.start])
        while len(ranks) < len(self.distance):
            if not queue:
                # Only cycles are left: continue with their dataset nearest to the start.
                _, urn = heapq.heappop(by_distance)
                queue.append(urn)
            urn = queue.popleft()
            if urn in ranks:
                continue
            ranks[urn] = len(ranks)
            for child in self.children.get(urn, ()):
                unranked_parents[child] -= 1
                if unranked_parents[child] == 0 and child not in ranks:
                    queue.append(child)
        return ranks

    def has_chain(self, urns: Iterable[str]) -> bool:
        """Whether one of the datasets is downstream of another."""
        targets = set(urns)
        downstream: set[str] = set()
        for urn in sorted(self.rank, key=self.rank.__getitem__):
            if urn in downstream and urn in targets:
                return True
            if urn in downstream or urn in targets:
                downstream.update(self.children.get(urn, ()))
        return False
