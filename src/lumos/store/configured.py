"""The store of a configuration: its database, the folders next to it, and opening it."""

import logging
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from lumos.config import Settings
from lumos.sources.addresses import canonical_address
from lumos.store.database import Database
from lumos.store.errors import StoreUnreachable
from lumos.store.store import Store
from lumos.store.transaction import Listener

_FILE: Final = "lumos.db"
_RETRY_SECONDS: Final = 1.0
_log = logging.getLogger(__name__)


class ConfiguredStore:
    """Opens the store of the setting `storage`; `listeners` are notified of every change."""

    def __init__(self, settings: Settings, listeners: Sequence[Listener]) -> None:
        self._settings = settings
        self.listeners = tuple(listeners)

    @cached_property
    def database(self) -> Database:
        """A SQLite file or a PostgreSQL server."""
        storage = self._settings.storage
        if storage.connection_string is not None:
            return Database.postgres(storage.connection_string.reveal())
        assert storage.path is not None, "every file backend has a default path"
        path = Path(storage.path)
        is_folder = storage.backend == "file" or path.is_dir()
        return Database.sqlite(path / _FILE if is_folder else path)

    @property
    def state_uri(self) -> str:
        """The location of scan manifests: `state_uri`, or a folder next to the store."""
        if self._settings.state_uri:
            return canonical_address(self._settings.state_uri, self._settings.sources)
        return str(self.sidecar_folder("state"))

    def sidecar_folder(self, name: str) -> Path:
        """A folder next to the store, or next to the configuration if the store is on a server."""
        if self._settings.storage.backend == "postgres":
            return Path(self._settings.origin.folder or Path.cwd()) / ".lumos" / name
        return Path(self.database.location).with_suffix(f".{name}")

    def open(self) -> Store:
        """The store; raises NoStore if there is none."""
        return Store.open(self.database, listeners=self.listeners)

    def open_existing(self) -> Store | None:
        """The store, or None if there is none."""
        return None if self.database.is_empty() else self.open()

    def create(self) -> Store:
        """The store, created if there is none."""
        return Store.open(self.database, create=True, listeners=self.listeners)


def create_when_reachable(create: Callable[[], Store], *, seconds: float = 60) -> Store:
    """Create the store as soon as its server answers, or raise StoreUnreachable after a while.

    Servers and workers are often started together with the database.
    """
    deadline = monotonic() + seconds
    while True:
        try:
            return create()
        except StoreUnreachable as problem:
            if monotonic() >= deadline:
                raise
            _log.warning("Waiting up to %.0f s: %s", deadline - monotonic(), problem)
            sleep(_RETRY_SECONDS)
