"""Validates a snapshot, and builds the report of `lumos validate`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from lumos.config import Settings
from lumos.snapshots.catalogs import SnapshotNotFound
from lumos.snapshots.format.checks import SnapshotProblem
from lumos.snapshots.format.document import SnapshotCounts, SnapshotHeader
from lumos.snapshots.format.validation import validate
from lumos.snapshots.reports import ValidateReport

_MAX_PROBLEMS: Final = 10_000


def validate_on_spark(settings: Settings, folder: Path) -> ValidateReport:
    """Validate a Parquet snapshot of any size on Spark."""
    from lumos.snapshots.on_spark import validate_folder
    from lumos.spark.session import spark_session

    _check_exists(folder)
    spark = settings.spark
    with spark_session(master=spark.master, settings=spark.properties(), short=False) as session:
        validation = validate_folder(session, folder, max_problems=_MAX_PROBLEMS)
    errors = sum(problem.severity == "error" for problem in validation.problems)
    return _report(
        folder,
        validation.header,
        validation.counts,
        validation.problems,
        errors=errors,
        warnings=len(validation.problems) - errors,
        left_out=validation.left_out,
    )


def validate_snapshot(file: Path) -> ValidateReport:
    """Validate a snapshot; reports all of its problems, not only the first one."""
    _check_exists(file)
    validation = validate(file)
    problems: list[SnapshotProblem] = []
    counts = {"error": 0, "warning": 0}
    for problem in validation:
        counts[problem.severity] += 1
        if len(problems) < _MAX_PROBLEMS:
            problems.append(problem)
    return _report(
        file,
        validation.header,
        validation.counts,
        problems,
        errors=counts["error"],
        warnings=counts["warning"],
        left_out=sum(counts.values()) - len(problems),
    )


def _check_exists(file: Path) -> None:
    if not file.exists():
        raise SnapshotNotFound(file)


def _report(
    file: Path,
    header: SnapshotHeader | None,
    counts: SnapshotCounts,
    problems: Iterable[SnapshotProblem],
    *,
    errors: int,
    warnings: int,
    left_out: int,
) -> ValidateReport:
    return ValidateReport(
        file=str(file),
        valid=not errors,
        platform=header.platform if header else None,
        scope=header.scope if header else None,
        exported_at=header.exported_at if header else None,
        hash=header.hashes.overall if header and header.hashes else None,
        counts=counts,
        errors=errors,
        warnings=warnings,
        problems=tuple(problems),
        left_out=left_out,
    )
