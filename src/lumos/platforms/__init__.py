"""Catalogs that Lumos keeps true. `local`, the default, is the store itself."""

from lumos.platforms.interface import (
    Deletes,
    EmitsLineage,
    EmitsOwnership,
    Filters,
    HasAddress,
    HoldsItems,
    How,
    Item,
    KeptInFile,
    MergesWrites,
    Platform,
    ReadsEntries,
    ReplacesEntries,
    Searches,
    WritesInBatches,
    Written,
)
from lumos.platforms.merging import Conflict, Merged, merge

__all__ = [
    "Conflict",
    "Deletes",
    "EmitsLineage",
    "EmitsOwnership",
    "Filters",
    "HasAddress",
    "HoldsItems",
    "How",
    "Item",
    "KeptInFile",
    "Merged",
    "MergesWrites",
    "Platform",
    "ReadsEntries",
    "ReplacesEntries",
    "Searches",
    "WritesInBatches",
    "Written",
    "merge",
]
