"""Listing and ranged reads, the same for every place where files lie."""

from functools import cache

from lumos.config.secret import mask_secret_text
from lumos.config.sources import SUPPORTED_SCHEMES, store_of
from lumos.errors import MisuseError
from lumos.storage.interface import (
    USUAL,
    Access,
    Listed,
    Listing,
    Marker,
    ReadableFile,
    Storage,
    Stretch,
    TableKind,
    Unlisted,
)
from lumos.storage.local import LocalStorage
from lumos.storage.selection import Hint, Selection

__all__ = [
    "USUAL",
    "Access",
    "Hint",
    "Listed",
    "Listing",
    "LocalStorage",
    "Marker",
    "ReadableFile",
    "Selection",
    "Storage",
    "Stretch",
    "TableKind",
    "UnknownStorage",
    "Unlisted",
    "storage_of",
]


class UnknownStorage(MisuseError):
    """An address that no storage serves."""

    def __init__(self, uri: str) -> None:
        scheme = uri.partition("://")[0]
        super().__init__(
            f"{mask_secret_text(uri)}: '{scheme}://' cannot be read or written by this version. "
            f"Local paths, {SUPPORTED_SCHEMES} can."
        )


def storage_of(uri: str, access: Access = USUAL) -> Storage:
    """The storage that serves a path or URL."""
    if "://" not in uri:
        return LocalStorage()
    kind = store_of(uri)
    if kind is None:
        raise UnknownStorage(uri)
    return _opened(kind, access)


@cache
def _opened(kind: str, access: Access) -> Storage:
    """One storage for each access in a process: it keeps connections and credentials."""
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
