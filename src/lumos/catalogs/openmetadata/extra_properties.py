"""What has to be carried along because writing an entry would not make it anew."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from lumos.catalogs.openmetadata import columns
from lumos.catalogs.openmetadata.columns import Column, Reading
from lumos.catalogs.openmetadata.names import joined
from lumos.catalogs.openmetadata.states import (
    BESIDE,
    COLUMN_KEYS,
    COLUMNS,
    OWN_FIELDS,
    PRODUCTS,
    State,
    names_in,
)
from lumos.model.catalog import CatalogEntry

CATALOG: Final = "openmetadata"
_ENTITY: Final = "entity"
EXTENSION: Final = "extension"
DECLARED: Final = "declared"
"""How the custom properties that people gave a dataset are declared."""
_UNDERSTOOD: Final = frozenset({"name", "description", "tags", "children"})


def left_over(state: State, made: State) -> dict[str, Any]:
    """What a state says beyond one that was made of the same entry; None is for what it lacks."""
    fields = {field for each in OWN_FIELDS.values() for field in each}
    entity = {
        key: state.get(key)
        for key in sorted(fields & (state.keys() | made.keys()))
        if state.get(key) != made.get(key)
    }
    if products := sorted(names_in(state, PRODUCTS)):
        entity[PRODUCTS] = products
    inside = dict(_columns_left(state.get(COLUMNS, []), made.get(COLUMNS, []), ()))
    extension = {
        key: value
        for key, value in state.get(EXTENSION, {}).items()
        if not isinstance(value, str) and not key.startswith("lumos")
    }
    found = {
        _ENTITY: entity,
        COLUMNS: inside,
        EXTENSION: extension,
        BESIDE: state.get(BESIDE),
    }
    return {key: value for key, value in found.items() if value}


def usable(carried: Mapping[str, Any]) -> dict[str, Any]:
    """What is carried for OpenMetadata, as far as it is in the form that reading gives it."""
    mine = carried.get(CATALOG)
    if not isinstance(mine, dict):
        return {}
    found = {key: mine.get(key) for key in (_ENTITY, COLUMNS, EXTENSION)}
    return {key: value for key, value in found.items() if isinstance(value, dict) and value}


def over(
    state: State,
    carried: Mapping[str, Any],
    *,
    home: str,
    said: Reading,
    read: Callable[[State], CatalogEntry],
    product: Callable[[str], dict[str, Any] | None],
) -> State:
    """A state with what is carried for it, as far as it still reads alike."""
    shown = read(state)
    for key, value in carried.get(_ENTITY, {}).items():
        if key == PRODUCTS and isinstance(value, list):
            there = [found for fqn in value if isinstance(fqn, str) and (found := product(fqn))]
            state = _with(state, PRODUCTS, there or None)
        if key not in OWN_FIELDS[home]:
            continue
        changed = _with(state, key, value)
        if read(changed) == shown:
            state = changed
    inside = carried.get(COLUMNS)
    if not inside or COLUMNS not in state:
        return state
    return {**state, COLUMNS: [_column_over(each, inside, said) for each in state[COLUMNS]]}


def _column_over(column: Column, carried: Mapping[str, Any], said: Reading) -> Column:
    changed = _column_with(column, carried, ())
    if changed == column or columns.read([changed], said) != columns.read([column], said):
        return column
    return changed


def _column_with(column: Column, carried: Mapping[str, Any], above: tuple[str, ...]) -> Column:
    path = (*above, column["name"])
    own = carried.get(joined(*path))
    for key, value in own.items() if isinstance(own, dict) else ():
        if key in COLUMN_KEYS and key not in _UNDERSTOOD:
            column = _with(column, key, value)
    if "children" in column:
        children = [_column_with(child, carried, path) for child in column["children"]]
        column = {**column, "children": children}
    return column


def _with(holder: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    rest = {each: held for each, held in holder.items() if each != key}
    return rest if value is None else {**rest, key: value}


def _columns_left(
    there: list[Column], made: list[Column], above: tuple[str, ...]
) -> Iterator[tuple[str, dict[str, Any]]]:
    by_name = {column["name"]: column for column in made}
    for column in there:
        path = (*above, column["name"])
        other = by_name.get(column["name"], {})
        left = {
            key: column.get(key)
            for key in COLUMN_KEYS
            if key not in _UNDERSTOOD and column.get(key) != other.get(key)
        }
        if left:
            yield joined(*path), left
        yield from _columns_left(column.get("children", []), other.get("children", []), path)
