"""The stores that an address may lie in: how it is spelled there, and how it is reached."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Final, TypeAlias

from lumos.config.schemes import store_of
from lumos.config.sources import FileStore, GcsSource, ObjectStore, S3Source, Source
from lumos.errors import MisuseError
from lumos.storage import USUAL, Access, UnknownStorage

Configured: TypeAlias = Sequence[Source]


class Store(ABC):
    """One type of source made of files that have addresses."""

    @abstractmethod
    def normal(self, address: str, configured: Configured) -> str:
        """The one spelling of an address of a folder."""

    @abstractmethod
    def section(self, address: str, configured: Configured) -> FileStore:
        """The section for an address: reached as a configured source of it, if there is one."""

    @abstractmethod
    def access(self, address: str, configured: Configured) -> Access:
        """How an address is reached: as a configured source of it, or as the only source."""

    @abstractmethod
    def roots(self, section: FileStore) -> list[str]:
        """What a section means, as addresses; nothing is looked at."""


class _Buckets(Store):
    """Addresses are `scheme://bucket/key`."""

    scheme: ClassVar[str]
    kind: ClassVar[type[ObjectStore]]

    @abstractmethod
    def _access(self, section: ObjectStore) -> Access: ...

    def normal(self, address: str, configured: Configured) -> str:  # noqa: ARG002
        return self._path(*self._parts(address))

    def section(self, address: str, configured: Configured) -> FileStore:
        bucket, key = self._parts(address)
        login = login_of(self._of_bucket(bucket, configured))
        return self.kind(buckets=(bucket,), prefixes=(key,) if key else (), **login)

    def access(self, address: str, configured: Configured) -> Access:
        bucket, _ = self._parts(address)
        known = self._of_bucket(bucket, configured) or only(self.kind, configured)
        return USUAL if known is None else self._access(known)

    def roots(self, section: FileStore) -> list[str]:
        assert isinstance(section, ObjectStore)
        return [
            self._path(bucket, prefix)
            for bucket in section.buckets
            for prefix in section.prefixes or ("",)
        ]

    def _of_bucket(self, bucket: str, configured: Configured) -> ObjectStore | None:
        sections = (section for section in configured if isinstance(section, self.kind))
        return next((section for section in sections if bucket in section.buckets), None)

    def _path(self, bucket: str, key: str) -> str:
        return f"{self.scheme}://{bucket}/{key}".rstrip("/")

    def _parts(self, address: str) -> tuple[str, str]:
        bucket, _, key = address.partition("://")[2].partition("/")
        if not bucket:
            raise MisuseError(f"{address} names no bucket. Write {self.scheme}://BUCKET/PREFIX.")
        return bucket, key


class _S3(_Buckets):
    scheme = "s3"
    kind = S3Source

    def _access(self, section: ObjectStore) -> Access:
        from lumos.storage.s3 import S3Access

        assert isinstance(section, S3Source)
        return S3Access.of(section)


class _Gcs(_Buckets):
    scheme = "gs"
    kind = GcsSource

    def _access(self, section: ObjectStore) -> Access:
        from lumos.storage.gcs import GcsAccess

        assert isinstance(section, GcsSource)
        return GcsAccess.of(section)


STORES: Final[dict[str, Store]] = {"s3": _S3(), "gcs": _Gcs()}


def store_at(address: str) -> Store:
    """The store of an address."""
    kind = store_of(address)
    if kind is None:
        raise UnknownStorage(address)
    return STORES[kind]


def only(kind: type[Source], configured: Configured) -> "ObjectStore | None":
    """The one section of a type, if there is no second."""
    sections = [section for section in configured if isinstance(section, kind)]
    return sections[0] if len(sections) == 1 else None  # type: ignore[return-value]


def login_of(section: Source | None) -> dict[str, Any]:
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
