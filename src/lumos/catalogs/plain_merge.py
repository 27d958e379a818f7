"""Three-way merge of plain JSON, for raw records that Lumos does not model.

Objects are merged key by key. Lists of named members are merged by name, and all other lists as
sets: members that one side added are kept, members that one side removed are removed.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

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
Tell: TypeAlias = Callable[[str, Any, Any], None]


class Missing:
    """The value of a side that has none."""

    def __repr__(self) -> str:
        return "nothing"


MISSING: Final = Missing()


def merged_json(path: str, base: Any, theirs: Any, ours: Any, tell: Tell) -> Any:
    """Merge a value, which may be missing on any side; if both sides changed it, theirs wins.

    `tell` is called for each conflict with its path, their value and ours.
    """
    if ours in (base, theirs):
        return theirs
    if theirs == base:
        return ours
    if isinstance(theirs, dict) and isinstance(ours, dict):
        before = base if isinstance(base, dict) else {}
        return merged_objects(path, before, theirs, ours, tell)
    if isinstance(theirs, list) and isinstance(ours, list):
        return _lists(path, base if isinstance(base, list) else [], theirs, ours, tell)
    tell(path, theirs, ours)
    return theirs


def merged_objects(
    path: str, base: dict[Any, Any], theirs: dict[Any, Any], ours: dict[Any, Any], tell: Tell
) -> dict[Any, Any]:
    """Merge objects key by key."""
    merged = {}
    for key in {**theirs, **ours}:
        old, now, new = (side.get(key, MISSING) for side in (base, theirs, ours))
        value = merged_json(f"{path}.{_shown(key)}", old, now, new, tell)
        if value is not MISSING:
            merged[key] = value
    return merged


def merged_members(base: Sequence[Any], theirs: Sequence[Any], ours: Sequence[Any]) -> list[Any]:
    """Our members without those that they removed, followed by those that they added."""
    return [
        *(member for member in ours if member in theirs or member not in base),
        *(member for member in theirs if member not in base and member not in ours),
    ]


def _lists(path: str, base: list[Any], theirs: list[Any], ours: list[Any], tell: Tell) -> list[Any]:
    sides = (base, theirs, ours)
    for keys in _IDENTIFYING_KEYS:
        old, now, new = (_by_name(side, keys) for side in sides)
        if old is not None and now is not None and new is not None:
            return list(merged_objects(path, old, now, new, tell).values())
    is_single = all(len(side) < 2 and isinstance(next(iter(side), {}), dict) for side in sides)
    if is_single and theirs and ours:
        # A single unnamed member is the same one on all sides.
        return [merged_json(path, base[0] if base else {}, theirs[0], ours[0], tell)]
    return merged_members(base, theirs, ours)


def _by_name(items: list[Any], keys: tuple[str, ...]) -> dict[Any, Any] | None:
    """The members of a list by their keys, or None unless all have distinct ones."""
    found = {}
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get(keys[0]), str):
            return None
        found[tuple(str(item.get(key)) for key in keys)] = item
    return found if len(found) == len(items) else None


def _shown(key: Any) -> str:
    return str(key[0]) if isinstance(key, tuple) else str(key)
