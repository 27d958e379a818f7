"""Locks by name that a killed process gives up by itself."""

import fcntl
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from sqlalchemy import Engine, text

from lumos.store.errors import StoreError


class AlreadyHeld(StoreError):
    """Somebody else holds the name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"Another scan of {name} is running. Wait until it has ended, then run this one again."
        )


class Locks(ABC):
    """Who holds which name."""

    @abstractmethod
    def held(self, name: str) -> AbstractContextManager[None]:
        """Holds a name while the block runs; raises AlreadyHeld where another one does."""


class FileLocks(Locks):
    """Locks of the operating system on small files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def held(self, name: str) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
        with file.open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AlreadyHeld(name) from None
            yield


class AdvisoryLocks(Locks):
    """PostgreSQL's advisory locks, which end with their connection."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @contextmanager
    def held(self, name: str) -> Iterator[None]:
        key = {"key": lock_key(name)}
        with self._engine.connect() as connection:
            # Outside any transaction, so that a long scan does not hold one open.
            free = connection.execution_options(isolation_level="AUTOCOMMIT")
            if not free.execute(text("SELECT pg_try_advisory_lock(:key)"), key).scalar():
                raise AlreadyHeld(name)
            try:
                yield
            finally:
                free.execute(text("SELECT pg_advisory_unlock(:key)"), key)


def lock_key(name: str) -> int:
    """The name as the signed 64-bit number that PostgreSQL locks."""
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
