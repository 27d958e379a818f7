"""MongoDB's wire protocol as two other programs speak it: what comes over it is what was put in."""

import datetime as dt
from collections.abc import Iterator
from functools import partial
from typing import Any

import bson
import pytest
from pymongo import MongoClient
from pyspark.sql import SparkSession

from lumos.config.secret import ConnectionString
from lumos.config.sources import MongodbSourceSettings as Settings
from lumos.discovery.sampling_job import run_samples
from lumos.model.discovery import FoundDataset
from lumos.sources.mongodb.source import MongodbSource
from servers.ferretdb import ferretdb
from servers.mongo import mongo_server

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["java", "ferretdb"])
def server(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def address(server: str) -> Iterator[str]:
    with ferretdb() if server == "ferretdb" else mongo_server() as address:
        yield address


@pytest.fixture
def shop(address: str) -> Iterator[Any]:
    with MongoClient[dict[str, Any]](address) as client:
        client.drop_database("shop")
        yield client["shop"]


def source_at(address: str, **facts: Any) -> MongodbSource:
    return MongodbSource(Settings(connection_string=ConnectionString(f"{address}/shop"), **facts))


def by_name(source: MongodbSource) -> dict[str | None, FoundDataset]:
    return {found.name: found for found in source.read(lambda _share: None).datasets}


def test_documents_indexes_and_sizes_come_as_they_were_put(
    server: str, address: str, shop: Any
) -> None:
    # FerretDB closes the connection when it gets a decimal.
    total, type_of_total = (
        (1.5, "FLOAT64") if server == "ferretdb" else (bson.Decimal128("1.50"), "DECIMAL")
    )
    shop.orders.insert_many(
        {
            "_id": bson.ObjectId(),
            "placed": dt.datetime(2024, 5, 1),
            "total": total,
            "number": number if number % 2 else str(number),
            "customer": {"name": "x", **({"age": number} if number % 4 == 0 else {})},
            "lines": [{"sku": "a", "count": bson.Int64(1)}],
        }
        for number in range(200)
    )
    shop.orders.create_index([("number", 1), ("placed", -1)], unique=True)

    found = by_name(source_at(address))["shop.orders"]

    assert [str(field) for field in found.schema.fields] == [
        "_id BINARY(12) NOT NULL KEY",
        "placed TIMESTAMPTZ(ms)",
        f"total {type_of_total}",
        "number UNION<INT32, STRING>",
        "customer STRUCT<name: STRING, age: INT32>",
        "lines ARRAY<STRUCT<sku: STRING, count: INT64>>",
    ]
    customer = found.schema.field("customer")
    assert customer is not None
    assert {note.path: note.properties for note in customer.nested} == {
        "customer.name": {},
        "customer.age": {"mongodb.presence": "0.25"},
    }
    assert found.statistics.row_count == 200
    assert found.statistics.total_size_bytes > 0
    assert found.source_metadata is not None
    assert found.source_metadata.properties["index.number_1_placed_-1"] == (
        '{"key": {"number": 1, "placed": -1}, "unique": true}'
    )


def test_samples_by_chance_are_of_the_size_that_was_asked_for(
    server: str, address: str, shop: Any
) -> None:
    shop.orders.insert_many({"_id": number, f"k{number}": 1} for number in range(2000))
    found = by_name(source_at(address, sample_size=50))["shop.orders"]
    assert len(found.schema.fields) == 51
    other = by_name(source_at(address, sample_size=50))["shop.orders"]
    # FerretDB, which has no $sample, returns its first documents.
    assert (other.schema.full != found.schema.full) == (server != "ferretdb")


def test_spark_sees_what_one_process_sees(address: str, shop: Any, spark: SparkSession) -> None:
    for name in range(30):
        shop[f"c{name}"].insert_many({"_id": number, f"of{name}": "x"} for number in range(20))
    source = source_at(address)
    here = source.read(lambda _share: None)
    there = source.read_samples(partial(run_samples, spark), lambda _path: None)
    assert there == here
    assert len(there.datasets) == 30
