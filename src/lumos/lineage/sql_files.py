"""Files of SQL: what each one says, with its comments, as a reporter of its own."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from sqlglot import exp

from lumos.config.sql_names import NameTemplate
from lumos.errors import LumosError
from lumos.lineage import jinja
from lumos.lineage.comments import SLA, Header, file_header, header_above, header_of
from lumos.lineage.reported import (
    Described,
    Problem,
    Reference,
    Reported,
    ReportedScript,
    ReportedUnparsed,
    TableName,
)
from lumos.lineage.sql import Script, SqlText, reported
from lumos.lineage.sql.names import dialect_named

ENDINGS: Final = (".sql", ".ddl", ".hql", ".bq", ".bteq", ".psql", ".tsql", ".pgsql")
# Names of files that say nothing about what is in them; the folder is named after the table.
_GENERIC_STEMS: Final = frozenset(("query", "view", "model", "script", "index", "main"))
_EXTENSION: Final = re.compile(
    rf"(?:{'|'.join(map(re.escape, ENDINGS))})(?:\..*)?\Z", re.IGNORECASE
)
_READ_TABLE: Final = re.compile(
    r"\b(?:from|join)\s+([`\"\[]?[\w$-]+[`\"\]]?(?:\.[`\"\[]?[\w$-]+[`\"\]]?)*)", re.IGNORECASE
)
_MAX_BYTES: Final = 64 * 1024**2
# Texts and quoted names, comments, words, and marks; a text that does not end is no query.
_MARKS: Final = re.compile(
    r"'(?:[^'\\]|''|\\.)*'|\"[^\"]*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|\w+|\s+|.", re.DOTALL
)
_NO_QUERY: Final = frozenset(
    ("into", "insert", "update", "delete", "merge", "create", "'", '"', "`")
)
_COMMAND: Final = "COMMAND"
_ABOUT_DATA: Final = re.compile(r"\b(?:create|insert|merge|update|select|with)\b", re.IGNORECASE)
_ABOUT_OTHERS: Final = re.compile(
    r"\b(?:grant|revoke|set|use|function|procedure|trigger|index|role|user|schema|database|type"
    r"|extension|sequence|policy|server|stage|pipe|task|stream|warehouse|macro|package)\b",
    re.IGNORECASE,
)
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")


class UnreadableSql(LumosError):
    """A file of SQL that cannot be read at all."""


class ModelName(NamedTuple):
    """The name of a query's table, and the same with all folders that the file lies in."""

    name: tuple[str, ...]
    path: tuple[str, ...]

    @property
    def spellings(self) -> Iterator[tuple[str, ...]]:
        """What the table may be called, the longest first."""
        for start in range(len(self.path) - len(self.name) + 1):
            yield self.path[start:]


class SqlFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file's text, and the same as plain SQL where it is a template.

    `name` is the file's in reports, `table` the one that a file with nothing but a query makes.
    """

    name: str
    text: str
    sql: str
    table: tuple[str, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def reporter(self) -> str:
        return f"sql:{self.name}"


def read_sql(file: Path, *, name: str) -> SqlFile:
    """A file's SQL; raises UnreadableSql."""
    try:
        with file.open("rb") as stream:
            content = stream.read(_MAX_BYTES + 1)
    except OSError as problem:
        raise UnreadableSql(f"The file cannot be read: {problem.strerror or problem}.") from None
    if len(content) > _MAX_BYTES:
        raise UnreadableSql(f"The file is larger than {_MAX_BYTES // 1024**2} MB. Split it.")
    return sql_of(_decoded(content), name=name)


def model_name(file: str, template: NameTemplate | None = None) -> ModelName:
    """What a file is called that holds nothing but a query, by its path alone.

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
    above = [part for part in outside.split("/") if part]
    name = _parts(stem) or (file,)
    return ModelName(name, (*_parts(".".join((*above, *folders))), *name))


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.lower() for part in text.split(".") if part)


def tables_in_from(sql: str) -> set[tuple[str, ...]]:
    """Names behind FROM and JOIN, in lower case, without parsing the text."""
    names = (re.sub(r'[`"\[\]]', "", found).lower() for found in _READ_TABLE.findall(sql))
    return {tuple(name.split(".")) for name in names}


def sql_of(text: str, *, name: str, table: tuple[str, ...] | None = None) -> SqlFile:
    """A text as a file of SQL; `table` is what it creates if it is nothing but a query."""
    table = table or model_name(name).name
    sql, problems = text, []
    if jinja.is_template(text):
        template = jinja.rendered(text, this=".".join(f'"{part}"' for part in table))
        sql = template.text
        problems = [
            Problem(
                place=name,
                line=each.line,
                reason=f"Only the template's own project can tell what {each.text} stands for.",
                severity="remark",
            )
            for each in template.unknown
        ]
    return SqlFile(name=name, text=text, sql=sql, table=table, problems=tuple(problems))


def _decoded(content: bytes) -> str:
    if content.startswith(_UTF_16):
        return content.decode("utf-16", errors="replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        # Names and keywords are the same in all of these; only odd characters in texts are not.
        return content.decode("latin-1")


def model_of(file: SqlFile, dialect: str | None) -> str | None:
    """A file with nothing but one query, as dbt's models, as SQL that makes the file's table.

    Lines stay as they are. Nothing where the file says itself what it makes.
    """
    if not _is_query(file.sql):
        return None
    spoken = dialect_named(dialect)
    names = (exp.to_identifier(part, quoted=True).sql(dialect=spoken) for part in file.table)
    return f"CREATE TABLE {'.'.join(names)} AS {file.sql}"


def _is_query(sql: str) -> bool:
    """Whether a text is one SELECT that writes nothing, without parsing it."""
    depth = 0
    is_begun = is_ended = False
    for mark in _MARKS.finditer(sql):
        text = mark.group()
        if text.startswith(("--", "/*")) or text.isspace():
            continue
        word = text.lower()
        if not is_begun and word not in ("select", "with"):
            return False
        is_begun = True
        if is_ended:
            return False
        depth += (text == "(") - (text == ")")
        is_ended = text == ";"
        if depth == 0 and word in _NO_QUERY:
            return False
    return is_begun


def report(
    file: SqlFile, script: Script, *, platform: str | None = None, text: SqlText | None = None
) -> Reported:
    """What a file says, given what its SQL says; `text` is what was analysed."""
    said = reported(script, reporter=file.reporter, platform=platform, text=text)
    edges = tuple(edge for edge in said.edges if not _is_unknown(edge.upstream, edge.downstream))
    return msgspec.structs.replace(
        said,
        edges=edges,
        scripts=tuple(map(_known, said.scripts)) if edges else (),
        unparsed=tuple(map(_known_tables, said.unparsed)),
        descriptions=tuple(_descriptions(file, script, platform)),
        problems=(*file.problems, *said.problems),
        written=_written(file, script, platform),
    )


def _written(file: SqlFile, script: Script, platform: str | None) -> tuple[TableName, ...] | None:
    """The tables that are surely told of in full, where some statement is not understood."""
    lines = file.sql.splitlines()
    understood = {
        each.number
        for each in script.statements
        if each.kind != _COMMAND or not _is_about_data(lines, each.line)
    }
    failed = {each.statement for each in script.unresolved if each.severity == "error"}
    if failed | {each.number for each in script.statements} <= understood:
        return None
    return tuple(TableName(parts=write.table, platform=platform) for write in script.writes)


def _is_about_data(lines: Sequence[str], line: int) -> bool:
    """Whether a statement that the parser passes over, as it does SET and GRANT, moves data."""
    text = lines[line - 1] if line <= len(lines) else ""
    return _ABOUT_DATA.search(text) is not None and _ABOUT_OTHERS.search(text) is None


def _known(script: ReportedScript) -> ReportedScript:
    """Without the tables that only the template's project could name."""
    tables = tuple(each for each in script.tables if not _is_unknown(each[1]))
    return msgspec.structs.replace(script, tables=tables)


def _known_tables(statement: ReportedUnparsed) -> ReportedUnparsed:
    return msgspec.structs.replace(
        statement,
        reads=tuple(each for each in statement.reads if not _is_unknown(each)),
        writes=tuple(each for each in statement.writes if not _is_unknown(each)),
    )


def _is_unknown(*tables: Reference) -> bool:
    return any(isinstance(each, TableName) and jinja.UNKNOWN in each.parts for each in tables)


def _descriptions(file: SqlFile, script: Script, platform: str | None) -> Iterator[Described]:
    """What comments tell of the tables that are written.

    The head of the file is about its only table; of several, it names the owner and the SLA, and a
    comment right above the first one is about that one alone.
    """
    told: dict[tuple[str, ...], Header] = {}
    first: int | None = None
    lines = file.text.split("\n")
    for statement in script.statements:
        above = header_above(lines, statement.line)
        for write in statement.writes:
            first = statement.line if first is None else first
            told[write.table] = told.get(write.table, Header()).over(above)
    if first is None:
        return
    head = header_of(file.text)
    if len(told) > 1:
        head = file_header(file.text, first)
        head = msgspec.structs.replace(head, description=None, tags=())
    for table, header in told.items():
        header = header.over(head)
        if not header.empty:
            yield Described(
                dataset=TableName(parts=table, platform=platform),
                description=header.description,
                owners=header.owners,
                tags=header.tags,
                properties={SLA: header.sla} if header.sla else {},
            )
