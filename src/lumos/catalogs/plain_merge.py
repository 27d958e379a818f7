"""Three-way merge of plain JSON, for raw records that Lumos does not model.

Objects are merged key by key. Lists are merged by the keys of their members if these have any, and
as sets otherwise: members that one side added are kept, members that one side removed are removed.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

# The keys that identify members of lists, the most specific first.
_IDENTIFYING_KEYS: Final = (
    ("fieldPath",),
    ("propertyUrn",),
    ("owner", "type", "typeUrn"),
    ("tag",),
    ("tagFQN",),
    ("dataset",),
    ("urn",),
    ("fullyQualifiedName",),
    ("id",),
    ("key",),
    ("name",),
)
OnConflict: TypeAlias = Callable[[str, Any, Any], None]


class Missing:
    """The value of a key that a side does not have."""

    def __repr__(self) -> str:
        return "nothing"


MISSING: Final = Missing()


def merge_json(path: str, base: Any, theirs: Any, ours: Any, on_conflict: OnConflict) -> Any:
    """Merge a value, which may be missing on any side; if both sides changed it, theirs wins.

    `on_conflict` is called for each conflict with its path, their value and ours.
    """
    if ours in (base, theirs):
        return theirs
    if theirs == base:
        return ours
    if isinstance(theirs, dict) and isinstance(ours, dict):
        sides = (base if isinstance(base, dict) else {}, theirs, ours)
        return merge_maps(path, sides, partial(merge_json, on_conflict=on_conflict))
    if isinstance(theirs, list) and isinstance(ours, list):
        return _merge_lists(path, base if isinstance(base, list) else [], theirs, ours, on_conflict)
    on_conflict(path, theirs, ours)
    return theirs


def merge_maps(
    path: str, sides: Iterable[Mapping[Key, Value]], merge_value: Callable[..., Any]
) -> dict[Key, Value]:
    """Merge base, theirs and ours key by key, in the order of theirs."""
    base, theirs, ours = sides
    merged: dict[Key, Value] = {}
    for key in {**theirs, **ours}:
        values = (side.get(key, MISSING) for side in (base, theirs, ours))
        # Tuples are numbered or compound keys.
        step = key[0] if isinstance(key, tuple) else key
        value = merge_value(f"{path}.{step}", *values)
        if value is not MISSING:
            merged[key] = value
    return merged


def _merge_lists(
    path: str, base: list[Any], theirs: list[Any], ours: list[Any], on_conflict: OnConflict
) -> list[Any]:
    sides = (base, theirs, ours)
    for keys in _IDENTIFYING_KEYS:
        by_key = [_members_by_key(side, keys) for side in sides]
        maps = [each for each in by_key if each is not None]
        if len(maps) == len(by_key):
            merge_value = partial(merge_json, on_conflict=on_conflict)
            return list(merge_maps(path, maps, merge_value).values())
    is_single = all(len(side) < 2 and isinstance(next(iter(side), {}), dict) for side in sides)
    if is_single and theirs and ours:
        # A single member without a key is the same one on all sides.
        return [merge_json(path, base[0] if base else {}, theirs[0], ours[0], on_conflict)]
    # As sets: start with ours, remove what they removed, append what they added.
    return [
        *(member for member in ours if member in theirs or member not in base),
        *(member for member in theirs if member not in base and member not in ours),
    ]


def _members_by_key(items: list[Any], keys: tuple[str, ...]) -> dict[Any, Any] | None:
    """The members of a list by the values of `keys`, or None if these do not identify them."""
    found = {}
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get(keys[0]), str):
            return None
        found[tuple(str(item.get(key)) for key in keys)] = item
    return found if len(found) == len(items) else None
