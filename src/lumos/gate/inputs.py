"""The declarations of a revision: schemas in files of any kind, and columns of SQL models."""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Final, NamedTuple

import msgspec

from lumos.errors import MissingDependency, UnknownName
from lumos.gate.migrations import apply_migrations, migration_folder
from lumos.gate.schema_files import (
    NO_FILES,
    DeclaredSchema,
    SchemaKind,
    is_needed_unchanged,
    read_schema_file,
    table_urn,
)
from lumos.gate.schema_files import (
    SUFFIXES as SCHEMA_SUFFIXES,
)
from lumos.lineage.sql.analysis import analyse
from lumos.lineage.sql.dialects import dialect_label, find_dialect
from lumos.lineage.sql.templates import Macros
from lumos.lineage.sql_files import UnreadableSql, parse_sql_file
from lumos.model.conversions.sql_table import tables_from_sql
from lumos.model.conversions.sql_type_reader import DIALECT_OF_PLATFORM, GUESSED_DIALECTS
from lumos.model.conversions.sql_types import Dialect
from lumos.model.schema import Schema
from lumos.model.types import UNKNOWN, SchemaSyntaxError, Unknown
from lumos.model.urn import Urn
from lumos.schemas.files import DatasetSchema, UnreadableSchema, decode_text
from lumos.schemas.git_revisions import GitRepository

SQL_SUFFIX: Final = ".sql"
SUFFIXES: Final = (*SCHEMA_SUFFIXES, SQL_SUFFIX)
_CREATES_TABLE: Final = re.compile(r"\bcreate\s+(?:\w+\s+){0,3}?table\b", re.IGNORECASE)
# The name of a view around a query, which must differ from all names of models.
_VIEW_NAME: Final = "lumos_gate_model"
_ALL_COLUMNS: Final = "*"
_MAX_PROFILE_BYTES: Final = 1_000_000
_QUERY: Final = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*\(?\s*(?:select|with)\b", re.IGNORECASE | re.DOTALL
)
# The adapter of a target in profiles.yml. Its other values may be templates.
_DBT_ADAPTER: Final = re.compile(rb"^\s*type:\s*['\"]?([a-z]+)['\"]?\s*(?:#.*)?$", re.MULTILINE)
# The kinds of declarations that name tables, the most authoritative ones first.
_TABLE_KINDS: Final[tuple[SchemaKind, ...]] = (
    "schema", "snapshot", "sql", "odcs", "dbt-source", "dbt",
)  # fmt: skip

Files = Iterable[tuple[str, bytes]]


class SqlModel(NamedTuple):
    """A query and the table that it creates; `columns` is None if the query does not name them.

    The table of a file with one query is named after the file. `problem` says why the query could
    not be parsed.
    """

    name: str
    file: str
    columns: tuple[str, ...] | None
    problem: str | None = None


class RevisionDeclarations(NamedTuple):
    """Schemas and models in files, and remarks on files that could not be read.

    `readers` has SQL texts by path, from which lineage is read instead of the files; a file with an
    empty text is ignored.
    """

    schemas: tuple[DeclaredSchema, ...] = ()
    models: tuple[SqlModel, ...] = ()
    readers: Mapping[str, str] = {}
    remarks: tuple[str, ...] = ()


def dbt_dialect(repository: GitRepository, commit: str) -> str | None:
    """The SQL dialect of the dbt profiles in a repository, if all of them have the same one."""
    files = repository.files(commit, ("profiles.yml",), max_bytes=_MAX_PROFILE_BYTES)
    adapters = {
        name.decode() for _, data in repository.read(files) for name in _DBT_ADAPTER.findall(data)
    }
    dialects = set()
    for adapter in adapters:
        with suppress(UnknownName):
            dialects.add(dialect_label(find_dialect(adapter)))
    return dialects.pop() if len(dialects) == 1 else None


def type_dialect(sql_dialect: str | None, *sides: Files) -> Dialect:
    """The dialect of types in DDL and dbt: as given, or the one that knows most of the types."""
    given = DIALECT_OF_PLATFORM.get(sql_dialect or "")
    if given is not None:
        return given
    if sql_dialect in ("spark", "databricks"):
        return "hive"
    ddl = [
        (path, data)
        for files in sides
        for path, data in files
        if path.lower().endswith((SQL_SUFFIX, ".yml", ".yaml"))
    ]

    def unknown_types(dialect: Dialect) -> int:
        declarations = read_declarations(
            ddl, sql_dialect=sql_dialect, dialect=dialect, models=False
        )
        return sum(
            isinstance(field.type, Unknown) and field.type != UNKNOWN
            for each in declarations.schemas
            for field in each.schema.fields
        )

    # PostgreSQL's types are closest to standard SQL.
    candidates: tuple[Dialect, ...] = ("postgres", *GUESSED_DIALECTS)
    return min(candidates, key=unknown_types) if ddl else "postgres"


def read_declarations(
    files: Files,
    *,
    sql_dialect: str | None,
    dialect: Dialect,
    models: bool = True,
    unchanged: bool = False,
    protos: Mapping[str, bytes] = NO_FILES,
    macros: Macros | None = None,
) -> RevisionDeclarations:
    """Read files of one revision, given by path and content.

    Without `models`, only schemas are read, since analysing queries takes long. If the files
    are `unchanged`, only schemas that queries may need are read. `protos` are the files that
    .proto files may import, and `macros` the macros of the dbt project.
    """
    schemas: list[DeclaredSchema] = []
    found_models: list[SqlModel] = []
    readers: dict[str, str] = {}
    remarks: list[str] = []
    migrations: dict[str, list[tuple[str, str]]] = {}
    for path, data in files:
        try:
            if not path.lower().endswith(SQL_SUFFIX):
                if not unchanged or is_needed_unchanged(path, data):
                    schemas += read_schema_file(path, data, dialect=dialect, protos=protos)
                continue
            text = decode_text(path, data)
            if (folder := migration_folder(path, text)) is not None:
                migrations.setdefault(folder, []).append((path, text))
                continue
            declared = _read_tables(path, text, dialect)
            schemas += declared
            if models and not declared:
                found_models += _read_models(path, text, sql_dialect, macros)
        except (UnreadableSchema, UnreadableSql, MissingDependency) as problem:
            prefix = "" if str(problem).startswith(path) else f"{path}: "
            remarks.append(f"Not compared: {prefix}{problem}")
    for texts in migrations.values():
        result = apply_migrations(texts, dialect=dialect)
        schemas += (
            DeclaredSchema(table_urn(table.path), table.schema, None, file, "sql")
            for table, file in result.tables
            if table.schema.fields
        )
        readers |= {path: "" for path, _ in texts} | result.readers
        remarks += result.remarks
    return RevisionDeclarations(tuple(schemas), tuple(found_models), readers, tuple(remarks))


def migration_paths(files: Files) -> dict[str, str]:
    """The paths of the migrations among `files`, each with the folder of its migrations."""
    return {
        path: folder
        for path, data in files
        if path.lower().endswith(SQL_SUFFIX)
        and (folder := migration_folder(path, data.decode("utf-8", "replace"))) is not None
    }


def _read_tables(path: str, text: str, dialect: Dialect) -> list[DeclaredSchema]:
    """The tables that CREATE TABLE statements with columns declare."""
    if _CREATES_TABLE.search(text) is None:
        return []
    try:
        tables = tables_from_sql(text, dialect)
    except SchemaSyntaxError:
        # For example CREATE TABLE AS, which lineage can read.
        return []
    return [
        DeclaredSchema(table_urn(table.path), table.schema, None, path, "sql")
        for table in tables
        if table.schema.fields
    ]


def _read_models(
    path: str, text: str, dialect: str | None, macros: Macros | None
) -> list[SqlModel]:
    """The model of a file that is a single query, or the views and tables that it creates."""
    parsed = parse_sql_file(text, name=path, macros=macros)
    script = analyse(parsed.sql, dialect=dialect)
    kinds = [each.kind for each in script.statements]
    if script.unparsed and not kinds and _QUERY.match(parsed.sql):
        # The model still exists, with unknown columns.
        problems = [each for each in script.unresolved if each.severity == "error"]
        first = problems[0] if problems else None
        problem = "it cannot be parsed" if first is None else f"line {first.line}: {first.reason}"
        return [SqlModel(PurePosixPath(path).stem, path, None, problem)]
    if kinds == ["SELECT"]:
        query = parsed.sql.rstrip().rstrip(";")
        written = analyse(f"CREATE VIEW {_VIEW_NAME} AS\n{query}", dialect=dialect).writes
        columns = next((each.columns for each in written if each.table[-1] == _VIEW_NAME), ())
        return [SqlModel(PurePosixPath(path).stem, path, _known_columns(columns))]
    return [
        SqlModel(write.table[-1], path, _known_columns(write.columns))
        for statement in script.statements
        for write in statement.writes
        if write.is_view or statement.kind in ("CREATE_TABLE", "SELECT_INTO")
    ]


def _known_columns(columns: tuple[str, ...]) -> tuple[str, ...] | None:
    return columns if columns and _ALL_COLUMNS not in columns else None


def align_names(
    *sides: Iterable[DeclaredSchema], find_known: Callable[[tuple[str, ...]], str | None]
) -> tuple[tuple[DeclaredSchema, ...], ...]:
    """Give all declarations of a table the same URN.

    A contract, DDL and dbt may declare the same table with or without its schema and database.
    `find_known` returns the URN of a known dataset by the end of its path, or None.
    """
    urns: dict[str, str] = {}
    declared = sorted({(_rank(each.kind), each.urn) for side in sides for each in side})
    by_name: dict[str, list[str]] = {}
    for rank, urn in declared:
        if urn in urns:
            continue
        path = _path(urn)
        urns_of_name = by_name.setdefault(path[-1], [])
        known_urn = None
        if rank >= _rank("sql"):
            known_urn = find_known(Urn.parse(urn).path) if rank < len(_TABLE_KINDS) else None
            similar = [each for each in urns_of_name if _is_suffix(path, _path(each))]
            if known_urn is None and len(similar) == 1 and rank < len(_TABLE_KINDS):
                known_urn = similar[0]
        urns[urn] = known_urn or urn
        if known_urn is None or known_urn not in urns_of_name:
            urns_of_name.append(urns[urn])
    return tuple(tuple(each._replace(urn=urns[each.urn]) for each in side) for side in sides)


def _rank(kind: SchemaKind) -> int:
    return _TABLE_KINDS.index(kind) if kind in _TABLE_KINDS else len(_TABLE_KINDS)


def _path(urn: str) -> tuple[str, ...]:
    return tuple(part.lower() for part in Urn.parse(urn).path)


def _is_suffix(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    shorter, longer = sorted((first, second), key=len)
    return longer[-len(shorter) :] == shorter


def shadowed_names(schemas: Iterable[DeclaredSchema]) -> frozenset[str]:
    """URNs of messages that have the name of a table: in SQL, the name refers to the table."""
    schemas = list(schemas)
    tables = {_path(each.urn)[-1] for each in schemas if each.kind in _TABLE_KINDS}
    return frozenset(
        each.urn
        for each in schemas
        if each.kind not in _TABLE_KINDS and _path(each.urn)[-1] in tables
    )


class ComparedSchemas(NamedTuple):
    """Schemas of one kind in both revisions, by URN."""

    before: dict[str, DatasetSchema]
    after: dict[str, DatasetSchema]


def pair_declarations(
    before: Iterable[DeclaredSchema], after: Iterable[DeclaredSchema]
) -> tuple[ComparedSchemas, ...]:
    """Pair the declarations of both revisions, by kind: several kinds may declare one dataset.

    If a declaration is incomplete, only columns that both revisions have are compared, and types
    only if both revisions declare one.
    """
    sides: dict[SchemaKind, tuple[dict[str, DeclaredSchema], dict[str, DeclaredSchema]]] = {}
    for index, side in enumerate((before, after)):
        for each in side:
            sides.setdefault(each.kind, ({}, {}))[index][each.urn] = each
    return tuple(_pair(kind, old, new) for kind, (old, new) in sides.items())


def _pair(
    kind: SchemaKind, old: Mapping[str, DeclaredSchema], new: Mapping[str, DeclaredSchema]
) -> ComparedSchemas:
    before: dict[str, DatasetSchema] = {}
    after: dict[str, DatasetSchema] = {}
    for urn in {**old, **new}:
        declared_before, declared_after = old.get(urn), new.get(urn)
        if declared_before is not None and declared_after is not None:
            first, second = declared_before.schema, declared_after.schema
            if not (declared_before.complete and declared_after.complete):
                first, second = _shared_columns(first, second)
            before[urn] = DatasetSchema(urn=urn, schema=first, format=declared_before.format)
            after[urn] = DatasetSchema(urn=urn, schema=second, format=declared_after.format)
        elif kind != "dbt":
            # The SQL file of a model decides whether it exists, not its entry in schema.yml.
            for each, side in ((declared_before, before), (declared_after, after)):
                if each is not None and each.complete:
                    side[urn] = DatasetSchema(urn=urn, schema=each.schema, format=each.format)
    return ComparedSchemas(before, after)


def _shared_columns(before: Schema, after: Schema) -> tuple[Schema, Schema]:
    names = {field.name for field in before.fields} & {field.name for field in after.fields}
    untyped = {
        field.name for field in (*before.fields, *after.fields) if isinstance(field.type, Unknown)
    }

    def reduced(schema: Schema) -> Schema:
        shared = (each for each in schema.fields if each.name in names)
        return Schema(
            fields=tuple(
                msgspec.structs.replace(
                    each,
                    type=UNKNOWN if each.name in untyped else each.type,
                    nullable=True,
                    key=False,
                )
                # Documented columns have no meaningful order.
                for each in sorted(shared, key=lambda field: field.name)
            )
        )

    return reduced(before), reduced(after)
