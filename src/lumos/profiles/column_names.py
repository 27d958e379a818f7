"""Which column of a file is which of the table: by field id, physical name, or name."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lumos.model.schema import Schema
from lumos.model.type_path import TypePath
from lumos.model.types import DataType, Struct

_FIELD_ID: Final = b"PARQUET:field_id"
# Under which Delta keeps the name that a column has in files.
_PHYSICAL: Final = "delta.columnMapping.physicalName"
# Under which Iceberg keeps what files without field ids call its columns.
_NAME_MAPPING: Final = "schema.name-mapping.default"

# Names in files by field id.
NamesInFiles: TypeAlias = Mapping[int, tuple[str, ...]]


class KnownField(NamedTuple):
    """A column, or a member of a struct, as the table and as its files call it.

    Files without ids call it by one of `aliases`, where the table says so, else by its name.
    """

    name: str
    physical: str | None = None
    id: int | None = None
    inside: tuple["KnownField", ...] = ()
    aliases: tuple[str, ...] | None = None

    @property
    def names_in_files(self) -> tuple[str, ...]:
        """What it is called in files that do not tell it by its id."""
        if self.physical is not None:
            return (self.physical,)
        return (self.name,) if self.aliases is None else self.aliases


def known_fields(schema: Schema, properties: Mapping[str, str] = {}) -> tuple[KnownField, ...]:
    """The columns of a table whose files may call them otherwise."""
    mapping = _name_mapping(properties.get(_NAME_MAPPING))
    found = []
    for field in schema.fields:
        place = TypePath.column(field.name)
        notes = {
            note.path: (note.properties.get(_PHYSICAL), note.field_id) for note in field.nested
        }
        inside = _inside(field.type, place, notes, mapping)
        physical = field.properties.get(_PHYSICAL)
        aliases = _aliases(field.field_id, mapping)
        found.append(KnownField(field.name, physical, field.field_id, inside, aliases))
    return tuple(found)


def _name_mapping(text: str | None) -> NamesInFiles | None:
    """What Iceberg's property says; nothing where there is none, or one that nobody can read."""
    if text is None:
        return None
    try:
        return dict(_mapped_names(msgspec.json.decode(text, type=list[_Mapped])))
    except msgspec.MsgspecError:
        return None


class _Mapped(msgspec.Struct, rename="kebab"):
    names: tuple[str, ...] = ()
    field_id: int | None = None
    fields: list["_Mapped"] = []


def _mapped_names(fields: Iterable[_Mapped]) -> Iterator[tuple[int, tuple[str, ...]]]:
    for field in fields:
        if field.field_id is not None:
            yield field.field_id, field.names
        yield from _mapped_names(field.fields)


def _aliases(id: int | None, mapping: NamesInFiles | None) -> tuple[str, ...] | None:
    return None if mapping is None or id is None else mapping.get(id, ())


def _inside(
    type: DataType,
    place: TypePath,
    notes: Mapping[str, tuple[str | None, int | None]],
    mapping: NamesInFiles | None,
) -> tuple[KnownField, ...]:
    if not isinstance(type, Struct):
        return ()
    found = []
    for member in type.members:
        below = place.member(member.name)
        physical, id = notes.get(below.path, (None, None))
        inside = _inside(member.type, below, notes, mapping)
        found.append(KnownField(member.name, physical, id, inside, _aliases(id, mapping)))
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
            place = next((names[name] for name in each.names_in_files if name in names), None)
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
