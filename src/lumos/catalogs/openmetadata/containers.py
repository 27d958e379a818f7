"""The kinds of entity that a dataset is in OpenMetadata: a table, a container or a topic."""

from typing import Final, NamedTuple


class EntityContainer(NamedTuple):
    """A kind of entity: its routes, and how deep below its service it may lie.

    `custom` is the type of a service that OpenMetadata has no type for.
    """

    type: str
    route: str
    services: str
    custom: str
    depths: tuple[int, ...]


HOMES: Final = {
    home.type: home
    for home in (
        EntityContainer("table", "tables", "databaseServices", "CustomDatabase", (3,)),
        EntityContainer("container", "containers", "storageServices", "CustomStorage", (1, 2)),
        EntityContainer("topic", "topics", "messagingServices", "CustomMessaging", (1,)),
    )
}
_STORAGES: Final = frozenset(
    {"s3", "gcs", "abs", "adls", "adlsgen2", "hdfs", "file", "minio", "oss", "r2", "azure", "local"}
)
_BROKERS: Final = frozenset({"kafka", "pulsar", "kinesis", "redpanda", "pubsub", "eventhubs"})
# Types of services as of OpenMetadata 1.5; any other platform is a custom one.
_TYPES: Final = {
    "athena": "Athena", "bigquery": "BigQuery", "cassandra": "Cassandra",
    "clickhouse": "Clickhouse",
    "couchbase": "Couchbase", "databricks": "Databricks", "db2": "Db2", "delta-lake": "DeltaLake",
    "doris": "Doris", "druid": "Druid", "dynamodb": "DynamoDB", "glue": "Glue",
    "greenplum": "Greenplum", "hana": "SapHana", "hive": "Hive", "impala": "Impala",
    "mariadb": "MariaDB", "mongodb": "MongoDB", "mssql": "Mssql", "mysql": "Mysql",
    "oracle": "Oracle", "postgres": "Postgres", "presto": "Presto", "redshift": "Redshift",
    "singlestore": "SingleStore", "snowflake": "Snowflake", "sqlite": "SQLite",
    "teradata": "Teradata", "trino": "Trino", "unity-catalog": "UnityCatalog",
    "vertica": "Vertica", "datalake": "Datalake", "iceberg": "Iceberg",
    "s3": "S3", "gcs": "GCS", "adls": "ADLS",
    "kafka": "Kafka", "kinesis": "Kinesis", "redpanda": "Redpanda",
}  # fmt: skip
_PLATFORMS: Final = {type: platform for platform, type in _TYPES.items()}


def home_of(platform: str) -> EntityContainer:
    """The kind of entity that datasets of a platform are."""
    if platform in _STORAGES:
        return HOMES["container"]
    return HOMES["topic" if platform in _BROKERS else "table"]


def type_of(platform: str) -> str:
    """The type of a platform's services."""
    return _TYPES.get(platform, home_of(platform).custom)


def platform_of(type: str) -> str | None:
    """The platform that services of a type stand for, if they are not custom ones."""
    if type in _PLATFORMS:
        return _PLATFORMS[type]
    is_custom = any(type == home.custom for home in HOMES.values())
    return None if is_custom else type.lower()
