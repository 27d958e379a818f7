"""The catalogs that the contract holds for; each is opened anew on what it kept."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TypeAlias

from catalogs.local_platform import LocalStorePlatform
from lumos.catalogs import WritesInBatches
from lumos.catalogs.amundsen.file_platform import AmundsenFile
from lumos.catalogs.atlas.platform import Atlas
from lumos.catalogs.datahub.file_platform import DatahubFile
from lumos.catalogs.datahub.platform import Datahub
from lumos.catalogs.openmetadata.platform import Openmetadata
from lumos.config.platforms import AtlasPlatform
from lumos.config.secret import Secret
from lumos.store import Database, Store
from servers import atlas as real_atlas

from . import live
from .json_folder import JsonFolder

Catalog: TypeAlias = (
    LocalStorePlatform | DatahubFile | Datahub | Openmetadata | Atlas | AmundsenFile | JsonFolder
)


def local(folder: Path) -> LocalStorePlatform:
    return LocalStorePlatform(Store.open(Database.sqlite(folder / "lumos.db"), create=True))


def local_on(url: str) -> LocalStorePlatform:
    return LocalStorePlatform(Store.open(Database.postgres(url), create=True))


def atlas_at(address: str) -> Atlas:
    """A real server."""
    password = Secret(real_atlas.PASSWORD)
    return Atlas(AtlasPlatform(server=address, user=real_atlas.USER, password=password))


def datahub_file(folder: Path) -> DatahubFile:
    return DatahubFile.at(str(folder / "estate.json"))


def amundsen_file(folder: Path) -> AmundsenFile:
    return AmundsenFile.at(str(folder / "csv"))


def json_folder(folder: Path) -> JsonFolder:
    return JsonFolder.at(str(folder / "catalog"))


CATALOGS: dict[str, Callable[[Path], Catalog]] = {
    "local": local,
    "datahub-file": datahub_file,
    "datahub": live.datahub,
    "openmetadata": live.openmetadata,
    "atlas": live.atlas,
    "amundsen-file": amundsen_file,
    "json-folder": json_folder,
}
# Catalogs that have columns without fields inside them.
FLAT = {"amundsen-file", "atlas", "json-folder"}
POSTGRES = "local on PostgreSQL"
REAL_ATLAS = f"atlas {real_atlas.VERSION}"


def called(name: str) -> str:
    """What a test is called that runs on a catalog: a stub proves nothing of a real server."""
    return f"{name} stub" if name in live.RIGS else name


def together(catalog: object) -> AbstractContextManager[None]:
    """Writes at once where that is possible; a server takes them as they come."""
    return catalog.batch() if isinstance(catalog, WritesInBatches) else nullcontext()
