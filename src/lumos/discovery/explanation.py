"""Says of any file what was decided about it and why, from a manifest or by looking afresh."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from lumos.discovery.current_schema import completed
from lumos.discovery.file_reader import Reader
from lumos.discovery.grouping.datasets import Group, group
from lumos.discovery.grouping.patterns import Partitions, Placement
from lumos.discovery.grouping.sidecars import why_sidecar
from lumos.discovery.grouping.suggestions import suggest_joins
from lumos.discovery.hints import SPLIT_MARK, Hints
from lumos.discovery.manifest import Manifest
from lumos.discovery.merge import Merged, Schemas, merge
from lumos.discovery.owned_paths import Claims
from lumos.discovery.parts import read_identities, read_part
from lumos.discovery.summaries import FileRow, PlaceSummary, merged_places, summarise
from lumos.discovery.table_explanation import Tables, tables_among
from lumos.formats.identification import FORMATS
from lumos.model.discovery import Suggestion
from lumos.model.schema import Schema
from lumos.storage import FileSelection, FileStorage, ListedFile, StorageAccess, storage_of
from lumos.storage.interface import is_hidden

Verdict: TypeAlias = Literal[
    "dataset", "hidden", "excluded", "not_data", "accompanies", "unreadable"
]

T = TypeVar("T")

# So many files are looked at where no scan did it before.
MOST_FILES: Final = 20_000


class Explained(NamedTuple):
    """A file, what was decided about it, and why; `drifts` if its schema is not the dataset's."""

    path: str
    verdict: Verdict
    reason: str
    code: str | None = None
    group: Group | None = None
    partitions: Partitions = ()
    shape: str | None = None
    drifts: bool = False
    is_new: bool = False


class DataFile(NamedTuple):
    """A file of a dataset, the partition it lies in, and the schema of its own."""

    row: FileRow
    partitions: Partitions
    schema: Schema


class Lens:
    """All that is known of a root: its files, and the datasets they make up."""

    def __init__(
        self,
        selection: FileSelection,
        places: Iterable[PlaceSummary],
        manifest: Manifest,
        rows: dict[str, FileRow] | None = None,
        *,
        state_access: StorageAccess,
    ) -> None:
        self._selection = selection
        self._storage: FileStorage = storage_of(selection.root, selection.access)
        self._splits = tuple(manifest.grouping.splits)
        self._hints = Hints(selection.hints, root=selection.root, splits=self._splits)
        self._manifest = manifest
        self._rows = rows
        self._state_access = state_access
        self.tables = Tables(selection, manifest.tables, state_access=state_access)
        self._places = list(places)
        self._regroup()

    @classmethod
    def of_scan(
        cls, selection: FileSelection, manifest: Manifest, *, state_access: StorageAccess
    ) -> "Lens":
        """What a scan knew."""
        places = merged_places(
            place
            for part in manifest.parts
            for place in read_identities(part.path, access=state_access)[1].places
        )
        return cls(selection, places, manifest, state_access=state_access)

    @classmethod
    def afresh(cls, selection: FileSelection, *, state_access: StorageAccess) -> "Lens":
        """What a look at the first files of a root tells."""
        storage = storage_of(selection.root, selection.access)
        tables = selection.tables
        met, stretches = storage.split(
            selection.root, parts=1, deep=selection.recursive, tables=tables
        )
        walked = (storage.walk(stretch, tables=tables) for stretch in stretches)
        listings = list(islice(chain(met, chain.from_iterable(walked)), MOST_FILES))
        found = tables_among(listings, selection)
        files = (
            each for each in listings if isinstance(each, ListedFile) and each.path in selection
        )
        claims = Claims(place for root, kept in found.items() for place in (root, *kept.claims))
        listed = list(claims.without(files))
        reader = Reader(storage, column_stats=False)
        rows = list(reader.read((each, None) for each in listed))
        summary = summarise(rows, root=selection.root, hints=selection.hints)
        manifest = Manifest(schemas=reader.bodies, tables=found)
        known = {row.path: row for row in rows}
        return cls(selection, summary.places, manifest, known, state_access=state_access)

    @property
    def groups(self) -> list[Group]:
        """The files of each dataset, taken together."""
        return list({each.dataset: each for each in self._groups.values()}.values())

    def suggestions(self, datasets: Collection[str]) -> tuple[Suggestion, ...]:
        """Which of some datasets have the same columns and may be joined."""
        return suggest_joins(
            [each for each in self._grouping.groups if each.dataset in datasets],
            self._schemas,
            grouping=self._grouping,
            root=self._selection.root,
            tables=self._manifest.tables,
        )

    def files_of(self, found: Group) -> Iterator[DataFile]:
        """Every file of a dataset that its last scan could read, then or before."""
        first = min(place.first_path for place in found.places)
        last = max(place.last_path for place in found.places)
        for row in self._rows_in(first, last):
            if row.full is None or row.format is None:
                continue
            placed = self._hints.place(row.path)
            if self._group_of(placed, row.format, row.full) is found:
                yield DataFile(row, placed.partitions, self._schemas[row.full])

    def file(self, path: str) -> Explained:
        """What was decided about a file; raises FileNotFoundError where there is none."""
        row = next(iter(self._rows_in(path, path)), None)
        if row is not None:
            return self._explained(row)
        return self._explained(self._taken_in(path))._replace(is_new=True)

    def files_below(self, folder: str) -> Iterator[Explained]:
        """What was decided about every file below a folder."""
        inside = f"{folder.rstrip('/')}/"
        for row in self._rows_in(inside, f"{inside}\U0010ffff"):
            if row.path.startswith(inside):
                yield self._explained(row)

    def passed_over(self, path: str, *, is_folder: bool = False) -> Explained | None:
        """Why no scan looks at a path, if none does."""
        inside = path[len(self._selection.root) :].strip("/")
        hidden = next((name for name in inside.split("/") if is_hidden(name)), None)
        if hidden is not None:
            reason = f"names such as {hidden} are markers or scratch space of a writer"
            return Explained(path, "hidden", reason)
        # Patterns are of files; one that leaves out a folder leaves out its files.
        if not is_folder and path not in self._selection:
            return Explained(path, "excluded", "the patterns of the configuration leave it out")
        return None

    def _rows_in(self, first: str, last: str) -> Iterator[FileRow]:
        if self._rows is not None:
            yield from (row for path, row in self._rows.items() if first <= path <= last)
            return
        for part in self._manifest.parts:
            if part.first <= last and part.last >= first:
                rows, _ = read_part(part.path, access=self._state_access)
                yield from (row for row in rows if first <= row.path <= last)

    def _taken_in(self, path: str) -> FileRow:
        """A file that the scan did not see, read now and grouped with what it saw."""
        reader = Reader(self._storage, column_stats=False)
        with self._storage.open(path) as opened:
            size = opened.size
        (row,) = reader.read([(ListedFile(path, size, 0), None)])
        self._manifest.schemas.update(reader.bodies)
        more = summarise(
            [row],
            root=self._selection.root,
            hints=self._selection.hints,
            splits=self._splits,
        ).places
        self._places = merged_places([*self._places, *more])
        self._regroup()
        return row

    def _regroup(self) -> None:
        self._schemas = Schemas(self._manifest.schemas)
        self._grouping = group(
            self._places,
            self._schemas,
            hints=self._hints,
            before=self._manifest.grouping,
            tables=self._manifest.tables,
            joins_similar=self._selection.join_similar,
        )
        self._groups = {
            _key(place): each for each in self._grouping.groups for place in each.places
        }
        self._sidecars = {_key(place): place for place in self._grouping.sidecars}
        self._merged: dict[str, Merged] = {}

    def _explained(self, row: FileRow) -> Explained:
        if row.full is None or row.format is None:
            if row.failed:
                return Explained(row.path, "unreadable", row.reason or "", row.code)
            reason = "neither its content nor its name is that of a data file"
            return Explained(row.path, "not_data", reason)
        placed = self._hints.place(row.path)
        found = self._group_of(placed, row.format, row.full)
        if found is None:
            sidecar = _at(self._sidecars, placed, row.format, row.full)
            what = why_sidecar(sidecar, self._schemas) if sidecar is not None else None
            reason = f"it is {what or 'a file that accompanies data'}, not data"
            return Explained(row.path, "accompanies", reason, row.code)
        schema = self._schemas[row.full]
        return Explained(
            path=row.path,
            verdict="unreadable" if row.failed else "dataset",
            reason=(row.reason or "") if row.failed else found.rule.reason,
            code=row.code,
            group=found,
            partitions=placed.partitions,
            shape=schema.shape,
            drifts=self._drifts(found, row),
        )

    def _group_of(self, placed: Placement, format: str, full: str) -> Group | None:
        return _at(self._groups, placed, format, full)

    def _drifts(self, found: Group, row: FileRow) -> bool:
        assert row.full is not None
        assert row.format is not None
        if not FORMATS[row.format].declares_schema:
            return False
        memory = self._merge(found).memory
        (own,) = completed([self._schemas[row.full]], self._schemas[memory.full])
        return own.shape != memory.current

    def _merge(self, found: Group) -> Merged:
        if found.dataset not in self._merged:
            memory = self._manifest.memories.get(found.dataset)
            self._merged[found.dataset] = merge(found, self._schemas, memory)
        return self._merged[found.dataset]


def _at(
    found: Mapping[tuple[str, str, str, str], T], placed: Placement, format: str, full: str
) -> T | None:
    """What is known of the place that a file belongs to."""
    pattern = placed.pattern
    # The scan that decided by columns summed files up before it did so.
    before, mark, _ = pattern.rpartition(SPLIT_MARK)
    key = (placed.base, pattern, format, full)
    return found.get(key if key in found or not mark else (placed.base, before, format, full))


def _key(place: PlaceSummary) -> tuple[str, str, str, str]:
    return place.base, place.pattern, place.format, place.full
