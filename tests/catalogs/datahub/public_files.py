"""Migrates DataHub's metadata files and compares what was written with what was read.

The folder in `LUMOS_DATAHUB_FILES` is a copy of such files, for example `metadata-ingestion/examples`
and `metadata-ingestion/tests/integration` of the repository datahub-project/datahub.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from lumos import Lumos
from lumos.errors import LumosError

JUDGE: Final = Path(__file__).with_name("datahub_judge.py")
_KEYS: Final = ("entityType", "entityUrn", "proposedSnapshot", "bucket")
_LAYOUTS: Final = ("missing", "changed", "added")


class FileResult(msgspec.Struct, frozen=True):
    """The result of one file: why it could not be migrated, or what became of its aspects."""

    file: Path
    failure: str = ""
    aspects: int = 0
    missing: dict[str, int] = {}
    changed: dict[str, int] = {}
    added: dict[str, int] = {}
    examples: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        return not (self.failure or self.missing or self.changed or self.added)


def metadata_files(folder: Path) -> list[Path]:
    """The files below a folder that hold nothing but metadata changes."""
    return [path for path in sorted(folder.rglob("*.json")) if _is_metadata(path)]


def sweep(files: Sequence[Path], folder: Path) -> Iterator[FileResult]:
    """Migrates each file into a new one below `folder` and compares both by DataHub's classes."""
    lumos = Lumos(environment={}, overrides={"storage.path": str(folder / "lumos.db")})
    written: list[tuple[Path, Path]] = []
    for number, file in enumerate(files):
        target = folder / f"{number}.json"
        try:
            report = lumos.migration.migrate(f"datahub-file:{file}", f"datahub-file:{target}")
        except LumosError as problem:
            yield FileResult(file, failure=str(problem))
            continue
        if not report.is_whole:
            yield FileResult(file, failure="the report says that the migration is not whole")
            continue
        written.append((file, target))
    yield from compare(written)


def invalid_exports(files: Sequence[Path], folder: Path) -> Iterator[str]:
    """Exports each file to a snapshot below `folder`, and yields those that are not valid."""
    lumos = Lumos(environment={}, overrides={"storage.path": str(folder / "lumos.db")})
    for number, file in enumerate(files):
        snapshot = folder / f"{number}.jsonl"
        try:
            lumos.snapshot.export(snapshot, platform=f"datahub-file:{file}")
            report = lumos.snapshot.validate(snapshot)
        except LumosError as problem:
            yield f"{file}: {problem}"
            continue
        if not report.valid:
            errors = [each for each in report.problems if each.severity == "error"]
            yield f"{file}: {errors[0].path}: {errors[0].text} ({report.errors} errors)"
        snapshot.unlink()


def compare(pairs: Sequence[tuple[Path, Path]]) -> Iterator[FileResult]:
    """Compares pairs of files aspect by aspect, in one process with DataHub's package."""
    given = json.dumps([[str(here), str(there)] for here, there in pairs])
    done = subprocess.run(
        [sys.executable, str(JUDGE), "compare"], input=given, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for (file, _), found in zip(pairs, json.loads(done.stdout), strict=True):
        yield FileResult(file, **{**found, "examples": tuple(found["examples"])})


def summary(results: Sequence[FileResult]) -> str:
    """The score, the aspects by kind, and every file that is not whole."""
    whole = sum(result.is_whole for result in results)
    lines = [f"{whole} of {len(results)} files are whole."]
    for layout in _LAYOUTS:
        kinds: Counter[str] = Counter()
        for result in results:
            kinds.update(getattr(result, layout))
        lines += [f"  {layout:8} {count:6} {kind}" for kind, count in kinds.most_common()]
    for result in results:
        if not result.is_whole:
            counts = {name: found for name in _LAYOUTS if (found := getattr(result, name))}
            lines.append(f"{result.file}: {result.failure or counts}")
            lines += [f"    {example}" for example in result.examples]
    return "\n".join(lines)


def _is_metadata(path: Path) -> bool:
    try:
        content: Any = json.loads(path.read_bytes())
    except ValueError:
        return False
    changes = content if isinstance(content, list) else [content]
    return bool(changes) and all(
        isinstance(change, dict) and any(key in change for key in _KEYS) for change in changes
    )
