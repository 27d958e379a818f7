"""A real Hive metastore as a source."""

from collections.abc import Iterator
from time import sleep
from typing import Any

import pytest

from lumos import Lumos
from lumos.config.sources import HiveSourceSettings
from lumos.errors import LumosError
from lumos.model.types import parse_type
from lumos.sources.interface import RegisteredPartition, Registration
from lumos.sources.metastores.hive import HiveSource
from lumos.store import Store
from servers.hive import HiveMetastore, hive_metastore

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("workplace")]


@pytest.fixture(scope="module")
def server() -> Iterator[HiveMetastore]:
    with hive_metastore() as uri, HiveMetastore.connect(uri) as metastore:
        yield metastore


@pytest.fixture
def metastore(server: HiveMetastore) -> HiveMetastore:
    server.clear()
    server.create_database("shop")
    return server


def _lumos(metastore: HiveMetastore, **facts: object) -> Lumos:
    return Lumos(overrides={"sources": [{"type": "hive", "uri": metastore.uri, **facts}]})


def _read(metastore: HiveMetastore) -> tuple[dict[str, Any], list[Registration]]:
    rows: list[Registration] = []
    source = HiveSource(HiveSourceSettings(uris=(metastore.uri,)))
    found = source.read_registered(rows.append, lambda _: None)
    assert found.problems == ()
    return {each.name or "": each for each in found.datasets}, rows


def test_tables_have_nested_types_owners_comments_and_partitions(metastore: HiveMetastore) -> None:
    metastore.put(
        "shop", "orders",
        [("id", "bigint"), ("lines", "array<struct<sku:string,price:decimal(9,2)>>")],
        keys=[("dt", "date")], location="file:///tmp/lumos-lake/orders",
        parameters={"EXTERNAL": "TRUE", "comment": "All orders", "team": "sales"},
    )  # fmt: skip
    metastore.add_partitions(
        "shop", "orders",
        {("2024-01-01",): "file:///tmp/lumos-lake/orders/dt=2024-01-01",
         ("2024-01-02",): "file:///tmp/lumos-lake/elsewhere"},
    )  # fmt: skip
    found, rows = _read(metastore)
    orders = found["shop.orders"]
    assert orders.schema.fields[1].type == parse_type(
        "ARRAY<STRUCT<sku: STRING, price: DECIMAL(9,2)>>"
    )
    assert [field.name for field in orders.schema.fields if field.partition] == ["dt"]
    assert orders.source_metadata.description == "All orders"
    assert orders.source_metadata.owner.name == "etl"
    assert orders.source_metadata.properties["parameter.team"] == "sales"
    assert orders.source_metadata.properties["format"] == "parquet"
    assert orders.statistics.partition_count == 2
    locations = {row.values: row.location for row in rows if isinstance(row, RegisteredPartition)}
    assert locations[("2024-01-02",)].endswith("/tmp/lumos-lake/elsewhere")


def test_a_view_has_lineage_and_a_renamed_table_keeps_its_history(metastore: HiveMetastore) -> None:
    metastore.put("shop", "orders", [("id", "bigint"), ("state", "string")])
    # Hive 3 has no ids of tables. Tables of the same second cannot be told apart by their age.
    sleep(1.1)
    metastore.put(
        "shop", "paid", [("id", "bigint")],
        tableType="VIRTUAL_VIEW", parameters={},
        viewOriginalText="select id from orders where state = 'paid'",
        viewExpandedText="select `orders`.`id` from `shop`.`orders` where `orders`.`state` = 'paid'",
    )  # fmt: skip
    lumos = _lumos(metastore)
    urns = {each.name: each.urn for each in lumos.ingest().datasets}
    store = Store.open(lumos.database)
    lineage = store.get(urns["shop.paid"]).lineage
    assert lineage is not None
    assert [edge.urn for edge in lineage.upstream] == [urns["shop.orders"]]
    table = metastore.client.get_table("shop", "orders")
    table.tableName = "orders_v2"
    metastore.client.alter_table("shop", "orders", table)
    lumos.ingest()
    events = [event.type.value for event in store.events(urns["shop.orders"])]
    assert events == ["CREATED", "RENAMED"]
    assert store.resolve(urns["shop.orders"]).endswith("/shop/orders_v2")


def test_more_partitions_than_one_batch_and_four_thousand_columns_are_read(
    metastore: HiveMetastore,
) -> None:
    metastore.put(
        "shop", "wide", [(f"c{number}", "string") for number in range(4000)], keys=[("k", "string")]
    )
    metastore.add_partitions(
        "shop", "wide", {(str(number),): f"file:///lake/wide/k={number}" for number in range(30)}
    )
    found, rows = _read(metastore)
    assert len(found["shop.wide"].schema.fields) == 4001
    assert len([row for row in rows if isinstance(row, RegisteredPartition)]) == 30


def test_the_second_address_is_used_if_the_first_does_not_answer(metastore: HiveMetastore) -> None:
    source = HiveSource(HiveSourceSettings(uris=("thrift://127.0.0.1:1", metastore.uri)))
    assert "1 database" in source.check() or "2 databases" in source.check()
    with pytest.raises(LumosError, match="Cannot connect to the Hive metastore"):
        HiveSource(HiveSourceSettings(uris=("thrift://127.0.0.1:1",))).check()
