"""The status of watching by events, as `lumos watch status` prints it."""

import hashlib
import logging
from datetime import UTC, datetime
from typing import Final

import msgspec

from lumos.model.report import FORMAT_VERSION, Report
from lumos.storage import StorageAccess, storage_of

_FOLDER: Final = "watch"
_log = logging.getLogger(__name__)


class EventCounts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """Counts since the start of the watcher; of messages unless stated otherwise.

    `foreign` messages are about objects that are not watched, `ignored` messages are not about
    objects. `missed` are changes that a scan of the whole source found and no event had reported.
    """

    received: int = 0
    delivered_again: int = 0
    events: int = 0
    acknowledged: int = 0
    foreign: int = 0
    ignored: int = 0
    malformed: int = 0
    batches: int = 0
    failed_batches: int = 0
    expired_batches: int = 0
    reconciliations: int = 0
    missed: int = 0


class EventStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of an event source: its lag, its unprocessed messages, and its counts so far.

    Lag is the time from the change of an object until its effect was stored, and at least the age
    of the oldest message that the watcher holds. `buffered` messages are in the memory of the
    watcher; `waiting`, `in_progress` and `dead` ones in the queue. `problem` is why no events can
    be received at present, so that the sources are polled.
    """

    name: str
    sources: tuple[str, ...]
    lag_seconds: float | None = None
    lag_p95_seconds: float | None = None
    buffered: int = 0
    waiting: int | None = None
    in_progress: int | None = None
    dead: int | None = None
    problem: str = ""
    last_event_at: float | None = None
    counts: EventCounts = EventCounts()
    updated_at: datetime | None = None


class WatchStatusReport(Report, frozen=True, kw_only=True):
    """The event sources of all watchers of the store, by name."""

    format_version: str = FORMAT_VERSION
    event_sources: tuple[EventStatus, ...] = ()


class WatchStatusFiles:
    """The status of each event source, as a file in the state folder."""

    def __init__(self, state_uri: str, access: StorageAccess) -> None:
        self._folder = f"{state_uri.rstrip('/')}/{_FOLDER}"
        self._storage = storage_of(self._folder, access)

    def write(self, status: EventStatus) -> None:
        """Replace the status of an event source; a failure is logged, because watching goes on."""
        name = hashlib.blake2b(status.name.encode(), digest_size=8).hexdigest()
        status = msgspec.structs.replace(status, updated_at=datetime.now(UTC))
        try:
            self._storage.write(f"{self._folder}/{name}.json", msgspec.json.encode(status))
        except OSError as problem:
            _log.warning("The status of %s cannot be written: %s", status.name, problem)

    def read(self) -> WatchStatusReport:
        """The status of all event sources."""
        statuses = []
        try:
            names = self._storage.files(self._folder)
        except OSError as problem:
            _log.warning("The status of watchers cannot be read: %s", problem)
            return WatchStatusReport()
        for name in names:
            if not name.endswith(".json"):
                continue
            try:
                data = self._storage.read(f"{self._folder}/{name}")
                statuses.append(msgspec.json.decode(data, type=EventStatus))
            except (OSError, msgspec.MsgspecError) as problem:
                _log.warning("A status of the watcher cannot be read: %s", problem)
        return WatchStatusReport(event_sources=tuple(sorted(statuses, key=lambda each: each.name)))
