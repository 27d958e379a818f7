"""Lumos: metadata automation between data sources and any catalog."""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from lumos.version import __version__

if TYPE_CHECKING:
    from lumos.sdk import Lumos
    from lumos.server.client import connect

__all__ = ["Lumos", "__version__", "connect"]
_MODULES: Final = {"Lumos": "lumos.sdk", "connect": "lumos.server.client"}


def __getattr__(name: str) -> object:
    # Imported late: the SDK imports the database layer, which `lumos --help` does not need.
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'lumos' has no attribute '{name}'")
