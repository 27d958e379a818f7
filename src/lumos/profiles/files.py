"""The files of a dataset, as its last scan saw them."""

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from lumos.config import Settings
from lumos.config.sources import FileStoreSettings
from lumos.discovery.explain import selection_of, urns_in
from lumos.discovery.hint_store import with_stored_hints
from lumos.discovery.resolve import file_roots
from lumos.discovery.state import state_folder
from lumos.errors import MisuseError
from lumos.model.dataset import Dataset
from lumos.model.discovery import Problem
from lumos.sources.addresses import access_of
from lumos.storage import Access
from lumos.storage.schemes import is_same_store
from lumos.store import DatasetFilter, KnownDataset, Store

if TYPE_CHECKING:
    from lumos.discovery.explanation import DataFile
    from lumos.discovery.tables import TableKept
    from lumos.profiles.column_names import KnownField
    from lumos.profiles.plan import SourceFile

_NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
_LOST: Final = "what the last scan knew of its files is not there any more."


class NotProfiled(MisuseError):
    """A dataset whose rows Lumos cannot read."""

    def __init__(self, urn: str, why: str) -> None:
        self.urn = urn
        super().__init__(f"{urn} cannot be profiled: {why}")


class Counted(Protocol):
    """Statistics, as a dataset or as a report has them."""

    @property
    def file_count(self) -> int: ...


class Located(NamedTuple):
    """A dataset, its files, how they are reached, and what of them is not taken into account.

    The files are read from the state one after the other, once. `fields` are the columns of a table
    by what its files call them, and `roots` the places that it may have files in.
    """

    dataset: Dataset
    files: "Iterator[SourceFile]"
    access: Access
    fields: "tuple[KnownField, ...]" = ()
    remarks: tuple[Problem, ...] = ()
    roots: tuple[str, ...] = ()


def locate(settings: Settings, store: Store, urn: str, *, state: str) -> Located:
    """The files of a dataset; raises NotProfiled where there are none to read."""
    dataset = store.get(urn)
    known = _known(store, dataset)
    if not has_files(dataset.format, dataset.statistics):
        raise NotProfiled(urn, "it has no files. Rows of databases and streams are not read.")
    scan = store.last_scan(known.source)
    if scan is None:
        raise NotProfiled(urn, "no scan of this store has seen its files. Run lumos ingest first.")
    root = known.source.partition(":")[2]
    from lumos.discovery.explanation import Lens
    from lumos.discovery.manifest import Manifests

    selection = selection_of(with_stored_hints(settings, store), root)
    state_access = access_of(state, settings.sources)
    manifest = Manifests(state_folder(state, known.source), state_access).read(scan.manifest)
    place = dataset.location.uri if dataset.location else ""
    if place in manifest.tables:
        found = _table(dataset, selection.access, manifest.tables[place], state_access)
        return found._replace(roots=_scanned_roots(settings, store, root))
    lens = Lens.of_scan(selection, manifest, state_access=state_access)
    urn_of = urns_in(settings, root)
    group = next((each for each in lens.groups if str(urn_of(each.dataset)) == urn), None)
    files = iter(()) if group is None else map(_source_file, lens.files_of(group))
    first = next(files, None)
    if first is None:
        raise NotProfiled(urn, f"{_LOST} Run lumos ingest.")
    return Located(dataset, chain([first], files), selection.access)


def has_files(format: str | None, statistics: Counted | None) -> bool:
    """Whether a dataset is one of files; a table is, even when all its rows were deleted."""
    from lumos.formats.tables import READERS

    return statistics is not None and (statistics.file_count > 0 or format in READERS)


def _table(dataset: Dataset, access: Access, kept: "TableKept", state_access: Access) -> Located:
    from lumos.discovery.tables import memory_of
    from lumos.profiles.table_files import table_files

    memory = memory_of(kept, state_access)
    if memory is None or dataset.location is None:
        raise NotProfiled(dataset.urn, f"{_LOST} Run lumos ingest.")
    files, fields, remarks = table_files(dataset.location.uri, memory)
    return Located(dataset, files, access, fields, tuple(remarks))


def _scanned_roots(settings: Settings, store: Store, root: str) -> tuple[str, ...]:
    """The root of a scan, and others of the same store: of other scans, and of the sources."""
    scanned = [scan.source.partition(":")[2] for scan in store.scans()]
    configured = [
        each
        for section in settings.sources
        if isinstance(section, FileStoreSettings)
        for each in file_roots(section)
    ]
    files = (each for each in (*scanned, *configured) if each.startswith("/") or "://" in each)
    return tuple(dict.fromkeys([root, *(each for each in files if is_same_store(each, root))]))


def _known(store: Store, dataset: Dataset) -> KnownDataset:
    state = store.state(dataset.urn)
    if state == "missing":
        raise NotProfiled(dataset.urn, "it was gone at the last scan.")
    if state == "split":
        raise NotProfiled(dataset.urn, "it was split into other datasets. Profile those.")
    like_it = store.list(DatasetFilter(contains=dataset.urn))
    return next(each for each in like_it if each.urn == dataset.urn)


def _source_file(file: "DataFile") -> "SourceFile":
    from lumos.profiles.plan import SourceFile, identity_of
    from lumos.profiles.rows import FileTask

    row = file.row
    assert row.format is not None, "files of datasets have a format"
    task = FileTask(
        row.path,
        row.size,
        row.format,
        unit=0,
        names=tuple(field.name for field in file.schema.fields),
        partitions=tuple(
            (key, None if value == _NULL_PARTITION else value)
            for key, value in file.partitions
            if not key.startswith("{")
        ),
    )
    partition = "/".join(f"{key}={value}" for key, value in file.partitions)
    return SourceFile(task, partition, identity_of(row.path, row.size, row.modified, row.etag))
