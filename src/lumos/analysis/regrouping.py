"""Fields that were gathered into a struct, or let out of one."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lumos.analysis.paths import parent_of
from lumos.model.change import AnySchemaChange, FieldAdded, FieldRemoved
from lumos.model.schema import Field
from lumos.model.types import DataType, Struct


class _Part(NamedTuple):
    """A field that came or went by itself, or inside another whose path is `change`."""

    name: str
    type: DataType
    parent: str
    change: str


def regrouped_paths(changes: Iterable[AnySchemaChange]) -> frozenset[str]:
    """The removed fields that stand again, or whose members do, one level higher or deeper."""
    gone: list[_Part] = []
    new: dict[tuple[str, DataType], list[str]] = {}
    for change in changes:
        if isinstance(change, FieldRemoved):
            gone += _parts(change.path, change.before)
        elif isinstance(change, FieldAdded):
            for part in _parts(change.path, change.after):
                new.setdefault((part.name, part.type), []).append(part.parent)
    return frozenset(
        part.change
        for part in gone
        if any(_is_one_level(part.parent, other) for other in new.get((part.name, part.type), ()))
    )


def _parts(path: str, field: Field) -> Iterator[_Part]:
    yield _Part(field.name, field.type, parent_of(path), path)
    if isinstance(field.type, Struct):
        for member in field.type.members:
            yield _Part(member.name, member.type, path, path)


def _is_one_level(one: str, other: str) -> bool:
    return one != other and (parent_of(one) == other or parent_of(other) == one)
