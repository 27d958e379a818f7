"""What changed in an aspect as a patch by keys, so that other people's changes to it stay.

A patch may be sent again without harm. Its paths end in a key that is never empty: servers forget
empty parts at the end of a path.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from lumos.platforms.datahub_model import facts
from lumos.platforms.datahub_model.lenses import STAMP

# The values of a member's keys.
_Key: TypeAlias = tuple[str, ...]

_NESTED: Final = "\u241f"
_SOURCE: Final = f"attribution{_NESTED}source"


class _Keyed(NamedTuple):
    """A list in an aspect, and the keys that tell its members apart."""

    list: str
    keys: tuple[str, ...]


_KEYED: Final = {
    "globalTags": _Keyed("tags", (_SOURCE, "tag")),
    "glossaryTerms": _Keyed("terms", (_SOURCE, "urn")),
    "ownership": _Keyed("owners", (_SOURCE, "typeUrn", "type", "owner")),
    "structuredProperties": _Keyed("properties", (_SOURCE, "propertyUrn")),
    "upstreamLineage": _Keyed("upstreams", ("dataset",)),
}
_CUSTOM: Final = "customProperties"
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
"""Aspects that can say nothing; others have to be taken out by a call of their own."""
STAMPS: Final = frozenset({"auditStamp", "created", "lastModified"})
"""Who did something and when, which alone says nothing."""


def patch(aspect: str, old: Any, new: Any, sent: Any) -> bytes | None:
    """The patch that makes one body of an aspect the other, or nothing where there is none.

    Either may be None, for an aspect that is not there. Both are in their normal form; `sent` is
    the new one in the form that servers take.
    """
    if aspect in _KEYED:
        if new is None:
            # An aspect cannot be taken back, but it can be emptied.
            new = sent = {
                _KEYED[aspect].list: [],
                **{name: old[name] for name in old if name in STAMPS},
            }
        return _keyed_patch(_KEYED[aspect], old, new, sent)
    if aspect == facts.PROPERTIES and old is not None and new is not None:
        return _properties_patch(old, new, sent)
    return None


def _keyed_patch(
    keyed: _Keyed, old: Mapping[str, Any] | None, new: Mapping[str, Any], sent: Mapping[str, Any]
) -> bytes | None:
    before, after, members = (
        _by_key(body.get(keyed.list) or [], keyed.keys) for body in (old or {}, new, sent)
    )
    if before is None or after is None or members is None:
        return None
    if any(order != list(after) for order in _orders(before, after)):
        # The server would put them in another order.
        return None
    operations = [
        *(_remove(keyed.list, *key) for key in before if key not in after),
        *(
            _add(members[key], keyed.list, *key)
            for key, member in after.items()
            if before.get(key) != member
        ),
        # Of an aspect that is not there yet, all else has to be said, too.
        *_differences(old or {}, sent if old is None else new, sent, without=keyed.list),
    ]
    keys = {keyed.list: list(keyed.keys)}
    return msgspec.json.encode({"arrayPrimaryKeys": keys, "patch": operations})


def _properties_patch(
    old: Mapping[str, Any], new: Mapping[str, Any], sent: Mapping[str, Any]
) -> bytes | None:
    before, after = (body.get(_CUSTOM) or {} for body in (old, new))
    if "" in before.keys() | after.keys():
        return None
    operations = [
        *(_remove(_CUSTOM, name) for name in before if name not in after),
        *(_add(text, _CUSTOM, name) for name, text in after.items() if before.get(name) != text),
        *_differences(old, new, sent, without=_CUSTOM),
    ]
    return msgspec.json.encode(operations)


def _differences(
    old: Mapping[str, Any], new: Mapping[str, Any], sent: Mapping[str, Any], *, without: str
) -> Iterator[dict[str, Any]]:
    for name in {**old, **new}:
        if name == without or old.get(name) == new.get(name):
            continue
        yield _add(sent[name], name) if name in new else _remove(name)


def _by_key(members: Sequence[Any], keys: Sequence[str]) -> dict[_Key, Any] | None:
    found = {tuple(_value(member, key) for key in keys): member for member in members}
    return found if len(found) == len(members) and all(key[-1] for key in found) else None


def _value(member: Any, key: str) -> str:
    value = member
    for part in key.split(_NESTED):
        value = value.get(part) if isinstance(value, dict) else None
    return "" if value is None else str(value)


def _orders(before: Iterable[_Key], after: Iterable[_Key]) -> Iterator[list[_Key]]:
    """The orders in which a server may have members afterwards, as it keeps them in maps of maps.

    What was taken out may leave its place behind, where others then go first.
    """
    wanted = list(after)
    old = list(before)
    left = [key for key in old if key in set(wanted)]
    yield _grouped([*left, *wanted])
    yield [key for key in _grouped([*old, *wanted]) if key in set(wanted)]


def _grouped(keys: Sequence[_Key]) -> list[_Key]:
    """Keys by their first parts, these in the order in which they first come, and so on."""
    if not keys or not keys[0]:
        return list(dict.fromkeys(keys))
    groups: dict[str, list[_Key]] = {}
    for first, *rest in keys:
        groups.setdefault(first, []).append(tuple(rest))
    return [(first, *rest) for first, group in groups.items() for rest in _grouped(group)]


def _add(value: Any, *path: str) -> dict[str, Any]:
    return {"op": "add", "path": _pointer(path), "value": value}


def _remove(*path: str) -> dict[str, Any]:
    return {"op": "remove", "path": _pointer(path), "value": {}}


def _pointer(path: Sequence[str]) -> str:
    return "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in path)
