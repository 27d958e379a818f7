"""Listing and ranged reads, the same for every place where files lie."""

from lumos.errors import MisuseError
from lumos.storage.interface import (
    USUAL,
    Access,
    Listed,
    Listing,
    ReadableFile,
    Storage,
    Stretch,
    Unlisted,
)
from lumos.storage.local import LocalStorage
from lumos.storage.selection import Selection

__all__ = [
    "USUAL",
    "Access",
    "Listed",
    "Listing",
    "LocalStorage",
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
        super().__init__(
            f"{uri}: '{uri.partition('://')[0]}://' cannot be read or written by this version. "
            "Local paths can."
        )


def storage_of(uri: str, access: Access = USUAL) -> Storage:  # noqa: ARG001
    """The storage that serves a path or URL."""
    if "://" in uri:
        raise UnknownStorage(uri)
    return LocalStorage()
