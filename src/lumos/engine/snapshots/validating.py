"""Whether a snapshot is whole and sound, summed up."""

from pathlib import Path
from typing import Final

from lumos.engine.snapshots.reports import ValidateReport
from lumos.errors import MisuseError
from lumos.snapshot import Problem, validate

_MOST: Final = 10_000


def validated(file: Path) -> ValidateReport:
    """Checks a snapshot; the problems of the whole file are told, not only the first."""
    if not file.exists():
        raise MisuseError(f"There is no snapshot {file}.")
    checked = validate(file)
    kept: list[Problem] = []
    found = {"error": 0, "warning": 0}
    for problem in checked:
        found[problem.severity] += 1
        if len(kept) < _MOST:
            kept.append(problem)
    header = checked.header
    return ValidateReport(
        file=str(file),
        valid=not found["error"],
        platform=header.platform if header else None,
        scope=header.scope if header else None,
        exported_at=header.exported_at if header else None,
        hash=header.hashes.overall if header and header.hashes else None,
        counts=checked.counts,
        errors=found["error"],
        warnings=found["warning"],
        problems=tuple(kept),
        left_out=sum(found.values()) - len(kept),
    )
