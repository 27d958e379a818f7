"""Remembers what a scan saw, so that the next one opens only what is new or changed.

A manifest is one small file that names parts (a row per file, written and read by tasks alone),
holds the schemas in use, and what is remembered of each dataset. Parts are shared between
manifests: an unchanged lake writes none. A manifest is there once its file is, whole.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final, TypeAlias

import msgspec

from lumos.discovery.current_schema import Memory
from lumos.discovery.grouping.state import GroupingState, LegacyGrouping
from lumos.discovery.parts import LOST, Part, read_identities
from lumos.discovery.tables import TableKept
from lumos.storage import DEFAULT_ACCESS, StorageAccess, storage_of

_log = logging.getLogger(__name__)
_SECONDS_BETWEEN_LOOKS: Final = 0.5

# Is told the number of files that were seen to, and the share of all work that is done.
Watch: TypeAlias = Callable[[int, float], None]


class Manifest(msgspec.Struct, kw_only=True):
    """What one scan of a root came to, and what the next one must know.

    `schemas` are JSON by their full fingerprint; `memories` are by dataset, `tables` by root. Where
    there is a store, its memories count: those here only explain what this scan decided.
    """

    parts: list[Part] = []
    schemas: dict[str, bytes] = {}
    memories: dict[str, Memory] = {}
    grouping: GroupingState = GroupingState()
    # Of versions before path patterns.
    settled: LegacyGrouping = LegacyGrouping()
    tables: dict[str, TableKept] = {}

    @property
    def claims(self) -> frozenset[str]:
        """The folders that tables own."""
        return frozenset(self.tables).union(*(kept.claims for kept in self.tables.values()))

    @property
    def files(self) -> set[str]:
        """What the manifest refers to."""
        of_tables = {path for kept in self.tables.values() for path in kept.files}
        return of_tables | {part.path for part in self.parts}


def unwatched(_files: int, _share: float) -> None:
    """Nobody looks on."""


def _file_count(name: str) -> str:
    return name.partition(".parquet")[0].partition("-")[2]


class Manifests:
    """The manifests of one source in a folder of any storage, by name, with their parts."""

    def __init__(self, folder: str, access: StorageAccess = DEFAULT_ACCESS) -> None:
        self._folder = folder
        self._storage = storage_of(folder, access)
        self.access = access
        self.parts = f"{folder}/parts"

    def read(self, name: str | None) -> Manifest:
        """A manifest; an empty one where there is none of that name."""
        if name is None:
            return Manifest()
        try:
            data = self._storage.read(f"{self._folder}/{name}")
        except FileNotFoundError:
            return Manifest()
        try:
            return msgspec.msgpack.decode(data, type=Manifest)
        except msgspec.MsgspecError:
            _log.warning("the manifest %s cannot be read; every file is opened again", name)
            return Manifest()

    def grouping_of(self, manifest: Manifest) -> GroupingState:
        """What a manifest remembers of grouping, also where an earlier version wrote it."""
        if not manifest.settled.places:
            return manifest.grouping
        summaries = []
        for part in manifest.parts:
            try:
                summaries += read_identities(part.path, access=self.access)[1].places
            except LOST:
                _log.warning("part %s of a manifest is lost; its datasets start again", part.path)
        return manifest.settled.upgraded(summaries)

    def write(self, name: str, manifest: Manifest) -> None:
        self._storage.write(f"{self._folder}/{name}", msgspec.msgpack.encode(manifest))

    @contextmanager
    def watched(self, watch: Watch, *, works: int) -> Iterator[None]:
        """Tells how far the works of a scan are, by the parts they write."""
        if watch is unwatched or not works:
            yield
            return
        before = set(self._storage.files(self.parts))
        ended = Event()

        def look() -> None:
            while not ended.wait(_SECONDS_BETWEEN_LOOKS):
                try:
                    written = set(self._storage.files(self.parts)) - before
                except OSError:
                    # Whatever is wrong with the storage, the tasks will say it better.
                    continue
                counts = [int(count) for count in map(_file_count, written) if count]
                watch(sum(counts), min(1.0, len(counts) / works))

        thread = Thread(target=look, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def forget_all_but(self, names: set[str]) -> None:
        """Removes other manifests, and the parts that none of these refers to."""
        kept = {path.rpartition("/")[2] for name in names for path in self.read(name).files}
        others = set(self._storage.files(self._folder)) - names
        unused = set(self._storage.files(self.parts)) - kept
        self._storage.discard([f"{self._folder}/{name}" for name in others])
        self._storage.discard([f"{self.parts}/{name}" for name in unused])
