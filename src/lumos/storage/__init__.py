"""Listing and ranged reads, the same for every place where files lie."""

from functools import cache

from lumos.config.secret import scrubbed
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
    "UnknownStorage",
    "Unlisted",
    "storage_of",
]


class UnknownStorage(MisuseError):
    """An address that no storage serves."""

    def __init__(self, uri: str) -> None:
        scheme = uri.partition("://")[0]
        super().__init__(
            f"{scrubbed(uri)}: '{scheme}://' cannot be read or written by this version. "
            "Local paths and s3:// can."
        )


def storage_of(uri: str, access: Access = USUAL) -> Storage:
    """The storage that serves a path or URL."""
    scheme, has_scheme, _ = uri.partition("://")
    if not has_scheme:
        return LocalStorage()
    if scheme == "s3":
        return _s3(access)
    raise UnknownStorage(uri)


@cache
def _s3(access: Access) -> Storage:
    """One storage for each access in a process: it keeps connections and credentials."""
    from lumos.storage.s3 import S3Access, S3Storage

    return S3Storage(access if isinstance(access, S3Access) else S3Access())
