"""The source and the catalog that a configuration means."""

import logging
import os
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from lumos import plugins
from lumos.config import Settings
from lumos.config.secret import MASK, mask_secret_text
from lumos.config.sources import FileSourceSettings, FileStoreSettings
from lumos.config.sources import SourceSettings as Section
from lumos.errors import LumosError, MisuseError, UnknownName
from lumos.model.discovery import Problem
from lumos.sources import LakeSource, Source, TableSource, hints_of
from lumos.sources.addresses import is_address, roots_of, section_of
from lumos.storage import FileHint, FileSelection

SOURCE_FAILED: Final = "source_failed"
_log = logging.getLogger(__name__)

Lake: TypeAlias = tuple[LakeSource, FileSelection]


class Places(NamedTuple):
    """All that a scan looks at: roots of lakes, and databases."""

    lakes: list[Lake]
    databases: list[TableSource]
    failures: tuple[Problem, ...] = ()

    @property
    def addresses(self) -> tuple[str, ...]:
        """The places in words for people."""
        databases = (source.address for source in self.databases)
        return (*databases, *(root.root for _, root in self.lakes))


def source_of(section: Any) -> LakeSource | TableSource:
    """The source that a section of the configuration describes."""
    plugin: Any = plugins.find(plugins.SOURCES, section.type, "source")
    source: Source = plugin(section)
    if not isinstance(source, LakeSource | TableSource):
        raise MisuseError(f"The source '{section.type}' cannot be scanned by this version.")
    return source


def scannable(sections: Sequence[Any]) -> list[Any]:
    """The sections whose sources this version can scan; the others are named in a warning."""
    installed = plugins.names(plugins.SOURCES)
    for section in sections:
        if section.type not in installed:
            _log.warning("this version cannot scan '%s'; the source is passed over", section.type)
    usable = [section for section in sections if section.type in installed]
    if sections and not usable:
        raise UnknownName("source", sections[0].type, installed, listed="Installed")
    return usable


def places_of(
    settings: Settings,
    paths: Sequence[str],
    sections: Sequence[Section] = (),
    *,
    as_far_as_possible: bool = False,
) -> Places:
    """What to scan for sections, or else for paths and addresses, or for the configured sources.

    All of it was looked at, so that nothing is begun that cannot be ended. `as_far_as_possible`
    leaves out sources that cannot be used, unless none can.
    """
    wanted = scannable(sections or sections_of(settings, paths))
    lakes: list[Lake] = []
    databases: list[TableSource] = []
    refused: list[tuple[Section, LumosError]] = []
    for section in wanted:
        source = source_of(section)
        try:
            if isinstance(source, LakeSource):
                lakes += [(source, root) for root in source.roots()]
            else:
                source.check()
                databases.append(source)
        except LumosError as problem:
            if not as_far_as_possible:
                raise
            refused.append((section, problem))
    if refused and not (lakes or databases):
        raise refused[0][1]
    _check_instances(databases)
    failures = tuple(failure_of(name_of(section), problem) for section, problem in refused)
    return Places(_roots(lakes, settings), databases, failures)


class ScanFailed(LumosError):
    """The storage of a lake, or of the state of its scans, failed during a scan."""

    def __init__(self, root: str, problem: OSError) -> None:
        super().__init__(
            f"The scan of {root} failed: {problem}. Run it again once the storage answers."
        )


def failure_of(source: str, problem: LumosError) -> Problem:
    """What a scan of several sources says of one that it could not scan."""
    return Problem(path=source, reason=str(problem).rstrip("."), code=SOURCE_FAILED)


def name_of(source: Any) -> str:
    """What a source is called in messages: by its name or its place, without any secret."""
    places: tuple[str, ...] = getattr(source, "paths", ()) or getattr(source, "buckets", ())
    address = getattr(source, "connection_string", None) or getattr(source, "host", None) or ""
    return source.name or f"{source.type} {', '.join(places) or address}".strip()


def _check_instances(databases: Sequence[TableSource]) -> None:
    """Refuses two databases whose tables would have the same URNs."""
    addresses: dict[tuple[str, str], str] = {}
    for source in databases:
        first = addresses.setdefault((source.identity, source.scope), source.address)
        if first != source.address:
            raise MisuseError(
                f"{first} and {source.address} would be one and the same to Lumos. "
                "Give one of the two sources an 'instance', such as 'instance: replica'."
            )


def _check_no_secrets(paths: Sequence[str]) -> None:
    """Refuses what is a connection string rather than a path, before anything repeats it."""
    if any(mask_secret_text(path) == MASK and not os.path.exists(path) for path in paths):
        raise MisuseError(
            "One of the paths is not there and looks like a connection string with a password. "
            "Databases are named as postgresql://user@host/database."
        )


def _roots(lakes: Sequence[Lake], settings: Settings) -> list[Lake]:
    always = settings.scan
    narrowed = [
        (
            source,
            root._replace(
                file_patterns=(*always.file_patterns, *root.file_patterns),
                exclude=(*always.exclude, *root.exclude),
                hints=hints_in(settings, root.root, root.hints),
                tables=always.tables,
                table_history=always.table_history,
                join_similar=root.join_similar or joins_similar(settings, root.root),
            ),
        )
        for source, root in lakes
    ]
    return _apart(narrowed)


def hints_in(settings: Settings, root: str, own: Sequence[FileHint] = ()) -> tuple[FileHint, ...]:
    """The hints for a root: `own`, those of the sources that have the root, those of all scans.

    A source's hints count even if its root, or a folder in it, is scanned by path or watched by a
    section of its own: otherwise the same files would be grouped in two ways, one after the other.
    """
    configured = (
        hint if root == top else _whole(hint, top)
        for section in file_sections(settings)
        if section.datasets
        for top in file_roots(section)
        if is_in(root, top)
        for hint in hints_of(section.datasets)
    )
    return tuple(dict.fromkeys((*own, *configured, *hints_of(settings.scan.datasets))))


def joins_similar(settings: Settings, root: str) -> bool:
    """Whether a source that has the root, or a folder above it, joins similar datasets."""
    return any(
        is_in(root, top)
        for section in file_sections(settings)
        if section.join_similar
        for top in file_roots(section)
    )


def is_in(path: str, root: str) -> bool:
    """Whether a path is a root or lies below it."""
    return path == root or path.startswith(f"{root.rstrip('/')}/")


def _whole(hint: FileHint, top: str) -> FileHint:
    """A hint with whole paths instead of those from a root."""
    paths = tuple(
        path if is_in(path, top) else f"{top.rstrip('/')}/{path.strip('/')}" for path in hint.paths
    )
    return hint._replace(path=paths if len(paths) > 1 else paths[0])


def file_sections(settings: Settings) -> list[FileStoreSettings]:
    """The configured sources that are made of files, also those that are only watched."""
    watched = (each.source for each in settings.change_detection.sources)
    return [each for each in (*settings.sources, *watched) if isinstance(each, FileStoreSettings)]


def file_roots(section: FileStoreSettings) -> list[str]:
    """The roots of a source made of files, as they are written; nothing is looked at."""
    if isinstance(section, FileSourceSettings):
        return [os.path.abspath(path) for path in section.paths]
    return roots_of(section)


def _apart(roots: list[Lake]) -> list[Lake]:
    """The roots without those that lie inside another one, or are named twice."""
    distinct = list({(source.identity, root): (source, root) for source, root in roots}.values())
    folders = {(source.identity, root.root) for source, root in distinct}
    return [
        (source, root)
        for source, root in distinct
        if not any(
            identity == source.identity and root.root.startswith(f"{folder.rstrip('/')}/")
            for identity, folder in folders
        )
    ]


def sections_of(settings: Settings, paths: Sequence[str]) -> list[Section]:
    """The sections that paths and addresses mean, or else the configured ones."""
    sections: list[Section] = [
        section_of(path, settings.sources) for path in paths if is_address(path)
    ]
    if local := tuple(path for path in paths if not is_address(path)):
        _check_no_secrets(local)
        sections.append(FileSourceSettings(paths=local))
    sections = sections or list(settings.sources)
    if not sections:
        raise MisuseError(
            "Nothing to scan. Name a folder (lumos ingest PATH), or list sources in lumos.yaml "
            "(lumos init writes one)."
        )
    return sections
