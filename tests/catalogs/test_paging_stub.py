"""Reading all of a catalog that holds more than a search shows; the servers are stubs."""

from collections.abc import Iterator
from itertools import islice

import pytest

from lumos.catalogs.datahub.platform import Datahub
from lumos.catalogs.openmetadata.platform import Openmetadata
from lumos.config.platforms import DatahubPlatform, OpenmetadataPlatform
from lumos.config.secret import Secret

from .servers import openmetadata
from .servers.faults import TOO_MANY, UNAVAILABLE, InTurn
from .servers.gms import TOKEN, Gms
from .servers.http import Server
from .servers.openmetadata_kinds import Writer

COUNT = 12_000


@pytest.fixture(scope="module")
def gms() -> Gms:
    """More datasets than a search window, one in a hundred of them hidden."""
    gms = Gms(validating=False)
    for number in range(COUNT):
        gms.hold(
            f"urn:li:dataset:(urn:li:dataPlatform:s3,lake/t{number:05},PROD)",
            {
                "status": {"removed": number % 100 == 0},
                "datasetProperties": {"name": f"t{number}", "customProperties": {}, "tags": []},
            },
        )
    return gms


@pytest.fixture
def server(gms: Gms) -> Iterator[Server]:
    gms.scroll_life = None
    with Server(gms) as server:
        yield server


@pytest.fixture
def catalog(server: Server) -> Iterator[Datahub]:
    catalog = Datahub(DatahubPlatform(gms_server=server.address, token=Secret(TOKEN)))
    yield catalog
    catalog.close()


def expected(numbers: range = range(COUNT)) -> list[str]:
    return [f"lumos://s3/lake/t{number:05}" for number in numbers]


def test_all_are_read_and_none_twice(catalog: Datahub, server: Server) -> None:
    found = [(entry.urn, entry.deleted) for entry in catalog.export()]
    assert found == [(urn, number % 100 == 0) for number, urn in enumerate(expected())]
    assert not any(request.query.get("action") == "search" for request in server.requests)
    # Twelve pages of names, and the datasets some hundreds at a time.
    assert server.calls <= 12 + COUNT // 100 + 2
    assert server.connections <= 8
    assert catalog.count() == COUNT


def test_reading_begins_in_the_middle(catalog: Datahub, server: Server) -> None:
    urns = expected()
    assert [entry.urn for entry in catalog.export(after=urns[COUNT - 6])] == urns[COUNT - 5 :]
    assert server.calls <= 12 + 3


def test_the_first_ones_are_there_before_all_are_read(catalog: Datahub, server: Server) -> None:
    assert [entry.urn for entry in islice(catalog.export(), 5)] == expected(range(5))
    assert server.calls <= 12 + 8


def test_a_scroll_that_expires_is_begun_again(catalog: Datahub, gms: Gms, server: Server) -> None:
    pages = 0

    def expire_in_the_middle(_request: object) -> None:
        nonlocal pages
        pages += 1
        # Once, after five pages: as a server that was restarted.
        gms.scroll_life = -1 if pages == 6 else None

    server.before.append(expire_in_the_middle)
    assert [entry.urn for entry in islice(catalog.export(), 5)] == expected(range(5))
    assert pages > 12 + 6


def test_pages_are_asked_for_again_where_a_server_is_busy(catalog: Datahub, server: Server) -> None:
    server.mishaps = InTurn(None, None, TOO_MANY, None, UNAVAILABLE, *[None] * 11, TOO_MANY)
    assert [entry.urn for entry in islice(catalog.export(), 900)] == expected(range(900))
    assert len(server.met) == 3


@pytest.fixture(scope="module")
def openmetadata_stub() -> openmetadata.Openmetadata:
    """The same in OpenMetadata, as tables of one schema."""
    stub = openmetadata.Openmetadata()
    put, human = stub.estate.put, Writer("admin")
    put("databaseService", {"name": "snowflake", "serviceType": "Snowflake"}, human)
    put("database", {"name": "lake", "service": "snowflake"}, human)
    put("databaseSchema", {"name": "raw", "database": "snowflake.lake"}, human)
    for number in range(COUNT):
        body = {"name": f"t{number:05}", "databaseSchema": "snowflake.lake.raw", "columns": []}
        put("table", body, human)[0].deleted = number % 100 == 0
    return stub


@pytest.fixture
def openmetadata_server(openmetadata_stub: openmetadata.Openmetadata) -> Iterator[Server]:
    with Server(openmetadata_stub) as server:
        yield server


@pytest.fixture
def openmetadata_catalog(openmetadata_server: Server) -> Iterator[Openmetadata]:
    token = Secret(openmetadata.BOT)
    catalog = Openmetadata(
        OpenmetadataPlatform(server=openmetadata_server.address, auth_token=token)
    )
    yield catalog
    catalog.close()


def test_openmetadata_is_read_by_lists_and_not_by_searching(
    openmetadata_catalog: Openmetadata, openmetadata_server: Server
) -> None:
    assert openmetadata_catalog.count() == COUNT
    middle = f"lumos://snowflake/lake/raw/t{COUNT - 6:05}"
    last = [(entry.urn, entry.deleted) for entry in openmetadata_catalog.export(after=middle)]
    assert last == [
        (f"lumos://snowflake/lake/raw/t{number:05}", number % 100 == 0)
        for number in range(COUNT - 5, COUNT)
    ]
    assert not any("search" in request.path for request in openmetadata_server.requests)
    assert openmetadata_server.calls <= COUNT // 100 + 20


@pytest.mark.slow
def test_all_of_openmetadata_is_read(openmetadata_catalog: Openmetadata) -> None:
    found = [entry.urn for entry in openmetadata_catalog.export()]
    assert found == [f"lumos://snowflake/lake/raw/t{number:05}" for number in range(COUNT)]
