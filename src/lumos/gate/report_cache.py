"""Caches the reports of runs in the git directory, by a hash of everything that they depend on.

For two given commits, a report only depends on the configuration, the versions of Lumos and of the
libraries that read files, and the day, since waivers expire.
"""

import hashlib
import logging
import os
from contextlib import suppress
from datetime import UTC, date, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from lumos.config import Settings
from lumos.gate.reports import GateFinding, GateReport
from lumos.model.json_codec import decode_json, to_json
from lumos.schemas.git_revisions import GitRepository
from lumos.version import __version__

_MAX_REPORTS: Final = 20
_FOLDER: Final = "lumos/gate"
_READER_PACKAGES: Final = ("sqlglot", "proto-schema-parser", "jinja2")
_log = logging.getLogger(__name__)


class ChangeRequest(NamedTuple):
    """The change to check: two revisions as the user wrote them, and their commits."""

    base: str
    head: str
    old: str
    new: str
    dialect: str | None
    settings: Settings


def cache_folder(repository: GitRepository) -> Path:
    """The folder of all caches of the gate, which worktrees share."""
    common = repository.git("rev-parse", "--path-format=absolute", "--git-common-dir").strip()
    return Path(common) / _FOLDER


def reader_versions() -> str:
    """The versions of Lumos and of the libraries that results depend on."""
    return " ".join((__version__, *map(_version, _READER_PACKAGES)))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "-"


def known_findings(repository: GitRepository) -> dict[str, GateFinding]:
    """The findings of earlier runs by fingerprint, the latest run first."""
    files = cache_folder(repository).glob("*.json")
    findings: dict[str, GateFinding] = {}
    for file in sorted(files, key=_last_use, reverse=True):
        report = _read_report(file)
        for finding in () if report is None else report.findings:
            findings.setdefault(finding.fingerprint, finding)
    return findings


def _last_use(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        # Another run has just deleted it.
        return 0.0


def _read_report(file: Path) -> GateReport | None:
    try:
        return decode_json(file.read_bytes(), GateReport)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as problem:
        # Without the cache, the run only takes longer.
        _log.warning("The cached report %s cannot be read: %s", file, problem)
        return None


def find_report(
    settings: Settings, base: str, head: str, *, dialect: str | None, folder: Path = Path()
) -> GateReport | None:
    """The cached report of an earlier run for the same change on the same day."""
    repository = GitRepository(folder)
    old, new = repository.commits(base, head)
    change = ChangeRequest(base, head, old, new, dialect, settings)
    return ReportCache(repository, change, datetime.now(UTC).date()).load()


class ReportCache:
    """The cached report of one change."""

    def __init__(
        self, repository: GitRepository, change: ChangeRequest, today: date, *, lineage: str = ""
    ) -> None:
        *revisions, settings = change
        parts = (reader_versions(), repr(revisions), repr(settings), today.isoformat(), lineage)
        key = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
        self._folder = cache_folder(repository)
        self._file = self._folder / f"{key}.json"

    def load(self) -> GateReport | None:
        """The report, if an earlier run has saved it."""
        report = _read_report(self._file)
        if report is not None:
            with suppress(OSError):
                os.utime(self._file)
        return report

    def save(self, report: GateReport) -> None:
        """Save a report, and delete the least recently used reports."""
        # The file is renamed when complete: another run may read it, or this run may be killed.
        temporary = self._file.with_suffix(f".{os.getpid()}.tmp")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(to_json(report))
            temporary.replace(self._file)
            reports = sorted(self._folder.glob("*.json"), key=_last_use)
            for old in reports[:-_MAX_REPORTS]:
                old.unlink(missing_ok=True)
        except OSError as problem:
            # A repository may be read-only; the next run only takes longer.
            _log.info("The report is not cached: %s", problem)
