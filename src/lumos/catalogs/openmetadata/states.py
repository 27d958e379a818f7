"""The state of an entity: a normal form for tables, containers and topics, and patches of it.

A state contains only the fields that Lumos reads or keeps. Lumos never changes the other fields of
an entity.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from lumos.catalogs.openmetadata import texts

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
_LABEL_KEYS: Final = ("tagFQN", "source", "labelType", "state")
_REFERENCE_KEYS: Final = ("id", "type", "name", "fullyQualifiedName")
# Labels that follow from other entities.
_DERIVED_LABEL_TYPES: Final = frozenset({"Derived", "Propagated"})
# The server's value for a topic without a size limit.
_UNLIMITED: Final = -1


def state_of(entity_type: str, raw: Mapping[str, Any]) -> EntityState:
    """The state of an entity of the server."""
    state: EntityState = {
        key: raw[key] for key in (*_TEXT_FIELDS, *PORTABLE_FIELDS[entity_type]) if raw.get(key)
    }
    if "description" in state:
        state["description"] = texts.unescape_html(state["description"])
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
    """Normalize a column."""
    column = {key: raw[key] for key in COLUMN_KEYS if raw.get(key) is not None}
    if "dataTypeDisplay" in column:
        column["dataTypeDisplay"] = column["dataTypeDisplay"].lower()
    if tags := direct_labels(raw.get("tags") or ()):
        column["tags"] = tags
    if raw.get("children"):
        column["children"] = [column_of(child) for child in raw["children"]]
    return column


def has_labels(columns: Iterable[Mapping[str, Any]]) -> bool:
    """Whether columns or nested columns have labels."""
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
        body["description"] = texts.escape_html(state["description"])
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


def columns_path(entity_type: str) -> str:
    """The path of the columns in a patch."""
    return "/dataModel/columns" if entity_type == "container" else "/columns"


# Patches

Operation: TypeAlias = dict[str, Any]
Raw: TypeAlias = Mapping[str, Any]

# The server drops this field with every patch that does not set it, and cannot remove it.
_DEFINITION_PATH: Final = "/schemaDefinition"
_EMPTY_INSTEAD_OF_REMOVED: Final = frozenset({"schemaDefinition"})


def differences(
    entity_type: str, raw: Raw, before: EntityState, after: EntityState
) -> list[Operation]:
    """The operations that change an entity from one state to another."""
    operations = [
        *_description(raw, before, after),
        *_fields(entity_type, raw, before, after),
        *_labels("/tags", raw, before, after),
        *_owners(raw, before, after),
        *_domains(before, after),
        *_products(before, after),
        *extension_operations(raw, before.get("extension", {}), after.get("extension", {})),
        *_columns(entity_type, raw, before, after),
    ]
    is_set = any(operation["path"] == _DEFINITION_PATH for operation in operations)
    return operations if is_set or not operations else [*operations, *repeat_definition(after)]


def guard(raw: Raw) -> list[Operation]:
    """An operation that fails if an entity was changed since it was read."""
    if "updatedAt" not in raw:
        return []
    return [{"op": "test", "path": "/updatedAt", "value": raw["updatedAt"]}]


def repeat_definition(state: EntityState) -> list[Operation]:
    """The operation that sets the view definition again, which any patch would drop."""
    query = state.get("schemaDefinition")
    return [] if query is None else [{"op": "add", "path": _DEFINITION_PATH, "value": query}]


def _description(raw: Raw, before: EntityState, after: EntityState) -> Iterator[Operation]:
    old, new = before.get("description"), after.get("description")
    if old != new:
        yield from _set_operation(
            "/description", raw.get("description"), new and texts.escape_html(new)
        )


def _fields(
    entity_type: str, raw: Raw, before: EntityState, after: EntityState
) -> Iterator[Operation]:
    for key in PORTABLE_FIELDS[entity_type]:
        if before.get(key) != after.get(key):
            value = "" if key in _EMPTY_INSTEAD_OF_REMOVED and key not in after else after.get(key)
            yield from _set_operation(f"/{key}", raw.get(key), value)


def _set_operation(path: str, old: Any, new: Any) -> Iterator[Operation]:
    if new is None:
        if old is not None:
            yield {"op": "remove", "path": path}
    else:
        # `add` also replaces, and works for fields that the server does not load for patches.
        yield {"op": "add", "path": path, "value": new}


def _labels(path: str, raw: Raw, before: Raw, after: Raw) -> Iterator[Operation]:
    yield from _members(
        path,
        raw.get("tags") or (),
        before.get("tags") or (),
        after.get("tags") or (),
        key=lambda label: (label["source"], label["tagFQN"]),
        encode=dict,
        is_direct=is_direct_label,
    )


def _owners(raw: Raw, before: EntityState, after: EntityState) -> Iterator[Operation]:
    yield from _members(
        "/owners",
        raw.get("owners") or (),
        before.get("owners") or (),
        after.get("owners") or (),
        key=lambda owner: (owner["type"], owner["name"]),
        encode=lambda owner: {"id": owner["id"], "type": owner["type"]},
        is_direct=lambda owner: not owner.get("inherited"),
    )


def _members(
    path: str,
    raw: Sequence[Raw],
    before: Sequence[Raw],
    after: Sequence[Raw],
    *,
    key: Callable[[Raw], Any],
    encode: Callable[[Raw], Operation],
    is_direct: Callable[[Raw], bool],
) -> Iterator[Operation]:
    """Remove unwanted members of a list and add new ones; the others keep their positions."""
    old, new = {key(each) for each in before}, {key(each) for each in after}
    for number in reversed(range(len(raw))):
        if is_direct(raw[number]) and key(raw[number]) in old - new:
            yield {"op": "remove", "path": f"{path}/{number}"}
    for each in after:
        if key(each) not in old:
            yield {"op": "add", "path": f"{path}/-", "value": encode(each)}


def _domains(before: EntityState, after: EntityState) -> Iterator[Operation]:
    old, new = ([each["fullyQualifiedName"] for each in side.get("domains", ())]
                for side in (before, after))  # fmt: skip
    if old[:1] == new[:1]:
        return
    value = [{"id": each["id"], "type": "domain"} for each in after.get("domains", ())]
    yield {"op": "add", "path": "/domains", "value": value}


def _products(before: EntityState, after: EntityState) -> Iterator[Operation]:
    if sorted(names_in(before, PRODUCTS)) != sorted(names_in(after, PRODUCTS)):
        value = [{"id": each["id"], "type": "dataProduct"} for each in after.get(PRODUCTS, ())]
        yield {"op": "add", "path": f"/{PRODUCTS}", "value": value}


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


def _columns(
    entity_type: str, raw: Raw, before: EntityState, after: EntityState
) -> Iterator[Operation]:
    old, new = before.get(COLUMNS, []), after.get(COLUMNS, [])
    if old == new:
        return
    path, raw_existing = columns_path(entity_type), raw_columns(entity_type, raw)
    if entity_type == "container" and not (raw.get("dataModel") or {}).get(COLUMNS):
        yield {"op": "add", "path": "/dataModel", "value": {"isPartitioned": False, COLUMNS: new}}
    elif entity_type == "container" and not new:
        yield {"op": "remove", "path": "/dataModel"}
    elif _column_names(old) != _column_names(new):
        yield {"op": "add", "path": path, "value": _with_derived_labels(new, raw_existing)}
    else:
        yield from _column_operations(path, raw_existing, old, new)


def _column_names(columns: Sequence[Raw]) -> list[Any]:
    return [(column["name"], _column_names(column.get("children") or ())) for column in columns]


def _with_derived_labels(
    columns: Sequence[Raw], raw_existing: Sequence[Raw]
) -> list[dict[str, Any]]:
    """Add the derived labels of existing columns, which would otherwise be removed."""
    by_name = {column["name"]: column for column in raw_existing}
    result = []
    for column in columns:
        old = by_name.get(column["name"], {})
        others = [label for label in old.get("tags") or () if not is_direct_label(label)]
        merged = dict(column)
        if others:
            merged["tags"] = [*column.get("tags", ()), *others]
        if "children" in column:
            merged["children"] = _with_derived_labels(column["children"], old.get("children") or ())
        result.append(merged)
    return result


def _column_operations(
    path: str, raw_existing: Sequence[Raw], old: Sequence[Raw], new: Sequence[Raw]
) -> Iterator[Operation]:
    for number, (raw, before, after) in enumerate(zip(raw_existing, old, new, strict=True)):
        if before == after:
            continue
        column_path = f"{path}/{number}"
        for key in COLUMN_KEYS:
            if before.get(key) != after.get(key):
                yield from _set_operation(f"{column_path}/{key}", raw.get(key), after.get(key))
        yield from _labels(f"{column_path}/tags", raw, before, after)
        yield from _column_operations(
            f"{column_path}/children",
            raw.get("children") or (),
            before.get("children") or (),
            after.get("children") or (),
        )
