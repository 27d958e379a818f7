"""Results of lineage walks, and the walk along columns.

A mapping from `*` to `*` means that every column is mapped to the column of the same name. The
lineage of a struct applies to its fields, and the lineage of a field to its struct, but not to
other fields of the struct (see `lumos.model.paths.overlap`). Names are compared without case, as
SQL compares unquoted names.
"""

from collections.abc import Callable, Collection, Container, Iterable, Iterator
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from lumos.model.lineage import ColumnMapping, ColumnUse, Derivation, Edge
from lumos.model.paths import lineage_column, overlap, path_below
from lumos.store.datasets import DatasetState
from lumos.store.lineage import graph
from lumos.store.lineage.edges import all_mappings, all_uses

Up = TypeVar("Up")
Down = TypeVar("Down")

ALL: Final = "*"


Direction: TypeAlias = Literal["upstream", "downstream"]


class ColumnNode(NamedTuple):
    """A column of a dataset by its path, or the dataset as a whole (None)."""

    urn: str
    column: str | None


class ColumnStep(msgspec.Struct, frozen=True, kw_only=True):
    """The lineage from one column to another, with its reporters and jobs.

    Without a mapping, the upstream column only influences the downstream one, as in a filter.
    """

    upstream: ColumnNode
    downstream: ColumnNode
    mappings: tuple[ColumnMapping, ...] = ()
    uses: tuple[ColumnUse, ...] = ()
    origins: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()

    @property
    def kind(self) -> Literal["DIRECT", "INDIRECT"]:
        """The kind of the step as OpenLineage calls it."""
        return "DIRECT" if self.mappings else "INDIRECT"


class ReachedDataset(NamedTuple):
    """A dataset that a walk reached; `state` is None if the dataset is not in the store."""

    urn: str
    depth: int
    state: DatasetState | None


class Link(NamedTuple):
    """A flow of data from one dataset to another."""

    upstream: str
    downstream: str


class Walk(msgspec.Struct, frozen=True, kw_only=True):
    """The datasets upstream or downstream, nearest first, and the links between them.

    `total` is the number of datasets within the depth, including those beyond the limit;
    `truncated` is True if there are more datasets beyond the depth or the limit.
    """

    start: str
    direction: Direction
    depth: int | None
    nodes: tuple[ReachedDataset, ...]
    links: tuple[Link, ...]
    total: int
    truncated: bool

    @property
    def cycles(self) -> tuple[tuple[str, ...], ...]:
        """Groups of datasets that form cycles, each sorted; a single dataset reads from itself."""
        return graph.cycles(self.links)


class ReachedColumn(NamedTuple):
    """A column that a walk reached, or a dataset as a whole (`column` is None).

    `indirect` columns are only influenced by the start, not derived from it.
    """

    urn: str
    column: str | None
    depth: int
    indirect: bool
    state: DatasetState | None


class ColumnWalk(msgspec.Struct, frozen=True, kw_only=True):
    """The columns upstream or downstream of a column, nearest first, and the steps between."""

    start: ColumnNode
    direction: Direction
    depth: int | None
    nodes: tuple[ReachedColumn, ...]
    steps: tuple[ColumnStep, ...]
    truncated: bool


class ColumnPaths(msgspec.Struct, frozen=True, kw_only=True):
    """Paths from one column to another, shortest first; `truncated` if there may be more."""

    start: ColumnNode
    goal: ColumnNode
    paths: tuple[tuple[ColumnStep, ...], ...]
    truncated: bool


class ColumnReach(NamedTuple):
    """The depths of reached nodes, the nodes derived from the start, and the steps between."""

    depths: dict[ColumnNode, int]
    direct: set[ColumnNode]
    steps: list[ColumnStep]
    truncated: bool


def walk_columns(
    start: ColumnNode,
    load: Callable[[Collection[str]], Iterable[Edge]],
    *,
    direction: Literal["upstream", "downstream"],
    depth: int | None,
    past_uses: bool = False,
    with_uses: bool = True,
    within: Container[str] | None = None,
) -> ColumnReach:
    """Walk level by level from a column.

    `load` returns the edges that start at the given datasets. The walk ends at columns that are
    only influenced, unless `past_uses` is set. Without `with_uses`, it follows derivations only.
    `within` limits the walk to the given datasets.
    """
    walker = _Walker(load, direction, within, with_uses=with_uses)
    start = walker.canonical(start)
    direct = {start: 0}
    indirect: dict[ColumnNode, int] = {}
    derived, influenced = [start], list[ColumnNode]()
    level = 0
    truncated = False
    while derived or influenced:
        walker.load([*derived, *influenced])
        next_derived: dict[ColumnNode, None] = {}
        next_influenced: dict[ColumnNode, None] = {}
        for node in derived:
            for other, step in walker.next_nodes(node):
                target, known = (
                    (next_derived, direct) if step.kind == "DIRECT" else (next_influenced, indirect)
                )
                if other not in known:
                    target[other] = None
        for node in influenced:
            for other, _ in walker.next_nodes(node):
                if other not in indirect:
                    next_influenced[other] = None
        level += 1
        if depth is not None and level > depth:
            beyond_depth = next_derived.keys() | next_influenced.keys()
            truncated = any(each not in direct and each not in indirect for each in beyond_depth)
            break
        direct |= dict.fromkeys(next_derived, level)
        indirect |= dict.fromkeys(next_influenced, level)
        derived = list(next_derived)
        influenced = list(next_influenced) if past_uses else []
    depths = indirect | direct
    return ColumnReach(depths, set(direct), walker.steps(depths), truncated)


class _StepBuilder:
    """Collects mappings and uses between two nodes."""

    def __init__(self) -> None:
        self.mappings: list[ColumnMapping] = []
        self.uses: list[ColumnUse] = []
        self.edges: dict[int, Edge] = {}

    def build(self, upstream: ColumnNode, downstream: ColumnNode) -> ColumnStep:
        edges = self.edges.values()
        return ColumnStep(
            upstream=upstream,
            downstream=downstream,
            mappings=all_mappings([self.mappings]),
            uses=all_uses([self.uses]),
            origins=tuple(sorted({edge.origin for edge in edges})),
            jobs=tuple(sorted({edge.job for edge in edges if edge.job is not None})),
        )


class _OutgoingEdges:
    """The edges that start at one dataset, by the columns they start at."""

    def __init__(self, edges: Iterable[Edge], direction: str) -> None:
        self.edges = tuple(edges)
        self.mappings: dict[str, list[tuple[Edge, ColumnMapping]]] = {}
        self.uses: dict[str, list[tuple[Edge, ColumnUse]]] = {}
        for edge in self.edges:
            for mapping in edge.columns:
                column = getattr(mapping, _START_FIELD[direction])
                self.mappings.setdefault(_root(column), []).append((edge, mapping))
            for use in edge.uses:
                column = getattr(use, _START_FIELD[direction])
                root = ALL if column is None else _root(column)
                self.uses.setdefault(root, []).append((edge, use))


_START_FIELD: Final = {"downstream": "upstream", "upstream": "downstream"}


class _Walker:
    """Loads and caches the edges of the datasets that a walk reaches."""

    def __init__(
        self,
        load: Callable[[Collection[str]], Iterable[Edge]],
        direction: Literal["upstream", "downstream"],
        within: Container[str] | None,
        *,
        with_uses: bool,
    ) -> None:
        self._load = load
        self._with_uses = with_uses
        self._direction = direction
        self._within = within
        self._outgoing: dict[str, _OutgoingEdges] = {}
        self._names: dict[tuple[str, str | None], ColumnNode] = {}
        self._next_nodes: dict[ColumnNode, list[tuple[ColumnNode, ColumnStep]]] = {}

    def canonical(self, node: ColumnNode) -> ColumnNode:
        """The node with its column name in the case in which the walk saw the name first."""
        column = None if node.column is None else node.column.lower()
        return self._names.setdefault((node.urn, column), node)

    def load(self, nodes: Iterable[ColumnNode]) -> None:
        """Load the edges that start at the given nodes with one call."""
        edges: dict[str, list[Edge]] = {
            node.urn: [] for node in nodes if node.urn not in self._outgoing
        }
        for edge in self._load(list(edges)) if edges else ():
            if self._within is None or self._far_end(edge) in self._within:
                edges[getattr(edge, _START_FIELD[self._direction])].append(edge)
        for urn, outgoing in edges.items():
            self._outgoing[urn] = _OutgoingEdges(outgoing, self._direction)

    def next_nodes(self, node: ColumnNode) -> list[tuple[ColumnNode, ColumnStep]]:
        """The nodes directly after a node whose edges are loaded, with the steps to them."""
        if node not in self._next_nodes:
            builders: dict[ColumnNode, _StepBuilder] = {}
            for other, edge, lineage in self._outgoing_lineage(node):
                builder = builders.setdefault(self.canonical(other), _StepBuilder())
                builder.edges[id(edge)] = edge
                if isinstance(lineage, ColumnMapping):
                    builder.mappings.append(lineage)
                elif lineage is not None:
                    builder.uses.append(lineage)
            self._next_nodes[node] = [
                (other, builder.build(*self._in_direction(node, other)))
                for other, builder in builders.items()
            ]
        return self._next_nodes[node]

    def steps(self, nodes: Container[ColumnNode]) -> list[ColumnStep]:
        """All steps between the given nodes."""
        return [
            step
            for node, next_nodes in self._next_nodes.items()
            if node in nodes
            for other, step in next_nodes
            if other in nodes
        ]

    def _outgoing_lineage(
        self, node: ColumnNode
    ) -> Iterator[tuple[ColumnNode, Edge, ColumnMapping | ColumnUse | None]]:
        outgoing = self._outgoing[node.urn]
        if node.column is None:
            for edge in outgoing.edges:
                yield ColumnNode(self._far_end(edge), None), edge, None
            return
        for root in (_root(node.column), ALL):
            for edge, mapping in outgoing.mappings.get(root, ()):
                ends = self._in_direction(mapping.upstream, mapping.downstream)
                mapped = _map_column(node.column, *ends, mapping.derivation)
                if mapped is not None:
                    yield ColumnNode(self._far_end(edge), mapped), edge, mapping
            for edge, use in outgoing.uses.get(root, ()) if self._with_uses else ():
                start_column, end_column = self._in_direction(use.upstream, use.downstream)
                if (
                    start_column is None
                    or start_column == ALL
                    or overlap(node.column, start_column)
                ):
                    yield ColumnNode(self._far_end(edge), end_column), edge, use

    def _far_end(self, edge: Edge) -> str:
        return edge.downstream if self._direction == "downstream" else edge.upstream

    def _in_direction(self, upstream: Up, downstream: Down) -> tuple[Up, Down] | tuple[Down, Up]:
        """Both ends, ordered in the direction of the walk."""
        is_downstream = self._direction == "downstream"
        return (upstream, downstream) if is_downstream else (downstream, upstream)


def _map_column(
    column: str, start_column: str, end_column: str, derivation: Derivation | None
) -> str | None:
    """The column that a mapping derives from a column, or None if it does not apply."""
    is_identity = derivation is Derivation.IDENTITY
    if start_column == ALL:
        if end_column == ALL:
            return column
        # The whole row becomes a struct: its columns become fields of `end_column`.
        return f"{end_column}.{column}" if is_identity else end_column
    subpath = path_below(column, start_column)
    if subpath is None:
        return end_column if overlap(column, start_column) else None
    if not is_identity:
        return end_column
    if end_column == ALL:
        return subpath.removeprefix(".") or ALL
    return end_column + subpath


def _root(path: str) -> str:
    return lineage_column(path).lower()
