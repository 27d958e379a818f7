"""Finds the class of a platform, and opens the configured catalog."""

import logging
from pathlib import Path
from typing import Any, Final

from lumos import plugins
from lumos.catalogs import HasAddress, Platform, StoredInFile
from lumos.catalogs.handlers import platform_class
from lumos.config import Settings
from lumos.errors import MisuseError

LOCAL: Final = "local"
_log = logging.getLogger(__name__)


def find_platform(kind: str) -> type[Platform]:
    """The platform class for a kind."""
    return platform_class(kind, plugins.find(plugins.PLATFORMS, kind, "platform"))


def platform_of(settings: Settings) -> Platform | None:
    """The catalog to publish to, or None if metadata is only kept in the local store."""
    kind, colon, address = settings.platform.partition(":")
    if kind == LOCAL:
        return None
    if kind not in plugins.names(plugins.PLATFORMS):
        _log.warning(
            "This version cannot write to '%s'; metadata is only kept in the local store.", kind
        )
        return None
    plugin: Any = find_platform(kind)
    platform: Platform
    if not colon:
        platform = plugin(settings.platform_config.of(kind))
    elif issubclass(plugin, HasAddress):
        is_file = issubclass(plugin, StoredInFile)
        address = str(Path(settings.origin.folder, address)) if is_file else address
        platform = plugin.at(address, settings.platform_config.of(kind))
    else:
        raise MisuseError(f"The platform '{kind}' has no address. Configure it in platform_config.")
    return platform
