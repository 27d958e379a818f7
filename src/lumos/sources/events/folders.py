"""Events of local folders, from inotify and its counterparts on other systems."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final

from lumos.config.settings import StorageEventType
from lumos.sources.events.interface import (
    EventSource,
    EventSourceFailed,
    ObjectEvent,
    ReceivedMessage,
)

# In milliseconds: changes are returned as soon as a step passes without another change, and at the
# latest after the debounce time.
_DEBOUNCE: Final = 200
_STEP: Final = 50
_TIMEOUT: Final = 200
# With O_PATH, Linux opens a folder without the permission to read it.
_OPEN: Final = getattr(os, "O_PATH", os.O_RDONLY)


class FolderEvents(EventSource):
    """The events of folders while the process runs; missed events are not delivered later."""

    is_durable: ClassVar[bool] = False

    def __init__(self, name: str, folders: Sequence[str]) -> None:
        self.name = name
        self._folders = folders
        self._changes: Iterator[set[tuple[Any, str]]] | None = None
        self._first: set[tuple[Any, str]] = set()
        self._descriptors: dict[str, int] = {}
        self._number = 0
        self._has_failed = False

    def open(self) -> None:
        try:
            from watchfiles import watch
        except ImportError:
            raise EventSourceFailed(
                "Events of local folders need watchfiles: pip install 'lumos[watch]'"
            ) from None
        for folder in self._folders:
            # A folder that does not exist yet is opened once it exists.
            with suppress(OSError):
                self._descriptors[folder] = os.open(folder, _OPEN)
        # Names that the library ignores by default, such as .git, may be data here.
        self._changes = watch(
            *self._folders,
            watch_filter=None,
            yield_on_timeout=True,
            raise_interrupt=False,
            ignore_permission_denied=True,
            debounce=_DEBOUNCE,
            step=_STEP,
            rust_timeout=_TIMEOUT,
        )
        try:
            # Watching begins with the first step of the generator.
            self._first = next(self._changes, set())
        except (OSError, RuntimeError) as problem:
            self.close()
            raise EventSourceFailed(_explain(self.name, problem)) from None

    def receive(self, wait: float) -> list[ReceivedMessage]:  # noqa: ARG002 - watchfiles waits
        if self._changes is None:
            self.open()
        assert self._changes is not None
        changes, self._first = self._first, set()
        try:
            changes = changes or next(self._changes)
        except (OSError, RuntimeError, StopIteration) as problem:
            self.close()
            self._has_failed = True
            raise EventSourceFailed(_explain(self.name, problem)) from None
        paths = {path for _, path in changes}
        if any(map(self._is_replaced, self._folders)):
            # The kernel keeps watching a folder that was deleted or moved away.
            self.close()
            self._has_failed = True
            self.open()
        if self._has_failed:
            # Changes in the meantime are unknown.
            paths, self._has_failed = {*paths, *self._folders}, False
        if not paths:
            return []
        self._number += 1
        now = time.time()
        events = tuple(event for path in sorted(paths) for event in _to_events(path, now))
        return [ReceivedMessage(str(self._number), events=events, sent_at=now)]

    def acknowledge(self, receipts: Sequence[str]) -> None:
        """Nothing to do: the kernel delivers each event once."""

    def close(self) -> None:
        if self._changes is not None:
            self._changes.close()  # type: ignore[attr-defined]
            self._changes = None
        while self._descriptors:
            os.close(self._descriptors.popitem()[1])

    def _is_replaced(self, folder: str) -> bool:
        """Whether the path leads to another folder than when it was opened.

        Its inode number is not reused while a descriptor is open.
        """
        descriptor = self._descriptors.get(folder)
        try:
            status = os.stat(folder)
        except OSError:
            return descriptor is not None
        return descriptor is None or not os.path.samestat(status, os.fstat(descriptor))


def _to_events(path: str, now: float) -> Iterator[ObjectEvent]:
    if os.path.isdir(path):
        # Files that were written before the new folder was watched have no events.
        yield ObjectEvent(f"{path}/", StorageEventType.CREATED, now)
    elif os.path.lexists(path):
        yield ObjectEvent(path, StorageEventType.CREATED, now)
    else:
        # The deleted path may have been a file or a folder.
        yield ObjectEvent(path, StorageEventType.DELETED, now)
        yield ObjectEvent(f"{path}/", StorageEventType.DELETED, now)


def _explain(name: str, problem: Exception) -> str:
    text = " ".join(str(problem).split())
    if "limit" in text:
        step = "Raise the limit: sysctl fs.inotify.max_user_watches=1048576"
    else:
        step = "Use 'watch_mode: polling' for this source."
    return f"{name} cannot be watched by events: {text}. {step}"
