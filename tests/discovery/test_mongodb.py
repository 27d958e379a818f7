"""MongoDB through the whole of Lumos: samples on Spark, steady versions, names that change."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from lumos import Lumos
from lumos.errors import MisuseError
from lumos.store import Store
from mongo_wire import MongoWire, Served, serving

pytestmark = pytest.mark.usefixtures("workplace")


def orders(**more: object) -> Served:
    documents = [{"_id": number, "total": 1.5, "note": "x"} for number in range(100)]
    documents += [{"_id": number, "total": 2.5, **more} for number in range(100, 200)]
    return Served(documents, identity=UUID(int=7))


@pytest.fixture
def wire() -> MongoWire:
    return MongoWire({"shop": {"orders": orders(rare={"deep": 1}), "users": Served([{"_id": 1}])}})


@pytest.fixture
def lumos(wire: MongoWire) -> Iterator[Lumos]:
    with serving(wire) as address:
        source = {"type": "mongodb", "uri": address, "sample_size": 80}
        yield Lumos(overrides={"sources": [source]})


@pytest.mark.usefixtures("spark")
def test_samples_add_to_what_is_known_and_a_new_name_goes_on_with_the_history(
    lumos: Lumos, wire: MongoWire
) -> None:
    urn = next(each.urn for each in lumos.ingest().datasets if "orders" in each.urn)
    shown = Store.open(lumos.database).get(urn)
    assert shown.schema is not None
    assert [field.name for field in shown.schema.fields] == ["_id", "total", "note", "rare"]
    assert (shown.properties or {})["mongodb.index._id_"] == '{"key": {"_id": 1}}'

    # The next sample shows no key that not all have.
    wire.databases["shop"]["orders"] = Served(
        [{"_id": number, "total": 1.5} for number in range(200)], identity=UUID(int=7)
    )
    assert {each.change for each in lumos.ingest().datasets} == {"unchanged"}

    # Others come, under another name of the collection.
    lumos.lineage.add(
        urn, "lumos://tableau/sales/weekly", columns={"total": "total"}, allow_dangling=True
    )
    del wire.databases["shop"]["orders"]
    wire.databases["shop"]["sales"] = orders(total="much", channel="app")
    report = {each.urn: each for each in lumos.ingest().datasets}
    sales = "lumos://mongodb/shop/sales"
    assert report[sales].change == "changed"
    affected = report[sales].affected
    assert affected is not None
    assert [use.sentence for each in affected.datasets for use in each.uses] == [
        "total became UNION<FLOAT64, STRING>: breaks weekly"
    ]
    events = [event.type.value for event in Store.open(lumos.database).events(sales)]
    assert events[0] == "CREATED"
    assert "RENAMED" in events
    schema = Store.open(lumos.database).get(sales).schema
    assert schema is not None
    total = schema.field("total")
    assert total is not None
    assert total.type.text == "UNION<FLOAT64, STRING>"


@pytest.mark.usefixtures("spark")
def test_a_view_comes_from_the_collections_that_its_pipeline_names(
    lumos: Lumos, wire: MongoWire
) -> None:
    pipeline: list[dict[str, object]] = [
        {"$lookup": {"from": "users", "pipeline": [{"$unionWith": "old_users"}]}},
        {"$match": {"from": "nowhere"}},
    ]
    view = Served([{"a": 1}], type="view", options={"viewOn": "orders", "pipeline": pipeline})
    wire.databases["shop"]["large"] = view

    def upstream() -> set[str]:
        lineage = Store.open(lumos.database).get("lumos://mongodb/shop/large").lineage
        assert lineage is not None
        return {edge.urn.rpartition("/")[2] for edge in lineage.upstream}

    lumos.ingest()
    assert upstream() == {"orders", "users", "old_users"}
    lumos.ingest()
    assert upstream() == {"orders", "users", "old_users"}
    view.options["pipeline"] = []
    lumos.ingest()
    assert upstream() == {"orders"}


def test_two_servers_need_an_instance_to_be_distinguished(lumos: Lumos) -> None:
    with serving(MongoWire({"shop": {}})) as other:
        (first,) = lumos.settings.sources
        sources = [
            {"type": "mongodb", "uri": first.connection_string.reveal()},  # type: ignore[attr-defined]
            {"type": "mongodb", "uri": other},
        ]
        with pytest.raises(MisuseError, match="'instance'"):
            Lumos(overrides={"sources": sources}).ingest()
