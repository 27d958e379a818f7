"""The catalogs that the contract holds for; each is opened anew on what it kept."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from lumos.engine.platforms import LocalPlatform
from lumos.platforms.datahub_file import DatahubFile
from lumos.store import Database, Store

Catalog: TypeAlias = LocalPlatform | DatahubFile


def local(folder: Path) -> LocalPlatform:
    return LocalPlatform(Store.open(Database.sqlite(folder / "lumos.db"), create=True))


def local_on(url: str) -> LocalPlatform:
    return LocalPlatform(Store.open(Database.postgres(url), create=True))


def datahub_file(folder: Path) -> DatahubFile:
    return DatahubFile.at(str(folder / "estate.json"))


CATALOGS: dict[str, Callable[[Path], Catalog]] = {
    "local": local,
    "datahub-file": datahub_file,
}
POSTGRES = "local on PostgreSQL"
