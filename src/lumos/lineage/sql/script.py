"""The result of a SQL analysis: tables read and written, and edges between columns."""

from typing import Literal, NamedTuple, TypeAlias

import msgspec

from lumos.lineage.reported_lineage import ColumnCoverage
from lumos.model.lineage import Derivation, UseKind

Parts: TypeAlias = tuple[str, ...]
ALL: str = "*"


class ColumnEdge(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A column becomes another one, or influences one (`to_column`) or all (None).

    `to_table` is None for a plain SELECT. The column `*` stands for all columns of a table with
    unknown columns. `usage` is None if the value itself flows; then `derivation` says how.
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
    """A table that a statement reads, and the columns that it names."""

    table: Parts
    columns: tuple[str, ...] = ()


class TableWrite(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A table or view that a statement writes; the column `*` stands for unknown columns.

    `sources` are the tables that it is made from, including those behind temporary tables. It
    `is_whole` if the table has no other columns, as after CREATE and INSERT without a list.
    """

    table: Parts
    is_view: bool = False
    columns: tuple[str, ...] = ()
    sources: tuple[Parts, ...] = ()
    is_whole: bool = False


class StatementLineage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One statement: its kind, its first line, and what it reads and writes."""

    number: int
    line: int
    kind: str
    reads: tuple[TableRead, ...] = ()
    writes: tuple[TableWrite, ...] = ()


class SqlProblem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part that was not understood, with its statement, line and reason.

    A `remark` cost no edge.
    """

    statement: int
    line: int
    reason: str
    severity: Literal["error", "remark"] = "error"


class UnparsedSql(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A statement that could not be parsed, and the tables that it probably reads and writes.

    `others` are all other names, mostly of columns; each may be a table that it reads.
    """

    number: int
    line: int
    reads: tuple[Parts, ...] = ()
    writes: tuple[Parts, ...] = ()
    others: tuple[Parts, ...] = ()


class ScriptLineage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The lineage of a SQL script.

    `kept` is the text that may be stored: the same lines without comments, secrets and statements
    that are irrelevant to lineage.
    """

    statements: tuple[StatementLineage, ...] = ()
    edges: tuple[ColumnEdge, ...] = ()
    unresolved: tuple[SqlProblem, ...] = ()
    unparsed: tuple[UnparsedSql, ...] = ()
    coverage: ColumnCoverage = ColumnCoverage()
    file: str | None = None
    kept: str = ""

    @property
    def reads(self) -> tuple[TableRead, ...]:
        """Every table that is read, with all of its named columns."""
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
        """Every table or view that is written, in the order of the first write."""
        seen: dict[Parts, TableWrite] = {}
        for statement in self.statements:
            for write in statement.writes:
                seen.setdefault(write.table, write)
        return tuple(seen.values())


class SqlText(NamedTuple):
    """A SQL text with its file and dialect."""

    text: str
    file: str | None = None
    dialect: str | None = None
