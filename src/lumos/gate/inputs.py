"""What a revision declares: schema files, Avro, CREATE TABLE, and the columns of SQL models."""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Final, NamedTuple

import msgspec

from lumos.errors import LumosError
from lumos.lineage.sql.analysis import analyse
from lumos.lineage.sql_files import UnreadableSql, parse_sql_file
from lumos.model.conversions.avro import schema_from_avro
from lumos.model.conversions.sql_table import tables_from_sql
from lumos.model.conversions.sql_types import Dialect
from lumos.model.schema import Schema
from lumos.model.types import SchemaSyntaxError
from lumos.model.urn import Urn
from lumos.schemas.files import (
    SCHEMA_SUFFIX,
    UnreadableSchema,
    decode_text,
    name_of_file,
    read_schema,
)

AVRO_SUFFIX: Final = ".avsc"
SQL_SUFFIX: Final = ".sql"
SUFFIXES: Final = (SCHEMA_SUFFIX, AVRO_SUFFIX, SQL_SUFFIX)
_CREATES_TABLE: Final = re.compile(r"\bcreate\s+(?:\w+\s+){0,3}?table\b", re.IGNORECASE)
# A name that no model has.
_MODEL: Final = "lumos_gate_model"
_ALL: Final = "*"


class DeclaredSchema(NamedTuple):
    """The schema of a dataset, and the file that declares it."""

    urn: str
    schema: Schema
    format: str | None
    file: str


class SqlModel(NamedTuple):
    """A file with one query; `columns` is None if they cannot be determined from the text."""

    name: str
    file: str
    columns: tuple[str, ...] | None


class RevisionDeclarations(NamedTuple):
    """What some files declare, and remarks on files that could not be read."""

    schemas: dict[str, DeclaredSchema]
    models: dict[str, SqlModel]
    remarks: tuple[str, ...]


def read_declarations(
    files: Iterable[tuple[str, bytes]],
    *,
    sql_dialect: str | None,
    dialect: Dialect = "postgres",
    models: bool = True,
) -> RevisionDeclarations:
    """Read files of one revision, given by path and content.

    Without `models`, only schemas are read: analysing queries takes most of the time.
    """
    schemas: dict[str, DeclaredSchema] = {}
    found_models: dict[str, SqlModel] = {}
    remarks: list[str] = []
    for path, data in files:
        try:
            if path.lower().endswith(SQL_SUFFIX):
                text = decode_text(path, data)
                declared = _read_tables(path, text, dialect)
                if models and not declared:
                    model = _read_model(path, text, sql_dialect)
                    found_models |= {} if model is None else {model.name: model}
            elif path.lower().endswith(AVRO_SUFFIX):
                declared = [_read_avro(path, data)]
            else:
                declared = [_read_schema_file(path, data)]
        except (UnreadableSchema, UnreadableSql) as problem:
            remarks.append(f"Not compared: {problem}")
            continue
        for each in declared:
            if (other := schemas.get(each.urn)) is not None:
                remarks.append(f"{each.urn} is declared in {other.file} and in {each.file}.")
            schemas[each.urn] = each
    return RevisionDeclarations(schemas, found_models, tuple(remarks))


def _read_schema_file(path: str, data: bytes) -> DeclaredSchema:
    found = read_schema(path, data, called=name_of_file(PurePosixPath(path)))
    urn = found.urn if "://" in found.urn else _urn("file", found.urn.split("/"))
    return DeclaredSchema(urn, found.schema, found.format, path)


def _read_avro(path: str, data: bytes) -> DeclaredSchema:
    try:
        record = msgspec.json.decode(data)
        schema = schema_from_avro(record)
    except (msgspec.DecodeError, LumosError, RecursionError) as problem:
        raise UnreadableSchema(path, f"not a valid Avro schema ({problem})") from None
    name = record.get("name") if isinstance(record, dict) else None
    if not isinstance(name, str) or not name:
        raise UnreadableSchema(path, "the Avro schema has no name")
    namespace = record.get("namespace")
    parts = [*(namespace.split(".") if isinstance(namespace, str) else ()), *name.split(".")]
    return DeclaredSchema(_urn("avro", parts), schema, "avro", path)


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
        DeclaredSchema(_urn("sql", table.name.split(".")), table.schema, None, path)
        for table in tables
        if table.schema.fields
    ]


def _read_model(path: str, text: str, dialect: str | None) -> SqlModel | None:
    """The model of a file that is a single query."""
    parsed = parse_sql_file(text, name=path)
    script = analyse(parsed.sql, dialect=dialect)
    if len(script.statements) != 1 or script.statements[0].kind != "SELECT":
        return None
    query = parsed.sql.rstrip().rstrip(";")
    written = analyse(f"CREATE VIEW {_MODEL} AS\n{query}", dialect=dialect).writes
    columns = next((each.columns for each in written if each.table[-1] == _MODEL), ())
    is_known = bool(columns) and _ALL not in columns
    return SqlModel(PurePosixPath(path).stem, path, columns if is_known else None)


def _urn(platform: str, parts: Iterable[str]) -> str:
    return str(Urn(platform=platform, path=tuple(parts)))
