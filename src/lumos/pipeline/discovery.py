"""The way from a root to its datasets."""

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lumos.model.codec import from_json
from lumos.model.discovery import Discovery, FoundDataset, Problem
from lumos.model.schema import Schema
from lumos.pipeline.columns import SETTLED
from lumos.pipeline.grouping import (
    group_into_datasets,
    partition_keys,
    summarise_datasets,
    summarise_places,
)
from lumos.pipeline.listing import list_files
from lumos.pipeline.manifest import Manifest, out_of_sight, with_known
from lumos.pipeline.merging import PartitionKey, ShapeInUse, merge
from lumos.pipeline.reading import read_files
from lumos.storage import USUAL, Access, Selection

_Rows = list[dict[str, Any]]


def discover(
    spark: SparkSession,
    selection: Selection,
    *,
    scan: int,
    manifest_before: str | None,
    manifest_after: str,
    state_access: Access = USUAL,
) -> Discovery:
    """Scans a root, opening only files that the manifest before does not know as they are."""
    known_before = Manifest(manifest_before, state_access)
    before = known_before if known_before.is_there() else Manifest(None)
    after = Manifest(manifest_after, state_access)
    # Several results are drawn from the listing and the files; each must be made only once.
    listed = list_files(spark, selection, parts=_parts(spark)).persist()
    known = before.files(spark)
    read = read_files(
        with_known(listed, known), root=selection.root, scan=scan, access=selection.access
    )
    files = (read if known is None else read.unionByName(out_of_sight(listed, known))).persist()
    try:
        places = summarise_places(files, scan=scan)
        summary = summarise_datasets(group_into_datasets(places, before.settled(spark)))
        found = _collected(files, _rows(summary), before=before, after=after, scan=scan)
        after.write_files(files)
    finally:
        files.unpersist()
        listed.unpersist()
    return found


def _parts(spark: SparkSession) -> int:
    # Several tasks for every core, so that one slow folder holds up little.
    return max(8, 4 * int(spark.conf.get("spark.sql.shuffle.partitions") or 8))


def _collected(
    files: DataFrame, summary: _Rows, *, before: Manifest, after: Manifest, scan: int
) -> Discovery:
    total = {name: sum(row[name] for row in summary) for name in _COUNTED}
    shapes = [row for row in summary if row["dataset"] is not None]
    schemas = _schemas(files, shapes, before=before, after=after)
    since = _since(shapes, before=before, after=after, scan=scan)
    after.write_settled(_settled(shapes))
    keys = _partition_keys(files, shapes)
    partitioned = {row["dataset"] for row in shapes if row["partition_depth"]}
    by_dataset: dict[str, list[ShapeInUse]] = {}
    for row in shapes:
        by_dataset.setdefault(row["dataset"], []).append(
            ShapeInUse(
                schema=schemas[row["full"]],
                since=since[row["dataset"], row["shape"]],
                **{name: row[name] for name in _CARRIED},
            )
        )
    return Discovery(
        datasets=tuple(
            _found(path, by_dataset[path], keys if path in partitioned else {})
            for path in sorted(by_dataset)
        ),
        problems=_problems(files) if total["failed"] or total["unlisted"] else (),
        files_listed=total["file_count"],
        files_read=total["read"],
        files_failed=total["failed"],
        complete=total["unlisted"] == 0,
    )


_COUNTED = ("file_count", "read", "failed", "unlisted")
_CARRIED = tuple(name for name in ShapeInUse.__struct_fields__ if name not in ("schema", "since"))


def _found(
    path: str, shapes: list[ShapeInUse], keys: dict[tuple[str, str], list[PartitionKey]]
) -> FoundDataset:
    return merge(path, shapes, keys.get((shapes[0].base, shapes[0].format), []))


def _schemas(
    files: DataFrame, shapes: _Rows, *, before: Manifest, after: Manifest
) -> dict[str, Schema]:
    fresh = files.where("body is not null").select("full", "body")
    bodies = {**before.schemas(), **{row["full"]: row["body"] for row in _rows(fresh)}}
    used = {row["full"]: bodies[row["full"]] for row in shapes}
    after.write_schemas(used)
    return {full: from_json(body, Schema) for full, body in used.items()}


def _since(
    shapes: _Rows, *, before: Manifest, after: Manifest, scan: int
) -> dict[tuple[str, str], int]:
    met = before.shapes()
    keys = {(row["dataset"], row["shape"]) for row in shapes}
    since = {key: met.get(key, scan) for key in keys}
    after.write_shapes(since)
    return since


def _settled(shapes: _Rows) -> _Rows:
    places = {tuple(place.values()) for row in shapes for place in row["places"]}
    return [dict(zip(SETTLED.names, place, strict=True)) for place in sorted(places)]


def _partition_keys(files: DataFrame, shapes: _Rows) -> dict[tuple[str, str], list[PartitionKey]]:
    keys: dict[tuple[str, str], list[PartitionKey]] = {}
    if any(row["partition_depth"] for row in shapes):
        for row in _rows(partition_keys(files)):
            keys.setdefault((row.pop("base"), row.pop("format")), []).append(PartitionKey(**row))
    return keys


def _problems(files: DataFrame) -> tuple[Problem, ...]:
    rows = _rows(files.where("code is not null").select("path", "code", "reason"))
    return tuple(sorted((Problem(**row) for row in rows), key=lambda problem: problem.path))


def _rows(frame: DataFrame) -> _Rows:
    rows: _Rows = frame.toArrow().to_pylist()
    return rows
