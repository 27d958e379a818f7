"""Finds the tables that a logged statement reads and writes, in its SQL or in fields of the log."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from lumos.lineage.reported_lineage import (
    DatasetReference,
    LocationReference,
    ReportedEdge,
    TableName,
    UrnReference,
)
from lumos.model.json_codec import decode_json
from lumos.model.lineage import ColumnMapping
from lumos.model.urn import SCHEME
from lumos.usage.query_log.normalization import without_literals
from lumos.usage.query_log.reader import StatementExample

# Returns the columns of a table by the parts of its name; None if unknown.
Columns: TypeAlias = Callable[[tuple[str, ...]], Sequence[str] | Mapping[str, str] | None]

# Statements that neither read nor write tables.
_NO_TABLE_STATEMENT: Final = re.compile(
    r"\s*(?:set|show|use|begin|start|commit|rollback|end|abort|savepoint|release|discard|reset|"
    r"grant|revoke|analyze|vacuum|explain|describe|desc|deallocate|close|fetch|listen|unlisten|"
    r"notify|ping|kill|lock|unlock|put|get|list|ls|remove|rm|help)\b(?!\s+(?:or|table)\b)",
    re.IGNORECASE,
)
# Statements that wrap a query.
_WRAPPER: Final = re.compile(
    r"""(?:declare\s+\S+\s.*?\bcursor\b.*?\bfor\s+(?P<cursor>.*)
         |explain\s+(?:\(\s*)?analyz[es]+(?:\s*,[^)]*\)|\s*\)|\s+verbose)?\s+(?P<explained>.*)
         |prepare\s+\S+(?:\s*\([^)]*\))?\s+(?:as|from)\s+(?P<prepared>.*)
         |copy\s*\((?P<copied>.*)\)\s*to\b.*
         |unload\s*\(\s*(?:'(?P<unloaded>(?:[^']|'')*)'|\$\$(?P<unloaded_too>.*?)\$\$)\s*\)\s*to\b.*
         |copy\s+(?P<table>[^\s(]+)(?:\s*\((?P<names>[^)]*)\))?\s+to\b.*)\Z""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_COMMENTS: Final = re.compile(r"\A(?:\s+|--[^\n]*\n?|/\*.*?\*/)+", re.DOTALL)
_NAME: Final = re.compile(r'(?:[\w$]+|"[^"]+"|`[^`]+`)(?:\.(?:[\w$]+|"[^"]+"|`[^`]+`))*')
_TOKEN: Final = re.compile(r"<Token\b.*>")
_MAX_STATEMENT_LENGTH: Final = 1_000_000
# The columns of a read whose columns are unknown.
UNKNOWN_COLUMNS: Final = ("*",)


class TableAccess(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A table that was read, with the columns if known."""

    table: DatasetReference
    columns: tuple[str, ...] = ()


class StatementAnalysis(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The tables that a statement reads and writes; `problem` is the reason if some are missing."""

    digest: bytes
    reads: tuple[TableAccess, ...] = ()
    edges: tuple[ReportedEdge, ...] = ()
    problem: str | None = None


def analyse_statement(example: StatementExample, *, columns: Columns) -> StatementAnalysis:
    """Analyse what a statement reads and writes; columns in the log override those in its SQL."""
    logged_reads = read_accesses(example.accessed, example.platform)
    logged_edges = read_modifications(example.modified, example.platform)
    is_exact = any(access.columns for access in logged_reads)
    logged_reads = tuple(
        each if each.columns else msgspec.structs.replace(each, columns=UNKNOWN_COLUMNS)
        for each in logged_reads
    )
    query = _wrapped_query(example.statement)
    if not query:
        return StatementAnalysis(digest=example.digest, reads=logged_reads, edges=logged_edges)
    analysis = _parse(query, example, columns)
    return msgspec.structs.replace(
        analysis,
        reads=logged_reads if is_exact or not analysis.reads else analysis.reads,
        edges=logged_edges or analysis.edges,
        problem=None if is_exact or (logged_reads and not analysis.reads) else analysis.problem,
    )


def possible_tables(example: StatementExample) -> set[tuple[str, ...]]:
    """All names in the statement that could be tables, as name parts."""
    return {
        _complete_name(tuple(part.strip('"`').lower() for part in name.split(".")), example)
        for name in _NAME.findall(example.statement[:_MAX_STATEMENT_LENGTH])
    }


def _wrapped_query(statement: str) -> str:
    """The query that a statement wraps, or else the statement; empty if it reads no tables."""
    without_comments = _COMMENTS.sub("", statement, count=1)
    if wrapper := _WRAPPER.match(without_comments.rstrip("; \n\t")):
        if wrapper["table"]:
            return f"SELECT {wrapper['names'] or '*'} FROM {wrapper['table']}"
        query = wrapper[wrapper.lastgroup or 0]
        return query.replace("''", "'") if wrapper["unloaded"] else query
    return "" if _NO_TABLE_STATEMENT.match(without_comments) else statement


def _parse(query: str, example: StatementExample, columns: Columns) -> StatementAnalysis:
    # Imported late: logs with accessed tables do not need the parser.
    from lumos.lineage.sql import analyse
    from lumos.lineage.sql.report import report_script
    from lumos.lineage.sql.script import ALL

    if len(query) > _MAX_STATEMENT_LENGTH:
        return StatementAnalysis(digest=example.digest, problem="longer than a million characters")
    script = analyse(
        query,
        dialect=example.dialect,
        columns=lambda parts: columns(_complete_name(parts, example)),
    )
    lineage = report_script(script, reporter="", platform=example.platform)
    errors = [each.reason for each in script.unresolved if each.severity == "error"]
    if not script.statements and not errors:
        errors = ["not a SQL statement"]
    # Parts that could not be parsed, and unexpanded stars, may read other columns.
    unexpanded_tables = {edge.from_table for edge in script.edges if edge.from_column == ALL}
    return StatementAnalysis(
        digest=example.digest,
        reads=tuple(
            TableAccess(
                table=TableName(
                    parts=_complete_name(read.table, example), platform=example.platform
                ),
                columns=(*read.columns, *UNKNOWN_COLUMNS)
                if errors or read.table in unexpanded_tables
                else read.columns,
            )
            for read in script.reads
        ),
        edges=tuple(_complete_edge(edge, example) for edge in lineage.edges),
        # Without excerpts of the statement, which may contain literals.
        problem=_TOKEN.sub("something else", errors[0].partition(", near ")[0]) if errors else None,
    )


def _complete_edge(edge: ReportedEdge, example: StatementExample) -> ReportedEdge:
    ends = {
        end: msgspec.structs.replace(name, parts=_complete_name(name.parts, example))
        for end in ("upstream", "downstream")
        if isinstance(name := getattr(edge, end), TableName)
    }
    # Literals in logs may be personal data.
    return msgspec.structs.replace(
        edge,
        **ends,
        columns=tuple(
            msgspec.structs.replace(
                each, transformation=_without_literals_of(each.transformation, example), line=None
            )
            for each in edge.columns
        ),
        uses=tuple(
            msgspec.structs.replace(
                each, expression=_without_literals_of(each.expression, example), line=None
            )
            for each in edge.uses
        ),
    )


def _without_literals_of(expression: str | None, example: StatementExample) -> str | None:
    return None if expression is None else without_literals(expression, example.dialect)


def _complete_name(parts: tuple[str, ...], example: StatementExample) -> tuple[str, ...]:
    """A name completed with the database and schema that the statement ran in."""
    schema, database = example.schema, example.database
    if len(parts) == 1 and schema:
        parts = (schema.lower(), *parts)
    if len(parts) == 2 and database:
        parts = (database.lower(), *parts)
    return parts


_NON_TABLE_DOMAINS: Final = frozenset({"stage", "function", "procedure", "sequence", "integration"})


def read_accesses(data: bytes, platform: str | None) -> tuple[TableAccess, ...]:
    """The tables in a JSON list of accessed objects, inputs or referenced tables."""
    columns_by_table: dict[DatasetReference, dict[str, None]] = {}
    for each in _records(data):
        if str(each.get("objectDomain", "")).lower() in _NON_TABLE_DOMAINS:
            continue
        table = _table(each, platform)
        if table is not None:
            columns_by_table.setdefault(table, {}).update(dict.fromkeys(_columns(each)))
    return tuple(
        TableAccess(table=table, columns=tuple(names)) for table, names in columns_by_table.items()
    )


def read_modifications(data: bytes, platform: str | None) -> tuple[ReportedEdge, ...]:
    """The edges in a JSON list of modified objects, with column mappings."""
    edges: dict[tuple[DatasetReference, DatasetReference], dict[ColumnMapping, None]] = {}
    for each in _records(data):
        target = _table(each, platform)
        for column in each.get("columns") or ():
            if target is None or not isinstance(column, Mapping):
                continue
            downstream = _fold_name(str(column.get("columnName", "")))
            for source in column.get("directSources") or column.get("baseSources") or ():
                table = _table(source, platform)
                if table is None or not source.get("columnName"):
                    continue
                mapping = ColumnMapping(
                    upstream=_fold_name(str(source["columnName"])), downstream=downstream
                )
                edges.setdefault((table, target), {})[mapping] = None
    return tuple(
        ReportedEdge(upstream=source, downstream=target, columns=tuple(mappings))
        for (source, target), mappings in edges.items()
    )


def _records(data: bytes) -> Iterator[Mapping[str, Any]]:
    if not data:
        return
    try:
        value = decode_json(data)
    except msgspec.DecodeError:
        return
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, Mapping):
            # BigQuery's export wraps repeated values.
            inner = each.get("v")
            yield inner if isinstance(inner, Mapping) else each


def _table(record: Mapping[str, Any], platform: str | None) -> DatasetReference | None:
    if record.get("plain"):
        return parse_reference(str(record["objectName"]), platform)
    if name := record.get("objectName"):
        return TableName(parts=tuple(map(_fold_name, _split(str(name)))), platform=platform)
    for keys in (
        ("project_id", "dataset_id", "table_id"),
        ("projectId", "datasetId", "tableId"),
        ("catalogName", "schema", "table"),
    ):
        if record.get(keys[-1]):
            parts = tuple(str(record[key]).lower() for key in keys if record.get(key))
            return TableName(parts=parts, platform=platform)
    return None


def parse_reference(text: str, platform: str | None = None) -> DatasetReference:
    """A reference from a text: a URN, a location or a table name."""
    if text.startswith(SCHEME):
        return UrnReference(urn=text)
    if "://" in text or text.startswith("/"):
        return LocationReference(uri=text)
    return TableName(parts=tuple(map(_fold_name, _split(text))), platform=platform)


def _columns(record: Mapping[str, Any]) -> Iterator[str]:
    for column in record.get("columns") or ():
        name = column.get("columnName") if isinstance(column, Mapping) else column
        if name:
            yield _fold_name(str(name))


def _split(name: str) -> list[str]:
    """The parts of a dotted name; quoted parts keep their quotes."""
    parts, quoted = [""], False
    for character in name:
        if character == '"':
            quoted = not quoted
        if character == "." and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part]


def _fold_name(name: str) -> str:
    """A name in lower case, unless it is quoted and contains lower-case letters."""
    unquoted = name.removeprefix('"').removesuffix('"').replace('""', '"')
    return unquoted if unquoted != name and unquoted != unquoted.upper() else unquoted.lower()
