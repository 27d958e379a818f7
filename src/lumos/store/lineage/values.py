"""What the store tells of lineage."""

from collections.abc import Iterable
from datetime import datetime
from itertools import groupby
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from lumos.model.lineage import ColumnMapping, ColumnUse, Edge, LineageType
from lumos.store.lineage import graph
from lumos.store.lineage.columns import ColumnNode, ColumnStep
from lumos.store.lineage.merging import all_mappings, all_uses, closest_type
from lumos.store.records import State

Direction: TypeAlias = Literal["upstream", "downstream"]


class KeptEdge(Edge, frozen=True, kw_only=True):
    """An edge as one reporter tells it: first seen `at`, and last seen in its latest report."""

    last_seen: datetime


class MergedEdge(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of the way from one dataset to another, and from whom."""

    upstream: str
    downstream: str
    type: LineageType
    confidence: float
    columns: tuple[ColumnMapping, ...]
    uses: tuple[ColumnUse, ...]
    origins: tuple[KeptEdge, ...]


def merged(edges: Iterable[KeptEdge]) -> tuple[MergedEdge, ...]:
    """Edges between the same two datasets as one, by both URNs."""

    def ends(edge: KeptEdge) -> tuple[str, str]:
        return edge.upstream, edge.downstream

    ordered = sorted(edges, key=lambda edge: (*ends(edge), edge.origin, edge.job or ""))
    return tuple(_merged(tuple(some)) for _, some in groupby(ordered, key=ends))


def _merged(edges: tuple[KeptEdge, ...]) -> MergedEdge:
    confidence = max(edge.confidence for edge in edges)
    return MergedEdge(
        upstream=edges[0].upstream,
        downstream=edges[0].downstream,
        type=closest_type(edge.type for edge in edges if edge.confidence == confidence),
        confidence=confidence,
        columns=all_mappings(edge.columns for edge in edges),
        uses=all_uses(edge.uses for edge in edges),
        origins=edges,
    )


class Reporting(msgspec.Struct, frozen=True, kw_only=True):
    """What a report changed; `touched` are the datasets at either end of what did."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    touched: tuple[str, ...] = ()


class Reporter(NamedTuple):
    """Somebody who tells of lineage, when last, and how many edges that were."""

    name: str
    reported_at: datetime
    edges: int


class Reached(NamedTuple):
    """A dataset that a walk came to; without a state, the store does not have it."""

    urn: str
    depth: int
    state: State | None


class Link(NamedTuple):
    """That data flows from one dataset to another."""

    upstream: str
    downstream: str


class Walk(msgspec.Struct, frozen=True, kw_only=True):
    """What lies up or down the stream: nearest first, and all links between what is there.

    `total` counts what is within the depth, also beyond a limit; `truncated` says that more lies
    beyond the depth or the limit.
    """

    start: str
    direction: Direction
    depth: int | None
    nodes: tuple[Reached, ...]
    links: tuple[Link, ...]
    total: int
    truncated: bool

    @property
    def cycles(self) -> tuple[tuple[str, ...], ...]:
        """Datasets that data flows round between, each group by URN; one alone feeds itself."""
        return graph.cycles(self.links)


class ReachedColumn(NamedTuple):
    """A column that a walk came to, or a dataset as a whole (`column` is None).

    `indirect` says that it is only decided about, and not made from where the walk began.
    """

    urn: str
    column: str | None
    depth: int
    indirect: bool
    state: State | None


class ColumnWalk(msgspec.Struct, frozen=True, kw_only=True):
    """What lies up or down the stream of a column, nearest first, and the steps between."""

    start: ColumnNode
    direction: Direction
    depth: int | None
    nodes: tuple[ReachedColumn, ...]
    steps: tuple[ColumnStep, ...]
    truncated: bool


class ColumnPaths(msgspec.Struct, frozen=True, kw_only=True):
    """Ways from one column to another, shortest first; `truncated` says that there may be more."""

    start: ColumnNode
    goal: ColumnNode
    paths: tuple[tuple[ColumnStep, ...], ...]
    truncated: bool
