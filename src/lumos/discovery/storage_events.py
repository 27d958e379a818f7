"""The service behind `lumos watch setup`, `teardown` and `status`."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from lumos.config import Settings
from lumos.config.sources import SourceSettings
from lumos.sources.addresses import access_of
from lumos.store.configured import ConfiguredStore

if TYPE_CHECKING:
    from lumos.discovery.watch_status import WatchStatusFiles, WatchStatusReport
    from lumos.sources.events.setup_report import EventSetupReport


class StorageEvents:
    """Sets up the events of watched sources, and reports how far watchers are behind them."""

    def __init__(self, settings: Callable[[], Settings], store: ConfiguredStore) -> None:
        self._settings = settings
        self._store = store

    def setup(self, address: str, *, dry_run: bool = False) -> "EventSetupReport":
        """Let an S3 bucket or prefix, or a PostgreSQL database, send events; safe to repeat.

        Creates a queue and a notification of the bucket, or an event trigger of the database.
        Other notifications of the bucket are kept.
        """
        from lumos.sources.events.factory import setup_events

        return setup_events(address, self._sources, dry_run=dry_run)

    def teardown(self, address: str, *, dry_run: bool = False) -> "EventSetupReport":
        """Remove only what `setup` has created."""
        from lumos.sources.events.factory import teardown_events

        return teardown_events(address, self._sources, dry_run=dry_run)

    def status(self) -> "WatchStatusReport":
        """The lag of watchers behind the events of their sources, and their counts of events."""
        return self.status_files().read()

    def status_files(self) -> "WatchStatusFiles":
        """The files in which watchers report their status."""
        from lumos.discovery.watch_status import WatchStatusFiles

        state = self._store.state_uri
        return WatchStatusFiles(state, access_of(state, self._sources))

    @property
    def _sources(self) -> list[SourceSettings]:
        settings = self._settings()
        watched = (each.source for each in settings.change_detection.sources)
        return [*settings.sources, *watched]
