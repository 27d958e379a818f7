"""Graph algorithms: breadth-first walks, cycles, shortest paths. Independent of the database."""

import heapq
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import NamedTuple, TypeVar

Node = TypeVar("Node", bound=Hashable)
Step = TypeVar("Step")


class Reach(NamedTuple):
    """The nodes that a walk reached with their depths, and the links between them.

    `total` counts all nodes within the depth, even beyond a limit.
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
    """Walk level by level from the start nodes; None if it reaches more than `limit` nodes.

    `expand` returns the links that start at some nodes.
    """
    depths = dict.fromkeys(starts, 0)
    links: list[tuple[int, int]] = []
    frontier = list(depths)
    level = 0
    truncated = False
    while frontier:
        next_frontier: list[int] = []
        for link in expand(frontier):
            if link[1] not in depths:
                if depth is not None and level >= depth:
                    truncated = True
                    continue
                depths[link[1]] = level + 1
                next_frontier.append(link[1])
                if len(depths) > limit:
                    return None
            links.append(link)
        frontier = next_frontier
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
    """Tarjan's strongly connected components, without recursion since chains may be long.

    `stack` replaces the call stack of the recursive version. `open_nodes` are the visited nodes
    that are not in a component yet, in the order of their visits.
    """
    order: dict[Node, int] = {}
    lowest: dict[Node, int] = {}
    open_nodes: list[Node] = []
    is_open: set[Node] = set()
    numbers = count()
    for root in successors:
        if root in order:
            continue
        stack: list[tuple[Node, Iterator[Node]]] = []

        def enter(node: Node, stack: list[tuple[Node, Iterator[Node]]] = stack) -> None:
            order[node] = lowest[node] = next(numbers)
            open_nodes.append(node)
            is_open.add(node)
            stack.append((node, iter(successors.get(node, ()))))

        enter(root)
        while stack:
            node, remaining = stack[-1]
            after = next((each for each in remaining if each not in order or each in is_open), None)
            if after is not None:
                if after in order:
                    lowest[node] = min(lowest[node], order[after])
                else:
                    enter(after)
                continue
            stack.pop()
            if stack:
                lowest[stack[-1][0]] = min(lowest[stack[-1][0]], lowest[node])
            if lowest[node] == order[node]:
                component = [open_nodes.pop()]
                while component[-1] != node:
                    component.append(open_nodes.pop())
                is_open.difference_update(component)
                yield component


def shortest_paths(
    start: Node,
    goals: Collection[Node],
    steps: Iterable[tuple[Node, Node, Step]],
    *,
    limit: int,
    max_steps: int = 100_000,
) -> tuple[list[list[Step]], bool]:
    """Paths without cycles to any goal, shortest first, and whether there may be more.

    The number of paths grows exponentially with the graph, so at most `limit` are returned,
    after at most `max_steps` steps.
    """
    outgoing: dict[Node, list[tuple[Node, Step]]] = {}
    backward: dict[Node, list[Node]] = {}
    for before, after, step in steps:
        outgoing.setdefault(before, []).append((after, step))
        backward.setdefault(after, []).append(before)
    distances = _distances(goals, backward)
    paths: list[list[Step]] = []
    sequence = count()
    # Ordered by the minimal total length, then by the distance to the goal, so that
    # paths are finished before others are started.
    queue: list[tuple[int, int, int, Node, list[Step], frozenset[Node]]] = []
    if start in distances:
        queue.append((distances[start], 0, next(sequence), start, [], frozenset([start])))
    steps_taken = 0
    while queue:
        *_, node, path, visited = heapq.heappop(queue)
        if node in goals:
            if len(paths) == limit:
                return paths, True
            paths.append(path)
            continue
        steps_taken += 1
        if steps_taken > max_steps:
            return paths, True
        for after, step in outgoing.get(node, ()):
            if after in distances and after not in visited:
                order = (len(path) + 1 + distances[after], distances[after], next(sequence))
                heapq.heappush(queue, (*order, after, [*path, step], visited | {after}))
    return paths, False


def _distances(goals: Collection[Node], backward: Mapping[Node, Sequence[Node]]) -> dict[Node, int]:
    """The distance of each node to its nearest goal, if there is a path."""
    distances = dict.fromkeys(goals, 0)
    frontier = list(goals)
    while frontier:
        next_frontier = []
        for node in frontier:
            for before in backward.get(node, ()):
                if before not in distances:
                    distances[before] = distances[node] + 1
                    next_frontier.append(before)
        frontier = next_frontier
    return distances
