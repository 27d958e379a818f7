"""The scan of a lake on Spark: from a root folder to its datasets."""

import logging
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace
from pyspark.sql import SparkSession

from lumos.discovery.grouping.datasets import DatasetGroup, group_files
from lumos.discovery.grouping.state import GroupingState
from lumos.discovery.grouping.suggestions import suggest_joins
from lumos.discovery.lake.dataset_schema import (
    LoadMemories,
    MergedDataset,
    SchemaPool,
    ShapeMemory,
    StoredMemory,
    merge_group,
)
from lumos.discovery.lake.manifest import ManifestStore, ScanManifest, ScanProgress, ignore_progress
from lumos.discovery.lake.parts import (
    KeyRangeSet,
    ListedFiles,
    ManifestPart,
    PartIndex,
    read_summaries,
)
from lumos.discovery.lake.scan_scope import ScanScope, plan_scope
from lumos.discovery.lake.scan_task import (
    RESULT_COLUMNS,
    TASK_COLUMNS,
    ScanJob,
    ScanResult,
    ScanTask,
    decode_result,
    encode_task,
    plan_deferred,
    plan_scope_tasks,
    plan_tasks,
    scan_worker,
)
from lumos.discovery.lake.summaries import merge_file_sets
from lumos.discovery.lake.table_paths import AFTER_ALL, OwnedPaths, is_below, may_overlap
from lumos.discovery.lake.table_reader import (
    TABLE_RESULT_COLUMNS,
    TABLE_TASK_COLUMNS,
    TableJob,
    TableRecord,
    TableResult,
    TableTask,
    dataset_of_table,
    decode_table_result,
    encode_table_task,
    find_enclosing_table,
    table_worker,
)
from lumos.discovery.lake.table_selection import (
    TablePredecessors,
    find_table_predecessors,
    plan_table_tasks,
    select_tables,
)
from lumos.formats.tables.interface import TableFacts
from lumos.model.discovery import Discovery, FoundDataset, Problem, SchemaMemory
from lumos.model.json_codec import from_json
from lumos.spark.problems import MAX_LISTED_IN_TOTAL, ProblemList
from lumos.spark.tasks import run_tasks, task_count
from lumos.storage import (
    DEFAULT_ACCESS,
    FileSelection,
    KeyRange,
    StorageAccess,
    TableRoot,
    storage_of,
)
from lumos.storage.table_roots import outermost_roots

NOT_LISTED_YET: Final = "not_listed_yet"
# If more datasets than this are missing, a delayed listing is not the cause.
_MAX_NOT_LISTED: Final = 50
# Reading more parts than this, with few files in each, takes longer than writing them again.
_MAX_SMALL_PARTS: Final = 256
_log = logging.getLogger(__name__)


def scan_lake(
    spark: SparkSession,
    selection: FileSelection,
    *,
    state: str,
    before: str | None,
    after: str,
    state_access: StorageAccess = DEFAULT_ACCESS,
    column_stats: bool = False,
    excluded_uri: str = "",
    inherited: GroupingState | None = None,
    load_memories: LoadMemories | None = None,
    report_progress: ScanProgress = ignore_progress,
    changed: Collection[str] | None = None,
) -> Discovery:
    """Scan a root, reading only files that are new or changed since the manifest `before`.

    Manifests are stored in the folder `state`; `before` is the name of the last one and `after` of
    the new one. Files in `excluded_uri`, or else in `state`, are not data. Tasks list and read
    files and return summaries, so the driver's memory grows with the number of datasets.
    `inherited` is the grouping of a scan of a parent folder, which applies here as well.
    `load_memories` loads schema memories from the store; without it, those of the last manifest are
    used. `changed` limits the scan to these paths and the folders around them, if that is possible;
    everything else is taken from the last scan.
    """
    manifests = ManifestStore(state, state_access)
    last_manifest = manifests.read(before)
    last_manifest.grouping = manifests.grouping_of(last_manifest)
    if inherited is not None:
        last_manifest.grouping = last_manifest.grouping.with_inherited(inherited)
    splits = tuple(last_manifest.grouping.splits)
    job = ScanJob(
        selection, excluded_uri or state, manifests.parts, state_access, column_stats, (), splits
    )
    scan = _Scan(spark, job, last_manifest, load_memories)
    scoped = None
    if changed is not None and before is not None:
        scoped = scan.run_in_scope(changed)
        folders = set() if scoped is None else scan.folders_of_missing_datasets(scoped[0])
        if not folders.issubset(changed):
            # Other files may have been written there, whose events come later.
            scoped = scan.run_in_scope(folders.union(changed))
        if scoped is None:
            _log.info("The whole lake %s is listed after events.", selection.root)
    if scoped is not None:
        discovery, manifest = scoped
        manifests.write(after, manifest)
        return discovery
    tasks, table_roots = plan_tasks(selection, parts=task_count(spark), index=scan.index)
    with manifests.reporting_progress(report_progress, tasks=len(tasks)):
        discovery, manifest = scan.run(tasks, table_roots)
    manifests.write(after, manifest)
    root = selection.root.rstrip("/")
    enclosing = (
        None
        if root in manifest.tables
        else find_enclosing_table(root.rpartition("/")[0], selection)
    )
    if enclosing is None:
        return discovery
    remark = Problem(
        path=selection.root,
        code="inside_table",
        reason=f"This folder is part of the table {enclosing}, so the files here are not datasets "
        f"of their own. Scan {enclosing} or a folder above it instead.",
        remark=True,
    )
    return replace(discovery, problems=(remark, *discovery.problems))


class _TaskResult(NamedTuple):
    """A task and its result, with the tasks for files that it deferred and their results."""

    task: ScanTask
    result: ScanResult
    deferred: tuple["_TaskResult", ...] = ()

    @property
    def with_deferred(self) -> tuple["_TaskResult", ...]:
        return (self, *self.deferred)

    @property
    def parts(self) -> list[ManifestPart]:
        return [each.result.part for each in self.with_deferred if each.result.part is not None]


class _Scan:
    """One scan: scans files, reads tables, and repeats tasks whose files belong to tables."""

    def __init__(
        self,
        spark: SparkSession,
        job: ScanJob,
        last_manifest: ScanManifest,
        load_memories: LoadMemories | None,
    ) -> None:
        self._spark = spark
        self._job = job
        self._last_manifest = last_manifest
        self._load_memories = load_memories
        self.index = PartIndex(last_manifest.parts)

    def run(
        self, tasks: list[ScanTask], table_roots: list[TableRoot]
    ) -> tuple[Discovery, ScanManifest]:
        """Scan; return the datasets, and the manifest for the next scan."""
        has_tables = self._job.selection.tables
        known_paths = self._last_manifest.owned_paths if has_tables else frozenset()
        assumed_paths = frozenset(outermost_roots(table_roots)) | known_paths
        results = self._scan_files(tasks, assumed_paths, self.index)
        table_roots = [
            *table_roots,
            *(root for each in results for root in each.result.table_roots),
        ]
        stray_metadata = {
            folder
            for result in results
            for each in result.with_deferred
            for folder in each.result.stray_metadata
        }
        tables, remarks = self._run_table_tasks(
            plan_table_tasks(
                outermost_roots(table_roots),
                stray_metadata,
                self._last_manifest.tables,
                self._job.selection,
            )
            if has_tables
            else []
        )
        owned_paths = frozenset(outermost_roots(table_roots)).union(
            *((table.root, *table.record.owned_paths) for table in tables)
        )
        results = self._repeat_outdated(results, assumed_paths, owned_paths)
        found, manifest = self._collect(
            [each.result for result in results for each in result.with_deferred],
            tables,
            remarks,
            owned_paths,
        )
        return self._with_unlisted_datasets(found, manifest), manifest

    def run_in_scope(self, changed: Collection[str]) -> tuple[Discovery, ScanManifest] | None:
        """Scan the folders of changed paths; None if the whole lake has to be scanned.

        The whole lake has to be scanned if other files may be affected: because hints or files of
        tables outside of their roots have changed, or a part of the last manifest is lost.
        """
        last_manifest, job = self._last_manifest, self._job
        scope = plan_scope(changed, last_manifest, job.selection)
        parts = last_manifest.parts
        if scope is None or not (parts or last_manifest.tables):
            return None
        if len(parts) > _MAX_SMALL_PARTS and sum(each.files for each in parts) < 100 * len(parts):
            # A scan of the whole lake merges the small parts that scans after events have left.
            return None
        tables, remarks = self._read_tables_in_scope(scope)
        kept_tables = {
            root: record
            for root, record in last_manifest.tables.items()
            if root not in scope.tables and not any(is_below(root, new) for new in scope.new_tables)
        }
        before = {
            path
            for root in last_manifest.tables.keys() - kept_tables.keys()
            for path in last_manifest.tables[root].owned_paths
        }
        after = {path for table in tables for path in table.record.owned_paths}
        # If a folder is no longer a table, its files become datasets, so they have to be listed.
        found_roots = {table.root for table in tables}
        lost_roots = scope.tables.keys() - found_roots
        unexpected = found_roots - scope.tables.keys()
        if before != after or remarks or unexpected:
            return None
        listed = KeyRangeSet(scope.key_ranges)
        key_ranges = {
            *scope.key_ranges,
            *(KeyRange(root) for root in lost_roots if not listed.covers(f"{root}/file")),
        }
        owned_paths = frozenset(kept_tables).union(
            found_roots, after, *(each.owned_paths for each in kept_tables.values())
        )
        tasks, outdated = plan_scope_tasks(
            sorted(key_ranges), parts=task_count(self._spark), index=self.index
        )
        summaries = read_summaries(parts, access=job.state_access)
        hints = job.hints.fingerprint
        if summaries is None or any(
            each.hints != hints or (job.column_stats and not each.has_column_stats)
            for each in summaries
        ):
            return None
        outdated_paths = {part.path for part in outdated}
        kept = [
            ScanResult(summary, 0, ProblemList(), {}, part, [])
            for part, summary in zip(parts, summaries, strict=True)
            if part.path not in outdated_paths
        ]
        results = self._scan_files(tasks, owned_paths, self.index)
        all_results = [each.result for result in results for each in result.with_deferred]
        if any(
            each.stray_metadata or any(root.folder not in owned_paths for root in each.table_roots)
            for each in all_results
        ):
            return None
        found, manifest = self._collect([*all_results, *kept], tables, [], owned_paths, kept_tables)
        return self._with_unlisted_datasets(found, manifest), manifest

    def folders_of_missing_datasets(self, found: Discovery) -> set[str]:
        """The folders of datasets that a scan has not found; none for those of a single file."""
        missing = self._last_manifest.memories.keys() - _current_and_earlier_paths(found.datasets)
        return {
            f"{each.base}/"
            for each in self._last_manifest.grouping.file_sets
            if each.dataset in missing and "{" in each.pattern
        }

    def _read_tables_in_scope(self, scope: ScanScope) -> tuple[list[TableResult], list[Problem]]:
        """Read the tables of a scope, except deleted ones."""
        known_tables = self._last_manifest.tables
        tasks = [
            TableTask(
                root,
                kinds if record is None else tuple(sorted({*kinds, *record.kinds})),
                record,
                # The log may have been deleted after the event.
                is_listed=False,
                log="" if record is None else record.log,
            )
            for root, kinds in scope.tables.items()
            for record in (known_tables.get(root),)
            if self._job.selection.has_table(root)
        ]
        return self._run_table_tasks(tasks)

    def _scan_files(
        self, tasks: list[ScanTask], owned_paths: Collection[str], index: PartIndex
    ) -> list[_TaskResult]:
        results = self._run_tasks(tasks, owned_paths)
        deferred = [plan_deferred(each.deferred, index) for each in results]
        deferred_results = iter(self._run_tasks(list(chain.from_iterable(deferred)), owned_paths))
        return [
            _TaskResult(
                task,
                each,
                tuple(_TaskResult(later, next(deferred_results)) for later in later_tasks),
            )
            for task, each, later_tasks in zip(tasks, results, deferred, strict=True)
        ]

    def _run_tasks(self, tasks: list[ScanTask], owned_paths: Collection[str]) -> list[ScanResult]:
        job = self._job._replace(owned_paths=tuple(sorted(owned_paths)))
        rows = list(map(encode_task, tasks))
        results = run_tasks(self._spark, TASK_COLUMNS, rows, scan_worker(job), RESULT_COLUMNS)
        return [decode_result(each) for each in results]

    def _run_table_tasks(self, tasks: list[TableTask]) -> tuple[list[TableResult], list[Problem]]:
        """Read tables; return them, and remarks on metadata that belongs to no table."""
        selection = self._job.selection
        job = TableJob(selection, self._job.state, self._job.parts_folder, self._job.state_access)
        results = run_tasks(
            self._spark,
            TABLE_TASK_COLUMNS,
            list(map(encode_table_task, tasks)),
            table_worker(job),
            TABLE_RESULT_COLUMNS,
            tasks=task_count(self._spark),
        )
        return select_tables([decode_table_result(each) for each in results])

    def _repeat_outdated(
        self, results: list[_TaskResult], assumed_paths: frozenset[str], owned_paths: frozenset[str]
    ) -> list[_TaskResult]:
        """Repeat tasks that treated files of a table as loose files, or the reverse.

        Files that were already read are taken from the parts that were just written.
        """
        outdated = [each for each in results if _is_outdated(each, assumed_paths, owned_paths)]
        if not outdated:
            return results
        tasks = [
            replace(each.task, known_parts=[part.path for part in each.parts]) for each in outdated
        ]
        index = PartIndex(part for each in outdated for part in each.parts)
        repeated = self._scan_files(tasks, owned_paths, index)
        replacements = {
            id(first): _combine(first, second)
            for first, second in zip(outdated, repeated, strict=True)
        }
        return [replacements.get(id(each), each) for each in results]

    def _collect(
        self,
        results: list[ScanResult],
        tables: list[TableResult],
        remarks: list[Problem],
        owned_paths: frozenset[str],
        kept_tables: Mapping[str, TableRecord] = MappingProxyType({}),
    ) -> tuple[Discovery, ScanManifest]:
        """Group all files into datasets and merge their schemas.

        `kept_tables` are tables outside of the scope of the scan.
        """
        last_manifest, job = self._last_manifest, self._job
        schemas = SchemaPool(
            dict(ChainMap(last_manifest.schemas, *(each.encoded_schemas for each in results)))
        )
        file_sets = merge_file_sets(
            file_set for each in results for file_set in each.summary.file_sets
        )
        # Including the schemas of sidecars, which may become data later without being read again.
        present = {file_set.schema_fingerprint for file_set in file_sets}
        roots = {*(each.root for each in tables), *kept_tables}
        grouping = group_files(
            file_sets,
            schemas,
            hints=job.hints,
            before=_without_owned(last_manifest.grouping, owned_paths),
            tables=roots,
            joins_similar=job.selection.join_similar,
            was_listed=ListedFiles(last_manifest.parts, job.state_access).has,
            recorded_formats=self._recorded_formats,
        )
        merged = self._merge_schemas(grouping.groups, schemas)
        problems = ProblemList(MAX_LISTED_IN_TOTAL)
        for each in results:
            problems.join(each.listing_problems)
        of_tables = (problem for each in tables for problem in each.problems)
        taken_names = (
            Problem(
                path=each.location,
                code="name_taken",
                reason=f"A hint gives this dataset the path {each.requested_path}, which another "
                f"dataset has. It is recorded as {each.dataset}. Give the hint another name.",
                remark=True,
            )
            for each in grouping.groups
            if each.requested_path is not None
        )
        for problem in (*remarks, *taken_names, *of_tables):
            problems.add(problem)
        for each in results:
            problems.join(each.summary.all_problems)
        memories = {path: each.memory for path, each in merged.items()}
        used_by_memories = {memory.full for memory in memories.values()}
        manifest = ScanManifest(
            parts=[each.part for each in results if each.part is not None],
            schemas=schemas.encoded_schemas(present | used_by_memories),
            memories=memories,
            grouping=grouping.state,
            tables={**kept_tables, **{each.root: each.record for each in tables}},
        )
        loose = [each.found for each in merged.values()]
        discovery = Discovery(
            datasets=(*loose, *self._table_datasets(tables, loose)),
            suggestions=suggest_joins(
                grouping.groups, schemas, grouping=grouping, root=job.selection.root, tables=roots
            ),
            problems=tuple(problems.report(job.selection.root)),
            files_listed=sum(each.summary.listed for each in results),
            files_read=sum(each.files_read for each in results),
            tables=len(roots),
            tables_read=sum(each.was_read for each in tables),
            files_failed=sum(each.summary.failed for each in results),
            files_skipped=sum(each.summary.not_data for each in results)
            + sum(file_set.file_count for file_set in grouping.sidecars),
            complete=not any(each.listing_problems.total for each in results),
            unscanned=tuple(sorted(kept_tables)),
        )
        return discovery, manifest

    def _recorded_formats(self, paths: Collection[str]) -> dict[str, str | None]:
        if self._load_memories is None:
            return {}
        return {path: each.format for path, each in self._load_memories(paths).items()}

    def _merge_schemas(
        self, groups: Collection[DatasetGroup], schemas: SchemaPool
    ) -> dict[str, MergedDataset]:
        """Merge the schemas of each group, using the memory of its dataset; by dataset path."""
        memories = self._last_manifest.memories
        if self._load_memories is None:
            return {
                each.dataset: merge_group(
                    each, schemas, memories.get(each.renamed_from or each.dataset)
                )
                for each in groups
            }
        paths = {path for each in groups for path in (each.dataset, each.renamed_from) if path}
        stored_memories = self._load_memories(paths)
        for stored_memory in stored_memories.values():
            schemas.add_json(stored_memory.memory.full, stored_memory.schema)
        merged: dict[str, MergedDataset] = {}
        for each in groups:
            # A scan that was killed may already have recorded the dataset under its new name.
            stored = stored_memories.get(each.dataset) or stored_memories.get(
                each.renamed_from or ""
            )
            chosen = merge_group(each, schemas, _memory_for(each, stored, memories))
            memory = SchemaMemory(
                body=msgspec.json.encode(chosen.memory),
                schema=schemas[chosen.memory.full],
                recalled=None if stored is None else stored.body,
            )
            found = replace(chosen.found, memory=memory)
            merged[each.dataset] = MergedDataset(found, chosen.memory)
        return merged

    def _table_datasets(
        self, tables: list[TableResult], loose: Iterable[FoundDataset]
    ) -> Iterator[FoundDataset]:
        """The tables as datasets, with the earlier datasets of loose files that they continue."""
        predecessors = find_table_predecessors(
            tables,
            self._last_manifest,
            present=_current_and_earlier_paths(loose),
            selection=self._job.selection,
            state_access=self._job.state_access,
        )
        for each in tables:
            if each.facts is None:
                continue
            found = dataset_of_table(each.root, from_json(each.facts, TableFacts))
            earlier = predecessors.get(each.root, TablePredecessors())
            # A dataset of loose files at the root already has the path of the table. A dataset
            # elsewhere is merged and not renamed: other files may be written there later.
            has_path = each.root in earlier.own or each.root in self._last_manifest.tables
            first = None if has_path else next(iter(earlier.own), None)
            others = tuple(
                path
                for path in (*earlier.own, *earlier.elsewhere)
                if path not in (first, each.root)
            )
            yield replace(found, renamed_from=first, merged_from=others)

    def _with_unlisted_datasets(self, found: Discovery, manifest: ScanManifest) -> Discovery:
        """The discovery, with a problem for each missing dataset that still has a file."""
        missing = self._last_manifest.memories.keys() - _current_and_earlier_paths(found.datasets)
        if not missing or not found.complete:
            return found
        unlisted = self._find_unlisted(missing, manifest)
        return replace(found, problems=(*found.problems, *unlisted))

    def _find_unlisted(self, missing: Collection[str], manifest: ScanManifest) -> Iterator[Problem]:
        """Report missing datasets that still have a file; storages may list new files late."""
        if len(missing) > _MAX_NOT_LISTED:
            return
        selection = self._job.selection
        owned_paths = OwnedPaths(manifest.owned_paths)
        listed = ListedFiles(manifest.parts, self._job.state_access)
        storage = storage_of(selection.root, selection.access)
        file_sets = self._last_manifest.grouping.file_sets
        paths = {each.dataset: each.first_path for each in reversed(file_sets)}
        for dataset in sorted(missing):
            path = paths.get(dataset)
            if path is None or path not in selection or owned_paths.folder_of(path) is not None:
                continue
            if listed.has(path):
                continue
            try:
                with storage.open(path) as file:
                    size = file.size
            except OSError:
                continue
            reason = (
                f"The file exists ({size:,} bytes) but was not listed. Its dataset is kept for now."
            )
            yield Problem(path=path, code=NOT_LISTED_YET, reason=reason)


def _current_and_earlier_paths(datasets: Iterable[FoundDataset]) -> set[str]:
    return {
        path
        for each in datasets
        for path in filter(None, (each.path, each.renamed_from, each.split_from, *each.merged_from))
    }


def _combine(first: _TaskResult, repeated: _TaskResult) -> _TaskResult:
    """The result of a repeated task, with the schemas and read files of the first run."""
    encoded_schemas = dict(
        ChainMap(
            repeated.result.encoded_schemas,
            *(each.result.encoded_schemas for each in first.with_deferred),
        )
    )
    files_read = min(
        sum(each.result.files_read for each in first.with_deferred),
        sum(each.result.summary.listed for each in repeated.with_deferred),
    )
    result = replace(
        repeated.result,
        encoded_schemas=encoded_schemas,
        files_read=repeated.result.files_read + files_read,
    )
    return repeated._replace(result=result)


def _is_outdated(
    result: _TaskResult, assumed_paths: frozenset[str], owned_paths: frozenset[str]
) -> bool:
    """Whether files of a table were scanned, or files that belong to no table were skipped."""
    for each in result.with_deferred:
        if not owned_paths.issuperset(each.result.skipped_owned_paths):
            return True
        part = each.result.part
        reported = {root.folder for root in (*result.result.table_roots, *each.result.table_roots)}
        if part is not None and any(
            part.first <= f"{owned}/{AFTER_ALL}"
            and owned <= part.last
            and any(may_overlap(key_range, owned) for key_range in part.key_ranges)
            for owned in owned_paths - assumed_paths - reported
        ):
            return True
    return False


def _memory_for(
    group: DatasetGroup, stored: StoredMemory | None, manifest_memories: Mapping[str, ShapeMemory]
) -> ShapeMemory | None:
    """The memory of a dataset; None if the dataset is not recorded."""
    if stored is None:
        return None
    if stored.body is not None:
        return stored.memory
    # Earlier versions stored memories in manifests. Use that of this root, unless a scan of another
    # root has recorded another schema since.
    earlier = manifest_memories.get(group.renamed_from or group.dataset)
    if earlier is not None and earlier.current == stored.memory.current:
        return earlier
    formats = {file_set.format for file_set in group.file_sets}
    return stored.memory if stored.format in formats else None


def _without_owned(grouping: GroupingState, owned_paths: frozenset[str]) -> GroupingState:
    """A grouping without the files that belong to tables now."""
    if not owned_paths:
        return grouping
    index = OwnedPaths(owned_paths)
    file_sets = [each for each in grouping.file_sets if index.folder_of(f"{each.base}/") is None]
    return replace(grouping, file_sets=file_sets)
