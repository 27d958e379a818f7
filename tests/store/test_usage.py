"""Who read what: counted once, summed up as an aspect, and carried along by renames."""

from array import array
from datetime import UTC, date, datetime, timedelta

import pytest

from lumos.model.catalog import Timestamps
from lumos.model.dataset import ColumnReads, Reader, Usage
from lumos.model.json_codec import from_json, to_json
from lumos.model.lineage import Edge
from lumos.store import Store
from lumos.store.usage import ReadPeriod, Reads, ReportedLog
from store.conftest import AT, dataset

ORDERS, SALES = "lumos://file/lake/orders", "lumos://file/lake/sales"
MONDAY = date(2024, 3, 4)
TUESDAY = MONDAY + timedelta(days=1)


def at(day: date, hour: int = 12) -> datetime:
    return datetime(day.year, day.month, day.day, hour, tzinfo=UTC)


def reads(urn: str = ORDERS, reader: str = "ann", day: date = MONDAY, times: int = 1, **facts: object) -> Reads:  # fmt: skip
    return Reads(urn, day, reader, times, at(day), **facts)  # type: ignore[arg-type]


def take_in(store: Store, *several: Reads, reporter: str = "log:a") -> set[str]:
    with store.transaction() as transaction:
        touched = transaction.usage.add(reporter, several)
        transaction.usage.derive(touched, at=AT)
    return touched


def save(store: Store, *names: str) -> None:
    with store.transaction() as transaction:
        for name in names:
            transaction.save(dataset(name))


def test_reads_become_the_aspect(store: Store) -> None:
    save(store, "orders")
    take_in(
        store,
        reads(times=2, bytes=100, columns={"id": 2, "amount": 1}),
        reads(day=TUESDAY, times=1, rows=5, columns={"id": 1}),
        reads(reader="bob", times=9),
    )
    assert store.get(ORDERS).usage == Usage(
        readers=(
            Reader(name="bob", reads=9, last_read=at(MONDAY)),
            Reader(name="ann", reads=3, bytes=100, rows=5, last_read=at(TUESDAY)),
        ),
        last_accessed=at(TUESDAY),
        since=MONDAY,
        columns={
            "amount": ColumnReads(reads=1, last_read=MONDAY),
            "id": ColumnReads(reads=3, last_read=TUESDAY),
        },
    )


def test_more_reads_add_up_by_reporter(store: Store) -> None:
    save(store, "orders")
    take_in(store, reads(times=2, bytes=1, columns={"id": 2}))
    take_in(store, reads(times=3, columns={"id": 1, "x": 1}), reads(day=TUESDAY))
    take_in(store, reads(times=10), reporter="log:b")
    assert [(each.reporter, each.day, each.reads, dict(each.columns)) for each in store.usage.of(ORDERS)] == [
        ("log:a", MONDAY, 5, {"id": 3, "x": 1}),
        ("log:b", MONDAY, 10, {}),
        ("log:a", TUESDAY, 1, {}),
    ]  # fmt: skip
    usage = store.get(ORDERS).usage
    assert usage is not None
    assert usage.readers[0].reads == 16
    assert [each.day for each in store.usage.of(ORDERS, since=TUESDAY)] == [TUESDAY]


def test_one_row_of_a_reader_twice_in_a_report_adds_up(store: Store) -> None:
    take_in(store, reads(times=2), reads(times=3))
    assert [each.reads for each in store.usage.of(ORDERS)] == [5]


def test_a_total_replaces_the_earlier_one_of_any_reporter(store: Store) -> None:
    take_in(store, reads(times=5, sum_key=7), reads(times=2), reads(times=1, sum_key=8))
    take_in(store, reads(times=9, sum_key=7), reporter="log:b")
    assert sorted((each.reads, each.reporter) for each in store.usage.of(ORDERS)) == [
        (1, "log:a"),
        (2, "log:a"),
        (9, "log:b"),
    ]


def test_a_sum_under_an_old_name_gives_way(store: Store) -> None:
    take_in(store, reads(times=5, sum_key=7), reads(times=2))
    take_in(store, reads(SALES, times=9, sum_key=7), reporter="log:b")
    with store.transaction() as transaction:
        transaction.usage.move(ORDERS, SALES)
    assert sorted(each.reads for each in store.usage.of(SALES)) == [2, 9]


def counted(store: Store, days: list[date]) -> list[int]:
    return [key for keys in store.usage.counted_keys(days) for key in array("q", keys)]


def test_what_is_counted_is_remembered_by_day(store: Store) -> None:
    for _ in range(2):
        with store.transaction() as transaction:
            transaction.usage.count("log:a", {MONDAY: [3, -1], TUESDAY: [7]})
            transaction.usage.count("log:b", {MONDAY: [2**62]})
    assert sorted(counted(store, [MONDAY])) == [-1, 3, 2**62]
    assert counted(store, [date(2024, 1, 1)]) == []
    assert store.usage.logs() == (
        ReportedLog("log:a", MONDAY, TUESDAY, 3),
        ReportedLog("log:b", MONDAY, MONDAY, 1),
    )


def test_a_reporter_may_take_all_back(store: Store) -> None:
    save(store, "orders")
    take_in(store, reads())
    take_in(store, reads(SALES), reporter="log:b")
    with store.transaction() as transaction:
        transaction.usage.count("log:a", {MONDAY: [1]})
        touched = transaction.usage.delete_reporter("log:a")
        transaction.usage.derive(touched, at=AT)
    assert touched == {ORDERS}
    assert store.get(ORDERS).usage is None
    assert store.usage.logs() == ()
    assert store.usage.periods() == {SALES: ReadPeriod(MONDAY, MONDAY)}


def test_usage_that_others_reported_stays_until_there_are_reads(store: Store) -> None:
    imported = Usage(readers=(Reader(name="bi", reads=7),))
    save(store, "orders")
    with store.transaction() as transaction:
        transaction.save_aspect(ORDERS, "usage", imported, writer="import", at=AT)
        transaction.usage.derive([ORDERS], at=AT)
    assert store.get(ORDERS).usage == imported
    take_in(store, reads())
    usage = store.get(ORDERS).usage
    assert usage is not None
    assert [each.name for each in usage.readers] == ["ann"]


@pytest.mark.parametrize("how", ["renamed", "merged"])
def test_reads_follow_a_dataset(store: Store, how: str) -> None:
    save(store, *(["orders"] if how == "renamed" else ["orders", "sales"]))
    take_in(store, reads(times=2, columns={"id": 2}), reads(reader="bob"))
    take_in(store, reads(SALES, times=5, columns={"id": 1}))
    with store.transaction() as transaction:
        if how == "renamed":
            transaction.rename(dataset(), to=SALES, name="sales", at=AT)
        else:
            transaction.merge_into(dataset(), into=SALES, at=AT)
    assert store.usage.of(ORDERS) == []
    usage = store.get(ORDERS).usage
    assert usage is not None
    assert {each.name: each.reads for each in usage.readers} == {"ann": 7, "bob": 1}
    assert usage.columns["id"].reads == 3


def test_reads_under_an_earlier_urn_are_those_of_the_dataset(store: Store) -> None:
    save(store, "orders")
    with store.transaction() as transaction:
        transaction.rename(dataset(), to=SALES, name="sales", at=AT)
    assert take_in(store, reads()) == {SALES}


def test_what_is_read_need_not_be_a_dataset(store: Store) -> None:
    take_in(store, reads("lumos://snowflake/shop/public/orders"))
    assert store.usage.unknown_datasets() == ("lumos://snowflake/shop/public/orders",)


def test_old_reads_are_let_go(store: Store) -> None:
    take_in(store, reads(), reads(day=TUESDAY))
    with store.transaction() as transaction:
        transaction.usage.count("log:a", {MONDAY: [1], TUESDAY: [2]})
        assert transaction.usage.delete_before(TUESDAY) == {ORDERS}
    assert store.usage.periods() == {ORDERS: ReadPeriod(TUESDAY, TUESDAY)}
    assert counted(store, [MONDAY, TUESDAY]) == [2]
    assert [each.urn for each in store.usage.since(MONDAY)] == [ORDERS]


def test_a_later_read_is_reported_where_others_reported_the_times(store: Store) -> None:
    save(store, "orders")
    imported = Timestamps(created=AT, last_accessed=at(date(2023, 1, 1)))
    with store.transaction() as transaction:
        transaction.entries.put_extras(ORDERS, {"timestamps": to_json(imported)})
    take_in(store, reads())
    entry = store.entries.get(ORDERS)
    assert entry is not None
    assert from_json(entry.extras["timestamps"], Timestamps) == Timestamps(
        created=AT, last_accessed=at(MONDAY)
    )


def test_reads_of_what_became_a_dataset_later_are_not_overlooked(store: Store) -> None:
    take_in(store, reads())
    assert store.usage.unknown_datasets() == (ORDERS,)
    save(store, "orders", "sales")
    assert (store.usage.unknown_datasets(), store.usage.without_aspect()) == ((), (ORDERS,))
    take_in(store, reads(SALES))
    assert store.usage.without_aspect() == (ORDERS,)
    assert store.usage.sources() == {ORDERS: "file:/lake", SALES: "file:/lake"}


def test_views_are_distinguished_from_other_edges(store: Store) -> None:
    edges = [
        Edge(upstream=ORDERS, downstream=SALES, origin="x", at=AT, type="VIEW"),
        Edge(upstream=SALES, downstream=ORDERS, origin="x", at=AT),
    ]
    with store.transaction() as transaction:
        transaction.lineage.report("x", edges, at=AT)
    assert store.usage.views() == [(ORDERS, SALES)]
