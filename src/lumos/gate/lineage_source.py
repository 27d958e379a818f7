"""Lineage from outside of the repository: a snapshot, a store, or files with lineage.

What the repository's own SQL creates is taken from there alone: the outside knows how a model was
before the change.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final, Protocol

from lumos.errors import MisuseError
from lumos.lineage.service import LineageService
from lumos.schemas.diff_inputs import find_snapshot, is_likely_snapshot
from lumos.schemas.git_revisions import GitRepository
from lumos.snapshots.format.reader import open_snapshot
from lumos.snapshots.service import Snapshots
from lumos.store import Database, Store

# The store that the configuration names.
LOCAL: Final = "local"
_SQLITE: Final = b"SQLite format 3\0"
_STORE: Final = "lumos.db"
_COPY: Final = "store.jsonl"
_MANIFEST: Final = "manifest.json"
_DBT_MARK: Final = b"schemas.getdbt.com/dbt/manifest"
_MAX_MANIFEST: Final = 64 * 1024 * 1024
_HEAD: Final = 65_536


class LineageWorkspace(Protocol):
    """The features that lineage is loaded with."""

    @property
    def lineage(self) -> LineageService: ...
    @property
    def snapshot(self) -> Snapshots: ...
    @property
    def database(self) -> Database: ...
    def create_store(self) -> Store:
        """The store, created if there is none."""


class LineageSource:
    """The value of --lineage."""

    def __init__(
        self, text: str, configured: Callable[[], LineageWorkspace], *, optional: bool = False
    ) -> None:
        """An `optional` source may turn out to have no lineage."""
        self._optional = optional
        self._configured = configured
        self.path: Path | None = None if text == LOCAL else Path(text)
        if self.path is not None and not self.path.exists():
            raise MisuseError(
                f"There is no file {text}. Give a snapshot, a store or a file with lineage, or "
                "local for the configured store: lumos gate --base REV --lineage FILE"
            )

    def copy_store(self, file: Path) -> None:
        """Copy the store to a file, if the lineage is that of a SQLite store."""
        store = self._store_file()
        if store is None:
            return
        with (
            closing(sqlite3.connect(f"{store.resolve().as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(file)) as target,
        ):
            source.backup(target)
        Database.sqlite(file).upgrade()

    def load(self, workspace: LineageWorkspace, folder: Path, *, dialect: str | None) -> None:
        """Load the lineage into a store, unless it was copied."""
        if self._store_file() is not None:
            return
        if self.path is None:
            # A server: only a snapshot can move its contents.
            snapshot = folder / _COPY
            self._configured().snapshot.export(snapshot)
            workspace.snapshot.load(snapshot, allow_dangling=True)
        elif find_snapshot(self.path) is not None:
            workspace.snapshot.load(self.path, allow_dangling=True)
        else:
            if self.path.is_file() and is_likely_snapshot(self.path):
                _raise_if_broken(self.path)
            report = workspace.lineage.ingest(self.path, dialect=dialect)
            if not report.files and not self._optional:
                raise MisuseError(
                    f"{self.path} contains no lineage. Give a snapshot, a store, dbt artefacts, "
                    "OpenLineage events or SQL."
                )

    def _store_file(self) -> Path | None:
        if self.path is None:
            database = self._configured().database
            file = Path(database.location)
            return file if database.engine.dialect.name == "sqlite" and file.is_file() else None
        file = self.path / _STORE if (self.path / _STORE).is_file() else self.path
        if not file.is_file():
            return None
        with file.open("rb") as stream:
            return file if stream.read(len(_SQLITE)) == _SQLITE else None


@contextmanager
def committed_artefacts(repository: GitRepository, commit: str) -> Iterator[Path | None]:
    """A folder with the manifests of dbt that a commit contains; None if it has none."""
    listed = {
        path: blob
        for path, blob in repository.files(commit, (_MANIFEST,), max_bytes=_MAX_MANIFEST).items()
        if PurePosixPath(path).name == _MANIFEST
    }
    with TemporaryDirectory(prefix="lumos-gate-") as name:
        folder = Path(name)
        found = None
        for number, (_, data) in enumerate(repository.read(listed)):
            if _DBT_MARK in data[:_HEAD]:
                file = folder / str(number) / _MANIFEST
                file.parent.mkdir()
                file.write_bytes(data)
                found = folder
        yield found


def _raise_if_broken(file: Path) -> None:
    """Raise what is wrong with a snapshot; other files with similar names are not snapshots."""
    if b"lumos-snapshot" in file.read_bytes()[:65_536]:
        with open_snapshot(file):
            return


def replace_outside_lineage(
    store: Store, outside: Collection[str], written: Collection[str], *, at: datetime
) -> None:
    """Remove what reporters from `outside` say about the origin of some datasets."""
    for reporter in outside:
        edges = store.lineage.edges_by(reporter)
        kept = [edge for edge in edges if edge.downstream not in written]
        if len(kept) == len(edges):
            continue
        targets = {edge.downstream for edge in kept}
        scripts = {
            script: None
            for found in store.lineage.scripts(targets).values()
            for name, script in found
            if name == reporter and script.dataset not in written
        }
        owners = store.lineage.owners_by(reporter)
        unparsed = [each for name, each in store.lineage.unparsed() if name == reporter]
        with store.transaction() as transaction:
            transaction.lineage.report(
                reporter, kept, scripts=tuple(scripts), owners=owners, unparsed=unparsed, at=at
            )
