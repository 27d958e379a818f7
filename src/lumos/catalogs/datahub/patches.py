"""What changed in an aspect as a patch by keys, so that other people's changes to it stay.

A patch can be sent again without harm. Its paths end in a key that is never empty, because servers
forget empty parts at the end of a path.

A server turns a list into maps of maps by the values of some keys, takes the steps of the patch and
turns the maps into a list again. What is put into a map comes last in it; so members that shall
follow a new one are removed and added again. Nothing else is touched.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from lumos.catalogs.datahub.aspects import STAMP, key_in
from lumos.catalogs.datahub.common_aspects import PROPERTIES

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
# The values of a member's keys.
_Key: TypeAlias = tuple[str, ...]

_NESTED: Final = "\u241f"
_SOURCE: Final = f"attribution{_NESTED}source"
# A member that is there more than once, of which a server makes one.
_REPEATED: Final = object()


class Keyed(NamedTuple):
    """A list in an aspect, and the keys that tell its members apart.

    Members with the same first keys will stand together, so that some keys have several orders,
    the last one of which begins with what the member is about. Plain text has no keys.
    """

    list: str
    orders: tuple[tuple[str, ...], ...]


class KeyPathStep(NamedTuple):
    """A value that is put into its place, or with None taken out of it."""

    path: _Key
    value: Any


class Planned(NamedTuple):
    """Steps, and the keys that their paths are made of."""

    keys: tuple[str, ...]
    steps: list[KeyPathStep]


def _of_many_sources(list: str, key: str) -> Keyed:
    return Keyed(list, ((_SOURCE, key), (key, _SOURCE, key)))


KEYED: Final = {
    "domains": Keyed("domains", ((),)),
    "editableSchemaMetadata": Keyed("editableSchemaFieldInfo", (("fieldPath",),)),
    "globalTags": _of_many_sources("tags", "tag"),
    "glossaryTerms": _of_many_sources("terms", "urn"),
    "ownership": Keyed(
        "owners", ((_SOURCE, "typeUrn", "type", "owner"), ("owner", _SOURCE, "typeUrn", "type"))
    ),
    "structuredProperties": _of_many_sources("properties", "propertyUrn"),
    "upstreamLineage": Keyed("upstreams", (("dataset",),)),
}
"""The lists by their aspects."""


def steps_between(
    keyed: Keyed, old: Sequence[Any], new: Sequence[Any], sent: Sequence[Any]
) -> Planned | None:
    """The steps from one list to another; None where no steps would lead there.

    Both are in their normal form; `sent` is the new one in the form that servers take.
    """
    ways = [(keys, _single_steps) for keys in keyed.orders]
    if len(keyed.orders) > 1:
        ways.append((keyed.orders[-1], _grouped_steps))
    for keys, steps_of in ways:
        before, after, members = (_by_key(some, keys) for some in (old, new, sent))
        if _REPEATED in after.values() or not all(key[-1] for key in (*before, *after)):
            continue
        depth = max(len(keys), 1)
        kept = _count_in_step_into(_order(before, [], depth), list(after))
        steps = steps_of(before, after, members, kept)
        # A call may be repeated.
        once = _order(before, steps, depth)
        if once == list(after) == _order(once, steps, depth):
            return Planned(keys, steps)
    return None


def _single_steps(
    before: dict[_Key, Any], after: dict[_Key, Any], members: dict[_Key, Any], kept: int
) -> list[KeyPathStep]:
    """Each member for itself; only the first ones stay where they are."""
    wanted = list(after)
    changed = [key for key in wanted[:kept] if before[key] != after[key]]
    later = wanted[kept:]
    gone = [key for key in before if key not in after]
    if any(key in before for key in later):
        # New ones, too: where this is done again, they are there.
        gone += later
    return [
        *(KeyPathStep(key, None) for key in gone),
        *(KeyPathStep(key, members[key]) for key in (*changed, *later)),
    ]


def _grouped_steps(
    before: dict[_Key, Any], after: dict[_Key, Any], members: dict[_Key, Any], kept: int
) -> list[KeyPathStep]:
    """As `_single_steps`, but what moves does so with all members of the same first key.

    What others add under this key meanwhile is lost, so that this is the last resort.
    """
    wanted = list(after)
    while 0 < kept < len(wanted) and wanted[kept - 1][0] == wanted[kept][0]:
        kept -= 1
    moving = {key[0] for key in wanted[kept:]}
    steps = [KeyPathStep(key, None) for key in before if key not in after and key[0] not in moving]
    steps += [KeyPathStep(key, members[key]) for key in wanted[:kept] if before[key] != after[key]]
    for first, group in groupby(wanted[kept:], key=lambda key: key[0]):
        places: dict[str, Any] = {}
        for key in group:
            _put_at(places, key[1:], members[key])
        steps += [KeyPathStep((first,), None), KeyPathStep((first,), places)]
    return steps


def _count_in_step_into(order: Iterable[_Key], wanted: Sequence[_Key]) -> int:
    """How many of the wanted ones, from the first on, are in the wanted order already."""
    kept = 0
    for key in order:
        if kept < len(wanted) and key == wanted[kept]:
            kept += 1
    return kept


def _order(keys: Iterable[_Key], steps: Sequence[KeyPathStep], depth: int) -> list[_Key]:
    """The order in which a server has members after some steps."""
    places: dict[str, Any] = {}
    for key in keys:
        _put_at(places, key, {})
    for path, value in steps:
        # All places are made before the first step is taken.
        _step_into(places, path if value is None else path[:-1])
    for path, value in steps:
        place = _step_into(places, path[:-1])
        if value is None:
            del place[path[-1]]
        else:
            place[path[-1]] = value
    return list(_keys_in(places, depth))


def _keys_in(places: Any, depth: int) -> Iterator[_Key]:
    if not depth:
        yield ()
        return
    for first, rest in places.items():
        for key in _keys_in(rest, depth - 1):
            yield first, *key


def _put_at(places: dict[str, Any], path: _Key, value: Any) -> None:
    _step_into(places, path[:-1])[path[-1]] = value


def _step_into(places: dict[str, Any], path: _Key) -> dict[str, Any]:
    for part in path:
        places = places.setdefault(part, {})
    return places


def _by_key(members: Sequence[Any], keys: Sequence[str]) -> dict[_Key, Any]:
    found: dict[_Key, Any] = {}
    for member in members:
        key = tuple(key_in(member, each) for each in keys) or (str(member),)
        found[key] = _REPEATED if key in found else member
    return found


def build_patch(aspect: str, old: Any, new: Any, sent: Any) -> bytes | None:
    """The patch that makes one body of an aspect the other, or nothing where there is none.

    Either may be None, for an aspect that is not there. Both are in their normal form; `sent` is
    the new one in the form that servers take.
    """
    if aspect in KEYED:
        if new is None:
            # An aspect cannot be taken back, but it can be emptied.
            new = sent = {
                KEYED[aspect].list: [],
                **{name: old[name] for name in old if name in STAMPS},
            }
        return _keyed_patch(aspect, old, new, sent)
    if aspect == PROPERTIES and new is not None:
        return _properties_patch(old, new, sent)
    return None


def _keyed_patch(
    aspect: str, old: Mapping[str, Any] | None, new: Mapping[str, Any], sent: Mapping[str, Any]
) -> bytes | None:
    name = KEYED[aspect].list
    lists = (body.get(name) or [] for body in (old or {}, new, sent))
    if (planned := steps_between(KEYED[aspect], *lists)) is None:
        return None
    operations = [
        *(_operation(KeyPathStep((name, *step.path), step.value)) for step in planned.steps),
        *_differences(old, new, sent, without=name),
    ]
    keys = {name: list(planned.keys)}
    return msgspec.json.encode({"arrayPrimaryKeys": keys, "patch": operations})


def _properties_patch(
    old: Mapping[str, Any] | None, new: Mapping[str, Any], sent: Mapping[str, Any]
) -> bytes | None:
    before, after = ((body or {}).get(_CUSTOM) or {} for body in (old, new))
    if "" in before.keys() | after.keys():
        return None
    operations = [
        *(_operation(KeyPathStep((_CUSTOM, name), None)) for name in before if name not in after),
        *(
            _operation(KeyPathStep((_CUSTOM, name), text))
            for name, text in after.items()
            if before.get(name) != text
        ),
        *_differences(old, new, sent, without=_CUSTOM),
    ]
    return msgspec.json.encode(operations)


def _differences(
    old: Mapping[str, Any] | None, new: Mapping[str, Any], sent: Mapping[str, Any], *, without: str
) -> Iterator[dict[str, Any]]:
    # Of an aspect that is not there yet, what goes without saying has to be said, too.
    before, after = ({}, sent) if old is None else (old, new)
    for name in {**before, **after}:
        if name == without or before.get(name) == after.get(name):
            continue
        yield _operation(KeyPathStep((name,), sent[name] if name in after else None))


def _operation(step: KeyPathStep) -> dict[str, Any]:
    if step.value is None:
        return {"op": "remove", "path": _pointer(step.path), "value": {}}
    return {"op": "add", "path": _pointer(step.path), "value": step.value}


def _pointer(path: Sequence[str]) -> str:
    return "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in path)
