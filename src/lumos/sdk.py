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
from lumos.config.starter import InitReport
from lumos.datasets.reports import ListReport, SearchReport, ShowReport
from lumos.datasets.service import Datasets
from lumos.discovery.reports import DiscoverReport, ExplainReport, IngestReport
from lumos.impact.blast_radius import BlastRadiusTracker
from lumos.model.change import EventType
from lumos.notifications.handlers import ChangeHandler, ChangeHandlers
from lumos.progress import Progress, no_progress
from lumos.schemas.export import mirror_schemas
from lumos.store import Database, Listener, Store
from lumos.store.administration import (
    StoreReport,
    UpgradeReport,
    describe_store,
    open_database,
    sidecar_folder,
    state_uri_of,
    upgrade_store,
)

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
    from lumos.notifications.delivery import NotificationSender
    from lumos.notifications.service import NotificationService
    from lumos.profiles.service import Profiles
    from lumos.schemas.changes import ChangesReport, EventReport, ForgetReport
    from lumos.schemas.inventory import SchemaInventory
    from lumos.schemas.reports import HistoryReport
    from lumos.schemas.service import Schemas
    from lumos.schemas.version_service import VersionService
    from lumos.schemas.version_writer import VersionWriter
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
        self._handlers = ChangeHandlers()
        self._listeners: list[Listener] = [BlastRadiusTracker(), self._handlers]
        if self.settings.notifications.changes:
            from lumos.notifications.messages import Notifier

            self._listeners.append(
                Notifier(self.settings.notifications.changes, self.notification_sender.wake)
            )

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
        on_event: Callable[["EventReport"], None] | None = None,
        stop: threading.Event | None = None,
        begun: Callable[[str, float], None] = lambda _source, _interval: None,
        started: Callable[[], None] = lambda: None,
    ) -> "WatchReport":
        """Looks at the watched sources again and again until `stop` is set, or `once`.

        What is found is recorded, passed to `on_event` and the handlers of `on_change`, and sent as
        messages. `interval` overrules the polling intervals of all sources. `begun` is called with
        each source and its interval, `started` whenever Spark was started, which takes SIGINT for
        itself.
        """
        from lumos.discovery.watcher import SourceWatcher
        from lumos.schemas.changes import event_report

        told = ChangeHandlers()
        if on_event is not None:
            told.add(
                lambda event: on_event(event_report(self._store().change_log, event)),
                types=(),
                breaking=None,
                dataset=None,
            )
        watcher = SourceWatcher(
            self.settings,
            scan=lambda section: self._ingest([], sections=[section], unattended=True),
            send=self.notification_sender.wake,
            begun=begun,
            started=started,
        )
        # A store that cannot be used is a reason to end now, not to try again for ever.
        Store.open(self.database, create=True)
        self._listeners.append(told)
        try:
            with self._publisher.resting():
                return watcher.run(stop or threading.Event(), once=once, interval=interval)
        finally:
            self._listeners.remove(told)

    def _ingest(self, paths: Sequence[str], **options: Any) -> IngestReport:
        """Scan and record, then publish to the configured catalog."""
        return self._scan(paths, publisher=self._publisher, **options)

    def _scan(self, paths: Sequence[str], **options: Any) -> IngestReport:
        """Scan and record without publishing."""
        from lumos.discovery.ingest import ingest

        return ingest(
            self._settings_with_hints(),
            paths,
            open_store=self._made_store,
            state=self.state_uri,
            sender=self.notification_sender if self.settings.notifications.channels else None,
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

    @cached_property
    def datasets(self) -> Datasets:
        """The datasets in the store: listing, searching and showing them."""
        return Datasets(self._store, existing_store=self._existing_store)

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
        """The datasets that contain every word of a text, best first, with matching fields."""
        return self.datasets.search(
            text, platform=platform, owner=owner, tag=tag, format=format, limit=limit
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
        return self.datasets.list(platform=platform, format=format, contains=contains, limit=limit)

    def data_platforms(self) -> tuple[str, ...]:
        """The platforms that datasets are stored on: s3, file, postgres and the like."""
        return self.datasets.data_platforms()

    def display_names(self, urns: Collection[str]) -> dict[str, str]:
        """Short names of datasets; ends of paths where several datasets share a name."""
        return self.datasets.display_names(urns)

    def show(self, urn: str) -> ShowReport:
        """Everything that is known about a dataset."""
        return self.datasets.show(urn)

    def history(self, urn: str, *, as_of: str | None = None) -> "HistoryReport":
        """Every schema version of a dataset, newest first; the same as `schema.history`."""
        return self.schema.history(urn, as_of=as_of)

    @cached_property
    def estates(self) -> "SchemaInventory":
        """Snapshots of all schemas, and comparing two of them on Spark."""
        from lumos.schemas.inventory import SchemaInventory

        return SchemaInventory(self.settings, self._store)

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
        """Moving what one catalog holds into another, and publishing what sources hold."""
        from lumos.catalogs.migration.service import Migrations

        return Migrations(
            self.settings,
            lambda: self.snapshot,
            self._store,
            make_store=self._made_store,
            scan=self._scan,
            folder=lambda: sidecar_folder(self.settings, self.database, "migrations"),
        )

    @cached_property
    def lineage(self) -> "LineageService":
        """How datasets hang together: from SQL, dbt, OpenLineage, declared edges and people."""
        from lumos.lineage.service import LineageService

        return LineageService(
            self.settings,
            store=self._store,
            make_store=self._made_store,
            annotations=lambda: self.annotation_writer,
            usage=lambda: self.usage,
            publishing=self._publisher.publishing,
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
        from lumos.schemas.changes import ChangesReport, ChangesTally

        tally = ChangesTally(
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
        from lumos.schemas.changes import event_filter, event_reports

        log = self._store().change_log
        wanted = event_filter(
            log, since=since, until=until, types=types, breaking=breaking, dataset=dataset,
            limit=limit,
        )  # fmt: skip
        return event_reports(log, wanted)

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
        from lumos.schemas.version_service import VersionService

        return VersionService(self._store, self._steps)

    @cached_property
    def _steps(self) -> "VersionWriter":
        from lumos.schemas.version_writer import VersionWriter

        return VersionWriter(prefix=self.settings.cloud_version_prefix, on_written=self._written)

    @cached_property
    def _publisher(self) -> AutoPublisher:
        return AutoPublisher(lambda: platform_of(self.settings), self._store)

    @cached_property
    def annotation_writer(self) -> "AnnotationWriter":
        """Writes what people and reporters say of datasets."""
        from lumos.annotations.writer import AnnotationWriter

        return AnnotationWriter(
            self._store,
            self._steps,
            check_catalog=self._publisher.check,
            publish=self._publisher.publish,
            batch_publishing=self._publisher.together,
            owner_rules=self.settings.owners,
        )

    @cached_property
    def people(self) -> "Annotations":
        """Owners, tags, documentation, properties, terms: what people say of datasets."""
        from lumos.annotations.service import Annotations

        return Annotations(self.settings, self.annotation_writer)

    @cached_property
    def usage(self) -> "UsageService":
        """Who read what and when, and what nobody reads."""
        from lumos.usage.service import UsageService

        return UsageService(
            self.settings,
            self._store,
            self._made_store,
            self.state_uri,
            publishing=self._publisher.publishing,
        )

    @cached_property
    def cost(self) -> "Costs":
        """What datasets cost through everything upstream, and what their end would save."""
        from lumos.cost.service import Costs

        return Costs(self.settings, self._store, publishing=self._publisher.publishing)

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
        return upgrade_store(self.database)

    def store_status(self) -> StoreReport:
        """Where the store lies, its revision and how much it holds."""
        return describe_store(self.database)

    @cached_property
    def notification_sender(self) -> "NotificationSender":
        """Sends messages about changes, beside other work."""
        from lumos.notifications.delivery import NotificationSender

        return NotificationSender(
            self.settings.notifications, lambda: Store(self.database).notification_outbox
        )

    @cached_property
    def notifications(self) -> "NotificationService":
        """The messages about changes: how they stand, and sending them."""
        from lumos.notifications.service import NotificationService

        return NotificationService(
            self.settings.notifications,
            lambda: self._store().notification_outbox,
            self.notification_sender,
        )

    @cached_property
    def database(self) -> Database:
        """The database of the store: storage.path, or the server that storage names."""
        return open_database(self.settings)

    @property
    def state_uri(self) -> str:
        """Where manifests of scans lie: state_uri, or a folder beside the store."""
        return state_uri_of(self.settings, self.database)

    def _written(self, urns: Sequence[str]) -> None:
        """Lets others know of changes that are safe."""
        if urns:
            self._mirror(urns)
            self._publisher.publish()

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
