"""What counts as a read, what counts once, what replaces what, and what is taken back."""

from datetime import date, timedelta
from pathlib import Path

import pytest

from lumos import Lumos
from lumos.model.dataset import ColumnReads, Reader, Usage
from usage.shop_logs import NOW, add, row, shop, urn, write_log

ORDERS, CUSTOMERS, REFUNDS = urn("sales/orders"), urn("sales/customers"), urn("sales/refunds")
YESTERDAY = NOW - timedelta(days=1)
DAY = f"{YESTERDAY:%Y-%m-%d}"
UUID = "01b2c3d4-0001-0002-0003-000000000007"


@pytest.fixture
def lumos(tmp_path: Path) -> Lumos:
    return shop(tmp_path)


def take_in(lumos: Lumos, folder: Path, name: str, *lines: str) -> dict[str, int]:
    """Takes a log in; gives what of it was left out."""
    file = folder / f"{name}.csv"
    file.write_text("".join(f"{line}\n" for line in lines))
    (log,) = lumos.usage.ingest(file).logs
    return log.left_out


def reads_of(lumos: Lumos, dataset: str) -> int:
    return lumos.usage.show(dataset).reads


def edges_to(lumos: Lumos, dataset: str) -> dict[str, set[tuple[str, str]]]:
    return {
        edge.upstream: {(each.upstream, each.downstream) for each in edge.columns}
        for edge in lumos._store.open().lineage.edges_of(dataset, "upstream")
    }


def save_usage(lumos: Lumos, dataset: str, usage: Usage) -> None:
    """What a snapshot says of a dataset."""
    with lumos._store.open().transaction() as transaction:
        transaction.save_aspect(dataset, "usage", usage, writer="import", at=NOW)


@pytest.mark.parametrize("id", ["1", UUID])
def test_a_query_that_is_reported_by_its_datasets_reads_each_of_them(
    lumos: Lumos, tmp_path: Path, id: str
) -> None:
    rows = [f"{id},{each},ann,{YESTERDAY.isoformat()}" for each in (ORDERS, CUSTOMERS)]
    for _ in range(2):
        take_in(lumos, tmp_path, "a", "query_id,dataset,user,time", *rows)
    assert (reads_of(lumos, ORDERS), reads_of(lumos, CUSTOMERS)) == (1, 1)


def test_servers_that_number_their_statements_do_not_meet(lumos: Lumos, tmp_path: Path) -> None:
    head = "id,user,time,sql"
    one = f"1,ann,{YESTERDAY.isoformat()},SELECT id FROM shop.sales.orders"
    other = f"1,ann,{(YESTERDAY + timedelta(seconds=5)).isoformat()},SELECT 1"
    third = f"1,ann,{YESTERDAY.isoformat()},SELECT note FROM shop.sales.orders"
    for number, line in enumerate((one, other, third, one)):
        take_in(lumos, tmp_path, f"t{number}", head, line)
    assert reads_of(lumos, ORDERS) == 2


def test_an_id_identifies_a_statement_whatever_its_other_fields(
    lumos: Lumos, tmp_path: Path
) -> None:
    text = "SELECT id FROM shop.sales.orders"
    for number, time in enumerate((f"{DAY} 10:30:00", f"{DAY} 10:30:01.25")):
        take_in(lumos, tmp_path, f"t{number}", "id,user,time,sql", f"{UUID},ann,{time},{text}")
    assert reads_of(lumos, ORDERS) == 1


def test_a_newer_sum_of_a_day_replaces_the_older_one(lumos: Lumos, tmp_path: Path) -> None:
    head = "dataset,user,time,reads"
    other = f"{ORDERS},bob,{DAY},2"
    take_in(lumos, tmp_path, "monday", head, f"{ORDERS},ann,{DAY},5", other)
    take_in(lumos, tmp_path, "tuesday", head, f"shop.sales.orders,ann,{DAY},9")
    assert reads_of(lumos, ORDERS) == 11
    take_in(lumos, tmp_path, "tuesday", head, f"{ORDERS},ann,{DAY},8")
    assert {each.name: each.reads for each in lumos.usage.show(ORDERS).readers} == {
        "ann": 8,
        "bob": 2,
    }
    lumos.usage.forget("tuesday")
    assert reads_of(lumos, ORDERS) == 2


def test_parts_of_a_sum_in_one_log_add_up(lumos: Lumos, tmp_path: Path) -> None:
    lines = [f"{ORDERS},ann,{DAY},{reads},{column}" for reads, column in
             ((5, "id"), (4, "note"), (4, "note"))]  # fmt: skip
    for _ in range(2):
        take_in(lumos, tmp_path, "a", "dataset,user,time,reads,column", *lines)
    assert reads_of(lumos, ORDERS) == 13


def test_of_two_sums_that_are_taken_in_together_the_larger_one_counts(
    lumos: Lumos, tmp_path: Path
) -> None:
    (tmp_path / "sums").mkdir()
    for name, reads in (("a", 5), ("b", 9), ("c", 7)):
        text = f"dataset,user,time,reads\n{ORDERS},ann,{DAY},{reads}\n"
        (tmp_path / f"sums/{name}.csv").write_text(text)
    lumos.usage.ingest(tmp_path / "sums", name="sums")
    assert reads_of(lumos, ORDERS) == 9


def test_sums_follow_a_table_that_becomes_a_dataset(lumos: Lumos, tmp_path: Path) -> None:
    head = "dataset,user,time,reads"
    take_in(lumos, tmp_path, "a", head, f"shop.sales.products,ann,{DAY},5")
    add(lumos, {"sales/products": "sku STRING"})
    take_in(lumos, tmp_path, "b", head, f"shop.sales.products,ann,{DAY},9")
    assert reads_of(lumos, urn("sales/products")) == 9


@pytest.mark.parametrize(
    ("reads", "counted", "left_out"),
    [
        ("0", 0, {"no_reads": 1}),
        ("-3", 0, {"odd_reads": 1}),
        ("many", 0, {"odd_reads": 1}),
        ("2.5", 0, {"odd_reads": 1}),
        ("nan", 0, {"odd_reads": 1}),
        ("3.0", 3, {}),
        ("", 1, {}),
    ],
)
def test_only_whole_numbers_of_reads_count(
    lumos: Lumos, tmp_path: Path, reads: str, counted: int, left_out: dict[str, int]
) -> None:
    line = f"{ORDERS},ann,{DAY},{reads}"
    assert take_in(lumos, tmp_path, "a", "dataset,user,time,reads", line) == left_out
    assert reads_of(lumos, ORDERS) == counted


def test_what_reads_a_part_of_a_column_reads_the_column(lumos: Lumos, tmp_path: Path) -> None:
    add(lumos, {"sales/visits": "id INT64\nPage STRUCT<url: STRING>\nitems STRING\npa STRING"})
    visits = urn("sales/visits")
    line = f'{visits},ann,{DAY},"page.url,items[0].sku"'
    take_in(lumos, tmp_path, "a", "dataset,user,time,column", line)
    assert lumos.usage.show(visits).unread_columns == ("id", "pa")
    report = lumos.usage.unread(since=YESTERDAY.date(), columns=True)
    assert [each.columns for each in report.columns or ()] == [("id", "pa")]


def test_imported_reads_count(lumos: Lumos, tmp_path: Path) -> None:
    rows = [row(1, "SELECT id FROM orders", days_ago=60)]
    lumos.usage.ingest(write_log(tmp_path / "a.csv", rows))
    save_usage(
        lumos,
        CUSTOMERS,
        Usage(
            readers=(Reader(name="bi", reads=7, last_read=YESTERDAY),),
            last_accessed=YESTERDAY,
            since=date(2024, 1, 1),
            columns={"name": ColumnReads(reads=7, last_read=YESTERDAY.date())},
        ),
    )
    save_usage(lumos, REFUNDS, Usage(readers=(Reader(name="bi", reads=7),)))
    report = lumos.usage.unread(since="30d", columns=True)
    assert [each.name for each in report.datasets] == ["orders"]
    assert [(each.datasets, each.reason) for each in report.not_judged] == [
        (1, "imported usage has reads without dates")
    ]
    assert [(each.name, each.columns) for each in report.columns or ()] == [
        ("customers", ("id", "phone"))
    ]
    shown = lumos.usage.show(CUSTOMERS)
    assert (shown.is_imported, shown.reads, shown.last_accessed) == (True, 7, YESTERDAY)
    assert shown.unread_columns == ("id", "phone")
    assert lumos.usage.show(CUSTOMERS, since=NOW.date()).reads == 0
    assert lumos.usage.show(REFUNDS).unread_columns is None
    assert not lumos.usage.show(ORDERS).is_imported


def test_imported_reads_do_not_cover_other_datasets(lumos: Lumos) -> None:
    save_usage(
        lumos, CUSTOMERS, Usage(last_accessed=NOW - timedelta(days=50), since=date(2024, 1, 1))
    )
    assert lumos.usage.unread(since="30d").datasets == ()
    (place,) = lumos.usage.unread(since="30d").not_judged
    assert (place.datasets, place.reason) == (3, "no log covers it")


WRITE = "INSERT INTO refunds (id, reason) SELECT id, note FROM orders"
WRITE_MORE = "INSERT INTO refunds (id) SELECT customer_id FROM orders"
WRITE_OTHER = "INSERT INTO customers (id) SELECT id FROM refunds"


def test_what_a_later_log_does_not_repeat_was_written_all_the_same(
    lumos: Lumos, tmp_path: Path
) -> None:
    file = tmp_path / "history.csv"
    lumos.usage.ingest(write_log(file, [row(1, WRITE, days_ago=3)]))
    lumos.usage.ingest(write_log(file, [row(2, WRITE_MORE), row(3, WRITE_OTHER)]))
    assert edges_to(lumos, REFUNDS) == {
        ORDERS: {("id", "id"), ("note", "reason"), ("customer_id", "id")}
    }
    assert edges_to(lumos, CUSTOMERS) == {REFUNDS: {("id", "id")}}
    (edge,) = lumos._store.open().lineage.edges_of(REFUNDS, "upstream")
    assert edge.at == NOW - timedelta(days=3)
    (again,) = lumos.usage.ingest(file).logs
    assert again.edges_changed == 0


def test_edges_of_a_table_that_became_a_dataset_lead_there(lumos: Lumos, tmp_path: Path) -> None:
    write = "INSERT INTO products (sku) SELECT note FROM orders"
    log = write_log(tmp_path / "a.csv", [row(1, write)])
    lumos.usage.ingest(log)
    rules = [{"match": "products", "urn": REFUNDS}]
    lumos = shop(tmp_path, sql_names=rules)
    lumos.usage.ingest(write_log(tmp_path / "a.csv", [row(2, "SELECT 1")]))
    assert edges_to(lumos, REFUNDS) == {ORDERS: {("note", "sku")}}
    assert lumos._store.open().lineage.count() == 1


def test_totals_of_a_server_cover_everything_written_there(lumos: Lumos, tmp_path: Path) -> None:
    for number, statement in enumerate((WRITE, WRITE_OTHER)):
        values = {"userid": 10, "queryid": number, "query": statement, "calls": 3, "rows": 3}
        lumos.usage.ingest(write_log(tmp_path / f"{number}.csv", [values]))
    (edge,) = lumos._store.open().lineage.all()
    assert (edge.upstream, edge.downstream) == (
        "lumos://postgres/refunds",
        "lumos://postgres/customers",
    )


def test_a_log_that_is_forgotten_takes_its_lineage_back(lumos: Lumos, tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.csv", [row(1, WRITE)])
    other = write_log(tmp_path / "b.csv", [row(1, WRITE)])
    lumos.usage.ingest(log)
    lumos.usage.ingest(other)
    assert [(each.log, each.statements) for each in lumos.usage.logs().logs] == [
        ("log:a", 1),
        ("log:b", 0),
    ]
    lumos.usage.forget("a")
    assert {edge.origin for edge in lumos._store.open().lineage.all()} == {"log:b"}
    lumos.usage.forget("b")
    assert lumos._store.open().lineage.count() == 0
    assert lumos.usage.logs().logs == ()


def test_the_lineage_of_a_log_whose_reads_are_too_old_may_be_forgotten(tmp_path: Path) -> None:
    lumos = shop(tmp_path, **{"usage.retention_days": 30})
    lumos.usage.ingest(write_log(tmp_path / "a.csv", [row(1, WRITE, days_ago=100)]))
    assert lumos.usage.logs().logs == ()
    lumos.usage.forget("a")
    assert lumos._store.open().lineage.count() == 0


def test_who_read_something_long_ago_is_not_named_any_more(tmp_path: Path) -> None:
    lumos = shop(tmp_path)
    rows = [
        row(1, "SELECT id FROM orders", days_ago=100),
        row(2, "SELECT id FROM orders", user="BOB"),
        row(3, "SELECT id FROM customers", days_ago=100),
    ]
    lumos.usage.ingest(write_log(tmp_path / "a.csv", rows))
    lumos = shop(tmp_path, **{"usage.retention_days": 30})
    lumos.usage.ingest(write_log(tmp_path / "b.csv", [row(4, "SELECT id FROM refunds")]))
    store = lumos._store.open()
    usage = store.get(ORDERS).usage
    assert usage is not None
    assert [each.name for each in usage.readers] == ["BOB"]
    assert store.get(CUSTOMERS).usage is None


def test_nobody_reads_in_the_future(lumos: Lumos, tmp_path: Path) -> None:
    rows = [
        row(1, "SELECT id FROM orders", days_ago=-0.9),
        row(2, "SELECT id FROM orders", START_TIME="2099-01-01 00:00:00"),
    ]
    (log,) = lumos.usage.ingest(write_log(tmp_path / "a.csv", rows)).logs
    assert (log.counted, log.left_out) == (1, {"future": 1})
    shown = lumos.usage.show(ORDERS)
    assert shown.last_accessed == NOW + timedelta(days=0.9)
