"""Edges in OpenMetadata, which others draw and take away, too; the server is a stub of one."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from catalogs.servers.http import Server
from catalogs.servers.openmetadata import Openmetadata as Stub
from lumos.config.platforms import Retries
from lumos.model.dataset import (
    Documentation,
    Lineage,
    UpstreamEdge,
)
from lumos.model.lineage import ColumnMapping

from .people import OTHER, SOURCE, Estate, table


@pytest.fixture
def estate() -> Iterator[Estate]:
    stub = Stub()
    with Server(stub) as server:
        yield Estate(stub, server)


def lineage(*edges: UpstreamEdge) -> Lineage:
    return Lineage(upstream=edges)


def edge(urn: str, *pairs: tuple[str, str], **facts: Any) -> UpstreamEdge:
    columns = tuple(ColumnMapping(upstream=a, downstream=b) for a, b in pairs)
    return UpstreamEdge(urn=urn, columns=columns, **facts)


def test_another_writers_edges_and_columns_stay(estate: Estate) -> None:
    catalog = estate.catalog()
    for urn in (SOURCE, OTHER):
        catalog.write(table(urn))
    base = table(lineage=lineage(edge(SOURCE, ("id", "id"))))
    catalog.write(base)
    assert estate.edges() == {"source": {("id", "id")}}
    estate.draw("source", ("id", "id"), ("net", "net"))
    estate.draw("other")
    ours = table(lineage=lineage(edge(SOURCE, ("id", "id"), ("id", "net"))))
    estate.catalog().write(ours, base=base)
    assert estate.edges() == {
        "source": {("id", "id"), ("net", "net"), ("id", "net")},
        "other": set(),
    }


def test_an_edge_that_comes_between_our_reading_and_our_writing_stays(estate: Estate) -> None:
    catalog = estate.catalog()
    for urn in (SOURCE, OTHER):
        catalog.write(table(urn))
    base = table(lineage=lineage(edge(SOURCE, ("id", "id"))))
    catalog.write(base)

    def act() -> None:
        estate.draw("source", ("id", "id"), ("net", "net"))
        estate.draw("other")

    estate.just_before("PATCH", "/tables/", act)
    ours = table(lineage=lineage(edge(SOURCE, ("id", "id"), ("id", "net"))))
    estate.catalog().write(ours, base=base)
    assert estate.edges() == {
        "source": {("id", "id"), ("net", "net"), ("id", "net")},
        "other": set(),
    }


def test_edges_and_columns_that_people_took_away_stay_away(estate: Estate) -> None:
    catalog = estate.catalog()
    for urn in (SOURCE, OTHER):
        catalog.write(table(urn))
    base = table(lineage=lineage(edge(SOURCE, ("id", "id"), ("net", "net")), edge(OTHER)))
    catalog.write(base)
    estate.draw("source", ("id", "id"))
    ids = {name: estate.raw(f"postgres.shop.public.{name}")["id"] for name in ("other", "orders")}
    estate.human("DELETE", f"lineage/table/{ids['other']}/table/{ids['orders']}")
    assert estate.now().lineage == lineage(edge(SOURCE, ("id", "id")))
    estate.catalog().write(
        msgspec.structs.replace(base, documentation=Documentation(description="A")), base=base
    )
    assert estate.edges() == {"source": {("id", "id")}}


def test_edges_that_lumos_no_longer_claims_go(estate: Estate) -> None:
    catalog = estate.catalog()
    for urn in (SOURCE, OTHER):
        catalog.write(table(urn))
    base = table(lineage=lineage(edge(SOURCE, ("id", "id"), ("net", "net")), edge(OTHER)))
    catalog.write(base)
    estate.catalog().write(table(lineage=lineage(edge(SOURCE, ("id", "id")))), base=base)
    assert estate.edges() == {"source": {("id", "id")}}


def test_an_edge_is_drawn_once_its_other_end_is_there(estate: Estate) -> None:
    catalog = estate.catalog()
    whole = table(lineage=lineage(edge(SOURCE, ("id", "id"), type="COPIED")))
    catalog.write(whole)
    assert estate.edges() == {}
    catalog.write(table(SOURCE))
    assert estate.edges() == {"source": {("id", "id")}}
    assert estate.now() == whole
    assert not estate.catalog().put(whole).changed


def test_an_edge_that_waited_in_vain_is_drawn_by_the_next_write(estate: Estate) -> None:
    whole = table(lineage=lineage(edge(SOURCE, ("id", "id"))))
    estate.catalog().write(whole)
    estate.catalog().write(table(SOURCE))
    assert estate.edges() == {}
    assert estate.now() == whole
    estate.catalog().write(whole, base=whole)
    assert estate.edges() == {"source": {("id", "id")}}


def test_columns_that_the_server_drops_without_a_word_are_not_lost(estate: Estate) -> None:
    estate.catalog().write(table(SOURCE))
    whole = table(lineage=lineage(edge(SOURCE, ("id", "id"), ("nowhere", "net"))))
    estate.catalog().write(whole)
    assert estate.edges() == {"source": {("id", "id")}}
    assert estate.now() == whole
    assert not estate.catalog().put(whole).changed


def test_an_edge_stays_known_when_its_other_end_is_erased_and_comes_again(estate: Estate) -> None:
    whole = table(lineage=lineage(edge(SOURCE, ("id", "id"))))
    estate.catalog().write(table(SOURCE))
    estate.catalog().write(whole)
    estate.catalog().erase(SOURCE)
    assert estate.now() == whole
    estate.catalog().write(table(SOURCE))
    assert estate.now() == whole


def test_a_server_without_its_search_engine_draws_edges_all_the_same(estate: Estate) -> None:
    estate.catalog().write(table(SOURCE))
    estate.stub.is_searchable = False
    once = estate.catalog(retries=Retries(attempts=1))
    once.write(table(lineage=lineage(edge(SOURCE, ("id", "id")))))
    assert estate.edges() == {"source": {("id", "id")}}


def test_an_edge_from_what_people_hid_stays_known(estate: Estate) -> None:
    whole = table(lineage=lineage(edge(SOURCE, ("id", "id"))))
    estate.catalog().write(table(SOURCE))
    estate.catalog().write(whole)
    estate.human("DELETE", f"tables/{estate.raw('postgres.shop.public.source')['id']}")
    assert estate.now() == whole
    assert not estate.catalog().put(whole).changed


def test_columns_of_an_edge_come_back_when_the_upstream_column_does(estate: Estate) -> None:
    whole = table(lineage=lineage(edge(SOURCE, ("net", "id"), ("id", "net"))))
    estate.catalog().write(table(SOURCE))
    estate.catalog().write(whole)
    # One bad scan, after which the server itself takes the column out of the edge.
    estate.catalog().write(table(SOURCE, "id"), base=table(SOURCE))
    assert estate.edges() == {"source": {("id", "net")}}
    assert estate.now() == whole
    estate.catalog().write(table(SOURCE), base=table(SOURCE, "id"))
    estate.catalog().write(whole, base=whole)
    assert estate.edges() == {"source": {("net", "id"), ("id", "net")}}
    assert estate.now() == whole
