"""Facts about statements that use changing values, from which verdicts are derived."""

import enum
from collections.abc import Mapping
from functools import cached_property

import msgspec

from lumos.model.schema import Field, Schema
from lumos.model.types import UNKNOWN, DataType


class ClauseKind(enum.StrEnum):
    """The clause of a statement in which a value is used."""

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

    # A name that fails: the column is removed, or the name is now ambiguous.
    NAMED = "named"
    AMBIGUOUS = "ambiguous"
    CAST = "cast"
    COMPARED = "compared"
    NOT_IN = "not_in"
    # Shares one type with others: COALESCE, CASE, a branch of a UNION.
    COMBINED = "combined"
    CALCULATED = "calculated"
    # Integer division.
    DIVIDED = "divided"
    CALLED = "called"
    # Converted to text.
    FORMATTED = "spelled"
    # Encoded in a form that shows its type: JSON, CSV.
    ENCODED = "encoded"
    # The result depends on its bytes or its type name: HASH, TYPEOF.
    HASHED = "hashed"
    # Passed through unchanged: ANY_VALUE, LAG, a field of a struct.
    PASSED_THROUGH = "handed_on"
    AGGREGATED = "aggregated"
    # Counted or checked for null: its type does not matter.
    COUNTED = "counted"
    # Compared for equality: GROUP BY, DISTINCT, COUNT(DISTINCT ...).
    GROUPED = "grouped"
    SORTED = "sorted"
    # Stored in a column with a declared type.
    STORED = "stored"
    # Used by position, and positions have changed.
    PLACED = "placed"
    # A new column that a NATURAL join uses as a key.
    KEYED = "keyed"
    # Its effect cannot be traced.
    LOST = "lost"


class ArgumentKind(enum.StrEnum):
    """A group of types that function arguments accept."""

    NUMBER = "number"
    # Integers and decimals, no floats.
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
    """Type and nullability of a value, as far as known."""

    type: DataType = UNKNOWN
    nullable: bool | None = None


class TypeUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One use of a changing value in a statement.

    `value` is its name, `after` is None if it is removed. `partner` is the other side: of a
    comparison, the type of a cast, the column it is stored in; `partner_text` describes it.
    `accepts` are the kinds that a function accepts, if known. `is_ordering` means a comparison by
    order (<, >), not only by equality.
    """

    clause_kind: ClauseKind
    operation: UseOperation
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
    # The changed columns it is derived from, as (table, column).
    origins: tuple[tuple[str, str], ...] = ()


class OutputColumn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A column that a statement writes, before and after; None if it does not exist.

    `is_unknown` means that its new type cannot be determined.
    """

    name: str
    before: ValueType | None = None
    after: ValueType | None = None
    is_unknown: bool = False
    is_same_value: bool = False
    clause: str | None = None
    line: int | None = None
    origins: tuple[tuple[str, str], ...] = ()
    # Indexes of the type uses that compute it.
    type_uses: tuple[int, ...] = ()


class StatementEffect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a statement and the table it writes are affected.

    `outputs` are the columns computed from changed values. `fields`, if requested, are all columns
    that the statement writes before the change; `is_open` means there may be more. `creates` means
    that the statement defines the schema of the table. `doubts` are (reason, line) of parts that
    could not be parsed.
    """

    type_uses: tuple[TypeUse, ...] = ()
    outputs: tuple[OutputColumn, ...] = ()
    fields: tuple[Field, ...] = ()
    is_open: bool = False
    is_reordered: bool = False
    creates: bool = True
    doubts: tuple[tuple[str, int | None], ...] = ()


class TableVersions(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A table before and after: a pair of fields per column, None if it does not exist.

    `key` names the table in origins. Unless `is_complete`, there may be more columns;
    `is_doubtful` means that any of them may have changed. Columns in `lost` change in an unknown
    way.
    """

    key: str
    columns: Mapping[str, tuple[Field | None, Field | None]] = {}
    is_complete: bool = True
    is_reordered: bool = False
    is_doubtful: bool = False
    lost: frozenset[str] = frozenset()

    @classmethod
    def of(cls, key: str, before: Schema | None, after: Schema | None = None) -> "TableVersions":
        """The versions of a table with these schemas; without `after` it does not change."""
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
        common = [name for name in new if name in old]
        return cls(
            key=key,
            columns={name: (old.get(name), new.get(name)) for name in names},
            is_reordered=common != [name for name in old if name in new],
        )

    @cached_property
    def changed(self) -> frozenset[str]:
        """The columns that are added, removed or change type or nullability."""
        return self.lost.union(
            name for name, (before, after) in self.columns.items() if _differs(before, after)
        )

    def with_added_before(self) -> "TableVersions":
        """The same versions, with the added columns before the change too."""
        if not any(before is None for before, _ in self.columns.values()):
            return self
        return msgspec.structs.replace(
            self,
            columns={
                name: (after if before is None else before, after)
                for name, (before, after) in self.columns.items()
            },
        )

    @property
    def is_same(self) -> bool:
        """Whether nothing changes that could affect a statement."""
        return not (self.changed or self.is_reordered or self.is_doubtful)


def _differs(before: Field | None, after: Field | None) -> bool:
    if before is after:
        return False
    if before is None or after is None:
        return True
    return before.type != after.type or before.nullable != after.nullable
