"""Validates and compares Parquet snapshots that are too large for one process, on Spark."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from lumos.errors import MisuseError
from lumos.model.schema import Schema
from lumos.schemas.comparison import compare as schema_changes
from lumos.schemas.compatibility import classify
from lumos.schemas.findings import ChangeRow, change_rows
from lumos.snapshots.format.checks import SnapshotProblem
from lumos.snapshots.format.comparison import difference_rows, is_part
from lumos.snapshots.format.differences import COMPARED
from lumos.snapshots.format.document import (
    DATASETS,
    FORMAT_VERSION,
    KINDS,
    SnapshotCounts,
    SnapshotHeader,
)
from lumos.snapshots.format.pieces import RESOLVES, examine, merge_pieces, unresolved_problem
from lumos.snapshots.format.reader import OpenSnapshot, open_snapshot
from lumos.snapshots.format.versions import UpgradedContainer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lumos.snapshots.comparison_job import DatasetDiffTotals
    from lumos.snapshots.format.encodings.parquet_folder import ParquetFolder

MAX_PROBLEMS: Final = 1000


class SparkValidation(NamedTuple):
    """The header, counts and problems of a snapshot; `left_out` more problems are not listed."""

    header: SnapshotHeader
    counts: SnapshotCounts
    problems: tuple[SnapshotProblem, ...]
    left_out: int


def validate_folder(
    session: "SparkSession", folder: Path, *, max_problems: int = MAX_PROBLEMS
) -> SparkValidation:
    """Run the checks of `validate` on executors, for a Parquet folder."""
    from lumos.snapshots.validation_job import KindFiles, examine_snapshot

    with open_snapshot(folder) as snapshot:
        files = _files(snapshot)
        header = snapshot.container.header
    kinds = [
        KindFiles(
            name=kind.plural,
            files=_paths(folder, files[kind.plural]),
            key=kind.key,
            resolves=RESOLVES.get(kind.plural, ()),
        )
        for kind in KINDS
    ]
    findings = examine_snapshot(
        session, kinds, examine=partial(examine, header), limit=max_problems
    )
    merged = merge_pieces(header, findings.sums, files=files, codes=findings.codes)
    problems = [msgspec.convert(row, SnapshotProblem) for row in findings.problems]
    problems.extend(merged.problems)
    problems.extend(unresolved_problem(header, **row) for row in findings.dangling)
    problem_count = findings.problem_count + len(merged.problems) + findings.dangling_count
    return SparkValidation(
        snapshot.header, merged.counts, tuple(problems), problem_count - len(problems)
    )


def compare_folders(
    session: "SparkSession",
    before: Path,
    after: Path,
    *,
    to: Path,
    aspects: Iterable[str] = COMPARED,
) -> "DatasetDiffTotals":
    """Write the differences between the datasets of two Parquet folders to a new folder.

    Datasets with the same content hash are treated as equal; only validation verifies the hashes.
    """
    from lumos.snapshots.comparison_job import compare_datasets

    with open_snapshot(before) as old, open_snapshot(after) as new:
        headers = (old.header, new.header)
        for side in (old, new):
            if isinstance(side.container, UpgradedContainer):
                raise MisuseError(
                    f"{side.file} has format {side.header.format_version}, and only format "
                    f"{FORMAT_VERSION} can be compared on Spark. Export it again, or convert it "
                    "to .jsonl, which is compared in one process."
                )
        if any(is_part(one, of=other) for one, other in (headers, headers[::-1])):
            raise MisuseError(
                "Partial exports cannot be compared on Spark. Export all datasets, or a part as "
                ".jsonl, which is compared in one process."
            )
        omitted_aspects = {*old.header.omitted, *new.header.omitted}
        aspects_to_compare = tuple(aspect for aspect in aspects if aspect not in omitted_aspects)
        for side in (old, new):
            side.check_header()
            side.check_count(DATASETS, _container(side).count(DATASETS))
        return compare_datasets(
            session,
            _paths(before, _files(old)[DATASETS.plural]),
            _paths(after, _files(new)[DATASETS.plural]),
            compare=partial(
                difference_rows, compare_schemas=compare_schemas, aspects=aspects_to_compare
            ),
            has_deleted=any(header.counts and header.counts.deleted for header in headers),
            to=str(to.absolute()),
        )


def compare_schemas(
    urn: str, before: Schema, after: Schema, format: str | None
) -> tuple[ChangeRow, ...]:
    """The changes between two schemas of a dataset."""
    return change_rows(urn, classify(schema_changes(before, after), format=format))


def _files(snapshot: OpenSnapshot) -> dict[str, list[str]]:
    return _container(snapshot).files


def _container(snapshot: OpenSnapshot) -> "ParquetFolder":
    from lumos.snapshots.format.encodings.parquet_folder import ParquetFolder

    container = snapshot.container
    if isinstance(container, UpgradedContainer):
        container = container.inner
    if not isinstance(container, ParquetFolder):
        raise MisuseError(
            f"{snapshot.file} is not a folder of Parquet files, which Spark requires."
        )
    return container


def _paths(folder: Path, names: Iterable[str]) -> list[str]:
    return [str(folder.absolute() / name) for name in names]
