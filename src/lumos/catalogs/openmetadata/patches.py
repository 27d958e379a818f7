"""The difference between two states as operations of JSON Patch.

They begin with a test of when the entity was changed last, so that any change by people between our
reading and our writing makes the server refuse all of them instead of being written over.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from lumos.catalogs.openmetadata import texts
from lumos.catalogs.openmetadata.states import (
    COLUMN_KEYS,
    COLUMNS,
    OWN_FIELDS,
    PRODUCTS,
    State,
    columns_path,
    is_own_label,
    names_in,
    raw_columns,
)

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
