"""What the statements with one digest read and write, told by one of them."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from lumos.lineage.reported_lineage import ColumnCoverage, ReportedEdge, TableName
from lumos.usage.query_log.accessed import TableAccess, accesses, modifications
from lumos.usage.query_log.normal import without_literals
from lumos.usage.query_log.reader import Example

# The columns of a table, by the parts of its name; nothing where the table is not known.
Columns: TypeAlias = Callable[[tuple[str, ...]], Sequence[str] | Mapping[str, str] | None]

# Statements that neither read nor write tables; most logs are full of them.
_IDLE: Final = re.compile(
    r"\s*(?:set|show|use|begin|start|commit|rollback|end|abort|savepoint|release|discard|reset|"
    r"grant|revoke|analyze|vacuum|explain|describe|desc|deallocate|close|fetch|listen|unlisten|"
    r"notify|ping|kill|lock|unlock|put|get|list|ls|remove|rm|help)\b(?!\s+(?:or|table)\b)",
    re.IGNORECASE,
)
# Statements around a query, which alone matters here.
_AROUND: Final = re.compile(
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
_LONGEST: Final = 1_000_000
# Columns were read, but nobody knows which.
UNKNOWN_COLUMNS: Final = ("*",)


class Understood(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a statement reads and writes; `problem` is why that is not, or not all, known."""

    digest: bytes
    reads: tuple[TableAccess, ...] = ()
    edges: tuple[ReportedEdge, ...] = ()
    problem: str | None = None
    coverage: ColumnCoverage = ColumnCoverage()


def understand(example: Example, *, columns: Columns) -> Understood:
    """What the statement reads and writes.

    What the warehouse itself says of columns is believed before what its text says.
    """
    told = accesses(example.accessed, example.platform)
    written = modifications(example.modified, example.platform)
    is_exact = any(access.columns for access in told)
    told = tuple(map(_admitted, told))
    query = _query(example.statement)
    if not query:
        return Understood(digest=example.digest, reads=told, edges=written)
    parsed = _parsed(query, example, columns)
    return msgspec.structs.replace(
        parsed,
        reads=told if is_exact or not parsed.reads else parsed.reads,
        edges=written or parsed.edges,
        problem=None if is_exact or (told and not parsed.reads) else parsed.problem,
    )


def _admitted(access: TableAccess) -> TableAccess:
    """The access with the word that it is not known which columns were read, where it is not."""
    if access.columns:
        return access
    return msgspec.structs.replace(access, columns=UNKNOWN_COLUMNS)


def possible_tables(example: Example) -> set[tuple[str, ...]]:
    """Every name in the statement that could be a table's, with all its parts."""
    return {
        _completed(tuple(part.strip('"`').lower() for part in name.split(".")), example)
        for name in _NAME.findall(example.statement[:_LONGEST])
    }


def _query(statement: str) -> str:
    """What is read: the query that a statement wraps, or all of it; nothing where it is idle."""
    bare = _COMMENTS.sub("", statement, count=1)
    if around := _AROUND.match(bare.rstrip("; \n\t")):
        if around["table"]:
            return f"SELECT {around['names'] or '*'} FROM {around['table']}"
        found = around[around.lastgroup or 0]
        return found.replace("''", "'") if around["unloaded"] else found
    return "" if _IDLE.match(bare) else statement


def _parsed(query: str, example: Example, columns: Columns) -> Understood:
    # The parser takes long to import, and a log of what was accessed needs none.
    from lumos.lineage.sql import analyse
    from lumos.lineage.sql.report import report_script
    from lumos.lineage.sql.script import ALL

    if len(query) > _LONGEST:
        return Understood(digest=example.digest, problem="longer than a million characters")
    script = analyse(
        query,
        dialect=example.dialect,
        columns=lambda parts: columns(_completed(parts, example)),
    )
    said = report_script(script, reporter="", platform=example.platform)
    errors = [each.reason for each in script.unresolved if each.severity == "error"]
    if not script.statements and not errors:
        errors = ["no statement of SQL"]
    # What was not understood may have named others, and so may a star that nobody could expand.
    all_columns = {edge.from_table for edge in script.edges if edge.from_column == ALL}
    return Understood(
        digest=example.digest,
        reads=tuple(
            TableAccess(
                table=TableName(parts=_completed(read.table, example), platform=example.platform),
                columns=(*read.columns, *UNKNOWN_COLUMNS)
                if errors or read.table in all_columns
                else read.columns,
            )
            for read in script.reads
        ),
        edges=tuple(_completed_edge(edge, example) for edge in said.edges),
        problem=_without_text(errors[0]) if errors else None,
        coverage=script.coverage,
    )


def _without_text(reason: str) -> str:
    """The reason without pieces of the statement, in which literals may stand."""
    return _TOKEN.sub("something else", reason.partition(", near ")[0])


def _completed_edge(edge: ReportedEdge, example: Example) -> ReportedEdge:
    ends = {
        end: msgspec.structs.replace(name, parts=_completed(name.parts, example))
        for end in ("upstream", "downstream")
        if isinstance(name := getattr(edge, end), TableName)
    }
    # Literals may be about people, and a log holds them all.
    return msgspec.structs.replace(
        edge,
        **ends,
        columns=tuple(
            msgspec.structs.replace(
                each, transformation=_harmless(each.transformation, example), line=None
            )
            for each in edge.columns
        ),
        uses=tuple(
            msgspec.structs.replace(each, expression=_harmless(each.expression, example), line=None)
            for each in edge.uses
        ),
    )


def _harmless(expression: str | None, example: Example) -> str | None:
    return None if expression is None else without_literals(expression, example.dialect)


def _completed(parts: tuple[str, ...], example: Example) -> tuple[str, ...]:
    """A name with the database and schema that the statement was run in, where it lacks them."""
    schema, database = example.schema, example.database
    if len(parts) == 1 and schema:
        parts = (schema.lower(), *parts)
    if len(parts) == 2 and database:
        parts = (database.lower(), *parts)
    return parts
