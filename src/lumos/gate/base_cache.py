"""Caches stores of merge bases in the git directory, so that later runs only read changed files."""

import hashlib
import logging
import os
import sqlite3
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Final

from lumos.config import Settings
from lumos.gate.report_cache import cache_folder, reader_versions
from lumos.gate.revisions import Revisions
from lumos.lineage.sql_files import is_macro_file
from lumos.schemas.git_revisions import GitRepository
from lumos.store.database import HEAD

_MAX_STORES: Final = 3
_log = logging.getLogger(__name__)


class BaseStoreCache:
    """The cached store of a merge base; its file name is a hash of everything it is built from."""

    def __init__(
        self,
        repository: GitRepository,
        revisions: Revisions,
        settings: Settings,
        *,
        dialect: str | None,
    ) -> None:
        self._folder = cache_folder(repository)
        # The settings that lineage and datasets depend on, including overrides by variables.
        naming = settings.sql_names, settings.sql_name_from, settings.owners, settings.environment
        before, _ = revisions.files
        files = (
            f"{path} {blob}"
            for path, blob in sorted(before.items())
            if path in revisions.sql or is_macro_file(path)
        )
        schemas = sorted(
            (*revisions.unchanged.schemas, *revisions.before.schemas),
            key=lambda each: (each.file, each.kind, each.urn),
        )
        digest = hashlib.sha256()
        # One part at a time, since the text of all schemas is long.
        for part in chain(
            (reader_versions(), HEAD, str(dialect), repr(naming)), files, map(repr, schemas)
        ):
            digest.update(part.encode("utf-8", "surrogatepass"))
            digest.update(b"\0")
        key = digest.hexdigest()
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
            # Without the cache, the run only takes longer.
            _log.warning("The cached store %s cannot be read: %s", self._file, problem)
            file.unlink(missing_ok=True)
        else:
            self.is_restored = True

    def save(self, file: Path) -> None:
        """Save a copy of a store, and delete the least recently used copies."""
        # The file is renamed when complete: another run may read it, or this run may be killed.
        temporary = self._file.with_suffix(f".{os.getpid()}.tmp")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            _copy(file, temporary)
            temporary.replace(self._file)
        except (sqlite3.Error, OSError) as problem:
            # A repository may be read-only; the next run only takes longer.
            _log.info("The store of the merge base is not cached: %s", problem)
            return
        stores = sorted(self._folder.glob("*.db"), key=lambda each: each.stat().st_mtime)
        for old in stores[:-_MAX_STORES]:
            old.unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    """Copy a database that may be open, including its write-ahead log."""
    with closing(sqlite3.connect(source)) as reader, closing(sqlite3.connect(target)) as writer:
        reader.backup(writer)
