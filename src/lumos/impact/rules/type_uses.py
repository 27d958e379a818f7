"""How SQL statements use values whose type changes: the facts behind impact verdicts."""

import enum
from collections.abc import Mapping
from functools import cached_property

import msgspec

from lumos.model.schema import Field, Schema
from lumos.model.types import UNKNOWN, DataType


class ClauseKind(enum.StrEnum):
    """The clause in which a value is used."""

    PROJECTION = "PROJECTION"
    JOIN = "JOIN"
    FILTER = "FILTER"
    GROUP_BY = "GROUP_BY"
    SORT = "SORT"
    WINDOW = "WINDOW"
    CONDITIONAL = "CONDITIONAL"
    UNION = "UNION"
    INSERT = "INSERT"


class UseOperation(enum.StrEnum):
    """What a statement does with a value."""

    # It is named; reported if that fails because the column is gone or has become ambiguous.
    NAMED = "named"
    AMBIGUOUS = "ambiguous"
    CAST = "cast"
    COMPARED = "compared"
    NOT_IN = "not_in"
    # It shares a type with others: COALESCE, CASE, a branch of a UNION.
    COMBINED = "combined"
    CALCULATED = "calculated"
    # Calculated with, where a division of integers gives an integer.
    DIVIDED = "divided"
    CALLED = "called"
    # Converted to text, whatever its type.
    SPELLED = "spelled"
    # Serialized with its type visible: JSON, CSV.
    ENCODED = "encoded"
    # Its bytes or its type name matter: HASH, TYPEOF.
    HASHED = "hashed"
    # Passed on unchanged: ANY_VALUE, LAG, a field of a struct.
    HANDED_ON = "handed_on"
    AGGREGATED = "aggregated"
    # Counted or checked for null: its type does not matter.
    COUNTED = "counted"
    # Equality of values matters: GROUP BY, DISTINCT, COUNT(DISTINCT ...).
    GROUPED = "grouped"
    SORTED = "sorted"
    # Stored in a column with a declared type.
    STORED = "stored"
    # Its position in a list matters, and positions have changed.
    PLACED = "placed"
    # A new column that a NATURAL join also uses as a key.
    KEYED = "keyed"
    # Its further use cannot be followed.
    LOST = "lost"


class ArgumentKind(enum.StrEnum):
    """Groups of types that a function accepts."""

    NUMBER = "number"
    # Integers and decimals, no floating-point numbers.
    EXACT = "exact"
    INTEGER = "integer"
    # At most 32 bits: many dialects require these for days and positions.
    SHORT_INTEGER = "short_integer"
    TEXT = "text"
    TIME = "time"
    DATE = "date"
    BOOLEAN = "boolean"
    NESTED = "nested"
    ANY = "any"


class ValueType(msgspec.Struct, frozen=True, kw_only=True):
    """The type of a value, if known, and whether it may be null."""

    type: DataType = UNKNOWN
    nullable: bool | None = None


class TypeUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A use of a changing value in a statement.

    `value` is its text, `after` is None if it is gone. `partner` is its counterpart: the other
    side of a comparison, the type of a cast, the column that it is stored in; `partner_text`
    describes it. `accepts` are the types that a function accepts, if known. `is_ordering` marks
    comparisons by order, not only by equality.
    """

    place: ClauseKind
    act: UseOperation
    value: str
    before: ValueType | None = None
    after: ValueType | None = None
    partner_before: ValueType | None = None
    partner: ValueType | None = None
    partner_text: str | None = None
    is_literal: bool = False
    is_ordering: bool = False
    accepts: tuple[ArgumentKind, ...] | None = None
    clause: str | None = None
    line: int | None = None
    # The columns that it is made from, as (table, column).
    origins: tuple[tuple[str, str], ...] = ()


class OutputColumn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A column that a statement produces, before and after the change; None if missing."""

    name: str
    before: ValueType | None = None
    after: ValueType | None = None
    is_lost: bool = False
    is_same_value: bool = False
    clause: str | None = None
    line: int | None = None
    origins: tuple[tuple[str, str], ...] = ()
    # The indexes of the type uses that compute it.
    meetings: tuple[int, ...] = ()


class StatementEffect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The effect of a change on a table and on the statements that produce it.

    `outputs` are columns that change or use changed values. `fields`, if requested, are all
    columns as they are before; there are more if `is_open`. `creates` says that the statement
    defines the schema of the table. `doubts` are parts that could not be analysed, with their
    lines.
    """

    meetings: tuple[TypeUse, ...] = ()
    outputs: tuple[OutputColumn, ...] = ()
    fields: tuple[Field, ...] = ()
    is_open: bool = False
    is_reordered: bool = False
    creates: bool = True
    doubts: tuple[tuple[str, int | None], ...] = ()


class TableVersions(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A table before and after a change, with a pair of fields for each column.

    A missing field is None. `key` is the table's name in origins. Unless `is_complete`, there
    may be more columns; `is_doubtful` says that any of them may have changed. `lost` columns
    changed in an unknown way.
    """

    key: str
    columns: Mapping[str, tuple[Field | None, Field | None]] = {}
    is_complete: bool = True
    is_reordered: bool = False
    is_doubtful: bool = False
    lost: frozenset[str] = frozenset()

    @classmethod
    def of(cls, key: str, before: Schema | None, after: Schema | None = None) -> "TableVersions":
        """The versions of a table with these schemas; without `after` it is unchanged."""
        if before is None:
            return cls(key=key, is_complete=False)
        if after is None or after is before:
            return cls(key=key, columns={field.name: (field, field) for field in before.fields})
        old = {field.name: field for field in before.fields}
        new = {field.name: field for field in after.fields}
        names = list(old)
        for position, name in enumerate(new):
            if name not in old:
                names.insert(position, name)
        kept = [name for name in new if name in old]
        return cls(
            key=key,
            columns={name: (old.get(name), new.get(name)) for name in names},
            is_reordered=kept != [name for name in old if name in new],
        )

    @cached_property
    def changed(self) -> frozenset[str]:
        """The columns that are added, removed, or change their type or nullability."""
        return self.lost.union(
            name for name, (before, after) in self.columns.items() if _differs(before, after)
        )

    @property
    def is_same(self) -> bool:
        """Whether nothing changes that a statement could notice."""
        return not (self.changed or self.is_reordered or self.is_doubtful)


def _differs(before: Field | None, after: Field | None) -> bool:
    if before is after:
        return False
    if before is None or after is None:
        return True
    return before.type != after.type or before.nullable != after.nullable
