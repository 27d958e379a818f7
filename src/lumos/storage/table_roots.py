"""Finds the roots of Delta, Hudi and Iceberg tables by the names of folders and files."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from lumos.storage.interface import TableKind, TableRoot, is_hidden

# Folders that contain the log of a table, and the kind of the table, which is the parent folder.
LOG_FOLDERS: Final[dict[str, TableKind]] = {"_delta_log": "delta", ".hoodie": "hudi"}
# Other folders have this name, too: Iceberg's contain files such as 00002-<uuid>.metadata.json.
METADATA_FOLDER: Final = "metadata"
_METADATA_FILE: Final = re.compile(r"(?:v\d+|\d+-.+)(?:\.gz)?\.metadata\.json(?:\.gz)?\Z", re.ASCII)
_METADATA_FILE_WITH_UUID: Final = re.compile(
    r"\d+-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.gz)?\.metadata\.json(?:\.gz)?\Z", re.ASCII
)


class RelativeTableRoot(NamedTuple):
    """The root of a table relative to the listed folder, and the kind of table."""

    root: str
    kind: TableKind


def is_iceberg(name: str) -> bool:
    """Whether a file in a folder `metadata` is the metadata of an Iceberg table."""
    return _METADATA_FILE.match(name) is not None


def is_table_folder(folder: str) -> bool:
    """Whether tables may have a folder with this name in addition to their log."""
    return "=" in folder or folder in ("data", METADATA_FOLDER)


def misplaced_metadata_folder(path: str) -> str | None:
    """The folder of an Iceberg metadata file, if the folder is not called `metadata`."""
    if ".metadata.json" not in path:
        return None
    folder, _, name = path.rpartition("/")
    is_misplaced = (
        _METADATA_FILE_WITH_UUID.match(name) and folder.rpartition("/")[2] != METADATA_FOLDER
    )
    return folder if is_misplaced else None


def table_root_in(path: str) -> RelativeTableRoot | None:
    """The outermost table to whose log a file belongs; `path` is relative to the listed folder.

    The root is empty if it is the listed folder itself. Tables in hidden folders are ignored.
    """
    if "_delta_log/" not in path and ".hoodie/" not in path and ".metadata.json" not in path:
        return None
    *folders, name = path.split("/")
    for depth, folder in enumerate(folders):
        if folder in LOG_FOLDERS:
            return RelativeTableRoot("/".join(folders[:depth]), LOG_FOLDERS[folder])
        if is_hidden(folder):
            return None
        if folder == METADATA_FOLDER and depth == len(folders) - 1 and is_iceberg(name):
            return RelativeTableRoot("/".join(folders[:depth]), "iceberg")
    return None


def outermost_roots(roots: Iterable[TableRoot]) -> dict[str, tuple[TableKind, ...]]:
    """The kinds of table by root, without tables inside of other tables."""
    kinds: dict[str, set[TableKind]] = {}
    for table_root in roots:
        kinds.setdefault(table_root.folder, set()).add(table_root.kind)
    outermost: dict[str, tuple[TableKind, ...]] = {}
    outer = ""
    # Sort by path segments, because some characters in names sort before a slash.
    for root in sorted(kinds, key=lambda folder: folder.split("/")):
        if not outer or not root.startswith(outer):
            outer = f"{root}/"
            outermost[root] = tuple(sorted(kinds[root]))
    return outermost
