"""The parts inside a column's type, by the paths that notes about them stand under.

`column.member`, `array[]`, `map{}` (its values), `map{key}`, `union<0>`.
"""

from collections.abc import Iterator
from typing import NamedTuple

from lumos.model.conversions.place import Place
from lumos.model.schema import Field, Schema
from lumos.model.types import Array, DataType, Map, Struct, Union, quoted_name


class Part(NamedTuple):
    """A place inside a column; only the members of structs have names."""

    path: str
    name: str | None
    type: DataType
    nullable: bool


def parts_of(field: Field) -> Iterator[Part]:
    """Every place inside a column, each before what is inside it."""
    yield from _inside(quoted_name(field.name), field.type)


def gone_from(before: Field, after: Field) -> frozenset[str]:
    """The places inside a column that another type of it has not."""
    if before.type == after.type:
        return frozenset()
    there = {part.path for part in parts_of(after)}
    return frozenset(part.path for part in parts_of(before)) - there


def _inside(path: str, type: DataType) -> Iterator[Part]:
    for part in _directly_inside(path, type):
        yield part
        yield from _inside(part.path, part.type)


def _directly_inside(path: str, type: DataType) -> Iterator[Part]:
    match type:
        case Struct(members):
            for member in members:
                below = f"{path}.{quoted_name(member.name)}"
                yield Part(below, member.name, member.type, member.nullable)
        case Array(element, nullable):
            yield Part(f"{path}[]", None, element, nullable)
        case Map(key, value, nullable):
            yield Part(f"{path}{{key}}", None, key, False)
            yield Part(f"{path}{{}}", None, value, nullable)
        case Union(options):
            for number, option in enumerate(options):
                yield Part(f"{path}<{number}>", None, option, True)
        case _:
            return


def leaves(schema: Schema) -> Iterator[tuple[str, tuple[str, ...], DataType]]:
    """Path, names and type of each column or struct member that holds values of its own.

    Elements of lists and maps belong to their list or map.
    """
    for field in schema.fields:
        yield from _leaves(field.type, Place.column(field.name), (field.name,))


def _leaves(
    type: DataType, place: Place, names: tuple[str, ...]
) -> Iterator[tuple[str, tuple[str, ...], DataType]]:
    if isinstance(type, Struct) and type.members:
        for member in type.members:
            yield from _leaves(member.type, place.member(member.name), (*names, member.name))
    else:
        yield place.path, names, type
