"""What the statements with one digest read and write, told by one of them."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from lumos.lineage.query_log.accessed import TableAccess, accesses, modifications
from lumos.lineage.query_log.reading import Example
from lumos.lineage.reported import Coverage, ReportedEdge, TableName

# The columns of a table, by the parts of its name; nothing where the table is not known.
Columns: TypeAlias = Callable[[tuple[str, ...]], Sequence[str] | Mapping[str, str] | None]

# Statements that neither read nor write tables; most logs are full of them.
_IDLE: Final = re.compile(
    r"\s*(?:set|show|use|begin|start|commit|rollback|end|abort|savepoint|release|discard|reset|"
    r"grant|revoke|analyze|vacuum|explain|describe|desc|deallocate|close|fetch|listen|unlisten|"
    r"notify|ping|kill|lock|unlock|put|get|list|ls|remove|rm|help)\b(?!\s+(?:or|table)\b)",
    re.IGNORECASE,
)
_COMMENTS: Final = re.compile(r"\A(?:\s+|--[^\n]*\n?|/\*.*?\*/)+", re.DOTALL)
_NAME: Final = re.compile(r'(?:[\w$]+|"[^"]+"|`[^`]+`)(?:\.(?:[\w$]+|"[^"]+"|`[^`]+`))*')
_LONGEST: Final = 1_000_000


class Understood(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a statement reads and writes; `problem` is why that is not, or not all, known."""

    digest: bytes
    reads: tuple[TableAccess, ...] = ()
    edges: tuple[ReportedEdge, ...] = ()
    problem: str | None = None
    line: int | None = None
    coverage: Coverage = Coverage()


def understand(
    example: Example, *, dialect: str | None, platform: str | None, columns: Columns
) -> Understood:
    """What the statement reads and writes.

    What the warehouse itself says of columns is believed before what its text says.
    """
    told = accesses(example.accessed, platform)
    written = modifications(example.modified, platform)
    if not example.statement or _is_idle(example.statement):
        return Understood(digest=example.digest, reads=told, edges=written)
    parsed = _parsed(example, dialect=dialect, platform=platform, columns=columns)
    is_exact = any(access.columns for access in told)
    return msgspec.structs.replace(
        parsed,
        reads=told if is_exact or not parsed.reads else parsed.reads,
        edges=written or parsed.edges,
        problem=None if is_exact or (told and not parsed.reads) else parsed.problem,
    )


def possible_tables(example: Example) -> set[tuple[str, ...]]:
    """Every name in the statement that could be a table's, with all its parts."""
    return {
        _completed(tuple(part.strip('"`').lower() for part in name.split(".")), example)
        for name in _NAME.findall(example.statement[:_LONGEST])
    }


def _is_idle(statement: str) -> bool:
    return _IDLE.match(_COMMENTS.sub("", statement, count=1)) is not None


def _parsed(
    example: Example, *, dialect: str | None, platform: str | None, columns: Columns
) -> Understood:
    from lumos.lineage.sql import analyse, reported

    if len(example.statement) > _LONGEST:
        return Understood(digest=example.digest, problem="longer than a million characters")
    script = analyse(
        example.statement,
        dialect=dialect,
        columns=lambda parts: columns(_completed(parts, example)),
    )
    said = reported(script, reporter="", platform=platform)
    errors = [each for each in script.unresolved if each.severity == "error"]
    return Understood(
        digest=example.digest,
        reads=tuple(
            TableAccess(
                table=TableName(parts=_completed(read.table, example), platform=platform),
                columns=read.columns,
            )
            for read in script.reads
        ),
        edges=tuple(_completed_edge(edge, example) for edge in said.edges),
        problem=errors[0].reason if errors else None,
        line=errors[0].line if errors else None,
        coverage=script.coverage,
    )


def _completed_edge(edge: ReportedEdge, example: Example) -> ReportedEdge:
    ends = {
        end: msgspec.structs.replace(name, parts=_completed(name.parts, example))
        for end in ("upstream", "downstream")
        if isinstance(name := getattr(edge, end), TableName)
    }
    return msgspec.structs.replace(edge, **ends)


def _completed(parts: tuple[str, ...], example: Example) -> tuple[str, ...]:
    """A name with the database and schema that the statement was run in, where it lacks them."""
    schema, database = example.schema, example.database
    if len(parts) == 1 and schema:
        parts = (schema.lower(), *parts)
    if len(parts) == 2 and database:
        parts = (database.lower(), *parts)
    return parts
