"""`lumos explain`: which dataset a file or folder belongs to, by which rule, and why."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from shlex import quote
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from lumos.config import Settings
from lumos.config.sources import FileStoreSettings
from lumos.discovery.reports import ExplainedDataset, ExplainReport, FileCount, PartitionValue
from lumos.discovery.scan_recorder import suggestions_with_urns
from lumos.discovery.scans import state_folder
from lumos.discovery.targets import file_roots, is_below, selection_for, urns_for
from lumos.errors import MisuseError
from lumos.model.dataset import Dataset
from lumos.model.urn import SCHEME, Urn
from lumos.names import find_urn
from lumos.sources.addresses import access_of, canonical_address, is_address
from lumos.storage import FileSelection, TableRoot, storage_of
from lumos.store import FinishedScan, Store
from lumos.store.errors import UnknownDataset

if TYPE_CHECKING:
    from lumos.discovery.grouping.datasets import DatasetGroup
    from lumos.discovery.lake.contents import ExplainedFile, LakeContents, LakeTable
_MAX_REASONS: Final = 20


class NothingToExplain(MisuseError):
    """A path that does not exist and that the last scan did not find."""

    def __init__(self, path: str, *, advice: str = "See all datasets with: lumos list") -> None:
        super().__init__(
            f"There is nothing at {path}, and the last scan found nothing there. {advice}"
        )


class _ExplainedRoot(NamedTuple):
    """The root that contains a path, and its last scan."""

    selection: FileSelection
    scan: FinishedScan | None


def explain(
    settings: Settings, text: str, *, store: Callable[[], Store | None], state: str
) -> ExplainReport:
    """Explain a path or, if it does not exist, the dataset of that name."""
    if not text:
        raise MisuseError("The path to explain is empty. Name a file or folder: lumos explain PATH")
    open_store = store()
    not_found: NothingToExplain | None = None
    if not text.startswith(SCHEME):
        try:
            return _explain_path(settings, text, open_store, state)
        except NothingToExplain as problem:
            not_found = problem
    if open_store is None:
        raise not_found or UnknownDataset(text)
    try:
        dataset = open_store.get(find_urn(open_store, text))
    except UnknownDataset as unknown:
        if not_found is None:
            raise
        raise NothingToExplain(os.path.abspath(text), advice=str(unknown)) from None
    return _explain_dataset(settings, dataset, open_store, state)


def _explain_dataset(
    settings: Settings, dataset: Dataset, store: Store, state: str
) -> ExplainReport:
    location = dataset.location
    if location is None or not (is_address(location.uri) or os.path.isabs(location.uri)):
        raise MisuseError(
            f"{dataset.urn} does not consist of scanned files. "
            f"To see what is known about it: lumos show {quote(dataset.name)}"
        )
    folder, wildcard, _ = location.uri.partition("*")
    path = folder.rpartition("/")[0] if wildcard else folder
    report = _explain_path(settings, path, store, state)
    datasets = tuple(each for each in report.datasets if each.urn == dataset.urn)
    return replace(
        report, path=location.uri, datasets=datasets or report.datasets, others=(), suggestions=()
    )


def _explain_path(settings: Settings, path: str, store: Store | None, state: str) -> ExplainReport:
    """Explain a path by the last scan of its root, or by reading its folder now."""
    location = (
        canonical_address(path, settings.sources) if is_address(path) else os.path.abspath(path)
    )
    root = _find_root(settings, location, store.scans() if store is not None else ())
    contents = _load_contents(settings, root, state)
    urn_of = urns_for(settings, root.selection.root)
    table = contents.tables.containing(location)
    if table is not None:
        others = [each for each in contents.tables.possible_owners(location) if each is not table]
        return _report_table(location, root, [table, *others], urn_of)
    explained = list(contents.files_below(location))
    is_folder = bool(explained) or _is_folder(location, root.selection)
    skipped = contents.why_skipped(location, is_folder=is_folder)
    if skipped is not None:
        explained = [skipped]
    elif not explained and is_folder and not contents.tables.below(location):
        # The folder was not scanned, or was empty when it was scanned.
        root = _ExplainedRoot(root.selection._replace(root=location), None)
        explained = list(_load_contents(settings, root, state).files_below(location))
    elif not explained and not is_folder:
        try:
            explained = [contents.file(location)]
        except FileNotFoundError:
            raise NothingToExplain(location) from None
    report = _report_files(location, root, explained, urn_of)
    if report.kind == "folder":
        suggestions = contents.suggestions({each.group.dataset for each in explained if each.group})
        report = replace(report, suggestions=suggestions_with_urns(suggestions, urn_of))
    tables = tuple(_explain_table(each, urn_of) for each in contents.tables.below(location))
    return replace(report, datasets=(*report.datasets, *tables))


def _find_root(settings: Settings, path: str, scans: Iterable[FinishedScan]) -> _ExplainedRoot:
    """The innermost root that was scanned, or else configured, or else the path's own folder."""
    by_root = {scan.source.partition(":")[2]: scan for scan in scans}
    scanned = [root for root in by_root if is_below(path, root)]
    if scanned:
        root = max(scanned, key=len)
        return _ExplainedRoot(selection_for(settings, root), by_root[root])
    if not is_address(path) and not os.path.lexists(path):
        raise NothingToExplain(path)
    configured = [
        root
        for section in settings.sources
        if isinstance(section, FileStoreSettings)
        for root in file_roots(section)
        if is_below(path, root)
    ]
    root = max(configured, key=len) if configured else _folder_above_partitions(path)
    selection = selection_for(settings, root)
    from lumos.discovery.lake.table_reader import find_enclosing_table

    # Files of a table can only be explained by its log.
    root = find_enclosing_table(path, selection) or root
    return _ExplainedRoot(selection._replace(root=root), None)


def _folder_above_partitions(path: str) -> str:
    """The innermost folder above a path that is not a partition."""
    from lumos.discovery.grouping.patterns import is_partition

    is_folder = not is_address(path) and os.path.isdir(path)
    if is_address(path) and path.count("/") < 3:
        return path
    folder = path if is_folder else path.rpartition("/")[0] or "/"
    while is_partition(folder.rpartition("/")[2]) and folder.count("/") > 1:
        folder = folder.rpartition("/")[0]
    return folder


def _load_contents(settings: Settings, root: _ExplainedRoot, state: str) -> "LakeContents":
    from lumos.discovery.lake.contents import LakeContents
    from lumos.discovery.lake.manifest import ManifestStore

    access = access_of(state, settings.sources)
    if root.scan is None:
        return LakeContents.read_now(root.selection, state_access=access)
    folder = state_folder(state, root.scan.source)
    manifest = ManifestStore(folder, access).read(root.scan.manifest)
    return LakeContents.of_scan(root.selection, manifest, state_access=access)


def _is_folder(path: str, selection: FileSelection) -> bool:
    if not is_address(path):
        return os.path.isdir(path)
    storage = storage_of(path, selection.access)
    first, key_ranges = storage.split(path, parts=1)
    listings = chain(first, chain.from_iterable(map(storage.walk, key_ranges)))
    return any(isinstance(each, TableRoot) or each.path.startswith(f"{path}/") for each in listings)


def _report_files(
    path: str, root: _ExplainedRoot, explained: "list[ExplainedFile]", urn_of: Callable[[str], Urn]
) -> ExplainReport:
    files = Counter(each.group.dataset for each in explained if each.group is not None)
    groups = {each.group.dataset: each.group for each in explained if each.group is not None}
    report = ExplainReport(
        path=path,
        kind="folder",
        root=root.selection.root,
        scanned_at=None if root.scan is None else root.scan.finished_at,
        verdict="folder",
        reason="",
        datasets=tuple(
            _explain_group(groups[each], urn_of, files[each]) for each in sorted(groups)
        ),
    )
    if len(explained) != 1 or explained[0].path != path:
        counts = Counter((each.verdict, each.reason) for each in explained if each.group is None)
        others = tuple(
            FileCount(verdict=verdict, reason=reason, files=count)
            for (verdict, reason), count in counts.most_common(_MAX_REASONS)
        )
        return replace(report, others=others)
    (file,) = explained
    return replace(
        report,
        kind="file",
        verdict=file.verdict,
        reason=file.reason,
        code=file.code,
        partitions=tuple(PartitionValue(key=key, value=value) for key, value in file.partitions),
        shape=file.shape,
        drifts=file.drifts,
        is_new=file.is_new and root.scan is not None,
    )


def _report_table(
    path: str, root: _ExplainedRoot, tables: "Sequence[LakeTable]", urn_of: Callable[[str], Urn]
) -> ExplainReport:
    """Explain a table, or a file or folder of a table, which may also belong to other tables.

    A file that one table has removed may still be live in a clone of the table.
    """
    roles = [(table, table.explain(path)) for table in tables]
    owners = [(table, role) for table, role in roles if role.verdict == "dataset"]
    relevant_roles = [role for _, role in (*owners, *roles) if role.verdict in ("dataset", "log")]
    role = relevant_roles[0] if relevant_roles else roles[0][1]
    is_folder = path == tables[0].root or _is_folder(path, root.selection)
    storage = storage_of(path, root.selection.access)
    if not is_folder and role.verdict == "not_live" and not storage.exists(path):
        raise NothingToExplain(path)
    is_data_folder = is_folder and bool(owners)
    others = (FileCount(verdict=role.verdict, reason=role.reason, files=0),)
    return ExplainReport(
        path=path,
        kind="folder" if is_folder else "file",
        root=root.selection.root,
        scanned_at=None if root.scan is None else root.scan.finished_at,
        verdict="folder" if is_data_folder else role.verdict,
        reason="" if is_data_folder else role.reason,
        datasets=tuple(
            _explain_table(table, urn_of)
            if path == table.root and table.facts is not None
            else replace(_explain_table(table, urn_of), files_here=role.files_here)
            for table, role in owners
        ),
        others=others if is_folder and not owners else (),
    )


def _explain_table(table: "LakeTable", urn_of: Callable[[str], Urn]) -> ExplainedDataset:
    files = 0 if table.facts is None else table.facts.files
    return ExplainedDataset(
        urn=str(urn_of(table.root)),
        location=table.root,
        format=table.kind,
        rule="table",
        reason=table.reason,
        files_here=files,
        files=files,
    )


def _explain_group(
    group: "DatasetGroup", urn_of: Callable[[str], Urn], files: int
) -> ExplainedDataset:
    return ExplainedDataset(
        urn=str(urn_of(group.dataset)),
        location=group.location,
        format=group.file_sets[0].format,
        rule=group.rule.name,
        reason=group.rule.reason,
        files_here=files,
        files=sum(each.file_count for each in group.file_sets),
    )
