"""What statements do with values that change: the facts that a verdict on them rests on."""

import enum
from collections.abc import Mapping
from functools import cached_property

import msgspec

from lumos.model.schema import Field, Schema
from lumos.model.types import UNKNOWN, DataType


class Place(enum.StrEnum):
    """Where in a statement a value is used."""

    PROJECTION = "PROJECTION"
    JOIN = "JOIN"
    FILTER = "FILTER"
    GROUP_BY = "GROUP_BY"
    SORT = "SORT"
    WINDOW = "WINDOW"
    CONDITIONAL = "CONDITIONAL"
    UNION = "UNION"
    INSERT = "INSERT"


class Act(enum.StrEnum):
    """What is done with a value there."""

    # It is named; told where that fails, as the column is gone or the name has become ambiguous.
    NAMED = "named"
    AMBIGUOUS = "ambiguous"
    CAST = "cast"
    COMPARED = "compared"
    NOT_IN = "not_in"
    # It shares one type with others: COALESCE, CASE, an arm of a UNION.
    COMBINED = "combined"
    CALCULATED = "calculated"
    # Calculated with where whole numbers divided by each other give whole numbers.
    DIVIDED = "divided"
    CALLED = "called"
    # Written out as text, whatever it is.
    SPELLED = "spelled"
    # Written in a way that shows its type: JSON, CSV.
    ENCODED = "encoded"
    # Its bytes or the name of its type decide: HASH, TYPEOF.
    HASHED = "hashed"
    # Handed on as it is: ANY_VALUE, LAG, a field of a structure.
    HANDED_ON = "handed_on"
    AGGREGATED = "aggregated"
    # Counted or asked whether it is null: its type does not matter.
    COUNTED = "counted"
    # Which values are equal decides: GROUP BY, DISTINCT, COUNT(DISTINCT ...).
    GROUPED = "grouped"
    SORTED = "sorted"
    # Given to a column that has a type of its own.
    STORED = "stored"
    # Its place in a list decides, and the places have changed.
    PLACED = "placed"
    # It comes, and a NATURAL join goes by it as well.
    KEYED = "keyed"
    # What becomes of it cannot be followed.
    LOST = "lost"


class Kind(enum.StrEnum):
    """Types that a function takes alike."""

    NUMBER = "number"
    # Whole or with a fixed number of digits behind the point, no floating ones.
    EXACT = "exact"
    INTEGER = "integer"
    # Of 32 bits at most: days and places are counted with these in many dialects.
    SHORT_INTEGER = "short_integer"
    TEXT = "text"
    TIME = "time"
    DATE = "date"
    BOOLEAN = "boolean"
    NESTED = "nested"
    ANY = "any"


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """The type of a value as far as it is known, and whether it may be null."""

    type: DataType = UNKNOWN
    nullable: bool | None = None


class Meeting(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A place where a value that changes is used, and what it meets there.

    `value` is the text of the value, `after` is None where it is gone. `partner` is what it meets:
    the other side of a comparison, the type it is cast to, the column that it is stored in;
    `partner_text` says what that is. `accepts` are the kinds that a function takes, if known.
    `is_ordering` says that the two are compared by less or more, not by equality alone.
    """

    place: Place
    act: Act
    value: str
    before: Value | None = None
    after: Value | None = None
    partner_before: Value | None = None
    partner: Value | None = None
    partner_text: str | None = None
    is_literal: bool = False
    is_ordering: bool = False
    accepts: tuple[Kind, ...] | None = None
    clause: str | None = None
    line: int | None = None
    # The columns that it is made from, as (table, column).
    origins: tuple[tuple[str, str], ...] = ()


class Output(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A column that a statement gives its table, before and after; None where it is not there."""

    name: str
    before: Value | None = None
    after: Value | None = None
    is_lost: bool = False
    is_same_value: bool = False
    clause: str | None = None
    line: int | None = None
    origins: tuple[tuple[str, str], ...] = ()
    # Which of the meetings it takes to compute it.
    meetings: tuple[int, ...] = ()


class Effect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What changes in a table, and in the statements that make it.

    `outputs` are the columns that change or that changed values take part in. `fields`, where
    somebody asked, are all that the statement gives, as they are before; there are more if
    `is_open`. `creates` says that the table gets its schema from the statement. `doubts` are what
    could not be understood, and on which line.
    """

    meetings: tuple[Meeting, ...] = ()
    outputs: tuple[Output, ...] = ()
    fields: tuple[Field, ...] = ()
    is_open: bool = False
    is_reordered: bool = False
    creates: bool = True
    doubts: tuple[tuple[str, int | None], ...] = ()


class TableVersions(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A table before and after, a pair of fields for each column; None where it is not there.

    `key` is what the table is called in origins. Unless `is_complete`, there may be more columns;
    `is_doubtful` says that any of them may have changed. Those `lost` have, nobody knows how.
    """

    key: str
    columns: Mapping[str, tuple[Field | None, Field | None]] = {}
    is_complete: bool = True
    is_reordered: bool = False
    is_doubtful: bool = False
    lost: frozenset[str] = frozenset()

    @classmethod
    def of(cls, key: str, before: Schema | None, after: Schema | None = None) -> "TableVersions":
        """The versions of a table with these schemas; without `after`, it stays as it is."""
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
        """The columns that come, go or get another type or nullability."""
        return self.lost.union(
            name for name, (before, after) in self.columns.items() if _differs(before, after)
        )

    @property
    def is_same(self) -> bool:
        """Whether nothing changes here that a statement could notice."""
        return not (self.changed or self.is_reordered or self.is_doubtful)


def _differs(before: Field | None, after: Field | None) -> bool:
    if before is after:
        return False
    if before is None or after is None:
        return True
    return before.type != after.type or before.nullable != after.nullable
