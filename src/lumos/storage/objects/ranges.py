"""Divides the keys below a prefix into ranges, with few requests and without counting them."""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final
from zlib import crc32

# Sorts after whatever may follow in a key.
LAST: Final = "\U0010ffff"

# The first key with a prefix that sorts after a text, if there is any.
First = Callable[[str, str], str | None]


class _BudgetSpent(Exception):
    """Enough was asked."""


def key_bounds(
    first: First,
    is_small: Callable[[str, str], bool],
    prefix: str,
    *,
    after: str,
    parts: int,
) -> list[str]:
    """Texts between which keys lie, some `parts` of them where there are that many to tell apart.

    Jumps from one character that follows the prefix to the next one in use, then does the same
    below each of them, breadth first. A prefix that `is_small` is left whole.
    """
    budget = 8 * parts + 40

    def asked(below: str, later: str) -> str | None:
        nonlocal budget
        if budget <= 0:
            raise _BudgetSpent
        budget -= 1
        return first(below, max(after, later))

    bounds: set[str] = set()
    waiting = deque([prefix])
    try:
        while waiting and len(bounds) < parts:
            node = waiting.popleft()
            if node != prefix and is_small(node, after):
                continue
            for child in _children(asked, node):
                bounds.add(child + LAST)
                waiting.append(child)
    except _BudgetSpent:
        pass
    return sorted(bounds)


def _children(first: First, node: str) -> Iterator[str]:
    """The prefixes one character longer than what all keys below a node have in common."""
    key = first(node, node)
    if key is None:
        return
    stem = _common(first, node, key)
    if stem == key:
        key = first(stem, key)
    while key is not None:
        child = key[: len(stem) + 1]
        yield child
        key = first(stem, child + LAST)


def _common(first: First, node: str, key: str) -> str:
    """The longest beginning of a node's first key that all its keys share."""
    shared, too_long = len(node), len(key) + 1
    while too_long - shared > 1:
        middle = (shared + too_long) // 2
        if first(node, key[:middle] + LAST) is None:
            shared = middle
        else:
            too_long = middle
    return key[:shared]


def chosen(bounds: set[str], most: int) -> list[str]:
    """At most so many of the bounds, nearly the same ones after some came or went."""
    by_chance = sorted(bounds, key=lambda bound: crc32(bound.encode()))
    return sorted(by_chance[:most])


def ranges_between(bounds: list[str], *, after: str, until: str) -> list[tuple[str, str]]:
    """Ranges without gaps from `after` to `until`, where an empty `until` is the end."""
    inner = [bound for bound in bounds if bound > after and (not until or bound < until)]
    return list(pairwise([after, *inner, until]))
