"""Which column of a file is which of the table: by field id, physical name, or name."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lumos.model.conversions.place import Place
from lumos.model.schema import Schema
from lumos.model.types import DataType, Struct

_FIELD_ID: Final = b"PARQUET:field_id"
# Under which Delta keeps the name that a column has in files.
_PHYSICAL: Final = "delta.columnMapping.physicalName"


class KnownField(NamedTuple):
    """A column, or a member of a struct, as the table and as its files call it."""

    name: str
    physical: str | None = None
    id: int | None = None
    inside: tuple["KnownField", ...] = ()


def known_fields(schema: Schema) -> tuple[KnownField, ...]:
    """The columns of a table whose files may call them otherwise."""
    found = []
    for field in schema.fields:
        place = Place.column(field.name)
        notes = {
            note.path: (note.properties.get(_PHYSICAL), note.field_id) for note in field.nested
        }
        inside = _inside(field.type, place, notes)
        physical = field.properties.get(_PHYSICAL)
        found.append(KnownField(field.name, physical, field.field_id, inside))
    return tuple(found)


def _inside(
    type: DataType, place: Place, notes: Mapping[str, tuple[str | None, int | None]]
) -> tuple[KnownField, ...]:
    if not isinstance(type, Struct):
        return ()
    found = []
    for member in type.members:
        below = place.member(member.name)
        physical, id = notes.get(below.path, (None, None))
        found.append(KnownField(member.name, physical, id, _inside(member.type, below, notes)))
    return tuple(found)


def places_of(known: Iterable[KnownField], fields: Sequence[pa.Field]) -> dict[int, KnownField]:
    """Where in a file, or in a struct of it, known fields stand."""
    names = {field.name: number for number, field in enumerate(fields)}
    ids = {
        int(field.metadata[_FIELD_ID]): number
        for number, field in enumerate(fields)
        if field.metadata and field.metadata.get(_FIELD_ID, b"").isdigit()
    }
    found: dict[int, KnownField] = {}
    for each in known:
        place = None if each.id is None else ids.get(each.id)
        # Where a file has ids, a column of the same name may be another one.
        if place is None and (each.physical is not None or each.id is None or not ids):
            place = names.get(each.physical or each.name)
        if place is not None:
            found[place] = each
    return found


def named(array: pa.Array, known: KnownField) -> pa.Array:
    """A column with the members of its structs called as the table calls them."""
    if not known.inside or not pa.types.is_struct(array.type):
        return array
    places = places_of(known.inside, list(array.type))
    children = [named(pc.struct_field(array, [at]), each) for at, each in places.items()]
    names = [each.name for each in places.values()]
    if not children:
        return pa.nulls(len(array))
    return pa.StructArray.from_arrays(children, names, mask=array.is_null())
