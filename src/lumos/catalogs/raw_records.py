"""Renames and normalizes raw records of entries, with the adapters of their catalogs."""

from collections.abc import Set
from functools import cache
from typing import Any

from lumos import plugins
from lumos.catalogs.interface import NewNames, NormalizesRaw, RenamesRaw


def rename_raw(raw: dict[str, Any], names: NewNames) -> dict[str, Any]:
    """Raw records, renamed by the adapters of their catalogs."""
    adapters = {catalog: _adapter(catalog) for catalog in raw}
    return {
        catalog: adapters[catalog].rename_raw(record, names)
        if issubclass(adapters[catalog], RenamesRaw)
        else record
        for catalog, record in raw.items()
    }


def normalize_raw(value: Any, *, kinds: Set[str]) -> Any:
    """Convert the raw records of an entry or item to the form of servers of these kinds.

    Returns None for an entity that every such server has.
    """
    for catalog in sorted(kinds & value.raw.keys()):
        if value is not None and issubclass(adapter := _adapter(catalog), NormalizesRaw):
            value = adapter.normalize_raw(value)
    return value


@cache
def _adapter(catalog: str) -> type[Any]:
    if catalog not in plugins.names(plugins.PLATFORMS):
        return object
    adapter: Any = plugins.find(plugins.PLATFORMS, catalog, "platform")
    return adapter if isinstance(adapter, type) else object
