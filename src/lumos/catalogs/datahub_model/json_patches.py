"""Patches of aspects, applied as a DataHub server applies them.

A server turns lists into maps of maps by the keys of their members, applies the operations, and
turns the maps into lists again. The patch names the keys, or else the server's template of the
aspect does. A patch that cannot be applied here is only carried.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

_NESTED: Final = "\u241f"
_KEYS: Final[dict[str, dict[str, list[str]]]] = {
    "domains": {"domains": []},
    "editableSchemaMetadata": {"editableSchemaFieldInfo": ["fieldPath"]},
    "globalTags": {"tags": ["tag"]},
    "glossaryTerms": {"terms": ["urn"]},
    "ownership": {"owners": ["owner", "type", "typeUrn"]},
    "structuredProperties": {"properties": ["propertyUrn"]},
    "upstreamLineage": {"upstreams": ["dataset"]},
}


class _NotApplicable(Exception):
    """An operation that leads nowhere."""


def patched(aspect: str, body: Any, patch: Any) -> Any:
    """The body of an aspect after a patch; the same body if the patch cannot be applied."""
    try:
        operations = patch if isinstance(patch, list) else patch["patch"]
        given = {} if isinstance(patch, list) else patch.get("arrayPrimaryKeys") or {}
        mapped = _as_maps(copy.deepcopy(body or {}), keys := given or _KEYS.get(aspect, {}))
        for operation in operations:
            _apply(mapped, operation["op"].lower(), operation["path"], operation.get("value"))
        return _as_lists(mapped, keys)
    except (_NotApplicable, AttributeError, KeyError, TypeError):
        return body


def _apply(mapped: dict[str, Any], verb: str, path: str, value: Any) -> None:
    *parents, last = (
        part.replace("~1", "/").replace("~0", "~") for part in path.removeprefix("/").split("/")
    )
    target = mapped
    for part in parents:
        target = target.setdefault(part, {})
        if not isinstance(target, dict):
            # A list without keys: only the server's own template knows them.
            raise _NotApplicable
    if verb == "remove":
        target.pop(last, None)
    elif verb in ("add", "replace"):
        target[last] = copy.deepcopy(value)
    else:
        raise _NotApplicable


def _as_maps(body: dict[str, Any], keys: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    for name, fields in keys.items():
        members: dict[str, Any] = {}
        for member in body.get(name) or ():
            target = members
            for field in fields[:-1]:
                target = target.setdefault(_key(member, field), {})
            target[_key(member, fields[-1]) if fields else str(member)] = member
        if members:
            body[name] = members
    return body


def _as_lists(mapped: dict[str, Any], keys: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    for name, fields in keys.items():
        if isinstance(members := mapped.get(name), dict):
            mapped[name] = _members(members, fields)
    return mapped


def _members(members: Any, fields: Sequence[str]) -> list[Any]:
    if not fields:
        return list(members.values()) if isinstance(members, dict) else [members]
    found = []
    for key, inside in members.items():
        for member in [inside] if len(fields) == 1 else _members(inside, fields[1:]):
            if not isinstance(member, dict):
                raise _NotApplicable
            if key and _NESTED not in fields[0]:
                member.setdefault(fields[0], key)
            found.append(member)
    return found


def _key(member: Any, field: str) -> str:
    value = member
    for part in field.split(_NESTED):
        value = value.get(part) if isinstance(value, dict) else None
    return "" if value is None else str(value)
