"""Reads proposed schemas: JSON Schema, Avro, SQL, dbt, Parquet and Lumos text."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, get_args

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

_SECTIONS: Final = ("models", "seeds", "snapshots", "tables")
_TESTS: Final = ("tests", "data_tests")


class DbtModel(NamedTuple):
    """A model, seed, snapshot or source table of a dbt schema.yml, and its listed columns.

    Only an `enforced` contract makes the list complete. `untyped` columns have no data_type,
    `unquoted` names match in any case, `nested` ones are fields inside columns. `source` is the
    name of the source that a table belongs to.
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


def models_from_dbt(text: str, *, file: str, dialect: Dialect) -> tuple[DbtModel, ...]:
    """Every model of the text; raises ConfigurationError with file and line."""
    root, problems = parse_yaml(
        text, position=ConfigPosition(origin=file, folder=""), environment={}
    )
    if problems:
        raise ConfigurationError(problems)
    return tuple(_model(block, dialect, source) for block, source in _models(root))


def _models(
    root: MappingNode, source: str | None = None
) -> Iterator[tuple[MappingNode, str | None]]:
    """The models of a mapping, each with the source that it belongs to."""
    for section in _SECTIONS:
        yield from ((block, source) for block in _blocks(root, section) if _text(block, "name"))
    for block in _blocks(root, "sources"):
        yield from _models(block, _text(block, "name"))


def _model(block: MappingNode, dialect: Dialect, source: str | None = None) -> DbtModel:
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
        if name in fields or name in nested:
            raise _error(column, f"The column '{name}' is defined twice.")
        if "." in name:
            nested.append(name)
            continue
        fields[name] = _field(column, name, dialect, is_key=name.casefold() in keys)
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


def _field(column: MappingNode, name: str, dialect: Dialect, *, is_key: bool) -> Field:
    constraints = {_text(each, "type") for each in _blocks(column, "constraints")}
    tests = {test for section in _TESTS for test in _test_names(column, section)}
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
    """The value as written, since dbt has its own variables."""
    entry = block.entries.get(key)
    node = None if entry is None else entry.node
    return (node.written or node.text).strip() if isinstance(node, ScalarNode) else ""


def _error(block: MappingNode, text: str) -> ConfigurationError:
    return ConfigurationError([ConfigProblem(position=block.position, key=block.path, text=text)])


ProposalKind: TypeAlias = Literal["lumos", "json-schema", "avro", "sql", "dbt", "parquet"]
PROPOSAL_KINDS: Final[tuple[ProposalKind, ...]] = get_args(ProposalKind)
TableT = TypeVar("TableT", SqlTable, DbtModel)
DIALECTS: Final[tuple[Dialect, ...]] = get_args(Dialect)

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
_CREATE: Final = re.compile(r"\bcreate\b[^;(]*\btable\b", re.IGNORECASE)
_DBT: Final = re.compile(r"^(models|sources|seeds|snapshots)\s*:", re.MULTILINE)
_JSON_SCHEMA_KEYWORDS: Final = frozenset((
    "$schema", "$ref", "$defs", "definitions", "type", "properties", "items", "allOf", "anyOf",
    "oneOf", "enum", "const",
))  # fmt: skip
# Sizes of numbers as OpenAPI writes them; JSON Schema itself has none.
_NUMBER_SIZE: Final = re.compile(r'"format": "(?:int64|double)"')
_REFERENCE: Final = '"$ref"'
_TRUNCATED: Final = ("", TOO_DEEP.name, TOO_LARGE.name)
_DATA_SUFFIXES: Final = frozenset(
    {".csv", ".tsv", ".psv", ".avro", ".orc", ".jsonl", ".ndjson", ".xlsx"}
)
_AMBIGUITY: Final[dict[Dialect, TypeAmbiguity]] = {
    "snowflake": is_ambiguous_in_snowflake,
    "postgres": is_ambiguous_in_postgres,
    "hive": is_ambiguous_in_hive,
    "bigquery": is_never_ambiguous,
}


class SchemaProposal(msgspec.Struct, frozen=True, kw_only=True):
    """A proposed schema, its format, and a function that renders other schemas in that format."""

    kind: ProposalKind
    schema: Schema
    form: ProposalFormat
    rendered: Callable[[Schema], Schema]
    remarks: tuple[str, ...] = ()


class ProposalTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The dataset of a proposal, the table or model in the file, and the SQL dialect."""

    name: str
    platform: str
    model: str | None = None
    dialect: Dialect | None = None


def read_proposal(
    file: Path, *, kind: ProposalKind | None, target: ProposalTarget
) -> SchemaProposal:
    """The schema in a file, whose kind is detected by suffix or content unless it is given."""
    if file.is_dir():
        raise UnreadableSchema(str(file), "this is a folder; name the file of the proposed schema")
    if not file.is_file():
        raise UnreadableSchema(str(file), "there is no such file")
    if kind is None and file.suffix.lower() in _DATA_SUFFIXES:
        raise UnreadableSchema(
            str(file),
            "this is data, not a schema. A proposal is a JSON Schema, an Avro schema (.avsc), SQL, "
            "a dbt schema.yml, a Parquet file or Lumos text (.schema); --as says which",
        )
    kind = kind or detect_kind(file)
    if kind == "parquet":
        return _check_proposal(file, _parquet(file))
    text = read_text(file)
    match kind:
        case "lumos":
            proposal = _lumos(file, text)
        case "json-schema" | "avro":
            proposal = _json(file, text, kind)
        case "sql":
            proposal = _sql(file, text, target)
        case "dbt":
            proposal = _dbt(file, text, target)
    return _check_proposal(file, proposal)


def detect_kind(file: Path) -> ProposalKind:
    """The kind of a file by its suffix, or else by its content."""
    named = _KIND_OF_SUFFIX.get(file.suffix.lower())
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


def _check_proposal(file: Path, proposal: SchemaProposal) -> SchemaProposal:
    check_unique_fields(str(file), proposal.schema)
    if not proposal.schema.fields:
        raise UnreadableSchema(str(file), "it names no field")
    cut = [f.name for f in proposal.schema.fields if "UNKNOWN('too deep')" in f.type.text]
    if not cut:
        return proposal
    remark = f"{cut[0]} nests deeper than {MAX_DEPTH} levels and is compared down to there only"
    return msgspec.structs.replace(proposal, remarks=(*proposal.remarks, remark))


def _lumos(file: Path, text: str) -> SchemaProposal:
    return SchemaProposal(
        kind="lumos",
        schema=parse_schema_text(str(file), text),
        form=ProposalFormat(),
        rendered=lambda current: parse_schema(str(current)),
    )


def _parquet(file: Path) -> SchemaProposal:
    # Imported late: Arrow is slow to import.
    from lumos.formats.interface import UnreadableFile
    from lumos.formats.parquet import Parquet
    from lumos.storage import storage_of

    try:
        with storage_of(str(file)).open(str(file.absolute())) as opened:
            schema = _names_and_types(Parquet().read(opened).schema)
    except UnreadableFile as problem:
        raise UnreadableSchema(str(file), problem.reason) from None
    return SchemaProposal(
        kind="parquet",
        schema=schema,
        form=ProposalFormat(has_partitions=False),
        rendered=_names_and_types,
    )


def _names_and_types(current: Schema) -> Schema:
    """The schema without keys, defaults and descriptions, which data files need not have."""
    return Schema(
        fields=tuple(
            Field(name=field.name, type=field.type, nullable=field.nullable)
            for field in current.fields
        )
    )


def _json(file: Path, text: str, kind: Literal["json-schema", "avro"]) -> SchemaProposal:
    value = _parsed_json(file, text)
    form = ProposalFormat(ordered=kind == "avro", has_partitions=False)
    if kind == "avro":
        if not isinstance(value, str | dict | list):
            raise UnreadableSchema(str(file), "this is not an Avro schema")
        return SchemaProposal(
            kind=kind,
            schema=_check_known_types(file, schema_from_avro(value)),
            form=form,
            rendered=lambda current: schema_from_avro(schema_to_avro(current)),
        )
    if not isinstance(value, dict) or _JSON_SCHEMA_KEYWORDS.isdisjoint(value):
        raise UnreadableSchema(
            str(file), "this is neither a JSON Schema nor an Avro schema; --as says what it is"
        )
    return SchemaProposal(
        kind=kind,
        schema=_check_known_types(file, schema_from_json_schema(value)),
        form=msgspec.structs.replace(
            form,
            is_ambiguous=is_ambiguous_in_json_schema,
            is_ambiguous_in_column=_columns_with_sized_numbers(value),
        ),
        rendered=lambda current: schema_from_json_schema(schema_to_json_schema(current)),
    )


def _columns_with_sized_numbers(document: dict[str, Any]) -> dict[str, TypeAmbiguity]:
    """The columns with a number that has a size; all numbers in them are taken to have one."""
    has_sizes = _has_sizes(document)
    properties = document.get("properties")
    return {
        name: is_ambiguous_with_sized_numbers
        for name, schema in (properties.items() if isinstance(properties, dict) else ())
        # A reference may lead anywhere in the document.
        if _has_sizes(schema) or (has_sizes and _REFERENCE in json.dumps(schema))
    }


def _has_sizes(schema: object) -> bool:
    return _NUMBER_SIZE.search(json.dumps(schema)) is not None


def _check_known_types(file: Path, schema: Schema) -> Schema:
    """Returns the schema; fails with the path of the first type that is not defined."""
    for path, name in unknown_types(schema):
        if name.startswith("ref:#"):
            problem = f"the reference {name.removeprefix('ref:')} leads to nothing in this file"
        elif name.startswith("recursive:") and path == "value":
            problem = "this only refers to itself"
        elif name in _TRUNCATED or name.startswith(("recursive:", "ref:")):
            continue
        else:
            problem = f"there is no type named '{name}'"
        raise UnreadableSchema(str(file), f"at {path}: {problem}")
    return schema


def _is_avro(value: object) -> bool:
    """Whether JSON is an Avro record rather than a JSON Schema."""
    return isinstance(value, dict) and value.get("type") == "record" and "fields" in value


def _parsed_json(file: Path, text: str) -> Any:
    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        if len(built) < len(pairs):
            names = [name for name, _ in pairs]
            duplicate = next(name for name in names if names.count(name) > 1)
            raise UnreadableSchema(
                str(file), f"the name '{duplicate}' is defined twice in one object"
            )
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


def _sql(file: Path, text: str, target: ProposalTarget) -> SchemaProposal:
    def tables(dialect: Dialect) -> SqlTable:
        found = tables_from_sql(text, dialect)
        if not found:
            raise UnreadableSchema(str(file), "it contains no CREATE TABLE statement")
        return _select_table(file, "table", found, target)

    try:
        dialect = _dialect(target, lambda dialect: tables(dialect).schema)
        table = tables(dialect)
    except SchemaSyntaxError as problem:
        raise UnreadableSchema(
            str(file), problem.problem, line=problem.line, column=problem.column
        ) from None
    # Only Hive statements always declare partitions.
    has_partitions = dialect == "hive" or any(field.partition for field in table.schema.fields)
    return SchemaProposal(
        kind="sql",
        schema=table.schema,
        form=ProposalFormat(any_case=table.unquoted, is_ambiguous=_AMBIGUITY[dialect]),
        rendered=lambda current: rendered_in_sql(current, dialect, partitions=has_partitions),
    )


def _dbt(file: Path, text: str, target: ProposalTarget) -> SchemaProposal:
    def models(dialect: Dialect) -> DbtModel:
        found = models_from_dbt(text, file=str(file), dialect=dialect)
        if not found:
            raise UnreadableSchema(str(file), "it contains no models, seeds, snapshots or sources")
        return _select_table(file, "model", found, target)

    dialect = _dialect(target, lambda dialect: models(dialect).schema)
    model = models(dialect)
    remarks = [f"nested column {name} is not compared" for name in model.nested]
    if not model.enforced:
        remarks.append(
            f"the contract of {model.name} is not enforced: columns that are not listed count as "
            "removed, although dbt may still build them"
        )
    return SchemaProposal(
        kind="dbt",
        schema=model.schema,
        form=ProposalFormat(
            ordered=False, any_case=model.unquoted, is_ambiguous=_AMBIGUITY[dialect]
        ),
        rendered=lambda current: _rendered_in_dbt(current, model, dialect),
        remarks=tuple(remarks),
    )


def _rendered_in_dbt(current: Schema, model: DbtModel, dialect: Dialect) -> Schema:
    untyped = {name.casefold() for name in model.untyped}
    return Schema(
        fields=tuple(
            Field(
                name=field.name,
                type=UNKNOWN if field.name.casefold() in untyped else field.type,
                # Without a contract, a missing not_null test does not mean that it is nullable.
                nullable=field.nullable if model.enforced else True,
                key=field.key and model.has_key,
            )
            for field in rendered_in_sql(current, dialect).fields
        )
    )


def _select_table(file: Path, what: str, found: Iterable[TableT], target: ProposalTarget) -> TableT:
    """The one that was requested, has the name of the dataset, or is the only one."""
    by_name = {each.name.casefold(): each for each in found}
    names = [each.name for each in by_name.values()]
    if target.model is not None:
        if target.model.casefold() not in by_name:
            raise UnknownName(f"{what} in {file}", target.model, names)
        return by_name[target.model.casefold()]
    if target.name.casefold() in by_name:
        return by_name[target.name.casefold()]
    if len(by_name) == 1:
        return next(iter(by_name.values()))
    choice = ", ".join(names)
    raise UnreadableSchema(
        str(file), f"no {what} in it is named '{target.name}'; choose with --model from: {choice}"
    )


def _dialect(target: ProposalTarget, read: Callable[[Dialect], Schema]) -> Dialect:
    known = target.dialect or DIALECT_OF_PLATFORM.get(target.platform)
    if known is not None:
        return known
    return min(GUESSED_DIALECTS, key=lambda dialect: _unknown_types(read(dialect)))


def _unknown_types(schema: Schema) -> int:
    return sum(isinstance(field.type, Unknown) for field in schema.fields)
