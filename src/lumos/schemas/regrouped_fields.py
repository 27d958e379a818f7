"""Fields that were gathered into a struct, let out of one, or moved from one to another."""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from lumos.model.change import AnySchemaChange, FieldAdded, FieldRemoved
from lumos.model.schema import Field
from lumos.model.types import Array, DataType, Map, Struct
from lumos.schemas.paths import ELEMENT, VALUE, child, parent_of


class _Part(NamedTuple):
    """A field that came or went by itself, or inside another whose path is `change`."""

    name: str
    type: DataType
    parent: str
    change: str


def regrouped_paths(
    changes: Iterable[AnySchemaChange], renames: Collection[tuple[str, str]]
) -> frozenset[str]:
    """The removed fields that stand again under another parent, or of which a part does.

    What a likely rename of a whole field takes along, from and to the paths in `renames`, has
    not moved.
    """
    gone: list[_Part] = []
    new: dict[tuple[str, DataType], list[_Part]] = {}
    for change in changes:
        if isinstance(change, FieldRemoved):
            gone += _parts(change.path, change.before)
        elif isinstance(change, FieldAdded):
            for part in _parts(change.path, change.after):
                new.setdefault((part.name, part.type), []).append(part)
    return frozenset(
        part.change
        for part in gone
        if any(
            part.parent != other.parent and (part.change, other.change) not in renames
            for other in new.get((part.name, part.type), ())
        )
    )


def _parts(path: str, field: Field) -> Iterator[_Part]:
    yield _Part(field.name, field.type, parent_of(path), path)
    yield from _inside(field.type, path, path)


def _inside(type: DataType, path: str, change: str) -> Iterator[_Part]:
    match type:
        case Struct(members):
            for member in members:
                yield _Part(member.name, member.type, path, change)
                yield from _inside(member.type, child(path, member.name), change)
        case Array(element):
            yield from _inside(element, path + ELEMENT, change)
        case Map(_, value):
            yield from _inside(value, path + VALUE, change)
