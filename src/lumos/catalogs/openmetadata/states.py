"""What an entity of OpenMetadata says, in one normal form for tables, containers and topics.

A state has only those keys that say something and that Lumos reads or keeps. Whatever else the
server tells about an entity is not in it, and is never touched.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from lumos.catalogs.openmetadata import texts

State: TypeAlias = dict[str, Any]

COLUMNS: Final = "columns"
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
# Labels that hang on something else, and are not the entity's own.
_DERIVED: Final = frozenset({"Derived", "Propagated"})
# What the server says of the size of a topic that nobody limited.
_UNLIMITED: Final = -1


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
            ("domains", own_references(raw.get("domains") or ())),
            (PRODUCTS, own_references(raw.get(PRODUCTS) or ())),
            ("extension", dict(raw.get("extension") or {})),
            (COLUMNS, [column_of(column) for column in raw_columns(home, raw)]),
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
        if key not in (COLUMNS, "owners", "domains", PRODUCTS)
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


# Patches

Operation: TypeAlias = dict[str, Any]
Raw: TypeAlias = Mapping[str, Any]

# The server loads tables without it before it patches them, and so writes them without it; there
# is nothing to remove either.
_WIPED: Final = "/schemaDefinition"
_EMPTIED: Final = frozenset({"schemaDefinition"})


def differences(home: str, raw: Raw, before: State, after: State) -> list[Operation]:
    """The operations that lead an entity, as the server told it, from one state to another."""
    operations = [
        *_description(raw, before, after),
        *_fields(home, raw, before, after),
        *_labels("/tags", raw, before, after),
        *_owners(raw, before, after),
        *_domains(before, after),
        *_products(before, after),
        *_extension(raw, before, after),
        *_columns(home, raw, before, after),
    ]
    is_said = any(operation["path"] == _WIPED for operation in operations)
    return operations if is_said or not operations else [*operations, *said_again(after)]


def guard(raw: Raw) -> list[Operation]:
    """A test that nobody has changed an entity since it was told."""
    if "updatedAt" not in raw:
        return []
    return [{"op": "test", "path": "/updatedAt", "value": raw["updatedAt"]}]


def said_again(state: State) -> list[Operation]:
    """What a patch of anything else would wipe, and so has to say, too."""
    query = state.get("schemaDefinition")
    return [] if query is None else [{"op": "add", "path": _WIPED, "value": query}]


def _description(raw: Raw, before: State, after: State) -> Iterator[Operation]:
    old, new = before.get("description"), after.get("description")
    if old != new:
        yield from _set("/description", raw.get("description"), new and texts.encoded(new))


def _fields(home: str, raw: Raw, before: State, after: State) -> Iterator[Operation]:
    for key in OWN_FIELDS[home]:
        if before.get(key) != after.get(key):
            value = "" if key in _EMPTIED and key not in after else after.get(key)
            yield from _set(f"/{key}", raw.get(key), value)


def _set(path: str, old: Any, new: Any) -> Iterator[Operation]:
    if new is None:
        if old is not None:
            yield {"op": "remove", "path": path}
    else:
        # This also replaces, and works where the server shows what it does not patch.
        yield {"op": "add", "path": path, "value": new}


def _labels(path: str, raw: Raw, before: Raw, after: Raw) -> Iterator[Operation]:
    yield from _members(
        path,
        raw.get("tags") or (),
        before.get("tags") or (),
        after.get("tags") or (),
        key=lambda label: (label["source"], label["tagFQN"]),
        made=dict,
        is_own=is_own_label,
    )


def _owners(raw: Raw, before: State, after: State) -> Iterator[Operation]:
    yield from _members(
        "/owners",
        raw.get("owners") or (),
        before.get("owners") or (),
        after.get("owners") or (),
        key=lambda owner: (owner["type"], owner["name"]),
        made=lambda owner: {"id": owner["id"], "type": owner["type"]},
        is_own=lambda owner: not owner.get("inherited"),
    )


def _members(
    path: str,
    raw: Sequence[Raw],
    before: Sequence[Raw],
    after: Sequence[Raw],
    *,
    key: Callable[[Raw], Any],
    made: Callable[[Raw], Operation],
    is_own: Callable[[Raw], bool],
) -> Iterator[Operation]:
    """Takes out what is no longer wanted and adds what is new; all others stay where they are."""
    old, new = {key(each) for each in before}, {key(each) for each in after}
    for number in reversed(range(len(raw))):
        if is_own(raw[number]) and key(raw[number]) in old - new:
            yield {"op": "remove", "path": f"{path}/{number}"}
    for each in after:
        if key(each) not in old:
            yield {"op": "add", "path": f"{path}/-", "value": made(each)}


def _domains(before: State, after: State) -> Iterator[Operation]:
    old, new = ([each["fullyQualifiedName"] for each in side.get("domains", ())]
                for side in (before, after))  # fmt: skip
    if old[:1] == new[:1]:
        return
    value = [{"id": each["id"], "type": "domain"} for each in after.get("domains", ())]
    yield {"op": "add", "path": "/domains", "value": value}


def _products(before: State, after: State) -> Iterator[Operation]:
    if sorted(names_in(before, PRODUCTS)) != sorted(names_in(after, PRODUCTS)):
        value = [{"id": each["id"], "type": "dataProduct"} for each in after.get(PRODUCTS, ())]
        yield {"op": "add", "path": f"/{PRODUCTS}", "value": value}


def _extension(raw: Raw, before: State, after: State) -> Iterator[Operation]:
    old, new = before.get("extension", {}), after.get("extension", {})
    if old == new:
        return
    if not raw.get("extension"):
        yield {"op": "add", "path": "/extension", "value": new}
        return
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            yield from _set(f"/extension/{pointer(key)}", old.get(key), new.get(key))


def _columns(home: str, raw: Raw, before: State, after: State) -> Iterator[Operation]:
    old, new = before.get(COLUMNS, []), after.get(COLUMNS, [])
    if old == new:
        return
    path, there = columns_path(home), raw_columns(home, raw)
    if home == "container" and not (raw.get("dataModel") or {}).get(COLUMNS):
        yield {"op": "add", "path": "/dataModel", "value": {"isPartitioned": False, COLUMNS: new}}
    elif home == "container" and not new:
        yield {"op": "remove", "path": "/dataModel"}
    elif _outline(old) != _outline(new):
        yield {"op": "add", "path": path, "value": _with_labels_of_others(new, there)}
    else:
        yield from _inside(path, there, old, new)


def _outline(columns: Sequence[Raw]) -> list[Any]:
    return [(column["name"], _outline(column.get("children") or ())) for column in columns]


def _with_labels_of_others(columns: Sequence[Raw], there: Sequence[Raw]) -> list[dict[str, Any]]:
    """Columns with the labels that hang on them for other reasons."""
    by_name = {column["name"]: column for column in there}
    made = []
    for column in columns:
        old = by_name.get(column["name"], {})
        others = [label for label in old.get("tags") or () if not is_own_label(label)]
        whole = dict(column)
        if others:
            whole["tags"] = [*column.get("tags", ()), *others]
        if "children" in column:
            whole["children"] = _with_labels_of_others(
                column["children"], old.get("children") or ()
            )
        made.append(whole)
    return made


def _inside(
    path: str, there: Sequence[Raw], old: Sequence[Raw], new: Sequence[Raw]
) -> Iterator[Operation]:
    for number, (raw, before, after) in enumerate(zip(there, old, new, strict=True)):
        if before == after:
            continue
        place = f"{path}/{number}"
        for key in COLUMN_KEYS:
            if before.get(key) != after.get(key):
                yield from _set(f"{place}/{key}", raw.get(key), after.get(key))
        yield from _labels(f"{place}/tags", raw, before, after)
        yield from _inside(
            f"{place}/children",
            raw.get("children") or (),
            before.get("children") or (),
            after.get("children") or (),
        )


def pointer(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
