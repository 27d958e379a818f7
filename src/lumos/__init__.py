"""Lumos: metadata automation between the places where data lives and any catalog."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lumos.engine import Lumos

__version__ = "0.1.0"
__all__ = ["Lumos", "__version__"]


def __getattr__(name: str) -> object:
    # The engine pulls in the database layer, which `lumos --help` must not wait for.
    if name == "Lumos":
        return import_module("lumos.engine").Lumos
    raise AttributeError(f"module 'lumos' has no attribute '{name}'")
