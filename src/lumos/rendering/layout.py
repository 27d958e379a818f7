"""Layered layout of a diagram: boxes in columns from left to right, with few crossings."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Final

_SWEEPS: Final = 8


def layers(boxes: Sequence[str], arrows: Iterable[tuple[str, str]]) -> list[list[str]]:
    """The boxes in layers: each in a later layer than its predecessors, with few crossings.

    Arrows that close a cycle are ignored.
    """
    known_boxes = set(boxes)
    successors_of: dict[str, list[str]] = {box: [] for box in boxes}
    for before, after in sorted(set(arrows)):
        if before != after and before in known_boxes and after in known_boxes:
            successors_of[before].append(after)
    forward = _without_cycles(boxes, successors_of)
    return _sort_layers(_by_layer(boxes, forward), forward)


def _without_cycles(
    boxes: Sequence[str], successors_of: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """The arrows without those that close a cycle."""
    forward: dict[str, list[str]] = {box: [] for box in boxes}
    # False while a box is on the current path, True afterwards.
    is_done: dict[str, bool] = {}
    for root in boxes:
        if root in is_done:
            continue
        is_done[root] = False
        path = [(root, iter(successors_of[root]))]
        while path:
            box, rest = path[-1]
            for after in rest:
                if is_done.get(after) is False:
                    continue
                forward[box].append(after)
                if after not in is_done:
                    is_done[after] = False
                    path.append((after, iter(successors_of[after])))
                    break
            else:
                is_done[box] = True
                path.pop()
    return forward


def _by_layer(boxes: Sequence[str], forward: Mapping[str, Sequence[str]]) -> list[list[str]]:
    predecessor_count = dict.fromkeys(boxes, 0)
    for ends in forward.values():
        for end in ends:
            predecessor_count[end] += 1
    layer = dict.fromkeys(boxes, 0)
    ready = [box for box in boxes if not predecessor_count[box]]
    for box in ready:
        for after in forward[box]:
            layer[after] = max(layer[after], layer[box] + 1)
            predecessor_count[after] -= 1
            if not predecessor_count[after]:
                ready.append(after)
    # Boxes without predecessors are placed just before their first successor.
    successors = {after for ends in forward.values() for after in ends}
    for box in reversed(ready):
        if box not in successors and forward[box]:
            layer[box] = min(layer[after] for after in forward[box]) - 1
    boxes_by_layer: list[list[str]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for box in boxes:
        boxes_by_layer[layer[box]].append(box)
    return [each for each in boxes_by_layer if each]


def _sort_layers(
    unsorted: list[list[str]], forward: Mapping[str, Sequence[str]]
) -> list[list[str]]:
    """Sort the boxes of each layer by the mean position of their neighbours."""
    before: dict[str, list[str]] = {box: [] for box in forward}
    for box, ends in forward.items():
        for end in ends:
            before[end].append(box)
    positions = {box: number for layer in unsorted for number, box in enumerate(layer)}
    for sweep in range(_SWEEPS):
        is_rightward = sweep % 2 == 0
        neighbours = before if is_rightward else forward
        for layer in unsorted if is_rightward else reversed(unsorted):
            means = {
                box: fmean(positions[each] for each in neighbours[box] or [box]) for box in layer
            }
            layer.sort(key=means.__getitem__)
            positions.update({box: number for number, box in enumerate(layer)})
    return unsorted
