"""Reads proposed schemas: JSON Schema, Avro, SQL, dbt, Parquet and Lumos text."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from lumos.config.yaml_tree import (
    ConfigNode,
    ConfigPosition,
    ConfigProblem,
    ConfigurationError,
    ListNode,
    MappingNode,
    ScalarNode,
    parse_yaml,
)
from lumos.errors import UnknownName
from lumos.model.conversions.avro import schema_from_avro, schema_to_avro
from lumos.model.conversions.json_schema import schema_from_json_schema, schema_to_json_schema
from lumos.model.conversions.sql_table import SqlTable, rendered_in_sql, tables_from_sql
from lumos.model.conversions.sql_type_reader import DIALECT_OF_PLATFORM, GUESSED_DIALECTS
from lumos.model.conversions.sql_types import Dialect, type_from_sql
from lumos.model.schema import Field, Schema, parse_schema
from lumos.model.type_path import TOO_DEEP, TOO_LARGE
from lumos.model.types import MAX_DEPTH, UNKNOWN, SchemaSyntaxError, Unknown
from lumos.schemas.files import UnreadableSchema, check_unique_fields, parse_schema_text, read_text
from lumos.schemas.proposals import (
    ProposalFormat,
    TypeAmbiguity,
    is_ambiguous_in_hive,
    is_ambiguous_in_json_schema,
    is_ambiguous_in_postgres,
    is_ambiguous_in_snowflake,
    is_ambiguous_with_sized_numbers,
    is_never_ambiguous,
    unknown_types,
)

_NEXT_STEP: Final = "Write the schemas of today as a start: lumos schema export FOLDER"
_MODEL_SECTIONS: Final = ("models", "seeds", "snapshots", "tables")
_TEST_SECTIONS: Final = ("tests", "data_tests")


class DbtModel(NamedTuple):
    """A model, seed, snapshot or source table in a dbt schema.yml, with the columns it lists.

    All columns are listed if the contract is `enforced`. `untyped` columns have no `data_type`, and
    `unquoted` columns have case-insensitive names. `nested` are the names of nested fields, and
    `source` is the name of the source to which a table belongs.
    """

    name: str
    schema: Schema
    enforced: bool
    has_key: bool
    untyped: frozenset[str]
    unquoted: frozenset[str]
    nested: tuple[str, ...]
    source: str | None = None
    tags: tuple[str, ...] = ()
    description: str = ""
    meta: Mapping[str, str] = {}


def models_from_dbt(
    text: str, *, file: str, dialect: Dialect, allow_repeated: bool = False
) -> tuple[DbtModel, ...]:
    """All models in a schema.yml; raises ConfigurationError with file and line.

    With `allow_repeated`, a column may be defined several times; as in dbt, its last definition is
    used.
    """
    root, problems = parse_yaml(
        text, position=ConfigPosition(origin=file, folder=""), environment={}
    )
    if problems:
        raise ConfigurationError(problems)
    return tuple(
        _parse_model(block, dialect, source, allow_repeated=allow_repeated)
        for block, source in _model_blocks(root)
    )


def _model_blocks(
    root: MappingNode, source: str | None = None
) -> Iterator[tuple[MappingNode, str | None]]:
    """Yield the models in a mapping, each with the source to which it belongs, if any."""
    for section in _MODEL_SECTIONS:
        yield from ((block, source) for block in _blocks(root, section) if _text(block, "name"))
    for block in _blocks(root, "sources"):
        yield from _model_blocks(block, _text(block, "name"))


def _parse_model(
    block: MappingNode, dialect: Dialect, source: str | None = None, *, allow_repeated: bool = False
) -> DbtModel:
    fields: dict[str, Field] = {}
    untyped, unquoted, nested = set(), set(), []
    keys = {
        name.casefold()
        for constraint in _blocks(block, "constraints")
        if _text(constraint, "type") == "primary_key"
        for name in _texts(constraint, "columns")
    }
    for column in _blocks(block, "columns"):
        name = _text(column, "name")
        if not name:
            raise _error(column, "A column has no name.")
        if not allow_repeated and (name in fields or name in nested):
            raise _error(column, f"The column '{name}' is defined twice.")
        if "." in name:
            nested.append(name)
            continue
        fields[name] = _parse_field(column, name, dialect, is_key=name.casefold() in keys)
        if not _text(column, "data_type"):
            untyped.add(name)
        if _text(column, "quote").lower() != "true":
            unquoted.add(name)
    config = _block(block, "config")
    contract = _block(config, "contract") or _block(block, "contract")
    return DbtModel(
        name=_text(block, "name"),
        schema=Schema(fields=tuple(fields.values())),
        enforced=contract is not None and _text(contract, "enforced").lower() == "true",
        has_key=any(field.key for field in fields.values()),
        untyped=frozenset(untyped),
        unquoted=frozenset(unquoted),
        nested=tuple(nested),
        source=source,
        tags=(*_tags(block), *(() if config is None else _tags(config))),
        description=_text(block, "description"),
        meta={
            key: text
            for meta in (_block(block, "meta"), _block(config, "meta"))
            if meta is not None
            for key in meta.entries
            if (text := ", ".join(_texts(meta, key)) or _text(meta, key))
        },
    )


def _tags(block: MappingNode) -> tuple[str, ...]:
    return tuple(_texts(block, "tags")) or ((tag,) if (tag := _text(block, "tags")) else ())


def _parse_field(column: MappingNode, name: str, dialect: Dialect, *, is_key: bool) -> Field:
    constraints = {_text(each, "type") for each in _blocks(column, "constraints")}
    tests = {test for section in _TEST_SECTIONS for test in _test_names(column, section)}
    is_key = is_key or "primary_key" in constraints
    data_type = _text(column, "data_type")
    return Field(
        name=name,
        type=type_from_sql(data_type, dialect) if data_type else UNKNOWN,
        nullable=not (is_key or "not_null" in constraints or "not_null" in tests),
        key=is_key,
        description=_text(column, "description") or None,
        native_type=data_type or None,
    )


def _test_names(column: MappingNode, section: str) -> Iterator[str]:
    for item in _items(column, section):
        if isinstance(item, ScalarNode):
            yield item.written or item.text
        elif isinstance(item, MappingNode):
            yield from item.entries


def _items(block: MappingNode, key: str) -> tuple[ConfigNode, ...]:
    entry = block.entries.get(key)
    return entry.node.items if entry is not None and isinstance(entry.node, ListNode) else ()


def _blocks(block: MappingNode, key: str) -> Iterator[MappingNode]:
    return (item for item in _items(block, key) if isinstance(item, MappingNode))


def _block(block: MappingNode | None, key: str) -> MappingNode | None:
    entry = block.entries.get(key) if block is not None else None
    return entry.node if entry is not None and isinstance(entry.node, MappingNode) else None


def _texts(block: MappingNode, key: str) -> Iterator[str]:
    return (
        item.written or item.text for item in _items(block, key) if isinstance(item, ScalarNode)
    )


def _text(block: MappingNode, key: str) -> str:
    """The text of a value; dbt's variables in it are not replaced."""
    entry = block.entries.get(key)
    node = None if entry is None else entry.node
    return (node.written or node.text).strip() if isinstance(node, ScalarNode) else ""


def _error(block: MappingNode, text: str) -> ConfigurationError:
    return ConfigurationError([ConfigProblem(position=block.position, key=block.path, text=text)])


ProposalKind: TypeAlias = Literal["lumos", "json-schema", "avro", "sql", "dbt", "parquet"]
TableT = TypeVar("TableT", SqlTable, DbtModel)

_KIND_OF_SUFFIX: Final[dict[str, ProposalKind]] = {
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
_CREATE_TABLE: Final = re.compile(r"\bcreate\b[^;(]*\btable\b", re.IGNORECASE)
_DBT_SECTION: Final = re.compile(r"^(models|sources|seeds|snapshots)\s*:", re.MULTILINE)
_JSON_SCHEMA_KEYWORDS: Final = frozenset((
    "$schema", "$ref", "$defs", "definitions", "type", "properties", "items", "allOf", "anyOf",
    "oneOf", "enum", "const",
))  # fmt: skip
# OpenAPI defines formats for the size of numbers; JSON Schema itself does not.
_SIZED_NUMBER: Final = re.compile(r'"format": "(?:int64|double)"')
_REFERENCE: Final = '"$ref"'
_TRUNCATED_TYPES: Final = ("", TOO_DEEP.name, TOO_LARGE.name)
_DATA_SUFFIXES: Final = frozenset(
    {".csv", ".tsv", ".psv", ".avro", ".orc", ".jsonl", ".ndjson", ".xlsx"}
)
_AMBIGUITY_OF_DIALECT: Final[dict[Dialect, TypeAmbiguity]] = {
    "snowflake": is_ambiguous_in_snowflake,
    "postgres": is_ambiguous_in_postgres,
    "hive": is_ambiguous_in_hive,
    "bigquery": is_never_ambiguous,
}


class SchemaProposal(msgspec.Struct, frozen=True, kw_only=True):
    """A proposed schema; `render` converts another schema to the proposal's format and back."""

    kind: ProposalKind
    schema: Schema
    format: ProposalFormat
    render: Callable[[Schema], Schema]
    remarks: tuple[str, ...] = ()


class ProposalTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The name and platform of the dataset that a proposal is for.

    `model` is the table or model to read from the file, and `dialect` the dialect of its SQL types.
    """

    name: str
    platform: str
    model: str | None = None
    dialect: Dialect | None = None


def read_proposal(
    file: Path, *, kind: ProposalKind | None, target: ProposalTarget
) -> SchemaProposal:
    """Read the schema in a file; without `kind`, the kind is detected by its suffix or content."""
    if file.is_dir():
        raise UnreadableSchema(
            str(file), "this is a folder; name the file with the proposed schema"
        )
    if not file.is_file():
        raise UnreadableSchema(str(file), "there is no such file")
    if kind is None and file.suffix.lower() in _DATA_SUFFIXES:
        raise UnreadableSchema(
            str(file),
            "this is data, not a schema. A proposal is a JSON Schema, an Avro schema (.avsc), SQL, "
            "a dbt schema.yml, a Parquet file or Lumos text (.schema); choose its kind with --as",
            next=_NEXT_STEP,
        )
    kind = kind or detect_kind(file)
    if kind == "parquet":
        return _check_proposal(file, _read_parquet(file))
    text = read_text(file)
    match kind:
        case "lumos":
            proposal = _read_lumos(file, text)
        case "json-schema" | "avro":
            proposal = _read_json(file, text, kind)
        case "sql":
            proposal = _read_sql(file, text, target)
        case "dbt":
            proposal = _read_dbt(file, text, target)
    return _check_proposal(file, proposal)


def detect_kind(file: Path) -> ProposalKind:
    """The kind of a file by its suffix, or else by its content."""
    kind = _KIND_OF_SUFFIX.get(file.suffix.lower())
    if kind is not None:
        return kind
    with file.open("rb") as stream:
        if stream.read(4) == b"PAR1":
            return "parquet"
    text = read_text(file)
    if file.suffix.lower() == ".json" or text.lstrip()[:1] in ("{", "["):
        value = _parse_json(file, text)
        is_record = isinstance(value, dict) and value.get("type") == "record"
        return "avro" if is_record and "fields" in value else "json-schema"
    if _CREATE_TABLE.search(text):
        return "sql"
    return "dbt" if _DBT_SECTION.search(text) else "lumos"


def _check_proposal(file: Path, proposal: SchemaProposal) -> SchemaProposal:
    check_unique_fields(str(file), proposal.schema)
    if not proposal.schema.fields:
        raise UnreadableSchema(str(file), "it has no fields")
    truncated = [
        field.name for field in proposal.schema.fields if "UNKNOWN('too deep')" in field.type.text
    ]
    if not truncated:
        return proposal
    remark = (
        f"{truncated[0]} nests deeper than {MAX_DEPTH} levels and is only compared to that depth"
    )
    return msgspec.structs.replace(proposal, remarks=(*proposal.remarks, remark))


def _read_lumos(file: Path, text: str) -> SchemaProposal:
    return SchemaProposal(
        kind="lumos",
        schema=parse_schema_text(str(file), text),
        format=ProposalFormat(),
        render=lambda current: parse_schema(str(current)),
    )


def _read_parquet(file: Path) -> SchemaProposal:
    # Imported late: Arrow is slow to import.
    from lumos.formats.interface import UnreadableFile
    from lumos.formats.parquet import Parquet
    from lumos.storage import storage_of

    try:
        with storage_of(str(file)).open(str(file.absolute())) as stream:
            schema = _names_and_types(Parquet().read(stream).schema)
    except UnreadableFile as problem:
        raise UnreadableSchema(str(file), problem.reason) from None
    return SchemaProposal(
        kind="parquet",
        schema=schema,
        format=ProposalFormat(has_partitions=False),
        render=_names_and_types,
    )


def _names_and_types(current: Schema) -> Schema:
    """The schema without keys, defaults and descriptions, which data files may not contain."""
    return Schema(
        fields=tuple(
            Field(name=field.name, type=field.type, nullable=field.nullable)
            for field in current.fields
        )
    )


def _read_json(file: Path, text: str, kind: Literal["json-schema", "avro"]) -> SchemaProposal:
    value = _parse_json(file, text)
    format = ProposalFormat(is_ordered=kind == "avro", has_partitions=False)
    if kind == "avro":
        if not isinstance(value, str | dict | list):
            raise UnreadableSchema(str(file), "this is not an Avro schema")
        return SchemaProposal(
            kind=kind,
            schema=_check_known_types(file, schema_from_avro(value)),
            format=format,
            render=lambda current: schema_from_avro(schema_to_avro(current)),
        )
    if not isinstance(value, dict) or _JSON_SCHEMA_KEYWORDS.isdisjoint(value):
        raise UnreadableSchema(
            str(file),
            "this is neither a JSON Schema nor an Avro schema; choose its kind with --as",
            next=_NEXT_STEP,
        )
    return SchemaProposal(
        kind=kind,
        schema=_check_known_types(file, schema_from_json_schema(value)),
        format=msgspec.structs.replace(
            format,
            is_ambiguous=is_ambiguous_in_json_schema,
            is_ambiguous_in_column=_columns_with_sized_numbers(value),
        ),
        render=lambda current: schema_from_json_schema(schema_to_json_schema(current)),
    )


def _columns_with_sized_numbers(document: dict[str, Any]) -> dict[str, TypeAmbiguity]:
    """The columns with a sized number; all of their numbers are assumed to have a size."""
    has_sized_number = _has_sized_number(document)
    properties = document.get("properties")
    return {
        name: is_ambiguous_with_sized_numbers
        for name, schema in (properties.items() if isinstance(properties, dict) else ())
        # A reference may lead to a sized number anywhere in the document.
        if _has_sized_number(schema) or (has_sized_number and _REFERENCE in json.dumps(schema))
    }


def _has_sized_number(schema: object) -> bool:
    return _SIZED_NUMBER.search(json.dumps(schema)) is not None


def _check_known_types(file: Path, schema: Schema) -> Schema:
    """Return the schema; raise an error for the first type that is not defined."""
    for path, name in unknown_types(schema):
        if name.startswith("ref:#"):
            problem = f"the reference {name.removeprefix('ref:')} does not exist in this file"
        elif name.startswith("recursive:") and path == "value":
            problem = "the definition only refers to itself"
        elif name in _TRUNCATED_TYPES or name.startswith(("recursive:", "ref:")):
            continue
        else:
            problem = f"there is no type named '{name}'"
        raise UnreadableSchema(str(file), f"at {path}: {problem}")
    return schema


def _parse_json(file: Path, text: str) -> Any:
    def check_unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            names = [name for name, _ in pairs]
            duplicate = next(name for name in names if names.count(name) > 1)
            raise UnreadableSchema(
                str(file), f"the name '{duplicate}' is defined twice in one object"
            )
        return result

    try:
        return json.loads(text, object_pairs_hook=check_unique_names)
    except json.JSONDecodeError as problem:
        raise UnreadableSchema(
            str(file),
            f"this is not valid JSON: {problem.msg}",
            line=problem.lineno,
            column=problem.colno,
        ) from None
    except RecursionError:
        raise UnreadableSchema(str(file), "this JSON nests too deeply to be a schema") from None


def _read_sql(file: Path, text: str, target: ProposalTarget) -> SchemaProposal:
    def read_table(dialect: Dialect) -> SqlTable:
        tables = tables_from_sql(text, dialect)
        if not tables:
            raise UnreadableSchema(str(file), "it contains no CREATE TABLE statement")
        return _select_table(file, "table", tables, target)

    try:
        dialect = _choose_dialect(target, lambda dialect: read_table(dialect).schema)
        table = read_table(dialect)
    except SchemaSyntaxError as problem:
        raise UnreadableSchema(
            str(file), problem.problem, line=problem.line, column=problem.column
        ) from None
    # Statements for Hive always declare the partitions; other statements may not declare them.
    has_partitions = dialect == "hive" or any(field.partition for field in table.schema.fields)
    return SchemaProposal(
        kind="sql",
        schema=table.schema,
        format=ProposalFormat(
            case_insensitive=table.unquoted, is_ambiguous=_AMBIGUITY_OF_DIALECT[dialect]
        ),
        render=lambda current: rendered_in_sql(current, dialect, partitions=has_partitions),
    )


def _read_dbt(file: Path, text: str, target: ProposalTarget) -> SchemaProposal:
    def read_model(dialect: Dialect) -> DbtModel:
        models = models_from_dbt(text, file=str(file), dialect=dialect)
        if not models:
            raise UnreadableSchema(str(file), "it contains no models, seeds, snapshots or sources")
        return _select_table(file, "model", models, target)

    dialect = _choose_dialect(target, lambda dialect: read_model(dialect).schema)
    model = read_model(dialect)
    remarks = [f"nested column {name} is not compared" for name in model.nested]
    if not model.enforced:
        remarks.append(
            f"the contract of {model.name} is not enforced: columns that are not listed count as "
            "removed, although dbt may still build them"
        )
    return SchemaProposal(
        kind="dbt",
        schema=model.schema,
        format=ProposalFormat(
            is_ordered=False,
            case_insensitive=model.unquoted,
            is_ambiguous=_AMBIGUITY_OF_DIALECT[dialect],
        ),
        render=lambda current: _render_in_dbt(current, model, dialect),
        remarks=tuple(remarks),
    )


def _render_in_dbt(current: Schema, model: DbtModel, dialect: Dialect) -> Schema:
    untyped = {name.casefold() for name in model.untyped}
    return Schema(
        fields=tuple(
            Field(
                name=field.name,
                type=UNKNOWN if field.name.casefold() in untyped else field.type,
                # Without a contract, a column may be required even if it has no not_null test.
                nullable=field.nullable if model.enforced else True,
                key=field.key and model.has_key,
            )
            for field in rendered_in_sql(current, dialect).fields
        )
    )


def _select_table(
    file: Path, noun: str, tables: Iterable[TableT], target: ProposalTarget
) -> TableT:
    """The requested table, else the table with the name of the dataset, else the only table."""
    by_name = {each.name.casefold(): each for each in tables}
    names = [each.name for each in by_name.values()]
    if target.model is not None:
        if target.model.casefold() not in by_name:
            raise UnknownName(f"{noun} in {file}", target.model, names)
        return by_name[target.model.casefold()]
    if target.name.casefold() in by_name:
        return by_name[target.name.casefold()]
    if len(by_name) == 1:
        return next(iter(by_name.values()))
    choice = ", ".join(names)
    raise UnreadableSchema(
        str(file), f"no {noun} in it is named '{target.name}'; choose with --model from: {choice}"
    )


def _choose_dialect(target: ProposalTarget, read_schema: Callable[[Dialect], Schema]) -> Dialect:
    dialect = target.dialect or DIALECT_OF_PLATFORM.get(target.platform)
    if dialect is not None:
        return dialect

    def count_unknown_types(dialect: Dialect) -> int:
        return sum(isinstance(field.type, Unknown) for field in read_schema(dialect).fields)

    return min(GUESSED_DIALECTS, key=count_unknown_types)
