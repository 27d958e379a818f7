"""What a revision declares: schemas in files of any kind, and the columns of SQL models."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Final, NamedTuple

import msgspec

from lumos.errors import MissingDependency
from lumos.gate.migrations import apply_migrations, group_of
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
from lumos.lineage.sql_files import UnreadableSql, parse_sql_file
from lumos.model.conversions.sql_table import tables_from_sql
from lumos.model.conversions.sql_type_reader import DIALECT_OF_PLATFORM, GUESSED_DIALECTS
from lumos.model.conversions.sql_types import Dialect
from lumos.model.schema import Schema
from lumos.model.types import UNKNOWN, SchemaSyntaxError, Unknown
from lumos.model.urn import Urn
from lumos.schemas.files import DatasetSchema, UnreadableSchema, decode_text

SQL_SUFFIX: Final = ".sql"
SUFFIXES: Final = (*SCHEMA_SUFFIXES, SQL_SUFFIX)
_CREATES_TABLE: Final = re.compile(r"\bcreate\s+(?:\w+\s+){0,3}?table\b", re.IGNORECASE)
# A name that no model has.
_MODEL: Final = "lumos_gate_model"
_ALL: Final = "*"
# Declarations of these kinds name tables; those that come first know the dataset best.
_TABLE_KINDS: Final[tuple[SchemaKind, ...]] = (
    "schema", "snapshot", "sql", "odcs", "dbt-source", "dbt",
)  # fmt: skip

Files = Iterable[tuple[str, bytes]]


class SqlModel(NamedTuple):
    """A query and the table it creates; `columns` is None if they are not known from the text.

    The table of a file with one query is named after the file.
    """

    name: str
    file: str
    columns: tuple[str, ...] | None


class RevisionDeclarations(NamedTuple):
    """What some files declare, and remarks on files that could not be read.

    `readers` are SQL texts that lineage is read from instead of the files of these paths; files
    with an empty text are left out.
    """

    schemas: tuple[DeclaredSchema, ...] = ()
    models: tuple[SqlModel, ...] = ()
    readers: Mapping[str, str] = {}
    remarks: tuple[str, ...] = ()


def type_dialect(sql_dialect: str | None, *sides: Files) -> Dialect:
    """The dialect of types in DDL and dbt: the given one, or that which knows the most types."""
    known = DIALECT_OF_PLATFORM.get(sql_dialect or "")
    if known is not None:
        return known
    if sql_dialect in ("spark", "databricks"):
        return "hive"
    ddl = [
        (path, data)
        for files in sides
        for path, data in files
        if path.lower().endswith((SQL_SUFFIX, ".yml", ".yaml"))
    ]

    def unknown_types(dialect: Dialect) -> int:
        found = read_declarations(ddl, sql_dialect=sql_dialect, dialect=dialect, models=False)
        return sum(
            isinstance(field.type, Unknown) and field.type != UNKNOWN
            for each in found.schemas
            for field in each.schema.fields
        )

    # PostgreSQL's types are closest to standard SQL.
    order: tuple[Dialect, ...] = ("postgres", *GUESSED_DIALECTS)
    return min(order, key=unknown_types) if ddl else "postgres"


def read_declarations(
    files: Files,
    *,
    sql_dialect: str | None,
    dialect: Dialect,
    models: bool = True,
    unchanged: bool = False,
    protos: Mapping[str, bytes] = NO_FILES,
) -> RevisionDeclarations:
    """Read files of one revision, given by path and content.

    Without `models`, only schemas are read: analysing queries takes most of the time. If the files
    are `unchanged`, only those are read whose schemas queries may need. `protos` are the files that
    .proto files may import.
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
            if (group := group_of(path, text)) is not None:
                migrations.setdefault(group, []).append((path, text))
                continue
            declared = _read_tables(path, text, dialect)
            schemas += declared
            if models and not declared:
                found_models += _read_models(path, text, sql_dialect)
        except (UnreadableSchema, UnreadableSql, MissingDependency) as problem:
            remarks.append(f"Not compared: {_at(path, problem)}")
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
    """The migrations among some files, with the folder that they are applied in."""
    return {
        path: group
        for path, data in files
        if path.lower().endswith(SQL_SUFFIX)
        and (group := group_of(path, data.decode("utf-8", "replace"))) is not None
    }


def _at(path: str, problem: Exception) -> str:
    text = str(problem)
    return text if text.startswith(path) else f"{path}: {text}"


def _read_tables(path: str, text: str, dialect: Dialect) -> list[DeclaredSchema]:
    """The tables that CREATE TABLE statements with columns declare."""
    if _CREATES_TABLE.search(text) is None:
        return []
    try:
        tables = tables_from_sql(text, dialect)
    except SchemaSyntaxError:
        # Statements that lineage can still read, such as CREATE TABLE AS.
        return []
    return [
        DeclaredSchema(table_urn(table.path), table.schema, None, path, "sql")
        for table in tables
        if table.schema.fields
    ]


def _read_models(path: str, text: str, dialect: str | None) -> list[SqlModel]:
    """The model of a file that is a single query, or the views and tables that it creates."""
    parsed = parse_sql_file(text, name=path)
    script = analyse(parsed.sql, dialect=dialect)
    kinds = [each.kind for each in script.statements]
    if kinds == ["SELECT"]:
        query = parsed.sql.rstrip().rstrip(";")
        written = analyse(f"CREATE VIEW {_MODEL} AS\n{query}", dialect=dialect).writes
        columns = next((each.columns for each in written if each.table[-1] == _MODEL), ())
        return [SqlModel(PurePosixPath(path).stem, path, _known(columns))]
    return [
        SqlModel(write.table[-1], path, _known(write.columns))
        for statement in script.statements
        for write in statement.writes
        if write.is_view or statement.kind in ("CREATE_TABLE", "SELECT_INTO")
    ]


def _known(columns: tuple[str, ...]) -> tuple[str, ...] | None:
    return columns if columns and _ALL not in columns else None


def align_names(
    *sides: Iterable[DeclaredSchema], known: Callable[[tuple[str, ...]], str | None]
) -> tuple[tuple[DeclaredSchema, ...], ...]:
    """The declarations, those of one table under one URN.

    A contract, DDL and dbt may declare the same table with or without its schema and database.
    `known` finds a dataset that is known elsewhere by the end of its path.
    """
    urns: dict[str, str] = {}
    declared = sorted(
        {(_rank(each.kind), each.urn) for side in sides for each in side}, key=lambda each: each
    )
    by_name: dict[str, list[str]] = {}
    for rank, urn in declared:
        if urn in urns:
            continue
        path = _path(urn)
        same = by_name.setdefault(path[-1], [])
        found = None
        if rank >= _rank("sql"):
            found = known(Urn.parse(urn).path) if rank < len(_TABLE_KINDS) else None
            similar = [each for each in same if _is_end(path, _path(each))]
            if found is None and len(similar) == 1 and rank < len(_TABLE_KINDS):
                found = similar[0]
        urns[urn] = found or urn
        if found is None or found not in same:
            same.append(urns[urn])
    return tuple(tuple(each._replace(urn=urns[each.urn]) for each in side) for side in sides)


def _rank(kind: SchemaKind) -> int:
    return _TABLE_KINDS.index(kind) if kind in _TABLE_KINDS else len(_TABLE_KINDS)


def _path(urn: str) -> tuple[str, ...]:
    return tuple(part.lower() for part in Urn.parse(urn).path)


def _is_end(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    short, long = sorted((one, other), key=len)
    return long[-len(short) :] == short


def shadowed_names(schemas: Iterable[DeclaredSchema]) -> frozenset[str]:
    """Messages with the name of a table: in SQL, the name means the table."""
    schemas = list(schemas)
    tables = {_path(each.urn)[-1] for each in schemas if each.kind in _TABLE_KINDS}
    return frozenset(
        each.urn
        for each in schemas
        if each.kind not in _TABLE_KINDS and _path(each.urn)[-1] in tables
    )


class ComparedSchemas(NamedTuple):
    """Schemas of one kind on both sides, by URN."""

    before: dict[str, DatasetSchema]
    after: dict[str, DatasetSchema]


def pair_declarations(
    before: Iterable[DeclaredSchema], after: Iterable[DeclaredSchema]
) -> tuple[ComparedSchemas, ...]:
    """The declarations of both sides by kind, since several kinds may declare one dataset.

    Of incomplete declarations only the columns on both sides are compared, and their types only if
    both give one.
    """
    sides: dict[SchemaKind, tuple[dict[str, DeclaredSchema], dict[str, DeclaredSchema]]] = {}
    for at, side in enumerate((before, after)):
        for each in side:
            sides.setdefault(each.kind, ({}, {}))[at][each.urn] = each
    return tuple(_pair(kind, old, new) for kind, (old, new) in sides.items())


def _pair(
    kind: SchemaKind, old: Mapping[str, DeclaredSchema], new: Mapping[str, DeclaredSchema]
) -> ComparedSchemas:
    before: dict[str, DatasetSchema] = {}
    after: dict[str, DatasetSchema] = {}
    for urn in {**old, **new}:
        one, other = old.get(urn), new.get(urn)
        if one is not None and other is not None:
            first, second = one.schema, other.schema
            if not (one.complete and other.complete):
                first, second = _shared(first, second)
            before[urn] = DatasetSchema(urn=urn, schema=first, format=one.format)
            after[urn] = DatasetSchema(urn=urn, schema=second, format=other.format)
        elif kind != "dbt":
            # A model exists without its entry in schema.yml; its SQL file decides.
            for each, side in ((one, before), (other, after)):
                if each is not None and each.complete:
                    side[urn] = DatasetSchema(urn=urn, schema=each.schema, format=each.format)
    return ComparedSchemas(before, after)


def _shared(before: Schema, after: Schema) -> tuple[Schema, Schema]:
    names = {field.name for field in before.fields} & {field.name for field in after.fields}
    untyped = {
        field.name for field in (*before.fields, *after.fields) if isinstance(field.type, Unknown)
    }

    def reduced(schema: Schema) -> Schema:
        kept = (each for each in schema.fields if each.name in names)
        return Schema(
            fields=tuple(
                msgspec.structs.replace(
                    each,
                    type=UNKNOWN if each.name in untyped else each.type,
                    nullable=True,
                    key=False,
                )
                # The order of documented columns says nothing.
                for each in sorted(kept, key=lambda field: field.name)
            )
        )

    return reduced(before), reduced(after)
