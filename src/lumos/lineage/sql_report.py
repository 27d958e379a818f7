"""What one text of SQL says of columns, without a store."""

from pathlib import Path
from typing import Literal

from lumos.errors import MisuseError
from lumos.lineage.sql import ColumnEdge, Script, analyse
from lumos.lineage.sql.context import no_columns
from lumos.lineage.sql.names import dotted
from lumos.lineage.sql.schema_file import columns_in
from lumos.lineage.sql.script import ALL
from lumos.lineage.sql_files import UnreadableSql, read_sql
from lumos.model.report import FORMAT_VERSION, Report


class SqlEdgeReport(Report, frozen=True, kw_only=True, rename={"source": "from", "target": "to"}):
    """A column becomes another or decides about it; `to` without a column is a whole table."""

    source: str
    target: str
    kind: Literal["DIRECT", "INDIRECT"]
    usage: str
    expression: str | None
    line: int | None
    statement: int
    derivation: str | None = None
    cast_to: str | None = None
    positional: bool = False
    star: bool = False
    negated: bool = False


class SqlUnresolvedReport(Report, frozen=True, kw_only=True):
    """What could not be understood; a remark cost no edge."""

    statement: int
    line: int
    reason: str
    severity: Literal["error", "remark"]


class SqlTableReport(Report, frozen=True, kw_only=True):
    """A table that a statement reads or writes."""

    table: str
    columns: tuple[str, ...] = ()


class SqlStatementReport(Report, frozen=True, kw_only=True):
    """One statement."""

    number: int
    line: int
    kind: str
    reads: tuple[SqlTableReport, ...] = ()
    writes: tuple[SqlTableReport, ...] = ()


class SqlLineageReport(Report, frozen=True, kw_only=True):
    """The lineage of one text; `coverage` is the share of output columns that are resolved."""

    format_version: str = FORMAT_VERSION
    edges: tuple[SqlEdgeReport, ...]
    unresolved: tuple[SqlUnresolvedReport, ...]
    coverage: float
    columns: int
    resolved: int
    statements: tuple[SqlStatementReport, ...]


class NoSuchSchemaFile(MisuseError):
    """The file that should tell the columns of tables is not there."""

    def __init__(self, file: Path) -> None:
        self.file = file
        super().__init__(f"There is no file {file} with the columns of tables.")


def sql_lineage(
    text: str, *, dialect: str | None = None, schema: Path | None = None, file: str | None = None
) -> SqlLineageReport:
    """The lineage of a text; `schema` is a file that tells the columns of tables."""
    if schema is not None and not schema.is_file():
        raise NoSuchSchemaFile(schema)
    columns = no_columns if schema is None else columns_in(schema)
    return _report(analyse(text, dialect=dialect, columns=columns, file=file))


def sql_file_lineage(
    file: Path, *, dialect: str | None = None, schema: Path | None = None
) -> SqlLineageReport:
    """The lineage of a file."""
    try:
        read = read_sql(file, name=file.name)
    except UnreadableSql as problem:
        raise UnreadableSql(f"{file}: {problem}") from None
    return sql_lineage(read.text, dialect=dialect, schema=schema, file=str(file))


def _report(script: Script) -> SqlLineageReport:
    coverage = script.coverage
    return SqlLineageReport(
        edges=tuple(map(_edge, script.edges)),
        unresolved=tuple(
            SqlUnresolvedReport(
                statement=each.statement, line=each.line, reason=each.reason, severity=each.severity
            )
            for each in script.unresolved
        ),
        coverage=round(coverage.resolved / coverage.columns, 4) if coverage.columns else 1.0,
        columns=coverage.columns,
        resolved=coverage.resolved,
        statements=tuple(
            SqlStatementReport(
                number=each.number,
                line=each.line,
                kind=each.kind,
                reads=tuple(
                    SqlTableReport(table=dotted(read.table), columns=read.columns)
                    for read in each.reads
                ),
                writes=tuple(
                    SqlTableReport(table=dotted(write.table), columns=write.columns)
                    for write in each.writes
                ),
            )
            for each in script.statements
        ),
    )


def _edge(edge: ColumnEdge) -> SqlEdgeReport:
    return SqlEdgeReport(
        source=f"{dotted(edge.from_table)}.{edge.from_column}",
        target=_target(edge),
        kind="DIRECT" if edge.usage is None else "INDIRECT",
        usage="PROJECTION" if edge.usage is None else edge.usage.value,
        expression=edge.expression,
        line=edge.line,
        statement=edge.statement,
        derivation=None if edge.derivation is None else edge.derivation.value,
        cast_to=edge.cast_to,
        positional=edge.positional,
        star=edge.star,
        negated=edge.negated,
    )


def _target(edge: ColumnEdge) -> str:
    """A column with its table, a table alone, or a column that only a reader sees."""
    if edge.to_table is None:
        return edge.to_column or ALL
    table = dotted(edge.to_table)
    return table if edge.to_column is None else f"{table}.{edge.to_column}"
