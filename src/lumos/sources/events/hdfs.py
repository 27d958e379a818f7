"""Changes of HDFS, which sends no events: folders are compared with their earlier state.

The modification time of a folder changes only with its direct entries. So folders that contain
other folders are listed in every round; a folder with files only is listed if its time has changed.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, Final, NamedTuple

from lumos.config.settings import StorageEventType
from lumos.config.sources import HdfsSourceSettings
from lumos.http.retries import RetryPolicy
from lumos.sources.addresses import roots_of
from lumos.sources.events.interface import (
    EventSource,
    EventSourceFailed,
    ObjectEvent,
    ReceivedMessage,
)
from lumos.storage.errors import StorageDenied, StorageFault, StorageMissing
from lumos.storage.hdfs import HdfsAccess, HdfsStorage
from lumos.storage.hdfs.client import HdfsStatus
from lumos.storage.http import STORAGE_RETRIES
from lumos.storage.interface import is_hidden
from lumos.storage.table_roots import LOG_FOLDERS

_CONCURRENCY: Final = 8
_MIN_INTERVAL: Final = 5.0
# Rounds take at most a fifth of the time, to limit the load on the name node.
_PAUSE_PER_SECOND: Final = 4.0
# By how much the clocks of the name node and of this machine may differ.
_CLOCK_SKEW: Final = 300.0


class _FolderState(NamedTuple):
    """The state of a folder in the last round: its modification time, subfolders and files.

    `folders` has the times of subfolders. `files` has the times and sizes of files, and is None for
    a folder without subfolders.
    """

    modified: int
    folders: dict[str, int]
    files: dict[str, tuple[int, int]] | None


class HdfsChanges(EventSource):
    """Changed files and folders below the paths of a source, detected by listing folders.

    In a folder without subfolders, a file that is appended to or overwritten is not noticed,
    because the modification time of its folder does not change.
    """

    is_durable: ClassVar[bool] = False

    def __init__(
        self,
        source: HdfsSourceSettings,
        *,
        interval: float = _MIN_INTERVAL,
        retries: RetryPolicy = STORAGE_RETRIES,
    ) -> None:
        self._roots = [root.rstrip("/") for root in roots_of(source)]
        self.name = ", ".join(self._roots)
        self._storage = HdfsStorage(HdfsAccess.of(source), retries=retries)
        self._interval = interval
        self._known: dict[str, _FolderState] = {}
        self._pending: dict[str, ObjectEvent] = {}
        self._started_at = 0.0
        self._next_at = 0.0
        self._number = 0
        self._threads = ThreadPoolExecutor(_CONCURRENCY, thread_name_prefix="hdfs-changes")
        self._is_closed = False

    def open(self) -> None:
        for root in self._roots:
            self._root_status(root)
        self._started_at = time.time()
        self._next_at = time.monotonic()

    def receive(self, wait: float) -> list[ReceivedMessage]:
        remaining = self._next_at - time.monotonic()
        if remaining > 0:
            time.sleep(min(wait, remaining))
        if time.monotonic() < self._next_at:
            return []
        started = time.monotonic()
        try:
            for root in self._roots:
                self._visit(root)
        finally:
            duration = time.monotonic() - started
            self._next_at = time.monotonic() + max(self._interval, _PAUSE_PER_SECOND * duration)
        if not self._pending:
            return []
        events, self._pending = tuple(self._pending.values()), {}
        self._number += 1
        return [ReceivedMessage(str(self._number), events=events, sent_at=time.time())]

    def acknowledge(self, receipts: Sequence[str]) -> None:
        """Nothing to do: each change is returned once."""

    def close(self) -> None:
        self._is_closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _visit(self, root: str) -> None:
        """Compare all folders below a root, one level after the other."""
        level = {root: self._root_status(root).modified}
        while level and not self._is_closed:
            to_list = [
                folder
                for folder, modified in level.items()
                if (known := self._known.get(folder)) is None
                or known.folders
                or known.modified != modified
            ]
            listings = self._threads.map(self._list, to_list)
            next_level: dict[str, int] = {}
            for folder, statuses in zip(to_list, listings, strict=True):
                if statuses is None:
                    continue
                state = _state(level[folder], statuses)
                for event in self._compare(folder, state):
                    self._pending[event.path] = event
                self._known[folder] = state
                next_level |= {f"{folder}/{name}": at for name, at in state.folders.items()}
            level = next_level

    def _compare(self, folder: str, state: _FolderState) -> Iterator[ObjectEvent]:
        before = self._known.get(folder)
        if before is None:
            # In the first round, only what has changed since the watcher was started.
            since = (self._started_at - _CLOCK_SKEW) * 1_000_000
            if state.modified >= since:
                yield _event(f"{folder}/", state.modified)
            return
        if state.files is None or before.files is None:
            # Before or now, the folder has no subfolders, so its files are not known.
            if state.modified != before.modified:
                yield _event(f"{folder}/", state.modified)
        else:
            for name in before.files.keys() | state.files.keys():
                after = state.files.get(name)
                if after != before.files.get(name):
                    yield _event(f"{folder}/{name}", after[0] if after else None)
        for name in before.folders.keys() - state.folders.keys():
            self._forget(f"{folder}/{name}")
            yield _event(f"{folder}/{name}/", None)
        for name in state.folders.keys() - before.folders.keys():
            yield _event(f"{folder}/{name}/", state.folders[name])

    def _forget(self, folder: str) -> None:
        state = self._known.pop(folder, None)
        for name in state.folders if state else ():
            self._forget(f"{folder}/{name}")

    def _list(self, folder: str) -> list[HdfsStatus] | None:
        """The entries of a folder; None if it vanished or may not be listed, as scans report."""
        client, path = self._storage.resolve(folder)
        try:
            return list(client.all_children(path))
        except (StorageMissing, StorageDenied):
            return None
        except StorageFault as problem:
            raise EventSourceFailed(f"{folder} cannot be listed: {problem}.") from None

    def _root_status(self, root: str) -> HdfsStatus:
        client, path = self._storage.resolve(root)
        try:
            return client.status(path)
        except StorageFault as problem:
            raise EventSourceFailed(f"{root} cannot be watched: {problem}.") from None


def _state(modified: int, statuses: Sequence[HdfsStatus]) -> _FolderState:
    folders = {
        each.name: each.modified
        for each in statuses
        if each.is_folder and (not is_hidden(each.name) or each.name in LOG_FOLDERS)
    }
    files = {each.name: (each.modified, each.size) for each in statuses if each.is_file}
    return _FolderState(modified, folders, files if folders else None)


def _event(path: str, modified: int | None) -> ObjectEvent:
    """The event of a change; `modified` is None for a deletion, whose time is not known."""
    if modified is None:
        return ObjectEvent(path, StorageEventType.DELETED)
    return ObjectEvent(path, StorageEventType.CREATED, modified / 1_000_000)
