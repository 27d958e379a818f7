"""Which datasets of loose files turn out to be tables, that go on with their names and history."""

from collections.abc import Collection, Iterator

from lumos.pipeline.claims import Claims
from lumos.pipeline.grouping import key_of
from lumos.pipeline.manifest import Manifest
from lumos.pipeline.parts import LOST, read_identities
from lumos.pipeline.tables import TableDone
from lumos.storage import Access, Selection, storage_of
from lumos.storage.markers import METADATA


def former_of(
    tables: Collection[TableDone],
    before: Manifest,
    *,
    present: Collection[str],
    selection: Selection,
    state_access: Access,
) -> dict[str, list[str]]:
    """Which datasets of the scan before are tables now, by root, since their files are.

    `present` are the datasets of loose files that there still are. A dataset whose files were
    removed is gone, whatever table was made nearby: its files must lie in the table now. Of several
    tables that were taken for one dataset, the first goes on with it. What lay in a folder of
    metadata comes last: a table rather goes on with the history of its data.
    """
    gone = {each.dataset for each in before.settled.places if not each.missed}.difference(present)
    if not tables or not gone:
        return {}
    owners = {folder: each.root for each in tables for folder in (each.root, *each.kept.claims)}
    storage = storage_of(selection.root, selection.access)
    claims = Claims(owners)
    roots = {each.root: each.root for each in tables if each.root in gone}
    for dataset, path in sorted(_files(before, gone - roots.keys(), state_access)):
        claim = claims.of(path)
        if dataset in roots or claim is None:
            continue
        try:
            with storage.open(path):
                roots[dataset] = owners[claim]
        except OSError:
            continue
    found: dict[str, list[str]] = {}
    logs = Claims(each.kept.log for each in tables if each.kept.log)
    for path in sorted(roots, key=lambda each: (_is_metadata(each, logs), each)):
        found.setdefault(roots[path], []).append(path)
    return found


def _files(
    before: Manifest, datasets: Collection[str], access: Access
) -> Iterator[tuple[str, str]]:
    """Some files of each dataset, as the scan before knew them."""
    by_place = {
        tuple(each[:4]): each.dataset
        for each in before.settled.places
        if each.dataset in datasets and not each.missed
    }
    for part in before.parts if by_place else ():
        try:
            _, summary = read_identities(part.path, access=access)
        except LOST:
            continue
        for place in summary.places:
            dataset = by_place.get(key_of(place))
            if dataset is not None:
                yield dataset, place.first_path
                yield dataset, place.last_path


def _is_metadata(path: str, logs: Claims) -> bool:
    return f"/{METADATA}/" in f"{path}/" or logs.of(f"{path}/") is not None
