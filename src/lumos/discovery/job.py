"""The way from a root to its datasets."""

import os
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Final, NamedTuple

import msgspec
from pyspark.sql import SparkSession

from lumos.discovery.absence import Absence
from lumos.discovery.current_schema import Memory, Recall, RecalledMemory
from lumos.discovery.grouping.datasets import Group, Grouping, group
from lumos.discovery.grouping.state import GroupingState
from lumos.discovery.grouping.suggestions import suggest_joins
from lumos.discovery.listing import plan, plan_left_over
from lumos.discovery.manifest import Manifest, Manifests, Watch, unwatched
from lumos.discovery.merge import Merged, Schemas, merge
from lumos.discovery.owned_paths import Claims, may_meet
from lumos.discovery.parts import LOST, Part, PartIndex, read_identities
from lumos.discovery.scan_task import (
    RESULTS_IN_SPARK,
    WORKS,
    Done,
    Job,
    Work,
    decode_done,
    work_row,
    worker,
)
from lumos.discovery.summaries import merged_places
from lumos.discovery.table_predecessors import Former, former_of
from lumos.discovery.table_tasks import chosen_tables, table_works
from lumos.discovery.tables import (
    TABLE_RESULTS_IN_SPARK,
    TABLE_WORKS,
    TableDone,
    TableJob,
    decode_table,
    found_of,
    table_around,
    table_row,
    table_worker,
)
from lumos.formats.tables.interface import TableFacts
from lumos.model.discovery import Discovery, FoundDataset, Problem, SchemaMemory
from lumos.model.json_codec import from_json
from lumos.spark.problems import MOST_OF_ALL, ProblemList
from lumos.spark.session import is_local
from lumos.spark.tasks import run_tasks
from lumos.storage import (
    DEFAULT_ACCESS,
    FileSelection,
    KeyRange,
    StorageAccess,
    TableKind,
    TableRoot,
)
from lumos.storage.table_roots import outermost_roots

# Several works for every core, so that one slow folder holds up little.
_WORKS_PER_CORE: Final = 4
_MOST_WORKS: Final = 256
# Sorts after whatever may follow in a path.
_LAST: Final = "\U0010ffff"


def discover(
    spark: SparkSession,
    selection: FileSelection,
    *,
    state: str,
    before: str | None,
    after: str,
    state_access: StorageAccess = DEFAULT_ACCESS,
    column_stats: bool = False,
    left_out: str = "",
    inherited: GroupingState | None = None,
    recall: Recall | None = None,
    watch: Watch = unwatched,
) -> Discovery:
    """Scans a root, opening only files that the manifest before does not know as they are.

    Manifests lie in the folder `state`; `before` and `after` are their names. Nothing there, or in
    `left_out` above it, is data. Tasks list and read, and bring home sums alone: what the driver
    holds grows with the number of datasets, not of files. `inherited` is what the scan of a folder
    above remembers of its grouping: names and decisions that hold here, too. `recall` gives what
    scans of any root remember of datasets; without it, the manifest does.
    """
    manifests = Manifests(state, state_access)
    known = manifests.read(before)
    known.grouping = manifests.grouping_of(known)
    if inherited is not None:
        known.grouping = known.grouping.inheriting(inherited)
    splits = tuple(known.grouping.splits)
    scan = _Scan(
        spark,
        Job(
            selection,
            left_out or state,
            manifests.parts,
            state_access,
            column_stats,
            (),
            splits,
        ),
        known,
        recall,
    )
    works, met = plan(selection, parts=_parts(spark), known=scan.index)
    with manifests.watched(watch, works=len(works)):
        found, manifest = scan.run(works, met)
    manifests.write(after, manifest)
    is_table = selection.root.rstrip("/") in manifest.tables
    around = None if is_table else table_around(selection)
    if around is None:
        return found
    remark = Problem(
        path=selection.root,
        code="inside_table",
        reason=f"It lies in the table {around}: what is found here are parts of that table, no "
        f"datasets. Scan {around} or what lies above it instead.",
        remark=True,
    )
    return msgspec.structs.replace(found, problems=(remark, *found.problems))


class _Result(NamedTuple):
    """A work and what came of it, perhaps by the portions that it left over."""

    work: Work
    done: Done
    portions: tuple["_Result", ...] = ()

    @property
    def all(self) -> tuple["_Result", ...]:
        return (self, *self.portions)

    @property
    def parts(self) -> list[Part]:
        return [each.done.part for each in self.all if each.done.part is not None]


class _Scan:
    """One scan: loose files, then tables, then again what turned out to be theirs."""

    def __init__(
        self, spark: SparkSession, job: Job, known: Manifest, recall: Recall | None
    ) -> None:
        self._spark = spark
        self._job = job
        self._known = known
        self._recall = recall
        self.index = PartIndex(known.parts)

    def run(self, works: list[Work], met: list[TableRoot]) -> tuple[Discovery, Manifest]:
        """What is there now, and what the next scan must know."""
        counts = self._job.selection.tables
        assumed = frozenset(outermost_roots(met)) | (self._known.claims if counts else frozenset())
        results = self._results(works, assumed, self.index)
        markers = [*met, *(marker for each in results for marker in each.done.markers)]
        strays = {folder for each in results for one in each.all for folder in one.done.strays}
        tables, remarks = self._tables(outermost_roots(markers), strays)
        actual = frozenset(outermost_roots(markers)).union(
            *((table.root, *table.kept.claims) for table in tables)
        )
        results = self._repeated(results, assumed, actual)
        done = [each.done for result in results for each in result.all]
        found, manifest = _collected(
            done,
            tables,
            self._known,
            remarks=remarks,
            job=self._job,
            claims=actual,
            recall=self._recall,
        )
        return self._with_overlooked(found, manifest), manifest

    def _with_overlooked(self, found: Discovery, manifest: Manifest) -> Discovery:
        """The discovery, with what of the last scan is there though no listing shows it."""
        known = self._known
        gone = known.memories.keys() - _accounted(found.datasets)
        if not gone or not found.complete:
            return found
        absence = Absence(self._job.selection, manifest.parts, self._job.state_access)
        overlooked = absence.overlooked(known.grouping, gone, manifest.claims)
        return msgspec.structs.replace(found, problems=(*found.problems, *overlooked))

    def _results(
        self, works: list[Work], claims: Collection[str], index: PartIndex
    ) -> list[_Result]:
        done = self._run(works, claims)
        left_over = [plan_left_over(each.left_over, index) for each in done]
        portions = iter(self._run([work for some in left_over for work in some], claims))
        return [
            _Result(work, each, tuple(_Result(below, next(portions)) for below in some))
            for work, each, some in zip(works, done, left_over, strict=True)
        ]

    def _run(self, works: list[Work], claims: Collection[str]) -> list[Done]:
        job = self._job._replace(claims=tuple(sorted(claims)))
        rows = list(map(work_row, works))
        done = run_tasks(self._spark, WORKS, rows, worker(job), RESULTS_IN_SPARK)
        return [decode_done(each) for each in done]

    def _repeated(
        self, results: list[_Result], assumed: frozenset[str], actual: frozenset[str]
    ) -> list[_Result]:
        """The results, those anew that took files of a table for loose ones, or the reverse.

        What was opened already is known by the part that was just written.
        """
        outdated = [each for each in results if _is_outdated(each, assumed, actual)]
        if not outdated:
            return results
        works = [
            msgspec.structs.replace(each.work, known=[part.path for part in each.parts])
            for each in outdated
        ]
        index = PartIndex(part for each in outdated for part in each.parts)
        again = self._results(works, actual, index)
        by_work = {
            id(first): _both(first, second) for first, second in zip(outdated, again, strict=True)
        }
        return [by_work.get(id(each), each) for each in results]

    def _tables(
        self, roots: Mapping[str, tuple[TableKind, ...]], strays: Collection[str]
    ) -> tuple[list[TableDone], list[Problem]]:
        """What every table tells, and what there is to say of metadata that is of none."""
        selection = self._job.selection
        if not selection.tables:
            return [], []
        works = table_works(roots, strays, self._known.tables, selection)
        job = TableJob(
            selection,
            self._job.state,
            self._job.parts_folder,
            self._job.state_access,
        )
        done = run_tasks(
            self._spark,
            TABLE_WORKS,
            list(map(table_row, works)),
            table_worker(job),
            TABLE_RESULTS_IN_SPARK,
            tasks=_parts(self._spark),
        )
        return chosen_tables([decode_table(each) for each in done])


def _accounted(datasets: Iterable[FoundDataset]) -> set[str]:
    """The names of datasets, and those that they had before."""
    return {
        path
        for each in datasets
        for path in filter(None, (each.path, each.renamed_from, each.split_from, *each.merged_from))
    }


def _both(first: _Result, again: _Result) -> _Result:
    """What came of a work that was done twice: of what the first one opened, it knew."""
    bodies = dict(ChainMap(again.done.bodies, *(each.done.bodies for each in first.all)))
    read = min(
        sum(each.done.read for each in first.all),
        sum(each.done.summary.listed for each in again.all),
    )
    done = msgspec.structs.replace(again.done, bodies=bodies, read=again.done.read + read)
    return again._replace(done=done)


def _is_outdated(result: _Result, assumed: frozenset[str], actual: frozenset[str]) -> bool:
    """Whether files were taken in that are a table's, or left out though they are not."""
    for work in result.all:
        if not actual.issuperset(work.done.left_out):
            return True
        part = work.done.part
        told = {marker.folder for marker in (*result.done.markers, *work.done.markers)}
        if part is not None and any(
            part.first <= f"{claim}/{_LAST}"
            and claim <= part.last
            and any(may_meet(place, claim) for place in part.places)
            for claim in actual - assumed - told
        ):
            return True
    return False


def _parts(spark: SparkSession) -> int:
    master = spark.conf.get("spark.master", "") or ""
    if is_local(master):
        return min(_MOST_WORKS, _WORKS_PER_CORE * max(2, os.cpu_count() or 2))
    # Of a cluster nobody knows the size beforehand; its own parallelism is the best guess.
    return min(_MOST_WORKS, int(spark.conf.get("spark.sql.shuffle.partitions") or 64))


def _collected(
    done: list[Done],
    tables: list[TableDone],
    known: Manifest,
    *,
    remarks: list[Problem],
    job: Job,
    claims: frozenset[str],
    recall: Recall | None,
) -> tuple[Discovery, Manifest]:
    fresh = [each.bodies for each in done]
    schemas = Schemas(dict(ChainMap(known.schemas, *fresh)))
    places = merged_places(place for each in done for place in each.summary.places)
    # Files that are no dataset's today may be tomorrow's, unopened.
    present = {place.full for place in places}
    roots = {each.root for each in tables}
    grouping = group(
        places,
        schemas,
        hints=job.hints,
        before=_outside(known.grouping, claims),
        tables=roots,
        joins_similar=job.selection.join_similar,
        was_there=_LastListing(known.parts, job.state_access).holds,
        recorded_formats=partial(_recorded_formats, recall),
    )
    merged = _merged(grouping.groups, schemas, known, recall)
    problems = ProblemList(MOST_OF_ALL)
    for each in done:
        problems.join(each.unlisted)
    of_tables = (problem for each in tables for problem in each.problems)
    for problem in (*remarks, *_taken_names(grouping), *of_tables):
        problems.add(problem)
    for each in done:
        problems.join(each.summary.all_problems)
    memories = {path: each.memory for path, each in merged.items()}
    remembered = {memory.full for memory in memories.values()}
    manifest = Manifest(
        parts=[each.part for each in done if each.part is not None],
        schemas=schemas.bodies(present | remembered),
        memories=memories,
        grouping=grouping.state,
        tables={each.root: each.kept for each in tables},
    )
    loose = [each.found for each in merged.values()]
    discovery = Discovery(
        datasets=(*loose, *_found(tables, known, loose, job)),
        suggestions=suggest_joins(
            grouping.groups, schemas, grouping=grouping, root=job.selection.root, tables=roots
        ),
        problems=tuple(problems.report(job.selection.root)),
        files_listed=sum(each.summary.listed for each in done),
        files_read=sum(each.read for each in done),
        tables=len(tables),
        tables_read=sum(each.read for each in tables),
        files_failed=sum(each.summary.failed for each in done),
        files_skipped=sum(each.summary.not_data for each in done)
        + sum(place.file_count for place in grouping.sidecars),
        complete=not any(each.unlisted.total for each in done),
    )
    return discovery, manifest


def _recorded_formats(recall: Recall | None, paths: Collection[str]) -> dict[str, str | None]:
    if recall is None:
        return {}
    return {path: each.format for path, each in recall(paths).items()}


def _merged(
    groups: Collection[Group], schemas: Schemas, known: Manifest, recall: Recall | None
) -> dict[str, Merged]:
    """The datasets of groups by path, each with the schema that follows from its memory."""
    if recall is None:
        return {
            each.dataset: merge(
                each, schemas, known.memories.get(each.renamed_from or each.dataset)
            )
            for each in groups
        }
    paths = {path for each in groups for path in (each.dataset, each.renamed_from) if path}
    recalled = recall(paths)
    for kept in recalled.values():
        schemas.add_json(kept.memory.full, kept.schema)
    merged: dict[str, Merged] = {}
    for each in groups:
        # A scan that was ended before it was through may have renamed the dataset already.
        recollection = recalled.get(each.dataset) or recalled.get(each.renamed_from or "")
        chosen = merge(each, schemas, _memory(each, recollection, known))
        memory = SchemaMemory(
            body=msgspec.json.encode(chosen.memory),
            schema=schemas[chosen.memory.full],
            recalled=None if recollection is None else recollection.body,
        )
        found = msgspec.structs.replace(chosen.found, memory=memory)
        merged[each.dataset] = Merged(found, chosen.memory)
    return merged


def _memory(members: Group, recalled: RecalledMemory | None, known: Manifest) -> Memory | None:
    """What is remembered of a dataset; of one that is not on record, nothing."""
    if recalled is None:
        return None
    if recalled.body is not None:
        return recalled.memory
    # Earlier versions left memories in manifests. That of this root counts unless a scan of
    # another root has recorded another schema since.
    earlier = known.memories.get(members.renamed_from or members.dataset)
    if earlier is not None and earlier.current == recalled.memory.current:
        return earlier
    formats = {place.format for place in members.places}
    return recalled.memory if recalled.format in formats else None


def _taken_names(grouping: Grouping) -> Iterator[Problem]:
    """Remarks on hints that give the path of another dataset."""
    for each in grouping.groups:
        if each.wanted is not None:
            reason = (
                f"A hint gives this dataset the path {each.wanted}, which another dataset has. "
                f"It is recorded as {each.dataset}. Give the hint another name."
            )
            yield Problem(path=each.location, code="name_taken", reason=reason, remark=True)


class _LastListing:
    """The files that the last scan met."""

    def __init__(self, parts: Iterable[Part], access: StorageAccess) -> None:
        self._index = PartIndex(parts)
        self._access = access
        self._paths: dict[str, frozenset[str]] = {}

    def holds(self, path: str) -> bool:
        """Whether the last scan met a file."""
        folder = path.rpartition("/")[0]
        for part in self._index.of([KeyRange(folder)], first=path, last=path):
            if part.path not in self._paths:
                try:
                    identities, _ = read_identities(part.path, access=self._access)
                except LOST:
                    identities = {}
                self._paths[part.path] = frozenset(identities)
            if path in self._paths[part.path]:
                return True
        return False


def _outside(grouping: GroupingState, claims: frozenset[str]) -> GroupingState:
    """What is remembered of files that belong to no table now."""
    if not claims:
        return grouping
    owned = Claims(claims)
    places = [each for each in grouping.places if owned.of(f"{each.base}/") is None]
    return msgspec.structs.replace(grouping, places=places)


def _found(
    tables: list[TableDone], known: Manifest, loose: Iterable[FoundDataset], job: Job
) -> Iterator[FoundDataset]:
    """The tables as datasets, which go on with those that their files were taken for before."""
    former = former_of(
        tables,
        known,
        present=_accounted(loose),
        selection=job.selection,
        state_access=job.state_access,
    )
    for each in tables:
        if each.facts is None:
            continue
        found = found_of(each.root, from_json(each.facts, TableFacts))
        earlier = former.get(each.root, Former())
        # A dataset of files at the root itself has the table's name already. Of one that lies
        # elsewhere it only took in the files: that place may have others tomorrow.
        is_named = each.root in earlier.own or each.root in known.tables
        first = None if is_named else next(iter(earlier.own), None)
        taken_in = (*earlier.own, *earlier.elsewhere)
        others = tuple(path for path in taken_in if path not in (first, each.root))
        yield msgspec.structs.replace(found, renamed_from=first, merged_from=others)
