"""Which removed and added fields may be one field under another name; suggestions, never more."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from lumos.model.change import AnySchemaChange, FieldAdded, FieldRemoved
from lumos.model.schema import Field
from lumos.schemas.paths import parent_of

# How the note on a finding begins that is about a likely rename.
RENAME_NOTE: Final = "perhaps renamed"
Evidence: TypeAlias = Literal["field id", "position"]


class Rename(msgspec.Struct, frozen=True, kw_only=True):
    """A field that may have got another name among the same siblings, and what speaks for it."""

    before: str
    after: str
    evidence: Evidence


def suggest_renames(changes: Iterable[AnySchemaChange]) -> tuple[Rename, ...]:
    """The likely renames: by field id, then by the same place with the same type and properties."""
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
    for gone, new in by_id:
        yield Rename(before=gone.path, after=new.path, evidence="field id")
    settled = {change.path for pair in by_id for change in pair}
    places = dict(zip(_places([change.position for change in added]), added, strict=True))
    for gone, place in zip(removed, _places([change.position for change in removed]), strict=True):
        found = places.get(place)
        if place is None or found is None or {gone.path, found.path} & settled:
            continue
        if _looks_the_same(gone.before, found.after):
            yield Rename(before=gone.path, after=found.path, evidence="position")


def _by_id(
    removed: Sequence[FieldRemoved], added: Sequence[FieldAdded]
) -> list[tuple[FieldRemoved, FieldAdded]]:
    ids_before = [change.before.field_id for change in removed]
    ids_after = [change.after.field_id for change in added]
    return [
        (gone, added[ids_after.index(id)])
        for gone, id in zip(removed, ids_before, strict=True)
        if id is not None and ids_before.count(id) == ids_after.count(id) == 1
    ]


def _places(positions: Sequence[int | None]) -> list[tuple[int, int] | None]:
    """Where each field stands: after how many that stay, and how far behind the last of these.

    So a place stays the same whatever comes or goes elsewhere.
    """
    taken = {position for position in positions if position is not None}
    order = sorted(taken)
    places: dict[int, tuple[int, int]] = {}
    for rank, position in enumerate(order):
        run = places[position - 1][1] + 1 if position - 1 in taken else 0
        places[position] = (position - rank, run)
    return [None if position is None else places[position] for position in positions]


def _looks_the_same(before: Field, after: Field) -> bool:
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
