"""Lists in aspects that are read as values and changed without losing what is not read."""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias, TypeVar

Value = TypeVar("Value")
# An entity's aspects by name, as DataHub's JSON.
State: TypeAlias = dict[str, Any]

# Nobody knows when and by whom; the same state shall give the same file.
STAMP: Final = {"time": 0, "actor": "urn:li:corpuser:unknown"}


def values(items: Iterable[Any], read: Callable[[Any], Value | None]) -> tuple[Value, ...]:
    """What a list says, as far as it is understood."""
    return tuple(value for item in items if (value := read(item)) is not None)


def listed(
    items: Iterable[Any],
    read: Callable[[Any], Value | None],
    wanted: Iterable[Value],
    make: Callable[[Value], Any],
) -> list[Any]:
    """A list that says what is wanted: items that say it already stay as they are.

    What is not understood stays, too, behind the rest. What DataHub cannot say is left out.
    """
    known: dict[Value, list[Any]] = {}
    strange = []
    for item in items:
        if (value := read(item)) is None:
            strange.append(item)
        else:
            known.setdefault(value, []).append(item)
    found = [(known[value].pop(0) if known.get(value) else make(value), value) for value in wanted]
    return [*(item for item, value in found if read(item) == value), *strange]


def changed(state: State, aspect: str, empty: Any = None, **facts: Any) -> None:
    """Sets keys of an aspect, which is made where there is none; None takes a key out."""
    body = {**(state.get(aspect) or empty or {}), **facts}
    state[aspect] = {
        key: value for key, value in body.items() if value is not None or key not in facts
    }
