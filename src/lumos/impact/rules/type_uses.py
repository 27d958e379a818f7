"""Uses of changed values in statements, from which verdicts are derived."""

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

    # The column is removed, but the statement still names it.
    MISSING = "missing"
    # An added column makes the name ambiguous.
    AMBIGUOUS = "ambiguous"
    CAST = "cast"
    COMPARED = "compared"
    NOT_IN = "not_in"
    # Converted to a common type with other values: COALESCE, CASE, a branch of a UNION.
    COMBINED = "combined"
    CALCULATED = "calculated"
    # Integer division.
    DIVIDED = "divided"
    CALLED = "called"
    # Converted to text.
    FORMATTED = "formatted"
    # Encoded as text whose format depends on the type: JSON, CSV.
    ENCODED = "encoded"
    # The result depends on the bytes or the type name of the value: HASH, TYPEOF.
    HASHED = "hashed"
    # Passed through unchanged: ANY_VALUE, LAG, a field of a struct.
    PASSED_THROUGH = "passed_through"
    AGGREGATED = "aggregated"
    # Counted or checked for null: its type does not matter.
    COUNTED = "counted"
    # Compared for equality: GROUP BY, DISTINCT, COUNT(DISTINCT ...).
    GROUPED = "grouped"
    SORTED = "sorted"
    # Stored in a column with a declared type.
    STORED = "stored"
    # Used by position, and positions have changed.
    USED_BY_POSITION = "used_by_position"
    # A new column that a NATURAL join uses as a key.
    NATURAL_JOIN_KEY = "natural_join_key"
    # The effect cannot be determined.
    UNKNOWN = "unknown"


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
    """Type and nullability of a value; None if it is unknown whether the value may be null."""

    type: DataType = UNKNOWN
    nullable: bool | None = None

    @classmethod
    def of(cls, field: Field) -> "ValueType":
        return cls(type=field.type, nullable=field.nullable)


class TypeUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One use of a changing value in a statement.

    `value` is the name of the value; `after` is None if it is removed. `partner` is what the value
    is used with: the other side of a comparison, the target type of a cast, or the column that
    stores the value. `partner_text` describes the partner in messages. `accepts` are the kinds that
    a function accepts, if known. `is_ordering` means a comparison by order (<, >), not only by
    equality.
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
    # The changed columns that the value is derived from, as (table, column).
    origins: tuple[tuple[str, str], ...] = ()


class OutputColumn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A column that a statement writes, before and after; None if it does not exist.

    `is_unknown` means that its new type cannot be determined.
    """

    name: str
    before: ValueType | None = None
    after: ValueType | None = None
    is_unknown: bool = False
    clause: str | None = None
    line: int | None = None
    origins: tuple[tuple[str, str], ...] = ()
    # Indexes of the type uses that compute it.
    type_uses: tuple[int, ...] = ()


class StatementEffect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a statement and the table it writes are affected.

    `outputs` are the columns computed from changed values. `fields`, if requested, are the columns
    that the statement writes before the change; with `may_write_other_columns`, there may be more.
    `creates` means that the statement defines the schema of the table. `unparsed` lists (reason,
    line) of parts that could not be parsed.
    """

    type_uses: tuple[TypeUse, ...] = ()
    outputs: tuple[OutputColumn, ...] = ()
    fields: tuple[Field, ...] = ()
    may_write_other_columns: bool = False
    creates: bool = True
    unparsed: tuple[tuple[str, int | None], ...] = ()


class TableVersions(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A table before and after a change: two fields per column, None if it does not exist then.

    `key` names the table in origins. Unless `is_complete`, there may be more columns.
    `may_have_changed` means that every column may have changed in an unknown way;
    `unknown_columns` lists single columns that changed in an unknown way.
    """

    key: str
    columns: Mapping[str, tuple[Field | None, Field | None]] = {}
    is_complete: bool = True
    is_reordered: bool = False
    may_have_changed: bool = False
    unknown_columns: frozenset[str] = frozenset()

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
    def changed_columns(self) -> frozenset[str]:
        """The columns that are added, removed or change type or nullability."""
        return self.unknown_columns.union(
            name for name, (before, after) in self.columns.items() if _is_different(before, after)
        )

    @property
    def removes_or_changes(self) -> bool:
        """Whether a column that existed before is removed or changes."""
        return any(
            name not in self.columns or self.columns[name][0] is not None
            for name in self.changed_columns
        )

    def with_added_columns_as_existing(self) -> "TableVersions":
        """The same versions, as if the added columns had existed before the change."""
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
    def is_unchanged(self) -> bool:
        """Whether nothing changes that could affect a statement."""
        return not (self.changed_columns or self.is_reordered or self.may_have_changed)


def _is_different(before: Field | None, after: Field | None) -> bool:
    if before is after:
        return False
    if before is None or after is None:
        return True
    return before.type != after.type or before.nullable != after.nullable
