"""Lineage from outside of the repository: a snapshot, a store, or files with lineage.

For datasets that SQL of the repository creates, only the lineage of that SQL is used: lineage from
outside may describe a model as it was before the change.
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

# The value of --lineage for the configured store.
LOCAL: Final = "local"
_SQLITE_HEADER: Final = b"SQLite format 3\0"
_STORE_FILE: Final = "lumos.db"
_SNAPSHOT_FILE: Final = "store.jsonl"
_MANIFEST: Final = "manifest.json"
_DBT_MANIFEST_ID: Final = b"schemas.getdbt.com/dbt/manifest"
_MAX_MANIFEST_BYTES: Final = 64 * 1024 * 1024
_HEAD_BYTES: Final = 65_536


class LineageWorkspace(Protocol):
    """The features that are needed to load lineage."""

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
        self, text: str, open_configured: Callable[[], LineageWorkspace], *, optional: bool = False
    ) -> None:
        """An `optional` source may contain no lineage; others then raise an error."""
        self._optional = optional
        # Files with lineage, to be read again when the datasets in the repository are known.
        self._files: Path | None = None
        self._open_configured = open_configured
        self.path: Path | None = None if text == LOCAL else Path(text)
        if self.path is not None and not self.path.exists():
            raise MisuseError(
                f"There is no file {text}. Give a snapshot, a store or a file with lineage, or "
                "local for the configured store: lumos gate --base REV --lineage FILE"
            )

    def copy_store(self, file: Path) -> None:
        """Copy the store to a file, if the source is a SQLite store."""
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
        """Load the lineage into a workspace, unless `copy_store` has copied it."""
        if self._store_file() is not None:
            return
        if self.path is None:
            # The store is on a server, so its contents are moved by a snapshot.
            snapshot = folder / _SNAPSHOT_FILE
            self._open_configured().snapshot.export(snapshot)
            workspace.snapshot.load(snapshot, allow_dangling=True)
        elif find_snapshot(self.path) is not None:
            workspace.snapshot.load(self.path, allow_dangling=True)
        else:
            if (
                self.path.is_file()
                and is_likely_snapshot(self.path)
                and b"lumos-snapshot" in self.path.read_bytes()[:_HEAD_BYTES]
            ):
                # A broken snapshot: opening it raises an error with the reason.
                with open_snapshot(self.path):
                    pass
            report = workspace.lineage.ingest(self.path, dialect=dialect)
            if report.files and not self._optional:
                self._files = self.path
            if not report.files and not self._optional:
                raise MisuseError(
                    f"{self.path} contains no lineage. Give a snapshot, a store, dbt artefacts, "
                    "exports of dashboards, OpenLineage events or SQL."
                )

    def resolve_names(self, workspace: LineageWorkspace, *, dialect: str | None) -> None:
        """Read files with lineage again, now that the datasets of the repository are known.

        Names of tables in the files are then resolved to these datasets.
        """
        if self._files is not None:
            workspace.lineage.ingest(self._files, dialect=dialect)

    def _store_file(self) -> Path | None:
        if self.path is None:
            database = self._open_configured().database
            file = Path(database.location)
            return file if database.engine.dialect.name == "sqlite" and file.is_file() else None
        file = self.path / _STORE_FILE if (self.path / _STORE_FILE).is_file() else self.path
        if not file.is_file():
            return None
        with file.open("rb") as stream:
            return file if stream.read(len(_SQLITE_HEADER)) == _SQLITE_HEADER else None


@contextmanager
def committed_artefacts(repository: GitRepository, commit: str) -> Iterator[Path | None]:
    """A temporary folder with the dbt manifests in a commit, or None if it has none."""
    manifests = {
        path: blob
        for path, blob in repository.files(
            commit, (_MANIFEST,), max_bytes=_MAX_MANIFEST_BYTES
        ).items()
        if PurePosixPath(path).name == _MANIFEST
    }
    with TemporaryDirectory(prefix="lumos-gate-") as name:
        folder = Path(name)
        manifest_folder = None
        for number, (_, data) in enumerate(repository.read(manifests)):
            if _DBT_MANIFEST_ID in data[:_HEAD_BYTES]:
                file = folder / str(number) / _MANIFEST
                file.parent.mkdir()
                file.write_bytes(data)
                manifest_folder = folder
        yield manifest_folder


def remove_outside_lineage(
    store: Store, outside: Collection[str], written: Collection[str], *, at: datetime
) -> None:
    """Remove the edges into the datasets `written` that reporters from outside have reported."""
    for reporter in outside:
        edges = store.lineage.edges_by(reporter)
        remaining = [edge for edge in edges if edge.downstream not in written]
        if len(remaining) == len(edges):
            continue
        targets = {edge.downstream for edge in remaining}
        scripts = {
            script: None
            for reported in store.lineage.scripts(targets).values()
            for name, script in reported
            if name == reporter and script.dataset not in written
        }
        owners = store.lineage.owners_by(reporter)
        unparsed = [each for name, each in store.lineage.unparsed() if name == reporter]
        consumers = tuple(store.lineage.consumers(targets).values())
        with store.transaction() as transaction:
            transaction.lineage.report(
                reporter, remaining, scripts=tuple(scripts), owners=owners, unparsed=unparsed,
                consumers=consumers, at=at,
            )  # fmt: skip
