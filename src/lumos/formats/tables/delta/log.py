"""Which files a `_delta_log` holds: commits, checkpoints and compacted runs of commits."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from lumos.formats.interface import LARGEST
from lumos.formats.tables.interface import Entry

FOLDER: Final = "_delta_log"
SIDECARS: Final = f"{FOLDER}/_sidecars"

_COMMIT: Final = re.compile(r"(\d{20})\.json\Z", re.ASCII)
_COMPACTED: Final = re.compile(r"(\d{20})\.(\d{20})\.compacted\.json\Z", re.ASCII)
_CHECKPOINT: Final = re.compile(
    r"(\d{20})\.checkpoint"
    r"(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.(?P<uuid>[0-9A-Za-z-]+))?\.(?P<ending>parquet|json)\Z",
    re.ASCII,
)


# The parts of each checkpoint by their number: its version, how many parts it has, its own name.
_Parts: TypeAlias = dict[tuple[int, int, str], dict[int, Entry]]


class Identity(NamedTuple):
    """What tells one writing of a file from another."""

    size: int
    modified: int
    etag: str


class Checkpoint(NamedTuple):
    """A whole checkpoint; its parts' names stand in their order."""

    version: int
    names: tuple[str, ...]
    modified: int


class Run(NamedTuple):
    """A file that says what several commits amount to."""

    first: int
    last: int
    entry: Entry


class Log(NamedTuple):
    """What is in the folder; checkpoints stand from the newest on, complete ones alone."""

    commits: dict[int, Entry]
    checkpoints: tuple[Checkpoint, ...]
    runs: tuple[Run, ...]
    # Commits at the end without a byte: somebody began to write them.
    begun: tuple[int, ...]

    @property
    def latest(self) -> int | None:
        """The newest version."""
        newest = [max(self.commits)] if self.commits else []
        newest += [self.checkpoints[0].version] if self.checkpoints else []
        return max(newest, default=None)

    def identity(self, version: int) -> Identity | None:
        """What the commit is now, if it is still there."""
        entry = self.commits.get(version)
        return entry and Identity(entry.size, entry.modified, entry.etag)


def is_of_log(name: str) -> bool:
    """Whether a file counts for the table's state; hints, checksums and scratch files do not."""
    return any(each.match(name) for each in (_COMMIT, _CHECKPOINT, _COMPACTED))


def log_of(entries: Iterable[Entry]) -> Log:
    """The log of those files."""
    commits: dict[int, Entry] = {}
    runs: list[Run] = []
    parts: _Parts = {}
    for entry in entries:
        if match := _COMMIT.match(entry.name):
            if (version := int(match[1])) <= LARGEST:
                commits[version] = entry
        elif match := _CHECKPOINT.match(entry.name):
            _note_part(parts, match, entry)
        elif match := _COMPACTED.match(entry.name):
            run = Run(int(match[1]), int(match[2]), entry)
            if run.first <= run.last <= LARGEST and entry.size:
                runs.append(run)
    checkpoints = _complete(parts)
    begun = _begun(commits, checkpoints[0].version if checkpoints else -1)
    for version in begun:
        del commits[version]
    return Log(commits, checkpoints, tuple(runs), begun)


def _note_part(parts: _Parts, match: re.Match[str], entry: Entry) -> None:
    version = int(match[1])
    if version > LARGEST or entry.size == 0:
        return
    if match["parts"]:
        if match["ending"] == "parquet":
            parts.setdefault((version, int(match["parts"]), ""), {})[int(match["part"])] = entry
    elif match["uuid"] or match["ending"] == "parquet":
        # One version may have several checkpoints.
        parts[version, 1, entry.name] = {1: entry}


def _complete(parts: _Parts) -> tuple[Checkpoint, ...]:
    whole = [
        Checkpoint(
            version,
            tuple(found[number].name for number in sorted(found)),
            max(entry.modified for entry in found.values()),
        )
        for (version, count, _), found in parts.items()
        if len(found) == count and min(found) == 1 and max(found) == count
    ]
    return tuple(sorted(whole, key=lambda each: (-each.version, len(each.names))))


def _begun(commits: dict[int, Entry], checkpoint: int) -> tuple[int, ...]:
    begun = []
    for version in sorted(commits, reverse=True):
        if commits[version].size or version <= checkpoint:
            break
        begun.append(version)
    return tuple(reversed(begun))


def in_log(name: str) -> str:
    """The path of a file of the log."""
    return f"{FOLDER}/{name}"
