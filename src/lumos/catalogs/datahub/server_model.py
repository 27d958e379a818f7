"""Uses the model in DataHub's package to normalize aspects, so that they can be compared.

Defaults of the model and aspects that a server creates itself are removed. An empty aspect equals a
missing one, since no proposal can remove an aspect. In a union, a server wraps a plain value in an
object with the name of its type as key; older files of DataHub do not.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

from lumos.catalogs.datahub.aspects import Entity
from lumos.catalogs.datahub.names import entity_name, is_acceptable, platform_urn
from lumos.catalogs.datahub.server import classes, key_aspect
from lumos.catalogs.datahub.writer import EMPTY, STAMPS

# Pairs of a record and a field that a server has and the model in the package does not have.
KnownFields: TypeAlias = set[tuple[str, str]]

_MODEL_NAMESPACE: Final = "com.linkedin.pegasus2avro."
_WIRE_NAMESPACE: Final = "com.linkedin."
_UNION_NAMES: Final[dict[type, tuple[str, ...]]] = {
    bool: ("boolean",),
    int: ("long", "int", "double", "float"),
    float: ("double", "float"),
    str: ("string", "bytes"),
}
_BROWSE: Final = "browsePathsV2"
_INSTANCE: Final = "dataPlatformInstance"
# Aspects with secrets, which are never exported.
_SECRET: Final = frozenset({"corpUserCredentials"})
# Settings, secrets and built-in definitions of a server, and changes without an entity.
_INTERNAL: Final = frozenset(
    {"change", "dataType", "entityType", "globalSettings", "inviteToken", "telemetry"}
)
_INTERNAL_PREFIX: Final = "dataHub"
_BUILT_IN: Final = frozenset({"urn:li:corpuser:datahub", "urn:li:corpuser:__datahub_system"})
_BUILT_IN_PREFIX: Final = "urn:li:ownershipType:__system__"
# The platforms that servers create when they start, as of DataHub 1.7.
_BUILT_IN_PLATFORMS: Final = frozenset(
    """
    OpenApi abinitio adlsGen1 adlsGen2 aerospike airbyte airflow ambry athena
    azure-data-factory bigid bigquery bigtable cassandra clickhouse cloudsql cockroachdb
    controlm couchbase csv cube dagster databricks datahub dataplex dataproc-metastore db2 dbt
    delta-lake dlt documentdb doris dremio druid dynamodb elasticsearch excel external fabric
    fabric-data-factory fabric-onelake feast file fivetran flink gcs github glue google_sheets
    grafana great-expectations hana hdfs hex hive hudi iceberg informatica informix kafka
    kafka-connect kinesis kinesis-firehose kusto logical looker mariadb matillion metabase
    microsoft-teams microstrategy mlflow mode mongodb mssql mysql neo4j nifi notion odcs
    omni oracle pinot postgres powerbi prefect preset presto presto-on-hive pubsub pulsar
    qlik-sense redash redshift s3 sac sagemaker salesforce sap-datasphere sigma slack snaplogic
    snowflake snowplow spanner spark sqlmesh streamlit superset tableau teradata thoughtspot
    tidb timescaledb trino unknown vertexai vertica voldemort
    """.split()  # noqa: SIM905 - a list of 119 texts is harder to read
)


class Shape:
    """The shape of values of a type; this base class accepts all values unchanged."""

    def convert(self, value: Any, known_fields: KnownFields, *, send: bool) -> Any:  # noqa: ARG002
        """Remove defaults from a value or, with `send`, the fields that the server does not know.

        Without `send`, fields that the package does not have are added to `known_fields`.
        """
        return value


ANY_SHAPE: Final = Shape()


def shape_of(schema: Any) -> Shape:
    """The shape of a schema of the package."""
    return _ShapeBuilder().shape(schema)


class _Field(NamedTuple):
    """A field of a record; an empty collection may be equivalent to a missing one."""

    shape: Shape
    has_default: bool
    default: Any
    may_be_empty: bool


class _Record(Shape):
    def __init__(self, name: str) -> None:
        self.name = name
        self.fields: dict[str, _Field] = {}

    def convert(self, value: Any, known_fields: KnownFields, *, send: bool) -> Any:
        if not isinstance(value, dict):
            return value
        converted = {}
        for name, each in value.items():
            if (field := self.fields.get(name)) is None:
                if not send:
                    known_fields.add((self.name, name))
                if (self.name, name) in known_fields:
                    converted[name] = each
                continue
            shape = field.shape
            if shape is not ANY_SHAPE and each is not None:
                each = shape.convert(each, known_fields, send=send)
            is_set = each != field.default and (each or not field.may_be_empty)
            if send or is_set or not field.has_default:
                converted[name] = each
        return converted


class _Collection(Shape):
    """A list or a map."""

    def __init__(self, inner: Shape) -> None:
        self._inner = inner

    def convert(self, value: Any, known_fields: KnownFields, *, send: bool) -> Any:
        if type(value) is list:
            return [self._inner.convert(each, known_fields, send=send) for each in value]
        if isinstance(value, dict):
            return {
                name: self._inner.convert(each, known_fields, send=send)
                for name, each in value.items()
            }
        return value


class _Union(Shape):
    """A union: the value is wrapped in the name of its type."""

    def __init__(self, named: Mapping[str, Shape]) -> None:
        self._named = named

    def convert(self, value: Any, known_fields: KnownFields, *, send: bool) -> Any:
        if isinstance(value, dict) and len(value) == 1:
            ((name, inside),) = value.items()
            shape = self._named.get(name, ANY_SHAPE)
            return {name: shape.convert(inside, known_fields, send=send)}
        # Older files do not wrap plain values.
        name = next((name for name in _UNION_NAMES.get(type(value), ()) if name in self._named), "")
        return {name: value} if name else value


class _ShapeBuilder:
    """Builds shapes, one for each record, since records may be recursive."""

    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}

    def shape(self, schema: Any) -> Shape:
        match schema.type:
            case "record" | "error":
                return self._record(schema)
            case "array":
                inner = self.shape(schema.items)
                return inner if inner is ANY_SHAPE else _Collection(inner)
            case "map":
                inner = self.shape(schema.values)
                return inner if inner is ANY_SHAPE else _Collection(inner)
            case "union":
                return self._union(schema)
        return ANY_SHAPE

    def _record(self, schema: Any) -> _Record:
        if (known := self._records.get(schema.fullname)) is not None:
            return known
        record = self._records[schema.fullname] = _Record(schema.fullname)
        for field in schema.fields:
            shape = self.shape(field.type)
            default = field.default if field.has_default else None
            if default is not None:
                default = shape.convert(default, set(), send=False)
            options = field.type.schemas if field.type.type == "union" else [field.type]
            is_collection = all(each.type in ("array", "map", "null") for each in options)
            may_be_empty = default is None and is_collection
            record.fields[field.name] = _Field(shape, field.has_default, default, may_be_empty)
        return record

    def _union(self, schema: Any) -> Shape:
        branches = [each for each in schema.schemas if each.type != "null"]
        if len(branches) == 1 and len(schema.schemas) > 1:
            # An optional value.
            return self.shape(branches[0])
        return _Union({_union_name(each): self.shape(each) for each in branches})


def _union_name(schema: Any) -> str:
    name = str(getattr(schema, "fullname", schema.type))
    return (
        f"{_WIRE_NAMESPACE}{name[len(_MODEL_NAMESPACE) :]}"
        if name.startswith(_MODEL_NAMESPACE)
        else name
    )


class DataHubModel:
    """The model in DataHub's package, extended by the aspects and fields that a server has."""

    def __init__(self) -> None:
        self._known_aspects: set[tuple[str, str]] = set()
        self._known_fields: KnownFields = set()

    def types(self) -> frozenset[str]:
        return frozenset(classes().KEY_ASPECTS)

    def is_internal(self, type: str) -> bool:
        """Whether entities of a type are internal to a server."""
        return type in _INTERNAL or type.startswith(_INTERNAL_PREFIX)

    def can_store(self, entity: Entity) -> bool:
        platform = entity_name("dataPlatform", entity.urn)
        is_built_in = (
            entity.urn in _BUILT_IN
            or entity.urn.startswith(_BUILT_IN_PREFIX)
            or platform in _BUILT_IN_PLATFORMS
        )
        return not is_built_in and not self.is_internal(entity.type) and is_acceptable(entity.urn)

    def sendable(self, entity: Entity, aspects: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: _shape(name).convert(body, self._known_fields, send=True)
            for name, body in aspects.items()
            if name in _aspect_names(entity.type) or (entity.type, name) in self._known_aspects
        }

    def read(self, entity: Entity, aspects: Mapping[str, Any]) -> dict[str, Any]:
        """Normalize aspects from a server, and record those that the model does not have."""
        known = _aspect_names(entity.type)
        self._known_aspects.update((entity.type, name) for name in aspects if name not in known)
        return self._normalize(entity, aspects, self._known_fields)

    def normalize(self, entity: Entity, aspects: Mapping[str, Any]) -> dict[str, Any]:
        return self._normalize(entity, aspects, set())

    def is_time_series(self, aspect: str) -> bool:
        known = classes().ASPECT_NAME_MAP.get(aspect)
        return known is not None and known.ASPECT_TYPE == "timeseries"

    def without_empty(self, aspects: Mapping[str, Any]) -> dict[str, Any]:
        return {name: body for name, body in aspects.items() if not _is_empty(name, body)}

    def _normalize(
        self, entity: Entity, aspects: Mapping[str, Any], known_fields: KnownFields
    ) -> dict[str, Any]:
        key = key_aspect(entity.type)
        normalized = {}
        for name, body in aspects.items():
            if name == key or name in _SECRET:
                continue
            normal = _shape(name).convert(body, known_fields, send=False)
            if not _is_empty(name, normal) and not _is_set_by_server(entity, name, normal):
                normalized[name] = normal
        return normalized


@cache
def _shape(aspect: str) -> Shape:
    aspect_class = classes().ASPECT_NAME_MAP.get(aspect)
    return ANY_SHAPE if aspect_class is None else shape_of(aspect_class.RECORD_SCHEMA)


@cache
def _aspect_names(type: str) -> frozenset[str]:
    """The aspects of an entity type, without its key and time series."""
    key = classes().KEY_ASPECTS.get(type)
    names = classes().ASPECT_NAME_MAP
    return frozenset(
        name
        for name in (() if key is None else key.ASPECT_INFO["entityAspects"])
        if name in names and name not in _SECRET and names[name].ASPECT_TYPE != "timeseries"
    )


def _is_empty(aspect: str, body: Any) -> bool:
    if aspect not in EMPTY or not isinstance(body, dict):
        return False
    return all(value in ([], {}, None) for name, value in body.items() if name not in STAMPS)


def _is_set_by_server(entity: Entity, aspect: str, body: Any) -> bool:
    if aspect == _INSTANCE:
        return bool(body == {"platform": _default_platform(entity)})
    if aspect == _BROWSE:
        # A server creates the browse path from the name.
        name = entity.urn.partition(",")[2].rpartition(",")[0]
        *parents, _ = name.split("/" if "/" in name else ".")
        return body.get("path", []) in ([{"id": "Default"}], [{"id": part} for part in parents])
    return False


def _default_platform(entity: Entity) -> str | None:
    """The platform that a server sets for new entities of some types."""
    key = entity.urn.split(":", 3)[-1].removeprefix("(")
    match entity.type:
        case "dataset" | "mlFeatureTable" | "mlModel" | "mlModelDeployment" | "mlModelGroup":
            return key.partition(",")[0]
        case "chart" | "dashboard" | "dataFlow":
            tool = key.partition(",")[0]
        case "dataJob":
            tool = key.removeprefix("urn:li:dataFlow:(").partition(",")[0]
        case "dataProcess":
            tool = key.partition(",")[2].partition(",")[0]
        case _:
            return None
    return platform_urn(tool.lower())
