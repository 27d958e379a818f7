"""Lumos: metadata automation between data sources and any catalog."""

from importlib import import_module
from typing import TYPE_CHECKING

from lumos.version import __version__

if TYPE_CHECKING:
    from lumos.sdk import Lumos

__all__ = ["Lumos", "__version__"]


def __getattr__(name: str) -> object:
    # The SDK pulls in the database layer, which `lumos --help` must not wait for.
    if name == "Lumos":
        return import_module("lumos.sdk").Lumos
    raise AttributeError(f"module 'lumos' has no attribute '{name}'")
