"""The folders and files by which the root of a table is known, before anything is opened."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from lumos.storage.interface import Marker, TableKind, is_hidden

# A folder of such a name holds the log of the table that it lies in.
LOGS: Final[dict[str, TableKind]] = {"_delta_log": "delta", ".hoodie": "hudi"}
# Many a folder has this name; only files such as 00002-<uuid>.metadata.json make it Iceberg's.
METADATA: Final = "metadata"
_ICEBERG: Final = re.compile(r"(?:v\d+|\d+-.+)(?:\.gz)?\.metadata\.json(?:\.gz)?\Z", re.ASCII)
_NAMED_BY_WRITER: Final = re.compile(
    r"\d+-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.gz)?\.metadata\.json(?:\.gz)?\Z", re.ASCII
)


class Met(NamedTuple):
    """A root, as the beginning of the path that told of it, and what kind of table it is."""

    root: str
    kind: TableKind


def is_iceberg(name: str) -> bool:
    """Whether a file in a folder `metadata` is the metadata of an Iceberg table."""
    return _ICEBERG.match(name) is not None


def is_of_table(folder: str) -> bool:
    """Whether writers of tables call folders so, beside those of the log."""
    return "=" in folder or folder in ("data", METADATA)


def strays_from(path: str) -> str | None:
    """The folder of a file that is metadata of Iceberg, though the folder's name is another."""
    if ".metadata.json" not in path:
        return None
    folder, _, name = path.rpartition("/")
    is_stray = _NAMED_BY_WRITER.match(name) and folder.rpartition("/")[2] != METADATA
    return folder if is_stray else None


def marker_in(path: str) -> Met | None:
    """The outermost table of whose log a file is part; `path` begins below the listed folder.

    The root is empty where it is the listed folder itself. What lies in scratch space of some
    writer is no table.
    """
    if "_delta_log/" not in path and ".hoodie/" not in path and ".metadata.json" not in path:
        return None
    *folders, name = path.split("/")
    for depth, folder in enumerate(folders):
        if folder in LOGS:
            return Met("/".join(folders[:depth]), LOGS[folder])
        if is_hidden(folder):
            return None
        if folder == METADATA and depth == len(folders) - 1 and is_iceberg(name):
            return Met("/".join(folders[:depth]), "iceberg")
    return None


def outermost(markers: Iterable[Marker]) -> dict[str, tuple[TableKind, ...]]:
    """The kinds of table by root, without those that lie inside another one."""
    kinds: dict[str, set[TableKind]] = {}
    for marker in markers:
        kinds.setdefault(marker.folder, set()).add(marker.kind)
    found: dict[str, tuple[TableKind, ...]] = {}
    around = ""
    # A slash sorts before most of what names are made of, but not before all.
    for root in sorted(kinds, key=lambda each: each.split("/")):
        if not around or not root.startswith(around):
            around = f"{root}/"
            found[root] = tuple(sorted(kinds[root]))
    return found
