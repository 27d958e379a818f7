"""Converts the names of OpenLineage datasets (a namespace and a name) to references."""

import re
from typing import Final

from lumos.lineage.reported_lineage import (
    DatasetReference,
    LocationReference,
    TableName,
    UrnReference,
)
from lumos.model.urn import SCHEME

_S3_SCHEMES: Final = ("s3", "s3a", "s3n")
_LOCATION_SCHEMES: Final = frozenset(
    (*_S3_SCHEMES, "gs", "gcs", "abfs", "abfss", "wasb", "wasbs", "adl", "hdfs", "viewfs", "dbfs",
     "oss")
)  # fmt: skip
# Schemes of databases with another platform name in Lumos.
_PLATFORM_BY_SCHEME: Final = {
    "awsathena": "athena",
    "azuresql": "mssql",
    "crdb": "cockroachdb",
    "postgresql": "postgres",
    "sqlserver": "mssql",
    "synapse": "mssql",
    "unitycatalog": "unity-catalog",
}
_TABLE_PLATFORMS: Final = frozenset(
    ("athena", "azurecosmos", "bigquery", "cassandra", "clickhouse", "cockroachdb", "databricks",
     "db2", "druid", "duckdb", "hive", "iceberg", "mariadb", "mongodb", "mssql", "mysql", "oracle",
     "postgres", "presto", "redshift", "snowflake", "spanner", "sqlite", "teradata", "trino",
     "unity-catalog", "vertica")
)  # fmt: skip
_TOPIC_PLATFORMS: Final = frozenset(("kafka", "pubsub", "pulsar", "kinesis"))
_GLUE: Final = re.compile(r"(?:arn:aws[\w-]*:glue:[^/]*|awsglue)\Z")
_PART: Final = re.compile(r'"((?:[^"]|"")*)"|`((?:[^`]|``)*)`|\[([^\]]*)\]|([^.]+)')


def dataset_reference(namespace: str, name: str) -> DatasetReference:
    """The reference for a namespace and a name."""
    if name.startswith(SCHEME):
        return UrnReference(urn=name)
    scheme, _, authority = namespace.partition("://")
    scheme = scheme.lower()
    if scheme in _LOCATION_SCHEMES:
        scheme = "s3" if scheme in _S3_SCHEMES else scheme
        return LocationReference(uri=f"{scheme}://{authority}/{name.strip('/')}".rstrip("/"))
    if scheme == "file":
        return LocationReference(uri=f"/{name.lstrip('/')}".rstrip("/") or "/")
    if _GLUE.match(namespace):
        return TableName(parts=tuple(name.removeprefix("table/").split("/")), platform="glue")
    platform = _PLATFORM_BY_SCHEME.get(scheme, scheme)
    instance = authority.rstrip("/") or None
    if platform in _TOPIC_PLATFORMS:
        return TableName(parts=(name,), platform=platform, instance=instance)
    if platform in _TABLE_PLATFORMS:
        return TableName(parts=split_name(name), platform=platform, instance=instance)
    if name.startswith("/"):
        return LocationReference(uri=f"{namespace.rstrip('/')}{name}" if authority else name)
    return TableName(parts=split_name(name), instance=namespace or None)


def postgres_location(namespace: str, name: str) -> LocationReference | None:
    """The URL of a PostgreSQL table, as scans record it."""
    scheme, _, authority = namespace.partition("://")
    if _PLATFORM_BY_SCHEME.get(scheme, scheme) != "postgres" or not authority:
        return None
    return LocationReference(
        uri=f"postgresql://{authority.rstrip('/')}/{'/'.join(split_name(name))}"
    )


def split_name(name: str, *, lower: bool = False) -> tuple[str, ...]:
    """Split a dotted name; `lower` converts unquoted parts to lower case."""
    parts = []
    for match in _PART.finditer(name):
        *quoted, plain = match.groups()
        if plain is not None:
            parts.append(plain.strip().lower() if lower else plain.strip())
        else:
            parts.append(next(group for group in quoted if group is not None))
    return tuple(part for part in parts if part) or (name,)
