"""Who read what, from query logs: counted once, by the columns read, and what nobody reads."""

from datetime import timedelta
from pathlib import Path

import pytest

from lumos import Lumos
from lumos.errors import MisuseError
from lumos.lineage.reported_lineage import DatasetRead, UrnReference
from lumos.model.dataset import ColumnReads
from usage.shop_logs import NOW, add, row, shop, urn, write_log

ORDERS, CUSTOMERS, REFUNDS = urn("sales/orders"), urn("sales/customers"), urn("sales/refunds")
JOIN = (
    "SELECT o.amount, c.name FROM orders o JOIN customers c ON o.customer_id = c.id WHERE o.id > {}"
)


@pytest.fixture
def lumos(tmp_path: Path) -> Lumos:
    return shop(tmp_path)


def reads_of(lumos: Lumos, dataset: str) -> dict[str, int]:
    return {each.name: each.reads for each in lumos.usage.show(dataset).readers}


def columns_of(lumos: Lumos, dataset: str) -> dict[str, int]:
    return {name: each.reads for name, each in lumos.usage.show(dataset).columns.items()}


def test_statements_show_who_read_which_columns(lumos: Lumos, tmp_path: Path) -> None:
    log = write_log(
        tmp_path / "history.csv",
        [
            row(1, JOIN.format(1)),
            row(2, JOIN.format(22), user="BOB", days_ago=2),
            row(3, 'SELECT note FROM "SHOP"."SALES"."ORDERS"'),
            row(4, "SELECT * FROM shop.sales.refunds"),
            row(5, "BEGIN"),
            row(6, "SELECT 1 FROM information_schema.tables"),
            row(7, "SELECT secret FROM elsewhere.hidden"),
        ],
    )
    report = lumos.usage.ingest(log)
    (log_report,) = report.logs
    assert (log_report.statements, log_report.counted, log_report.queries) == (7, 7, 6)
    assert [each.name for each in report.unknown] == ["shop.elsewhere.hidden"]
    assert report.datasets == 3
    assert reads_of(lumos, ORDERS) == {"ANN": 2, "BOB": 1}
    assert columns_of(lumos, ORDERS) == {"amount": 2, "customer_id": 2, "id": 2, "note": 1}
    assert columns_of(lumos, CUSTOMERS) == {"id": 2, "name": 2}
    assert columns_of(lumos, REFUNDS) == {"id": 1, "reason": 1}, "the star is expanded"
    shown = lumos.usage.show("customers")
    assert shown.unread_columns == ("phone",)
    assert (shown.bytes, shown.rows) == (200, 10)
    assert [day.reads for day in shown.days] == [1, 1]


def test_the_aspect_says_the_same(lumos: Lumos, tmp_path: Path) -> None:
    lumos.usage.ingest(write_log(tmp_path / "a.csv", [row(1, "SELECT id FROM refunds")]))
    usage = lumos._store.open().get(REFUNDS).usage
    assert usage is not None
    assert usage.last_accessed == NOW - timedelta(days=1)
    day = (NOW - timedelta(days=1)).date()
    assert usage.columns == {"id": ColumnReads(reads=1, last_read=day)}
    assert usage.since == day


def test_overlapping_exports_count_once(lumos: Lumos, tmp_path: Path) -> None:
    rows = [row(number, JOIN.format(number)) for number in range(10)]
    first = write_log(tmp_path / "first.csv", rows[:6])
    second = write_log(tmp_path / "second.csv", [*rows[3:], rows[4]])
    lumos.usage.ingest(first)
    (again,) = lumos.usage.ingest(first).logs
    assert (again.statements, again.counted, again.counted_before) == (6, 0, 6)
    (more,) = lumos.usage.ingest(second).logs
    assert (more.statements, more.counted, more.counted_before) == (8, 4, 4)
    assert reads_of(lumos, ORDERS) == {"ANN": 10}
    assert {each.log: each.statements for each in lumos.usage.logs().logs} == {
        "log:first": 6,
        "log:second": 4,
    }


def test_logs_taken_in_together_count_once_too(lumos: Lumos, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    rows = [row(number, JOIN.format(number)) for number in range(4)]
    write_log(tmp_path / "logs/a.csv", rows[:3])
    write_log(tmp_path / "logs/b.csv", rows[1:])
    (log_report,) = lumos.usage.ingest(tmp_path / "logs", name="warehouse").logs
    assert (log_report.log, log_report.files, log_report.statements, log_report.counted) == (
        "log:warehouse",
        2,
        6,
        4,
    )


def test_sums_since_some_day_replace_each_other(lumos: Lumos, tmp_path: Path) -> None:
    columns = ("userid", "queryid", "query", "calls", "rows")
    for calls in (5, 12):
        values = (10, 1, "SELECT reason FROM shop.sales.refunds", calls, calls)
        file = write_log(tmp_path / f"{calls}.csv", [dict(zip(columns, values, strict=True))])
        lumos.usage.ingest(file, dialect="snowflake")
    usage = lumos.usage
    assert [each.log for each in usage.logs().logs] == ["log:pg_stat_statements"]
    # The tables of a PostgreSQL server are others than those of the same name in Snowflake.
    (used,) = usage.top().datasets
    assert (used.urn, used.reads) == ("lumos://postgres/shop/sales/refunds", 12)


def test_what_statements_write_becomes_lineage(lumos: Lumos, tmp_path: Path) -> None:
    write = (
        "INSERT INTO refunds (id, reason) SELECT id, note FROM orders WHERE note = 'Ann Smith {}'"
    )
    log = write_log(
        tmp_path / "etl.csv",
        [row(1, write.format(1), days_ago=3), row(2, write.format(2)), row(3, "SELECT 1")],
    )
    (log_report,) = lumos.usage.ingest(log).logs
    assert (log_report.edges, log_report.edges_changed) == (1, 1)
    store = lumos._store.open()
    (edge,) = store.lineage.edges_of(REFUNDS, "upstream")
    assert (edge.upstream, edge.origin) == (ORDERS, "log:etl")
    assert edge.at == NOW - timedelta(days=3), "when it was first run"
    assert {(each.upstream, each.downstream) for each in edge.columns} == {
        ("id", "id"),
        ("note", "reason"),
    }
    assert "Ann" not in str(edge), "literals may be about people"
    (again,) = lumos.usage.ingest(log).logs
    assert (again.edges, again.edges_changed) == (1, 0)


def test_no_literal_and_no_statement_is_kept(lumos: Lumos, tmp_path: Path) -> None:
    secret = "4111-1111-1111-1111"
    statement = f"CREATE TABLE x AS SELECT id AS k{{}} FROM orders WHERE note = '{secret}'"
    rows = [row(number, statement.format(number)) for number in range(3)]
    lumos.usage.ingest(write_log(tmp_path / "a.csv", rows))
    lumos.database.engine.dispose()
    data = b"".join(file.read_bytes() for file in tmp_path.glob("lumos.db*") if file.is_file())
    assert ORDERS.encode() in data
    assert secret.encode() not in data


def test_unread_is_said_only_with_evidence(lumos: Lumos, tmp_path: Path) -> None:
    nothing = lumos.usage.unread()
    assert nothing.datasets == ()
    assert [(each.place, each.datasets) for each in nothing.not_judged] == [("snowflake", 3)]
    rows = [row(1, "SELECT amount FROM orders", days_ago=40), row(2, "SELECT id FROM refunds")]
    lumos.usage.ingest(write_log(tmp_path / "a.csv", rows))
    too_far = lumos.usage.unread(since="90d")
    assert too_far.datasets == ()
    assert "known since" in too_far.not_judged[0].reason
    report = lumos.usage.unread(since="30d", columns=True)
    assert [(each.name, each.last_read is not None) for each in report.datasets] == [
        ("customers", False),
        ("orders", True),
    ]
    assert (report.read, report.not_judged) == (1, ())
    assert report.columns is not None
    assert [(each.name, each.columns) for each in report.columns] == [("refunds", ("reason",))]


def test_tables_that_are_read_through_views_are_read(lumos: Lumos, tmp_path: Path) -> None:
    add(lumos, {"sales/recent": "id INT64\namount FLOAT64"})
    rows = [
        row(1, "CREATE VIEW recent AS SELECT id, amount FROM orders", days_ago=60),
        row(2, "SELECT id FROM recent"),
    ]
    lumos.usage.ingest(write_log(tmp_path / "a.csv", rows))
    report = lumos.usage.unread(since="30d")
    assert [each.name for each in report.datasets] == ["customers", "refunds"]
    assert report.read_through_views == 1


def test_reads_of_unknown_columns_forbid_a_verdict_on_columns(lumos: Lumos, tmp_path: Path) -> None:
    file = tmp_path / "usage.csv"
    file.write_text(
        "dataset,user,time,reads,bytes,column\n"
        f"shop.sales.orders,ann,{NOW:%Y-%m-%d},7,1000,\n"
        f'{CUSTOMERS},bob,{NOW:%Y-%m-%d},2,,"name,phone"\n'
    )
    lumos.usage.ingest(file)
    assert reads_of(lumos, ORDERS) == {"ann": 7}
    assert columns_of(lumos, CUSTOMERS) == {"name": 2, "phone": 2}
    report = lumos.usage.unread(since=NOW.date(), columns=True)
    assert report.columns_not_judged == 1
    assert [(each.name, each.columns) for each in report.columns or ()] == [("customers", ("id",))]
    assert lumos.usage.show(ORDERS).unread_columns is None


def test_reads_find_their_dataset_later(lumos: Lumos, tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.csv", [row(1, "SELECT sku FROM products")])
    assert [each.name for each in lumos.usage.ingest(log).unknown] == ["shop.sales.products"]
    add(lumos, {"sales/products": "sku STRING"})
    again = lumos.usage.ingest(log)
    assert (again.found_again, again.logs[0].counted, again.unknown) == (1, 0, ())
    assert reads_of(lumos, urn("sales/products")) == {"ANN": 1}
    assert lumos._store.open().get(urn("sales/products")).usage is not None


def test_reads_move_to_the_dataset_that_a_rule_names_later(tmp_path: Path) -> None:
    lumos = shop(tmp_path)
    log = write_log(tmp_path / "a.csv", [row(1, "SELECT x FROM bookings")])
    lumos.usage.ingest(log)
    rule = [{"match": "bookings", "urn": ORDERS}]
    lumos = shop(tmp_path, sql_names=rule)
    assert lumos.usage.ingest(log).found_again == 1
    assert reads_of(lumos, ORDERS) == {"ANN": 1}


def test_a_log_may_be_forgotten_and_taken_in_anew(lumos: Lumos, tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.csv", [row(1, "SELECT id FROM orders")])
    lumos.usage.ingest(log)
    assert lumos.usage.forget("a").datasets == 1
    assert reads_of(lumos, ORDERS) == {}
    assert lumos.usage.ingest(log).logs[0].counted == 1
    with pytest.raises(MisuseError, match="No log named 'b'"):
        lumos.usage.forget("b")


def test_readers_may_be_hashed(tmp_path: Path) -> None:
    log = write_log(
        tmp_path / "a.csv", [row(1, "SELECT id FROM orders"), row(2, "SELECT 1", user="")]
    )
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    names = []
    for folder, key in (("one", "k1"), ("two", "k2")):
        lumos = shop(tmp_path / folder, **{"usage.readers": "hashed", "usage.key": key})
        lumos.usage.ingest(log)
        names += reads_of(lumos, ORDERS)
    assert all(name.startswith("reader-") for name in names)
    assert len(set(names)) == 2, "nobody can tell without the key"
    with pytest.raises(MisuseError, match="need a 'key'"):
        shop(tmp_path, **{"usage.readers": "hashed"})


def test_old_reads_are_let_go(tmp_path: Path) -> None:
    lumos = shop(tmp_path, **{"usage.retention_days": 30})
    rows = [row(1, "SELECT id FROM orders", days_ago=100), row(2, "SELECT id FROM orders")]
    lumos.usage.ingest(write_log(tmp_path / "a.csv", rows))
    assert reads_of(lumos, ORDERS) == {"ANN": 1}


def test_reads_that_others_report_count_once(lumos: Lumos) -> None:
    read = DatasetRead(dataset=UrnReference(urn=ORDERS), reader="spark:daily", at=NOW, rows=10)
    assert lumos.usage.record("openlineage:spark/daily", [(ORDERS, read), (ORDERS, read)]) == (1, 0)
    assert lumos.usage.record("openlineage:spark/daily", [(ORDERS, read)]) == (0, 0)
    assert reads_of(lumos, ORDERS) == {"spark:daily": 1}
    assert columns_of(lumos, ORDERS) == {"*": 1}


def test_what_was_not_understood_is_reported_without_literals(lumos: Lumos, tmp_path: Path) -> None:
    rows = [row(1, "SELEC id FRM orders WHERE name = 'Ann'"), row(2, "SELECT id FROM orders")]
    report = lumos.usage.ingest(write_log(tmp_path / "a.csv", rows))
    (dark,) = report.not_understood
    assert (dark.statement, dark.times) == ("selec id frm orders where name = ?", 1)
    assert reads_of(lumos, ORDERS) == {"ANN": 1}


def test_a_warehouses_own_word_on_columns_is_believed(lumos: Lumos, tmp_path: Path) -> None:
    accessed = (
        '[{"objectDomain": "Table", "objectName": "SHOP.SALES.ORDERS", '
        '"columns": [{"columnName": "AMOUNT"}]}, {"objectDomain": "Stage", "objectName": "X.Y.Z"}]'
    )
    modified = (
        '[{"objectName": "SHOP.SALES.REFUNDS", "columns": [{"columnName": "REASON", '
        '"directSources": [{"objectName": "SHOP.SALES.ORDERS", "columnName": "NOTE"}]}]}]'
    )
    rows = [
        {
            "QUERY_ID": "q1", "QUERY_START_TIME": NOW.isoformat(), "USER_NAME": "ANN",
            "DIRECT_OBJECTS_ACCESSED": accessed, "OBJECTS_MODIFIED": modified,
        }
    ]  # fmt: skip
    (log_report,) = lumos.usage.ingest(write_log(tmp_path / "access_history.csv", rows)).logs
    assert log_report.edges == 1
    assert columns_of(lumos, ORDERS) == {"amount": 1}
    (edge,) = lumos._store.open().lineage.edges_of(REFUNDS, "upstream")
    assert [(each.upstream, each.downstream) for each in edge.columns] == [("note", "reason")]


def test_a_damaged_log_does_not_keep_the_others_out(lumos: Lumos, tmp_path: Path) -> None:
    import gzip

    (tmp_path / "logs").mkdir()
    rows = [row(number, JOIN.format(number)) for number in range(3000)]
    packed = gzip.compress(write_log(tmp_path / "whole.csv", rows).read_bytes())
    (tmp_path / "logs/a.csv.gz").write_bytes(packed[: len(packed) // 2])
    write_log(tmp_path / "logs/b.csv", [row(1, "SELECT id FROM refunds", user="BOB")])
    report = lumos.usage.ingest(tmp_path / "logs")
    assert len(report.problems) == 1
    assert "gzip data is damaged" in report.problems[0]
    assert reads_of(lumos, REFUNDS) == {"BOB": 1}


@pytest.mark.parametrize("name", ["nothing.csv", "notes.txt"])
def test_other_files_are_refused(lumos: Lumos, tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(MisuseError, match=r"not a known kind of query log|nothing at"):
        lumos.usage.ingest(tmp_path / name)


def test_top_lists_what_is_read_most(lumos: Lumos, tmp_path: Path) -> None:
    rows = [row(number, JOIN.format(number)) for number in range(3)]
    rows += [row(9, "SELECT id FROM orders", user="BOB")]
    lumos.usage.ingest(write_log(tmp_path / "a.csv", rows))
    top = lumos.usage.top(limit=1)
    assert [(each.name, each.reads, each.readers) for each in top.datasets] == [("orders", 4, 2)]
    assert top.total == 2
