"""The named parts inside a column's type, by the paths that notes about them stand under."""

from collections.abc import Iterator
from typing import NamedTuple

from lumos.model.schema import Field
from lumos.model.types import Array, DataType, Map, Struct, Union, quoted_name


class Part(NamedTuple):
    """A member of a struct somewhere inside a column."""

    path: str
    name: str
    type: DataType
    nullable: bool


def parts_of(field: Field) -> Iterator[Part]:
    """Every struct member inside a column, in the order in which the type names them."""
    yield from _inside(quoted_name(field.name), field.type)


def _inside(path: str, type: DataType) -> Iterator[Part]:
    match type:
        case Struct(members):
            for member in members:
                below = f"{path}.{quoted_name(member.name)}"
                yield Part(below, member.name, member.type, member.nullable)
                yield from _inside(below, member.type)
        case Array(element, _):
            yield from _inside(f"{path}[]", element)
        case Map(key, value, _):
            yield from _inside(f"{path}{{key}}", key)
            yield from _inside(f"{path}{{}}", value)
        case Union(options):
            for number, option in enumerate(options):
                yield from _inside(f"{path}<{number}>", option)
        case _:
            return
