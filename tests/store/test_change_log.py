"""Events over all datasets, on every database."""

from datetime import datetime, timedelta

import msgspec
import pytest

from lumos.model.change import ChangeEvent, EventType, FieldRemoved, Finding, Verdict
from lumos.model.dataset_pattern import DatasetPattern
from lumos.model.schema import Field, parse_schema
from lumos.model.types import parse_type
from lumos.store import Database, Store
from lumos.store.history import _MAX_LOOKUPS, ChangeLog, EventFilter
from store.conftest import AT, dataset, event

REMOVED = Finding(
    change=FieldRemoved(path="a", before=Field(name="a", type=parse_type("INT64"))),
    consumer=Verdict.BREAKING,
    storage=Verdict.COMPATIBLE,
    rule="field-removed",
)


@pytest.fixture
def log(database: Database, store: Store) -> ChangeLog:
    """A log of five events, one each day; the third is breaking, the last two at one time."""
    with store.transaction() as transaction:
        for name in ("orders", "users"):
            transaction.save(dataset(name))
        for day, (type, name, findings) in enumerate(
            [
                (EventType.CREATED, "orders", ()),
                (EventType.CREATED, "users", ()),
                (EventType.SCHEMA_CHANGED, "orders", (REMOVED,)),
                (EventType.MODIFIED, "users", ()),
                (EventType.MODIFIED, "orders", ()),
            ],
            start=1,
        ):
            urn = f"lumos://file/lake/{name}"
            found = event(f"e{day}", urn=urn, type=type, at=at(min(day, 4)), findings=findings)
            transaction.save_event(found)
    return ChangeLog(database)


def at(day: int) -> datetime:
    return AT + timedelta(days=day)


def ids(log: ChangeLog, **wanted: object) -> list[str]:
    filter = EventFilter(**wanted)  # type: ignore[arg-type]
    return [event.event_id for event in log.events(filter)]


def test_events_come_newest_first_and_of_one_time_the_last_recorded_first(log: ChangeLog) -> None:
    assert ids(log) == ["e5", "e4", "e3", "e2", "e1"]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"since": at(3)}, ["e5", "e4", "e3"]),
        ({"until": at(2)}, ["e2", "e1"]),
        ({"since": at(2), "until": at(3)}, ["e3", "e2"]),
        ({"breaking": True}, ["e3"]),
        ({"types": (EventType.CREATED,)}, ["e2", "e1"]),
        ({"types": (EventType.CREATED, EventType.MODIFIED), "limit": 3}, ["e5", "e4", "e2"]),
        ({"urns": frozenset({"lumos://file/lake/users"})}, ["e4", "e2"]),
        ({"urns": frozenset()}, []),
        ({"limit": 2}, ["e5", "e4"]),
        ({"breaking": True, "since": at(4)}, []),
    ],
)
def test_a_filter_lets_through_what_was_asked_for(
    log: ChangeLog, wanted: dict[str, object], expected: list[str]
) -> None:
    assert ids(log, **wanted) == expected


def test_more_datasets_than_can_be_looked_up_one_by_one(log: ChangeLog) -> None:
    many = {f"lumos://file/lake/other_{number}" for number in range(_MAX_LOOKUPS + 1)}
    assert ids(log, urns=frozenset({*many, "lumos://file/lake/users"})) == ["e4", "e2"]


def test_every_fact_of_an_event_comes_back(database: Database, store: Store) -> None:
    known = ChangeEvent(
        event_id="e1", urn="lumos://file/lake/orders", type=EventType.SCHEMA_CHANGED, at=AT,
        cause="user", author="ann", cloud_version="S-2", schema_version="2.0.0",
        source_path="/lake/orders", old_schema="a", new_schema="b", findings=(REMOVED,),
        flags=("reverted",), summary="1 field removed: a", metadata={"source": "x", "files": 3},
    )  # fmt: skip
    with store.transaction() as transaction:
        transaction.save_event(known)
    assert list(ChangeLog(database).events(EventFilter())) == [known]


def test_a_reader_that_stops_early_leaves_the_store_usable(log: ChangeLog, store: Store) -> None:
    events = log.events(EventFilter())
    assert next(iter(events)).event_id == "e5"
    with store.transaction() as transaction:
        transaction.save_event(event("e6", at=at(9)))
    assert [found.event_id for found in events] == ["e4", "e3", "e2", "e1"]
    assert ids(log, limit=1) == ["e6"]


def test_a_pattern_finds_datasets_under_their_earlier_urns_too(
    log: ChangeLog, store: Store
) -> None:
    with store.transaction() as transaction:
        known = transaction.known("lumos://file/lake/orders")
        assert known is not None
        transaction.rename(known, to="lumos://file/lake/sales", name="sales", at=AT)
    both = {"lumos://file/lake/sales", "lumos://file/lake/orders"}
    assert log.urns(DatasetPattern("sales")) == both
    assert log.urns(DatasetPattern("orders")) == {"lumos://file/lake/orders"}
    assert log.urns(DatasetPattern("nothing")) == frozenset()


def test_schemas_are_found_by_hash(log: ChangeLog, store: Store) -> None:
    schema = parse_schema("a INT64")
    with store.transaction() as transaction:
        hash = transaction.save_schema(schema)
    assert log.schemas([hash, "unknown"]) == {hash: schema}


def test_old_events_of_new_data_can_be_let_go_and_no_others(log: ChangeLog) -> None:
    assert log.delete_modified(before=at(4), limit=10) == 0
    assert log.delete_modified(before=at(5), limit=1) == 1
    assert ids(log) == ["e5", "e3", "e2", "e1"]
    assert log.delete_modified(before=at(5), limit=10) == 1
    assert ids(log) == ["e3", "e2", "e1"]


def test_an_event_that_began_a_schema_version_is_never_let_go(log: ChangeLog, store: Store) -> None:
    with store.transaction() as transaction:
        hash = transaction.save_schema(parse_schema("a INT64"))
        known = dataset(schema_hash=hash, schema_version="1.0.1")
        transaction.save(known)
        bump = event("e5", type=EventType.MODIFIED)
        transaction.save_schema_version(known, bump)
    assert log.delete_modified(before=at(5), limit=10) == 1
    assert "e5" in ids(log)
    assert msgspec.structs.replace(bump, at=at(4)) in list(log.events(EventFilter()))


def test_names_of_what_was_merged_into_a_dataset_are_not_its_own_former_names(
    log: ChangeLog, store: Store
) -> None:
    with store.transaction() as transaction:
        orders = transaction.known("lumos://file/lake/orders")
        assert orders is not None
        transaction.rename(orders, to="lumos://file/lake/sales", name="sales", at=AT)
    assert log.former_urns(["lumos://file/lake/sales"]) == {
        "lumos://file/lake/orders": "lumos://file/lake/sales"
    }
    with store.transaction() as transaction:
        sales = transaction.known("lumos://file/lake/sales")
        assert sales is not None
        transaction.merge_into(sales, into="lumos://file/lake/users", at=AT)
    assert log.former_urns(["lumos://file/lake/users"]) == {}
    assert store.resolve("lumos://file/lake/orders") == "lumos://file/lake/users"
