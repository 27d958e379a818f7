"""Graph algorithms: breadth-first walks, cycles, shortest paths. Independent of the database."""

import heapq
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import NamedTuple, TypeVar

Node = TypeVar("Node", bound=Hashable)
Step = TypeVar("Step")


class Reach(NamedTuple):
    """The nodes that a walk reached with their depths, and the links between them.

    `total` counts all nodes within the depth, also those beyond a limit.
    """

    depths: dict[int, int]
    links: list[tuple[int, int]]
    total: int
    truncated: bool


def walk_graph(
    starts: Collection[int],
    expand: Callable[[Collection[int]], Iterable[tuple[int, int]]],
    *,
    depth: int | None,
    limit: int,
) -> Reach | None:
    """Walk level by level from some nodes; None if there are more than `limit`.

    `expand` returns the links that start at some nodes.
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
                if len(depths) > limit:
                    return None
            links.append(link)
        frontier = found
        level += 1
    return Reach(depths, links, len(depths), truncated)


def cycles(links: Iterable[tuple[Node, Node]]) -> tuple[tuple[Node, ...], ...]:
    """The cycles of a graph as sorted groups of nodes."""
    successors: dict[Node, list[Node]] = {}
    self_loops = set()
    for before, after in links:
        successors.setdefault(before, []).append(after)
        if before == after:
            self_loops.add(before)
    groups = (tuple(sorted(group)) for group in _components(successors))  # type: ignore[type-var]
    return tuple(sorted(group for group in groups if len(group) > 1 or group[0] in self_loops))


def _components(successors: Mapping[Node, Sequence[Node]]) -> Iterator[list[Node]]:
    """Tarjan's strongly connected components, without recursion since chains may be long."""
    order: dict[Node, int] = {}
    lowest: dict[Node, int] = {}
    queue: list[Node] = []
    is_waiting: set[Node] = set()
    numbers = count()
    for root in successors:
        if root in order:
            continue
        work: list[tuple[Node, Iterator[Node]]] = []

        def enter(node: Node, work: list[tuple[Node, Iterator[Node]]] = work) -> None:
            order[node] = lowest[node] = next(numbers)
            queue.append(node)
            is_waiting.add(node)
            work.append((node, iter(successors.get(node, ()))))

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
                component = [queue.pop()]
                while component[-1] != node:
                    component.append(queue.pop())
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
    """Simple paths to any goal, shortest first, and whether there may be more.

    The number of paths grows exponentially with the graph, so that at most `limit` are returned,
    after at most `effort` steps.
    """
    outgoing: dict[Node, list[tuple[Node, Step]]] = {}
    backward: dict[Node, list[Node]] = {}
    for before, after, step in steps:
        outgoing.setdefault(before, []).append((after, step))
        backward.setdefault(after, []).append(before)
    distances = _distances(goals, backward)
    found: list[list[Step]] = []
    sequence = count()
    # Ordered by the minimal total length; among equals the nearest to its goal first, so that
    # paths are finished before others are started.
    queue: list[tuple[int, int, int, Node, list[Step], frozenset[Node]]] = []
    if start in distances:
        queue.append((distances[start], 0, next(sequence), start, [], frozenset([start])))
    steps_taken = 0
    while queue:
        *_, node, path, visited = heapq.heappop(queue)
        if node in goals:
            if len(found) == limit:
                return found, True
            found.append(path)
            continue
        steps_taken += 1
        if steps_taken > effort:
            return found, True
        for after, step in outgoing.get(node, ()):
            if after in distances and after not in visited:
                order = (len(path) + 1 + distances[after], distances[after], next(sequence))
                heapq.heappush(queue, (*order, after, [*path, step], visited | {after}))
    return found, False


def _distances(goals: Collection[Node], backward: Mapping[Node, Sequence[Node]]) -> dict[Node, int]:
    """The distance of each node to its nearest goal, if there is a path."""
    distances = dict.fromkeys(goals, 0)
    frontier = list(goals)
    while frontier:
        found = []
        for node in frontier:
            for before in backward.get(node, ()):
                if before not in distances:
                    distances[before] = distances[node] + 1
                    found.append(before)
        frontier = found
    return distances
