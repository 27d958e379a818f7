"""The state of an entity, a normal form for tables, containers and topics; patches between states.

A state contains only the fields that Lumos reads or preserves. Lumos never changes the other fields
of an entity.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from lumos.catalogs.openmetadata.names import escape_html, unescape_html

EntityState: TypeAlias = dict[str, Any]

COLUMNS: Final = "columns"
_TEXT_FIELDS: Final = ("displayName", "description")
# Fields without references, which can be written to another server unchanged.
PORTABLE_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "table": (
        "tableType", "schemaDefinition", "tableConstraints", "tablePartition", "fileFormat",
        "retentionPeriod", "sourceUrl",
    ),
    "container": ("prefix", "size", "numberOfObjects", "fileFormats", "fullPath", "sourceUrl"),
    "topic": (
        "partitions", "replicationFactor", "retentionTime", "maximumMessageSize",
        "minimumInSyncReplicas", "retentionSize", "cleanupPolicies", "messageSchema", "topicConfig",
        "sourceUrl",
    ),
}  # fmt: skip
PRODUCTS: Final = "dataProducts"
_FIELDS: Final = "tags,owners,domains,extension,dataProducts"
FIELDS: Final = {
    "table": f"columns,tableConstraints,schemaDefinition,{_FIELDS}",
    "container": f"dataModel,parent,{_FIELDS}",
    "topic": _FIELDS,
}
COLUMN_KEYS: Final = (
    "name", "displayName", "dataType", "arrayDataType", "dataLength", "precision", "scale",
    "dataTypeDisplay", "description", "constraint", "jsonSchema",
)  # fmt: skip
_MODELLED_COLUMN_KEYS: Final = frozenset({*COLUMN_KEYS, "tags", "children", "fullyQualifiedName"})
_LABEL_KEYS: Final = ("tagFQN", "source", "labelType", "state")
_REFERENCE_KEYS: Final = ("id", "type", "name", "fullyQualifiedName")
# Labels that follow from other entities.
_DERIVED_LABEL_TYPES: Final = frozenset({"Derived", "Propagated"})
# The server's value for a topic without a size limit.
_UNLIMITED: Final = -1


def state_of(entity_type: str, raw: Mapping[str, Any]) -> EntityState:
    state: EntityState = {
        key: raw[key] for key in (*_TEXT_FIELDS, *PORTABLE_FIELDS[entity_type]) if raw.get(key)
    }
    if "description" in state:
        state["description"] = unescape_html(state["description"])
    for key in ("size", "numberOfObjects", "retentionTime", "retentionSize"):
        if isinstance(state.get(key), float) and state[key].is_integer():
            state[key] = int(state[key])
    if state.get("retentionSize") == _UNLIMITED:
        del state["retentionSize"]
    state |= {
        key: value
        for key, value in (
            ("tags", direct_labels(raw.get("tags") or ())),
            ("owners", direct_references(raw.get("owners") or ())),
            ("domains", direct_references(raw.get("domains") or ())),
            (PRODUCTS, direct_references(raw.get(PRODUCTS) or ())),
            ("extension", dict(raw.get("extension") or {})),
            (COLUMNS, [column_of(column) for column in raw_columns(entity_type, raw)]),
        )
        if value
    }
    return state


def raw_columns(entity_type: str, raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The columns in a response of the server."""
    parent = raw.get("dataModel") or {} if entity_type == "container" else raw
    return (parent.get(COLUMNS) or []) if entity_type != "topic" else []


def column_of(raw: Mapping[str, Any]) -> dict[str, Any]:
    column = {key: raw[key] for key in COLUMN_KEYS if raw.get(key) is not None}
    if "dataTypeDisplay" in column:
        column["dataTypeDisplay"] = column["dataTypeDisplay"].lower()
    if tags := direct_labels(raw.get("tags") or ()):
        column["tags"] = tags
    if raw.get("children"):
        column["children"] = [column_of(child) for child in raw["children"]]
    return column


def has_labels(columns: Iterable[Mapping[str, Any]]) -> bool:
    return any(each.get("tags") or has_labels(each.get("children") or ()) for each in columns)


def is_direct_label(label: Mapping[str, Any]) -> bool:
    """Whether a label was assigned to the entity itself and is confirmed."""
    return label.get("labelType") not in _DERIVED_LABEL_TYPES and label.get("state") != "Suggested"


def direct_labels(labels: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    found = [
        {key: label[key] for key in _LABEL_KEYS if key in label}
        for label in labels
        if is_direct_label(label)
    ]
    return sorted(found, key=lambda label: (label["source"], label["tagFQN"]))


def direct_references(references: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {key: reference[key] for key in _REFERENCE_KEYS if key in reference}
        for reference in references
        if not reference.get("inherited")
    ]


def body_of(entity_type: str, state: EntityState) -> dict[str, Any]:
    """The request that creates an entity with a state, without its name and parents."""
    body = {
        key: value
        for key, value in state.items()
        if key not in (COLUMNS, "owners", "domains", PRODUCTS)
    }
    if "owners" in state:
        body["owners"] = [{"id": each["id"], "type": each["type"]} for each in state["owners"]]
    if "domains" in state:
        body["domains"] = names_in(state, "domains")
    if PRODUCTS in state:
        body[PRODUCTS] = names_in(state, PRODUCTS)
    if "description" in state:
        body["description"] = escape_html(state["description"])
    columns = state.get(COLUMNS, [])
    if entity_type == "table":
        body[COLUMNS] = columns
    elif entity_type == "container" and columns:
        body["dataModel"] = {"isPartitioned": False, COLUMNS: columns}
    elif entity_type == "topic":
        body.setdefault("partitions", 1)
    return body


def names_in(state: Mapping[str, Any], key: str) -> list[str]:
    """The qualified names in the references of a state."""
    return [each["fullyQualifiedName"] for each in state.get(key, ())]


# Patches

Operation: TypeAlias = dict[str, Any]
Raw: TypeAlias = Mapping[str, Any]

# The server drops this field with every patch that does not set it, and cannot remove it.
_DEFINITION: Final = "schemaDefinition"
_IDENTITIES: Final = {
    "tags": ("source", "tagFQN"),
    "owners": ("type", "name"),
    "domains": ("fullyQualifiedName",),
    PRODUCTS: ("fullyQualifiedName",),
}


def differences(
    entity_type: str, raw: Raw, before: EntityState, after: EntityState
) -> list[Operation]:
    """The operations that change an entity from one state to another."""
    operations: list[Operation] = []
    for key in ("description", *PORTABLE_FIELDS[entity_type]):
        if before.get(key) != (value := after.get(key)):
            if key == "description":
                value = value and escape_html(value)
            elif key == _DEFINITION:
                value = value or ""
            operations += _set_operation(f"/{key}", raw.get(key), value)
    for key in _IDENTITIES:
        if _members(key, before) != _members(key, after):
            operations.append({"op": "add", "path": f"/{key}", "value": _new_list(key, raw, after)})
    operations += extension_operations(raw, before.get("extension", {}), after.get("extension", {}))
    operations += _column_operations(entity_type, raw, before, after)
    is_set = any(operation["path"] == f"/{_DEFINITION}" for operation in operations)
    return operations if is_set or not operations else [*operations, *repeat_definition(after)]


def guard(raw: Raw) -> list[Operation]:
    """An operation that fails if an entity was changed since it was read."""
    if "updatedAt" not in raw:
        return []
    return [{"op": "test", "path": "/updatedAt", "value": raw["updatedAt"]}]


def repeat_definition(state: EntityState) -> list[Operation]:
    """Set the view definition again, since any patch without it would drop it."""
    query = state.get(_DEFINITION)
    return [] if query is None else [{"op": "add", "path": f"/{_DEFINITION}", "value": query}]


def _set_operation(path: str, old: Any, new: Any) -> Iterator[Operation]:
    if new is None:
        if old is not None:
            yield {"op": "remove", "path": path}
    else:
        # `add` also replaces, and works for fields that the server does not load for patches.
        yield {"op": "add", "path": path, "value": new}


def _members(key: str, state: EntityState) -> set[tuple[str, ...]]:
    """The members of a list that Lumos compares: of domains only the first, which it models."""
    members = state.get(key) or ()
    return {_identity(key, each) for each in (members[:1] if key == "domains" else members)}


def _identity(key: str, member: Raw) -> tuple[str, ...]:
    return tuple(member[each] for each in _IDENTITIES[key])


def _new_list(key: str, raw: Raw, after: Raw) -> list[Any]:
    """The new labels or references: existing ones with their details, and all derived labels."""
    existing = [each for each in raw.get(key) or () if not each.get("inherited")]
    known = {_identity(key, each): each for each in existing if is_direct_label(each)}
    new = [
        known.get(_identity(key, each))
        or (each if key == "tags" else {"id": each["id"], "type": each["type"]})
        for each in after.get(key) or ()
    ]
    return [*new, *(each for each in existing if not is_direct_label(each))]


def extension_operations(
    raw: Raw, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[Operation]:
    """Change custom properties; they can only be added one by one to an existing extension."""
    if old == new:
        return
    if not raw.get("extension"):
        yield {"op": "add", "path": "/extension", "value": new}
        return
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            pointer = key.replace("~", "~0").replace("/", "~1")
            yield from _set_operation(f"/extension/{pointer}", old.get(key), new.get(key))


def property_operations(raw: Raw, key: str, text: str | None) -> Iterator[Operation]:
    """Set one custom property; None removes it."""
    old = raw.get("extension") or {}
    others = {name: value for name, value in old.items() if name != key}
    return extension_operations(raw, old, others if text is None else {**others, key: text})


def _column_operations(
    entity_type: str, raw: Raw, before: EntityState, after: EntityState
) -> Iterator[Operation]:
    old, new = before.get(COLUMNS, []), after.get(COLUMNS, [])
    if old == new:
        return
    existing = raw_columns(entity_type, raw)
    columns = _with_other_fields(new, existing)
    if entity_type == "container" and not existing:
        value = {"isPartitioned": False, COLUMNS: columns}
        yield {"op": "add", "path": "/dataModel", "value": value}
    elif entity_type == "container" and not new:
        yield {"op": "remove", "path": "/dataModel"}
    else:
        path = "/dataModel/columns" if entity_type == "container" else "/columns"
        yield {"op": "add", "path": path, "value": columns}


def _with_other_fields(columns: Sequence[Raw], existing: Sequence[Raw]) -> list[dict[str, Any]]:
    """Columns with the fields and derived labels of existing columns that Lumos does not model."""
    by_name = {column["name"]: column for column in existing}
    result = []
    for column in columns:
        old = by_name.get(column["name"], {})
        if old and column_of(old) == column:
            result.append(dict(old))
            continue
        others = {key: value for key, value in old.items() if key not in _MODELLED_COLUMN_KEYS}
        merged = {**others, **column}
        if old.get("tags"):
            merged["tags"] = _new_list("tags", old, column)
        if "children" in column:
            merged["children"] = _with_other_fields(column["children"], old.get("children") or ())
        result.append(merged)
    return result
