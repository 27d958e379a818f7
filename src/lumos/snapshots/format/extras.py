"""Keys that the format does not have: what stands under them would be lost."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from lumos.snapshots.format.document import Kind


def unknown_keys(kind: Kind, plain: object) -> Iterator[str]:
    """The paths of all keys in an entry's JSON that an entry of that kind does not have."""
    for path, _, name in _unknown(_shape(kind), plain, ""):
        yield f"{path}.{name}"


def taken_out(kind: Kind, plain: object) -> dict[str, Any]:
    """All that an entry of that kind has no place for, taken out of its JSON, by its path."""
    strangers = list(_unknown(_shape(kind), plain, ""))
    return {
        f"{path}.{name}".removeprefix("."): parent.pop(name) for path, parent, name in strangers
    }


@cache
def _shape(kind: Kind) -> msgspec.inspect.Type:
    return msgspec.inspect.type_info(kind.type)


def _unknown(
    shape: msgspec.inspect.Type, plain: object, path: str
) -> Iterator[tuple[str, dict[str, Any], str]]:
    """The keys, each with the object that it stands in and the path of that."""
    match shape, plain:
        case msgspec.inspect.StructType(), dict():
            fields = {field.encode_name: field.type for field in shape.fields}
            for name, value in plain.items():
                if name in fields:
                    yield from _unknown(fields[name], value, f"{path}.{name}")
                else:
                    yield path, plain, name
        case msgspec.inspect.VarTupleType(), list():
            for index, value in enumerate(plain):
                yield from _unknown(shape.item_type, value, f"{path}[{index}]")
        case msgspec.inspect.DictType(), dict():
            for name, value in plain.items():
                yield from _unknown(shape.value_type, value, f"{path}.{name}")
        case msgspec.inspect.UnionType(), dict() | list():
            for option in shape.types:
                yield from _unknown(option, plain, path)
