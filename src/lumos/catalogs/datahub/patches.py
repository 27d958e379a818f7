"""Builds patches of aspects, which keep concurrent changes to other members of lists.

A server converts a list to nested maps by the values of some keys, applies the patch and converts
the maps back. New members are added at the end, so members that must follow a new one are removed
and added again. If this does not result in the wanted order, the list is replaced. Patches are
idempotent.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from lumos.catalogs.datahub.aspects import STAMP, apply_patch, key_in
from lumos.catalogs.datahub.common_aspects import PROPERTIES

# The values of a member's keys.
_Key: TypeAlias = tuple[str, ...]

_CUSTOM: Final = "customProperties"
_SOURCE: Final = "attribution\u241fsource"
EMPTY: Final[dict[str, Any]] = {
    "domains": {"domains": []},
    "editableSchemaMetadata": {"editableSchemaFieldInfo": []},
    "globalTags": {"tags": []},
    "glossaryTerms": {"terms": [], "auditStamp": STAMP},
    "ownership": {"owners": []},
    "status": {"removed": False},
    "structuredProperties": {"properties": []},
    "upstreamLineage": {"upstreams": []},
}
"""Empty bodies of aspects; other aspects can only be removed by a separate call."""
STAMPS: Final = frozenset({"auditStamp", "created", "lastModified"})
"""Audit stamps; an aspect that only has these is empty."""


class _KeyedList(NamedTuple):
    """A list in an aspect, and the keys that identify its members.

    Servers group members by their first key, which changes their order; some lists have a second
    order of keys to try. Servers drop members whose last key is empty.
    """

    list: str
    orders: tuple[tuple[str, ...], ...]


def _attributed_list(list: str, key: str) -> _KeyedList:
    return _KeyedList(list, ((_SOURCE, key), (key, _SOURCE, key)))


_KEYED_LISTS: Final = {
    "domains": _KeyedList("domains", ((),)),
    "editableSchemaMetadata": _KeyedList("editableSchemaFieldInfo", (("fieldPath",),)),
    "globalTags": _attributed_list("tags", "tag"),
    "glossaryTerms": _attributed_list("terms", "urn"),
    "ownership": _KeyedList(
        "owners", ((_SOURCE, "typeUrn", "type", "owner"), ("owner", _SOURCE, "typeUrn", "type"))
    ),
    "structuredProperties": _attributed_list("properties", "propertyUrn"),
    "upstreamLineage": _KeyedList("upstreams", (("dataset",),)),
}


def build_patch(aspect: str, old: Any, new: Any, sent: Any) -> bytes | None:
    """The patch that changes an aspect from `old` to `new`, or None if it must be replaced.

    `old` and `new` are normalized bodies, or None if the aspect does not exist. `sent` is `new`
    with the defaults that servers require.
    """
    if aspect in _KEYED_LISTS:
        if new is None:
            # An aspect cannot be removed by a patch, but it can be emptied.
            stamps = {name: old[name] for name in old if name in STAMPS}
            new = sent = {_KEYED_LISTS[aspect].list: [], **stamps}
        return _list_patch(aspect, old, new, sent)
    if aspect == PROPERTIES and new is not None:
        return _properties_patch(old, new, sent)
    return None


def _list_patch(
    aspect: str, old: Mapping[str, Any] | None, new: Mapping[str, Any], sent: Mapping[str, Any]
) -> bytes | None:
    name, orders = _KEYED_LISTS[aspect]
    before, after, sent_members = ((body or {}).get(name) or [] for body in (old, new, sent))
    for keys in orders:
        operations_to_try = _list_operations(name, keys, before, after, after)
        if operations_to_try is None:
            continue
        primary = {name: list(keys)}
        after_first, after_second = before, before
        for _ in range(2):
            # A call may be retried.
            patch = {"arrayPrimaryKeys": primary, "patch": operations_to_try}
            after_first, after_second = (
                after_second,
                apply_patch(aspect, {name: after_second}, patch).get(name) or [],
            )
        if after_first == after == after_second:
            operations = _list_operations(name, keys, before, after, sent_members) or []
            operations += _field_operations(old, new, sent, without=name)
            return msgspec.json.encode({"arrayPrimaryKeys": primary, "patch": operations})
    return None


def _list_operations(
    name: str, keys: Sequence[str], old: Sequence[Any], new: Sequence[Any], sent: Sequence[Any]
) -> list[dict[str, Any]] | None:
    before, after, members = (
        {_key(member, keys): member for member in side} for side in (old, new, sent)
    )
    repeated = Counter(_key(member, keys) for member in old)
    if not all(key[-1] for key in (*before, *after)):
        return None
    wanted, prefix_length = list(after), 0
    for key in before:
        prefix_length += prefix_length < len(wanted) and key == wanted[prefix_length]
    later = wanted[prefix_length:]
    removed = [key for key in before if key not in after]
    if any(key in before for key in later):
        # Remove new members too: if the call is retried, the list already contains them.
        removed += later
    changed = (
        key for key in wanted[:prefix_length] if before[key] != after[key] or repeated[key] > 1
    )
    return [
        *(_operation((name, *key), None) for key in removed),
        *(_operation((name, *key), members[key]) for key in (*changed, *later)),
    ]


def _key(member: Any, keys: Sequence[str]) -> _Key:
    return tuple(key_in(member, each) for each in keys) or (str(member),)


def _properties_patch(
    old: Mapping[str, Any] | None, new: Mapping[str, Any], sent: Mapping[str, Any]
) -> bytes | None:
    before, after = ((body or {}).get(_CUSTOM) or {} for body in (old, new))
    if "" in before.keys() | after.keys():
        return None
    operations = [
        *(_operation((_CUSTOM, name), None) for name in before if name not in after),
        *(
            _operation((_CUSTOM, name), text)
            for name, text in after.items()
            if before.get(name) != text
        ),
        *_field_operations(old, new, sent, without=_CUSTOM),
    ]
    return msgspec.json.encode(operations)


def _field_operations(
    old: Mapping[str, Any] | None, new: Mapping[str, Any], sent: Mapping[str, Any], *, without: str
) -> Iterator[dict[str, Any]]:
    # Defaults are only sent if the aspect does not exist yet.
    before, after = ({}, sent) if old is None else (old, new)
    for name in {**before, **after}:
        if name != without and before.get(name) != after.get(name):
            yield _operation((name,), sent[name] if name in after else None)


def _operation(path: Sequence[str], value: Any) -> dict[str, Any]:
    pointer = "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in path)
    if value is None:
        return {"op": "remove", "path": pointer, "value": {}}
    return {"op": "add", "path": pointer, "value": value}
