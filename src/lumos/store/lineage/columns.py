"""Walks along columns: what is made from a column, and what it decides about.

A mapping of `*` to `*` hands every column on under its name. A struct hands on what is inside it,
and what is inside belongs to it. Names meet whatever their case: SQL has none where nobody quotes.
"""

import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from typing import Final, Literal, NamedTuple, TypeVar

import msgspec

from lumos.model.lineage import ColumnMapping, ColumnUse, Derivation, Edge
from lumos.store.lineage.merging import all_mappings, all_uses

Up = TypeVar("Up")
Down = TypeVar("Down")

ALL: Final = "*"
_MARKS: Final = (".", "[", "{", "<")
_COLUMN: Final = re.compile(r"`(?:[^`]|``)*`|[^.\[{<]+")


class ColumnNode(NamedTuple):
    """A column of a dataset by its path, or the dataset as a whole (None)."""

    urn: str
    column: str | None


class ColumnStep(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of the way from one column to another, who says so, and by which jobs.

    Without a mapping, the one only decides about the other.
    """

    upstream: ColumnNode
    downstream: ColumnNode
    mappings: tuple[ColumnMapping, ...] = ()
    uses: tuple[ColumnUse, ...] = ()
    origins: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()

    @property
    def kind(self) -> Literal["DIRECT", "INDIRECT"]:
        """In OpenLineage's words."""
        return "DIRECT" if self.mappings else "INDIRECT"


class ColumnReach(NamedTuple):
    """How far each node is, which are made from the start, and the steps between all of them."""

    depths: dict[ColumnNode, int]
    direct: set[ColumnNode]
    steps: list[ColumnStep]
    truncated: bool


def walk(
    start: ColumnNode,
    load: Callable[[Collection[str]], Iterable[Edge]],
    *,
    direction: Literal["upstream", "downstream"],
    depth: int | None,
    past_uses: bool = False,
    with_uses: bool = True,
    within: Container[str] | None = None,
) -> ColumnReach:
    """Walks level by level from a column.

    `load` gives the edges that lead on from some datasets. What a column only decides about is
    where a walk ends, unless it shall go `past_uses`; without `with_uses` it only follows values.
    `within` names the datasets to stay in.
    """
    walker = _Walker(load, direction, within, with_uses=with_uses)
    start = walker.named(start)
    direct = {start: 0}
    indirect: dict[ColumnNode, int] = {}
    made, decided = [start], list[ColumnNode]()
    level = 0
    truncated = False
    while made or decided:
        walker.prepare([*made, *decided])
        next_made: dict[ColumnNode, None] = {}
        next_decided: dict[ColumnNode, None] = {}
        for node in made:
            for other, step in walker.onward(node):
                target, known = (
                    (next_made, direct) if step.kind == "DIRECT" else (next_decided, indirect)
                )
                if other not in known:
                    target[other] = None
        for node in decided:
            for other, _ in walker.onward(node):
                if other not in indirect:
                    next_decided[other] = None
        level += 1
        if depth is not None and level > depth:
            beyond = next_made.keys() | next_decided.keys()
            truncated = any(each not in direct and each not in indirect for each in beyond)
            break
        direct |= dict.fromkeys(next_made, level)
        indirect |= dict.fromkeys(next_decided, level)
        made = list(next_made)
        decided = list(next_decided) if past_uses else []
    depths = indirect | direct
    return ColumnReach(depths, set(direct), walker.steps(depths), truncated)


class _Steps:
    """What edges say of the way between two nodes, while it is gathered."""

    def __init__(self) -> None:
        self.mappings: list[ColumnMapping] = []
        self.uses: list[ColumnUse] = []
        self.edges: dict[int, Edge] = {}

    def step(self, upstream: ColumnNode, downstream: ColumnNode) -> ColumnStep:
        edges = self.edges.values()
        return ColumnStep(
            upstream=upstream,
            downstream=downstream,
            mappings=all_mappings([self.mappings]),
            uses=all_uses([self.uses]),
            origins=tuple(sorted({edge.origin for edge in edges})),
            jobs=tuple(sorted({edge.job for edge in edges if edge.job is not None})),
        )


class _Beginnings:
    """The edges that lead on from one dataset, by the columns that they begin with."""

    def __init__(self, edges: Iterable[Edge], direction: str) -> None:
        self.edges = tuple(edges)
        self.mappings: dict[str, list[tuple[Edge, ColumnMapping]]] = {}
        self.uses: dict[str, list[tuple[Edge, ColumnUse]]] = {}
        for edge in self.edges:
            for mapping in edge.columns:
                begins = getattr(mapping, _START[direction])
                self.mappings.setdefault(_root(begins), []).append((edge, mapping))
            for use in edge.uses:
                begins = getattr(use, _START[direction])
                root = ALL if begins is None else _root(begins)
                self.uses.setdefault(root, []).append((edge, use))


_START: Final = {"downstream": "upstream", "upstream": "downstream"}


class _Walker:
    """Loads edges as a walk comes to their datasets, and remembers them."""

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
        self._beginnings: dict[str, _Beginnings] = {}
        self._names: dict[tuple[str, str | None], ColumnNode] = {}
        self._onward: dict[ColumnNode, list[tuple[ColumnNode, ColumnStep]]] = {}

    def named(self, node: ColumnNode) -> ColumnNode:
        """The node under the name by which the walk first met it."""
        column = None if node.column is None else node.column.lower()
        return self._names.setdefault((node.urn, column), node)

    def prepare(self, nodes: Iterable[ColumnNode]) -> None:
        """Loads the edges that lead on from some nodes, all at once."""
        wanted = dict.fromkeys(node.urn for node in nodes if node.urn not in self._beginnings)
        if not wanted:
            return
        edges: dict[str, list[Edge]] = {urn: [] for urn in wanted}
        for edge in self._load(list(wanted)):
            if self._within is None or self._other(edge) in self._within:
                edges[getattr(edge, _START[self._direction])].append(edge)
        for urn, some in edges.items():
            self._beginnings[urn] = _Beginnings(some, self._direction)

    def onward(self, node: ColumnNode) -> list[tuple[ColumnNode, ColumnStep]]:
        """The nodes that follow one whose edges are loaded, with the steps there."""
        if node not in self._onward:
            gathered: dict[ColumnNode, _Steps] = {}
            for other, edge, fact in self._facts(node):
                steps = gathered.setdefault(self.named(other), _Steps())
                steps.edges[id(edge)] = edge
                if isinstance(fact, ColumnMapping):
                    steps.mappings.append(fact)
                elif fact is not None:
                    steps.uses.append(fact)
            self._onward[node] = [
                (other, steps.step(*self._facing(node, other))) for other, steps in gathered.items()
            ]
        return self._onward[node]

    def steps(self, nodes: Container[ColumnNode]) -> list[ColumnStep]:
        """Every step between some nodes."""
        return [
            step
            for node, onward in self._onward.items()
            if node in nodes
            for other, step in onward
            if other in nodes
        ]

    def _facts(
        self, node: ColumnNode
    ) -> Iterator[tuple[ColumnNode, Edge, ColumnMapping | ColumnUse | None]]:
        beginnings = self._beginnings[node.urn]
        if node.column is None:
            for edge in beginnings.edges:
                yield ColumnNode(self._other(edge), None), edge, None
            return
        for root in (_root(node.column), ALL):
            for edge, mapping in beginnings.mappings.get(root, ()):
                ends = self._facing(mapping.upstream, mapping.downstream)
                handed = _handed_on(node.column, *ends, mapping.derivation)
                if handed is not None:
                    yield ColumnNode(self._other(edge), handed), edge, mapping
            for edge, use in beginnings.uses.get(root, ()) if self._with_uses else ():
                here, there = self._facing(use.upstream, use.downstream)
                if here is None or here == ALL or _overlap(node.column, here):
                    yield ColumnNode(self._other(edge), there), edge, use

    def _other(self, edge: Edge) -> str:
        return edge.downstream if self._direction == "downstream" else edge.upstream

    def _facing(self, upstream: Up, downstream: Down) -> tuple[Up, Down] | tuple[Down, Up]:
        """Both ends as the walk meets them."""
        downwards = self._direction == "downstream"
        return (upstream, downstream) if downwards else (downstream, upstream)


def _handed_on(column: str, begin: str, end: str, derivation: Derivation | None) -> str | None:
    """What a column becomes by a mapping, or nothing where the mapping is not about it."""
    if begin == ALL:
        return column if end == ALL else end
    if _is_within(begin, column):
        return end
    if _is_within(column, begin):
        return end + column[len(begin) :] if derivation is Derivation.IDENTITY else end
    return None


def _overlap(one: str, other: str) -> bool:
    return _is_within(one, other) or _is_within(other, one)


def _is_within(path: str, whole: str) -> bool:
    rest = path[len(whole) :]
    return path[: len(whole)].lower() == whole.lower() and (not rest or rest.startswith(_MARKS))


def _root(path: str) -> str:
    match = _COLUMN.match(path)
    return (match.group() if match else path).lower()
