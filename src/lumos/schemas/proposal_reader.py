"""Reads the schema that somebody proposes, in whatever form it is written."""

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args

import msgspec

from lumos.errors import UnknownName
from lumos.model.conversions.avro import schema_from_avro, schema_to_avro
from lumos.model.conversions.json_schema import schema_from_json_schema, schema_to_json_schema
from lumos.model.conversions.sql_table import SqlTable, rendered_in_sql, tables_from_sql
from lumos.model.conversions.sql_type_reader import DIALECT_OF_PLATFORM, GUESSED_DIALECTS
from lumos.model.conversions.sql_types import Dialect
from lumos.model.schema import Field, Schema, parse_schema
from lumos.model.type_path import TOO_DEEP, TOO_LARGE
from lumos.model.types import MAX_DEPTH, UNKNOWN, SchemaSyntaxError, Unknown
from lumos.schemas.dbt_models import Model, models_from_dbt
from lumos.schemas.errors import UnreadableSchema
from lumos.schemas.proposals import Form, unknown_types
from lumos.schemas.texts import parsed_text, read_text, refuse_repeated
from lumos.schemas.vague_types import (
    Vague,
    nothing_is_vague,
    precise_numbers,
    vague_in_hive,
    vague_in_json_schema,
    vague_in_postgres,
    vague_in_snowflake,
)

Kind: TypeAlias = Literal["lumos", "json-schema", "avro", "sql", "dbt", "parquet"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
Named = TypeVar("Named", SqlTable, Model)
DIALECTS: Final[tuple[Dialect, ...]] = get_args(Dialect)

_ENDINGS: Final[dict[str, Kind]] = {
    ".schema": "lumos",
    ".avsc": "avro",
    ".sql": "sql",
    ".ddl": "sql",
    ".yml": "dbt",
    ".yaml": "dbt",
    ".parquet": "parquet",
    ".parq": "parquet",
    ".pq": "parquet",
}
_CREATE: Final = re.compile(r"\bcreate\b[^;(]*\btable\b", re.IGNORECASE)
_DBT: Final = re.compile(r"^(models|sources|seeds|snapshots)\s*:", re.MULTILINE)
_JSON_SCHEMA_WORDS: Final = frozenset((
    "$schema", "$ref", "$defs", "definitions", "type", "properties", "items", "allOf", "anyOf",
    "oneOf", "enum", "const",
))  # fmt: skip
# Numbers of a size that JSON Schema itself does not have, as OpenAPI writes them.
_SIZED: Final = re.compile(r'"format": "(?:int64|double)"')
_REFERENCE: Final = '"$ref"'
_CUT: Final = ("", TOO_DEEP.name, TOO_LARGE.name)
_DATA: Final = frozenset({".csv", ".tsv", ".psv", ".avro", ".orc", ".jsonl", ".ndjson", ".xlsx"})
_VAGUE: Final[dict[Dialect, Vague]] = {
    "snowflake": vague_in_snowflake,
    "postgres": vague_in_postgres,
    "hive": vague_in_hive,
    "bigquery": nothing_is_vague,
}


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A proposed schema, its form, and how the form would show another schema."""

    kind: Kind
    schema: Schema
    form: Form
    rendered: Callable[[Schema], Schema]
    remarks: tuple[str, ...] = ()


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Whose schema is proposed: which table or model of a file it is, in which dialect."""

    name: str
    platform: str
    model: str | None = None
    dialect: Dialect | None = None


def read_proposal(file: Path, *, kind: Kind | None, wanted: Wanted) -> Proposal:
    """The schema in a file, whose ending or content tells the kind unless it is given."""
    if file.is_dir():
        raise UnreadableSchema(str(file), "this is a folder; name the file of the proposed schema")
    if not file.is_file():
        raise UnreadableSchema(str(file), "there is no such file")
    if kind is None and file.suffix.lower() in _DATA:
        raise UnreadableSchema(
            str(file),
            "this is data, not a schema. A proposal is a JSON Schema, an Avro schema (.avsc), SQL, "
            "a dbt schema.yml, a Parquet file or Lumos text (.schema); --as says which",
        )
    kind = kind or kind_of(file)
    if kind == "parquet":
        return _checked(file, _parquet(file))
    text = read_text(file)
    match kind:
        case "lumos":
            proposal = _lumos(file, text)
        case "json-schema" | "avro":
            proposal = _json(file, text, kind)
        case "sql":
            proposal = _sql(file, text, wanted)
        case "dbt":
            proposal = _dbt(file, text, wanted)
    return _checked(file, proposal)


def kind_of(file: Path) -> Kind:
    """What a file is by its ending, or else by how it begins."""
    named = _ENDINGS.get(file.suffix.lower())
    if named is not None:
        return named
    with file.open("rb") as stream:
        if stream.read(4) == b"PAR1":
            return "parquet"
    text = read_text(file)
    if file.suffix.lower() == ".json" or text.lstrip()[:1] in ("{", "["):
        return "avro" if _is_avro(_parsed_json(file, text)) else "json-schema"
    if _CREATE.search(text):
        return "sql"
    return "dbt" if _DBT.search(text) else "lumos"


def _checked(file: Path, proposal: Proposal) -> Proposal:
    refuse_repeated(str(file), proposal.schema)
    if not proposal.schema.fields:
        raise UnreadableSchema(str(file), "it names no field")
    cut = [f.name for f in proposal.schema.fields if "UNKNOWN('too deep')" in f.type.text]
    if not cut:
        return proposal
    remark = f"{cut[0]} nests deeper than {MAX_DEPTH} levels and is compared down to there only"
    return msgspec.structs.replace(proposal, remarks=(*proposal.remarks, remark))


def _lumos(file: Path, text: str) -> Proposal:
    return Proposal(
        kind="lumos",
        schema=parsed_text(str(file), text),
        form=Form(),
        rendered=lambda current: parse_schema(str(current)),
    )


def _parquet(file: Path) -> Proposal:
    # Arrow is slow to import, and only this form needs it.
    from lumos.formats.interface import UnreadableFile
    from lumos.formats.parquet import Parquet
    from lumos.storage import storage_of

    try:
        with storage_of(str(file)).open(str(file.absolute())) as opened:
            schema = _without_words(Parquet().read(opened).schema)
    except UnreadableFile as problem:
        raise UnreadableSchema(str(file), problem.reason) from None
    return Proposal(
        kind="parquet",
        schema=schema,
        form=Form(has_partitions=False),
        rendered=_without_words,
    )


def _without_words(current: Schema) -> Schema:
    """The schema as files show it: of keys, defaults and descriptions they need not know."""
    return Schema(
        fields=tuple(
            Field(name=field.name, type=field.type, nullable=field.nullable)
            for field in current.fields
        )
    )


def _json(file: Path, text: str, kind: Literal["json-schema", "avro"]) -> Proposal:
    value = _parsed_json(file, text)
    form = Form(ordered=kind == "avro", has_partitions=False)
    if kind == "avro":
        if not isinstance(value, str | dict | list):
            raise UnreadableSchema(str(file), "this is no Avro schema")
        return Proposal(
            kind=kind,
            schema=_known(file, schema_from_avro(value)),
            form=form,
            rendered=lambda current: schema_from_avro(schema_to_avro(current)),
        )
    if not isinstance(value, dict) or _JSON_SCHEMA_WORDS.isdisjoint(value):
        raise UnreadableSchema(
            str(file), "this is neither a JSON Schema nor an Avro schema; --as says what it is"
        )
    return Proposal(
        kind=kind,
        schema=_known(file, schema_from_json_schema(value)),
        form=msgspec.structs.replace(
            form, vague=vague_in_json_schema, vague_in=_precise_columns(value)
        ),
        rendered=lambda current: schema_from_json_schema(schema_to_json_schema(current)),
    )


def _precise_columns(document: dict[str, Any]) -> dict[str, Vague]:
    """The columns whose numbers have a size: nobody writes it of some and forgets it of others."""
    whole = _says_sizes(document)
    properties = document.get("properties")
    return {
        name: precise_numbers
        for name, schema in (properties.items() if isinstance(properties, dict) else ())
        # What a reference leads to may stand anywhere in the document.
        if _says_sizes(schema) or (whole and _REFERENCE in json.dumps(schema))
    }


def _says_sizes(schema: object) -> bool:
    return _SIZED.search(json.dumps(schema)) is not None


def _known(file: Path, schema: Schema) -> Schema:
    """Refuses types that are nowhere defined, with the path to the first of them."""
    for path, name in unknown_types(schema):
        if name.startswith("ref:#"):
            problem = f"the reference {name.removeprefix('ref:')} leads to nothing in this file"
        elif name.startswith("recursive:") and path == "value":
            problem = "this refers to nothing but itself"
        elif name in _CUT or name.startswith(("recursive:", "ref:")):
            continue
        else:
            problem = f"there is no type named '{name}'"
        raise UnreadableSchema(str(file), f"at {path}: {problem}")
    return schema


def _is_avro(value: object) -> bool:
    """Whether JSON of no telling name is an Avro record rather than a JSON Schema."""
    return isinstance(value, dict) and value.get("type") == "record" and "fields" in value


def _parsed_json(file: Path, text: str) -> Any:
    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        if len(built) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise UnreadableSchema(str(file), f"the name '{twice}' stands twice in one object")
        return built

    try:
        return json.loads(text, object_pairs_hook=distinct)
    except json.JSONDecodeError as problem:
        raise UnreadableSchema(
            str(file),
            f"this is not valid JSON: {problem.msg}",
            line=problem.lineno,
            column=problem.colno,
        ) from None
    except RecursionError:
        raise UnreadableSchema(str(file), "this JSON nests too deeply to be a schema") from None


def _sql(file: Path, text: str, wanted: Wanted) -> Proposal:
    def tables(dialect: Dialect) -> SqlTable:
        found = tables_from_sql(text, dialect)
        if not found:
            raise UnreadableSchema(str(file), "it holds no CREATE TABLE statement")
        return _picked(file, "table", found, wanted)

    try:
        dialect = _dialect(wanted, lambda dialect: tables(dialect).schema)
        table = tables(dialect)
    except SchemaSyntaxError as problem:
        raise UnreadableSchema(
            str(file), problem.problem, line=problem.line, column=problem.column
        ) from None
    # Only Hive's statement always tells: elsewhere files or the platform see to partitions.
    told = dialect == "hive" or any(field.partition for field in table.schema.fields)
    return Proposal(
        kind="sql",
        schema=table.schema,
        form=Form(any_case=table.unquoted, vague=_VAGUE[dialect]),
        rendered=lambda current: rendered_in_sql(current, dialect, partitions=told),
    )


def _dbt(file: Path, text: str, wanted: Wanted) -> Proposal:
    def models(dialect: Dialect) -> Model:
        found = models_from_dbt(text, file=str(file), dialect=dialect)
        if not found:
            raise UnreadableSchema(str(file), "it holds no models, seeds, snapshots or sources")
        return _picked(file, "model", found, wanted)

    dialect = _dialect(wanted, lambda dialect: models(dialect).schema)
    model = models(dialect)
    remarks = [f"nested column {name} is not compared" for name in model.nested]
    if not model.enforced:
        remarks.append(
            f"the contract of {model.name} is not enforced: columns that are not listed count as "
            "removed, although dbt may still build them"
        )
    return Proposal(
        kind="dbt",
        schema=model.schema,
        form=Form(ordered=False, any_case=model.unquoted, vague=_VAGUE[dialect]),
        rendered=lambda current: _rendered_in_dbt(current, model, dialect),
        remarks=tuple(remarks),
    )


def _rendered_in_dbt(current: Schema, model: Model, dialect: Dialect) -> Schema:
    untyped = {name.casefold() for name in model.untyped}
    return Schema(
        fields=tuple(
            Field(
                name=field.name,
                type=UNKNOWN if field.name.casefold() in untyped else field.type,
                # Without a contract, a test that is missing allows nothing.
                nullable=field.nullable if model.enforced else True,
                key=field.key and model.has_key,
            )
            for field in rendered_in_sql(current, dialect).fields
        )
    )


def _picked(file: Path, what: str, found: Iterable[Named], wanted: Wanted) -> Named:
    """The one that is asked for, or is called like the dataset, or is the only one."""
    by_name = {each.name.casefold(): each for each in found}
    names = [each.name for each in by_name.values()]
    if wanted.model is not None:
        if wanted.model.casefold() not in by_name:
            raise UnknownName(f"{what} in {file}", wanted.model, names)
        return by_name[wanted.model.casefold()]
    if wanted.name.casefold() in by_name:
        return by_name[wanted.name.casefold()]
    if len(by_name) == 1:
        return next(iter(by_name.values()))
    choice = ", ".join(names)
    raise UnreadableSchema(
        str(file), f"no {what} in it is called '{wanted.name}'; choose with --model from: {choice}"
    )


def _dialect(wanted: Wanted, read: Callable[[Dialect], Schema]) -> Dialect:
    told = wanted.dialect or DIALECT_OF_PLATFORM.get(wanted.platform)
    if told is not None:
        return told
    return min(GUESSED_DIALECTS, key=lambda dialect: _unknown_types(read(dialect)))


def _unknown_types(schema: Schema) -> int:
    return sum(isinstance(field.type, Unknown) for field in schema.fields)
