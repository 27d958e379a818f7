"""Addresses of stores: canonical form, section of the configuration, and access."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Final, Literal, TypeAlias, TypeVar
from urllib.parse import unquote

from msgspec.structs import replace

from lumos.config.secret import ConnectionString, mask_secret_text
from lumos.config.sources import (
    AzureSourceSettings,
    FileStoreSettings,
    GcsSourceSettings,
    HdfsSourceSettings,
    HiveSourceSettings,
    KafkaSourceSettings,
    MongodbSourceSettings,
    MysqlSourceSettings,
    ObjectStoreSettings,
    PostgresSourceSettings,
    S3SourceSettings,
    SourceSettings,
    SqlSourceSettings,
    store_of,
)
from lumos.errors import MisuseError
from lumos.storage import DEFAULT_ACCESS, StorageAccess, UnknownStorage
from lumos.storage.azure.access import AzureAccess, ContainerAddress
from lumos.storage.hdfs.access import HdfsAccess
from lumos.storage.hdfs.kerberos import with_token

_POSTGRES_SCHEMES: Final = ("postgres", "postgresql")
_MONGODB_SCHEMES: Final = ("mongodb", "mongodb+srv")
_MYSQL_TYPES: Final[dict[str, Literal["mysql", "mariadb"]]] = {
    "mysql": "mysql", "mysql+pymysql": "mysql", "mariadb": "mariadb",
    "mariadb+pymysql": "mariadb",
}  # fmt: skip
# Read through SQLAlchemy; others need a section of the type sql.
_SQL_DIALECTS: Final = frozenset(
    ("clickhouse", "clickhousedb", "cockroachdb", "duckdb", "mssql", "oracle", "sqlite", "trino")
)
_KAFKA_SCHEME: Final = "kafka"


def is_address(path: str) -> bool:
    """Whether a path is the address of a store rather than a local path."""
    return "://" in path


def is_root(path: str) -> bool:
    """Whether the scope of a recorded source is a folder of a lake, and not a database."""
    return path.startswith("/") or is_address(path)


def canonical_address(address: str, configured: Sequence[SourceSettings] = ()) -> str:
    """The canonical address of a folder, such as `s3://bucket/folder`; a local path is unchanged.

    Missing parts, such as the account of an Azure container, come from the configured sources.
    """
    return (
        store_at(address).canonical_address(address, configured) if is_address(address) else address
    )


def section_of(address: str, configured: Sequence[SourceSettings]) -> SourceSettings:
    """The settings for an address, with the credentials of a configured source of the same store.

    The address of a database is its connection string; its driver has defaults for missing parts.
    """
    scheme = address.partition("://")[0]
    if scheme in _POSTGRES_SCHEMES:
        return PostgresSourceSettings(connection_string=ConnectionString(address))
    if scheme in _MONGODB_SCHEMES:
        return MongodbSourceSettings(connection_string=ConnectionString(address))
    if scheme in _MYSQL_TYPES:
        return MysqlSourceSettings(
            type=_MYSQL_TYPES[scheme], connection_string=ConnectionString(address)
        )
    if scheme.partition("+")[0] in _SQL_DIALECTS:
        return SqlSourceSettings(connection_string=ConnectionString(address))
    if scheme == _KAFKA_SCHEME:
        return _kafka_section(address, configured)
    if scheme == "thrift":
        return HiveSourceSettings(uris=(address,))
    return store_at(address).section(address, configured)


def _kafka_section(address: str, configured: Sequence[SourceSettings]) -> KafkaSourceSettings:
    """The section for `kafka://host:9092,host:9092/pattern`, with the settings of its cluster."""
    hosts, _, pattern = address.partition("://")[2].partition("/")
    servers = tuple(filter(None, hosts.split(",")))
    if not servers or "@" in hosts:
        raise MisuseError(
            "An address of Kafka is kafka://HOST:PORT[,HOST:PORT][/PATTERN], without user and "
            "password. Set these in a kafka source of lumos.yaml."
        )
    patterns = (unquote(pattern),) if pattern else ()
    for section in configured:
        if isinstance(section, KafkaSourceSettings):
            is_same_cluster = bool(set(servers) & set(section.bootstrap_servers))
            if is_same_cluster and pattern:
                return replace(section, topics=(), topic_patterns=patterns)
            if is_same_cluster:
                return section
    return KafkaSourceSettings(bootstrap_servers=servers, topic_patterns=patterns)


def access_of(address: str, configured: Sequence[SourceSettings]) -> StorageAccess:
    """The credentials for an address, from a matching source or the only one of its type."""
    return store_at(address).access(address, configured) if is_address(address) else DEFAULT_ACCESS


def roots_of(section: FileStoreSettings) -> list[str]:
    """The addresses of a section; sends no requests."""
    store = STORES.get(section.type)
    return [] if store is None else store.roots(section)


# A name node or nameservice. Ports must be numbers: text after a colon may be a password.
_AUTHORITY: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:@\[\]?#]+)?(?::[0-9]{1,5})?")
ConfiguredSources: TypeAlias = Sequence[SourceSettings]
AnySource = TypeVar("AnySource", bound=SourceSettings)


class StoreAddresses(ABC):
    """The form of the addresses of one type of storage, such as S3 or HDFS."""

    @abstractmethod
    def canonical_address(self, address: str, configured: ConfiguredSources) -> str:
        """The canonical form of the address of a folder."""

    @abstractmethod
    def section(self, address: str, configured: ConfiguredSources) -> FileStoreSettings:
        """The section for an address, with the access of a matching source, if any."""

    @abstractmethod
    def access(self, address: str, configured: ConfiguredSources) -> StorageAccess:
        """The access to an address: that of a matching source, or of the only source."""

    @abstractmethod
    def roots(self, section: FileStoreSettings) -> list[str]:
        """The addresses of a section; sends no requests."""


class _Buckets(StoreAddresses):
    """Addresses are `scheme://bucket/key`."""

    scheme: ClassVar[str]
    kind: ClassVar[type[ObjectStoreSettings]]

    @abstractmethod
    def _access(self, section: ObjectStoreSettings) -> StorageAccess: ...

    def canonical_address(self, address: str, configured: ConfiguredSources) -> str:  # noqa: ARG002
        return self._path(*self._parts(address))

    def section(self, address: str, configured: ConfiguredSources) -> FileStoreSettings:
        bucket, key = self._parts(address)
        login = access_settings(self._section_of_bucket(bucket, configured))
        return self.kind(buckets=(bucket,), prefixes=(key,) if key else (), **login)

    def access(self, address: str, configured: ConfiguredSources) -> StorageAccess:
        bucket, _ = self._parts(address)
        known = self._section_of_bucket(bucket, configured) or only_source(self.kind, configured)
        return DEFAULT_ACCESS if known is None else self._access(known)

    def roots(self, section: FileStoreSettings) -> list[str]:
        assert isinstance(section, ObjectStoreSettings)
        return [
            self._path(bucket, prefix)
            for bucket in section.buckets
            for prefix in section.prefixes or ("",)
        ]

    def _section_of_bucket(
        self, bucket: str, configured: ConfiguredSources
    ) -> ObjectStoreSettings | None:
        sections = (section for section in configured if isinstance(section, self.kind))
        return next((section for section in sections if bucket in section.buckets), None)

    def _path(self, bucket: str, key: str) -> str:
        return f"{self.scheme}://{bucket}/{key}".rstrip("/")

    def _parts(self, address: str) -> tuple[str, str]:
        bucket, _, key = address.partition("://")[2].partition("/")
        if "@" in bucket:
            raise MisuseError(
                f"An address of {self.scheme}:// cannot contain a user and password. Set them in "
                f"the source, and use {self.scheme}://BUCKET/PREFIX."
            )
        if not bucket:
            raise MisuseError(f"{address} has no bucket. Use {self.scheme}://BUCKET/PREFIX.")
        return bucket, key


class _S3(_Buckets):
    scheme = "s3"
    kind = S3SourceSettings

    def _access(self, section: ObjectStoreSettings) -> StorageAccess:
        from lumos.storage.s3 import S3Access

        assert isinstance(section, S3SourceSettings)
        return S3Access.of(section)


class _Gcs(_Buckets):
    scheme = "gs"
    kind = GcsSourceSettings

    def _access(self, section: ObjectStoreSettings) -> StorageAccess:
        from lumos.storage.gcs import GcsAccess

        assert isinstance(section, GcsSourceSettings)
        return GcsAccess.of(section)


class _Azure(StoreAddresses):
    """The canonical form is `abfss://container@account.dfs.core.windows.net/key`."""

    def canonical_address(self, address: str, configured: ConfiguredSources) -> str:
        container, key = self._parts(address, configured)
        return f"abfss://{container.authority}/{key}".rstrip("/")

    def section(self, address: str, configured: ConfiguredSources) -> FileStoreSettings:
        container, key = self._parts(address, configured)
        known = self._configured_section(container, configured)
        login = self._default_settings(container) if known is None else access_settings(known)
        login = {**login, "account": container.account}
        return AzureSourceSettings(
            buckets=(container.name,), prefixes=(key,) if key else (), **login
        )

    def access(self, address: str, configured: ConfiguredSources) -> StorageAccess:
        container, _ = self._parts(address, configured)
        known = self._configured_section(container, configured)
        return (
            AzureAccess(**self._default_settings(container))
            if known is None
            else AzureAccess.of(known)
        )

    def _default_settings(self, container: ContainerAddress) -> dict[str, Any]:
        """The settings for a container without a source; the address contains its cloud."""
        default_access = AzureAccess(account=container.account)
        if default_access.resolve().contains(container):
            return {"account": container.account}
        return {"account": container.account, "endpoint_url": container.account_url}

    def roots(self, section: FileStoreSettings) -> list[str]:
        assert isinstance(section, AzureSourceSettings)
        access = AzureAccess.of(section).resolve()
        return [
            f"abfss://{access.container(bucket).authority}/{prefix}".rstrip("/")
            for bucket in section.buckets
            for prefix in section.prefixes or ("",)
        ]

    def _configured_section(
        self, container: ContainerAddress, configured: ConfiguredSources
    ) -> AzureSourceSettings | None:
        """The section that contains the container, or else a section of its account."""
        sections = [
            section
            for section in configured
            if isinstance(section, AzureSourceSettings)
            and AzureAccess.of(section).resolve().contains(container)
        ]
        matching = (section for section in sections if container.name in section.buckets)
        return next(matching, sections[0] if sections else None)

    def _parts(self, address: str, configured: ConfiguredSources) -> tuple[ContainerAddress, str]:
        scheme, _, rest = address.partition("://")
        authority, _, key = rest.partition("/")
        if "?" in rest:
            raise MisuseError(
                "An address of Azure must not contain '?', which may start a SAS token. Set the "
                "token as 'sas_token' of the source or in AZURE_STORAGE_SAS_TOKEN."
            )
        if scheme.lower() in ("http", "https"):
            # Web addresses are percent-encoded.
            name, _, key = unquote(key).partition("/")
            authority = f"{name}@{authority}"
        if "@" not in authority:
            authority = self._full_name(authority, configured) if authority else ""
        container = ContainerAddress.parse(authority)
        if container is None:
            raise MisuseError(
                f"{mask_secret_text(address)} has no container or account. Use "
                "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER, or set "
                "AZURE_STORAGE_ACCOUNT and write az://CONTAINER/FOLDER."
            )
        return container, key

    def _full_name(self, name: str, configured: ConfiguredSources) -> str:
        """The authority of a container, from the source that has it or the environment."""
        sections = [section for section in configured if isinstance(section, AzureSourceSettings)]
        matching = [section for section in sections if name in section.buckets]
        candidates = matching if len(matching) == 1 else sections if len(sections) == 1 else []
        access = AzureAccess.of(candidates[0]) if candidates else AzureAccess()
        resolved = access.resolve()
        return resolved.container(name).authority if resolved.account else ""


class _Hdfs(StoreAddresses):
    """Addresses are `hdfs://authority/path`; the port of the name node is ignored."""

    def canonical_address(self, address: str, configured: ConfiguredSources) -> str:
        authority, path = self._parts(address, configured)
        return f"hdfs://{authority}{path}".rstrip("/")

    def section(self, address: str, configured: ConfiguredSources) -> FileStoreSettings:
        authority, path = self._parts(address, configured)
        known = self._configured_section(authority, configured)
        if known is not None:
            return HdfsSourceSettings(paths=(path or "/",), **access_settings(known))
        urls = self._urls(address)
        return HdfsSourceSettings(paths=(path or "/",), urls=urls, nameservice=authority)

    def access(self, address: str, configured: ConfiguredSources) -> StorageAccess:
        authority, _ = self._parts(address, configured)
        known = self._configured_section(authority, configured)
        if known is None:
            return HdfsAccess(urls=self._urls(address), nameservice=authority).resolve()
        return with_token(hdfs_access(known), authority)

    def roots(self, section: FileStoreSettings) -> list[str]:
        assert isinstance(section, HdfsSourceSettings)
        return [root_of(section, path) for path in section.paths]

    def _configured_section(
        self, authority: str, configured: ConfiguredSources
    ) -> HdfsSourceSettings | None:
        sections = [section for section in configured if isinstance(section, HdfsSourceSettings)]
        known = (section for section in sections if authority_of(section) == authority)
        return next(known, None)

    def _urls(self, address: str) -> tuple[str, ...]:
        """The URLs of WebHDFS in the address, if there are any."""
        scheme, _, rest = address.partition("://")
        authority = rest.partition("/")[0]
        web = {"webhdfs": "http", "swebhdfs": "https"}.get(scheme.lower())
        return (f"{web}://{authority}",) if web and authority else ()

    def _parts(self, address: str, configured: ConfiguredSources) -> tuple[str, str]:
        authority, path = _split_address(address)
        if not authority:
            only_one = only_source(HdfsSourceSettings, configured)
            authority = HdfsAccess().resolve().authority
            authority = authority_of(only_one) if only_one is not None else authority
        if not authority:
            raise MisuseError(f"{address} has no name node. Use hdfs://NAMENODE/FOLDER.")
        return authority, path


def _split_address(address: str) -> tuple[str, str]:
    """The file system and the path of an address."""
    authority, slash, path = address.partition("://")[2].partition("/")
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        # The address is not shown, since it may contain a password.
        raise MisuseError(
            "An address of a Hadoop file system is hdfs://NAMENODE/FOLDER, without user and "
            "password. Set the user with 'user' of the source or HADOOP_USER_NAME."
        )
    return match["host"], f"{slash}{path}".rstrip("/")


def root_of(section: HdfsSourceSettings, path: str) -> str:
    """The address of a path of a section, which may already be an address."""
    if "://" in path:
        return STORES["hdfs"].canonical_address(path, (section,))
    return f"hdfs://{authority_of(section)}/{path.strip('/')}".rstrip("/")


def authority_of(section: HdfsSourceSettings) -> str:
    """The authority of the file system of a section."""
    return hdfs_access(section).authority


def hdfs_access(section: HdfsSourceSettings) -> HdfsAccess:
    """The access to the file system of a section, or else to that of its first path."""
    access = HdfsAccess.of(section)
    if not access.authority and all("://" in path for path in section.paths):
        access = replace(access, nameservice=_split_address(section.paths[0])[0])
    return access.resolve()


STORES: Final[dict[str, StoreAddresses]] = {
    "s3": _S3(), "gcs": _Gcs(), "azure": _Azure(), "hdfs": _Hdfs(),
}  # fmt: skip


def store_at(address: str) -> StoreAddresses:
    """The store of an address."""
    kind = store_of(address)
    if kind is None:
        raise UnknownStorage(address)
    return STORES[kind]


def only_source(kind: type[AnySource], configured: ConfiguredSources) -> AnySource | None:
    """The only section of a type, or None if there are several."""
    sections = [section for section in configured if isinstance(section, kind)]
    return sections[0] if len(sections) == 1 else None


def access_settings(section: SourceSettings | None) -> dict[str, Any]:
    """The settings of a section that give access, without those that select data."""
    if section is None:
        return {}
    return {
        name: getattr(section, name)
        for name in section.__struct_fields__
        if name not in _SELECTION_FIELDS
    }


_SELECTION_FIELDS: Final = frozenset(
    ("type", "name", "buckets", "paths", "prefixes", "file_patterns", "exclude", "recursive",
     "datasets")
)  # fmt: skip
