"""Tables of metastores in one form, and their conversion to datasets.

The data of a table is in storage, where a scan finds it as a dataset of its own. So a table has no
files and bytes here, only the property `location`, by which `lumos reconcile` links the two.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from lumos.config.secret import redact
from lumos.errors import LumosError
from lumos.model.conversions.spark import schema_from_spark
from lumos.model.conversions.sql_types import type_from_sql
from lumos.model.dataset import Definition, Location, Owner, Statistics
from lumos.model.discovery import FoundDataset, SourceMetadata
from lumos.model.schema import Field, Schema
from lumos.sources.interface import RegisteredTable
from lumos.sources.relational import content_of, path_of

TableKind = Literal["table", "view", "materialized_view"]
_KINDS: Final[dict[str, TableKind]] = {
    "VIRTUAL_VIEW": "view",
    "MATERIALIZED_VIEW": "materialized_view",
}
_MANAGED: Final = "MANAGED_TABLE"
# Parameters that change with the data, or that repeat the schema.
_VOLATILE: Final = frozenset(
    ("transient_lastddltime", "last_modified_time", "last_modified_by", "numfiles", "numrows",
     "totalsize", "rawdatasize", "numfileserasurecoded", "numpartitions", "column_stats_accurate",
     "metadata_location", "previous_metadata_location", "snapshot-count", "current-snapshot-id",
     "current-snapshot-summary", "current-snapshot-timestamp-ms", "current-schema",
     "default-partition-spec", "uuid", "recordcount", "objectcount", "averagerecordsize", "sizekey",
     "updated_by_crawler", "crawlerschemaserializerversion", "crawlerschemadeserializerversion",
     "last_commit_time_sync", "last_commit_completion_time_sync", "delta.lastupdateversion",
     "delta.lastcommittimestamp", "do_not_update_stats", "stats_generated", "comment", "external",
     "presto_view", "presto_version", "trino_version", "presto_query_id", "trino_query_id")
)  # fmt: skip
_VOLATILE_PREFIXES: Final = (
    "spark.sql.statistics.", "spark.sql.sources.schema", "spark.sql.create.version",
    "view.", "current-snapshot-",
)  # fmt: skip
# File formats by a part of the name of an input format, serde or Spark provider.
_FORMATS: Final = (
    ("iceberg", "iceberg"), ("delta", "delta"), ("hudi", "hudi"), ("hoodie", "hudi"),
    ("parquet", "parquet"), ("orc", "orc"), ("avro", "avro"), ("json", "json"),
    ("opencsv", "csv"), ("csv", "csv"), ("lazysimple", "csv"), ("regex", "text"),
    ("sequencefile", "sequencefile"), ("rcfile", "rcfile"), ("kudu", "kudu"), ("hbase", "hbase"),
)  # fmt: skip
_PRESTO_VIEW: Final = "/* Presto View: "
_PRESTO_PLACEHOLDERS: Final = ("/* Presto View", "/* Presto Materialized View")
_SPARK_SCHEMA: Final = "spark.sql.sources.schema"
_SPARK_VIEW_NAMESPACE: Final = "view.catalogAndNamespace."
# The names under which engines know the metastore that they are connected to.
_OWN_CATALOGS: Final = frozenset(("awsdatacatalog", "hive", "spark_catalog"))
_MAX_SCHEMA_PARTS: Final = 10_000


class MetastoreColumn(NamedTuple):
    """A column with Hive's text of its type."""

    name: str
    type: str
    comment: str | None = None


class MetastoreTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table as the Hive metastore and the Glue catalog describe it.

    `format_classes` are the names of its input format and serde.
    """

    database: str
    name: str
    type: str = "EXTERNAL_TABLE"
    columns: tuple[MetastoreColumn, ...] = ()
    partition_columns: tuple[MetastoreColumn, ...] = ()
    location: str | None = None
    format_classes: tuple[str, ...] = ()
    owner: Owner | None = None
    comment: str | None = None
    original_sql: str | None = None
    expanded_sql: str | None = None
    parameters: Mapping[str, str] = {}
    identity: str | None = None

    @property
    def kind(self) -> TableKind:
        """Whether it is a table or a view."""
        return _KINDS.get(self.type, "table")

    @property
    def path(self) -> str:
        """The path of the table in its source, with special characters encoded."""
        return path_of(self.database, self.name)

    @property
    def format(self) -> str | None:
        """The format of its files, if it is known."""
        if self.kind == "view":
            return None
        parameters = {name.lower(): text for name, text in self.parameters.items()}
        declared = (
            parameters.get("table_type", ""),
            parameters.get("spark.sql.sources.provider", ""),
            parameters.get("classification", ""),
            *self.format_classes,
        )
        for name in declared:
            for part, format in _FORMATS:
                if part in name.lower():
                    return format
        return None


def dataset_of(table: MetastoreTable, *, address: str) -> FoundDataset:
    """The dataset for a table or view."""
    schema = _schema(table)
    metadata = SourceMetadata(
        description=table.comment or None,
        owner=table.owner,
        definition=_definition(table),
        properties=_properties(table),
    )
    keys = tuple(column.name for column in table.partition_columns)
    partitioning = ", ".join(keys) or None
    registered = registered_table(table)
    return FoundDataset(
        path=table.path,
        name=f"{table.database}.{table.name}",
        format=table.kind,
        location=Location(
            uri=f"{address}/{table.path}",
            partitioning=partitioning,
            partition_keys=keys,
            identity=table.identity,
        ),
        schema=schema,
        statistics=Statistics(
            row_count=registered.rows,
            # The files are also a dataset, so counting their bytes here would count them twice.
            total_size_exact=False,
        ),
        drift=(),
        content=content_of(table.kind, partitioning, metadata, schema),
        source_metadata=metadata,
    )


def registered_table(table: MetastoreTable) -> RegisteredTable:
    """The location, format and statistics of a table's data, as the metastore has them."""
    parameters = {name.lower(): text for name, text in table.parameters.items()}

    def number(*names: str) -> int | None:
        texts = (parameters.get(name, "") for name in names)
        return next((int(text) for text in texts if text.isascii() and text.isdigit()), None)

    return RegisteredTable(
        path=table.path,
        location=table.location or "",
        format=table.format or "",
        managed=table.type == _MANAGED,
        partition_keys=tuple(column.name for column in table.partition_columns),
        files=number("numfiles"),
        bytes=number("spark.sql.statistics.totalsize", "totalsize"),
        rows=number("spark.sql.statistics.numrows", "numrows"),
    )


def _schema(table: MetastoreTable) -> Schema:
    keys = {column.name for column in table.partition_columns}
    columns = (*table.columns, *table.partition_columns)
    spark_schema = _spark_schema(table.parameters)
    if spark_schema is not None:
        names = {field.name.lower(): field for field in spark_schema.fields}
        lower_keys = {key.lower() for key in keys}
        if names.keys() != {column.name.lower() for column in columns}:
            if not _is_placeholder(table):
                # Another engine has changed the columns since Spark wrote its own copy.
                return _columns_schema(columns, keys)
            return Schema(
                fields=tuple(
                    replace(field, partition=field.name.lower() in lower_keys)
                    for field in spark_schema.fields
                )
            )
        # The metastore stores names in lower case; Spark's copy has the original case.
        columns = tuple(column._replace(name=names[column.name.lower()].name) for column in columns)
        keys = {names[key].name for key in lower_keys}
    return _columns_schema(columns, keys)


def _columns_schema(columns: Sequence[MetastoreColumn], keys: set[str]) -> Schema:
    distinct = {column.name: column for column in columns}
    return Schema(
        fields=tuple(
            Field(
                name=name,
                type=type_from_sql(column.type, "hive"),
                partition=name in keys,
                description=column.comment or None,
                native_type=column.type,
            )
            for name, column in distinct.items()
        )
    )


def _is_placeholder(table: MetastoreTable) -> bool:
    """Whether Spark stored a placeholder column, because Hive cannot read the table."""
    columns = [(column.name, column.type) for column in table.columns]
    return columns in ([], [("col", "array<string>")], [("dummy", "string")])


def _spark_schema(parameters: Mapping[str, str]) -> Schema | None:
    """The schema that Spark stores in table parameters, divided into parts if it is long."""
    text = parameters.get(_SPARK_SCHEMA)
    count = parameters.get(f"{_SPARK_SCHEMA}.numParts", "")
    if text is None and count.isascii() and count.isdigit() and int(count) <= _MAX_SCHEMA_PARTS:
        parts = [parameters.get(f"{_SPARK_SCHEMA}.part.{number}") for number in range(int(count))]
        if all(part is not None for part in parts):
            text = "".join(part or "" for part in parts)
    if not text:
        return None
    try:
        value = msgspec.json.decode(text, type=dict[str, Any])
        return schema_from_spark(value)
    except (msgspec.DecodeError, RecursionError, ValueError, LumosError):
        # The columns of the metastore are used instead.
        return None


def _properties(table: MetastoreTable) -> dict[str, str]:
    properties: dict[str, str | None] = {
        "location": None if table.location is None else redact(table.location),
        "format": table.format,
        "type": table.type.lower() if table.kind == "table" else None,
    }
    parameters = {
        f"parameter.{name}": redact(text)
        for name, text in table.parameters.items()
        if name.lower() not in _VOLATILE
        and not name.lower().startswith(_VOLATILE_PREFIXES)
        and text != ""
    }
    return {name: text for name, text in {**properties, **parameters}.items() if text is not None}


def _definition(table: MetastoreTable) -> Definition | None:
    if table.kind == "table":
        return None
    original = table.original_sql or ""
    if original.startswith(_PRESTO_VIEW):
        return _presto_definition(original, table)
    if original.startswith(_PRESTO_PLACEHOLDERS):
        return None
    text = (table.expanded_sql or original).strip()
    if not text or text.startswith(_PRESTO_PLACEHOLDERS):
        return None
    is_spark = any(name.startswith(_SPARK_VIEW_NAMESPACE) for name in table.parameters)
    namespace = [
        table.parameters.get(f"{_SPARK_VIEW_NAMESPACE}part.{number}", "") for number in (0, 1)
    ]
    default = namespace[1] if is_spark and namespace[1] else table.database
    dialect = "spark" if is_spark else "hive"
    return Definition(sql=qualified(text, dialect, default, table.database), dialect=dialect)


def _presto_definition(original: str, table: MetastoreTable) -> Definition | None:
    """The query of a view of Presto, Trino or Athena, which is Base64 of JSON in a comment."""
    encoded = original.removeprefix(_PRESTO_VIEW).partition(" ")[0]
    try:
        view = msgspec.json.decode(base64.b64decode(encoded, validate=True), type=dict[str, Any])
    except (binascii.Error, msgspec.DecodeError, ValueError):
        return None
    text, schema = view.get("originalSql"), view.get("schema")
    if not isinstance(text, str):
        return None
    default = schema if isinstance(schema, str) else table.database
    return Definition(sql=qualified(text, "trino", default, table.database), dialect="trino")


def qualified(sql: str, dialect: str, default_database: str, own_database: str) -> str:
    """The query with table names qualified by the database of the view.

    Names without a database are those of the session that created the view; engines may also put
    their name of the catalog in front. The text stays as it is if neither occurs.
    """
    has_catalog = any(name in sql.lower() for name in _OWN_CATALOGS)
    if default_database.lower() == own_database.lower() and not has_catalog:
        return sql
    import sqlglot
    from sqlglot import exp

    try:
        tree = sqlglot.parse_one(sql, dialect=dialect)
    except sqlglot.ParseError:
        # The reader of lineage reports the problem.
        return sql
    queries = {each.alias_or_name.lower() for each in tree.find_all(exp.CTE)}
    changed = False
    for name in tree.find_all(exp.Table):
        if name.catalog and name.catalog.lower() in _OWN_CATALOGS:
            name.set("catalog", None)
            changed = True
        elif not name.db and name.name.lower() not in queries:
            name.set("db", exp.to_identifier(default_database, quoted=True))
            changed = True
    return tree.sql(dialect=dialect) if changed else sql
