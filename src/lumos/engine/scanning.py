"""The source and the catalog that a configuration means."""

from typing import Any, Final

from lumos import plugins
from lumos.config import Settings
from lumos.errors import MisuseError
from lumos.platforms import Platform
from lumos.sources import LakeSource, Source

LOCAL: Final = "local"


def source_of(section: Any) -> LakeSource:
    """The source that a section of the configuration describes."""
    plugin: Any = plugins.find(plugins.SOURCES, section.type, "source")
    source: Source = plugin(section)
    if not isinstance(source, LakeSource):
        raise MisuseError(f"The source '{section.type}' cannot be scanned by this version.")
    return source


def platform_of(settings: Settings) -> Platform | None:
    """The catalog to keep true beside the store, if there is one."""
    if settings.platform == LOCAL:
        return None
    plugin: Any = plugins.find(plugins.PLATFORMS, settings.platform, "platform")
    platform: Platform = plugin(settings.platform_config)
    return platform
