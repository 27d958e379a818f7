"""What can go wrong with a store, said once for every database."""

import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Final

from sqlalchemy.exc import DBAPIError

from lumos.errors import LumosError, MisuseError, nearest, question

# How PostgreSQL calls a deadlock, and a state of the data that another writer has overtaken.
_CONTENDED: Final = frozenset({"40P01", "40001"})
# Room for the smallest step by which SQLite grows the index of its log, and some more.
_LEAST_FREE: Final = 256 * 1024
_MOST_NEAREST: Final = 3


class StoreError(LumosError):
    """The store refused an operation."""


class StoreLocked(StoreError):
    """Another process holds the store for longer than Lumos waits."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"The store {place} is locked by another process. "
            "Wait for the other lumos command to end, then run this one again."
        )


class StoreContended(StoreError):
    """Two transactions waited for each other, and the database ended this one.

    Nothing of it was written, so it can be repeated.
    """

    def __init__(self, place: str) -> None:
        super().__init__(
            f"Another process wrote to the same datasets of the store {place}, and went first. "
            "Run this command again."
        )


class NoStore(StoreError):
    """There is no store at the place where it should be."""

    def __init__(self, place: str) -> None:
        super().__init__(f"There is no store at {place} yet. Fill one with: lumos ingest PATH")


class UnknownDataset(MisuseError):
    """No dataset has that URN or name; `known` are the names of those in the store."""

    def __init__(self, name: str, known: Sequence[str] | None = None) -> None:
        self.name = name
        # All URNs of one place are alike.
        limit = 1 if "://" in name else _MOST_NEAREST
        self.nearest = tuple(nearest(name, known or (), limit=limit))
        if known is None:
            advice = "See all with: lumos list"
        elif not known:
            advice = "It is empty. Fill it with: lumos ingest PATH"
        elif self.nearest:
            advice = f"{question(self.nearest)} See all with: lumos list"
        else:
            # The last part of a path or a URN is what one searches for.
            text = quote(name.rstrip("/").rpartition("/")[2] or name)
            advice = f"Look for it with: lumos search {text}, or see all with: lumos list"
        super().__init__(f"No dataset {name} in the store. {advice}")


class AmbiguousName(MisuseError):
    """A name that several datasets have."""

    def __init__(self, name: str, urns: tuple[str, ...]) -> None:
        self.urns = urns
        super().__init__(
            f"Several datasets are called '{name}'. Give the URN of one: {', '.join(urns)}"
        )


class NameTooLong(MisuseError):
    """A name that the database has no room for."""

    def __init__(self, name: str, size: int, longest: int) -> None:
        self.name = name
        super().__init__(
            f"The name {name[:120]}... has {size:,} bytes; a store on PostgreSQL takes names of at "
            f"most {longest:,}. Shorten it, or use a store on SQLite."
        )


class StoreNotUsable(StoreError):
    """The store cannot be opened or written."""


class StoreTooOld(StoreError):
    """The store was written by an earlier Lumos."""

    def __init__(self, place: str, found: str, wanted: str) -> None:
        super().__init__(
            f"The store {place} has revision {found}, this Lumos needs {wanted}. "
            "Migrate it with: lumos db upgrade"
        )


class StoreTooNew(StoreError):
    """The store was written by a later Lumos."""

    def __init__(self, place: str, found: str, wanted: str) -> None:
        super().__init__(
            f"The store {place} has revision {found}, which is newer than this Lumos knows "
            f"({wanted}). Upgrade Lumos: pip install --upgrade lumos"
        )


@contextmanager
def clear_errors(place: str) -> Iterator[None]:
    """Turns what the database driver raises into one sentence with a way out."""
    try:
        yield
    except (DBAPIError, sqlite3.Error) as problem:
        raise _translated(problem, place) from problem


def _translated(problem: Exception, place: str) -> StoreError:
    cause = getattr(problem, "orig", problem)
    text = str(cause)
    if getattr(cause, "sqlstate", None) in _CONTENDED:
        return StoreContended(place)
    if "locked" in text or "busy" in text or "lock timeout" in text:
        return StoreLocked(place)
    # SQLite reports a full disk as an I/O error where it cannot grow the files beside the database.
    if "disk is full" in text or ("disk I/O error" in text and _is_disk_full(place)):
        return StoreNotUsable(
            f"No room left on the disk of the store {place}. Free some and rerun."
        )
    if "readonly" in text or "unable to open" in text:
        return StoreNotUsable(
            f"The store {place} cannot be written. Check the permissions of the file and of its "
            "folder, or choose another place with storage.path in lumos.yaml."
        )
    if "not a database" in text or "malformed" in text:
        return StoreNotUsable(
            f"{place} is not a Lumos store or is damaged ({text}). "
            "Restore it from a backup, or choose another place with storage.path in lumos.yaml."
        )
    if "connection failed" in text or "could not connect" in text or "refused" in text:
        return StoreNotUsable(
            f"The store {place} does not answer. Check that the server runs and that "
            "storage.connection_string names it."
        )
    return StoreError(f"The store {place} failed: {text.strip().splitlines()[0]}")


def _is_disk_full(place: str) -> bool:
    try:
        return shutil.disk_usage(Path(place).parent).free < _LEAST_FREE
    except OSError:
        return False
