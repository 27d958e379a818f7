"""The source and the catalog that a configuration means."""

import logging
from collections.abc import Sequence
from typing import Any, Final

from lumos import plugins
from lumos.config import Settings
from lumos.errors import MisuseError, UnknownName
from lumos.platforms import Platform
from lumos.sources import LakeSource, Source

LOCAL: Final = "local"
_log = logging.getLogger(__name__)


def source_of(section: Any) -> LakeSource:
    """The source that a section of the configuration describes."""
    plugin: Any = plugins.find(plugins.SOURCES, section.type, "source")
    source: Source = plugin(section)
    if not isinstance(source, LakeSource):
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


def platform_of(settings: Settings) -> Platform | None:
    """The catalog to keep true beside the store, if there is one."""
    if settings.platform == LOCAL:
        return None
    if settings.platform not in plugins.names(plugins.PLATFORMS):
        _log.warning(
            "this version cannot write to the platform '%s'; what is found stays in the store",
            settings.platform,
        )
        return None
    plugin: Any = plugins.find(plugins.PLATFORMS, settings.platform, "platform")
    platform: Platform = plugin(settings.platform_config)
    return platform
