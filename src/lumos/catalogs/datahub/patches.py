"""What changed in an aspect as a patch by keys, so that other people's changes to it stay.

A server turns a list into maps of maps by the values of some keys, applies the patch and turns the
maps into a list again. What is put into a map comes last in it; so members that shall follow a new
one are removed and added again. A list for which this does not lead to the wanted order is replaced
as a whole. A patch can be sent again without harm.
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
"""Empty aspects; those without an entry are removed by a call of their own."""
STAMPS: Final = frozenset({"auditStamp", "created", "lastModified"})
"""Keys for who changed an aspect and when; an aspect with nothing else is empty."""


class _Keyed(NamedTuple):
    """A list in an aspect, and the keys that identify its members.

    Members with the same first keys end up next to each other, so that some lists have two orders
    of keys to choose from. The last key of a path is never empty: servers forget it otherwise.
    """

    list: str
    orders: tuple[tuple[str, ...], ...]


def _from_sources(list: str, key: str) -> _Keyed:
    return _Keyed(list, ((_SOURCE, key), (key, _SOURCE, key)))


_KEYED: Final = {
    "domains": _Keyed("domains", ((),)),
    "editableSchemaMetadata": _Keyed("editableSchemaFieldInfo", (("fieldPath",),)),
    "globalTags": _from_sources("tags", "tag"),
    "glossaryTerms": _from_sources("terms", "urn"),
    "ownership": _Keyed(
        "owners", ((_SOURCE, "typeUrn", "type", "owner"), ("owner", _SOURCE, "typeUrn", "type"))
    ),
    "structuredProperties": _from_sources("properties", "propertyUrn"),
    "upstreamLineage": _Keyed("upstreams", (("dataset",),)),
}


def build_patch(aspect: str, old: Any, new: Any, sent: Any) -> bytes | None:
    """The patch that makes one body of an aspect the other, or None if there is none.

    Either may be None, for an aspect that is not there. Both are in their normal form; `sent` is
    the new one in the form that servers take.
    """
    if aspect in _KEYED:
        if new is None:
            # An aspect cannot be removed by a patch, but it can be emptied.
            stamps = {name: old[name] for name in old if name in STAMPS}
            new = sent = {_KEYED[aspect].list: [], **stamps}
        return _list_patch(aspect, old, new, sent)
    if aspect == PROPERTIES and new is not None:
        return _properties_patch(old, new, sent)
    return None


def _list_patch(
    aspect: str, old: Mapping[str, Any] | None, new: Mapping[str, Any], sent: Mapping[str, Any]
) -> bytes | None:
    name, orders = _KEYED[aspect]
    before, after, full = ((body or {}).get(name) or [] for body in (old, new, sent))
    for keys in orders:
        trial = _list_operations(name, keys, before, after, after)
        if trial is None:
            continue
        primary = {name: list(keys)}
        once, twice = before, before
        for _ in range(2):
            # A call may be repeated.
            patch = {"arrayPrimaryKeys": primary, "patch": trial}
            once, twice = twice, apply_patch(aspect, {name: twice}, patch).get(name) or []
        if once == after == twice:
            operations = _list_operations(name, keys, before, after, full) or []
            operations += _differences(old, new, sent, without=name)
            return msgspec.json.encode({"arrayPrimaryKeys": primary, "patch": operations})
    return None


def _list_operations(
    name: str, keys: Sequence[str], old: Sequence[Any], new: Sequence[Any], sent: Sequence[Any]
) -> list[dict[str, Any]] | None:
    before, after, members = (
        {_key(member, keys): member for member in some} for some in (old, new, sent)
    )
    repeated = Counter(_key(member, keys) for member in old)
    if not all(key[-1] for key in (*before, *after)):
        return None
    wanted, in_place = list(after), 0
    for key in before:
        in_place += in_place < len(wanted) and key == wanted[in_place]
    later = wanted[in_place:]
    gone = [key for key in before if key not in after]
    if any(key in before for key in later):
        # New ones as well: they are there when the call is repeated.
        gone += later
    changed = (key for key in wanted[:in_place] if before[key] != after[key] or repeated[key] > 1)
    return [
        *(_operation((name, *key), None) for key in gone),
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
        *_differences(old, new, sent, without=_CUSTOM),
    ]
    return msgspec.json.encode(operations)


def _differences(
    old: Mapping[str, Any] | None, new: Mapping[str, Any], sent: Mapping[str, Any], *, without: str
) -> Iterator[dict[str, Any]]:
    # Of an aspect that is not there yet, defaults have to be sent as well.
    before, after = ({}, sent) if old is None else (old, new)
    for name in {**before, **after}:
        if name != without and before.get(name) != after.get(name):
            yield _operation((name,), sent[name] if name in after else None)


def _operation(path: Sequence[str], value: Any) -> dict[str, Any]:
    pointer = "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in path)
    if value is None:
        return {"op": "remove", "path": pointer, "value": {}}
    return {"op": "add", "path": pointer, "value": value}
