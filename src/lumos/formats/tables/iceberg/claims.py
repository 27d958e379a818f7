"""Folders outside a table's root in which its files lie."""

from collections.abc import Sequence
from typing import Final

from lumos.formats.tables.iceberg.manifests import Part
from lumos.formats.tables.iceberg.metadata import Metadata

# Where writers were told to put data files.
_DATA_PATHS: Final = (
    "write.data.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)


def claimed(parts: Sequence[Part], metadata: Metadata, root: str) -> tuple[str, ...]:
    """The folders, as the table spells them; a folder inside another one goes without saying."""
    told = (metadata.properties or {}).get
    paths = [path.rstrip("/") for name in _DATA_PATHS if isinstance(path := told(name), str)]
    met = {folder for part in parts for folder in part.outside}
    found = {_within(folder, paths) for folder in met}
    widest: list[str] = []
    for folder in sorted(found, key=lambda each: (len(each), each)):
        # One that holds the table itself holds other datasets, too.
        holds_table = _is_below(root, folder)
        if not holds_table and not any(_is_below(folder, other) for other in widest):
            widest.append(folder)
    return tuple(sorted(widest))


def _within(folder: str, paths: list[str]) -> str:
    return next((path for path in paths if _is_below(folder, path)), folder)


def _is_below(folder: str, other: str) -> bool:
    return f"{_bare(folder)}/".startswith(f"{_bare(other)}/")


def _bare(address: str) -> str:
    """Without its scheme, of which one store has several."""
    return address.partition("://")[2] or address.removeprefix("file:")
