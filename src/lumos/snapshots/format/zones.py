"""Times without a zone: nobody can say when they were."""

from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec

# Gives the path to the first time without a zone inside of a value.
_Look: TypeAlias = Callable[[Any], str | None]


def without_zone(type: Any, value: object) -> str | None:
    """The path to a time in a value of that type that does not say in which zone it is."""
    look = _of_type(type)
    return None if look is None else look(value)


@cache
def _of_type(type: Any) -> _Look | None:
    return _look(msgspec.inspect.type_info(type))


def _look(shape: msgspec.inspect.Type) -> _Look | None:
    """How to look through values of a shape; nothing where they cannot hold a time."""
    match shape:
        case msgspec.inspect.DateTimeType():
            return _at_time
        case msgspec.inspect.StructType():
            return _in_fields(shape.fields)
        case msgspec.inspect.VarTupleType() | msgspec.inspect.ListType():
            return _in_items(_look(shape.item_type))
        case msgspec.inspect.DictType():
            return _in_values(_look(shape.value_type))
        case msgspec.inspect.UnionType():
            looks = [look for option in shape.types if (look := _look(option)) is not None]
            assert len(looks) < 2, "nobody can tell which of several a value is"
            return looks[0] if looks else None
        case _:
            return None


def _at_time(value: Any) -> str | None:
    return "" if value.tzinfo is None else None


def _in_fields(fields: Iterable[msgspec.inspect.Field]) -> _Look | None:
    looks = [
        (attrgetter(field.name), f".{field.encode_name}", look)
        for field in fields
        if (look := _look(field.type)) is not None
    ]

    def look_through(value: Any) -> str | None:
        for part, name, look in looks:
            if (inside := part(value)) and (path := look(inside)) is not None:
                return name + path
        return None

    return look_through if looks else None


def _in_items(look: _Look | None) -> _Look | None:
    if look is None:
        return None

    def look_through(value: Any) -> str | None:
        for index, item in enumerate(value):
            if (path := look(item)) is not None:
                return f"[{index}]{path}"
        return None

    return look_through


def _in_values(look: _Look | None) -> _Look | None:
    if look is None:
        return None

    def look_through(value: Any) -> str | None:
        for key, item in value.items():
            if (path := look(item)) is not None:
                return f".{key}{path}"
        return None

    return look_through
