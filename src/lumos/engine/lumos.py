"""The SDK: every verb of the command line as a method."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from lumos.config import Settings, find_file, load
from lumos.engine.reports import (
    HistoryReport,
    IngestReport,
    ListedDataset,
    ListReport,
    ShowReport,
    StoreReport,
    UpgradeReport,
    VersionReport,
)
from lumos.errors import MisuseError
from lumos.store import DatasetFilter, NoStore, Store
from lumos.store.database import HEAD, Database

_FILE = "lumos.db"


class Lumos:
    """Lumos with one configuration and one store.

    Without `config`, the file named by LUMOS_CONFIG or `lumos.yaml` in the working folder is
    used where there is one, and the defaults otherwise.
    """

    def __init__(
        self,
        config: str | Path | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        overrides: Mapping[str, object] | None = None,
    ) -> None:
        variables = os.environ if environment is None else environment
        file = find_file(Path.cwd(), variables) if config is None else Path(config)
        self.settings: Settings = load(file, environment=variables, overrides=overrides or {})

    def ingest(
        self, *paths: str | Path, announce: Callable[[str], None] = lambda _step: None
    ) -> IngestReport:
        """Scans the paths, or else the configured sources, and records what changed."""
        from lumos.engine.ingest import ingest

        return ingest(
            self.settings,
            [str(path) for path in paths],
            store=lambda: Store.open(self.store_file, create=True),
            state=self.state_uri,
            announce=announce,
        )

    def list(
        self,
        *,
        platform: str | None = None,
        format: str | None = None,
        contains: str | None = None,
        limit: int | None = None,
    ) -> ListReport:
        """The datasets in the store."""
        wanted = DatasetFilter(platform=platform, format=format, contains=contains, limit=limit)
        return ListReport(datasets=tuple(map(ListedDataset.of, self._store().list(wanted))))

    def show(self, urn: str) -> ShowReport:
        """All that is known about a dataset."""
        store = self._store()
        return ShowReport.of(store.get(store.find(urn)))

    def history(self, urn: str) -> HistoryReport:
        """Every schema version of a dataset, newest first."""
        store = self._store()
        dataset = store.get(store.find(urn))
        events = {event.event_id: event for event in store.events(dataset.urn)}
        records = reversed(store.history(dataset.urn))
        return HistoryReport(
            urn=dataset.urn,
            name=dataset.name,
            versions=tuple(VersionReport.of(record, events[record.event_id]) for record in records),
        )

    def upgrade_store(self) -> UpgradeReport:
        """Migrates the store to the newest revision."""
        database = Database.sqlite(self._existing_store_file())
        before, after = database.upgrade()
        return UpgradeReport(store=database.place, before=before, after=after)

    def store_status(self) -> StoreReport:
        """Where the store lies, its revision and how much it holds."""
        database = Database.sqlite(self._existing_store_file())
        return StoreReport(
            store=database.place,
            revision=database.revision(),
            newest_revision=HEAD,
            rows=Store(database).counts() if database.revision() == HEAD else {},
        )

    @property
    def store_file(self) -> Path:
        """Where the store lies: storage.path, or .lumos/lumos.db beside the configuration."""
        storage = self.settings.storage
        if storage.backend != "sqlite":
            raise MisuseError(
                f"storage.backend '{storage.backend}' is not available in this version. "
                "Use sqlite, the default."
            )
        assert storage.path is not None, "every file backend has a default path"
        path = Path(storage.path)
        return path / _FILE if path.is_dir() else path

    @property
    def state_uri(self) -> str:
        """Where manifests of scans lie: state_uri, or a folder beside the store."""
        return self.settings.state_uri or str(self.store_file.parent / "state")

    def _existing_store_file(self) -> Path:
        if not self.store_file.exists():
            raise NoStore(self.store_file)
        return self.store_file

    def _store(self) -> Store:
        return Store.open(self.store_file)
