"""A catalog over a stub of DataHub's server, and what is put there."""

from typing import Any

from catalogs.servers.gms import TOKEN
from catalogs.servers.http import Server
from lumos.catalogs import FailedEntry, WrittenEntry
from lumos.catalogs.datahub.platform import Datahub
from lumos.config.platforms import DatahubPlatform
from lumos.config.secret import Secret
from lumos.model.catalog import CatalogEntry

NAME = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/orders,PROD)"


def catalog_of(server: Server, **settings: Any) -> Datahub:
    return Datahub(
        DatahubPlatform(gms_server=server.address, **{"token": Secret(TOKEN), **settings})
    )


def plain(name: str = "orders", **aspects: Any) -> CatalogEntry:
    return CatalogEntry(urn=f"lumos://s3/lake/{name}", name=name, platform="s3", **aspects)


def put(catalog: Datahub, *entries: CatalogEntry) -> dict[str, WrittenEntry | FailedEntry]:
    return {each.urn: each for each in catalog.put_many(entries, current={})}
