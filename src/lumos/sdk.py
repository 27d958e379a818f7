"""The SDK: every verb of the command line as a method."""

import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lumos.catalogs.auto_publisher import AutoPublisher
from lumos.catalogs.configured import platform_of
from lumos.config import Settings, find_file, load, write_starter
from lumos.config.check import ConfigReport, report
from lumos.config.secret import mask_arguments
from lumos.config.starter import InitReport
from lumos.datasets.reports import ListedDataset, ListReport, SearchReport, SearchResult, ShowReport
from lumos.discovery.reports import DiscoverReport, ExplainReport, IngestReport
from lumos.impact.blast_radius import BlastRadiusTracker
from lumos.model.change import EventType
from lumos.model.urn import display_names
from lumos.notifications.handlers import ChangeHandler, Handlers
from lumos.progress import Progress, no_progress
from lumos.schemas.mirror import mirror_schemas
from lumos.store import Database, DatasetFilter, Facets, Listener, Store
from lumos.store.locations import database_of, folder_beside, state_uri_of, status_of, upgraded
from lumos.store.reports import StoreReport, UpgradeReport

if TYPE_CHECKING:
    from lumos.annotations.service import Annotations
    from lumos.annotations.writer import AnnotationWriter
    from lumos.catalogs.migration.service import Migrations
    from lumos.cost.cost_sources import CostSources
    from lumos.cost.service import Costs
    from lumos.discovery.hints.service import Hints
    from lumos.discovery.watcher import WatchReport
    from lumos.doctor import DoctorReport
    from lumos.impact.service import ImpactService
    from lumos.lineage.service import LineageService
    from lumos.notifications.service import NotificationSender, NotificationService
    from lumos.profiles.service import Profiles
    from lumos.schemas.changes import ChangesReport, EventReport, ForgetReport
    from lumos.schemas.inventory import Estates
    from lumos.schemas.reports import HistoryReport
    from lumos.schemas.service import Schemas
    from lumos.schemas.versions.service import VersionService
    from lumos.schemas.versions.steps import Steps
    from lumos.snapshots.service import Snapshots
    from lumos.usage.service import UsageService


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
        self._file = find_file(Path.cwd(), self._variables) if config is None else Path(config)
        self._overrides = overrides or {}
        self.settings: Settings = self._load()
        self._handlers = Handlers()
        self._listeners: list[Listener] = [BlastRadiusTracker(), self._handlers]
        if self.settings.notifications.changes:
            from lumos.notifications.service import Notifier

            self._listeners.append(Notifier(self.settings.notifications.changes, self.courier))

    def _load(self, text: str | None = None) -> Settings:
        """The settings as they are now, or with another text in the configuration file."""
        return load(self._file, environment=self._variables, overrides=self._overrides, text=text)

    @staticmethod
    def init(file: str | Path = "lumos.yaml", *, force: bool = False) -> InitReport:
        """Writes a commented starter configuration."""
        return write_starter(Path(file), force=force)

    def config_check(self) -> ConfigReport:
        """The settings in force, secrets masked, and what of them this version does not use."""
        return report(self.settings, self._variables)

    def ingest(
        self,
        *paths: str | Path,
        accept_removals: bool = False,
        column_stats: bool = False,
        profile: bool = False,
        progress: Progress = no_progress,
    ) -> IngestReport:
        """Scans the paths, or else the configured sources, and records what changed.

        `accept_removals` believes that datasets are gone, however many they are. `column_stats`
        also records what footers say of each column, and `profile` what the rows say of those
        datasets that are new, changed or not measured whole yet.
        """
        return self._ingest(
            [str(path) for path in paths],
            progress=progress,
            accept_removals=accept_removals,
            column_stats=column_stats,
            profiler=self.profiles if profile else None,
        )

    def watch(
        self,
        *,
        once: bool = False,
        interval: float | None = None,
        tell: Callable[["EventReport"], None] | None = None,
        stop: threading.Event | None = None,
        begun: Callable[[str, float], None] = lambda _source, _interval: None,
        started: Callable[[], None] = lambda: None,
    ) -> "WatchReport":
        """Looks at the watched sources again and again until `stop` is set, or `once`.

        What is found is recorded, told to `tell` and the handlers of `on_change`, and sent as
        messages. `interval` overrules the polling intervals of all sources. `begun` is called with
        each source and its interval, `started` whenever Spark was started, which takes SIGINT for
        itself.
        """
        from lumos.discovery.watcher import SourceWatcher
        from lumos.schemas.changes import report_of

        told = Handlers()
        if tell is not None:
            told.add(
                lambda event: tell(report_of(self._store().change_log, event)),
                types=(),
                breaking=None,
                dataset=None,
            )
        watcher = SourceWatcher(
            self.settings,
            scan=lambda section: self._ingest([], sections=[section], unattended=True),
            send=self.courier.wake,
            begun=begun,
            started=started,
        )
        # A store that cannot be used is a reason to end now, not to try again for ever.
        Store.open(self.database, create=True)
        self._listeners.append(told)
        try:
            with self._herald.resting():
                return watcher.run(stop or threading.Event(), once=once, interval=interval)
        finally:
            self._listeners.remove(told)

    def _ingest(self, paths: Sequence[str], **options: Any) -> IngestReport:
        """Scan and record, then publish to the configured catalog."""
        return self._scan(paths, publisher=self._herald, **options)

    def _scan(self, paths: Sequence[str], **options: Any) -> IngestReport:
        """Scan and record without publishing."""
        from lumos.discovery.ingest import ingest

        return ingest(
            self._settings_with_hints(),
            paths,
            open_store=self._made_store,
            state=self.state_uri,
            sender=self.courier if self.settings.notifications.channels else None,
            **{"progress": no_progress, **options},
        )

    def discover(
        self,
        *paths: str | Path,
        write_config: str | Path | None = None,
        force: bool = False,
        progress: Progress = no_progress,
    ) -> DiscoverReport:
        """What lies in some paths, without recording it; may write a configuration for them."""
        from lumos.discovery.preview import discover

        return discover(
            self._settings_with_hints(),
            [str(path) for path in paths],
            state=self.state_uri,
            write_config=None if write_config is None else Path(write_config),
            force=force,
            progress=progress,
        )

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
        """The datasets that hold every word of a text, the best first, with matching fields."""
        facets = Facets(platform=platform, owner=owner, tag=tag, format=format)
        datasets, hits = self._store().search(text, facets, limit=limit)
        return SearchReport(
            query=mask_arguments([text], text),
            total=hits.total,
            all_counted=hits.all_counted,
            results=tuple(
                SearchResult.of(dataset, hits.fields.get(dataset.urn, ())) for dataset in datasets
            ),
            suggestion=hits.suggestion,
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

    def data_platforms(self) -> tuple[str, ...]:
        """Where the datasets in the store lie: s3, file, postgres and the like."""
        return self._store().data_platforms()

    def display_names(self, urns: Collection[str]) -> dict[str, str]:
        """What screens call datasets: names, or the ends of paths where names are shared."""
        store = self._existing_store()
        return display_names(urns, {} if store is None else store.names_like(urns))

    def show(self, urn: str) -> ShowReport:
        """All that is known about a dataset."""
        from lumos.schemas.changes import last_split

        store = self._store()
        found = store.find(urn)
        state = store.state(found)
        split = last_split(store, found) if state == "split" else None
        return ShowReport.of(store.get(found), state=state, split=split)

    def history(self, urn: str, *, as_of: str | None = None) -> "HistoryReport":
        """Every schema version of a dataset, newest first; the same as `schema.history`."""
        return self.schema.history(urn, as_of=as_of)

    @cached_property
    def estates(self) -> "Estates":
        """Snapshots of all schemas, and comparing two of them on Spark."""
        from lumos.schemas.inventory import Estates

        return Estates(self.settings, self._store)

    @cached_property
    def snapshot(self) -> "Snapshots":
        """Portable snapshots of the store and of catalogs."""
        from lumos.snapshots.service import Snapshots

        return Snapshots(
            self.settings,
            self._store,
            make_store=self._made_store,
            mirror=self._written,
        )

    @cached_property
    def migration(self) -> "Migrations":
        """Moving what one catalog holds into another, and telling catalogs what sources hold."""
        from lumos.catalogs.migration.service import Migrations

        return Migrations(
            self.settings,
            lambda: self.snapshot,
            self._store,
            make_store=self._made_store,
            scan=self._scan,
            folder=lambda: folder_beside(self.settings, self.database, "migrations"),
        )

    @cached_property
    def lineage(self) -> "LineageService":
        """How datasets hang together: from SQL, dbt, OpenLineage, declared edges and people."""
        from lumos.lineage.service import LineageService

        return LineageService(
            self.settings,
            store=self._store,
            make_store=self._made_store,
            annotations=lambda: self.scribe,
            usage=lambda: self.usage,
            publishing=self._herald.telling,
            is_empty=self.database.is_empty,
            store_folder=None
            if (path := self.settings.storage.path) is None
            else Path(path).parent,
        )

    @cached_property
    def impact(self) -> "ImpactService":
        """Who breaks when a schema changes, where, and why."""
        from lumos.impact.service import ImpactService

        return ImpactService(self.settings, self._store)

    @cached_property
    def schema(self) -> "Schemas":
        """Schemas: comparing them, their history, predictions, and schemas as code."""
        from lumos.schemas.service import Schemas

        return Schemas(self._store)

    def changes(
        self,
        *,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        types: Iterable[EventType | str] = (),
        breaking: bool = False,
        dataset: str | None = None,
        limit: int | None = None,
    ) -> "ChangesReport":
        """What happened to datasets, newest first, and how much of it breaks consumers.

        Times are as in `7d`, `2024-01-15` or `2024-01-15T10:30Z`; `dataset` is a pattern.
        """
        from lumos.schemas.changes import ChangesReport, Tally

        tally = Tally(
            self.iter_changes(
                since=since, until=until, types=types, breaking=breaking, dataset=dataset,
                limit=limit,
            )
        )  # fmt: skip
        return ChangesReport(events=tuple(tally), summary=tally.summary)

    def iter_changes(
        self,
        *,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        types: Iterable[EventType | str] = (),
        breaking: bool = False,
        dataset: str | None = None,
        limit: int | None = None,
    ) -> "Iterator[EventReport]":
        """The events of `changes`, read from the store as they are asked for: for millions."""
        from lumos.schemas.changes import reports, wanted_events

        log = self._store().change_log
        wanted = wanted_events(
            log, since=since, until=until, types=types, breaking=breaking, dataset=dataset,
            limit=limit,
        )  # fmt: skip
        return reports(log, wanted)

    def on_change(
        self,
        handler: ChangeHandler,
        *,
        types: Iterable[EventType | str] = (),
        breaking: bool | None = None,
        dataset: str | None = None,
    ) -> ChangeHandler:
        """Calls a function for each change that this object records from now on.

        It is called after the change is safe, in the same thread, at most once. What it raises is
        logged and harms nothing. Gives the function back, so that this also decorates.
        """
        self._handlers.add(handler, types=types, breaking=breaking, dataset=dataset)
        return handler

    def forget_old_changes(self, older_than: str | timedelta | None = None) -> "ForgetReport":
        """Lets go of old events of new data; all other events stay for good.

        Without an age, storage.modified_retention_days decides.
        """
        from lumos.schemas.changes import forget_old_events

        days = self.settings.storage.modified_retention_days
        return forget_old_events(self._store(), older_than, days=days)

    @cached_property
    def version(self) -> "VersionService":
        """The two versions of datasets: which they are, and moving them."""
        from lumos.schemas.versions.service import VersionService

        return VersionService(self._store, self._steps)

    @cached_property
    def _steps(self) -> "Steps":
        from lumos.schemas.versions.steps import Steps

        return Steps(prefix=self.settings.cloud_version_prefix, written=self._written)

    @cached_property
    def _herald(self) -> AutoPublisher:
        return AutoPublisher(lambda: platform_of(self.settings), self._store)

    @cached_property
    def scribe(self) -> "AnnotationWriter":
        """Writes what people and reporters say of datasets."""
        from lumos.annotations.writer import AnnotationWriter

        return AnnotationWriter(
            self._store, self._steps, herald=self._herald, owner_rules=self.settings.owners
        )

    @cached_property
    def people(self) -> "Annotations":
        """Owners, tags, documentation, properties, terms: what people say of datasets."""
        from lumos.annotations.service import Annotations

        return Annotations(self.settings, self.scribe)

    @cached_property
    def usage(self) -> "UsageService":
        """Who read what and when, and what nobody reads."""
        from lumos.usage.service import UsageService

        return UsageService(
            self.settings,
            self._store,
            self._made_store,
            self.state_uri,
            telling=self._herald.telling,
        )

    @cached_property
    def cost(self) -> "Costs":
        """What datasets cost through everything upstream, and what their end would save."""
        from lumos.cost.service import Costs

        return Costs(self.settings, self._store, telling=self._herald.telling)

    @cached_property
    def cost_sources(self) -> "CostSources":
        """What costs are computed from: what jobs used, and what people set."""
        from lumos.cost.cost_sources import CostSources

        return CostSources(self.settings, self._store, self._made_store)

    @cached_property
    def profiles(self) -> "Profiles":
        """What the rows of datasets say of their columns."""
        from lumos.profiles.service import Profiles

        return Profiles(self.settings, self._store, self.state_uri)

    def explain(self, path: str | Path) -> ExplainReport:
        """What was decided about a file or folder, by which rule, and why."""
        from lumos.discovery.explain import explain

        return explain(
            self._settings_with_hints(),
            str(path),
            store=self._existing_store,
            state=self.state_uri,
        )

    @cached_property
    def hints(self) -> "Hints":
        """Which files form a dataset, where Lumos should not find out by itself."""
        from lumos.discovery.hints.service import Hints

        return Hints(
            self._load,
            loaded=self._use,
            store=self._existing_store,
            make_store=self._made_store,
            state=lambda: self.state_uri,
        )

    def _use(self, settings: Settings) -> None:
        self.settings = settings
        # It finds the files of datasets by the hints it was made with.
        self.__dict__.pop("profiles", None)

    def _settings_with_hints(self) -> Settings:
        from lumos.discovery.hints.listing import with_stored_hints

        return with_stored_hints(self.settings, self._existing_store())

    def doctor(self, *, progress: Callable[[str], None] = lambda _step: None) -> "DoctorReport":
        """What of the installation and the configuration works, and what to do about the rest."""
        from lumos.doctor import examine

        return examine(self.settings, lambda: self.database, progress)

    def upgrade_store(self) -> UpgradeReport:
        """Migrates the store to the newest revision."""
        return upgraded(self.database)

    def store_status(self) -> StoreReport:
        """Where the store lies, its revision and how much it holds."""
        return status_of(self.database)

    @cached_property
    def courier(self) -> "NotificationSender":
        """Sends messages about changes, beside other work."""
        from lumos.notifications.service import NotificationSender

        return NotificationSender(self.settings.notifications, lambda: Store(self.database).outbox)

    @cached_property
    def notifications(self) -> "NotificationService":
        """The messages about changes: how they stand, and sending them."""
        from lumos.notifications.service import NotificationService

        return NotificationService(
            self.settings.notifications, lambda: self._store().outbox, self.courier
        )

    @cached_property
    def database(self) -> Database:
        """The database of the store: storage.path, or the server that storage names."""
        return database_of(self.settings)

    @property
    def state_uri(self) -> str:
        """Where manifests of scans lie: state_uri, or a folder beside the store."""
        return state_uri_of(self.settings, self.database)

    def _written(self, urns: Sequence[str]) -> None:
        """Lets others know of changes that are safe."""
        if urns:
            self._mirror(urns)
            self._herald.tell()

    def _mirror(self, urns: Sequence[str]) -> None:
        """Keeps readable copies of schemas where the store is a folder of them."""
        if self.settings.storage.backend == "file" and urns:
            mirror_schemas(self._store(), urns, folder=Path(str(self.settings.storage.path)))

    def _store(self) -> Store:
        return Store.open(self.database, listeners=self._listeners)

    def _existing_store(self) -> Store | None:
        """The store, if there is one."""
        return None if self.database.is_empty() else self._store()

    def _made_store(self) -> Store:
        """The store, which is made where there is none yet."""
        return Store.open(self.database, create=True, listeners=self._listeners)
