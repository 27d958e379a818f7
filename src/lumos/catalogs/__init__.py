"""Catalogs that Lumos publishes to. `local`, the default, is the store itself."""

from typing import Any

from lumos.catalogs import former_names
from lumos.catalogs.interface import (
    AspectStorage,
    CatalogChange,
    CatalogItem,
    Connects,
    DeletesEntries,
    EmitsLineage,
    EmitsOwnership,
    FailedEntry,
    Filters,
    HasAddress,
    MergesWrites,
    NewNames,
    NormalizesRaw,
    Platform,
    ReadsEntries,
    ReadsHistory,
    ReadsMany,
    RenamesRaw,
    ReplacesEntries,
    Searches,
    SeparatesUserEdits,
    StoredInFile,
    StoresItems,
    WritesInBatches,
    WritesMany,
    WrittenEntry,
)
from lumos.catalogs.three_way_merge import Conflict, MergedEntry, merge

__all__ = [
    "AspectStorage",
    "CatalogChange",
    "CatalogItem",
    "Conflict",
    "Connects",
    "DeletesEntries",
    "EmitsLineage",
    "EmitsOwnership",
    "FailedEntry",
    "Filters",
    "HasAddress",
    "MergedEntry",
    "MergesWrites",
    "NewNames",
    "NormalizesRaw",
    "Platform",
    "ReadsEntries",
    "ReadsHistory",
    "ReadsMany",
    "RenamesRaw",
    "ReplacesEntries",
    "Searches",
    "SeparatesUserEdits",
    "StoredInFile",
    "StoresItems",
    "WritesInBatches",
    "WritesMany",
    "WrittenEntry",
    "merge",
]


def __getattr__(name: str) -> Any:
    return former_names.find_type(name, globals())
