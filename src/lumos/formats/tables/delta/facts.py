"""Describes a Delta table: schema, features, history and live files."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from lumos.formats.columns import with_distinct_names
from lumos.formats.interface import Remark
from lumos.formats.tables.delta.log import CorruptDeltaLog, DeltaMetadata, DeltaProtocol
from lumos.formats.tables.delta.state import DeltaSavedState, files_in_buckets, total_of_buckets
from lumos.formats.tables.interface import (
    LiveFile,
    TableFacts,
    TableFeature,
    TableSchemaVersion,
    remarks_on_features,
    without_secrets,
)
from lumos.model.conversions.json_values import object_at, objects_at, text_at
from lumos.model.conversions.spark import schema_from_spark
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.type_path import TypePath

# From these versions on, the protocol lists features by name.
_FEATURE_LIST_READER_VERSION: Final = 3
_FEATURE_LIST_WRITER_VERSION: Final = 7
# From this version on, readers support column mapping.
_COLUMN_MAPPING_READER_VERSION: Final = 2

# Supported features that change how a table is read.
_SUPPORTED: Final = frozenset(
    ("columnMapping", "deletionVectors", "geospatial", "timestampNtz", "typeWidening",
     "v2Checkpoint", "vacuumProtocolCheck", "variantShredding", "variantType")
)  # fmt: skip
# Only a catalog knows which commits are valid and where they are stored.
_CATALOG_FEATURES: Final = frozenset({"catalogManaged", "catalogOwned", "coordinatedCommits"})
_PREVIEW: Final = "-preview"


def table_features(protocol: DeltaProtocol, settings: dict[str, str]) -> tuple[TableFeature, ...]:
    """The features of the table; those that only concern writers do not affect how it is read."""
    reader_features = list(protocol.reader_features or ())
    writer_features = [
        each for each in protocol.writer_features or () if each not in reader_features
    ]
    mapping = settings.get("delta.columnMapping.mode", "none")
    if (
        "columnMapping" not in reader_features
        and mapping != "none"
        and protocol.min_reader_version >= _COLUMN_MAPPING_READER_VERSION
    ):
        reader_features.append("columnMapping")
    features = [
        TableFeature(name, _without_preview(name) in _SUPPORTED)
        for name in dict.fromkeys(reader_features)
    ]
    features += [
        TableFeature(name, _without_preview(name) not in _CATALOG_FEATURES)
        for name in dict.fromkeys(writer_features)
    ]
    if protocol.min_reader_version > _FEATURE_LIST_READER_VERSION:
        features.append(TableFeature(f"reader version {protocol.min_reader_version}", read=False))
    if protocol.min_writer_version > _FEATURE_LIST_WRITER_VERSION:
        features.append(TableFeature(f"writer version {protocol.min_writer_version}", read=True))
    return tuple(features)


def _without_preview(name: str) -> str:
    return name.removesuffix(_PREVIEW)


PHYSICAL_NAME: Final = "delta.columnMapping.physicalName"
# Delta's properties of columns that Spark's schema does not have. The high-water mark of identity
# columns is not included: it is data, and changes with every write.
_FIELD_PROPERTIES: Final[tuple[str, ...]] = (
    PHYSICAL_NAME,
    "delta.generationExpression",
    "delta.identity.start",
    "delta.identity.step",
    "delta.identity.allowExplicitInsert",
    "delta.invariants",
    "delta.typeChanges",
    "__COLLATIONS",
)


def delta_schema(metadata: DeltaMetadata) -> Schema:
    """The schema of the table; raises CorruptDeltaLog."""
    return _schema(metadata.schema_string or "", tuple(metadata.partition_columns or ()))


@lru_cache(maxsize=256)
def _schema(text: str, partition_columns: tuple[str, ...]) -> Schema:
    if not text:
        return Schema()
    try:
        value = msgspec.json.decode(text)
        if not isinstance(value, dict):
            raise CorruptDeltaLog("its schema is not a JSON object")
        schema = with_distinct_names(schema_from_spark(value))
    except RecursionError:
        raise CorruptDeltaLog("its schema nests too deeply") from None
    except ValueError as problem:
        raise CorruptDeltaLog(f"its schema is not valid JSON: {problem}") from None
    properties = dict(_field_properties(value, None))
    partitions = _partition_names(schema, partition_columns)
    return Schema(fields=tuple(_field(field, partitions, properties) for field in schema.fields))


def _partition_names(schema: Schema, partition_columns: Sequence[str]) -> frozenset[str]:
    """The partition columns, with upper and lower case as in the schema; Delta ignores case."""
    names = {field.name for field in schema.fields}
    folded = {name.casefold(): name for name in names}
    return frozenset(
        name if name in names else folded.get(name.casefold(), name) for name in partition_columns
    )


def _field(
    field: Field, partitions: frozenset[str], properties: dict[str, dict[str, str]]
) -> Field:
    column_path = TypePath.column(field.name).path
    nested_fields = {nested.path: nested for nested in field.nested}
    for path, nested_properties in properties.items():
        if path.startswith((f"{column_path}.", f"{column_path}[", f"{column_path}{{")):
            nested = nested_fields.get(path) or NestedField(path=path)
            nested_fields[path] = replace(nested, properties=nested_properties)
    return replace(
        field,
        partition=field.name in partitions,
        properties=properties.get(column_path, {}),
        nested=tuple(nested_fields.values()),
    )


def _field_properties(
    value: dict[str, Any], path: TypePath | None
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the properties of each field, with the field's path."""
    for field in objects_at(value, "fields"):
        name = text_at(field, "name") or ""
        field_path = TypePath.column(name) if path is None else path.member(name)
        metadata = object_at(field, "metadata")
        properties = {key: _text(metadata[key]) for key in _FIELD_PROPERTIES if key in metadata}
        if properties:
            yield field_path.path, properties
        yield from _nested_properties(field.get("type"), field_path)


def _nested_properties(type: object, path: TypePath) -> Iterator[tuple[str, dict[str, str]]]:
    if not isinstance(type, dict) or path.is_deepest:
        return
    match type.get("type"):
        case "struct":
            yield from _field_properties(type, path)
        case "array":
            yield from _nested_properties(type.get("elementType"), path.element())
        case "map":
            yield from _nested_properties(type.get("keyType"), path.key())
            yield from _nested_properties(type.get("valueType"), path.value())


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def logical_names(schema: Schema) -> dict[str, str]:
    """The names of columns by the physical names that files and partitions use."""
    return {field.properties.get(PHYSICAL_NAME, field.name): field.name for field in schema.fields}


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def table_facts(saved_state: DeltaSavedState, remarks: Iterable[Remark]) -> TableFacts:
    """The facts of the table; raises CorruptDeltaLog."""
    metadata = saved_state.metadata
    schema = delta_schema(metadata)
    features = table_features(saved_state.protocol, metadata.settings)
    live = total_of_buckets(saved_state.live)
    identity = repr((metadata.id, saved_state.version, saved_state.at, live.files, live.size))
    content = hashlib.blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=16)
    return TableFacts(
        kind="delta",
        version=str(saved_state.version),
        at=_time(saved_state.at),
        operation=saved_state.operation,
        schema=schema,
        partition_by=tuple(metadata.partition_columns or ()),
        files=live.files,
        bytes=live.size,
        rows=live.rows,
        properties=_properties(saved_state, schema),
        description=metadata.description or None,
        identity=metadata.id or "",
        past=_schema_versions(saved_state, schema),
        features=features,
        remarks=(*remarks, *remarks_on_features(features), *_remarks_on_history(saved_state)),
        outside_locations=live.outside,
        content=content.hexdigest(),
    )


def _properties(saved_state: DeltaSavedState, schema: Schema) -> dict[str, str]:
    """The settings of the table, and Delta's other metadata as properties with similar names."""
    metadata, protocol = saved_state.metadata, saved_state.protocol
    properties = {
        **without_secrets(metadata.settings),
        "delta.minReaderVersion": str(protocol.min_reader_version),
        "delta.minWriterVersion": str(protocol.min_writer_version),
        "delta.name": metadata.name or "",
        "delta.clusteringColumns": _clustering(saved_state.clustering, schema),
    }
    return {key: value for key, value in properties.items() if value}


def _clustering(configuration: str, schema: Schema) -> str:
    """The names of the clustering columns."""
    if not configuration:
        return ""
    try:
        columns = msgspec.json.decode(configuration, type=_Clustering).clusteringColumns
    except (ValueError, RecursionError):
        return ""
    names = logical_names(schema)
    return ", ".join(".".join([names.get(path[0], path[0]), *path[1:]]) for path in columns if path)


class _Clustering(msgspec.Struct):
    clusteringColumns: list[list[str]] = []


def _schema_versions(
    saved_state: DeltaSavedState, current: Schema
) -> tuple[TableSchemaVersion, ...]:
    """The schemas in the order of versions; times never decrease."""
    past: list[TableSchemaVersion] = []
    for each in saved_state.schemas:
        metadata = DeltaMetadata(
            schema_string=each.schema_string, partition_columns=each.partition_columns
        )
        try:
            schema = delta_schema(metadata)
        except CorruptDeltaLog:
            # Skip an earlier schema that cannot be read.
            continue
        if past and past[-1].schema == schema:
            continue
        at = _time(each.at)
        is_later = not past or at >= past[-1].at
        past.append(
            TableSchemaVersion(
                schema=schema,
                at=at if is_later else past[-1].at,
                version=str(each.version),
                operation=each.operation,
                author=each.author,
                exact_time=each.exact_time and is_later,
            )
        )
    if not past or past[-1].schema != current:
        at = max([_time(saved_state.at), *(each.at for each in past)])
        version = str(saved_state.version)
        past.append(TableSchemaVersion(schema=current, at=at, version=version, exact_time=False))
    return tuple(past)


def _remarks_on_history(saved_state: DeltaSavedState) -> tuple[Remark, ...]:
    if not saved_state.unread:
        return ()
    versions = ", ".join(map(str, saved_state.unread[:5]))
    more = len(saved_state.unread) - 5
    others = f" and {more:,} more" if more > 0 else ""
    return (
        Remark(
            "incomplete_history",
            f"Commits {versions}{others} before the last checkpoint are damaged. Schemas that they "
            "set are missing from the history of the table.",
        ),
    )


def _time(microseconds: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return _EPOCH


def live_files(saved_state: DeltaSavedState) -> Iterator[LiveFile]:
    """Yield the live files, with the logical names of partition columns."""
    metadata = saved_state.metadata
    names = logical_names(delta_schema(metadata))
    partitions = [
        tuple((names.get(name, name), value) for name, value in partition)
        for partition in saved_state.partitions
    ]
    format = (metadata.format and metadata.format.provider) or "parquet"
    for file in files_in_buckets(saved_state.live):
        yield LiveFile(
            path=file.path,
            size=file.size,
            rows=file.rows,
            partition=partitions[file.partition],
            deletes=() if file.deletes is None else (file.deletes,),
            format=format,
            added=file.added * 1000 or None,
        )
