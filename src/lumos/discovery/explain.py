"""`lumos explain`: what was decided about a file or folder, by which rule, and why."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from shlex import quote
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from lumos.config import Settings
from lumos.config.sources import FileSourceSettings as FileSection
from lumos.config.sources import FileStoreSettings
from lumos.discovery.reports import ExplainedDataset, ExplainReport, FileCount, PartitionValue
from lumos.discovery.resolve import file_roots, hints_in, is_in, joins_similar, source_of
from lumos.discovery.state import state_folder
from lumos.errors import MisuseError
from lumos.model.dataset import Dataset
from lumos.model.urn import SCHEME, Urn
from lumos.sources.addresses import access_of, is_address, normal, section_of
from lumos.storage import FileSelection, StorageAccess, TableRoot, storage_of
from lumos.store import Scan, Store
from lumos.store.errors import UnknownDataset

if TYPE_CHECKING:
    from lumos.discovery.explanation import Explained, Lens
    from lumos.discovery.grouping.datasets import Group
    from lumos.discovery.manifest import Manifest
    from lumos.discovery.parts import Part
    from lumos.discovery.summaries import PlaceSummary, Summary
    from lumos.discovery.table_explanation import InTable, SeenTable

_MOST_REASONS: Final = 20


class NothingToExplain(MisuseError):
    """A path at which there is nothing, now or at the last scan."""

    def __init__(self, path: str, *, advice: str = "See all datasets with: lumos list") -> None:
        super().__init__(
            f"There is nothing at {path}, and no scan has seen anything there. {advice}"
        )


class _Place(NamedTuple):
    """The root that a path lies in, and the scan that saw it."""

    selection: FileSelection
    scan: Scan | None


def explain(
    settings: Settings, text: str, *, store: Callable[[], Store | None], state: str
) -> ExplainReport:
    """What was decided about a path, or, where there is none, about the dataset of that name."""
    if not text:
        raise MisuseError("The path to explain is empty. Name a file or folder: lumos explain PATH")
    opened = store()
    nothing: NothingToExplain | None = None
    if not text.startswith(SCHEME):
        try:
            return _explain_path(settings, text, opened, state)
        except NothingToExplain as problem:
            nothing = problem
    if opened is None:
        raise nothing or UnknownDataset(text)
    try:
        dataset = opened.get(opened.find(text))
    except UnknownDataset as unknown:
        if nothing is None:
            raise
        raise NothingToExplain(os.path.abspath(text), advice=str(unknown)) from None
    return _explain_dataset(settings, dataset, opened, state)


def _explain_dataset(
    settings: Settings, dataset: Dataset, store: Store, state: str
) -> ExplainReport:
    location = dataset.location
    if location is None or not (is_address(location.uri) or os.path.isabs(location.uri)):
        raise MisuseError(
            f"{dataset.urn} is not made of files that a scan grouped. "
            f"See what is known of it with: lumos show {quote(dataset.name)}"
        )
    fixed, wildcard, _ = location.uri.partition("*")
    path = fixed.rpartition("/")[0] if wildcard else fixed
    report = _explain_path(settings, path, store, state)
    own = tuple(each for each in report.datasets if each.urn == dataset.urn)
    return msgspec.structs.replace(
        report, path=location.uri, datasets=own or report.datasets, others=(), suggestions=()
    )


def _explain_path(settings: Settings, path: str, opened: Store | None, state: str) -> ExplainReport:
    """What was decided about a path: by its last scan, or by looking at its folder now."""
    wanted = normal(path, settings.sources) if is_address(path) else os.path.abspath(path)
    place = _place(settings, wanted, opened.scans() if opened is not None else ())
    lens = _lens(settings, place, state)
    urn_of = urns_in(settings, place.selection.root)
    table = lens.tables.around(wanted)
    if table is not None:
        others = [each for each in lens.tables.sharing(wanted) if each is not table]
        return _report_of_table(wanted, place, [table, *others], urn_of)
    explained = list(lens.files_below(wanted))
    is_folder = bool(explained) or _is_folder(wanted, place.selection)
    outside = lens.passed_over(wanted, is_folder=is_folder)
    if outside is not None:
        explained = [outside]
    elif not explained and is_folder and not lens.tables.below(wanted):
        # Nothing of it was there when it was scanned, or nothing ever was.
        place = _Place(place.selection._replace(root=wanted), None)
        explained = list(_lens(settings, place, state).files_below(wanted))
    elif not explained and not is_folder:
        try:
            explained = [lens.file(wanted)]
        except FileNotFoundError:
            raise NothingToExplain(wanted) from None
    report = _report(wanted, place, explained, urn_of)
    if report.kind == "folder":
        suggestions = lens.suggestions({each.group.dataset for each in explained if each.group})
        report = msgspec.structs.replace(
            report,
            suggestions=tuple(
                msgspec.structs.replace(
                    each, datasets=tuple(str(urn_of(path)) for path in each.datasets)
                )
                for each in suggestions
            ),
        )
    tables = tuple(_table(each, urn_of) for each in lens.tables.below(wanted))
    return msgspec.structs.replace(report, datasets=(*report.datasets, *tables))


def _place(settings: Settings, path: str, scans: Iterable[Scan]) -> _Place:
    by_root = {scan.source.partition(":")[2]: scan for scan in scans}
    seen = [root for root in by_root if is_in(path, root)]
    if seen:
        root = max(seen, key=len)
        return _Place(selection_of(settings, root), by_root[root])
    if not is_address(path) and not os.path.lexists(path):
        raise NothingToExplain(path)
    configured = [
        root
        for section in settings.sources
        if isinstance(section, FileStoreSettings)
        for root in file_roots(section)
        if is_in(path, root)
    ]
    root = max(configured, key=len) if configured else _neighbourhood(path)
    selection = selection_of(settings, root)
    from lumos.discovery.table_explanation import root_above

    # A folder of a table says nothing without the log above it.
    return _Place(selection._replace(root=root_above(path, selection) or root), None)


def _neighbourhood(path: str) -> str:
    """The folder to look at for a path: above its partitions, so that they are seen as such."""
    from lumos.discovery.grouping.patterns import is_partition

    is_folder = not is_address(path) and os.path.isdir(path)
    if is_address(path) and path.count("/") < 3:
        return path
    folder = path if is_folder else path.rpartition("/")[0] or "/"
    while is_partition(folder.rpartition("/")[2]) and folder.count("/") > 1:
        folder = folder.rpartition("/")[0]
    return folder


def selection_of(settings: Settings, root: str) -> FileSelection:
    """What is looked at in a root, as its source or the usual settings have it."""
    always = settings.scan
    access = access_of(root, settings.sources)
    for section in settings.sources:
        if isinstance(section, FileStoreSettings) and root in file_roots(section):
            return FileSelection(
                root,
                (*always.file_patterns, *section.file_patterns),
                (*always.exclude, *section.exclude),
                section.recursive,
                access,
                hints_in(settings, root),
                always.tables,
                always.table_history,
                section.join_similar,
            )
    return FileSelection(
        root,
        always.file_patterns,
        always.exclude,
        access=access,
        hints=hints_in(settings, root),
        tables=always.tables,
        table_history=always.table_history,
        join_similar=joins_similar(settings, root),
    )


def _lens(settings: Settings, place: _Place, state: str) -> "Lens":
    from lumos.discovery.explanation import Lens
    from lumos.discovery.manifest import Manifests

    access = access_of(state, settings.sources)
    if place.scan is None:
        return Lens.afresh(place.selection, state_access=access)
    folder = state_folder(state, place.scan.source)
    manifest = Manifests(folder, access).read(place.scan.manifest)
    return lens_of_scan(place.selection, manifest, access)


def lens_of_scan(
    selection: FileSelection,
    manifest: "Manifest",
    access: StorageAccess,
    *,
    is_current: "Callable[[Part, Summary], bool]" = lambda _part, _summary: False,
) -> "Lens":
    """What a scan saw, grouped by the selection's hints, which the scan need not have known.

    Parts made under other hints are summed up again, unless they are current all the same.
    """
    from lumos.discovery.explanation import Lens
    from lumos.discovery.hints import Hints
    from lumos.discovery.parts import read_part, read_summary
    from lumos.discovery.summaries import merged_places, summarise

    splits = manifest.grouping.splits
    fingerprint = Hints(selection.hints, root=selection.root, splits=splits).fingerprint
    places: list[PlaceSummary] = []
    for part in manifest.parts:
        summary = read_summary(part.path, access=access)
        if summary.hints != fingerprint and not is_current(part, summary):
            rows, _ = read_part(part.path, access=access)
            summary = summarise(
                list(rows), root=selection.root, hints=selection.hints, splits=splits
            )
        places += summary.places
    return Lens(selection, merged_places(places), manifest, state_access=access)


def _is_folder(path: str, selection: FileSelection) -> bool:
    if not is_address(path):
        return os.path.isdir(path)
    storage = storage_of(path, selection.access)
    met, stretches = storage.split(path, parts=1)
    listings = chain(met, chain.from_iterable(map(storage.walk, stretches)))
    return any(isinstance(each, TableRoot) or each.path.startswith(f"{path}/") for each in listings)


def urns_in(settings: Settings, root: str) -> Callable[[str], Urn]:
    """Gives the URNs of what lies in a root."""
    known = (
        source_of(section)
        for section in settings.sources
        if isinstance(section, FileStoreSettings) and root in file_roots(section)
    )
    section = section_of(root, settings.sources) if is_address(root) else None
    source = next(known, None) or source_of(section or FileSection(paths=(root,)))
    return lambda path: source.urn(path, environment=settings.environment)


def _report(
    path: str, place: _Place, explained: "list[Explained]", urn_of: Callable[[str], Urn]
) -> ExplainReport:
    files = Counter(each.group.dataset for each in explained if each.group is not None)
    groups = {each.group.dataset: each.group for each in explained if each.group is not None}
    report = ExplainReport(
        path=path,
        kind="folder",
        root=place.selection.root,
        scanned_at=None if place.scan is None else place.scan.finished_at,
        verdict="folder",
        reason="",
        datasets=tuple(_dataset(groups[each], urn_of, files[each]) for each in sorted(groups)),
    )
    if len(explained) != 1 or explained[0].path != path:
        counts = Counter((each.verdict, each.reason) for each in explained if each.group is None)
        others = tuple(
            FileCount(verdict=verdict, reason=reason, files=count)
            for (verdict, reason), count in counts.most_common(_MOST_REASONS)
        )
        return msgspec.structs.replace(report, others=others)
    (file,) = explained
    return msgspec.structs.replace(
        report,
        kind="file",
        verdict=file.verdict,
        reason=file.reason,
        code=file.code,
        partitions=tuple(PartitionValue(key=key, value=value) for key, value in file.partitions),
        shape=file.shape,
        drifts=file.drifts,
        is_new=file.is_new and place.scan is not None,
    )


def _report_of_table(
    path: str, place: _Place, tables: "Sequence[SeenTable]", urn_of: Callable[[str], Urn]
) -> ExplainReport:
    """What a table, or a file or folder in one, is; to others that share it, too.

    What a table has no use for any longer may still be data of a clone.
    """
    seen = [(table, table.holds(path)) for table in tables]
    holders = [(table, found) for table, found in seen if found.verdict == "dataset"]
    needed = [found for _, found in (*holders, *seen) if found.verdict in ("dataset", "log")]
    found = needed[0] if needed else seen[0][1]
    is_folder = path == tables[0].root or _is_folder(path, place.selection)
    storage = storage_of(path, place.selection.access)
    if not is_folder and found.verdict == "not_live" and not storage.exists(path):
        raise NothingToExplain(path)
    holds_data = bool(holders)
    return ExplainReport(
        path=path,
        kind="folder" if is_folder else "file",
        root=place.selection.root,
        scanned_at=None if place.scan is None else place.scan.finished_at,
        verdict="folder" if is_folder and holds_data else found.verdict,
        reason="" if is_folder and holds_data else found.reason,
        datasets=tuple(_held(path, table, found, urn_of) for table, found in holders),
        others=()
        if holds_data or not is_folder
        else (FileCount(verdict=found.verdict, reason=found.reason, files=0),),
    )


def _held(
    path: str, table: "SeenTable", found: "InTable", urn_of: Callable[[str], Urn]
) -> ExplainedDataset:
    dataset = _table(table, urn_of)
    if path == table.root and table.facts is not None:
        return dataset
    return msgspec.structs.replace(dataset, files_here=found.files_here)


def _table(table: "SeenTable", urn_of: Callable[[str], Urn]) -> ExplainedDataset:
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


def _dataset(group: "Group", urn_of: Callable[[str], Urn], files: int) -> ExplainedDataset:
    return ExplainedDataset(
        urn=str(urn_of(group.dataset)),
        location=group.location,
        format=group.places[0].format,
        rule=group.rule.name,
        reason=group.rule.reason,
        files_here=files,
        files=sum(place.file_count for place in group.places),
    )
