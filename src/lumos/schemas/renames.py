"""Finds removed and added fields that may have been renamed or moved to another parent."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from lumos.model.change import AnySchemaChange, FieldAdded, FieldRemoved
from lumos.model.paths import ELEMENT, VALUE, child, parent_of
from lumos.model.schema import Field
from lumos.model.types import Array, DataType, Map, Struct

# How the note on a likely rename starts.
RENAME_NOTE: Final = "perhaps renamed"
Evidence: TypeAlias = Literal["field id", "position"]


class Rename(msgspec.Struct, frozen=True, kw_only=True):
    """A field that may have been renamed, under the same parent, and the evidence."""

    before: str
    after: str
    evidence: Evidence


def suggest_renames(changes: Iterable[AnySchemaChange]) -> tuple[Rename, ...]:
    """The likely renames: pairs of fields with the same id, or the same position and properties."""
    by_parent: dict[str, tuple[list[FieldRemoved], list[FieldAdded]]] = {}
    for change in changes:
        if isinstance(change, FieldRemoved):
            by_parent.setdefault(parent_of(change.path), ([], []))[0].append(change)
        elif isinstance(change, FieldAdded):
            by_parent.setdefault(parent_of(change.path), ([], []))[1].append(change)
    return tuple(
        rename for removed, added in by_parent.values() for rename in _renames(removed, added)
    )


def _renames(removed: Sequence[FieldRemoved], added: Sequence[FieldAdded]) -> Iterator[Rename]:
    pairs_by_id = _pair_by_id(removed, added)
    for old, new in pairs_by_id:
        yield Rename(before=old.path, after=new.path, evidence="field id")
    paired = {change.path for pair in pairs_by_id for change in pair}
    by_position = dict(zip(_relative_positions(added), added, strict=True))
    for old, position in zip(removed, _relative_positions(removed), strict=True):
        candidate = by_position.get(position)
        if position is None or candidate is None or {old.path, candidate.path} & paired:
            continue
        if _has_same_properties(old.before, candidate.after):
            yield Rename(before=old.path, after=candidate.path, evidence="position")


def _pair_by_id(
    removed: Sequence[FieldRemoved], added: Sequence[FieldAdded]
) -> list[tuple[FieldRemoved, FieldAdded]]:
    ids_before = [change.before.field_id for change in removed]
    ids_after = [change.after.field_id for change in added]
    return [
        (old, added[ids_after.index(id)])
        for old, id in zip(removed, ids_before, strict=True)
        if id is not None and ids_before.count(id) == ids_after.count(id) == 1
    ]


def _relative_positions(
    changes: Sequence[FieldAdded | FieldRemoved],
) -> list[tuple[int, int] | None]:
    """For each field, the number of unchanged fields before it, and the distance to the nearest.

    Unlike absolute positions, these do not change if fields are added or removed elsewhere.
    """
    positions = [change.position for change in changes]
    occupied = {position for position in positions if position is not None}
    order = sorted(occupied)
    relative: dict[int, tuple[int, int]] = {}
    for rank, position in enumerate(order):
        distance = relative[position - 1][1] + 1 if position - 1 in occupied else 0
        relative[position] = (position - rank, distance)
    return [None if position is None else relative[position] for position in positions]


def _has_same_properties(before: Field, after: Field) -> bool:
    names = ("type", "nullable", "key", "partition", "default")
    return (
        len({before.field_id, after.field_id} - {None}) < 2
        and all(getattr(before, name) == getattr(after, name) for name in names)
        and set(before.tags) == set(after.tags)
    )


class _ChangedField(NamedTuple):
    """A field that was added or removed, alone or with a field that contains it.

    `change` is the path of the outermost field that was added or removed.
    """

    name: str
    type: DataType
    parent: str
    change: str


def regrouped_paths(
    changes: Iterable[AnySchemaChange], renames: Collection[tuple[str, str]]
) -> frozenset[str]:
    """The paths of removed fields that were added again, at least partly, under another parent.

    Fields whose parent was only renamed are not included; `renames` are pairs of old and new paths.
    """
    removed: list[_ChangedField] = []
    added: dict[tuple[str, DataType], list[_ChangedField]] = {}
    for change in changes:
        if isinstance(change, FieldRemoved):
            removed += _changed_fields(change.path, change.before)
        elif isinstance(change, FieldAdded):
            for part in _changed_fields(change.path, change.after):
                added.setdefault((part.name, part.type), []).append(part)
    return frozenset(
        part.change
        for part in removed
        if any(
            part.parent != other.parent and (part.change, other.change) not in renames
            for other in added.get((part.name, part.type), ())
        )
    )


def _changed_fields(path: str, field: Field) -> Iterator[_ChangedField]:
    yield _ChangedField(field.name, field.type, parent_of(path), path)
    yield from _nested_fields(field.type, path, path)


def _nested_fields(type: DataType, path: str, change: str) -> Iterator[_ChangedField]:
    match type:
        case Struct(members):
            for member in members:
                yield _ChangedField(member.name, member.type, path, change)
                yield from _nested_fields(member.type, child(path, member.name), change)
        case Array(element):
            yield from _nested_fields(element, path + ELEMENT, change)
        case Map(_, value):
            yield from _nested_fields(value, path + VALUE, change)
