"""Stores of merge bases in the git directory: the next run only reads what the change touches."""

import hashlib
import logging
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from lumos.schemas.git_revisions import GitRepository
from lumos.store.database import HEAD
from lumos.version import __version__

_MAX_STORES: Final = 3
_log = logging.getLogger(__name__)


class BaseStoreCache:
    """Keeps the stores of the last merge bases, by a key of everything they were made from."""

    def __init__(self, repository: GitRepository, *, config: Path | None, dialect: str | None):
        folder = repository.git("rev-parse", "--path-format=absolute", "--git-common-dir").strip()
        self._folder = Path(folder) / "lumos" / "gate"
        settings = config.read_bytes() if config is not None and config.is_file() else b""
        self._setup = f"{__version__}\n{HEAD}\n{dialect}\n".encode() + settings

    def key(self, parts: Mapping[str, str]) -> str:
        """The key of a merge base; `parts` are its files and datasets with their contents."""
        digest = hashlib.sha256(self._setup)
        for name, content in sorted(parts.items()):
            digest.update(f"\n{name}\0{content}".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def restore(self, key: str, file: Path) -> bool:
        """Copy a store to a file; False if it is not in the cache."""
        cached = self._folder / f"{key}.db"
        if not cached.is_file():
            return False
        try:
            _copy(cached, file)
            os.utime(cached)
        except (sqlite3.DatabaseError, OSError) as problem:
            # The run only takes longer without it.
            _log.warning("The cached store %s cannot be read: %s", cached, problem)
            file.unlink(missing_ok=True)
            return False
        return True

    def save(self, key: str, file: Path) -> None:
        """Keep a copy of a store, and remove the ones that were not used for longest."""
        # Complete or absent: another run may read at the same time, and this one may be killed.
        unfinished = self._folder / f"{key}.{os.getpid()}.tmp"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            _copy(file, unfinished)
            unfinished.replace(self._folder / f"{key}.db")
        except (sqlite3.Error, OSError) as problem:
            # A repository may be read-only; the next run only takes longer.
            _log.info("The store of the merge base is not cached: %s", problem)
            return
        stores = sorted(self._folder.glob("*.db"), key=lambda each: each.stat().st_mtime)
        for old in stores[:-_MAX_STORES]:
            old.unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    """Copy a database that may be open, with what is in its write-ahead log."""
    with closing(sqlite3.connect(source)) as reader, closing(sqlite3.connect(target)) as writer:
        reader.backup(writer)
