"""Listing and ranged reads, the same for every place where files lie."""

from lumos.storage.interface import Listed, Listing, ReadableFile, Storage, Unlisted
from lumos.storage.local import LocalStorage
from lumos.storage.selection import Selection

__all__ = [
    "Listed",
    "Listing",
    "LocalStorage",
    "ReadableFile",
    "Selection",
    "Storage",
    "Unlisted",
    "storage_of",
]


def storage_of(uri: str) -> Storage:  # noqa: ARG001 - local paths only, so far
    """The storage that serves a path or URL."""
    return LocalStorage()
