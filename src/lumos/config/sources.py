"""Sources of metadata: one section per type of source."""

import re
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta, field

from lumos.config.secret import ConnectionString, Secret
from lumos.config.section import (
    INTERNAL,
    SPLIT,
    Address,
    Bucket,
    Location,
    Port,
    Seconds,
    Section,
    alternative_names,
)
from lumos.errors import MisuseError

Names: TypeAlias = tuple[str, ...]
_BRACES: Final = re.compile(r"\{[A-Za-z_]\w*\}")
Databases: TypeAlias = Annotated[Names, alternative_names(singular=("database",))]
Schemas: TypeAlias = Annotated[Names, alternative_names(singular=("schema",))]
SslMode: TypeAlias = Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]
User: TypeAlias = Annotated[str | None, alternative_names(also=("username",))]


class SourceSettings(Section, frozen=True, kw_only=True):
    """A source of datasets; `instance` distinguishes two accounts of one type."""

    nested: ClassVar[str | None] = "config"

    type: str
    name: str = ""
    instance: str = ""


class DatasetHint(Section, frozen=True, kw_only=True):
    """A hint: the files that match `path` form one dataset or, with `split`, one dataset each.

    `path` is relative to the root of the source. `*` matches a name, `**` any folders, and each
    value of a `{key}` is a separate dataset. Several paths form one dataset and need a `name`.
    """

    shorthand: ClassVar[str | None] = "path"

    path: str | Names
    name: str | None = None
    split: Annotated[bool, alternative_names(also=("apart",))] = False

    @property
    def paths(self) -> Names:
        """All paths as a tuple."""
        return (self.path,) if isinstance(self.path, str) else self.path

    def __post_init__(self) -> None:
        if isinstance(self.path, tuple) and len(self.path) == 1:
            msgspec.structs.force_setattr(self, "path", self.path[0])
        if not self.paths or not all(path.strip("/ ") for path in self.paths):
            raise MisuseError("'path' is empty. Set it to a pattern such as raw/events/**.")
        for path in self.paths:
            if set(_BRACES.sub("", path)) & set("{}"):
                raise MisuseError(f"'{path}': braces must contain a name, such as {{table}}.")
            if len(self.paths) > 1 and "{" in path:
                raise MisuseError(
                    f"'{path}': several paths form one dataset, so a {{key}} cannot split them. "
                    "Write one hint for each path."
                )
        if self.name is not None and not self.name.strip(". "):
            raise MisuseError("'name' is empty. Remove it to name the dataset after its path.")
        if self.name is not None and (self.split or set(self.name) & set("/*{}")):
            reason = "'split' creates several datasets" if self.split else "it contains / * { or }"
            raise MisuseError(f"The name '{self.name}' cannot be used: {reason}.")
        if len(self.paths) > 1 and self.name is None and not self.split:
            raise MisuseError("Several paths form one dataset and need a 'name'.")


class FileStoreSettings(SourceSettings, frozen=True, kw_only=True):
    """A source of files; without patterns, all files are scanned."""

    file_patterns: Names = ()
    exclude: Names = ()
    recursive: bool = True
    datasets: tuple[DatasetHint, ...] = ()
    # Join files of a folder, and numbered folders, into one dataset if they have the same columns.
    join_similar: bool = False


class ObjectStoreSettings(FileStoreSettings, frozen=True, kw_only=True):
    """Buckets and prefixes; without a prefix, whole buckets are scanned."""

    buckets: Annotated[
        tuple[Bucket, ...], Meta(min_length=1), alternative_names(singular=("bucket",))
    ]
    prefixes: Annotated[Names, alternative_names(singular=("prefix",))] = ()

    def __post_init__(self) -> None:
        # Users often write a slash at the start, but keys in object stores have none.
        prefixes = tuple(prefix.lstrip("/") for prefix in self.prefixes)
        msgspec.structs.force_setattr(self, "prefixes", prefixes)


class S3SourceSettings(ObjectStoreSettings, frozen=True, kw_only=True):
    """Amazon S3, or a compatible service at `endpoint_url`."""

    type: Literal["s3"] = "s3"
    region: str | None = None
    endpoint_url: Annotated[Address | None, alternative_names(also=("endpoint",))] = None
    access_key_id: Annotated[Secret | None, alternative_names(also=("access_key",))] = None
    secret_access_key: Annotated[Secret | None, alternative_names(also=("secret_key",))] = None
    session_token: Secret | None = None
    profile: str | None = None
    role_arn: str | None = None
    anonymous: bool = False
    path_style: bool = False


class GcsSourceSettings(ObjectStoreSettings, frozen=True, kw_only=True):
    """Google Cloud Storage."""

    type: Literal["gcs"] = "gcs"
    project: str | None = None
    endpoint_url: Annotated[Address | None, alternative_names(also=("endpoint",))] = None
    credentials_file: Location | None = None
    credentials: Secret | None = None
    anonymous: bool = False


class AzureSourceSettings(ObjectStoreSettings, frozen=True, kw_only=True):
    """Azure Blob Storage or Data Lake Storage; containers are called buckets here."""

    type: Literal["azure"] = "azure"
    buckets: Annotated[
        tuple[Bucket, ...],
        Meta(min_length=1),
        alternative_names(also=("containers",), singular=("bucket", "container")),
    ]
    account: Annotated[str | None, alternative_names(also=("account_name", "storage_account"))] = (
        None
    )
    account_key: Secret | None = None
    sas_token: Secret | None = None
    connection_string: ConnectionString | None = None
    tenant_id: str | None = None
    client_id: str | None = None
    client_secret: Secret | None = None
    endpoint_url: Annotated[Address | None, alternative_names(also=("endpoint",))] = None
    anonymous: bool = False


class HdfsSourceSettings(FileStoreSettings, frozen=True, kw_only=True):
    """Folders of HDFS, read through WebHDFS at one of `urls`.

    `nameservice` is the authority of its paths: hdfs://nameservice/folder.
    """

    type: Literal["hdfs"] = "hdfs"
    paths: Annotated[Names, Meta(min_length=1), alternative_names(singular=("path",))]
    urls: Annotated[
        tuple[Address, ...],
        Meta(extra={SPLIT: ","}),
        alternative_names(also=("namenodes",), singular=("url", "namenode")),
    ] = ()
    nameservice: str | None = None
    user: User = None
    token: Secret | None = None
    kerberos: bool = False

    def __post_init__(self) -> None:
        if len(self.urls) > 1 and not self.nameservice:
            raise MisuseError(
                "An hdfs source with several addresses needs a 'nameservice', so that its paths do "
                "not depend on which of them is active."
            )


class FileSourceSettings(FileStoreSettings, frozen=True, kw_only=True):
    """Local folders."""

    type: Literal["file", "local"] = "file"
    paths: Annotated[
        tuple[Location, ...], Meta(min_length=1), alternative_names(singular=("path",))
    ]

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "type", "file")


class DatabaseServerSettings(SourceSettings, frozen=True, kw_only=True):
    """A database server at `connection_string`, or at `host` and a port."""

    connection_string: ConnectionString | None = None
    host: str | None = None
    user: User = None
    password: Secret | None = None
    exclude: Names = ()

    def __post_init__(self) -> None:
        address = self.connection_string
        if address is None and self.host is None:
            raise MisuseError(f"A {self.type} source needs 'connection_string' or 'host'.")
        for name in self.host.split(",") if self.host else address.hosts if address else ():
            if not _may_be_host(name):
                raise MisuseError(
                    f"'{name}' cannot be the host of a {self.type} source. Use a name such as "
                    "db.example.com."
                )


class PostgresSourceSettings(DatabaseServerSettings, frozen=True, kw_only=True):
    """A PostgreSQL database; without patterns, all tables and views are read."""

    type: Literal["postgres"] = "postgres"
    port: Port = 5432
    database: str | None = None
    sslmode: SslMode | None = None
    schemas: Schemas = ()
    tables: Names = ()
    statement_timeout: Seconds = 300
    # The only tables to read while watching.
    watched: Annotated[Names, Meta(extra={INTERNAL: True})] = ()


class MysqlSourceSettings(DatabaseServerSettings, frozen=True, kw_only=True):
    """A MySQL or MariaDB server; without patterns, all its databases are read."""

    type: Literal["mysql", "mariadb"] = "mysql"
    port: Port = 3306
    sslmode: SslMode | None = None
    ssl_ca_file: Location | None = None
    databases: Databases = ()
    tables: Names = ()
    statement_timeout: Seconds = 300
    # The only tables to read while watching.
    watched: Annotated[Names, Meta(extra={INTERNAL: True})] = ()


class SqlSourceSettings(SourceSettings, frozen=True, kw_only=True):
    """A database with an SQLAlchemy dialect; `platform` replaces the dialect in URNs."""

    type: Literal["sql"] = "sql"
    connection_string: Annotated[ConnectionString, alternative_names(also=("url",))]
    user: User = None
    password: Secret | None = None
    platform: str | None = None
    schemas: Schemas = ()
    tables: Names = ()
    exclude: Names = ()
    # The only tables to read while watching.
    watched: Annotated[Names, Meta(extra={INTERNAL: True})] = ()


class RedshiftSourceSettings(DatabaseServerSettings, frozen=True, kw_only=True):
    """An Amazon Redshift warehouse."""

    type: Literal["redshift"] = "redshift"
    port: Port = 5439
    database: str | None = None
    region: str | None = None
    schemas: Schemas = ()
    tables: Names = ()


class MongodbSourceSettings(DatabaseServerSettings, frozen=True, kw_only=True):
    """A MongoDB server; schemas are inferred from `sample_size` documents."""

    type: Literal["mongodb"] = "mongodb"
    connection_string: Annotated[ConnectionString | None, alternative_names(also=("uri",))] = None
    port: Port = 27017
    databases: Databases = ()
    collections: Annotated[Names, alternative_names(singular=("collection",))] = ()
    sample_size: Annotated[int, Meta(ge=1, description="a number of documents, at least 1")] = 1000
    statement_timeout: Seconds = 300


class SnowflakeSourceSettings(SourceSettings, frozen=True, kw_only=True):
    """A Snowflake account."""

    type: Literal["snowflake"] = "snowflake"
    account: str
    user: User = None
    password: Secret | None = None
    token: Secret | None = None
    authenticator: str | None = None
    private_key: Secret | None = None
    private_key_file: Location | None = None
    private_key_passphrase: Secret | None = None
    warehouse: str | None = None
    role: str | None = None
    databases: Databases = ()
    schemas: Schemas = ()
    exclude: Names = ()


class BigquerySourceSettings(SourceSettings, frozen=True, kw_only=True):
    """A BigQuery project."""

    type: Literal["bigquery"] = "bigquery"
    project: str
    location: str | None = None
    datasets: Annotated[Names, alternative_names(singular=("dataset",))] = ()
    exclude: Names = ()
    credentials_file: Location | None = None
    credentials: Secret | None = None


class DatabricksSourceSettings(SourceSettings, frozen=True, kw_only=True):
    """A Databricks workspace and its Unity Catalog."""

    type: Literal["databricks"] = "databricks"
    workspace: Annotated[str, alternative_names(also=("host",))]
    token: Secret | None = None
    client_id: str | None = None
    client_secret: Secret | None = None
    http_path: str | None = None
    catalogs: Annotated[Names, alternative_names(singular=("catalog",))] = ()
    schemas: Schemas = ()
    exclude: Names = ()


class KafkaSourceSettings(SourceSettings, frozen=True, kw_only=True):
    """Topics of a Kafka cluster and the schemas registered for them."""

    type: Literal["kafka"] = "kafka"
    bootstrap_servers: Annotated[Names, Meta(min_length=1, extra={SPLIT: ","})]
    topic_patterns: Names = ()
    topics: Annotated[Names, alternative_names(singular=("topic",))] = ()
    exclude: Names = ()
    schema_registry_url: Annotated[Address | None, alternative_names(also=("schema_registry",))] = (
        None
    )
    schema_registry_user: str | None = None
    schema_registry_password: Secret | None = None
    schema_registry_token: Secret | None = None
    schema_registry_ca_file: Location | None = None
    naming_strategy: Literal["auto", "topic_name", "record_name", "topic_record_name"] = "auto"
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    sasl_username: str | None = None
    sasl_password: Secret | None = None
    ssl_ca_file: Location | None = None
    ssl_certificate_file: Location | None = None
    ssl_key_file: Location | None = None
    ssl_key_password: Secret | None = None
    # The number of messages to read from each topic without a schema.
    sample_size: Annotated[
        int, Meta(ge=0, le=10_000, description="a number of messages from 0 to 10,000")
    ] = 100
    consumer_groups: bool = True
    request_timeout: Seconds = 30


ThriftAddress: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^thrift://[^\s/@,]+/?$",
        description="an address such as thrift://metastore.example.com:9083",
    ),
]


class MetastoreSettings(SourceSettings, frozen=True, kw_only=True):
    """A metastore; without patterns, all tables and views of all databases are read."""

    databases: Databases = ()
    tables: Names = ()
    exclude: Names = ()


class HiveSourceSettings(MetastoreSettings, frozen=True, kw_only=True):
    """A Hive metastore; Lumos uses the first of `uris` that responds."""

    type: Literal["hive"] = "hive"
    uris: Annotated[
        tuple[ThriftAddress, ...],
        Meta(min_length=1, extra={SPLIT: ","}),
        alternative_names(also=("metastore_uris",), singular=("uri", "metastore_uri")),
    ]
    ssl: bool = False
    ssl_ca_file: Location | None = None
    statement_timeout: Seconds = 300


class GlueSourceSettings(MetastoreSettings, frozen=True, kw_only=True):
    """The AWS Glue Data Catalog of an account and region."""

    type: Literal["glue"] = "glue"
    region: str | None = None
    catalog_id: str | None = None
    endpoint_url: Annotated[Address | None, alternative_names(also=("endpoint",))] = None
    access_key_id: Annotated[Secret | None, alternative_names(also=("access_key",))] = None
    secret_access_key: Annotated[Secret | None, alternative_names(also=("secret_key",))] = None
    session_token: Secret | None = None
    profile: str | None = None
    role_arn: str | None = None


class IcebergSourceSettings(MetastoreSettings, frozen=True, kw_only=True):
    """An Iceberg REST catalog; `credential` is CLIENT_ID:CLIENT_SECRET for OAuth 2."""

    type: Literal["iceberg"] = "iceberg"
    databases: Annotated[
        Names, alternative_names(also=("namespaces",), singular=("database", "namespace"))
    ] = ()
    uri: Address
    warehouse: str | None = None
    token: Secret | None = None
    credential: Secret | None = None
    scope: str | None = None
    oauth2_server_uri: Address | None = None
    ssl_ca_file: Location | None = None


class NessieSourceSettings(IcebergSourceSettings, frozen=True, kw_only=True):
    """A branch or tag of Nessie."""

    type: Literal["nessie"] = "nessie"  # type: ignore[assignment]
    ref: Annotated[
        str, Meta(pattern=r"^[A-Za-z][\w./-]*$"), alternative_names(also=("branch",))
    ] = "main"


class PluginSourceSettings(SourceSettings, frozen=True, kw_only=True):
    """A source of a plug-in; `options` are its settings, in which secrets are `Secret`."""

    rest: ClassVar[str | None] = "options"

    options: dict[str, object] = field(default_factory=dict)


SOURCES: Final[dict[str, type[SourceSettings]]] = {
    "s3": S3SourceSettings,
    "gcs": GcsSourceSettings,
    "azure": AzureSourceSettings,
    "hdfs": HdfsSourceSettings,
    "file": FileSourceSettings,
    "local": FileSourceSettings,
    "postgres": PostgresSourceSettings,
    "mysql": MysqlSourceSettings,
    "mariadb": MysqlSourceSettings,
    "sql": SqlSourceSettings,
    "snowflake": SnowflakeSourceSettings,
    "bigquery": BigquerySourceSettings,
    "databricks": DatabricksSourceSettings,
    "glue": GlueSourceSettings,
    "hive": HiveSourceSettings,
    "iceberg": IcebergSourceSettings,
    "kafka": KafkaSourceSettings,
    "mongodb": MongodbSourceSettings,
    "nessie": NessieSourceSettings,
    "redshift": RedshiftSourceSettings,
}


def _may_be_host(name: str) -> bool:
    if name.startswith(("/", "[", "@")):
        return True
    try:
        name.encode("idna")
    except UnicodeError:
        return False
    return True


# The source types by URL scheme; some stores have several schemes.
STORE_OF_SCHEME: Final = {
    "s3": "s3", "s3a": "s3", "s3n": "s3",
    "gs": "gcs", "gcs": "gcs",
    "az": "azure", "azure": "azure", "abfs": "azure", "abfss": "azure", "wasb": "azure",
    "wasbs": "azure",
    "hdfs": "hdfs", "webhdfs": "hdfs", "swebhdfs": "hdfs",
}  # fmt: skip
SUPPORTED_SCHEMES: Final = "s3://, gs://, abfss:// and hdfs://"
# The URL of a storage account in the format of the Azure portal.
_AZURE_ACCOUNT_URL: Final = re.compile(
    r"https?://[^/@]+\.(?:blob|dfs)\.(?:core|fabric)\.", re.IGNORECASE
)


def store_of(address: str) -> str | None:
    """The source type of an address, or None."""
    scheme, is_address, _ = address.partition("://")
    if not is_address:
        return None
    if _AZURE_ACCOUNT_URL.match(address):
        return "azure"
    return STORE_OF_SCHEME.get(scheme.lower())
