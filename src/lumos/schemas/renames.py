"""Removed and added fields that may have been renamed or regrouped; only suggestions."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from lumos.model.change import AnySchemaChange, FieldAdded, FieldRemoved
from lumos.model.paths import ELEMENT, VALUE, child, parent_of
from lumos.model.schema import Field
from lumos.model.types import Array, DataType, Map, Struct

# The beginning of the note on a likely rename.
RENAME_NOTE: Final = "perhaps renamed"
Evidence: TypeAlias = Literal["field id", "position"]


class Rename(msgspec.Struct, frozen=True, kw_only=True):
    """A field that may have been renamed among the same siblings, and the evidence."""

    before: str
    after: str
    evidence: Evidence


def suggest_renames(changes: Iterable[AnySchemaChange]) -> tuple[Rename, ...]:
    """The likely renames: by field id, then by equal position, type and properties."""
    levels: dict[str, tuple[list[FieldRemoved], list[FieldAdded]]] = {}
    for change in changes:
        if isinstance(change, FieldRemoved):
            levels.setdefault(parent_of(change.path), ([], []))[0].append(change)
        elif isinstance(change, FieldAdded):
            levels.setdefault(parent_of(change.path), ([], []))[1].append(change)
    return tuple(
        rename for removed, added in levels.values() for rename in _renames(removed, added)
    )


def _renames(removed: Sequence[FieldRemoved], added: Sequence[FieldAdded]) -> Iterator[Rename]:
    by_id = _by_id(removed, added)
    for removed_field, new in by_id:
        yield Rename(before=removed_field.path, after=new.path, evidence="field id")
    paired = {change.path for pair in by_id for change in pair}
    by_position = dict(zip(_relative_positions(added), added, strict=True))
    for removed_field, position in zip(removed, _relative_positions(removed), strict=True):
        found = by_position.get(position)
        if position is None or found is None or {removed_field.path, found.path} & paired:
            continue
        if _is_alike(removed_field.before, found.after):
            yield Rename(before=removed_field.path, after=found.path, evidence="position")


def _by_id(
    removed: Sequence[FieldRemoved], added: Sequence[FieldAdded]
) -> list[tuple[FieldRemoved, FieldAdded]]:
    ids_before = [change.before.field_id for change in removed]
    ids_after = [change.after.field_id for change in added]
    return [
        (removed_field, added[ids_after.index(id)])
        for removed_field, id in zip(removed, ids_before, strict=True)
        if id is not None and ids_before.count(id) == ids_after.count(id) == 1
    ]


def _relative_positions(
    changes: Sequence[FieldAdded | FieldRemoved],
) -> list[tuple[int, int] | None]:
    """For each field, how many staying fields precede it, and its distance from the last of them.

    These do not change when fields are added or removed elsewhere.
    """
    positions = [change.position for change in changes]
    occupied = {position for position in positions if position is not None}
    order = sorted(occupied)
    relative: dict[int, tuple[int, int]] = {}
    for rank, position in enumerate(order):
        run = relative[position - 1][1] + 1 if position - 1 in occupied else 0
        relative[position] = (position - rank, run)
    return [None if position is None else relative[position] for position in positions]


def _is_alike(before: Field, after: Field) -> bool:
    ids = {before.field_id, after.field_id} - {None}
    return len(ids) < 2 and _properties(before) == _properties(after)


def _properties(field: Field) -> tuple[object, ...]:
    return (
        field.type,
        field.nullable,
        field.key,
        field.partition,
        field.default,
        frozenset(field.tags),
    )


class _Part(NamedTuple):
    """A field that was added or removed by itself, or inside another whose path is `change`."""

    name: str
    type: DataType
    parent: str
    change: str


def regrouped_paths(
    changes: Iterable[AnySchemaChange], renames: Collection[tuple[str, str]]
) -> frozenset[str]:
    """The removed fields that were added under another parent, completely or in part.

    Parts that a likely rename of a whole field, from and to the paths in `renames`, takes along
    have not moved.
    """
    removed_field: list[_Part] = []
    new: dict[tuple[str, DataType], list[_Part]] = {}
    for change in changes:
        if isinstance(change, FieldRemoved):
            removed_field += _parts(change.path, change.before)
        elif isinstance(change, FieldAdded):
            for part in _parts(change.path, change.after):
                new.setdefault((part.name, part.type), []).append(part)
    return frozenset(
        part.change
        for part in removed_field
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
