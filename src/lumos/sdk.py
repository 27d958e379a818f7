"""The SDK: a property for each feature and a method for each top-level command."""

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from lumos.config import find_file, load, write_starter
from lumos.config.check import ConfigReport, report
from lumos.config.starter import InitReport
from lumos.datasets.reports import ListReport, OverviewReport, SearchReport, ShowReport
from lumos.datasets.service import Datasets
from lumos.discovery.reports import DiscoverReport, ExplainReport, IngestReport
from lumos.errors import MisuseError
from lumos.features import Features
from lumos.model.change import EventType
from lumos.notifications.handlers import ChangeHandler
from lumos.progress import Progress, no_progress
from lumos.schemas.changes import ChangesReport, EventReport
from lumos.store.administration import StoreReport, UpgradeReport, describe_store, upgrade_store

if TYPE_CHECKING:
    from lumos.catalogs.reports import CatalogHistoryReport
    from lumos.catalogs.status import CatalogStatusReport
    from lumos.discovery.watcher import WatchReport
    from lumos.doctor import DoctorReport
    from lumos.jobs.reports import JobReport
    from lumos.schemas.reports import HistoryReport


class Lumos(Features):
    """Lumos with one configuration and one store.

    Without `config`, the settings are read from the file in LUMOS_CONFIG, or from `lumos.yaml` in
    the working folder. If neither exists, the defaults are used.
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
        super().__init__(
            lambda text: load(file, environment=variables, overrides=overrides or {}, text=text),
            variables,
            overrides or {},
        )

    def with_sources(self, config: str | Path) -> "Lumos":
        """Lumos with the same store and catalog, and the sources of another configuration."""
        sources = load(Path(config), environment=self._environment).sources
        settings = msgspec.structs.replace(self.settings, sources=sources)
        other = object.__new__(type(self))
        Features.__init__(other, lambda _: settings, self._environment, self._overrides)
        return other

    @staticmethod
    def init(file: str | Path = "lumos.yaml", *, force: bool = False) -> InitReport:
        """Write a commented starter configuration."""
        return write_starter(Path(file), force=force)

    def config_check(self) -> ConfigReport:
        """The current settings with masked secrets, and a list of settings without effect."""
        return report(self.settings, self._environment)

    def ingest(
        self,
        *paths: str | Path,
        accept_removals: bool = False,
        column_stats: bool = False,
        profile: bool = False,
        progress: Progress = no_progress,
    ) -> IngestReport:
        """Scan the paths, or else the configured sources, and record what changed.

        `accept_removals` records missing datasets as deleted, however many they are.
        `column_stats` also records the column statistics of file footers, and `profile` profiles
        the rows of datasets that are new, changed or not completely profiled.
        """
        return self._discovery.ingest(
            [str(path) for path in paths],
            accept_removals=accept_removals,
            column_stats=column_stats,
            profile=profile,
            progress=progress,
        )

    def watch(
        self,
        *,
        once: bool = False,
        interval: float | None = None,
        on_event: Callable[[EventReport], None] | None = None,
        stop: threading.Event | None = None,
        begun: Callable[[str, float], None] = lambda _source, _interval: None,
        started: Callable[[], None] = lambda: None,
    ) -> "WatchReport":
        """Scan the watched sources repeatedly until `stop` is set, or `once`.

        Changes are recorded, passed to `on_event` and the handlers of `on_change`, and sent as
        notifications. `interval` overrides the polling intervals of all sources. `begun` is called
        with each source and its interval. `started` is called after each start of Spark, which
        replaces the handler of SIGINT.
        """
        self._require("auto_detection")
        return self._discovery.watch(
            once=once,
            interval=interval,
            on_event=on_event,
            stop=stop or threading.Event(),
            begun=begun,
            started=started,
        )

    def discover(
        self,
        *paths: str | Path,
        write_config: str | Path | None = None,
        force: bool = False,
        progress: Progress = no_progress,
    ) -> DiscoverReport:
        """Show what the paths contain without recording it; optionally write a configuration."""
        return self._discovery.discover(
            [str(path) for path in paths],
            write_config=None if write_config is None else Path(write_config),
            force=force,
            progress=progress,
        )

    def explain(self, path: str | Path) -> ExplainReport:
        """Explain which dataset a file or folder belongs to, by which rule, and why."""
        return self._discovery.explain(str(path))

    def search(
        self,
        text: str,
        *,
        platform: str | None = None,
        owner: str | None = None,
        tag: str | None = None,
        format: str | None = None,
        limit: int = 20,
        catalog: str | None = None,
    ) -> SearchReport:
        """The datasets that contain every word of a text, best match first, with matching fields.

        `platform` is the data platform of the datasets, such as s3. `catalog` searches a catalog,
        such as datahub, instead of the store.
        """
        return self.datasets_in(catalog).search(
            text, platform=platform, owner=owner, tag=tag, format=format, limit=limit
        )

    def overview(self) -> OverviewReport:
        """Count the datasets with owners, descriptions and lineage, and list the sources."""
        return self.datasets.overview()

    def catalog_status(self) -> "CatalogStatusReport":
        """The state of each catalog: the number of changes that are not published to it yet."""
        from lumos.catalogs.status import catalog_status

        return catalog_status(self._store.open())

    def list(
        self,
        *,
        platform: str | None = None,
        format: str | None = None,
        contains: str | None = None,
        limit: int | None = None,
        after: str | None = None,
        lineage_only: bool = False,
    ) -> ListReport:
        """The datasets in the store, or the tables that are known from lineage only.

        Datasets are sorted by URN. `after` is a URN: the list starts with the next one.
        """
        return self.datasets.list(
            platform=platform,
            format=format,
            contains=contains,
            limit=limit,
            after=after,
            lineage_only=lineage_only,
        )

    def show(self, urn: str, *, catalog: str | None = None) -> ShowReport:
        """Everything that the store, or a catalog such as datahub, contains about a dataset."""
        return self.datasets_in(catalog).show(urn)

    def catalog_history(
        self, urn: str, *, catalog: str, limit: int | None = None
    ) -> "CatalogHistoryReport":
        """The changes of a dataset that a catalog such as atlas recorded, newest first."""
        datasets = self.datasets_in(catalog)
        if isinstance(datasets, Datasets):
            raise MisuseError(
                "'local' is the store itself. Show its changes with: lumos changes DATASET"
            )
        return datasets.history(urn, limit=limit)

    def history(self, urn: str, *, as_of: str | None = None) -> "HistoryReport":
        """Every schema version of a dataset, newest first; the same as `schema.history`."""
        self._require("schema_tracking")
        return self.schema.history(urn, as_of=as_of)

    def changes(
        self,
        *,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        types: Iterable[EventType | str] = (),
        breaking: bool = False,
        dataset: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> ChangesReport:
        """The changes of datasets, newest first, and the number of breaking ones.

        Times are written as `7d`, `2024-01-15` or `2024-01-15T10:30Z`. `dataset` is a pattern.
        `after` is the id of an event: the list continues with the next one.
        """
        return ChangesReport.of(
            self.change_history.iterate(
                since=since,
                until=until,
                types=types,
                breaking=breaking,
                dataset=dataset,
                limit=limit,
                after=after,
            )
        )

    def on_change(
        self,
        handler: ChangeHandler,
        *,
        types: Iterable[EventType | str] = (),
        breaking: bool | None = None,
        dataset: str | None = None,
    ) -> ChangeHandler:
        """Call a function for each change that this object records from now on.

        It is called at most once for each change, after the change is committed, in the same
        thread. Its exceptions are logged. Can be used as a decorator.
        """
        self._handlers.add(handler, types=types, breaking=breaking, dataset=dataset)
        return handler

    def run(
        self,
        *steps: str,
        resume: int | None = None,
        detach: bool = False,
        max_attempts: int | None = None,
        time_limit: int | None = None,
        progress: Progress = no_progress,
    ) -> "JobReport":
        """Run steps such as `ingest:sources.yaml` and `export:nightly.json` as one job.

        `resume` continues an earlier job with its first unfinished step. With `detach`, a worker
        runs the job; without it, the job runs here, by default with a single attempt.
        """
        return self.jobs.run(
            *steps,
            resume=resume,
            detach=detach,
            max_attempts=max_attempts,
            time_limit=time_limit,
            progress=progress,
        )

    def doctor(self, *, progress: Callable[[str], None] = lambda _step: None) -> "DoctorReport":
        """Check the installation and the configuration, and say how to fix problems."""
        from lumos.doctor import examine

        return examine(self.settings, lambda: self.database, progress)

    def upgrade_store(self) -> UpgradeReport:
        """Migrate the store to the newest revision."""
        return upgrade_store(self.database)

    def store_status(self) -> StoreReport:
        """The location and revision of the store and the number of its rows."""
        return describe_store(self.database)
