"""Stores of merge bases in the git directory: the next run only reads what the change touches."""

import hashlib
import logging
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from lumos.config import Settings
from lumos.gate.report_cache import cache_folder, reader_versions
from lumos.gate.revisions import Revisions
from lumos.schemas.git_revisions import GitRepository
from lumos.store.database import HEAD

_MAX_STORES: Final = 3
_log = logging.getLogger(__name__)


class BaseStoreCache:
    """The store of a merge base, by a hash of everything that it is made from."""

    def __init__(
        self,
        repository: GitRepository,
        revisions: Revisions,
        settings: Settings,
        *,
        dialect: str | None,
    ) -> None:
        self._folder = cache_folder(repository)
        # The settings that lineage and datasets depend on, also if a variable overrides them.
        naming = settings.sql_names, settings.sql_name_from, settings.owners, settings.environment
        parts = [reader_versions(), HEAD, str(dialect), repr(naming)]
        parts += (
            f"{path} {blob}"
            for path, blob in sorted(revisions.files[0].items())
            if path in revisions.sql
        )
        parts += sorted(
            f"{each}\n{each.schema}"
            for each in (*revisions.same.schemas, *revisions.before.schemas)
        )
        key = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
        self._file = self._folder / f"{key}.db"
        self.is_restored = False

    def restore(self, file: Path) -> None:
        """Copy the store to a file, if an earlier run has saved it."""
        if not self._file.is_file():
            return
        try:
            _copy(self._file, file)
            os.utime(self._file)
        except (sqlite3.DatabaseError, OSError) as problem:
            # The run only takes longer without it.
            _log.warning("The cached store %s cannot be read: %s", self._file, problem)
            file.unlink(missing_ok=True)
        else:
            self.is_restored = True

    def save(self, file: Path) -> None:
        """Keep a copy of a store, and remove the ones that were not used for longest."""
        # Complete or absent: another run may read at the same time, and this one may be killed.
        unfinished = self._file.with_suffix(f".{os.getpid()}.tmp")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            _copy(file, unfinished)
            unfinished.replace(self._file)
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
