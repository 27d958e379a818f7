"""The scope of a scan after storage events: which key ranges to list and which tables to read.

Everything outside of the scope is taken from the last manifest, so that the cost of a scan grows
with what changed and not with the size of the lake.
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from lumos.discovery.lake.manifest import ScanManifest
from lumos.discovery.lake.table_paths import OwnedPaths, is_below
from lumos.storage import FileSelection, KeyRange, TableKind, TableRoot
from lumos.storage.interface import is_hidden
from lumos.storage.table_roots import (
    METADATA_FOLDER,
    misplaced_metadata_folder,
    outermost_roots,
    table_root_in,
)

# If there are more folders than this, their parent folders are listed instead.
_MAX_RANGES: Final = 1000


class ScanScope(NamedTuple):
    """Key ranges to list, and tables to read, with the table formats whose logs have changed.

    `new_tables` are roots that the last scan did not find; their folders are listed as well.
    """

    key_ranges: tuple[KeyRange, ...]
    tables: Mapping[str, tuple[TableKind, ...]]
    new_tables: frozenset[str]


def plan_scope(
    changed: Collection[str], last_manifest: ScanManifest, selection: FileSelection
) -> ScanScope | None:
    """The scope of changed paths below the root; None if the whole lake has to be listed.

    A path that ends with a slash is a folder in which any file may have changed.
    """
    prefix = f"{selection.root.rstrip('/')}/"
    owners = {
        path: root
        for root, record in last_manifest.tables.items()
        for path in (root, *record.owned_paths, *filter(None, (record.log,)))
    }
    owned_paths = OwnedPaths(owners)
    logs: list[TableRoot] = []
    tables: set[str] = set()
    folders: set[str] = set()
    files: dict[str, list[str]] = {}
    for path in changed:
        is_folder = path.endswith("/")
        relative = path[len(prefix) :]
        if not relative:
            return None
        owned = owned_paths.folder_of(path)
        table_root = None
        if selection.tables:
            table_root = table_root_in(f"{relative}log" if is_folder else relative)
        if table_root is not None:
            logs.append(TableRoot(f"{prefix}{table_root.root}".rstrip("/"), table_root.kind))
        if owned is not None:
            tables.add(owners[owned])
        elif table_root is not None:
            continue
        elif not is_folder and misplaced_metadata_folder(path) is not None:
            # The metadata belongs to a table that may be in any folder.
            return None
        elif any(map(is_hidden, relative.rstrip("/").split("/"))):
            continue
        elif _may_be_in_excluded_table(path.rstrip("/").rpartition("/")[0], selection):
            # Only a listing from the root down finds tables that are excluded.
            return None
        elif is_folder:
            folder = path.rstrip("/")
            if folder.rpartition("/")[2] == METADATA_FOLDER:
                # The parent may have become a table, or may no longer be a table.
                folder = folder.rpartition("/")[0]
            if f"{folder}/" == prefix:
                return None
            folders.add(folder)
        else:
            files.setdefault(path.rpartition("/")[0], []).append(path)
    new_tables = {
        root: kinds
        for root, kinds in outermost_roots(logs).items()
        if owned_paths.folder_of(f"{root}/") is None
    }
    root = selection.root.rstrip("/")
    folders = _outermost_folders({*folders, *new_tables})
    while len(folders) + len(files) > _MAX_RANGES:
        # Listing one folder with everything in it is faster than listing many folders in it.
        folders = _outermost_folders({folder.rpartition("/")[0] for folder in (*folders, *files)})
        files = {}
        if any(is_below(root, folder) for folder in folders):
            return None
    if root in folders:
        return None
    deep = OwnedPaths(folders)
    tables |= {root for root in last_manifest.tables if deep.folder_of(f"{root}/") is not None}
    key_ranges = [KeyRange(folder) for folder in folders]
    key_ranges += [
        # A proper prefix of the first name sorts before it, and is never shorter than the folder.
        KeyRange(folder, after=min(paths)[:-1], until=max(paths), deep=False)
        for folder, paths in files.items()
        if deep.folder_of(f"{folder}/") is None
    ]
    kinds = {root: kinds for root, kinds in outermost_roots(logs).items() if root in tables}
    return ScanScope(
        tuple(sorted(key_ranges)),
        {**dict.fromkeys(sorted(tables), ()), **kinds, **new_tables},
        frozenset(new_tables),
    )


def _may_be_in_excluded_table(folder: str, selection: FileSelection) -> bool:
    if not selection.exclude:
        return False
    root = selection.root.rstrip("/")
    while len(folder) > len(root):
        if not selection.has_table(folder):
            return True
        folder = folder.rpartition("/")[0]
    return False


def _outermost_folders(folders: Collection[str]) -> set[str]:
    """The folders that do not lie inside another of these folders."""
    all_folders = OwnedPaths(folders)
    return {
        folder
        for folder in folders
        if all_folders.folder_of(folder.rpartition("/")[0] + "/") is None
    }
