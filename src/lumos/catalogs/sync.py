"""Scans sources and publishes to catalogs; a failing source or catalog does not stop the others."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from lumos import plugins
from lumos.catalogs import Connects, Platform
from lumos.catalogs.configured import LOCAL, platform_of
from lumos.catalogs.migration.reports import SyncReport
from lumos.catalogs.publisher import CatalogPublisher
from lumos.catalogs.reports import PublishReport
from lumos.config import Settings
from lumos.config.sources import SourceSettings
from lumos.discovery.reports import IngestReport
from lumos.discovery.targets import (
    SOURCE_FAILED,
    NoUsableSource,
    source_failure,
    source_name,
)
from lumos.errors import LumosError, MisuseError, UnknownName
from lumos.model.discovery import Problem
from lumos.progress import Progress
from lumos.rendering.text import plural
from lumos.snapshots.catalogs import PlatformCatalog, SnapshotCatalogs
from lumos.store import Store


class CatalogScan(Protocol):
    """Scans sources without publishing."""

    def __call__(
        self, paths: Sequence[str], *, sections: Sequence[SourceSettings], progress: Progress
    ) -> IngestReport: ...


class SyncRun:
    """One run of `lumos sync`."""

    def __init__(
        self, settings: Settings, scan: CatalogScan, make_store: Callable[[], Store]
    ) -> None:
        self._settings = settings
        self._scan = scan
        self._make_store = make_store

    def run(
        self,
        names: Sequence[str],
        *,
        outputs: Sequence[str],
        scan: bool,
        full: bool,
        progress: Progress,
    ) -> SyncReport:
        """Scan the named sources, or all if none is named; then publish changes to each output."""
        sections = self._sections(names) if scan else []
        platforms = self._platforms(outputs)
        if self._settings.sources and not (scan or platforms):
            raise MisuseError(
                "No source is named and no catalog is configured. Scan the "
                f"{plural(len(self._settings.sources), 'configured source')} with: lumos sync --all"
            )
        if not (sections or platforms):
            raise MisuseError(
                "No source to scan and no catalog to publish to. List sources in "
                "lumos.yaml (lumos init writes one) and scan them with --all, or name a catalog "
                "with --platform: lumos sync --platform PLATFORM"
            )
        installed = plugins.names(plugins.SOURCES)
        usable = [section for section in sections if section.type in installed]
        scanned, failures = self._run_scan(usable, progress) if usable else (None, ())
        return SyncReport(
            sources=tuple(map(source_name, usable)),
            passed_over=tuple(source_name(each) for each in sections if each.type not in installed),
            failed=failures,
            scanned=scanned,
            published=tuple(self._publish(each, progress, full=full) for each in platforms),
        )

    def _sections(self, names: Sequence[str]) -> list[Any]:
        known: dict[str, list[Any]] = {}
        for section in self._settings.sources:
            known.setdefault(source_name(section), []).append(section)
        for name in names:
            if name not in known:
                raise UnknownName(
                    "source",
                    name,
                    known,
                    listed="Configured",
                    next="See the configuration with: lumos config check",
                )
        # Several sources may have one name.
        return [section for name in dict.fromkeys(names or known) for section in known[name]]

    def _platforms(self, outputs: Sequence[str]) -> list[Platform]:
        """The named catalogs, each once, without the store itself."""
        if not outputs:
            configured = platform_of(self._settings)
            return [] if configured is None else [configured]
        catalogs = SnapshotCatalogs(self._settings, self._make_store)
        platforms: dict[str, Platform] = {}
        for name in outputs:
            if name != LOCAL:
                catalog = catalogs.named(name)
                assert isinstance(catalog, PlatformCatalog)
                platforms[catalog.name] = catalog.platform
        return list(platforms.values())

    def _run_scan(
        self, sections: Sequence[SourceSettings], progress: Progress
    ) -> tuple[IngestReport | None, tuple[Problem, ...]]:
        try:
            report = self._scan([], sections=sections, progress=progress)
        except NoUsableSource as problem:
            return None, problem.failures
        except LumosError as problem:
            # Earlier changes are still published.
            return None, (source_failure(", ".join(map(source_name, sections)), problem),)
        failures = tuple(each for each in report.problems if each.code == SOURCE_FAILED)
        return report, failures

    def _publish(self, platform: Platform, progress: Progress, *, full: bool) -> PublishReport:
        progress(f"publishing to {platform.name}")
        omitted = self._settings.switches.hidden_aspects
        publisher = CatalogPublisher(self._make_store(), platform, omitted=omitted)
        if full:
            publisher.add_all()
        try:
            return publisher.deliver(progress)
        finally:
            if isinstance(platform, Connects):
                platform.close()
