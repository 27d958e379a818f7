"""What a text of SQL says: the tables it reads and writes, and how their columns hang together."""

from typing import Literal, TypeAlias

import msgspec

from lumos.lineage.reported import Coverage
from lumos.model.lineage import Derivation, UseKind

Parts: TypeAlias = tuple[str, ...]
ALL: str = "*"


class ColumnEdge(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A column of a table becomes a column, or decides about one (`to_column`) or all (None).

    `to_table` is None where a query is only looked at. A column `*` stands for all of a table whose
    columns nobody knows. `usage` is None where the value itself flows; then `derivation` says how.
    """

    from_table: Parts
    from_column: str
    to_table: Parts | None
    to_column: str | None
    statement: int
    usage: UseKind | None = None
    derivation: Derivation | None = None
    expression: str | None = None
    cast_to: str | None = None
    positional: bool = False
    star: bool = False
    negated: bool = False
    line: int | None = None


class TableRead(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A table that a statement reads, and the columns of it that the statement names."""

    table: Parts
    columns: tuple[str, ...] = ()


class TableWrite(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A table or view that a statement writes, and its columns; `*` stands for unknown ones.

    `sources` are the tables that it is made from, those behind temporary tables included. It
    `is_whole` if the table has no other columns, as behind CREATE and INSERT without a list.
    """

    table: Parts
    is_view: bool = False
    columns: tuple[str, ...] = ()
    sources: tuple[Parts, ...] = ()
    is_whole: bool = False


class Statement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One statement: what kind it is, where it begins, what it reads and writes."""

    number: int
    line: int
    kind: str
    reads: tuple[TableRead, ...] = ()
    writes: tuple[TableWrite, ...] = ()


class Unresolved(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What could not be understood, in which statement and line, and why.

    A `remark` cost no edge: what stands there was read all the same.
    """

    statement: int
    line: int
    reason: str
    severity: Literal["error", "remark"] = "error"


class UnparsedStatement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A statement that could not be parsed, and the tables that it seems to read and write.

    `others` are all other names in it, of columns most likely; each may be a table that it reads.
    """

    number: int
    line: int
    reads: tuple[Parts, ...] = ()
    writes: tuple[Parts, ...] = ()
    others: tuple[Parts, ...] = ()


class Script(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A text of SQL, understood as far as possible.

    `kept` is what of the text may be kept: its lines are the same, but for comments, statements
    that tell nothing of lineage, and secrets.
    """

    statements: tuple[Statement, ...] = ()
    edges: tuple[ColumnEdge, ...] = ()
    unresolved: tuple[Unresolved, ...] = ()
    unparsed: tuple[UnparsedStatement, ...] = ()
    coverage: Coverage = Coverage()
    file: str | None = None
    kept: str = ""

    @property
    def reads(self) -> tuple[TableRead, ...]:
        """Every table that some statement reads, with all columns that are named of it."""
        columns: dict[Parts, dict[str, None]] = {}
        for statement in self.statements:
            for read in statement.reads:
                columns.setdefault(read.table, {}).update(dict.fromkeys(read.columns))
        return tuple(
            TableRead(table=table, columns=tuple(sorted(names)))
            for table, names in sorted(columns.items())
        )

    @property
    def writes(self) -> tuple[TableWrite, ...]:
        """Every table or view that some statement writes, in the order of their first writing."""
        seen: dict[Parts, TableWrite] = {}
        for statement in self.statements:
            for write in statement.writes:
                seen.setdefault(write.table, write)
        return tuple(seen.values())
