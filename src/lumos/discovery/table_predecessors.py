"""Which datasets of loose files turn out to be tables, that go on with their names and history."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from lumos.discovery.manifest import Manifest
from lumos.discovery.owned_paths import Claims
from lumos.discovery.tables import TableDone, live_paths, memory_of
from lumos.storage import FileSelection, StorageAccess, storage_of
from lumos.storage.table_roots import METADATA_FOLDER, is_table_folder


class Former(NamedTuple):
    """Datasets that are part of a table now; of some the files lie in its own folder."""

    own: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()


def former_of(
    tables: Collection[TableDone],
    before: Manifest,
    *,
    present: Collection[str],
    selection: FileSelection,
    state_access: StorageAccess,
) -> dict[str, Former]:
    """Which datasets of the scan before are tables now, by root, since their files are.

    `present` are the datasets of loose files that there still are. A dataset whose files were
    removed is gone, whatever table was made nearby: its files must lie in the table now, as a
    table's files do or since its log names them. Of several tables that were taken for one dataset,
    the first goes on with it. What lay in a folder of metadata comes last: a table rather goes on
    with the history of its data.
    """
    gone = before.grouping.datasets.difference(present)
    if not tables or not gone:
        return {}
    logs = Claims(each.kept.log for each in tables if each.kept.log)
    roots = {each.root: each.root for each in tables if each.root in gone}
    # By table, the files of datasets that may have been its own, or only lay in its way.
    doubtful: dict[str, dict[str, str]] = {}
    owners = {folder: each.root for each in tables for folder in (each.root, *each.kept.claims)}
    claims = Claims(owners)
    storage = storage_of(selection.root, selection.access)
    for dataset, path in sorted(_files(before, gone - roots.keys())):
        claim = claims.of(path)
        if dataset in roots or claim is None or not storage.exists(path):
            continue
        if _is_laid_out(dataset, owners[claim]) or _is_metadata(path, logs):
            roots[dataset] = owners[claim]
        else:
            doubtful.setdefault(owners[claim], {})[path] = dataset
    elsewhere: set[str] = set()
    for table in tables:
        for path in _live(table, doubtful.get(table.root, {}), state_access):
            dataset = doubtful[table.root][path]
            if dataset in roots:
                continue
            roots[dataset] = table.root
            if not path.startswith(f"{table.root}/"):
                elsewhere.add(dataset)
    found: dict[str, list[str]] = {}
    for path in sorted(roots, key=lambda each: (_is_metadata(each, logs), each)):
        found.setdefault(roots[path], []).append(path)
    return {
        root: Former(
            tuple(path for path in some if path not in elsewhere),
            tuple(path for path in some if path in elsewhere),
        )
        for root, some in found.items()
    }


def _is_laid_out(dataset: str, root: str) -> bool:
    """Whether a dataset lies in a table as the files of tables do, rather than beside them."""
    if not dataset.startswith(f"{root}/"):
        return False
    folders = dataset[len(root) + 1 :].split("/")
    return all(map(is_table_folder, folders))


def _live(table: TableDone, wanted: Collection[str], access: StorageAccess) -> Iterator[str]:
    """Which of some files the table's log names."""
    memory = memory_of(table.kept, access) if wanted else None
    if memory is not None:
        yield from (path for path in live_paths(table.root, memory) if path in wanted)


def _files(before: Manifest, datasets: Collection[str]) -> Iterator[tuple[str, str]]:
    """Some files of each dataset, as the scan before knew them."""
    for place in before.grouping.places:
        if place.dataset in datasets:
            yield place.dataset, place.first_path
            yield place.dataset, place.last_path


def _is_metadata(path: str, logs: Claims) -> bool:
    return f"/{METADATA_FOLDER}/" in f"{path}/" or logs.of(f"{path}/") is not None
