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
from lumos.model.lineage import UNKNOWN_NAME

EXTENSIONS: Final = (".sql", ".ddl", ".hql", ".bq", ".bteq", ".psql", ".tsql", ".pgsql")
# A table is named after its folder if the file has one of these names.
_GENERIC_STEMS: Final = frozenset(("query", "view", "model", "script", "index", "main"))
_EXTENSION: Final = re.compile(
    rf"(?:{'|'.join(map(re.escape, EXTENSIONS))})(?:\..*)?\Z", re.IGNORECASE
)
_READ_TABLE: Final = re.compile(
    r"\b(?:from|join)\s+([`\"\[]?[\w$-]+[`\"\]]?(?:\.[`\"\[]?[\w$-]+[`\"\]]?)*)", re.IGNORECASE
)
_MAX_BYTES: Final = 64 * 1024**2
MACROS_FOLDER: Final = "macros"
_MAX_MACRO_FILES: Final = 2_000
# Strings, quoted names, comments, words and other characters.
_TOKEN: Final = re.compile(
    r"'(?:[^'\\]|''|\\.)*'|\"[^\"]*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|\w+|\s+|.", re.DOTALL
)
# Keywords of writes, and quotes, since a single quote starts a string that never ends.
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
    """The table name of a query file; `path` is that name, qualified by all folders of the file."""

    name: tuple[str, ...]
    path: tuple[str, ...]

    @property
    def possible_names(self) -> Iterator[tuple[str, ...]]:
        """The names with all, some or no folders, longest first."""
        for start in range(len(self.path) - len(self.name) + 1):
            yield self.path[start:]


class SqlFile(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a file, and its SQL with templates rendered.

    `name` is the file's name in reports, `table` the table that a single query in it creates.
    """

    name: str
    text: str
    sql: str
    table: tuple[str, ...]
    problems: tuple[LineageProblem, ...] = ()

    @property
    def reporter(self) -> str:
        return f"sql:{self.name}"


def read_sql(file: Path, *, name: str, macros: jinja.Macros | None = None) -> SqlFile:
    """Read a SQL file, with the macros of its dbt project; raises UnreadableSql."""
    try:
        with file.open("rb") as stream:
            content = stream.read(_MAX_BYTES + 1)
    except OSError as problem:
        raise UnreadableSql(f"The file cannot be read: {problem.strerror or problem}.") from None
    if len(content) > _MAX_BYTES:
        raise UnreadableSql(f"The file is larger than {_MAX_BYTES // 1024**2} MB. Split it.")
    return parse_sql_file(_decode(content), name=name, macros=macros)


def model_name(file: str, template: NameTemplate | None = None) -> ModelName:
    """The table name of a file with a single query, from its path alone.

    If the template matches the path, it determines the name. Otherwise the table is named after the
    file, or after its folder if the name of the file is generic.
    """
    path = file.replace("\\", "/")
    repository, _, relative = path.rpartition("//")
    if template is not None and (parts := template.name_of(relative)) is not None:
        name = tuple(part.lower() for part in parts)
        return ModelName(name, name)
    *folders, last = (part for part in relative.split("/") if part)
    stem = _EXTENSION.sub("", last)
    if stem.lower() in _GENERIC_STEMS and folders:
        stem = folders.pop()
    repository_folders = [part for part in repository.split("/") if part]
    name = _parts(stem) or (file,)
    return ModelName(name, (*_parts(".".join((*repository_folders, *folders))), *name))


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.lower() for part in text.split(".") if part)


def tables_in_from(sql: str) -> set[tuple[str, ...]]:
    """Table names after FROM and JOIN, in lower case, without parsing the text."""
    names = (re.sub(r'[`"\[\]]', "", name).lower() for name in _READ_TABLE.findall(sql))
    return {tuple(name.split(".")) for name in names}


class ProjectMacros:
    """The macros of dbt projects, read once per project."""

    def __init__(self) -> None:
        self._by_folder: dict[Path, jinja.Macros] = {}

    def of(self, file: Path) -> jinja.Macros:
        """The macros of the project that a file belongs to: the nearest folder with macros."""
        macros: jinja.Macros = {}
        for folder in file.parents:
            if folder in self._by_folder:
                macros = self._by_folder[folder]
                break
            if (folder / MACROS_FOLDER).is_dir():
                macros = jinja.read_macros(_macro_texts(folder / MACROS_FOLDER))
                self._by_folder[folder] = macros
                break
        return self._by_folder.setdefault(file.parent, macros)


def _macro_texts(folder: Path) -> Iterator[str]:
    for file in sorted(folder.rglob("*.sql"))[:_MAX_MACRO_FILES]:
        try:
            if file.is_file() and file.stat().st_size <= jinja.MAX_MACRO_FILE:
                yield _decode(file.read_bytes())
        except OSError:
            # The file itself is reported when its lineage is read; calls of its macros are unknown.
            continue


def is_macro_file(path: str) -> bool:
    """Whether a path lies in the folder for macros of a dbt project."""
    return path.endswith(".sql") and MACROS_FOLDER in path.split("/")[:-1]


def parse_sql_file(
    text: str,
    *,
    name: str,
    table: tuple[str, ...] | None = None,
    macros: jinja.Macros | None = None,
) -> SqlFile:
    """Parse the text of a SQL file; `table` is the table that a single query in it creates."""
    table = table or model_name(name).name
    sql, problems = text, []
    if jinja.is_template(text):
        this = ".".join(f'"{part}"' for part in table)
        template = jinja.render_template(text, this=this, macros=macros or {})
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
        # A wrong encoding only affects special characters, which are rare outside of strings.
        return content.decode("latin-1")


def create_statement(file: SqlFile, dialect: str | None) -> str | None:
    """The single query of a file, such as a dbt model, as a CREATE TABLE statement.

    None if the file has other statements. Line numbers do not change.
    """
    if not _is_query(file.sql):
        return None
    parsed_dialect = find_dialect(dialect)
    names = (
        exp.to_identifier(part, quoted=True).sql(dialect=parsed_dialect) for part in file.table
    )
    return f"CREATE TABLE {'.'.join(names)} AS {file.sql}"


def _is_query(sql: str) -> bool:
    """Whether a text is a single SELECT without INTO, determined without parsing it."""
    depth = 0
    has_started = has_ended = False
    for token in _TOKEN.finditer(sql):
        text = token.group()
        if text.startswith(("--", "/*")) or text.isspace():
            continue
        word = text.lower()
        if not has_started and word not in ("select", "with"):
            return False
        has_started = True
        if has_ended:
            return False
        depth += (text == "(") - (text == ")")
        has_ended = text == ";"
        if depth == 0 and word in _NOT_IN_QUERY:
            return False
    return has_started


def report_sql_file(
    file: SqlFile,
    script: ScriptLineage,
    *,
    text: SqlText | None = None,
) -> ReportedLineage:
    """The reported lineage of a SQL file; `text` is the text that was analysed as `script`."""
    lineage = report_script(script, reporter=file.reporter, text=text)
    edges = tuple(
        edge for edge in lineage.edges if not _has_unknown_name(edge.upstream, edge.downstream)
    )
    return msgspec.structs.replace(
        lineage,
        edges=edges,
        scripts=tuple(map(_drop_unknown_tables, lineage.scripts)) if edges else (),
        unparsed=tuple(map(_drop_unknown_names, lineage.unparsed)),
        annotations=tuple(_annotations(file, script)),
        problems=(*file.problems, *lineage.problems),
        analysed_targets=_analysed_targets(file, script),
    )


def _analysed_targets(file: SqlFile, script: ScriptLineage) -> tuple[TableName, ...] | None:
    """The tables that analysed statements write; None if all statements were analysed."""
    lines = file.sql.splitlines()
    analysed_numbers = {
        each.number
        for each in script.statements
        if each.kind != _COMMAND or not _moves_data(lines, each.line)
    }
    failed_numbers = {each.statement for each in script.unresolved if each.severity == "error"}
    if failed_numbers | {each.number for each in script.statements} <= analysed_numbers:
        return None
    return tuple(TableName(parts=write.table) for write in script.writes)


def _moves_data(lines: Sequence[str], line: int) -> bool:
    """Whether a statement that the parser returned as a raw command moves data."""
    text = lines[line - 1] if line <= len(lines) else ""
    return _DATA_VERB.search(text) is not None and _NON_DATA_VERB.search(text) is None


def _drop_unknown_tables(script: ReportedScript) -> ReportedScript:
    """Remove tables whose names contain unknown template expressions."""
    tables = tuple(each for each in script.tables if not _has_unknown_name(each[1]))
    return msgspec.structs.replace(script, tables=tables)


def _drop_unknown_names(statement: ReportedUnparsedStatement) -> ReportedUnparsedStatement:
    return msgspec.structs.replace(
        statement,
        reads=tuple(each for each in statement.reads if not _has_unknown_name(each)),
        writes=tuple(each for each in statement.writes if not _has_unknown_name(each)),
    )


def _has_unknown_name(*tables: DatasetReference) -> bool:
    return any(isinstance(each, TableName) and UNKNOWN_NAME in each.parts for each in tables)


def _annotations(file: SqlFile, script: ScriptLineage) -> Iterator[ReportedAnnotations]:
    """Annotations of tables, from comments above the statements that write them.

    If a file writes one table, its header describes that table. If it writes several, only the
    owner and the SLA in the header apply to all of them, and a comment directly above the first
    statement belongs to that statement.
    """
    header_by_table: dict[tuple[str, ...], HeaderComment] = {}
    first_line: int | None = None
    lines = file.text.split("\n")
    for statement in script.statements:
        statement_header = header_above(lines, statement.line)
        for write in statement.writes:
            first_line = statement.line if first_line is None else first_line
            earlier_header = header_by_table.get(write.table, HeaderComment())
            header_by_table[write.table] = earlier_header.merge(statement_header)
    if first_line is None:
        return
    file_comment = header_of(file.text)
    if len(header_by_table) > 1:
        file_comment = file_header(file.text, first_line)
        file_comment = msgspec.structs.replace(file_comment, description=None, tags=())
    for table, table_header in header_by_table.items():
        table_header = table_header.merge(file_comment)
        if not table_header.empty:
            yield ReportedAnnotations(
                dataset=TableName(parts=table),
                description=table_header.description,
                owners=table_header.owners,
                tags=table_header.tags,
                properties={SLA: table_header.sla} if table_header.sla else {},
            )
