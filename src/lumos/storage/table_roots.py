"""Find the roots of Delta, Hudi and Iceberg tables by the names of folders and files."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from lumos.storage.interface import TableKind, TableRoot, is_hidden

# The parent of such a folder is a table, and the folder contains its log.
LOG_FOLDERS: Final[dict[str, TableKind]] = {"_delta_log": "delta", ".hoodie": "hudi"}
# A common name; only files such as 00002-<uuid>.metadata.json belong to Iceberg.
METADATA_FOLDER: Final = "metadata"
_ICEBERG: Final = re.compile(r"(?:v\d+|\d+-.+)(?:\.gz)?\.metadata\.json(?:\.gz)?\Z", re.ASCII)
_GENERATED_NAME: Final = re.compile(
    r"\d+-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.gz)?\.metadata\.json(?:\.gz)?\Z", re.ASCII
)


class RelativeTableRoot(NamedTuple):
    """The root of a table relative to the listed folder, and the kind of table."""

    root: str
    kind: TableKind


def is_iceberg(name: str) -> bool:
    """Whether a file in a folder `metadata` is the metadata of an Iceberg table."""
    return _ICEBERG.match(name) is not None


def is_table_folder(folder: str) -> bool:
    """Whether tables have a folder with this name besides their log."""
    return "=" in folder or folder in ("data", METADATA_FOLDER)


def misplaced_metadata_folder(path: str) -> str | None:
    """The folder of a metadata file of Iceberg that is not called `metadata`."""
    if ".metadata.json" not in path:
        return None
    folder, _, name = path.rpartition("/")
    is_misplaced = _GENERATED_NAME.match(name) and folder.rpartition("/")[2] != METADATA_FOLDER
    return folder if is_misplaced else None


def table_root_in(path: str) -> RelativeTableRoot | None:
    """The outermost table whose log contains a file; `path` is relative to the listed folder.

    The root is empty if it is the listed folder itself. Tables in scratch space are ignored.
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
    found: dict[str, tuple[TableKind, ...]] = {}
    outer = ""
    # Compare by path segments: some characters of names sort before a slash.
    for root in sorted(kinds, key=lambda folder: folder.split("/")):
        if not outer or not root.startswith(outer):
            outer = f"{root}/"
            found[root] = tuple(sorted(kinds[root]))
    return found
