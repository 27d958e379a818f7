"""The contract, kept by a real OpenMetadata server.

    LUMOS_OPENMETADATA=http://127.0.0.1:8585 OPENMETADATA_JWT_TOKEN=... pytest tests/platforms/test_openmetadata_server.py

**Everything in that server is removed**, so it must be one to throw away. No server can be had from
the package registries, so none is started here, and CI has the stub alone.
"""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from lumos.config.platforms import OpenmetadataPlatform
from lumos.platforms.openmetadata.platform import Openmetadata
from lumos.platforms.openmetadata.server import Server

from . import test_contract
from .estates import items, rich
from .test_contract import Opened
from .test_lossless import by_name, fill

_ADDRESS = os.environ.get("LUMOS_OPENMETADATA", "")
_SERVICES = tuple(
    f"services/{kind}Services" for kind in ("database", "storage", "messaging", "pipeline")
)
# A thousand datasets take a real server minutes.
_LARGE = ("test_every_dataset_is_read_page_by_page",)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not _ADDRESS,
        reason="no OpenMetadata server that may be emptied is named in LUMOS_OPENMETADATA",
    ),
]
for _name, _test in vars(test_contract).items():
    if _name.startswith("test_") and _name not in _LARGE:
        globals()[_name] = _test


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    server = Server(_settings())
    yield server
    _empty(server)
    server.close()


@pytest.fixture
def opened(server: Server) -> Opened:
    _empty(server)
    return _opened


def test_an_estate_comes_back_from_a_real_server(opened: Opened) -> None:
    fill(opened(), rich(), items())
    assert list(opened().export()) == sorted(rich(), key=lambda entry: entry.urn)
    assert by_name(opened().items()) == by_name(items())


def _settings() -> OpenmetadataPlatform:
    return OpenmetadataPlatform(server=_ADDRESS)


def _opened() -> Openmetadata:
    return Openmetadata(_settings())


def _empty(server: Server) -> None:
    """Removes all but what came with the server."""
    for route in (*_SERVICES, "glossaries", "classifications", "domains"):
        for entity in list(server.pages(route)):
            if entity.get("provider") != "system":
                _remove(server, route, entity)
    for route in ("users", "teams"):
        for entity in list(server.pages(route)):
            is_built_in = entity.get("isBot") or entity.get("isAdmin")
            if not is_built_in and entity.get("teamType") != "Organization":
                _remove(server, route, entity)


def _remove(server: Server, route: str, entity: dict[str, Any]) -> None:
    server.delete(f"{route}/{entity['id']}", hardDelete=True, recursive=True)
