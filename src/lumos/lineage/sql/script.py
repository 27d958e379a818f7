"""The result of a SQL analysis: tables read and written, and edges between columns."""

from typing import Literal, NamedTuple, TypeAlias

import msgspec

from lumos.lineage.reported_lineage import ColumnCoverage
from lumos.model.lineage import Derivation, UseKind

Parts: TypeAlias = tuple[str, ...]
ALL: str = "*"


class ColumnEdge(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An edge from one column to another that is derived from it or influenced by it.

    If the value is derived, `derivation` is set and `usage` is None. If it is only influenced, as
    by a filter, `usage` is set; `to_column` is then None if all columns are affected. `to_table` is
    None for a plain SELECT. The column `*` stands for all columns of a table with unknown columns.
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


class TableRead(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A table that a statement reads, and the columns that it names."""

    table: Parts
    columns: tuple[str, ...] = ()


class TableWrite(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A table or view that a statement writes; the column `*` stands for unknown columns.

    `sources` are the tables that its rows come from, including those read through temporary tables.
    With `covers_all_columns`, the table has no other columns, as after CREATE TABLE, or INSERT
    without a column list.
    """

    table: Parts
    is_view: bool = False
    columns: tuple[str, ...] = ()
    sources: tuple[Parts, ...] = ()
    covers_all_columns: bool = False


class StatementLineage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One statement: its kind, its first line, and the tables that it reads and writes."""

    number: int
    line: int
    kind: str
    reads: tuple[TableRead, ...] = ()
    writes: tuple[TableWrite, ...] = ()


class SqlProblem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of the SQL that could not be analysed; with the severity `remark`, no edge is lost."""

    statement: int
    line: int
    reason: str
    severity: Literal["error", "remark"] = "error"


class UnparsedSql(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A statement that could not be parsed, and the tables that it probably reads and writes.

    `others` are all other names, mostly of columns; each may be a table that the statement reads.
    """

    number: int
    line: int
    reads: tuple[Parts, ...] = ()
    writes: tuple[Parts, ...] = ()
    others: tuple[Parts, ...] = ()


class ScriptLineage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The lineage of a SQL script.

    `storable_text` has the same lines as the SQL, without comments, secrets and statements that are
    irrelevant to lineage.
    """

    statements: tuple[StatementLineage, ...] = ()
    edges: tuple[ColumnEdge, ...] = ()
    unresolved: tuple[SqlProblem, ...] = ()
    unparsed: tuple[UnparsedSql, ...] = ()
    coverage: ColumnCoverage = ColumnCoverage()
    file: str | None = None
    storable_text: str = ""

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
        by_table: dict[Parts, TableWrite] = {}
        for statement in self.statements:
            for write in statement.writes:
                by_table.setdefault(write.table, write)
        return tuple(by_table.values())


class SqlText(NamedTuple):
    """A SQL text with its file and dialect."""

    text: str
    file: str | None = None
    dialect: str | None = None
