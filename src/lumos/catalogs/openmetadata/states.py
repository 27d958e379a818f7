"""What an entity of OpenMetadata says, in one normal form for tables, containers and topics.

A state has only those keys that say something and that Lumos reads or keeps. Whatever else the
server tells about an entity is not in it, and is never touched.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from lumos.catalogs.openmetadata import texts

State: TypeAlias = dict[str, Any]

COLUMNS: Final = "columns"
BESIDE: Final = "beside"
_WORDS: Final = ("displayName", "description")
# Fields that hold all they say in themselves, so that they can be written to another server.
OWN_FIELDS: Final[dict[str, tuple[str, ...]]] = {
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
# What leads to other things of the same server: told in snapshots, but never written.
_BESIDE_FIELDS: Final = ("lifeCycle",)
PRODUCTS: Final = "dataProducts"
_FIELDS: Final = "tags,owners,domains,extension,dataProducts,lifeCycle"
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
# Labels that hang on something else, and are not the entity's own.
_DERIVED: Final = frozenset({"Derived", "Propagated"})
# What the server says of the size of a topic that nobody limited.
_UNLIMITED: Final = -1
_NOISE: Final = frozenset({"href", "deleted", "id"})


def state_of(home: str, raw: Mapping[str, Any]) -> State:
    """The state that an entity is in, as the server tells it."""
    state: State = {key: raw[key] for key in (*_WORDS, *OWN_FIELDS[home]) if raw.get(key)}
    if "description" in state:
        state["description"] = texts.decoded(state["description"])
    for key in ("size", "numberOfObjects", "retentionTime", "retentionSize"):
        if isinstance(state.get(key), float) and state[key].is_integer():
            state[key] = int(state[key])
    if state.get("retentionSize") == _UNLIMITED:
        del state["retentionSize"]
    state |= {
        key: value
        for key, value in (
            ("tags", own_labels(raw.get("tags") or ())),
            ("owners", own_references(raw.get("owners") or ())),
            ("domains", own_references(_domains(raw))),
            (PRODUCTS, own_references(raw.get(PRODUCTS) or ())),
            ("extension", dict(raw.get("extension") or {})),
            (COLUMNS, [column_of(column) for column in raw_columns(home, raw)]),
            (BESIDE, {key: _quiet(raw[key]) for key in _BESIDE_FIELDS if raw.get(key)}),
        )
        if value
    }
    return state


def raw_columns(home: str, raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The columns of an entity where the server has them."""
    holder = raw.get("dataModel") or {} if home == "container" else raw
    return (holder.get(COLUMNS) or []) if home != "topic" else []


def column_of(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A column in its normal form."""
    column = {key: raw[key] for key in COLUMN_KEYS if raw.get(key) is not None}
    if "dataTypeDisplay" in column:
        column["dataTypeDisplay"] = column["dataTypeDisplay"].lower()
    if tags := own_labels(raw.get("tags") or ()):
        column["tags"] = tags
    if raw.get("children"):
        column["children"] = [column_of(child) for child in raw["children"]]
    return column


def has_labels(columns: Iterable[Mapping[str, Any]]) -> bool:
    """Whether there are labels on columns or inside them."""
    return any(each.get("tags") or has_labels(each.get("children") or ()) for each in columns)


def is_own_label(label: Mapping[str, Any]) -> bool:
    """Whether a label was put on the entity itself and counts."""
    return label.get("labelType") not in _DERIVED and label.get("state") != "Suggested"


def own_labels(labels: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    found = [
        {key: label[key] for key in _LABEL_KEYS if key in label}
        for label in labels
        if is_own_label(label)
    ]
    return sorted(found, key=lambda label: (label["source"], label["tagFQN"]))


def own_references(references: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {key: reference[key] for key in _REFERENCE_KEYS if key in reference}
        for reference in references
        if not reference.get("inherited")
    ]


def body_of(home: str, state: State) -> dict[str, Any]:
    """What makes an entity that is in a state, without its name and what it is in."""
    body = {
        key: value
        for key, value in state.items()
        if key not in (BESIDE, COLUMNS, "owners", "domains", PRODUCTS)
    }
    if "owners" in state:
        body["owners"] = [{"id": each["id"], "type": each["type"]} for each in state["owners"]]
    if "domains" in state:
        body["domains"] = names_in(state, "domains")
    if PRODUCTS in state:
        body[PRODUCTS] = names_in(state, PRODUCTS)
    if "description" in state:
        body["description"] = texts.encoded(state["description"])
    columns = state.get(COLUMNS, [])
    if home == "table":
        body[COLUMNS] = columns
    elif home == "container" and columns:
        body["dataModel"] = {"isPartitioned": False, COLUMNS: columns}
    elif home == "topic":
        body.setdefault("partitions", 1)
    return body


def names_in(state: Mapping[str, Any], key: str) -> list[str]:
    """The qualified names of what a state refers to."""
    return [each["fullyQualifiedName"] for each in state.get(key, ())]


def columns_path(home: str) -> str:
    """Where a patch finds the columns."""
    return "/dataModel/columns" if home == "container" else "/columns"


def _domains(raw: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if raw.get("domains"):
        return list(raw["domains"])
    return [raw["domain"]] if raw.get("domain") else []


def _quiet(value: Any) -> Any:
    """A value without what only this server could make sense of."""
    match value:
        case dict():
            return {key: _quiet(each) for key, each in value.items() if key not in _NOISE}
        case list():
            return [_quiet(each) for each in value]
        case _:
            return value
