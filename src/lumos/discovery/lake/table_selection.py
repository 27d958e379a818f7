"""Plans which tables of a lake are read, and selects those that become datasets."""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from lumos.discovery.lake.manifest import ScanManifest
from lumos.discovery.lake.table_paths import OwnedPaths
from lumos.discovery.lake.table_reader import (
    STRAY_METADATA,
    TableRecord,
    TableResult,
    TableTask,
    live_paths,
    load_table_memory,
)
from lumos.model.discovery import Problem
from lumos.storage import FileSelection, StorageAccess, TableKind, storage_of
from lumos.storage.table_roots import METADATA_FOLDER, is_table_folder


class TablePredecessors(NamedTuple):
    """Datasets of loose files that a table continues: in its own folder, and elsewhere."""

    own: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()


def plan_table_tasks(
    roots: Mapping[str, tuple[TableKind, ...]],
    stray_metadata: Collection[str],
    known_tables: Mapping[str, TableRecord],
    selection: FileSelection,
) -> list[TableTask]:
    """Tasks for listed tables, for known tables that were not listed, and for stray metadata.

    `stray_metadata` are folders with metadata of tables that lie elsewhere.
    """
    owners = {record.log: root for root, record in known_tables.items() if record.log}
    logs = {f"{root}/{METADATA_FOLDER}": root for root in roots}
    listed = {owners[log] for log in (*stray_metadata, *logs) if log in owners}
    # A folder that only contains the log of a known table is not a table itself.
    tables = {root: roots[root] for log, root in logs.items() if log not in owners}
    # A table inside another table is part of it, even if the inner table existed first.
    table_paths = OwnedPaths(tables)
    tasks = [
        TableTask(
            root,
            kinds,
            known_tables.get(root),
            log=known_tables[root].log if root in known_tables else "",
        )
        for root, kinds in sorted(tables.items())
    ]
    tasks += [
        # Only Iceberg tables have their metadata elsewhere. These roots have no other log.
        TableTask(
            root,
            ("iceberg",) if root in listed else record.kinds,
            record,
            is_listed=root in listed,
            log=record.log,
        )
        for root, record in sorted(known_tables.items())
        if table_paths.folder_of(f"{root}/") is None
    ]
    tasks += [
        TableTask(log, ("iceberg",), log=log)
        for log in sorted(stray_metadata)
        if log not in owners and table_paths.folder_of(f"{log}/") is None
    ]
    return [task for task in tasks if selection.has_table(task.log or task.root)]


def select_tables(results: Sequence[TableResult]) -> tuple[list[TableResult], list[Problem]]:
    """Select one result per table; also return remarks on metadata without a table.

    If the metadata of a table lies elsewhere, only the metadata proves that the table exists. So
    the table must neither contain other tables nor lie inside one.
    """
    found = [each for each in results if not each.is_missing]
    remarks = [problem for each in results if each.is_missing for problem in each.problems]
    roots = sorted({each.root for each in found})
    certain_tables = OwnedPaths(each.root for each in found if not each.record.log)
    selected: dict[str, TableResult] = {}
    for each in sorted(found, key=_precedence):
        reason = _why_stray(each, roots, certain_tables, selected) if each.record.log else ""
        if reason:
            remarks.append(
                Problem(
                    path=each.record.log,
                    code=STRAY_METADATA,
                    reason=f"This folder contains Iceberg metadata, but {reason}. The metadata "
                    "is not read; its files are treated like files outside of tables.",
                    remark=True,
                )
            )
        else:
            selected.setdefault(each.root, each)
    return sorted(selected.values(), key=lambda each: each.root), remarks


def _precedence(each: TableResult) -> tuple[bool, bool, bool, str]:
    """Sort key for results of the same root; the first result is selected.

    Tables that were read come first, then formats other than Iceberg, then Iceberg with metadata
    elsewhere: it is read together with the usual folder, so it is more complete.
    """
    record = each.record
    return each.facts is None, record.kinds == ("iceberg",), not record.log, record.log


def _why_stray(
    each: TableResult,
    roots: Sequence[str],
    certain_tables: OwnedPaths,
    selected: Mapping[str, TableResult],
) -> str:
    if _contains_any(each.root, roots) or _contains_any(each.record.log, roots):
        return "its table would contain other tables"
    if certain_tables.folder_of(f"{each.root.rpartition('/')[0]}/") is not None:
        return "its table would be part of another table"
    if each.root in selected:
        return f"its table {each.root} has other metadata"
    return ""


def _contains_any(folder: str, roots: Sequence[str]) -> bool:
    prefix = f"{folder}/"
    index = bisect_left(roots, prefix)
    return index < len(roots) and roots[index].startswith(prefix)


def find_table_predecessors(
    tables: Collection[TableResult],
    last_manifest: ScanManifest,
    *,
    present: Collection[str],
    selection: FileSelection,
    state_access: StorageAccess,
) -> dict[str, TablePredecessors]:
    """Find datasets of the last scan whose files now belong to tables, by table root.

    `present` are the datasets of loose files that still exist. A table continues a dataset only if
    the dataset's files lie in the table's folders or are listed in its log. If several tables were
    one dataset, the first one continues it. Datasets in metadata folders come last, because a table
    should continue the history of its data rather than that of its metadata.
    """
    missing = last_manifest.grouping.datasets.difference(present)
    if not tables or not missing:
        return {}
    logs = OwnedPaths(each.record.log for each in tables if each.record.log)
    table_of_dataset = {each.root: each.root for each in tables if each.root in missing}
    # By table: the files in its folders that its log may or may not list, with their dataset.
    uncertain: dict[str, dict[str, str]] = {}
    owners = {
        folder: each.root for each in tables for folder in (each.root, *each.record.owned_paths)
    }
    owned = OwnedPaths(owners)
    storage = storage_of(selection.root, selection.access)
    for dataset, path in sorted(_files(last_manifest, missing - table_of_dataset.keys())):
        folder = owned.folder_of(path)
        if dataset in table_of_dataset or folder is None or not storage.exists(path):
            continue
        if _is_in_table_folders(dataset, owners[folder]) or _is_metadata(path, logs):
            table_of_dataset[dataset] = owners[folder]
        else:
            uncertain.setdefault(owners[folder], {})[path] = dataset
    elsewhere: set[str] = set()
    for table in tables:
        for path in _live_paths_among(table, uncertain.get(table.root, {}), state_access):
            dataset = uncertain[table.root][path]
            if dataset in table_of_dataset:
                continue
            table_of_dataset[dataset] = table.root
            if not path.startswith(f"{table.root}/"):
                elsewhere.add(dataset)
    by_table: dict[str, list[str]] = {}
    for path in sorted(table_of_dataset, key=lambda each: (_is_metadata(each, logs), each)):
        by_table.setdefault(table_of_dataset[path], []).append(path)
    return {
        root: TablePredecessors(
            tuple(path for path in paths if path not in elsewhere),
            tuple(path for path in paths if path in elsewhere),
        )
        for root, paths in by_table.items()
    }


def _is_in_table_folders(dataset: str, root: str) -> bool:
    """Whether all folders between a table's root and a dataset are folders that tables write."""
    if not dataset.startswith(f"{root}/"):
        return False
    return all(map(is_table_folder, dataset[len(root) + 1 :].split("/")))


def _live_paths_among(
    table: TableResult, paths: Collection[str], access: StorageAccess
) -> Iterator[str]:
    """The paths that are live files of a table."""
    memory = load_table_memory(table.record, access) if paths else None
    if memory is not None:
        yield from (path for path in live_paths(table.root, memory) if path in paths)


def _files(last_manifest: ScanManifest, datasets: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield each dataset with the first and the last file of each of its file sets."""
    for file_set in last_manifest.grouping.file_sets:
        if file_set.dataset in datasets:
            yield file_set.dataset, file_set.first_path
            yield file_set.dataset, file_set.last_path


def _is_metadata(path: str, logs: OwnedPaths) -> bool:
    return f"/{METADATA_FOLDER}/" in f"{path}/" or logs.folder_of(f"{path}/") is not None
