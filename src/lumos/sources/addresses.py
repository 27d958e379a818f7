"""Addresses of stores: their canonical form, their section of the configuration, their access."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Final, TypeAlias, TypeVar
from urllib.parse import unquote

import msgspec

from lumos.config.secret import ConnectionString, mask_secret_text
from lumos.config.sources import (
    AzureSourceSettings,
    FileStoreSettings,
    GcsSourceSettings,
    HdfsSourceSettings,
    MongodbSourceSettings,
    ObjectStoreSettings,
    PostgresSourceSettings,
    S3SourceSettings,
    SourceSettings,
    store_of,
)
from lumos.errors import MisuseError
from lumos.storage import DEFAULT_ACCESS, StorageAccess, UnknownStorage
from lumos.storage.azure.access import AzureAccess, ContainerAddress
from lumos.storage.hdfs.access import HdfsAccess
from lumos.storage.hdfs.kerberos import with_token

_POSTGRES_SCHEMES: Final = ("postgres", "postgresql")
_MONGODB_SCHEMES: Final = ("mongodb", "mongodb+srv")


def is_address(path: str) -> bool:
    """Whether a path is the address of a store rather than a place on this machine."""
    return "://" in path


def normal(address: str, configured: Sequence[SourceSettings] = ()) -> str:
    """The one spelling of an address of a folder; what it leaves out the sources may tell."""
    return store_at(address).normal(address, configured) if is_address(address) else address


def section_of(address: str, configured: Sequence[SourceSettings]) -> SourceSettings:
    """The section for an address: reached as a configured source of its store, if there is one.

    The address of a database holds all that is needed to reach it, or its driver finds the rest.
    """
    scheme = address.partition("://")[0]
    if scheme in _POSTGRES_SCHEMES:
        return PostgresSourceSettings(connection_string=ConnectionString(address))
    if scheme in _MONGODB_SCHEMES:
        return MongodbSourceSettings(connection_string=ConnectionString(address))
    return store_at(address).section(address, configured)


def access_of(address: str, configured: Sequence[SourceSettings]) -> StorageAccess:
    """How an address is reached: as a configured source of its store, or as the only source."""
    return store_at(address).access(address, configured) if is_address(address) else DEFAULT_ACCESS


def roots_of(section: FileStoreSettings) -> list[str]:
    """What a section of a store means, as addresses; nothing is looked at."""
    store = STORES.get(section.type)
    return [] if store is None else store.roots(section)


# A name node or nameservice; a port must be one, since after a colon there may be a password.
_PLACE: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:@\[\]?#]+)?(?::[0-9]{1,5})?")
ConfiguredSources: TypeAlias = Sequence[SourceSettings]
AnySource = TypeVar("AnySource", bound=SourceSettings)


class StoreAddresses(ABC):
    """One type of source made of files that have addresses."""

    @abstractmethod
    def normal(self, address: str, configured: ConfiguredSources) -> str:
        """The one spelling of an address of a folder."""

    @abstractmethod
    def section(self, address: str, configured: ConfiguredSources) -> FileStoreSettings:
        """The section for an address: reached as a configured source of it, if there is one."""

    @abstractmethod
    def access(self, address: str, configured: ConfiguredSources) -> StorageAccess:
        """How an address is reached: as a configured source of it, or as the only source."""

    @abstractmethod
    def roots(self, section: FileStoreSettings) -> list[str]:
        """What a section means, as addresses; nothing is looked at."""


class _Buckets(StoreAddresses):
    """Addresses are `scheme://bucket/key`."""

    scheme: ClassVar[str]
    kind: ClassVar[type[ObjectStoreSettings]]

    @abstractmethod
    def _access(self, section: ObjectStoreSettings) -> StorageAccess: ...

    def normal(self, address: str, configured: ConfiguredSources) -> str:  # noqa: ARG002
        return self._path(*self._parts(address))

    def section(self, address: str, configured: ConfiguredSources) -> FileStoreSettings:
        bucket, key = self._parts(address)
        login = access_settings(self._of_bucket(bucket, configured))
        return self.kind(buckets=(bucket,), prefixes=(key,) if key else (), **login)

    def access(self, address: str, configured: ConfiguredSources) -> StorageAccess:
        bucket, _ = self._parts(address)
        known = self._of_bucket(bucket, configured) or only_source(self.kind, configured)
        return DEFAULT_ACCESS if known is None else self._access(known)

    def roots(self, section: FileStoreSettings) -> list[str]:
        assert isinstance(section, ObjectStoreSettings)
        return [
            self._path(bucket, prefix)
            for bucket in section.buckets
            for prefix in section.prefixes or ("",)
        ]

    def _of_bucket(self, bucket: str, configured: ConfiguredSources) -> ObjectStoreSettings | None:
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
    """Addresses are `abfss://container@account.dfs.core.windows.net/key` and many others."""

    def normal(self, address: str, configured: ConfiguredSources) -> str:
        container, key = self._parts(address, configured)
        return f"abfss://{container.authority}/{key}".rstrip("/")

    def section(self, address: str, configured: ConfiguredSources) -> FileStoreSettings:
        container, key = self._parts(address, configured)
        known = self._known(container, configured)
        login = self._unknown(container) if known is None else access_settings(known)
        login = {**login, "account": container.account}
        return AzureSourceSettings(
            buckets=(container.name,), prefixes=(key,) if key else (), **login
        )

    def access(self, address: str, configured: ConfiguredSources) -> StorageAccess:
        container, _ = self._parts(address, configured)
        known = self._known(container, configured)
        return AzureAccess(**self._unknown(container)) if known is None else AzureAccess.of(known)

    def _unknown(self, container: ContainerAddress) -> dict[str, Any]:
        """How a container is reached that no source is of: the address names its cloud."""
        usual = AzureAccess(account=container.account)
        if usual.resolve().contains(container):
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

    def _known(
        self, container: ContainerAddress, configured: ConfiguredSources
    ) -> AzureSourceSettings | None:
        """The section of a container, or else one of its account."""
        sections = [
            section
            for section in configured
            if isinstance(section, AzureSourceSettings)
            and AzureAccess.of(section).resolve().contains(container)
        ]
        holding = (section for section in sections if container.name in section.buckets)
        return next(holding, sections[0] if sections else None)

    def _parts(self, address: str, configured: ConfiguredSources) -> tuple[ContainerAddress, str]:
        scheme, _, rest = address.partition("://")
        place, _, key = rest.partition("/")
        if "?" in rest:
            raise MisuseError(
                "An address of Azure with a '?' may hold a signature. Name it without, and put the "
                "signature into 'sas_token' of the source or AZURE_STORAGE_SAS_TOKEN."
            )
        if scheme.lower() in ("http", "https"):
            # Programs that show such addresses write them as the web does.
            name, _, key = unquote(key).partition("/")
            place = f"{name}@{place}"
        if "@" not in place:
            place = self._of_configured(place, configured) if place else ""
        container = ContainerAddress.parse(place)
        if container is None:
            raise MisuseError(
                f"{mask_secret_text(address)} has no container or account. Use "
                "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER, or set "
                "AZURE_STORAGE_ACCOUNT and write az://CONTAINER/FOLDER."
            )
        return container, key

    def _of_configured(self, name: str, configured: ConfiguredSources) -> str:
        """The full name of a container, by the source that has it, or by the environment."""
        sections = [section for section in configured if isinstance(section, AzureSourceSettings)]
        holding = [section for section in sections if name in section.buckets]
        meant = holding if len(holding) == 1 else sections if len(sections) == 1 else []
        access = AzureAccess.of(meant[0]) if meant else AzureAccess()
        resolved = access.resolve()
        return resolved.container(name).authority if resolved.account else ""


class _Hdfs(StoreAddresses):
    """Addresses are `hdfs://authority/path`; the port of the name node is no part of its name."""

    def normal(self, address: str, configured: ConfiguredSources) -> str:
        authority, path = self._parts(address, configured)
        return f"hdfs://{authority}{path}".rstrip("/")

    def section(self, address: str, configured: ConfiguredSources) -> FileStoreSettings:
        authority, path = self._parts(address, configured)
        known = self._known(authority, configured)
        if known is not None:
            return HdfsSourceSettings(paths=(path or "/",), **access_settings(known))
        urls = self._urls(address)
        return HdfsSourceSettings(paths=(path or "/",), urls=urls, nameservice=authority)

    def access(self, address: str, configured: ConfiguredSources) -> StorageAccess:
        authority, _ = self._parts(address, configured)
        known = self._known(authority, configured)
        if known is None:
            return HdfsAccess(urls=self._urls(address), nameservice=authority).resolve()
        return with_token(hdfs_access(known), authority)

    def roots(self, section: FileStoreSettings) -> list[str]:
        assert isinstance(section, HdfsSourceSettings)
        return [root_of(section, path) for path in section.paths]

    def _known(self, authority: str, configured: ConfiguredSources) -> HdfsSourceSettings | None:
        sections = [section for section in configured if isinstance(section, HdfsSourceSettings)]
        known = (each for each in sections if authority_of(each) == authority)
        return next(known, None)

    def _urls(self, address: str) -> tuple[str, ...]:
        """Where WebHDFS is, as far as the address says so."""
        scheme, _, rest = address.partition("://")
        place = rest.partition("/")[0]
        web = {"webhdfs": "http", "swebhdfs": "https"}.get(scheme.lower())
        return (f"{web}://{place}",) if web and place else ()

    def _parts(self, address: str, configured: ConfiguredSources) -> tuple[str, str]:
        authority, path = _named(address)
        if not authority:
            only_one = only_source(HdfsSourceSettings, configured)
            authority = HdfsAccess().resolve().authority
            authority = authority_of(only_one) if only_one is not None else authority
        if not authority:
            raise MisuseError(f"{address} has no name node. Use hdfs://NAMENODE/FOLDER.")
        return authority, path


def _named(address: str) -> tuple[str, str]:
    """The file system and the path in it, as far as an address names them."""
    place, slash, path = address.partition("://")[2].partition("/")
    found = _PLACE.fullmatch(place)
    if found is None:
        # It may hold a password, and is not shown.
        raise MisuseError(
            "An address of a Hadoop file system is hdfs://NAMENODE/FOLDER, without user and "
            "password. Who asks is named by 'user' of the source or HADOOP_USER_NAME."
        )
    return found["host"], f"{slash}{path}".rstrip("/")


def root_of(section: HdfsSourceSettings, path: str) -> str:
    """The address of a path of a section, which may name it in full."""
    if "://" in path:
        return STORES["hdfs"].normal(path, (section,))
    return f"hdfs://{authority_of(section)}/{path.strip('/')}".rstrip("/")


def authority_of(section: HdfsSourceSettings) -> str:
    """What addresses call the file system of a section."""
    return hdfs_access(section).authority


def hdfs_access(section: HdfsSourceSettings) -> HdfsAccess:
    """How the file system of a section is reached: that which it names, or else its paths do."""
    access = HdfsAccess.of(section)
    if not access.authority and all("://" in path for path in section.paths):
        access = msgspec.structs.replace(access, nameservice=_named(section.paths[0])[0])
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
    """The one section of a type, if there is no second."""
    sections = [section for section in configured if isinstance(section, kind)]
    return sections[0] if len(sections) == 1 else None


def access_settings(section: SourceSettings | None) -> dict[str, Any]:
    """What of a section says how the store is reached, and not what of it is looked at."""
    if section is None:
        return {}
    return {
        name: getattr(section, name) for name in section.__struct_fields__ if name not in _LOOKS
    }


_LOOKS: Final = frozenset(
    ("type", "name", "buckets", "paths", "prefixes", "file_patterns", "exclude", "recursive",
     "datasets")
)  # fmt: skip
