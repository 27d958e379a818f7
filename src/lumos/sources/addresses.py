"""What an address means that somebody names without describing it."""

from collections.abc import Sequence
from typing import Final

from lumos.config.secret import ConnectionString
from lumos.config.sources import (
    FileStoreSettings,
    MongodbSourceSettings,
    PostgresSourceSettings,
    SourceSettings,
)
from lumos.sources.stores import STORES, store_at
from lumos.storage import USUAL, Access

_POSTGRES_SCHEMES: Final = ("postgres", "postgresql")
_MONGODB_SCHEMES: Final = ("mongodb", "mongodb+srv")


def is_address(path: str) -> bool:
    """Whether a path is the address of a store rather than a place on this machine."""
    return "://" in path


def normal(address: str, configured: Sequence[SourceSettings] = ()) -> str:
    """The one spelling of an address of a folder; what it leaves out the sources may tell."""
    return store_at(address).normal(address, configured) if is_address(address) else address


def section_of(address: str, configured: Sequence[SourceSettings]) -> SourceSettings:
    """The section for an address: reached as a configured source of its store, if there is one.

    The address of a database holds all that is needed to reach it, or its driver finds the rest.
    """
    scheme = address.partition("://")[0]
    if scheme in _POSTGRES_SCHEMES:
        return PostgresSourceSettings(connection_string=ConnectionString(address))
    if scheme in _MONGODB_SCHEMES:
        return MongodbSourceSettings(connection_string=ConnectionString(address))
    return store_at(address).section(address, configured)


def access_of(address: str, configured: Sequence[SourceSettings]) -> Access:
    """How an address is reached: as a configured source of its store, or as the only source."""
    return store_at(address).access(address, configured) if is_address(address) else USUAL


def roots_of(section: FileStoreSettings) -> list[str]:
    """What a section of a store means, as addresses; nothing is looked at."""
    store = STORES.get(section.type)
    return [] if store is None else store.roots(section)
