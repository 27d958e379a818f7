"""`lumos doctor`: checks the installation and configuration, and says how to fix problems."""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

from lumos import plugins
from lumos.catalogs import Connects, Platform, StoredInFile
from lumos.catalogs.configured import LOCAL, platform_of
from lumos.config import Settings
from lumos.config.platforms import PLATFORMS, Retries, ServerPlatform, platform_kind
from lumos.discovery.scans import StateNotUsable, check_state
from lumos.discovery.targets import create_source
from lumos.errors import LumosError
from lumos.model.report import FORMAT_VERSION, Report
from lumos.sources import SourceNotUsable, TableSource
from lumos.sources.addresses import access_of, canonical_address, is_address
from lumos.store import Database
from lumos.store.database import HEAD
from lumos.version import __version__

Status = Literal["ok", "warning", "failed"]
_MIN_JAVA_VERSION = 17
# Few retries, so that a check does not wait long for a catalog that does not respond.
_SHORT_RETRIES: Final = Retries(attempts=2, longest=10)


class Check(Report, frozen=True, kw_only=True):
    """The result of one check."""

    name: str
    status: Status
    found: str
    next_step: str | None = None


class DoctorReport(Report, frozen=True, kw_only=True):
    """The report of `lumos doctor`."""

    format_version: str = FORMAT_VERSION
    healthy: bool
    checks: tuple[Check, ...]


def examine(
    settings: Settings, database: Callable[[], Database], progress: Callable[[str], None]
) -> DoctorReport:
    """Check everything that a scan needs; a failed check does not stop the others."""
    version = f"Lumos {__version__} on Python {platform.python_version()} ({sys.executable})"
    java = _java()
    checks = [Check(name="python", status="ok", found=version), java]
    progress("Checking the store")
    checks.append(_store(database))
    progress("Checking the sources")
    checks.extend(_sources(settings))
    checks.extend(_state(settings))
    progress("Checking the catalogs")
    checks.extend(platform_checks(settings))
    if java.status == "ok" or not settings.spark.master.startswith("local"):
        progress("Starting Spark")
        checks.extend(_spark(settings))
    healthy = all(check.status != "failed" for check in checks)
    return DoctorReport(healthy=healthy, checks=tuple(checks))


def _java() -> Check:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    install = "Install Java 17 (Debian, Ubuntu: apt-get install openjdk-17-jre-headless)."
    if java is None or not Path(java).exists():
        return Check(name="java", status="failed", found="none was found", next_step=install)
    output = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', output)
    if version is None or int(version.group(1)) < _MIN_JAVA_VERSION:
        found = f"{java} is too old: {output.splitlines()[0] if output else 'unknown'}"
        return Check(name="java", status="failed", found=found, next_step=install)
    return Check(name="java", status="ok", found=f"{output.splitlines()[0]} ({java})")


def _store(database: Callable[[], Database]) -> Check:
    try:
        opened = database()
        if opened.is_empty():
            found = f"{opened.location} does not exist yet"
            step = "The first lumos ingest creates it."
            return Check(name="store", status="ok", found=found, next_step=step)
        opened.check_revision()
        opened.check_writable()
    except LumosError as problem:
        return Check(name="store", status="failed", found=str(problem))
    return Check(name="store", status="ok", found=f"{opened.location}, revision {HEAD}, writable")


def _sources(settings: Settings) -> Iterator[Check]:
    for section in settings.sources:
        name = f"source {section.name or section.type}"
        try:
            source = create_source(section)
            if isinstance(source, TableSource):
                yield Check(name=name, status="ok", found=source.check())
                continue
            roots = source.roots()
        except SourceNotUsable as problem:
            step = problem.next_step or None
            yield Check(name=name, status="failed", found=problem.found, next_step=step)
        except LumosError as problem:
            yield Check(name=name, status="failed", found=str(problem))
        else:
            problems = source.problems()
            found = ", ".join(root.root for root in roots if root.root not in problems)
            yield Check(name=name, status="ok", found=found)
            for each in problems.values():
                step = each.next_step or None
                yield Check(name=name, status="warning", found=each.found, next_step=step)
    if not settings.sources:
        found = "none is configured"
        step = "Name folders on the command line, or list sources in lumos.yaml (lumos init)."
        yield Check(name="sources", status="ok", found=found, next_step=step)


def _state(settings: Settings) -> Iterator[Check]:
    if settings.state_uri is None or not is_address(settings.state_uri):
        return
    try:
        state = canonical_address(settings.state_uri, settings.sources)
        check_state(state, access_of(state, settings.sources))
    except StateNotUsable as problem:
        yield Check(name="state", status="failed", found=problem.found, next_step=problem.next_step)
    except LumosError as problem:
        yield Check(name="state", status="failed", found=str(problem))
    else:
        yield Check(name="state", status="ok", found=f"{state} can be listed and written")


def platform_checks(settings: Settings) -> Iterator[Check]:
    """Check the catalog that Lumos publishes to, and the other configured catalogs."""
    config = settings.platform_config
    with_short_retries = {
        name: msgspec.structs.replace(section, retries=_SHORT_RETRIES)
        for name in PLATFORMS
        if isinstance(section := config.of(name), ServerPlatform)
    }
    settings = msgspec.structs.replace(
        settings, platform_config=msgspec.structs.replace(config, **with_short_retries)
    )
    yield _platform(settings, settings.platform)
    others = [*(name for name in PLATFORMS if config.of(name) is not None), *config.others]
    for name in others:
        if name not in (LOCAL, platform_kind(settings.platform)):
            check = _platform(settings, name)
            if check.status == "failed":
                # Lumos does not publish to these catalogs, so a failure is only a warning.
                check = msgspec.structs.replace(check, status="warning")
            yield check


def _platform(settings: Settings, platform: str) -> Check:
    name = f"platform {platform}"
    if platform == LOCAL:
        return Check(name=name, status="ok", found="the store itself")
    try:
        plugins.find(plugins.PLATFORMS, platform_kind(platform), "platform")
        catalog = platform_of(msgspec.structs.replace(settings, platform=platform))
        assert catalog is not None, "it is installed"
        return Check(name=name, status="ok", found=_catalog(catalog))
    except LumosError as problem:
        return Check(name=name, status="failed", found=str(problem))


def _catalog(catalog: Platform) -> str:
    """Check a catalog and describe its address or file; raises a LumosError."""
    adapter: object = catalog
    if isinstance(adapter, Connects):
        try:
            return adapter.check()
        finally:
            adapter.close()
    if isinstance(adapter, StoredInFile):
        adapter.check_writable()
        path = adapter.path
        return f"{path}, writable" if path.exists() else f"{path} will be created"
    return "installed"


def _spark(settings: Settings) -> Iterator[Check]:
    from lumos.spark.executors import executor_facts
    from lumos.spark.session import spark_session

    name = f"spark {settings.spark.master}"
    try:
        with spark_session(
            master=settings.spark.master, settings=settings.spark.properties()
        ) as spark:
            version = spark.version
            facts = executor_facts(spark)
    except LumosError as problem:
        missing = re.search(r"No module named '([\w.]+)'", str(problem.__cause__ or problem))
        step = (
            f"Install {missing.group(1)} for the Python that executors use "
            "(spark.pyspark.python or PYSPARK_PYTHON)."
            if missing
            else None
        )
        yield Check(name=name, status="failed", found=str(problem), next_step=step)
        return
    yield Check(name=name, status="ok", found=f"Spark {version} ran a job")
    for each in facts:
        found = ", ".join(f"{library} {number}" for library, number in each.items())
        yield Check(name="executors", status="ok", found=found)
