"""The manifest of a scan, so that the next scan reads only new and changed files.

A manifest is one small file with the schemas in use, the remembered shapes of each dataset, and
references to parts (a row per file, written and read by Spark tasks). Manifests share parts:
scanning an unchanged lake writes no part. A manifest is written last and in one step, so it is
never incomplete.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import msgspec

from lumos.discovery.grouping.state import GroupingState, LegacyGrouping
from lumos.discovery.lake.dataset_schema import ShapeMemory
from lumos.discovery.lake.parts import LOST_PART_ERRORS, ManifestPart, read_identities
from lumos.discovery.lake.table_reader import TableRecord
from lumos.storage import DEFAULT_ACCESS, StorageAccess, storage_of
from lumos.storage.polling import polled_files

_log = logging.getLogger(__name__)

# A callback with the number of scanned files and the share of finished tasks.
ScanProgress: TypeAlias = Callable[[int, float], None]


class ScanManifest(msgspec.Struct, kw_only=True):
    """The state that a scan of a root stores for the next scan.

    `schemas` maps full fingerprints to JSON. `memories` maps datasets to the shapes of their files,
    which the next scan compares with the current ones. `tables` is by root. If there is a store,
    scans use the shapes in the store, and the manifest's only explain the decisions of this scan.
    """

    parts: list[ManifestPart] = []
    schemas: dict[str, bytes] = {}
    memories: dict[str, ShapeMemory] = {}
    grouping: GroupingState = GroupingState()
    # Only in manifests of Lumos versions that had no path patterns.
    legacy_grouping: LegacyGrouping = msgspec.field(default_factory=LegacyGrouping, name="settled")
    tables: dict[str, TableRecord] = {}

    @property
    def owned_paths(self) -> frozenset[str]:
        """The folders and files that belong to tables."""
        return frozenset(self.tables).union(*(each.owned_paths for each in self.tables.values()))

    @property
    def files(self) -> set[str]:
        """The files of the state folder that the manifest refers to."""
        of_tables = {path for each in self.tables.values() for path in each.files}
        return of_tables | {part.path for part in self.parts}


def ignore_progress(_files: int, _share: float) -> None:
    """Report no progress."""


class ManifestStore:
    """The manifests of one source, with their parts, in a folder of any storage."""

    def __init__(self, folder: str, access: StorageAccess = DEFAULT_ACCESS) -> None:
        self._folder = folder
        self._storage = storage_of(folder, access)
        self.access = access
        self.parts = f"{folder}/parts"

    def read(self, name: str | None) -> ScanManifest:
        """The manifest with this name; an empty manifest if it does not exist or is damaged."""
        if name is None:
            return ScanManifest()
        try:
            data = self._storage.read(f"{self._folder}/{name}")
        except FileNotFoundError:
            return ScanManifest()
        try:
            return msgspec.msgpack.decode(data, type=ScanManifest)
        except msgspec.MsgspecError:
            _log.warning("Cannot read the manifest %s; all files are read again.", name)
            return ScanManifest()

    def grouping_of(self, manifest: ScanManifest) -> GroupingState:
        """The grouping of a manifest, upgraded if an earlier version wrote it."""
        if not manifest.legacy_grouping.file_sets:
            return manifest.grouping
        summaries = []
        for part in manifest.parts:
            try:
                summaries += read_identities(part.path, access=self.access)[1].file_sets
            except LOST_PART_ERRORS:
                _log.warning(
                    "Part %s of a manifest is missing; its datasets start a new history.", part.path
                )
        return manifest.legacy_grouping.upgrade(summaries)

    def write(self, name: str, manifest: ScanManifest) -> None:
        self._storage.write(f"{self._folder}/{name}", msgspec.msgpack.encode(manifest))

    @contextmanager
    def reporting_progress(self, report: ScanProgress, *, tasks: int) -> Iterator[None]:
        """Report how many tasks have finished, by counting the parts that they write."""
        if report is ignore_progress or not tasks:
            yield
            return
        before = set(self._storage.files(self.parts))

        def report_parts(names: list[str]) -> None:
            # Names of parts end with their number of files: 3f2a...-1200.parquet.
            written = (name for name in names if name not in before)
            numbers = (name.partition(".parquet")[0].partition("-")[2] for name in written)
            counts = [int(number) for number in numbers if number]
            report(sum(counts), min(1.0, len(counts) / tasks))

        with polled_files(self._storage, self.parts, report_parts):
            yield

    def delete_all_but(self, names: set[str]) -> None:
        """Delete all manifests except these, and the parts that none of these refers to."""
        referenced = {path.rpartition("/")[2] for name in names for path in self.read(name).files}
        others = set(self._storage.files(self._folder)) - names
        unused = set(self._storage.files(self.parts)) - referenced
        self._storage.discard([f"{self._folder}/{name}" for name in others])
        self._storage.discard([f"{self.parts}/{name}" for name in unused])
