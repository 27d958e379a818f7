"""Lists and reads files: one interface for disks, object stores and Hadoop."""

from functools import cache

from lumos.config.secret import mask_secret_text
from lumos.config.sources import SUPPORTED_SCHEMES, store_of
from lumos.errors import MisuseError
from lumos.storage.interface import (
    DEFAULT_ACCESS,
    FileHint,
    FileSelection,
    FileStorage,
    KeyRange,
    ListedFile,
    ListingItem,
    ListingProblem,
    ReadableFile,
    StorageAccess,
    TableKind,
    TableRoot,
)
from lumos.storage.local import LocalStorage

__all__ = [
    "DEFAULT_ACCESS",
    "FileHint",
    "FileSelection",
    "FileStorage",
    "KeyRange",
    "ListedFile",
    "ListingItem",
    "ListingProblem",
    "LocalStorage",
    "ReadableFile",
    "StorageAccess",
    "TableKind",
    "TableRoot",
    "UnknownStorage",
    "storage_of",
]


class UnknownStorage(MisuseError):
    """No storage supports the scheme of the URI."""

    def __init__(self, uri: str) -> None:
        scheme = uri.partition("://")[0]
        super().__init__(
            f"{mask_secret_text(uri)}: this version does not support '{scheme}://'. "
            f"Use a local path, {SUPPORTED_SCHEMES}."
        )


def storage_of(uri: str, access: StorageAccess = DEFAULT_ACCESS) -> FileStorage:
    """The storage for a path or URL."""
    if "://" not in uri:
        return LocalStorage()
    kind = store_of(uri)
    if kind is None:
        raise UnknownStorage(uri)
    return _open(kind, access)


@cache
def _open(kind: str, access: StorageAccess) -> FileStorage:
    """The storage for an access; cached per process, because of its connections and credentials."""
    match kind:
        case "s3":
            from lumos.storage.s3 import S3Access, S3Storage

            return S3Storage(access if isinstance(access, S3Access) else S3Access())
        case "gcs":
            from lumos.storage.gcs import GcsAccess, GcsStorage

            return GcsStorage(access if isinstance(access, GcsAccess) else GcsAccess())
        case "azure":
            from lumos.storage.azure import AzureAccess, AzureStorage

            return AzureStorage(access if isinstance(access, AzureAccess) else AzureAccess())
        case "hdfs":
            from lumos.storage.hdfs import HdfsAccess, HdfsStorage

            return HdfsStorage(access if isinstance(access, HdfsAccess) else HdfsAccess())
        case _:
            raise AssertionError(f"no storage serves {kind}")
