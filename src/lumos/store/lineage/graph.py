"""Walks, cycles and paths in graphs of anything; nothing here knows a database."""

import heapq
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import NamedTuple, TypeVar

Node = TypeVar("Node", bound=Hashable)
Step = TypeVar("Step")


class Reach(NamedTuple):
    """What a walk came to, how far each is, and the links between all of it.

    `total` counts what is within the depth, also where a limit keeps it from being listed.
    """

    depths: dict[int, int]
    links: list[tuple[int, int]]
    total: int
    truncated: bool


def reach(
    starts: Collection[int],
    expand: Callable[[Collection[int]], Iterable[tuple[int, int]]],
    *,
    depth: int | None,
    most: int,
) -> Reach | None:
    """Walks level by level from some nodes; nothing where there is more than `most`.

    `expand` gives the links that lead on from some nodes.
    """
    depths = dict.fromkeys(starts, 0)
    links: list[tuple[int, int]] = []
    frontier = list(depths)
    level = 0
    truncated = False
    while frontier:
        found: list[int] = []
        for link in expand(frontier):
            if link[1] not in depths:
                if depth is not None and level >= depth:
                    truncated = True
                    continue
                depths[link[1]] = level + 1
                found.append(link[1])
                if len(depths) > most:
                    return None
            links.append(link)
        frontier = found
        level += 1
    return Reach(depths, links, len(depths), truncated)


def cycles(links: Iterable[tuple[Node, Node]]) -> tuple[tuple[Node, ...], ...]:
    """Nodes that lead round to themselves, in groups that lead to each other, in order."""
    following: dict[Node, list[Node]] = {}
    alone = set()
    for before, after in links:
        following.setdefault(before, []).append(after)
        if before == after:
            alone.add(before)
    groups = (tuple(sorted(some)) for some in _components(following))  # type: ignore[type-var]
    return tuple(sorted(some for some in groups if len(some) > 1 or some[0] in alone))


def _components(following: Mapping[Node, Sequence[Node]]) -> Iterator[list[Node]]:
    """Tarjan's strongly connected components, without recursion: chains may be long."""
    order: dict[Node, int] = {}
    lowest: dict[Node, int] = {}
    waiting: list[Node] = []
    is_waiting: set[Node] = set()
    numbers = count()
    for root in following:
        if root in order:
            continue
        work: list[tuple[Node, Iterator[Node]]] = []

        def enter(node: Node, work: list[tuple[Node, Iterator[Node]]] = work) -> None:
            order[node] = lowest[node] = next(numbers)
            waiting.append(node)
            is_waiting.add(node)
            work.append((node, iter(following.get(node, ()))))

        enter(root)
        while work:
            node, rest = work[-1]
            after = next((each for each in rest if each not in order or each in is_waiting), None)
            if after is not None:
                if after in order:
                    lowest[node] = min(lowest[node], order[after])
                else:
                    enter(after)
                continue
            work.pop()
            if work:
                lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[node])
            if lowest[node] == order[node]:
                component = [waiting.pop()]
                while component[-1] != node:
                    component.append(waiting.pop())
                is_waiting.difference_update(component)
                yield component


def shortest_paths(
    start: Node,
    goals: Collection[Node],
    steps: Iterable[tuple[Node, Node, Step]],
    *,
    limit: int,
    effort: int = 100_000,
) -> tuple[list[list[Step]], bool]:
    """Ways to any goal that come nowhere twice, shortest first, and whether there may be more.

    The number of ways grows beyond all bounds with the graph: no more than `limit` of them are
    given, after no more than `effort` tries.
    """
    onward: dict[Node, list[tuple[Node, Step]]] = {}
    backward: dict[Node, list[Node]] = {}
    for before, after, step in steps:
        onward.setdefault(before, []).append((after, step))
        backward.setdefault(after, []).append(before)
    left = _distances(goals, backward)
    found: list[list[Step]] = []
    turns = count()
    # By the length that a way has at least; among equals the nearest to its goal goes on, lest all
    # are begun and none is finished.
    waiting: list[tuple[int, int, int, Node, list[Step], frozenset[Node]]] = []
    if start in left:
        waiting.append((left[start], 0, next(turns), start, [], frozenset([start])))
    tries = 0
    while waiting:
        *_, node, way, visited = heapq.heappop(waiting)
        if node in goals:
            if len(found) == limit:
                return found, True
            found.append(way)
            continue
        tries += 1
        if tries > effort:
            return found, True
        for after, step in onward.get(node, ()):
            if after in left and after not in visited:
                order = (len(way) + 1 + left[after], left[after], next(turns))
                heapq.heappush(waiting, (*order, after, [*way, step], visited | {after}))
    return found, False


def _distances(goals: Collection[Node], backward: Mapping[Node, Sequence[Node]]) -> dict[Node, int]:
    """How far each node is from the nearest goal, where there is a way at all."""
    left = dict.fromkeys(goals, 0)
    frontier = list(goals)
    while frontier:
        found = []
        for node in frontier:
            for before in backward.get(node, ()):
                if before not in left:
                    left[before] = left[node] + 1
                    found.append(before)
        frontier = found
    return left
