"""How many calls OpenMetadata costs; a stub of it, so proved for the stub only."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from catalogs.servers.http import Answer, Request, Server
from catalogs.servers.openmetadata import Openmetadata
from catalogs.servers.spec import specification
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Documentation, Lineage, UpstreamEdge
from lumos.model.schema import Field, Schema
from lumos.model.types import INT64

from .people import Estate

MANY = 40


@pytest.fixture
def estate() -> Iterator[Estate]:
    stub = Openmetadata(specification())
    with Server(stub) as server:
        yield Estate(stub, server)


def urn(number: int) -> str:
    return f"lumos://postgres/shop/public/t{number:03}"


def table(number: int, words: str = "first") -> CatalogEntry:
    upstream = (UpstreamEdge(urn=urn(number - 1)),) if number else ()
    return CatalogEntry(
        urn=urn(number),
        name=f"t{number:03}",
        platform="postgres",
        schema=Schema(fields=(Field(name="id", type=INT64),)),
        documentation=Documentation(description=words),
        lineage=Lineage(upstream=upstream) if upstream else None,
    )


def calls(estate: Estate, entries: list[CatalogEntry], bases: list[CatalogEntry]) -> Counter[str]:
    """What is asked of the server while some entries are written, by method and route."""
    estate.server.forget()
    written = list(estate.catalog().write_many(entries, {entry.urn: entry for entry in bases}))
    assert len(written) == len(entries)
    return Counter(
        f"{request.method} {request.path.removeprefix('/api/v1/').split('/')[0].split('?')[0]}"
        for request in estate.server.requests
    )


def test_many_of_one_schema_are_read_by_lists_and_not_one_by_one(estate: Estate) -> None:
    first = [table(number) for number in range(MANY)]
    made = calls(estate, first, [])
    # An edge is drawn and noted; nothing else is for one dataset alone.
    assert (made["PUT lineage"], made["PATCH tables"]) == (MANY - 1, MANY - 1)
    assert made["GET tables"] <= 3
    same = calls(estate, first, first)
    assert (same["GET tables"], same["GET lineage"]) == (2, MANY)
    assert not {call for call in same if not call.startswith("GET")}
    changed = calls(estate, [table(number, "second") for number in range(MANY)], first)
    assert (changed["GET tables"], changed["PATCH tables"]) == (2, MANY)
    now = {entry.urn: entry for entry in estate.catalog().export()}
    assert now == {urn(number): table(number, "second") for number in range(MANY)}


def test_few_of_a_schema_are_asked_for_by_their_names(estate: Estate) -> None:
    first = [table(number) for number in range(MANY)]
    calls(estate, first, [])
    few = calls(estate, first[:3], first)
    assert few["GET tables"] == 3


def test_a_schema_that_is_much_longer_than_what_is_asked_for_is_not_listed(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumos.catalogs.openmetadata.index._FULL_PAGE_SIZE", 2)
    first = [table(number) for number in range(MANY)]
    calls(estate, first, [])
    some = calls(estate, first[:20], first)
    # How long it is has to be asked for.
    assert some["GET tables"] == 1 + 20


@pytest.mark.parametrize("fault", ["unknown", "short"])
def test_where_lists_are_not_told_rightly_each_is_asked_for(
    estate: Estate, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    first = [table(number) for number in range(MANY)]
    calls(estate, first, [])
    answer = Openmetadata.__call__

    def faulty(stub: Openmetadata, request: Request) -> Answer:
        if request.method != "GET" or "databaseSchema" not in request.query:
            return answer(stub, request)
        if fault == "unknown":
            return Answer.of({"code": 404, "message": "HTTP 404 Not Found"}, 404)
        paging: Any = {"total": MANY}
        return Answer.of({"data": [], "paging": paging})

    monkeypatch.setattr(Openmetadata, "__call__", faulty)
    same = calls(estate, first, first)
    assert same["GET tables"] > MANY
    assert not {call for call in same if not call.startswith("GET")}


def test_what_is_hidden_or_gone_is_told_by_lists_as_by_names(estate: Estate) -> None:
    first = [table(number) for number in range(MANY)]
    calls(estate, first, [])
    catalog = estate.catalog()
    catalog.delete(urn(1))
    catalog.erase(urn(2))
    urns = [entry.urn for entry in first]
    together = estate.catalog().get_many(urns)
    alone = {each: entry for each in urns if (entry := estate.catalog().get(each)) is not None}
    assert together == alone
    assert together.keys() == set(urns) - {urn(2)}
    assert together[urn(1)].deleted
