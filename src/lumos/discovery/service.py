"""The service behind `lumos ingest`, `discover`, `watch` and `explain`."""

import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from lumos.actor import acting_as, current_actor
from lumos.catalogs.auto_publisher import AutoPublisher
from lumos.config import Settings
from lumos.config.sources import SourceSettings
from lumos.discovery.reports import DiscoverReport, ExplainReport, IngestReport
from lumos.model.change import ChangeEvent
from lumos.progress import Progress, no_progress
from lumos.schemas.changes import EventReport, event_report
from lumos.store.configured import ConfiguredStore

if TYPE_CHECKING:
    from lumos.discovery.ingest import MessageSender, ReadRecorder, RowProfiler
    from lumos.discovery.storage_events import StorageEvents
    from lumos.discovery.watcher import WatchReport

EventSubscription = Callable[[Callable[[ChangeEvent], object]], AbstractContextManager[None]]


class DiscoveryService:
    """Scans sources, records and publishes changes, and explains how files are grouped.

    `settings` returns the current settings, which `lumos hint add` may change. `subscribe` returns
    a context in which a function is called for each recorded change.
    """

    def __init__(
        self,
        settings: Callable[[], Settings],
        store: ConfiguredStore,
        *,
        events: "StorageEvents",
        publisher: AutoPublisher,
        sender: "Callable[[], MessageSender]",
        profiler: "Callable[[], RowProfiler]",
        subscribe: EventSubscription,
        record_reads: "ReadRecorder | None" = None,
    ) -> None:
        self._current_settings = settings
        self._store = store
        self._events = events
        self._publisher = publisher
        self._sender = sender
        self._profiler = profiler
        self._subscribe = subscribe
        self._record_reads = record_reads

    def ingest(
        self,
        paths: Sequence[str],
        *,
        accept_removals: bool,
        column_stats: bool,
        profile: bool,
        progress: Progress,
    ) -> IngestReport:
        """Scan the paths, or else the configured sources; record and publish changes."""
        return self._scan(
            paths,
            publisher=self._publisher,
            profiler=self._profiler() if profile else None,
            accept_removals=accept_removals,
            column_stats=column_stats,
            progress=progress,
        )

    def scan(
        self, paths: Sequence[str], *, sections: Sequence[SourceSettings], progress: Progress
    ) -> IngestReport:
        """Scan and record without publishing."""
        return self._scan(paths, sections=sections, progress=progress)

    def watch(
        self,
        *,
        once: bool,
        interval: float | None,
        on_event: Callable[[EventReport], None] | None,
        stop: threading.Event,
        begun: Callable[[str, float], None],
        started: Callable[[], None],
    ) -> "WatchReport":
        """Scan the watched sources after events or repeatedly; record and publish changes."""
        from lumos.discovery.watcher import SourceWatcher

        watcher = SourceWatcher(
            self._current_settings(),
            scan=self._scan_unattended,
            scan_changed=self._scan_unattended,
            send=lambda: self._sender().wake(),
            begun=begun,
            started=started,
            report_status=self._events.status_files().write,
            state=self._store.state_uri,
        )
        # Fail now if the store cannot be opened, because every scan would fail later.
        self._store.create()
        with self._reporting(on_event), self._publisher.backing_off():
            return watcher.run(stop, once=once, interval=interval)

    def discover(
        self,
        paths: Sequence[str],
        *,
        write_config: Path | None,
        force: bool,
        progress: Progress,
    ) -> DiscoverReport:
        """Report the datasets of the paths without recording them."""
        from lumos.discovery.preview import discover

        return discover(
            self._settings,
            paths,
            state=self._store.state_uri,
            write_config=write_config,
            force=force,
            progress=progress,
        )

    def explain(self, path: str) -> ExplainReport:
        """Explain which dataset a file or folder belongs to, by which rule, and why."""
        from lumos.discovery.explain import explain

        return explain(
            self._settings, path, store=self._store.open_existing, state=self._store.state_uri
        )

    @property
    def _settings(self) -> Settings:
        """The current settings with the hints in the store."""
        from lumos.discovery.hints.listing import with_stored_hints

        return with_stored_hints(self._current_settings(), self._store.open_existing())

    def _scan_unattended(
        self, section: SourceSettings, changed: Collection[str] | None = None
    ) -> IngestReport:
        with acting_as(replace(current_actor(), kind="watcher")):
            return self._scan(
                [],
                sections=[section],
                publisher=self._publisher,
                unattended=True,
                changed=changed,
            )

    def _scan(
        self,
        paths: Sequence[str],
        *,
        sections: Sequence[SourceSettings] = (),
        publisher: AutoPublisher | None = None,
        profiler: "RowProfiler | None" = None,
        accept_removals: bool = False,
        column_stats: bool = False,
        unattended: bool = False,
        changed: Collection[str] | None = None,
        progress: Progress = no_progress,
    ) -> IngestReport:
        from lumos.discovery.ingest import ingest

        settings = self._settings
        return ingest(
            settings,
            paths,
            open_store=self._store.create,
            state=self._store.state_uri,
            progress=progress,
            profiler=profiler,
            publisher=publisher,
            sender=self._sender() if settings.notifications.destinations else None,
            record_reads=self._record_reads,
            accept_removals=accept_removals,
            column_stats=column_stats,
            sections=sections,
            unattended=unattended,
            changed=changed,
        )

    def _reporting(
        self, on_event: Callable[[EventReport], None] | None
    ) -> AbstractContextManager[None]:
        if on_event is None:
            return nullcontext()
        log = self._store.open().change_log
        return self._subscribe(lambda event: on_event(event_report(log, event)))
