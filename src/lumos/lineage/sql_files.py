"""Reads SQL files, names the table that a single query creates, and reports their lineage."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from sqlglot import exp

from lumos.config.sql_names import NameTemplate
from lumos.errors import LumosError
from lumos.lineage.header_comments import SLA, HeaderComment, file_header, header_above, header_of
from lumos.lineage.reported_lineage import (
    DatasetReference,
    LineageProblem,
    ReportedAnnotations,
    ReportedLineage,
    ReportedScript,
    ReportedUnparsedStatement,
    TableName,
)
from lumos.lineage.sql import ScriptLineage, SqlText, report_script
from lumos.lineage.sql import templates as jinja
from lumos.lineage.sql.dialects import find_dialect

EXTENSIONS: Final = (".sql", ".ddl", ".hql", ".bq", ".bteq", ".psql", ".tsql", ".pgsql")
# Generic file names: the table is named after the folder.
_GENERIC_STEMS: Final = frozenset(("query", "view", "model", "script", "index", "main"))
_EXTENSION: Final = re.compile(
    rf"(?:{'|'.join(map(re.escape, EXTENSIONS))})(?:\..*)?\Z", re.IGNORECASE
)
_READ_TABLE: Final = re.compile(
    r"\b(?:from|join)\s+([`\"\[]?[\w$-]+[`\"\]]?(?:\.[`\"\[]?[\w$-]+[`\"\]]?)*)", re.IGNORECASE
)
_MAX_BYTES: Final = 64 * 1024**2
# Strings, quoted names, comments, words and other characters.
_TOKEN: Final = re.compile(
    r"'(?:[^'\\]|''|\\.)*'|\"[^\"]*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|\w+|\s+|.", re.DOTALL
)
# Keywords of writes, and quotes: a lone quote is the start of an unterminated string.
_NOT_IN_QUERY: Final = frozenset(
    ("into", "insert", "update", "delete", "merge", "create", "'", '"', "`")
)
_COMMAND: Final = "COMMAND"
_DATA_VERB: Final = re.compile(r"\b(?:create|insert|merge|update|select|with)\b", re.IGNORECASE)
_NON_DATA_VERB: Final = re.compile(
    r"\b(?:grant|revoke|set|use|function|procedure|trigger|index|role|user|schema|database|type"
    r"|extension|sequence|policy|server|stage|pipe|task|stream|warehouse|macro|package)\b",
    re.IGNORECASE,
)
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")


class UnreadableSql(LumosError):
    """A SQL file that cannot be read at all."""


class ModelName(NamedTuple):
    """The table name of a query file; `path` is the name qualified with all of its folders."""

    name: tuple[str, ...]
    path: tuple[str, ...]

    @property
    def spellings(self) -> Iterator[tuple[str, ...]]:
        """The possible names of the table, longest first."""
        for start in range(len(self.path) - len(self.name) + 1):
            yield self.path[start:]


class SqlFile(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a file, and its SQL with templates rendered.

    `name` is its name in reports, `table` the table that a file with a single query creates.
    """

    name: str
    text: str
    sql: str
    table: tuple[str, ...]
    problems: tuple[LineageProblem, ...] = ()

    @property
    def reporter(self) -> str:
        return f"sql:{self.name}"


def read_sql(file: Path, *, name: str) -> SqlFile:
    """Read a SQL file; raises UnreadableSql."""
    try:
        with file.open("rb") as stream:
            content = stream.read(_MAX_BYTES + 1)
    except OSError as problem:
        raise UnreadableSql(f"The file cannot be read: {problem.strerror or problem}.") from None
    if len(content) > _MAX_BYTES:
        raise UnreadableSql(f"The file is larger than {_MAX_BYTES // 1024**2} MB. Split it.")
    return parse_sql_file(_decode(content), name=name)


def model_name(file: str, template: NameTemplate | None = None) -> ModelName:
    """The table name of a file with a single query, from its path alone.

    A template that matches the path decides. Otherwise it is the file's stem, or the folder's name
    if the stem is generic, below all folders.
    """
    path = file.replace("\\", "/")
    outside, _, inside = path.rpartition("//")
    if template is not None and (parts := template.name_of(inside)) is not None:
        name = tuple(part.lower() for part in parts)
        return ModelName(name, name)
    *folders, last = (part for part in inside.split("/") if part)
    stem = _EXTENSION.sub("", last)
    if stem.lower() in _GENERIC_STEMS and folders:
        stem = folders.pop()
    parent_parts = [part for part in outside.split("/") if part]
    name = _parts(stem) or (file,)
    return ModelName(name, (*_parts(".".join((*parent_parts, *folders))), *name))


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.lower() for part in text.split(".") if part)


def tables_in_from(sql: str) -> set[tuple[str, ...]]:
    """Table names after FROM and JOIN, in lower case, without parsing the text."""
    names = (re.sub(r'[`"\[\]]', "", found).lower() for found in _READ_TABLE.findall(sql))
    return {tuple(name.split(".")) for name in names}


def parse_sql_file(text: str, *, name: str, table: tuple[str, ...] | None = None) -> SqlFile:
    """Parse the text of a SQL file; `table` is what it creates if it is a single query."""
    table = table or model_name(name).name
    sql, problems = text, []
    if jinja.is_template(text):
        template = jinja.render_template(text, this=".".join(f'"{part}"' for part in table))
        sql = template.text
        problems = [
            LineageProblem(
                place=name,
                line=each.line,
                reason=f"Unknown value of {each.text}: it is defined in the dbt project. Ingest "
                "the project's target/manifest.json for exact lineage.",
                severity="remark",
            )
            for each in template.gaps
        ]
    return SqlFile(name=name, text=text, sql=sql, table=table, problems=tuple(problems))


def _decode(content: bytes) -> str:
    if content.startswith(_UTF_16):
        return content.decode("utf-16", errors="replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        # Names and keywords survive a wrong encoding; only special characters in strings are lost.
        return content.decode("latin-1")


def create_statement(file: SqlFile, dialect: str | None) -> str | None:
    """Return the query of a file, like a dbt model, as a CREATE TABLE statement; else None.

    Line numbers do not change.
    """
    if not _is_query(file.sql):
        return None
    parsed_dialect = find_dialect(dialect)
    names = (
        exp.to_identifier(part, quoted=True).sql(dialect=parsed_dialect) for part in file.table
    )
    return f"CREATE TABLE {'.'.join(names)} AS {file.sql}"


def _is_query(sql: str) -> bool:
    """Whether a text is a single SELECT that writes nothing, without parsing it."""
    depth = 0
    has_begun = has_ended = False
    for token in _TOKEN.finditer(sql):
        text = token.group()
        if text.startswith(("--", "/*")) or text.isspace():
            continue
        word = text.lower()
        if not has_begun and word not in ("select", "with"):
            return False
        has_begun = True
        if has_ended:
            return False
        depth += (text == "(") - (text == ")")
        has_ended = text == ";"
        if depth == 0 and word in _NOT_IN_QUERY:
            return False
    return has_begun


def report_sql_file(
    file: SqlFile,
    script: ScriptLineage,
    *,
    platform: str | None = None,
    text: SqlText | None = None,
) -> ReportedLineage:
    """Report the lineage of a SQL file from its analysed script; `text` is what was analysed."""
    lineage = report_script(script, reporter=file.reporter, platform=platform, text=text)
    edges = tuple(edge for edge in lineage.edges if not _is_unknown(edge.upstream, edge.downstream))
    return msgspec.structs.replace(
        lineage,
        edges=edges,
        scripts=tuple(map(_drop_unknown_tables, lineage.scripts)) if edges else (),
        unparsed=tuple(map(_drop_unknown_names, lineage.unparsed)),
        descriptions=tuple(_descriptions(file, script, platform)),
        problems=(*file.problems, *lineage.problems),
        written=_analysed_targets(file, script, platform),
    )


def _analysed_targets(
    file: SqlFile, script: ScriptLineage, platform: str | None
) -> tuple[TableName, ...] | None:
    """The tables that analysed statements write; None if all statements were analysed."""
    lines = file.sql.splitlines()
    analysed = {
        each.number
        for each in script.statements
        if each.kind != _COMMAND or not _moves_data(lines, each.line)
    }
    failed = {each.statement for each in script.unresolved if each.severity == "error"}
    if failed | {each.number for each in script.statements} <= analysed:
        return None
    return tuple(TableName(parts=write.table, platform=platform) for write in script.writes)


def _moves_data(lines: Sequence[str], line: int) -> bool:
    """Whether a statement that sqlglot only parses as a COMMAND moves data."""
    text = lines[line - 1] if line <= len(lines) else ""
    return _DATA_VERB.search(text) is not None and _NON_DATA_VERB.search(text) is None


def _drop_unknown_tables(script: ReportedScript) -> ReportedScript:
    """Remove tables whose names are unknown because a template sets them."""
    tables = tuple(each for each in script.tables if not _is_unknown(each[1]))
    return msgspec.structs.replace(script, tables=tables)


def _drop_unknown_names(statement: ReportedUnparsedStatement) -> ReportedUnparsedStatement:
    return msgspec.structs.replace(
        statement,
        reads=tuple(each for each in statement.reads if not _is_unknown(each)),
        writes=tuple(each for each in statement.writes if not _is_unknown(each)),
    )


def _is_unknown(*tables: DatasetReference) -> bool:
    return any(isinstance(each, TableName) and jinja.UNKNOWN_NAME in each.parts for each in tables)


def _descriptions(
    file: SqlFile, script: ScriptLineage, platform: str | None
) -> Iterator[ReportedAnnotations]:
    """Annotations from the comments above statements that write tables.

    The header of a file describes its only table. With several tables it only gives owner and SLA,
    and a comment directly above the first statement belongs to that statement.
    """
    header_by_table: dict[tuple[str, ...], HeaderComment] = {}
    first: int | None = None
    lines = file.text.split("\n")
    for statement in script.statements:
        statement_header = header_above(lines, statement.line)
        for write in statement.writes:
            first = statement.line if first is None else first
            earlier = header_by_table.get(write.table, HeaderComment())
            header_by_table[write.table] = earlier.over(statement_header)
    if first is None:
        return
    file_comment = header_of(file.text)
    if len(header_by_table) > 1:
        file_comment = file_header(file.text, first)
        file_comment = msgspec.structs.replace(file_comment, description=None, tags=())
    for table, table_header in header_by_table.items():
        table_header = table_header.over(file_comment)
        if not table_header.empty:
            yield ReportedAnnotations(
                dataset=TableName(parts=table, platform=platform),
                description=table_header.description,
                owners=table_header.owners,
                tags=table_header.tags,
                properties={SLA: table_header.sla} if table_header.sla else {},
            )
