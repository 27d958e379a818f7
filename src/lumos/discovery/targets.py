"""Resolves paths and configured sources to the lakes and databases that a scan reads."""

import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Final, NamedTuple, TypeAlias

from lumos import plugins
from lumos.config import Settings
from lumos.config.secret import MASK, mask_secret_text
from lumos.config.sources import FileSourceSettings, FileStoreSettings
from lumos.config.sources import SourceSettings as Section
from lumos.errors import LumosError, MisuseError, UnknownName
from lumos.model.discovery import Problem
from lumos.model.urn import Urn
from lumos.sources import LakeSource, Source, TableSource, hints_of
from lumos.sources.addresses import access_of, is_address, roots_of, section_of
from lumos.storage import FileHint, FileSelection

SOURCE_FAILED: Final = "source_failed"
_ADDRESS_KEYS: Final = ("paths", "buckets", "bootstrap_servers")
_MAX_CHECKS: Final = 8
_log = logging.getLogger(__name__)


class LakeTarget(NamedTuple):
    """A root of a lake."""

    source: LakeSource
    selection: FileSelection

    @property
    def address(self) -> str:
        """The root as shown in messages."""
        return self.selection.root

    @property
    def source_id(self) -> str:
        """The id of the target in the store."""
        return f"{self.source.identity}:{self.selection.root}"


class DatabaseTarget(NamedTuple):
    """A database."""

    source: TableSource

    @property
    def address(self) -> str:
        """The database as shown in messages."""
        return self.source.address

    @property
    def source_id(self) -> str:
        """The id of the target in the store."""
        return f"{self.source.identity}:{self.source.scope}"


ScanTarget: TypeAlias = LakeTarget | DatabaseTarget


class ScanTargets(NamedTuple):
    """The lakes and databases that a scan reads, and the sources that cannot be used."""

    lakes: list[LakeTarget]
    databases: list[DatabaseTarget]
    failures: tuple[Problem, ...] = ()

    @property
    def all(self) -> list[ScanTarget]:
        """All targets in the order in which they are scanned."""
        return [*self.databases, *self.lakes]


class NoUsableSource(MisuseError):
    """None of several sources can be used, each because of another problem."""

    def __init__(self, failures: tuple[Problem, ...]) -> None:
        self.failures = failures
        reasons = " ".join(f"{each.path}: {each.reason}." for each in failures)
        super().__init__(f"No source can be used. {reasons}")


class ScanFailed(LumosError):
    """The storage of a lake, or of the state of its scans, failed during a scan."""

    def __init__(self, root: str, problem: OSError) -> None:
        super().__init__(
            f"The scan of {root} failed: {problem}. Run it again once the storage answers."
        )


def resolve_targets(
    settings: Settings,
    paths: Sequence[str],
    sections: Sequence[Section] = (),
    *,
    skip_unusable: bool = False,
) -> ScanTargets:
    """The targets of the sections, or else of the paths, or else of the configured sources.

    All targets are checked here, before anything is scanned. With `skip_unusable`, sources that
    cannot be used are skipped, unless all are unusable.
    """
    usable = _installed_sections(sections or select_sections(settings, paths))

    def resolve(section: Section) -> list[ScanTarget] | LumosError:
        source = create_source(section)
        try:
            if isinstance(source, LakeSource):
                return [
                    LakeTarget(source, _with_scan_settings(selection, settings))
                    for selection in source.roots()
                ]
            source.check()
        except LumosError as problem:
            if not skip_unusable:
                raise
            return problem
        return [DatabaseTarget(source)]

    # Sources are checked in parallel: a server that does not answer must not delay the others.
    with ThreadPoolExecutor(_MAX_CHECKS) as threads:
        running = [threads.submit(copy_context().run, resolve, each) for each in usable]
        resolved = [each.result() for each in running]
    targets = [target for each in resolved if isinstance(each, list) for target in each]
    lakes = [each for each in targets if isinstance(each, LakeTarget)]
    databases = [each for each in targets if isinstance(each, DatabaseTarget)]
    unusable = [
        (section, each)
        for section, each in zip(usable, resolved, strict=True)
        if isinstance(each, LumosError)
    ]
    failures = tuple(source_failure(source_name(section), problem) for section, problem in unusable)
    if unusable and not (lakes or databases):
        raise unusable[0][1] if len(unusable) == 1 else NoUsableSource(failures)
    addresses: dict[str, str] = {}
    for each in databases:
        first = addresses.setdefault(each.source_id, each.address)
        if first != each.address:
            raise MisuseError(
                f"The tables of {first} and {each.address} would have the same URNs. "
                "Give one of the two sources an 'instance', such as 'instance: replica'."
            )
    return ScanTargets(_without_nested(lakes), databases, failures)


def select_sections(settings: Settings, paths: Sequence[str]) -> list[Section]:
    """The sections for paths and addresses, or else the configured sections."""
    sections: list[Section] = [
        section_of(path, settings.sources) for path in paths if is_address(path)
    ]
    if local := tuple(path for path in paths if not is_address(path)):
        # Reject a password before any message repeats it.
        if any(mask_secret_text(path) == MASK and not os.path.exists(path) for path in local):
            raise MisuseError(
                "One of the paths does not exist and looks like a connection string with a "
                "password. Databases are named as postgresql://user@host/database."
            )
        sections.append(FileSourceSettings(paths=local))
    sections = sections or list(settings.sources)
    if not sections:
        raise MisuseError(
            "Nothing to scan. Name a folder (lumos ingest PATH), or list sources in lumos.yaml "
            "(lumos init writes one)."
        )
    return sections


def _installed_sections(sections: Sequence[Any]) -> list[Any]:
    """The sections whose source types are installed; logs a warning for each of the others."""
    installed = plugins.names(plugins.SOURCES)
    for section in sections:
        if section.type not in installed:
            _log.warning("Skipped source '%s': this version cannot scan it.", section.type)
    usable = [section for section in sections if section.type in installed]
    if sections and not usable:
        raise UnknownName("source", sections[0].type, installed, listed="Installed")
    return usable


def create_source(section: Any) -> LakeSource | TableSource:
    """The source that a section of the configuration describes."""
    plugin: Any = plugins.find(plugins.SOURCES, section.type, "source")
    source: Source = plugin(section)
    if not isinstance(source, LakeSource | TableSource):
        raise MisuseError(f"The source '{section.type}' cannot be scanned by this version.")
    return source


def source_failure(source: str, problem: LumosError) -> Problem:
    """The problem to report for a source that could not be scanned."""
    return Problem(path=source, reason=str(problem).rstrip("."), code=SOURCE_FAILED)


def source_name(source: Any) -> str:
    """The name of a source in messages: its own name or its address, without secrets."""
    paths: tuple[str, ...] = next(
        (values for key in _ADDRESS_KEYS if (values := getattr(source, key, ()))), ()
    )
    address = getattr(source, "connection_string", None) or getattr(source, "host", None) or ""
    return source.name or f"{source.type} {', '.join(paths) or address}".strip()


def _with_scan_settings(selection: FileSelection, settings: Settings) -> FileSelection:
    """The selection of a source, with the settings that apply to all scans."""
    scan = settings.scan
    return selection._replace(
        file_patterns=(*scan.file_patterns, *selection.file_patterns),
        exclude=(*scan.exclude, *selection.exclude),
        hints=hints_for(settings, selection.root, selection.hints),
        tables=scan.tables,
        table_history=scan.table_history,
        join_similar=selection.join_similar or joins_similar(settings, selection.root),
    )


def _without_nested(lakes: Sequence[LakeTarget]) -> list[LakeTarget]:
    """The lakes without duplicates and without roots inside other roots."""
    distinct = list({(each.source.identity, each.selection): each for each in lakes}.values())
    roots = {(each.source.identity, each.address) for each in distinct}
    return [
        each
        for each in distinct
        if not any(
            identity == each.source.identity and each.address.startswith(f"{root.rstrip('/')}/")
            for identity, root in roots
        )
    ]


def selection_for(settings: Settings, root: str) -> FileSelection:
    """The files that a scan of a root reads, by the settings of its source or the defaults."""
    selection = FileSelection(root, access=access_of(root, settings.sources))
    for section in settings.sources:
        if isinstance(section, FileStoreSettings) and root in file_roots(section):
            selection = selection._replace(
                file_patterns=section.file_patterns,
                exclude=section.exclude,
                recursive=section.recursive,
                join_similar=section.join_similar,
            )
            break
    return _with_scan_settings(selection, settings)


def urns_for(settings: Settings, root: str) -> Callable[[str], Urn]:
    """Return a function that returns the URN of a path in a root."""
    configured = (
        create_source(section)
        for section in settings.sources
        if isinstance(section, FileStoreSettings) and root in file_roots(section)
    )
    section = section_of(root, settings.sources) if is_address(root) else None
    source = next(configured, None) or create_source(section or FileSourceSettings(paths=(root,)))
    return lambda path: source.urn(path, environment=settings.environment)


def hints_for(
    settings: Settings, root: str, source_hints: Sequence[FileHint] = ()
) -> tuple[FileHint, ...]:
    """The hints for a root: `source_hints`, then those of its sources, then those for all scans.

    The hints of a source also apply if its root, or a folder in it, is scanned by path or watched
    in a separate section. Otherwise the same files would be grouped differently.
    """
    configured = (
        hint if root == section_root else _with_absolute_paths(hint, section_root)
        for section in _file_sections(settings)
        if section.datasets
        for section_root in file_roots(section)
        if is_below(root, section_root)
        for hint in hints_of(section.datasets)
    )
    return tuple(dict.fromkeys((*source_hints, *configured, *hints_of(settings.scan.datasets))))


def _with_absolute_paths(hint: FileHint, section_root: str) -> FileHint:
    paths = tuple(
        path if is_below(path, section_root) else f"{section_root.rstrip('/')}/{path.strip('/')}"
        for path in hint.paths
    )
    return hint._replace(path=paths if len(paths) > 1 else paths[0])


def joins_similar(settings: Settings, root: str) -> bool:
    """Whether a source that has the root, or a folder above it, joins similar datasets."""
    return any(
        is_below(root, section_root)
        for section in _file_sections(settings)
        if section.join_similar
        for section_root in file_roots(section)
    )


def is_below(path: str, root: str) -> bool:
    """Whether a path is a root or lies below it."""
    return path == root or path.startswith(f"{root.rstrip('/')}/")


def _file_sections(settings: Settings) -> list[FileStoreSettings]:
    """The configured sources of files, including those that are only watched."""
    watched = (each.source for each in settings.change_detection.sources)
    return [each for each in (*settings.sources, *watched) if isinstance(each, FileStoreSettings)]


def file_roots(section: FileStoreSettings) -> list[str]:
    """The configured roots of a source of files, without checking whether they exist."""
    if isinstance(section, FileSourceSettings):
        return [os.path.abspath(path) for path in section.paths]
    return roots_of(section)
