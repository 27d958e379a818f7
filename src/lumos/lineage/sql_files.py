"""Files of SQL: what each one says, with its comments, as a reporter of its own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from lumos.errors import LumosError
from lumos.lineage import jinja
from lumos.lineage.comments import SLA, Header, header_above, header_of
from lumos.lineage.reported import Described, Problem, Reported, ReportedEdge, TableName
from lumos.lineage.sql import Script, Statement, TableWrite, reported

ENDINGS: Final = (".sql", ".ddl", ".hql", ".bq", ".bteq", ".psql", ".tsql", ".pgsql")
_MAX_BYTES: Final = 64 * 1024**2
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")


class UnreadableSql(LumosError):
    """A file of SQL that cannot be read at all."""


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


def sql_of(text: str, *, name: str) -> SqlFile:
    """A text as a file of SQL."""
    stem = name.replace("\\", "/").rpartition("/")[2].partition(".sql")[0]
    table = tuple(part.lower() for part in stem.split(".") if part) or (name,)
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


def is_model(script: Script) -> bool:
    """Whether a script is one query and writes nothing, as the models of dbt."""
    queries = [statement for statement in script.statements if statement.reads]
    return len(queries) == 1 and not script.writes


def report(file: SqlFile, script: Script, *, platform: str | None = None) -> Reported:
    """What a file says, given what its SQL says."""
    if is_model(script):
        script = as_model(script, file.table)
    said = reported(script, reporter=file.reporter, platform=platform)
    return msgspec.structs.replace(
        said,
        edges=tuple(edge for edge in said.edges if not _is_unknown(edge)),
        descriptions=tuple(_descriptions(file, script, platform)),
        problems=(*file.problems, *said.problems),
    )


def as_model(script: Script, table: tuple[str, ...]) -> Script:
    """The script as if its query made a table."""
    statements = tuple(
        msgspec.structs.replace(each, writes=(_write(script, each, table),)) if each.reads else each
        for each in script.statements
    )
    edges = tuple(
        msgspec.structs.replace(edge, to_table=table) if edge.to_table is None else edge
        for edge in script.edges
    )
    return msgspec.structs.replace(script, statements=statements, edges=edges)


def _write(script: Script, statement: Statement, table: tuple[str, ...]) -> TableWrite:
    columns = dict.fromkeys(
        edge.to_column
        for edge in script.edges
        if edge.to_table is None and edge.usage is None and edge.to_column is not None
    )
    sources = tuple(read.table for read in statement.reads)
    return TableWrite(table=table, columns=tuple(columns), sources=sources)


def _is_unknown(edge: ReportedEdge) -> bool:
    ends = (edge.upstream, edge.downstream)
    return any(isinstance(end, TableName) and jinja.UNKNOWN in end.parts for end in ends)


def _descriptions(file: SqlFile, script: Script, platform: str | None) -> Iterator[Described]:
    """What comments tell of the tables that are written.

    The head of the file is about its only table; of several, it names the owner and the SLA.
    """
    head = header_of(file.text)
    several = len(script.writes) > 1
    told: dict[tuple[str, ...], Header] = {}
    for statement in script.statements:
        above = header_above(file.text, statement.line)
        for write in statement.writes:
            told[write.table] = told.get(write.table, Header()).over(above)
    for table, header in told.items():
        whole = msgspec.structs.replace(head, description=None, tags=()) if several else head
        header = header.over(whole)
        if not header.empty:
            yield Described(
                dataset=TableName(parts=table, platform=platform),
                description=header.description,
                owners=header.owners,
                tags=header.tags,
                properties={SLA: header.sla} if header.sla else {},
            )
