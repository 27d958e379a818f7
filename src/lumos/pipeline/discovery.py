"""The way from a root to its datasets."""

import os
from collections import ChainMap
from typing import Final

from pyspark.sql import SparkSession

from lumos.model.discovery import Discovery
from lumos.pipeline.grouping import group
from lumos.pipeline.listing import plan, plan_left_over
from lumos.pipeline.manifest import Manifest, Manifests, Watch, unwatched
from lumos.pipeline.merging import Merged, Schemas, merge
from lumos.pipeline.parts import PartIndex
from lumos.pipeline.session import is_local
from lumos.pipeline.summaries import merged_places
from lumos.pipeline.work import Done, Job, Work, decode_done, worker
from lumos.storage import USUAL, Access, Selection

# Several works for every core, so that one slow folder holds up little.
_WORKS_PER_CORE: Final = 4
_MOST_WORKS: Final = 256


def discover(
    spark: SparkSession,
    selection: Selection,
    *,
    state: str,
    before: str | None,
    after: str,
    state_access: Access = USUAL,
    column_stats: bool = False,
    left_out: str = "",
    watch: Watch = unwatched,
) -> Discovery:
    """Scans a root, opening only files that the manifest before does not know as they are.

    Manifests lie in the folder `state`; `before` and `after` are their names. Nothing there, or in
    `left_out` above it, is data. Tasks list and read, and bring home sums alone: what the driver
    holds grows with the number of datasets, not of files.
    """
    manifests = Manifests(state, state_access)
    known = manifests.read(before)
    index = PartIndex(known.parts)
    job = Job(selection, left_out or state, manifests.parts, state_access, column_stats, ())
    works = plan(selection, parts=_parts(spark), known=index)
    with manifests.watched(watch, works=len(works)):
        done = _run(spark, job, works)
        left_over = [portion for each in done for portion in each.left_over]
        if left_over:
            done += _run(spark, job, plan_left_over(left_over, index))
    found, manifest = _collected(done, known, root=selection.root)
    manifests.write(after, manifest)
    return found


def _parts(spark: SparkSession) -> int:
    master = spark.conf.get("spark.master", "") or ""
    if is_local(master):
        return min(_MOST_WORKS, _WORKS_PER_CORE * max(2, os.cpu_count() or 2))
    # Of a cluster nobody knows the size beforehand; its own parallelism is the best guess.
    return min(_MOST_WORKS, int(spark.conf.get("spark.sql.shuffle.partitions") or 64))


def _run(spark: SparkSession, job: Job, works: list[Work]) -> list[Done]:
    if not works:
        return []
    numbers = spark.range(0, len(works), 1, len(works))
    results = numbers.mapInArrow(worker(job._replace(works=tuple(works))), "result binary")
    return [decode_done(each) for each in results.toArrow().column("result").to_pylist()]


def _collected(done: list[Done], known: Manifest, *, root: str) -> tuple[Discovery, Manifest]:
    fresh = [each.bodies for each in done]
    schemas = Schemas(dict(ChainMap(known.schemas, *fresh)))
    places = merged_places(place for each in done for place in each.summary.places)
    # Files that are no dataset's today may be tomorrow's, unopened.
    present = {place.full for place in places}
    grouping = group(places, schemas, root=root, before=known.settled)
    merged: dict[str, Merged] = {
        each.dataset: merge(each, schemas, known.memories.get(each.renamed_from or each.dataset))
        for each in grouping.groups
    }
    problems = [problem for each in done for problem in (*each.unlisted, *each.summary.problems)]
    memories = {path: each.memory for path, each in merged.items()}
    remembered = {memory.full for memory in memories.values()}
    manifest = Manifest(
        parts=[each.part for each in done if each.part is not None],
        schemas=schemas.bodies(present | remembered),
        memories=memories,
        settled=grouping.settled,
    )
    discovery = Discovery(
        datasets=tuple(each.found for each in merged.values()),
        problems=tuple(sorted(problems, key=lambda problem: problem.path)),
        files_listed=sum(each.summary.listed for each in done),
        files_read=sum(each.read for each in done),
        files_failed=sum(each.summary.failed for each in done),
        complete=not any(each.unlisted for each in done),
    )
    return discovery, manifest
