"""The contents of a lake: the role of every file and table, from a manifest or a new listing."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from lumos.discovery.grouping.datasets import DatasetGroup, group_files
from lumos.discovery.grouping.hints import SPLIT_MARK, HintMatcher
from lumos.discovery.grouping.patterns import FileAssignment, Partitions
from lumos.discovery.grouping.sidecars import describe_sidecar
from lumos.discovery.grouping.suggestions import suggest_joins
from lumos.discovery.lake.dataset_schema import (
    MergedDataset,
    SchemaPool,
    complete_types,
    merge_group,
)
from lumos.discovery.lake.manifest import ScanManifest
from lumos.discovery.lake.parts import ManifestPart, read_part, read_summary
from lumos.discovery.lake.summaries import (
    DataFileReader,
    FileRow,
    FileSet,
    FileSetKey,
    FileSummary,
    merge_file_sets,
    summarise,
)
from lumos.discovery.lake.table_folder import locate_table, open_table_folder
from lumos.discovery.lake.table_paths import OwnedPaths
from lumos.discovery.lake.table_reader import (
    TableMemory,
    TableRecord,
    live_files,
    load_table_memory,
)
from lumos.formats.identification import FORMATS
from lumos.formats.interface import UnreadableFile
from lumos.formats.tables import KINDS, table_reader
from lumos.formats.tables.interface import TableFacts
from lumos.model.discovery import Suggestion
from lumos.model.json_codec import from_json, to_json
from lumos.model.schema import Schema
from lumos.storage import (
    FileSelection,
    FileStorage,
    ListedFile,
    ListingItem,
    StorageAccess,
    TableRoot,
    storage_of,
)
from lumos.storage.interface import is_hidden
from lumos.storage.table_roots import (
    METADATA_FOLDER,
    misplaced_metadata_folder,
    outermost_roots,
    table_root_in,
)
from lumos.storage.uris import absolute

FileVerdict: TypeAlias = Literal[
    "dataset", "hidden", "excluded", "not_data", "accompanies", "unreadable"
]

T = TypeVar("T")

# The maximum number of files that are read if the root was not scanned.
MAX_FILES: Final = 20_000


class ExplainedFile(NamedTuple):
    """A file, its verdict and the reason.

    `drifts` is set if its schema differs from that of its dataset, and `is_new` if the last scan
    did not list it.
    """

    path: str
    verdict: FileVerdict
    reason: str
    code: str | None = None
    group: DatasetGroup | None = None
    partitions: Partitions = ()
    shape: str | None = None
    drifts: bool = False
    is_new: bool = False


class DataFile(NamedTuple):
    """A file of a dataset, its partition values, and its own schema."""

    row: FileRow
    partitions: Partitions
    schema: Schema


class LakeContents:
    """The files of a root, and the datasets and tables that they form."""

    def __init__(
        self,
        selection: FileSelection,
        file_sets: Iterable[FileSet],
        manifest: ScanManifest,
        rows: dict[str, FileRow] | None = None,
        *,
        state_access: StorageAccess,
    ) -> None:
        self._selection = selection
        self._storage: FileStorage = storage_of(selection.root, selection.access)
        self._splits = tuple(manifest.grouping.splits)
        self._hints = HintMatcher(selection.hints, root=selection.root, splits=self._splits)
        self._manifest = manifest
        self._rows = rows
        self._state_access = state_access
        self.tables = LakeTables(selection, manifest.tables, state_access=state_access)
        self._file_sets = list(file_sets)
        self._regroup()

    @classmethod
    def of_scan(
        cls,
        selection: FileSelection,
        manifest: ScanManifest,
        *,
        state_access: StorageAccess,
        is_current: Callable[[ManifestPart, FileSummary], bool] = lambda _part, _summary: False,
    ) -> "LakeContents":
        """The files of a scan, grouped by the hints of the selection.

        Parts that were summarised with other hints are summarised again, unless `is_current` is
        true for a part because the new hints make no difference to it.
        """
        splits = manifest.grouping.splits
        root, hints = selection.root, selection.hints
        fingerprint = HintMatcher(hints, root=root, splits=splits).fingerprint
        file_sets: list[FileSet] = []
        for part in manifest.parts:
            summary = read_summary(part.path, access=state_access)
            if summary.hints != fingerprint and not is_current(part, summary):
                rows, _ = read_part(part.path, access=state_access)
                summary = summarise(list(rows), root=root, hints=hints, splits=splits)
            file_sets += summary.file_sets
        return cls(selection, merge_file_sets(file_sets), manifest, state_access=state_access)

    @classmethod
    def read_now(cls, selection: FileSelection, *, state_access: StorageAccess) -> "LakeContents":
        """The first files of a root, read now instead of from a manifest."""
        storage = storage_of(selection.root, selection.access)
        items, key_ranges = storage.split(
            selection.root, parts=1, deep=selection.recursive, tables=selection.tables
        )
        walks = (storage.walk(each, tables=selection.tables) for each in key_ranges)
        listings = list(islice(chain(items, chain.from_iterable(walks)), MAX_FILES))
        table_records = find_tables(listings, selection)
        files = (
            each for each in listings if isinstance(each, ListedFile) and each.path in selection
        )
        owned = OwnedPaths(
            path for root, record in table_records.items() for path in (root, *record.owned_paths)
        )
        listed = list(owned.without(files))
        reader = DataFileReader(storage, column_stats=False)
        rows = list(reader.read((each, None) for each in listed))
        summary = summarise(rows, root=selection.root, hints=selection.hints)
        manifest = ScanManifest(schemas=reader.encoded_schemas, tables=table_records)
        rows_by_path = {row.path: row for row in rows}
        return cls(selection, summary.file_sets, manifest, rows_by_path, state_access=state_access)

    @property
    def groups(self) -> list[DatasetGroup]:
        """The datasets of loose files."""
        return list({each.dataset: each for each in self._groups.values()}.values())

    def suggestions(self, datasets: Collection[str]) -> tuple[Suggestion, ...]:
        """Suggestions to join some of these datasets because they have the same columns."""
        return suggest_joins(
            [each for each in self._grouping.groups if each.dataset in datasets],
            self._schemas,
            grouping=self._grouping,
            root=self._selection.root,
            tables=self._manifest.tables,
        )

    def files_of(self, group: DatasetGroup) -> Iterator[DataFile]:
        """The files of a dataset, except those that no scan could read."""
        first = min(file_set.first_path for file_set in group.file_sets)
        last = max(file_set.last_path for file_set in group.file_sets)
        for row in self._rows_in(first, last):
            if row.schema_fingerprint is None or row.format is None:
                continue
            assignment = self._hints.assign(row.path)
            if (
                _find_file_set(self._groups, assignment, row.format, row.schema_fingerprint)
                is group
            ):
                yield DataFile(row, assignment.partitions, self._schemas[row.schema_fingerprint])

    def file(self, path: str) -> ExplainedFile:
        """Explain a file; raises FileNotFoundError if it does not exist."""
        row = next(iter(self._rows_in(path, path)), None)
        if row is not None:
            return self._explain_row(row)
        return self._explain_row(self._add_new_file(path))._replace(is_new=True)

    def files_below(self, folder: str) -> Iterator[ExplainedFile]:
        """Explain every file below a folder."""
        prefix = f"{folder.rstrip('/')}/"
        for row in self._rows_in(prefix, f"{prefix}\U0010ffff"):
            if row.path.startswith(prefix):
                yield self._explain_row(row)

    def why_skipped(self, path: str, *, is_folder: bool = False) -> ExplainedFile | None:
        """The reason why scans skip a path; None if they do not skip it."""
        relative = path[len(self._selection.root) :].strip("/")
        hidden = next((name for name in relative.split("/") if is_hidden(name)), None)
        if hidden is not None:
            reason = f"names such as {hidden} are markers or temporary files of a writer"
            return ExplainedFile(path, "hidden", reason)
        # Patterns match files, not folders.
        if not is_folder and path not in self._selection:
            return ExplainedFile(path, "excluded", "the patterns of the configuration exclude it")
        return None

    def _rows_in(self, first: str, last: str) -> Iterator[FileRow]:
        if self._rows is not None:
            yield from (row for path, row in self._rows.items() if first <= path <= last)
            return
        for part in self._manifest.parts:
            if part.first <= last and part.last >= first:
                rows, _ = read_part(part.path, access=self._state_access)
                yield from (row for row in rows if first <= row.path <= last)

    def _add_new_file(self, path: str) -> FileRow:
        """Read a file that the scan did not list, and group it with the others."""
        reader = DataFileReader(self._storage, column_stats=False)
        with self._storage.open(path) as file:
            size = file.size
        (row,) = reader.read([(ListedFile(path, size, 0), None)])
        self._manifest.schemas.update(reader.encoded_schemas)
        file_sets = summarise(
            [row],
            root=self._selection.root,
            hints=self._selection.hints,
            splits=self._splits,
        ).file_sets
        self._file_sets = merge_file_sets([*self._file_sets, *file_sets])
        self._regroup()
        return row

    def _regroup(self) -> None:
        self._schemas = SchemaPool(self._manifest.schemas)
        self._grouping = group_files(
            self._file_sets,
            self._schemas,
            hints=self._hints,
            before=self._manifest.grouping,
            tables=self._manifest.tables,
            joins_similar=self._selection.join_similar,
        )
        self._groups = {
            file_set.key: each for each in self._grouping.groups for file_set in each.file_sets
        }
        self._sidecars = {file_set.key: file_set for file_set in self._grouping.sidecars}
        self._merged: dict[str, MergedDataset] = {}

    def _explain_row(self, row: FileRow) -> ExplainedFile:
        if row.schema_fingerprint is None or row.format is None:
            if row.failed:
                return ExplainedFile(row.path, "unreadable", row.reason or "", row.code)
            reason = "neither its content nor its name is that of a data file"
            return ExplainedFile(row.path, "not_data", reason)
        assignment = self._hints.assign(row.path)
        group = _find_file_set(self._groups, assignment, row.format, row.schema_fingerprint)
        if group is None:
            sidecar = _find_file_set(self._sidecars, assignment, row.format, row.schema_fingerprint)
            description = describe_sidecar(sidecar, self._schemas) if sidecar is not None else None
            reason = f"it is {description or 'a file that accompanies data'}, not data"
            return ExplainedFile(row.path, "accompanies", reason, row.code)
        schema = self._schemas[row.schema_fingerprint]
        return ExplainedFile(
            path=row.path,
            verdict="unreadable" if row.failed else "dataset",
            reason=(row.reason or "") if row.failed else group.rule.reason,
            code=row.code,
            group=group,
            partitions=assignment.partitions,
            shape=schema.shape,
            drifts=self._is_drift(group, row),
        )

    def _is_drift(self, group: DatasetGroup, row: FileRow) -> bool:
        assert row.schema_fingerprint is not None
        assert row.format is not None
        if not FORMATS[row.format].declares_schema:
            return False
        memory = self._merge(group).memory
        (schema,) = complete_types(
            [self._schemas[row.schema_fingerprint]], self._schemas[memory.full]
        )
        return schema.shape != memory.current

    def _merge(self, group: DatasetGroup) -> MergedDataset:
        if group.dataset not in self._merged:
            memory = self._manifest.memories.get(group.dataset)
            self._merged[group.dataset] = merge_group(group, self._schemas, memory)
        return self._merged[group.dataset]


def _find_file_set(
    values: Mapping[FileSetKey, T], assignment: FileAssignment, format: str, fingerprint: str
) -> T | None:
    """The value for the file set that a file belongs to."""
    key = (assignment.base, assignment.pattern, format, fingerprint)
    # The scan that first splits a pattern by columns summarises the files before the split.
    unsplit, mark, _ = assignment.pattern.rpartition(SPLIT_MARK)
    return values.get(
        key if key in values or not mark else (assignment.base, unsplit, format, fingerprint)
    )


TableVerdict: TypeAlias = Literal["dataset", "log", "not_live", "unreadable"]


class PathInTable(NamedTuple):
    """The role of a file or folder in a table; `files_here` counts the live files in a folder."""

    verdict: TableVerdict
    reason: str
    files_here: int = 0


class LakeTable:
    """A table of a lake, read from the state of a scan or from its log."""

    def __init__(
        self, root: str, record: TableRecord, selection: FileSelection, state_access: StorageAccess
    ) -> None:
        self.root = root
        self._record = record
        self._selection = selection
        self._state_access = state_access

    @cached_property
    def kind(self) -> str:
        """The format by which the table is read."""
        return next(kind for kind in KINDS if kind in self._record.kinds)

    @cached_property
    def _memory(self) -> TableMemory | None:
        stored = load_table_memory(self._record, self._state_access)
        if stored is not None:
            return stored
        try:
            selection = self._selection
            storage = storage_of(selection.root, selection.access)
            folder = open_table_folder(storage, self.root, self._record.log, scanned=selection.root)
            facts, memory = table_reader(self.kind).read(folder, None, max_commits=0)
        except (UnreadableFile, OSError):
            return None
        return TableMemory(self.kind, to_json(facts), memory)

    @cached_property
    def facts(self) -> TableFacts | None:
        """The facts of the table; None if it cannot be read."""
        return None if self._memory is None else from_json(self._memory.facts, TableFacts)

    @property
    def reason(self) -> str:
        """Why its files are one dataset."""
        title = table_reader(self.kind).title
        if self.facts is None:
            return f"the {title} log in {self.root} cannot be read"
        return f"the {title} log in its folder lists its files"

    def explain(self, path: str) -> PathInTable:
        """The role of a path in the table."""
        below = f"{path}/"
        folders = {"delta": "_delta_log", "hudi": ".hoodie", "iceberg": METADATA_FOLDER}
        logs = [f"{self.root}/{folders[kind]}" for kind in self._record.kinds]
        logs += filter(None, [self._record.log])
        is_in_log = any(below.startswith(f"{log}/") for log in logs)
        if is_in_log or table_root_in(path[len(self.root) + 1 :]) is not None:
            return PathInTable("log", f"it is part of the log of the table {self.root}")
        if self._memory is None:
            return PathInTable("unreadable", self.reason)
        live_count = 0
        for file in live_files(self._memory):
            location = absolute(file.path, self.root)
            live_count += location == path or location.startswith(below)
            if any(absolute(each.path, self.root) == path for each in file.deletes):
                reason = f"it lists deleted rows of the table {self.root}"
                return PathInTable("log", reason)
        if live_count or path == self.root:
            return PathInTable("dataset", self.reason, live_count)
        return PathInTable(
            "not_live",
            f"not in the current version of the table {self.root}: removed, replaced or not "
            "committed; older versions and branches may contain it",
        )


class LakeTables:
    """The tables of a root, by their root folders."""

    def __init__(
        self,
        selection: FileSelection,
        records: Mapping[str, TableRecord],
        *,
        state_access: StorageAccess,
    ) -> None:
        self._records = records
        self._tables = {
            root: LakeTable(root, each, selection, state_access) for root, each in records.items()
        }

    def containing(self, path: str) -> LakeTable | None:
        """The table whose root contains a path, or else a table elsewhere that owns the path."""
        prefix = f"{path}/"
        for root, table in self._tables.items():
            if prefix.startswith(f"{root}/"):
                return table
        for root, record in self._records.items():
            if any(prefix.startswith(f"{owned}/") for owned in record.owned_paths):
                return self._tables[root]
        return None

    def possible_owners(self, path: str) -> list[LakeTable]:
        """The tables elsewhere that may own a path or some files below it."""
        prefix = f"{path}/"
        return [
            self._tables[root]
            for root, record in sorted(self._records.items())
            if any(
                prefix.startswith(f"{owned}/") or owned.startswith(prefix)
                for owned in record.owned_paths
            )
        ]

    def below(self, folder: str) -> list[LakeTable]:
        """The tables whose roots lie below a folder."""
        prefix = f"{folder.rstrip('/')}/"
        return [table for root, table in sorted(self._tables.items()) if root.startswith(prefix)]


def find_tables(
    listings: Sequence[ListingItem], selection: FileSelection
) -> dict[str, TableRecord]:
    """The tables in a listing by root; their records are empty, because they were not read yet."""
    if not selection.tables:
        return {}
    roots = outermost_roots(each for each in listings if isinstance(each, TableRoot))
    found = {root: TableRecord(kinds, "", "") for root, kinds in roots.items()}
    storage = storage_of(selection.root, selection.access)
    misplaced = {
        misplaced_metadata_folder(each.path) for each in listings if isinstance(each, ListedFile)
    }
    for log in sorted(filter(None, misplaced)):
        try:
            table = locate_table(storage, log, scanned=selection.root)
        except (UnreadableFile, OSError):
            # Treat the files as loose files, as a scan does.
            continue
        found.setdefault(table.root, TableRecord(("iceberg",), "", "", (log,), log))
    return found
