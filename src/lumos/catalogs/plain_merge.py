"""Three-way merge of plain JSON, for what a catalog knows and Lumos only carries.

Objects are merged key by key. Lists of things that have names are merged thing by thing, all other
lists as sets: what one side added is there, what one side took out is gone.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

# Which keys tell a thing in a list from the others, the most telling first.
_NAMED_BY: Final = (
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
    """What a side does not have."""

    def __repr__(self) -> str:
        return "nothing"


MISSING: Final = Missing()


def merged_json(path: str, base: Any, theirs: Any, ours: Any, tell: Tell) -> Any:
    """One value, which may be missing on any side; people's where both sides changed it.

    `tell` hears of each such place, with what people have there and what Lumos has.
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
    """Objects key by key."""
    merged = {}
    for key in {**theirs, **ours}:
        old, now, new = (side.get(key, MISSING) for side in (base, theirs, ours))
        value = merged_json(f"{path}.{_shown(key)}", old, now, new, tell)
        if value is not MISSING:
            merged[key] = value
    return merged


def merged_members(base: Sequence[Any], theirs: Sequence[Any], ours: Sequence[Any]) -> list[Any]:
    """Ours but for what people took out, then what they added, whose word is the last."""
    return [
        *(member for member in ours if member in theirs or member not in base),
        *(member for member in theirs if member not in base and member not in ours),
    ]


def _lists(path: str, base: list[Any], theirs: list[Any], ours: list[Any], tell: Tell) -> list[Any]:
    sides = (base, theirs, ours)
    for keys in _NAMED_BY:
        old, now, new = (_by_name(side, keys) for side in sides)
        if old is not None and now is not None and new is not None:
            return list(merged_objects(path, old, now, new, tell).values())
    is_one_thing = all(len(side) < 2 and isinstance(next(iter(side), {}), dict) for side in sides)
    if is_one_thing and theirs and ours:
        # The same thing on all sides, also where it has no name.
        return [merged_json(path, base[0] if base else {}, theirs[0], ours[0], tell)]
    return merged_members(base, theirs, ours)


def _by_name(items: list[Any], keys: tuple[str, ...]) -> dict[Any, Any] | None:
    """The things in a list by their names, or nothing where they do not all have one each."""
    found = {}
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get(keys[0]), str):
            return None
        found[tuple(str(item.get(key)) for key in keys)] = item
    return found if len(found) == len(items) else None


def _shown(key: Any) -> str:
    return str(key[0]) if isinstance(key, tuple) else str(key)
