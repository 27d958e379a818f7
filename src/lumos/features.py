"""The service of each feature, wired to the settings, the store and the catalog publisher."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from lumos.catalogs.auto_publisher import AutoPublisher
from lumos.catalogs.configured import LOCAL, platform_of
from lumos.config import Settings
from lumos.config.settings import Notifications, StorageSettings
from lumos.datasets.service import Datasets
from lumos.discovery.reports import IngestReport
from lumos.discovery.service import DiscoveryService
from lumos.discovery.storage_events import StorageEvents
from lumos.impact.blast_radius import BlastRadiusTracker
from lumos.notifications.handlers import ChangeHandlers
from lumos.progress import no_progress
from lumos.schemas.changes import ChangeHistory
from lumos.schemas.export import mirror_schemas
from lumos.sources.addresses import is_root
from lumos.store import Database, Listener, Store
from lumos.store.configured import ConfiguredStore

if TYPE_CHECKING:
    from lumos.access.service import Tokens
    from lumos.annotations.service import Annotations
    from lumos.annotations.writer import AnnotationWriter
    from lumos.audit.service import Audit
    from lumos.catalogs.migration.service import Migrations
    from lumos.catalogs.reader import CatalogReader
    from lumos.cost.cost_sources import CostSources
    from lumos.cost.service import Costs
    from lumos.discovery.hints.service import Hints
    from lumos.gate.results import GateResults
    from lumos.gate.service import Gate
    from lumos.impact.service import ImpactService
    from lumos.jobs.schedules import Schedules
    from lumos.jobs.service import Jobs
    from lumos.lineage.reported_lineage import DatasetRead
    from lumos.lineage.service import LineageService
    from lumos.notifications.delivery import NotificationSender
    from lumos.notifications.reminders import Reminders
    from lumos.notifications.service import NotificationService
    from lumos.partitions.service import Partitions
    from lumos.profiles.service import Profiles
    from lumos.reconcile.service import Reconciliation
    from lumos.releases.service import Releases
    from lumos.schemas.inventory import SchemaInventory
    from lumos.schemas.service import Schemas
    from lumos.schemas.version_service import VersionService
    from lumos.schemas.version_writer import VersionWriter
    from lumos.snapshots.service import Snapshots
    from lumos.usage.service import UsageService


class Features:
    """The features of Lumos for one configuration; each is created when it is first used.

    `load` reads the settings; its argument replaces the text of the configuration file.
    `environment` contains the environment variables of the process, and `overrides` settings that
    replace those of the file. Both are passed on to processes that run jobs.
    """

    def __init__(
        self,
        load: Callable[[str | None], Settings],
        environment: Mapping[str, str] = MappingProxyType({}),
        overrides: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        self._load = load
        self._environment = environment
        self._overrides = overrides
        self.settings: Settings = load(None)
        self._handlers = ChangeHandlers()
        self._store = ConfiguredStore(self.settings, tuple(self._listeners()))
        self._publisher = AutoPublisher(
            lambda: platform_of(self.settings),
            self._store.open,
            omitted=self.settings.switches.hidden_aspects,
        )
        self._discovery = DiscoveryService(
            lambda: self.settings,
            self._store,
            events=self.events,
            publisher=self._publisher,
            sender=lambda: self.notification_sender,
            profiler=lambda: self.profiles,
            subscribe=self._handlers.registered,
            record_reads=self._record_reads,
        )

    @cached_property
    def datasets(self) -> Datasets:
        """The datasets in the store: listing, searching and showing them."""
        return Datasets(
            self._store.open,
            existing_store=self._store.open_existing,
            hidden_aspects=self.settings.switches.hidden_aspects,
        )

    @cached_property
    def schema(self) -> "Schemas":
        """Schemas: comparing them, their history, predicting changes, and schemas as code."""
        from lumos.schemas.service import Schemas

        return Schemas(self._store.open, require_tracking=lambda: self._require("schema_tracking"))

    @cached_property
    def change_history(self) -> ChangeHistory:
        """The change log: reading it, following it, and deleting old events."""
        return ChangeHistory(
            self._store.open,
            retention_days=self.settings.storage.modified_retention_days,
            require_tracking=lambda: self._require("schema_tracking"),
        )

    @cached_property
    def events(self) -> StorageEvents:
        """The events of watched sources: setting them up, and the lag of watchers."""
        return StorageEvents(lambda: self.settings, self._store)

    @cached_property
    def schema_inventory(self) -> "SchemaInventory":
        """Snapshots of all schemas, and comparing two of them on Spark."""
        from lumos.schemas.inventory import SchemaInventory

        return SchemaInventory(self.settings, self._store.open)

    @cached_property
    def version(self) -> "VersionService":
        """The cloud version and the schema version of datasets: showing and bumping them."""
        self._require("schema_tracking")
        from lumos.schemas.version_service import VersionService

        return VersionService(self._store.open, self._version_writer)

    @cached_property
    def lineage(self) -> "LineageService":
        """Lineage of datasets from SQL, dbt, OpenLineage, declared edges and people."""
        self._require("lineage")
        from lumos.lineage.service import LineageService

        path = self.settings.storage.path
        return LineageService(
            self.settings,
            open_store=self._store.open,
            create_store=self._store.create,
            annotations=lambda: self.annotation_writer,
            usage=lambda: self.usage if self.settings.switches.is_on("usage") else None,
            publishing=self._publisher.publish_after,
            is_empty=self.database.is_empty,
            store_folder=None if path is None else Path(path).parent,
        )

    @cached_property
    def impact(self) -> "ImpactService":
        """The impact of schema changes on downstream datasets: what breaks, where and why."""
        self._require("lineage")
        from lumos.impact.service import ImpactService

        return ImpactService(self.settings, self._store.open)

    @cached_property
    def annotations(self) -> "Annotations":
        """Annotations of datasets and fields: owners, tags, documentation, properties, terms."""
        from lumos.annotations.service import Annotations

        return Annotations(self.settings, self.annotation_writer)

    @cached_property
    def annotation_writer(self) -> "AnnotationWriter":
        """Writes annotations of people and reporters."""
        from lumos.annotations.writer import AnnotationWriter

        return AnnotationWriter(
            self._store.open,
            self._version_writer,
            check_catalog=self._publisher.check,
            publish=self._publisher.publish,
            batch_publishing=self._publisher.batch,
            owner_rules=self.settings.owners,
            on_edited=self._unflag_documented,
        )

    @cached_property
    def usage(self) -> "UsageService":
        """Usage of datasets: who read them and when, and which are unread."""
        self._require("usage")
        from lumos.usage.service import UsageService

        return UsageService(
            self.settings,
            self._store.open,
            self._store.create,
            self.state_uri,
            publishing=self._publisher.publish_after,
        )

    @cached_property
    def cost(self) -> "Costs":
        """The cost of datasets including upstream cost, and the savings from retiring them."""
        self._require("cost_attribution")
        from lumos.cost.service import Costs

        return Costs(self.settings, self._store.open, publishing=self._publisher.publish_after)

    @cached_property
    def cost_sources(self) -> "CostSources":
        """The inputs of costs: imported resource usage of jobs, and cost overrides."""
        self._require("cost_attribution")
        from lumos.cost.cost_sources import CostSources

        return CostSources(self.settings, self._store.open, self._store.create)

    @property
    def profiles(self) -> "Profiles":
        """Profiles of datasets: statistics of their rows by column."""
        self._require("profiles")
        from lumos.profiles.service import Profiles

        return Profiles(self.settings, self._store.open, self.state_uri)

    @cached_property
    def partitions(self) -> "Partitions":
        """Partitions of datasets over time: rows, bytes and missing days."""
        from lumos.partitions.service import Partitions

        return Partitions(self.settings, self._store.open, lambda: self.state_uri)

    @cached_property
    def reconciliation(self) -> "Reconciliation":
        """Comparison of metastores with the data in storage."""
        from lumos.reconcile.service import Reconciliation

        return Reconciliation(self.settings, self._store.open, lambda: self.state_uri)

    @cached_property
    def hints(self) -> "Hints":
        """Hints: rules for which files form a dataset. They override the automatic grouping."""
        from lumos.discovery.hints.service import Hints

        return Hints(
            self._load,
            use_settings=self._use_settings,
            store=self._store.open_existing,
            make_store=self._store.create,
            state=lambda: self.state_uri,
        )

    @cached_property
    def snapshot(self) -> "Snapshots":
        """Portable snapshots of the store and of catalogs."""
        from lumos.snapshots.service import Snapshots

        return Snapshots(
            self.settings,
            self._store.open,
            make_store=self._store.create,
            mirror=self._publish_written,
        )

    def datasets_in(self, catalog: str | None) -> "Datasets | CatalogReader":
        """The datasets of the store, or of a catalog, given as its kind or as `KIND:ADDRESS`."""
        if catalog is None or catalog == LOCAL:
            return self.datasets
        from lumos.catalogs.reader import CatalogReader
        from lumos.snapshots.catalogs import PlatformCatalog, SnapshotCatalogs

        catalogs = SnapshotCatalogs(self.settings, self._store.open)
        platform_catalog = catalogs.named_for_reading(catalog)
        assert isinstance(platform_catalog, PlatformCatalog), "only the store is local"
        return CatalogReader(platform_catalog.platform)

    @cached_property
    def gate(self) -> "Gate":
        """The gate: checks what changes in a git repository break downstream."""
        from lumos.gate.service import Gate

        return Gate(
            lambda path: self.with_store(path, features={}),
            self.settings,
            configured=lambda: self,
            store=self._store.open,
            existing_store=self._store.open_existing,
            environment=self._environment,
        )

    @cached_property
    def gate_results(self) -> "GateResults":
        """Results of the gate that CI systems recorded."""
        from lumos.gate.results import GateResults

        return GateResults(self._store.open, self._store.create)

    @cached_property
    def tokens(self) -> "Tokens":
        """API tokens of the server."""
        from lumos.access.service import Tokens

        return Tokens(self._store.open, self._store.create)

    @cached_property
    def audit(self) -> "Audit":
        """The audit log: who did what, when and from where."""
        from lumos.audit.service import Audit

        return Audit(self._store.open)

    @cached_property
    def migration(self) -> "Migrations":
        """Migrations of the contents of a catalog or of sources to another catalog."""
        from lumos.catalogs.migration.service import Migrations

        return Migrations(
            self.settings,
            lambda: self.snapshot,
            self._store.open,
            make_store=self._store.create,
            scan=self._discovery.scan,
            folder=lambda: self._store.sidecar_folder("migrations"),
        )

    @cached_property
    def notifications(self) -> "NotificationService":
        """Notifications of changes: their state, and sending them."""
        self._require("notifications")
        from lumos.notifications.service import NotificationService

        return NotificationService(
            self.settings.notifications,
            lambda: self._store.open().notification_outbox,
            self.notification_sender,
            lambda: self._reminders,
        )

    @cached_property
    def _reminders(self) -> "Reminders":
        """Reminders of missing documentation, and digests of changes."""
        from lumos.notifications.reminders import Reminders

        return Reminders(
            self.settings,
            self._store.open,
            writer=lambda: self.annotation_writer,
            sender=lambda: self.notification_sender,
        )

    @cached_property
    def notification_sender(self) -> "NotificationSender":
        """Sends notifications of changes in the background."""
        from lumos.notifications.delivery import NotificationSender

        is_on = self.settings.switches.is_on("notifications")
        return NotificationSender(
            self.settings.notifications if is_on else Notifications(),
            lambda: Store(self._store.database).notification_outbox,
            lambda: Store(self._store.database).change_log,
            lambda owner: self._reminders.email_of(owner),
        )

    @cached_property
    def jobs(self) -> "Jobs":
        """Jobs: requesting, showing, stopping and running them."""
        from lumos.jobs.runner import ProcessRunner
        from lumos.jobs.service import Jobs

        return Jobs(
            self.settings,
            store=self._store.open,
            make_store=self._store.create,
            database=lambda: self._store.database,
            make_runner=lambda: ProcessRunner(
                self.settings.origin.file, self._overrides, self._environment
            ),
            send_due=self._send_due_notifications,
        )

    @cached_property
    def schedules(self) -> "Schedules":
        """Schedules of jobs."""
        from lumos.jobs.schedules import Schedules

        return Schedules(self.jobs, store=self._store.open, make_store=self._store.create)

    @cached_property
    def releases(self) -> "Releases":
        """Releases: refreshing datasets once data after a release is available."""
        self._require("releases")
        from lumos.releases.service import Releases

        return Releases(
            self.settings,
            self._store.open,
            self.change_history,
            lambda: self.annotations.schedules,
            state=lambda: self.state_uri,
            scan=self._scan_sources,
        )

    def _scan_sources(self, sources: Sequence[str]) -> IngestReport:
        """Scan sources again: only the given ones if all are paths, else all configured sources."""
        roots = [each.partition(":")[2] for each in sources]
        return self._discovery.ingest(
            roots if all(is_root(each) for each in roots) else [],
            accept_removals=False,
            column_stats=False,
            profile=False,
            progress=no_progress,
        )

    def _record_reads(self, reporter: str, reads: "Iterable[tuple[str, DatasetRead]]") -> None:
        """Record the reads that a source reported. They are published with its datasets."""
        from lumos.usage.ingest import record_reads

        now = datetime.now(UTC)
        record_reads(self._store.create(), reporter, reads, settings=self.settings.usage, at=now)

    def _require(self, switch: str) -> None:
        self.settings.switches.require(switch)

    def create_store(self) -> Store:
        """Open the store, and create it if it does not exist."""
        return self._store.create()

    def with_store(self, path: Path, **replaced: Any) -> Self:
        """Create an instance with the same settings, except for `replaced` ones, and a new store.

        It publishes nothing and sends no notifications.
        """
        settings = msgspec.structs.replace(
            self.settings,
            platform=LOCAL,
            storage=StorageSettings(path=str(path)),
            notifications=Notifications(),
            **replaced,
        )
        other = object.__new__(type(self))
        Features.__init__(other, lambda _: settings, self._environment)
        return other

    @property
    def database(self) -> Database:
        """The database of the store: the file storage.path, or a database server."""
        return self._store.database

    @property
    def state_uri(self) -> str:
        """The location of scan manifests: state_uri, or a folder next to the store."""
        return self._store.state_uri

    @cached_property
    def _version_writer(self) -> "VersionWriter":
        from lumos.schemas.version_writer import VersionWriter

        return VersionWriter(
            prefix=self.settings.cloud_version_prefix, on_written=self._publish_written
        )

    def _publish_written(self, urns: Sequence[str]) -> None:
        """After committed changes, update the schema files next to the store, and the catalog."""
        if urns:
            mirror_schemas(self._store.open(), urns, storage=self.settings.storage)
            self._publisher.publish()

    def _unflag_documented(self, urns: Sequence[str]) -> None:
        """Remove the flags that reminders set from datasets that are now documented."""
        if self.settings.notifications.reminders and self.settings.switches.is_on("notifications"):
            self._reminders.unflag(urns)

    def _use_settings(self, settings: Settings) -> None:
        self.settings = settings

    def _listeners(self) -> Iterator[Listener]:
        """The listeners that are called for every change in the store."""
        if self.settings.switches.is_on("lineage"):
            yield BlastRadiusTracker()
        yield self._handlers
        configured = self.settings.notifications
        is_on = self.settings.switches.is_on("notifications")
        if is_on and (configured.changes or configured.subscribers):
            from lumos.notifications.messages import Notifier

            yield Notifier(
                configured.changes,
                self._send_notifications,
                configured.subscriber_channels,
            )

    def _send_due_notifications(self) -> None:
        if self.settings.notifications.destinations:
            self._send_notifications()

    def _send_notifications(self) -> None:
        self.notification_sender.wake()
