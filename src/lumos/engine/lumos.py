"""The SDK: every verb of the command line as a method."""

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from lumos.config import Settings, find_file, load, write_starter
from lumos.config.check import ConfigReport, report
from lumos.config.written import check_free, write_sources
from lumos.engine.mirror import mirror_schemas
from lumos.engine.reports import (
    DiscoverReport,
    ExplainReport,
    IngestReport,
    ListedDataset,
    ListReport,
    SearchReport,
    SearchResult,
    ShowReport,
    StoreReport,
    UpgradeReport,
)
from lumos.engine.scanning import sections_of
from lumos.sources.addresses import normal
from lumos.store import Database, DatasetFilter, Facets, Listener, NoStore, Store
from lumos.store.database import HEAD

if TYPE_CHECKING:
    from lumos.engine.doctor import DoctorReport
    from lumos.engine.ingest import Announce
    from lumos.engine.schemas import Schemas
    from lumos.engine.schemas.reports import HistoryReport

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
        self._variables = os.environ if environment is None else environment
        file = find_file(Path.cwd(), self._variables) if config is None else Path(config)
        self.settings: Settings = load(file, environment=self._variables, overrides=overrides or {})
        self._listeners: list[Listener] = []

    @staticmethod
    def init(file: str | Path = "lumos.yaml", *, force: bool = False) -> Path:
        """Writes a commented starter configuration; gives its path."""
        write_starter(Path(file), force=force)
        return Path(file).absolute()

    def config_check(self) -> ConfigReport:
        """The settings in force, secrets masked, and what of them this version does not use."""
        return report(self.settings, self._variables)

    def ingest(
        self,
        *paths: str | Path,
        accept_removals: bool = False,
        column_stats: bool = False,
        announce: "Announce" = lambda _step, **_progress: None,
    ) -> IngestReport:
        """Scans the paths, or else the configured sources, and records what changed.

        `accept_removals` believes that datasets are gone, however many they are. `column_stats`
        also records what footers say of each column.
        """
        from lumos.engine.ingest import ingest

        ingested = ingest(
            self.settings,
            [str(path) for path in paths],
            store=lambda: Store.open(self.database, create=True, listeners=self._listeners),
            state=self.state_uri,
            announce=announce,
            accept_removals=accept_removals,
            column_stats=column_stats,
        )
        if self.settings.storage.backend == "file":
            changed = [each.urn for each in ingested.datasets if each.change != "unchanged"]
            mirror_schemas(self._store(), changed, folder=Path(str(self.settings.storage.path)))
        return ingested

    def discover(
        self,
        *paths: str | Path,
        write_config: str | Path | None = None,
        force: bool = False,
        announce: "Announce" = lambda _step, **_progress: None,
    ) -> DiscoverReport:
        """What lies in some paths, without recording it; may write a configuration for them."""
        from lumos.engine.discover import discover

        named = [str(path) for path in paths]
        target = None if write_config is None else Path(write_config)
        if target is not None:
            check_free(target, force=force)
        found = discover(self.settings, named, state=self.state_uri, announce=announce)
        if target is None:
            return found
        lines = [
            f"{each.location.uri if each.location else each.urn}  {each.format}"
            for each in found.datasets
        ]
        write_sources(target, sections_of(self.settings, named), found=lines, force=force)
        return msgspec.structs.replace(found, config=str(target))

    def search(
        self,
        text: str,
        *,
        platform: str | None = None,
        owner: str | None = None,
        tag: str | None = None,
        format: str | None = None,
        limit: int = 20,
    ) -> SearchReport:
        """The datasets that hold every word of a text, the best first."""
        facets = Facets(platform=platform, owner=owner, tag=tag, format=format)
        datasets, hits = self._store().search(text, facets, limit=limit)
        return SearchReport(
            query=text,
            total=hits.total,
            all_counted=hits.all_counted,
            results=tuple(map(SearchResult.of, datasets)),
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
        found = store.find(urn)
        return ShowReport.of(store.get(found), state=store.state(found))

    def history(self, urn: str) -> "HistoryReport":
        """Every schema version of a dataset, newest first; the same as `schema.history`."""
        return self.schema.history(urn)

    @cached_property
    def schema(self) -> "Schemas":
        """Schemas: comparing them, their history, predictions, and schemas as code."""
        from lumos.engine.schemas import Schemas

        return Schemas(lambda: self.database)

    def explain(self, path: str | Path) -> ExplainReport:
        """What was decided about a file or folder, by which rule, and why."""
        from lumos.engine.explain import explain

        return explain(
            self.settings,
            str(path),
            store=lambda: None if self.database.is_empty() else self._store(),
            state=self.state_uri,
        )

    def doctor(self, *, announce: Callable[[str], None] = lambda _step: None) -> "DoctorReport":
        """What of the installation and the configuration works, and what to do about the rest."""
        from lumos.engine.doctor import examine

        return examine(self.settings, lambda: self.database, announce)

    def upgrade_store(self) -> UpgradeReport:
        """Migrates the store to the newest revision."""
        database = self._existing_database()
        before, after = database.upgrade()
        if before != after:
            Store.open(database).rebuild_search()
        return UpgradeReport(store=database.place, before=before, after=after)

    def store_status(self) -> StoreReport:
        """Where the store lies, its revision and how much it holds."""
        database = self._existing_database()
        revision = database.revision()
        return StoreReport(
            store=database.place,
            revision=revision,
            newest_revision=HEAD,
            rows=Store(database).counts() if revision == HEAD else {},
        )

    @cached_property
    def database(self) -> Database:
        """The database of the store: storage.path, or the server that storage names."""
        storage = self.settings.storage
        if storage.connection_string is not None:
            return Database.postgres(storage.connection_string.reveal())
        assert storage.path is not None, "every file backend has a default path"
        path = Path(storage.path)
        is_folder = storage.backend == "file" or path.is_dir()
        return Database.sqlite(path / _FILE if is_folder else path)

    @property
    def state_uri(self) -> str:
        """Where manifests of scans lie: state_uri, or a folder beside the store."""
        if self.settings.state_uri:
            return normal(self.settings.state_uri)
        if self.settings.storage.backend == "postgres":
            return str(Path(self.settings.origin.folder or Path.cwd()) / ".lumos" / "state")
        return str(Path(self.database.place).with_suffix(".state"))

    def _existing_database(self) -> Database:
        if self.database.is_empty():
            raise NoStore(self.database.place)
        return self.database

    def _store(self) -> Store:
        return Store.open(self.database, listeners=self._listeners)
