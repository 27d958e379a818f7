"""The columns that a profile measures, and their names in the files of tables."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from lumos.model.dataset import (
    Dataset,
)
from lumos.model.privacy import private_paths
from lumos.model.schema import Schema
from lumos.model.type_path import TypePath, leaf_fields
from lumos.model.types import (
    BOOLEAN,
    DATE,
    FLOATS,
    JSON,
    SIGNED,
    UINT64,
    UNSIGNED,
    UUID,
    Array,
    Binary,
    DataType,
    Decimal,
    Duration,
    Enum,
    Map,
    Member,
    String,
    Struct,
    Time,
    Timestamp,
)

ColumnValueKind: TypeAlias = Literal[
    "boolean", "integer", "unsigned", "float", "decimal", "date", "time", "timestamp", "duration",
    "text", "bytes", "list", "map", "opaque",
]  # fmt: skip
# Kinds whose values are stored as integers: dates and times count days or fractions of seconds.
INTEGRAL_KINDS: Final = frozenset({"integer", "date", "time", "timestamp", "duration"})
ORDERED_KINDS: Final = INTEGRAL_KINDS | {"unsigned", "float", "decimal"}
SIZED_KINDS: Final = frozenset({"text", "bytes", "list", "map"})


class ProfiledColumn(NamedTuple):
    """A leaf column: a column or a member of a struct, unless it is a struct itself.

    `names` are the names of the column and of the members that lead to it. Without `values`, only
    counts are measured. Frequent values are measured if `top` is set.
    """

    path: str
    names: tuple[str, ...]
    type: DataType
    values: bool = False
    top: bool = False

    @property
    def kind(self) -> ColumnValueKind:
        """The kind of the column's values."""
        return value_kind(self.type)


def profiled_columns(schema: Schema) -> list[ProfiledColumn]:
    """The leaf columns of a schema; elements of lists and maps are not measured separately."""
    return [ProfiledColumn(path, names, type) for path, names, type in leaf_fields(schema)]


def column_types(leaves: Iterable[ProfiledColumn]) -> dict[str, DataType]:
    """The types of the top-level columns; their structs only have these leaves as members."""
    by_name: dict[str, list[ProfiledColumn]] = {}
    for leaf in leaves:
        by_name.setdefault(leaf.names[0], []).append(leaf._replace(names=leaf.names[1:]))
    return {
        name: leaves_of_column[0].type
        if not leaves_of_column[0].names
        else Struct(Member(member, type) for member, type in column_types(leaves_of_column).items())
        for name, leaves_of_column in by_name.items()
    }


def value_kind(type: DataType) -> ColumnValueKind:
    """The kind of the values of a type."""
    match type:
        case Decimal():
            return "decimal"
        case Timestamp():
            return "timestamp"
        case Time():
            return "time"
        case Duration():
            return "duration"
        case String() | Enum():
            return "text"
        case Binary():
            return "bytes"
        case Array():
            return "list"
        case Map():
            return "map"
        case _ if type in SIGNED or (type in UNSIGNED and type != UINT64):
            return "integer"
        case _ if type in FLOATS:
            return "float"
        case _ if type == JSON:
            return "text"
        case _ if type == UUID:
            return "bytes"
        case _ if type == UINT64:
            return "unsigned"
        case _ if type == DATE:
            return "date"
        case _:
            return "boolean" if type == BOOLEAN else "opaque"


def with_permissions(
    leaves: Sequence[ProfiledColumn], dataset: Dataset, *, named: Collection[str] = ()
) -> list[ProfiledColumn]:
    """Decide which values are measured.

    The values of private columns are never measured, those of text columns only if the column is in
    `named`.
    """
    private = private_paths(dataset.schema, [leaf.path for leaf in leaves], dataset.governance)
    allowed = []
    for leaf in leaves:
        is_text = leaf.kind == "text"
        has_values = leaf.kind not in ("bytes", "list", "map", "opaque")
        is_allowed = has_values and leaf.path not in private
        top = is_allowed and (not is_text or leaf.path in named)
        allowed.append(leaf._replace(values=is_allowed and not is_text, top=top))
    return allowed


# Delta's property with the name of a column in files.
_PHYSICAL: Final = "delta.columnMapping.physicalName"
# Iceberg's property with the names of columns in files without field ids.
_NAME_MAPPING: Final = "schema.name-mapping.default"

# Names in files by field id.
NamesInFiles: TypeAlias = Mapping[int, tuple[str, ...]]


class KnownField(NamedTuple):
    """A column or a member of a struct, with its names in the table and in files.

    In files without field ids, the column has one of its `aliases`, if the table defines aliases,
    or else its name in the table.
    """

    name: str
    physical: str | None = None
    id: int | None = None
    members: tuple["KnownField", ...] = ()
    aliases: tuple[str, ...] | None = None

    @property
    def names_in_files(self) -> tuple[str, ...]:
        """The names that the column may have in files without field ids."""
        if self.physical is not None:
            return (self.physical,)
        return (self.name,) if self.aliases is None else self.aliases


def known_fields(schema: Schema, properties: Mapping[str, str] = {}) -> tuple[KnownField, ...]:
    """The columns of a table, with the names that they may have in files."""
    mapping = _name_mapping(properties.get(_NAME_MAPPING))
    fields = []
    for field in schema.fields:
        path = TypePath.column(field.name)
        names_and_ids = {
            nested.path: (nested.properties.get(_PHYSICAL), nested.field_id)
            for nested in field.nested
        }
        members = _member_fields(field.type, path, names_and_ids, mapping)
        physical = field.properties.get(_PHYSICAL)
        aliases = _aliases(field.field_id, mapping)
        fields.append(KnownField(field.name, physical, field.field_id, members, aliases))
    return tuple(fields)


def _name_mapping(text: str | None) -> NamesInFiles | None:
    """Iceberg's name mapping; None if it is missing or invalid."""
    if text is None:
        return None
    try:
        return dict(_mapped_names(msgspec.json.decode(text, type=list[_NameMapping])))
    except msgspec.MsgspecError:
        return None


class _NameMapping(msgspec.Struct, rename="kebab"):
    names: tuple[str, ...] = ()
    field_id: int | None = None
    fields: list["_NameMapping"] = []


def _mapped_names(fields: Iterable[_NameMapping]) -> Iterator[tuple[int, tuple[str, ...]]]:
    for field in fields:
        if field.field_id is not None:
            yield field.field_id, field.names
        yield from _mapped_names(field.fields)


def _aliases(id: int | None, mapping: NamesInFiles | None) -> tuple[str, ...] | None:
    return None if mapping is None or id is None else mapping.get(id, ())


def _member_fields(
    type: DataType,
    type_path: TypePath,
    names_and_ids: Mapping[str, tuple[str | None, int | None]],
    mapping: NamesInFiles | None,
) -> tuple[KnownField, ...]:
    if not isinstance(type, Struct):
        return ()
    fields = []
    for member in type.members:
        member_path = type_path.member(member.name)
        physical, id = names_and_ids.get(member_path.path, (None, None))
        members = _member_fields(member.type, member_path, names_and_ids, mapping)
        fields.append(KnownField(member.name, physical, id, members, _aliases(id, mapping)))
    return tuple(fields)
