"""Walks, cycles and paths are what a plain search finds, on graphs of any shape."""

from collections.abc import Collection, Iterator
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.store.lineage.compact_graph import CompactGraph
from lumos.store.lineage.graph import Reach, cycles, shortest_paths, walk_graph

NODES = 8
Links = list[tuple[int, int]]
links = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=24)
depths = st.none() | st.integers(0, 4)


def distances(start: int, links: Links) -> dict[int, int]:
    """How far everything is, by going round until nothing changes."""
    far = {start: 0}
    for _ in range(NODES):
        for before, after in links:
            if before in far:
                far[after] = min(far.get(after, NODES), far[before] + 1)
    return far


def expected(start: int, links: Links, depth: int | None) -> Reach:
    far = distances(start, links)
    near = {node: steps for node, steps in far.items() if depth is None or steps <= depth}
    between = sorted({link for link in links if set(link) <= set(near)})
    return Reach(near, between, len(near), truncated=len(near) < len(far))


def in_order(found: Reach) -> Reach:
    return found._replace(links=sorted(found.links))


@given(links, depths)
def test_a_walk_comes_to_all_that_is_near_enough_and_sees_the_links_between(
    links: Links, depth: int | None
) -> None:
    def expand(nodes: Collection[int]) -> Iterator[tuple[int, int]]:
        return (link for link in sorted(set(links)) if link[0] in nodes)

    found = walk_graph([0], expand, depth=depth, limit=NODES)
    assert found is not None
    assert in_order(found) == expected(0, links, depth)


@given(links, depths)
def test_a_walk_that_comes_to_too_much_gives_up(links: Links, depth: int | None) -> None:
    whole = expected(0, links, depth)

    def expand(nodes: Collection[int]) -> Iterator[tuple[int, int]]:
        return (link for link in links if link[0] in nodes)

    assert (walk_graph([0], expand, depth=depth, limit=3) is None) == (whole.total > 3)


@given(links, depths, st.sampled_from(["upstream", "downstream"]))
def test_the_compact_graph_walks_the_same_way(
    links: Links, depth: int | None, direction: str
) -> None:
    ends = np.array(sorted(set(links)), dtype=np.int64).reshape(-1, 2)
    found = CompactGraph(ends[:, 0], ends[:, 1]).reach(
        [0], direction=direction, depth=depth, limit=None
    )
    turned = links if direction == "downstream" else [(after, before) for before, after in links]
    assert in_order(found) == expected(0, turned, depth)


@given(links, st.sets(st.integers(0, NODES + 2), min_size=1))
def test_a_walk_from_several_comes_to_all_that_each_of_them_comes_to(
    links: Links, starts: set[int]
) -> None:
    def expand(nodes: Collection[int]) -> Iterator[tuple[int, int]]:
        return (link for link in sorted(set(links)) if link[0] in nodes)

    ends = np.array(sorted(set(links)), dtype=np.int64).reshape(-1, 2)
    compact = CompactGraph(ends[:, 0], ends[:, 1])
    found = walk_graph(starts, expand, depth=None, limit=2 * NODES)
    assert found is not None
    same = compact.reach(starts, direction="downstream", depth=None, limit=None)
    assert in_order(found) == in_order(same)
    each = [expected(start, links, None) for start in starts]
    assert found.depths.keys() == set().union(*(one.depths for one in each))
    for node, far in found.depths.items():
        assert far == min(one.depths[node] for one in each if node in one.depths)


@given(links, st.integers(1, NODES))
def test_a_limit_lists_the_nearest_and_counts_all(links: Links, limit: int) -> None:
    ends = np.array(sorted(set(links)), dtype=np.int64).reshape(-1, 2)
    graph = CompactGraph(ends[:, 0], ends[:, 1])
    found = graph.reach([0], direction="downstream", depth=None, limit=limit)
    whole = expected(0, links, None)
    assert found.total == whole.total
    assert found.truncated == (whole.total > limit)
    assert len(found.depths) == min(limit, whole.total)
    assert sorted(found.depths.values()) == sorted(whole.depths.values())[:limit]
    assert sorted(found.links) == [link for link in whole.links if set(link) <= set(found.depths)]


@given(links)
def test_cycles_are_groups_that_lead_to_each_other(links: Links) -> None:
    onward = {node: distances(node, links) for node in range(NODES)}
    round_trip = {
        node
        for node in range(NODES)
        if any(before in onward[node] and after == node for before, after in links)
    }
    groups = {
        tuple(
            sorted(other for other in round_trip if other in onward[node] and node in onward[other])
        )
        for node in round_trip
    }
    assert cycles(links) == tuple(sorted(groups))


def test_a_long_chain_is_no_matter_of_recursion() -> None:
    chain = [(number, number + 1) for number in range(50_000)]
    assert cycles([*chain, (50_000, 0)]) == (tuple(range(50_001)),)


def every_path(links: Links, start: int, goal: int) -> set[tuple[int, ...]]:
    """All ways that come nowhere twice, by trying every order of the other nodes."""
    there = set(links)
    nodes = sorted({node for link in links for node in link} - {start, goal})
    return {
        (start, *between, goal)
        for size in range(len(nodes) + 1)
        for between in permutations(nodes, size)
        if set(zip((start, *between), (*between, goal), strict=True)) <= there
    }


few = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=16, unique=True)


@given(few)
def test_paths_are_all_there_and_the_shortest_come_first(links: Links) -> None:
    steps = [(before, after, (before, after)) for before, after in links]
    found, truncated = shortest_paths(0, {5}, steps, limit=10_000)
    ways = [(0, *(after for _, after in path)) for path in found]
    assert set(ways) == every_path(links, 0, 5)
    assert len(set(ways)) == len(ways)
    assert [len(way) for way in ways] == sorted(len(way) for way in ways)
    assert not truncated


@given(few, st.integers(0, 3))
def test_no_more_paths_are_given_than_wanted(links: Links, limit: int) -> None:
    steps = [(before, after, (before, after)) for before, after in links]
    every = every_path(links, 0, 5)
    found, truncated = shortest_paths(0, {5}, steps, limit=limit)
    assert len(found) == min(limit, len(every))
    assert truncated == (len(every) > limit)


@pytest.mark.parametrize("size", [12, 400])
def test_a_search_among_too_many_ways_ends(size: int) -> None:
    ladder = [
        (before, after, (before, after))
        for rung in range(size)
        for before in (2 * rung, 2 * rung + 1)
        for after in (2 * rung + 2, 2 * rung + 3)
    ]
    found, truncated = shortest_paths(0, {2 * size}, ladder, limit=50, max_steps=20_000)
    assert len(found) == 50
    assert all(len(path) == size for path in found)
    assert truncated
