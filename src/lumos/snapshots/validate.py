"""Whether a snapshot is whole and sound, summed up."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from lumos.config import Settings
from lumos.snapshots.catalogs import SnapshotNotFound
from lumos.snapshots.format.checks import SnapshotProblem
from lumos.snapshots.format.document import SnapshotCounts, SnapshotHeader
from lumos.snapshots.format.validation import validate
from lumos.snapshots.reports import ValidateReport

_MOST: Final = 10_000


def validate_on_spark(settings: Settings, folder: Path) -> ValidateReport:
    """Checks a snapshot in Parquet, however large it is."""
    from lumos.snapshots.on_spark import validate_folder
    from lumos.spark.session import spark_session

    _check_there(folder)
    spark = settings.spark
    with spark_session(master=spark.master, settings=spark.properties(), short=False) as session:
        found = validate_folder(session, folder, shown=_MOST)
    errors = sum(problem.severity == "error" for problem in found.problems)
    return _report(
        folder,
        found.header,
        found.counts,
        found.problems,
        errors=errors,
        warnings=len(found.problems) - errors,
        left_out=found.left_out,
    )


def validate_snapshot(file: Path) -> ValidateReport:
    """Checks a snapshot; the problems of the whole file are told, not only the first."""
    _check_there(file)
    checked = validate(file)
    kept: list[SnapshotProblem] = []
    found = {"error": 0, "warning": 0}
    for problem in checked:
        found[problem.severity] += 1
        if len(kept) < _MOST:
            kept.append(problem)
    return _report(
        file,
        checked.header,
        checked.counts,
        kept,
        errors=found["error"],
        warnings=found["warning"],
        left_out=sum(found.values()) - len(kept),
    )


def _check_there(file: Path) -> None:
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
