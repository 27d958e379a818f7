"""Datasets by the names that people give them, also such as only lineage speaks of."""

from typing import Final

from lumos.errors import MisuseError
from lumos.model.urn import SCHEME
from lumos.store import Store
from lumos.store.errors import AmbiguousName, UnknownDataset
from lumos.store.lineage import Direction

_BOTH: Final[tuple[Direction, ...]] = ("upstream", "downstream")


def find_dataset(store: Store, name: str) -> str:
    """The URN of a dataset of the store, or of one that only lineage speaks of."""
    if not name.strip():
        raise MisuseError("The name of a dataset is empty. See them all with: lumos list")
    try:
        urn = store.find(name)
    except UnknownDataset:
        told = () if name.startswith(SCHEME) else store.lineage.named(name)
        if len(told) > 1:
            raise AmbiguousName(name, told) from None
        if not told:
            raise
        return told[0]
    if store.entries.get(urn) is None and not has_lineage(store, urn):
        raise store.unknown(name)
    return urn


def has_lineage(store: Store, urn: str) -> bool:
    """Whether anybody tells of an edge into or out of a dataset."""
    return any(store.lineage.edges_of(urn, each) for each in _BOTH)
