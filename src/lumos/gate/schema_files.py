"""Files that declare schemas: Avro, JSON Schema, Protobuf, dbt, data contracts and snapshots.

Each reader takes the path and the content of a file and returns the schemas that the file declares.
Other files with the same ending, such as other YAML files, declare no schema.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from lumos.annotations.owner_names import parse_owners
from lumos.config.yaml_tree import (
    ConfigPosition,
    ConfigurationError,
    ListNode,
    MappingNode,
    parse_yaml,
)
from lumos.errors import LumosError
from lumos.model.catalog import CatalogEntry
from lumos.model.conversions.avro import schema_from_avro
from lumos.model.conversions.json_schema import schema_from_json_schema
from lumos.model.conversions.protobuf import messages_from_protobuf
from lumos.model.conversions.sql_type_reader import DIALECT_OF_PLATFORM
from lumos.model.conversions.sql_types import Dialect, type_from_sql
from lumos.model.dataset import Documentation, Governance, Ownership
from lumos.model.schema import Field, Schema
from lumos.model.types import (
    BOOLEAN,
    DATE,
    FLOAT64,
    INT64,
    STRING,
    UNKNOWN,
    Array,
    DataType,
    Member,
    SchemaSyntaxError,
    Struct,
    Time,
    Timestamp,
    Unknown,
)
from lumos.model.urn import Urn
from lumos.schemas.files import (
    SCHEMA_SUFFIX,
    UnreadableSchema,
    decode_text,
    name_of_file,
    read_schema,
)
from lumos.schemas.proposal_reader import DbtModel, models_from_dbt
from lumos.snapshots.format.errors import SnapshotError
from lumos.snapshots.format.reader import open_snapshot

SchemaKind: TypeAlias = Literal[
    "schema", "snapshot", "sql", "odcs", "dbt-source", "dbt", "avro", "protobuf", "json-schema"
]

_AVRO_SUFFIX: Final = ".avsc"
PROTO_SUFFIX: Final = ".proto"
_JSON_SUFFIX: Final = ".json"
_JSON_SCHEMA_SUFFIX: Final = ".schema.json"
_YAML_SUFFIXES: Final = (".yaml", ".yml")
_SNAPSHOT_SUFFIXES: Final = (".json", ".yaml", ".yml", ".jsonl", ".jsonl.zst")
SUFFIXES: Final = (
    SCHEMA_SUFFIX,
    _AVRO_SUFFIX,
    PROTO_SUFFIX,
    _JSON_SUFFIX,
    *_YAML_SUFFIXES,
    ".jsonl",
    ".jsonl.zst",
)
_HEAD_BYTES: Final = 65_536
_SNAPSHOT_PATTERN: Final = re.compile(rb"lumos[-_]snapshot")
_JSON_SCHEMA_PATTERN: Final = re.compile(rb'"\$schema"\s*:\s*"https?://json-schema\.org/')
_ODCS_PATTERN: Final = re.compile(rb"^[\"']?kind[\"']?\s*:\s*[\"']?DataContract\b", re.MULTILINE)
_DBT_PATTERN: Final = re.compile(rb"^(?:models|sources|seeds|snapshots)\s*:", re.MULTILINE)
# In dbt files with complete declarations, which queries may need even if they are unchanged.
_DBT_COMPLETE: Final = re.compile(rb"enforced\s*:\s*true|^sources\s*:", re.MULTILINE)
_MAX_DEPTH: Final = 50
NO_FILES: Final[Mapping[str, bytes]] = MappingProxyType({})


class DeclaredAnnotations(NamedTuple):
    """Annotations of a dataset in a file."""

    description: str | None = None
    domain: str | None = None
    business_context: str | None = None
    tags: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    compliance: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    properties: Mapping[str, str] = MappingProxyType({})


class DeclaredSchema(NamedTuple):
    """The schema of a dataset, and the file that declares it.

    If it is not `complete`, the dataset may have other columns.
    """

    urn: str
    schema: Schema
    format: str | None
    file: str
    kind: SchemaKind
    complete: bool = True
    annotations: DeclaredAnnotations = DeclaredAnnotations()


def read_schema_file(
    path: str, data: bytes, *, dialect: Dialect, protos: Mapping[str, bytes] = NO_FILES
) -> list[DeclaredSchema]:
    """The schemas that a file declares; raises UnreadableSchema.

    `protos` are the files that .proto files may import.
    """
    name = path.lower()
    head = data[:_HEAD_BYTES]
    try:
        if name.endswith(SCHEMA_SUFFIX):
            return [_read_lumos(path, data)]
        if name.endswith(_AVRO_SUFFIX):
            return [_read_avro(path, data)]
        if name.endswith(PROTO_SUFFIX):
            return list(_read_protobuf(path, data, protos))
        is_text = not name.endswith(".zst")
        if name.endswith(_SNAPSHOT_SUFFIXES) and (not is_text or _SNAPSHOT_PATTERN.search(head)):
            return list(_read_snapshot(path, data))
        if name.endswith(_JSON_SUFFIX):
            is_schema = name.endswith(_JSON_SCHEMA_SUFFIX) or _JSON_SCHEMA_PATTERN.search(head)
            return [_read_json_schema(path, data)] if is_schema else []
        if name.endswith(_YAML_SUFFIXES) and _ODCS_PATTERN.search(head):
            return list(_read_contract(path, data))
        if name.endswith(_YAML_SUFFIXES) and _DBT_PATTERN.search(data):
            return list(_read_dbt(path, data, dialect))
    except SchemaSyntaxError as problem:
        raise UnreadableSchema(
            path, problem.problem, line=problem.line, column=problem.column
        ) from None
    except ConfigurationError as problem:
        raise UnreadableSchema(path, problem.problems[0].text, line=problem.line) from None
    except RecursionError:
        raise UnreadableSchema(path, "it nests too deeply to be a schema") from None
    return []


def is_needed_unchanged(path: str, data: bytes) -> bool:
    """Whether queries may need the schemas in a file that the change does not touch."""
    name = path.lower()
    if name.endswith((SCHEMA_SUFFIX, _AVRO_SUFFIX, _JSON_SCHEMA_SUFFIX)):
        return True
    if name.endswith(_YAML_SUFFIXES):
        is_typed = b"data_type" in data and _DBT_COMPLETE.search(data) is not None
        return is_typed or _ODCS_PATTERN.search(data[:_HEAD_BYTES]) is not None
    return False


def table_urn(parts: Iterable[str]) -> str:
    """The URN of a table that DDL, a contract or dbt declares."""
    return _urn("sql", parts)


def _urn(platform: str, parts: Iterable[str]) -> str:
    return str(Urn(platform=platform, path=tuple(parts)))


def _read_lumos(path: str, data: bytes) -> DeclaredSchema:
    declared = read_schema(path, data, default_name=name_of_file(PurePosixPath(path)))
    urn = declared.urn if "://" in declared.urn else _urn("file", declared.urn.split("/"))
    return DeclaredSchema(urn, declared.schema, declared.format, path, "schema")


def _read_avro(path: str, data: bytes) -> DeclaredSchema:
    record = _decode_json(path, data)
    try:
        schema = schema_from_avro(record)
    except LumosError as problem:
        raise UnreadableSchema(path, f"not a valid Avro schema ({problem})") from None
    name = record.get("name") if isinstance(record, dict) else None
    if not isinstance(name, str) or not name:
        raise UnreadableSchema(path, "the Avro schema has no name")
    namespace = record.get("namespace")
    parts = [*(namespace.split(".") if isinstance(namespace, str) else ()), *name.split(".")]
    annotations = DeclaredAnnotations(description=_text_of(record.get("doc")))
    return DeclaredSchema(
        _urn("avro", parts), schema, "avro", path, "avro", annotations=annotations
    )


def _read_json_schema(path: str, data: bytes) -> DeclaredSchema:
    document = _decode_json(path, data)
    if not isinstance(document, dict):
        raise UnreadableSchema(path, "this is not a JSON Schema")
    name = PurePosixPath(path).name
    for suffix in (_JSON_SCHEMA_SUFFIX, _JSON_SUFFIX):
        name = name[: -len(suffix)] if name.lower().endswith(suffix) else name
    schema = schema_from_json_schema(document)
    annotations = DeclaredAnnotations(description=_text_of(document.get("description")))
    return DeclaredSchema(
        _urn("json-schema", [name]), schema, "json", path, "json-schema", annotations=annotations
    )


def imported_file(name: str, files: Iterable[str]) -> str | None:
    """The file that a .proto file imports by a name: the shortest path that ends with it."""
    candidates = (path for path in files if path == name or path.endswith(f"/{name}"))
    return min(candidates, key=lambda path: (len(path), path), default=None)


def _read_protobuf(path: str, data: bytes, protos: Mapping[str, bytes]) -> Iterator[DeclaredSchema]:
    def read_import(name: str) -> str | None:
        file = imported_file(name, protos)
        return None if file is None else protos[file].decode("utf-8", "replace")

    for message in messages_from_protobuf(decode_text(path, data), imported=read_import):
        urn = _urn("protobuf", message.name.split("."))
        yield DeclaredSchema(urn, message.schema, None, path, "protobuf")


def _text_of(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _decode_json(path: str, data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError as problem:
        raise UnreadableSchema(path, f"this is not valid JSON ({problem})") from None


def _read_snapshot(path: str, data: bytes) -> Iterator[DeclaredSchema]:
    with TemporaryDirectory(prefix="lumos-gate-") as folder:
        file = Path(folder, PurePosixPath(path).name)
        file.write_bytes(data)
        try:
            with open_snapshot(file) as snapshot:
                entries = [each for each in snapshot.datasets() if not each.deleted]
        except SnapshotError as problem:
            reason = str(problem).replace(f"{file}: ", "")
            raise UnreadableSchema(path, reason) from None
    for entry in entries:
        if entry.schema is not None:
            yield DeclaredSchema(
                entry.urn,
                entry.schema,
                entry.format,
                path,
                "snapshot",
                annotations=_annotations_of(entry),
            )


def _annotations_of(entry: CatalogEntry) -> DeclaredAnnotations:
    documentation = entry.documentation or Documentation()
    governance = entry.governance or Governance()
    return DeclaredAnnotations(
        description=documentation.description,
        domain=documentation.domain,
        business_context=documentation.business_context,
        tags=governance.tags,
        terms=governance.terms,
        compliance=governance.compliance,
        owners=tuple(each.name for each in (entry.ownership or Ownership()).owners),
        properties=entry.properties or {},
    )


def read_dbt_documentation(path: str, data: bytes) -> list[DeclaredSchema]:
    """The models and sources that a dbt file documents, including those without columns.

    Raises UnreadableSchema.
    """
    if not _DBT_PATTERN.search(data):
        return []
    try:
        # The types are not used, so any dialect will do.
        return list(_read_dbt(path, data, "postgres", with_empty=True))
    except ConfigurationError as problem:
        raise UnreadableSchema(path, problem.problems[0].text, line=problem.line) from None


def _read_dbt(
    path: str, data: bytes, dialect: Dialect, *, with_empty: bool = False
) -> Iterator[DeclaredSchema]:
    text = decode_text(path, data)
    for model in models_from_dbt(text, file=path, dialect=dialect, allow_repeated=True):
        if not model.schema.fields and not with_empty:
            continue
        parts = (model.name,) if model.source is None else (model.source, model.name)
        is_typed = not model.untyped and not model.nested
        is_complete = model.enforced or (model.source is not None and is_typed)
        schema = model.schema if is_complete else _documented_schema(model)
        kind: SchemaKind = "dbt" if model.source is None else "dbt-source"
        yield DeclaredSchema(
            table_urn(parts), schema, None, path, kind, complete=is_complete,
            annotations=_annotations_of_dbt(model),
        )  # fmt: skip


def _annotations_of_dbt(model: DbtModel) -> DeclaredAnnotations:
    meta = {key.casefold(): text for key, text in model.meta.items()}
    owners = [meta[key] for key in ("owner", "owners") if key in meta]
    return DeclaredAnnotations(
        description=model.description or None,
        domain=meta.get("business_domain") or meta.get("domain"),
        business_context=meta.get("business_context"),
        tags=model.tags,
        owners=tuple(each.name for each in parse_owners(owners)),
        properties=dict(model.meta),
    )


def _documented_schema(model: DbtModel) -> Schema:
    """The documented columns as nullable, since dbt tests do not guarantee constraints."""
    return Schema(
        fields=tuple(
            msgspec.structs.replace(field, nullable=True, key=False)
            for field in model.schema.fields
        )
    )


# The logical types of the Open Data Contract Standard.
_TYPE_BY_LOGICAL_TYPE: Final[dict[str, DataType]] = {
    "string": STRING,
    "integer": INT64,
    "number": FLOAT64,
    "boolean": BOOLEAN,
    "date": DATE,
    "time": Time("us"),
    "timestamp": Timestamp("us"),
}


class _ContractPart(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of a data contract; other keys do not affect the schema."""


class _ContractProperty(_ContractPart, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    physical_name: str | None = None
    logical_type: str | None = None
    physical_type: str | None = None
    required: bool | None = None
    primary_key: bool | None = None
    partitioned: bool | None = None
    description: str | None = None
    tags: list[str] | None = None
    properties: "list[_ContractProperty] | None" = None
    items: "_ContractProperty | None" = None


class _ContractTable(_ContractPart, frozen=True, kw_only=True, rename="camel"):
    name: str
    physical_name: str | None = None
    properties: list[_ContractProperty] | None = None
    tags: list[str] | None = None
    description: str | None = None


class _ContractServer(_ContractPart, frozen=True, kw_only=True, rename="camel"):
    type: str | None = None


class _Contract(_ContractPart, frozen=True, kw_only=True, rename="camel"):
    domain: str | None = None
    tags: list[str] | None = None
    schema: list[_ContractTable] | None = None
    servers: list[_ContractServer] | None = None
    # A list of members or a mapping with `members`, depending on the version.
    team: Any = None


def _read_contract(path: str, data: bytes) -> Iterator[DeclaredSchema]:
    """The tables of a data contract in version 3 of the Open Data Contract Standard."""
    tree, problems = parse_yaml(
        decode_text(path, data), position=ConfigPosition(origin=path, folder=""), environment={}
    )
    if problems:
        raise ConfigurationError(problems)
    values = _to_values(tree)
    version = str(values.get("apiVersion", "")).removeprefix("v")
    if version.partition(".")[0] != "3":
        raise UnreadableSchema(
            path, f"data contracts of version '{version}' are not supported; use apiVersion v3"
        )
    try:
        contract = msgspec.convert(values, _Contract, strict=False)
    except msgspec.ValidationError as problem:
        raise UnreadableSchema(path, f"not a valid data contract ({problem})") from None
    dialects = [DIALECT_OF_PLATFORM.get(each.type or "") for each in contract.servers or ()]
    dialect = next((each for each in dialects if each is not None), None)
    for table in contract.schema or ():
        fields = tuple(_contract_field(each, dialect) for each in table.properties or ())
        name = table.physical_name or table.name
        yield DeclaredSchema(
            table_urn(name.split(".")),
            Schema(fields=fields),
            None,
            path,
            "odcs",
            annotations=DeclaredAnnotations(
                description=table.description,
                domain=contract.domain,
                tags=(*(contract.tags or ()), *(table.tags or ())),
                owners=tuple(_contract_owners(contract.team)),
            ),
        )


def _contract_owners(team: Any) -> Iterator[str]:
    members = team.get("members") if isinstance(team, dict) else team
    for each in members if isinstance(members, list) else ():
        name = (each.get("username") or each.get("name")) if isinstance(each, dict) else None
        if isinstance(name, str):
            yield name


def _contract_field(property: _ContractProperty, dialect: Dialect | None) -> Field:
    is_key = bool(property.primary_key)
    return Field(
        name=property.physical_name or property.name,
        type=_contract_type(property, dialect, 1),
        nullable=not (property.required or is_key),
        key=is_key,
        partition=bool(property.partitioned),
        description=property.description or None,
        tags=tuple(property.tags or ()),
        native_type=property.physical_type,
    )


def _contract_type(property: _ContractProperty, dialect: Dialect | None, depth: int) -> DataType:
    """The physical type if it can be parsed, else the logical type."""
    if depth > _MAX_DEPTH:
        return UNKNOWN
    if property.properties:
        return Struct(
            tuple(
                Member(
                    member.physical_name or member.name,
                    _contract_type(member, dialect, depth + 1),
                    nullable=not member.required,
                )
                for member in property.properties
            )
        )
    if property.items is not None:
        return Array(_contract_type(property.items, dialect, depth + 1))
    if property.physical_type:
        type = type_from_sql(property.physical_type, dialect or "postgres")
        if not isinstance(type, Unknown):
            return type
    return _TYPE_BY_LOGICAL_TYPE.get(property.logical_type or "", UNKNOWN)


def _to_values(node: Any) -> Any:
    """Convert a YAML tree to texts, lists and mappings."""
    if isinstance(node, MappingNode):
        return {key: _to_values(entry.node) for key, entry in node.entries.items()}
    if isinstance(node, ListNode):
        return [_to_values(each) for each in node.items]
    return None if node.empty else node.written or node.text
