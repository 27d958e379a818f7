"""Patches by key, as DataHub's server applies them.

Arrays become maps of maps by the values of their key fields, then an ordinary JSON Patch is
applied, then the maps become arrays again. Which fields those are is said in the patch
(`arrayPrimaryKeys`) or, without that, by the server's template of the aspect.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

_NESTED = "␟"
_NO_OPERATION = "NONE"

TEMPLATES: dict[str, dict[str, list[str]]] = {
    "datasetProperties": {"tags": []},
    "editableDatasetProperties": {},
    "globalTags": {"tags": ["tag"]},
    "glossaryTerms": {"terms": ["urn"]},
    "ownership": {"owners": ["owner", "type", "typeUrn"]},
    "structuredProperties": {"properties": ["propertyUrn"]},
    "upstreamLineage": {"upstreams": ["dataset"]},
    "editableSchemaMetadata": {"editableSchemaFieldInfo": ["fieldPath"]},
}
_WITHIN_FIELDS = {"globalTags": {"tags": ["tag"]}, "glossaryTerms": {"terms": ["urn"]}}
_STAMP = {"time": 0, "actor": "urn:li:corpuser:__datahub_system"}
DEFAULTS: dict[str, dict[str, Any]] = {
    "datasetProperties": {"tags": [], "customProperties": {}},
    "editableDatasetProperties": {"created": _STAMP, "lastModified": _STAMP},
    "globalTags": {"tags": []},
    "glossaryTerms": {"terms": [], "auditStamp": _STAMP},
    "ownership": {"owners": [], "lastModified": _STAMP},
    "structuredProperties": {"properties": []},
    "upstreamLineage": {"upstreams": [], "fineGrainedLineages": []},
    "editableSchemaMetadata": {
        "created": _STAMP,
        "lastModified": _STAMP,
        "editableSchemaFieldInfo": [],
    },
}


class Unpatchable(Exception):
    """A patch that cannot be applied: a server's own error, 500."""


def patched(aspect: str, current: Any, patch: Any) -> Any:
    """An aspect after a patch; `current` is None where there is none yet."""
    operations = patch if isinstance(patch, list) else patch["patch"]
    keys = None if isinstance(patch, list) else patch.get("arrayPrimaryKeys")
    if current is None:
        current = DEFAULTS.get(aspect)
        if current is None and not keys:
            raise Unpatchable(f"Patch not supported for aspect with name {aspect}")
    body = copy.deepcopy(current or {})
    if keys:
        return _applied(body, operations, keys)
    if aspect not in TEMPLATES:
        raise Unpatchable(f"there is no template for {aspect}")
    if aspect == "upstreamLineage":
        body["fineGrainedLineages"] = _by_downstream(body.get("fineGrainedLineages") or [])
    if aspect == "editableSchemaMetadata":
        for field in body.get("editableSchemaFieldInfo", []):
            _each_within(field, _as_maps)
    body = _applied(body, operations, TEMPLATES[aspect])
    if aspect == "editableSchemaMetadata":
        for field in body.get("editableSchemaFieldInfo", []):
            _each_within(field, _as_arrays)
    if aspect == "upstreamLineage":
        body["fineGrainedLineages"] = _from_downstream(body["fineGrainedLineages"])
    return body


def _each_within(field: dict[str, Any], change: Any) -> None:
    for name, keys in _WITHIN_FIELDS.items():
        if name in field:
            field[name] = change(field[name], keys)


def _applied(
    body: dict[str, Any], operations: Sequence[dict[str, Any]], keys: Mapping[str, list[str]]
) -> Any:
    mapped = _as_maps(body, keys)
    for operation in operations:
        _make_parents(mapped, operation)
    for operation in operations:
        _apply(mapped, operation)
    return _as_arrays(mapped, keys)


def _as_maps(body: dict[str, Any], keys: Mapping[str, list[str]]) -> dict[str, Any]:
    mapped = dict(body)
    for name, fields in keys.items():
        places: dict[str, Any] = {}
        for member in body.get(name) or []:
            if not fields:
                places[str(member)] = member
                continue
            place = places
            for field in fields:
                place = place.setdefault(_key(member, field), {})
            place.update(member)
        mapped[name] = places
    return mapped


def _key(member: Any, field: str) -> str:
    value = member
    for part in field.split(_NESTED):
        value = value.get(part) if isinstance(value, dict) else None
    return "" if value is None else str(value)


def _as_arrays(mapped: dict[str, Any], keys: Mapping[str, list[str]]) -> dict[str, Any]:
    body = dict(mapped)
    for name, fields in keys.items():
        places = mapped.get(name)
        if not isinstance(places, list):
            places = places or {}
            body[name] = _members(places, fields) if fields else list(places.values())
    return body


def _members(place: Any, fields: list[str]) -> list[Any]:
    if not fields:
        return list(place) if isinstance(place, list) else [place]
    if isinstance(place, list):
        return [member for part in place for member in _members(part, fields[1:])]
    found = []
    for key, part in place.items():
        for member in _members(part, fields[1:]):
            if key and _NESTED not in fields[0]:
                member.setdefault(fields[0], key)
            found.append(member)
    return found


def _parts(path: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")][1:]


def _make_parents(mapped: dict[str, Any], operation: dict[str, Any]) -> None:
    parts = _parts(operation["path"])
    # Java's split forgets empty parts at the end, so that parents of "/terms/x/" are not made.
    while parts and not parts[-1]:
        parts.pop()
    if operation["op"].upper() != "REMOVE":
        parts = parts[:-1]
    place: Any = mapped
    for part in parts:
        if not isinstance(place, dict):
            raise Unpatchable(f"{operation['path']} leads through what is no object")
        if place.get(part) is None:
            place[part] = {}
        place = place[part]


def _apply(mapped: dict[str, Any], operation: dict[str, Any]) -> None:
    verb, path = operation["op"].upper(), operation["path"]
    *parents, last = _parts(path)
    place: Any = mapped
    for part in parents:
        if not isinstance(place, dict) or part not in place:
            raise Unpatchable(f"{path}: the target location has no parent")
        place = place[part]
    if not isinstance(place, dict):
        raise Unpatchable(f"{path} leads through what is no object")
    if verb in ("REMOVE", "REPLACE") and last not in place:
        raise Unpatchable(f"{path}: there is nothing")
    if verb == "REMOVE":
        del place[last]
    elif verb in ("ADD", "REPLACE"):
        if "value" not in operation:
            raise Unpatchable(f"{path}: no value")
        place[last] = copy.deepcopy(operation["value"])
    else:
        raise Unpatchable(f"Unsupported PATCH operation: `{operation['op']}`")


def _by_downstream(entries: list[dict[str, Any]]) -> dict[str, Any]:
    operations: dict[str, Any] = {}
    for entry in entries:
        downstreams = entry.get("downstreams") or []
        if len(downstreams) != 1:
            raise Unpatchable("fine grained lineages with not exactly one downstream")
        place = operations.setdefault(entry.get("transformOperation", _NO_OPERATION), {})
        place = place.setdefault(downstreams[0], {})
        place = place.setdefault(entry.get("query", _NO_OPERATION), {})
        for upstream in entry.get("upstreams") or []:
            place[upstream] = {
                "confidenceScore": entry.get("confidenceScore", 1.0),
                "upstreamType": entry["upstreamType"],
                "downstreamType": entry["downstreamType"],
            }
    return operations


def _from_downstream(operations: Any) -> list[Any]:
    if isinstance(operations, list):
        return operations
    entries = []
    for operation, by_downstream in operations.items():
        for downstream, by_query in by_downstream.items():
            for query, upstreams in by_query.items():
                if not upstreams:
                    continue
                facts = list(upstreams.values())
                entry = {
                    "downstreams": [downstream],
                    "upstreams": list(upstreams),
                    "upstreamType": facts[-1].get("upstreamType", "FIELD_SET"),
                    "downstreamType": facts[-1].get("downstreamType", "FIELD"),
                    "confidenceScore": min(fact.get("confidenceScore", 1.0) for fact in facts),
                    "transformOperation": operation,
                }
                if query not in ("", _NO_OPERATION):
                    entry["query"] = query
                entries.append(entry)
    return entries
