"""Errors of the store, the same for every database."""

import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Final

from sqlalchemy.exc import DBAPIError

from lumos.errors import LumosError, MisuseError, nearest, question

# SQLSTATE of PostgreSQL for a deadlock and for a serialization failure.
_CONTENDED: Final = frozenset({"40P01", "40001"})
# SQLite grows its log files in steps smaller than this; with less free space it may fail.
_MIN_FREE_BYTES: Final = 256 * 1024
_MAX_SUGGESTIONS: Final = 3
# Parts of PostgreSQL's messages while it starts, stops, recovers or is overloaded.
_TEMPORARY_REFUSALS: Final = (
    "starting up",
    "shutting down",
    "recovery mode",
    "not yet accepting connections",
    "too many clients",
)


class StoreError(LumosError):
    """An operation on the store failed."""


class StoreLocked(StoreError):
    """Another process has locked the store for longer than Lumos waits."""

    def __init__(self, location: str) -> None:
        super().__init__(
            f"The store {location} is locked by another process. "
            "Wait for the other lumos command to end, then run this one again."
        )


class StoreContended(StoreError):
    """Two transactions blocked each other, and the database rolled this one back.

    Nothing was written, so it can be repeated.
    """

    def __init__(self, location: str) -> None:
        super().__init__(
            f"Another process wrote to the same datasets of the store {location} at the same time. "
            "Run this command again."
        )


class NoStore(StoreError):
    """There is no store at the configured location."""

    def __init__(self, location: str) -> None:
        super().__init__(f"There is no store at {location} yet. Fill one with: lumos ingest PATH")


class UnknownDataset(MisuseError):
    """No dataset has that URN or name; `known` are the names to suggest from."""

    def __init__(self, name: str, known: Sequence[str] | None = None) -> None:
        self.name = name
        # URNs of one platform are all similar.
        limit = 1 if "://" in name else _MAX_SUGGESTIONS
        self.nearest = tuple(nearest(name, known or (), limit=limit))
        if known is None:
            advice = "See all with: lumos list"
        elif not known:
            advice = "The store is empty. Fill it with: lumos ingest PATH"
        elif self.nearest:
            advice = f"{question(self.nearest)} See all with: lumos list"
        else:
            # Search for the last part of a path or a URN.
            text = quote(name.rstrip("/").rpartition("/")[2] or name)
            advice = f"Look for it with: lumos search {text}, or see all with: lumos list"
        super().__init__(f"No dataset {name} in the store. {advice}")


class OnlyInLineage(UnknownDataset):
    """A table that is only known from lineage, where a scanned dataset is needed."""

    def __init__(self, name: str, urn: str) -> None:
        super().__init__(name)
        self.urn = urn
        self.args = (
            f"{name} is known from lineage only, and no scan has found it. "
            f"Scan it first with: lumos ingest PATH",
        )


class AmbiguousName(MisuseError):
    """Several datasets have the name."""

    def __init__(self, name: str, urns: tuple[str, ...]) -> None:
        self.urns = urns
        super().__init__(
            f"Several datasets are called '{name}'. Name one of them: {', '.join(urns)}"
        )


class NameTooLong(MisuseError):
    """The name is longer than the database can index."""

    def __init__(self, name: str, size: int, max_bytes: int) -> None:
        self.name = name
        super().__init__(
            f"The name {name[:120]}... has {size:,} bytes; a store on PostgreSQL allows at most "
            f"{max_bytes:,}. Shorten it, or use a store on SQLite."
        )


class StoreNotUsable(StoreError):
    """The store cannot be opened or written."""


class StoreUnreachable(StoreNotUsable):
    """The database server does not answer, or is still starting."""

    def __init__(self, location: str) -> None:
        super().__init__(
            f"The store {location} does not answer. Check that the server is running and that "
            "storage.connection_string is correct."
        )


class StoreTooOld(StoreError):
    """The store was written by an earlier version of Lumos."""

    def __init__(self, location: str, revision: str, expected: str) -> None:
        super().__init__(
            f"The store {location} has revision {revision}, this Lumos needs {expected}. "
            "Migrate it with: lumos db upgrade"
        )


class StoreTooNew(StoreError):
    """The store was written by a later version of Lumos."""

    def __init__(self, location: str, revision: str, expected: str) -> None:
        super().__init__(
            f"The store {location} has revision {revision}, which is newer than this Lumos knows "
            f"({expected}). Upgrade Lumos: pip install --upgrade lumos"
        )


@contextmanager
def translate_errors(location: str) -> Iterator[None]:
    """Translate exceptions of the database driver to Lumos errors with advice."""
    try:
        yield
    except (DBAPIError, sqlite3.Error) as problem:
        raise _translate(problem, location) from problem


def _translate(problem: Exception, location: str) -> StoreError:
    cause = getattr(problem, "orig", problem)
    text = str(cause)
    if getattr(cause, "sqlstate", None) in _CONTENDED:
        return StoreContended(location)
    if "locked" in text or "busy" in text or "lock timeout" in text:
        return StoreLocked(location)
    # SQLite reports a full disk as an I/O error if it cannot grow its log files.
    if "disk is full" in text or ("disk I/O error" in text and _is_disk_full(location)):
        return StoreNotUsable(
            f"No space left on the disk of the store {location}. "
            "Free some and run the command again."
        )
    if "readonly" in text or "unable to open" in text:
        return StoreNotUsable(
            f"The store {location} cannot be written. Check the permissions of the file and of its "
            "folder, or choose another location with storage.path in lumos.yaml."
        )
    if "not a database" in text or "malformed" in text:
        return StoreNotUsable(
            f"{location} is not a Lumos store or is damaged ({text}). "
            "Restore it from a backup, or choose another location with storage.path in lumos.yaml."
        )
    if "connection failed" in text or "could not connect" in text or "refused" in text:
        _, is_refusal, reason = text.partition("FATAL:")
        if is_refusal and not any(each in reason for each in _TEMPORARY_REFUSALS):
            return StoreNotUsable(
                f"The store {location} refused the connection: {reason.strip().splitlines()[0]}. "
                "Check storage.connection_string."
            )
        return StoreUnreachable(location)
    return StoreError(f"The store {location} failed: {text.strip().splitlines()[0]}")


def _is_disk_full(location: str) -> bool:
    try:
        return shutil.disk_usage(Path(location).parent).free < _MIN_FREE_BYTES
    except OSError:
        return False
