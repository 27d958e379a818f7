"""`lumos lineage sql`: the column lineage of one SQL text, without a store."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from lumos.config.yaml_tree import (
    ConfigNode,
    ConfigProblem,
    ConfigurationError,
    ListNode,
    MappingNode,
    ScalarNode,
    read_yaml,
)
from lumos.errors import MisuseError
from lumos.lineage.sql import ColumnEdge, ScriptLineage, analyse
from lumos.lineage.sql.context import no_columns
from lumos.lineage.sql.dialects import dotted
from lumos.lineage.sql.script import ALL, Parts
from lumos.lineage.sql_files import UnreadableSql, read_sql
from lumos.model.report import FORMAT_VERSION, Report


class SqlEdgeReport(Report, frozen=True, kw_only=True, rename={"source": "from", "target": "to"}):
    """An edge from a column to one derived from it or influenced by it.

    `to` is a table if the edge influences all of its columns.
    """

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
    """A part that could not be analysed; with the severity `remark`, no edge is lost."""

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
    """The lineage of one text; `coverage` is the share of resolved output columns."""

    format_version: str = FORMAT_VERSION
    edges: tuple[SqlEdgeReport, ...]
    unresolved: tuple[SqlUnresolvedReport, ...]
    coverage: float
    columns: int
    resolved: int
    statements: tuple[SqlStatementReport, ...]


def sql_lineage(
    text: str, *, dialect: str | None = None, schema: Path | None = None, file: str | None = None
) -> SqlLineageReport:
    """The lineage of a text; `schema` is a file with the columns of tables."""
    if schema is not None and not schema.is_file():
        raise MisuseError(f"The schema file {schema} does not exist.")
    columns = no_columns if schema is None else columns_in(schema)
    return _report(analyse(text, dialect=dialect, columns=columns, file=file))


def sql_file_lineage(
    file: Path, *, dialect: str | None = None, schema: Path | None = None
) -> SqlLineageReport:
    """The lineage of a file."""
    if not file.is_file():
        raise MisuseError(f"There is no file {file}. For a folder use: lumos lineage ingest PATH")
    try:
        sql_file = read_sql(file, name=file.name)
    except UnreadableSql as problem:
        raise UnreadableSql(f"{file}: {problem}") from None
    return sql_lineage(sql_file.text, dialect=dialect, schema=schema, file=str(file))


def _report(script: ScriptLineage) -> SqlLineageReport:
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
    """The target of an edge: a column with its table, a table, or an output column of SELECT."""
    if edge.to_table is None:
        return edge.to_column or ALL
    table = dotted(edge.to_table)
    return table if edge.to_column is None else f"{table}.{edge.to_column}"


class TableColumns:
    """The columns of tables; a partial name matches if only one table ends with it."""

    def __init__(self, tables: Mapping[str, list[str]]) -> None:
        self._by_parts = {_parts(name): columns for name, columns in tables.items()}

    def __call__(self, table: Parts) -> list[str] | None:
        """The columns of a table, or None if it is unknown or ambiguous."""
        name = tuple(part.lower() for part in table)
        if name in self._by_parts:
            return self._by_parts[name]
        matches = [
            columns
            for parts, columns in self._by_parts.items()
            if parts == name[-len(parts) :] or name == parts[-len(name) :]
        ]
        return matches[0] if len(matches) == 1 else None


def columns_in(file: Path) -> TableColumns:
    """Read the tables of a YAML file; raises ConfigurationError with all problems by line.

    The columns of a table are a list of names, a list of `{name, type}`, or a mapping of names to
    types, optionally under the key `columns`.
    """
    problems: list[ConfigProblem]
    root, problems = read_yaml(file, environment={})
    tables = {name: _columns(entry.node, problems) for name, entry in root.entries.items()}
    if problems:
        raise ConfigurationError(problems)
    return TableColumns(tables)


def _parts(name: str) -> Parts:
    return tuple(part.strip(' "`[]').lower() for part in name.split("."))


def _columns(node: ConfigNode, problems: list[ConfigProblem]) -> list[str]:
    if isinstance(node, MappingNode):
        inner = node.entries.get("columns")
        if inner is not None and not isinstance(inner.node, ScalarNode):
            return _columns(inner.node, problems)
        return list(node.entries)
    if isinstance(node, ListNode):
        return [name for item in node.items if (name := _name(item, problems)) is not None]
    _add_problem(node, problems, "a list of columns, or names with their types")
    return []


def _name(node: ConfigNode, problems: list[ConfigProblem]) -> str | None:
    if isinstance(node, ScalarNode) and not node.empty:
        return node.text
    if isinstance(node, MappingNode):
        entry = node.entries.get("name")
        if entry is not None and isinstance(entry.node, ScalarNode):
            return entry.node.text
        if len(node.entries) == 1:
            return next(iter(node.entries))
    _add_problem(node, problems, "a column's name, or 'name' with its 'type'")
    return None


def _add_problem(node: ConfigNode, problems: list[ConfigProblem], expected: str) -> None:
    problems.append(
        ConfigProblem(
            position=node.position, key=node.path, text=f"{node.path} must be {expected}."
        )
    )
