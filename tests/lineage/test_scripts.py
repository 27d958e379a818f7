"""The texts of SQL that lineage was taken from are kept, so that they can be read again."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from databases import PostgresDatabase
from lineage.dbt.dbt_projects import CATALOG, manifest, write_project
from lineage.openlineage.test_openlineage import event
from lumos import Lumos
from lumos.impact.rules.type_uses import TableVersions
from lumos.impact.types.effects import effects
from lumos.lineage.reported_lineage import DatasetReference, LocationReference, TableName
from lumos.lineage.sql import analyse, report_script
from lumos.model.json_codec import to_json
from lumos.model.lineage import ColumnMapping, ColumnUse, Script
from lumos.store import Store, tables
from recorded_lake import RecordedLake

pytestmark = pytest.mark.usefixtures("workplace")

ORDERS = "lumos://file/lake/raw/orders"
EVENTS = "lumos://file/lake/raw/events"
PAID, DAYS = "lumos://duckdb/shop/paid", "lumos://duckdb/days"


@pytest.fixture
def lake(seen: RecordedLake, workplace: Path, monkeypatch: pytest.MonkeyPatch) -> RecordedLake:
    """Two datasets, and a working folder for files that tell of them."""
    monkeypatch.chdir(workplace)
    seen.see("raw/orders", "id INT64\ncustomerId INT64\namount FLOAT64\ncountry STRING")
    seen.see("raw/events", "id INT64\nat TIMESTAMP(us)")
    return seen


def write(name: str, text: str) -> Path:
    file = Path(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def kept(store: Store, urn: str) -> dict[str, Script]:
    """The texts of a dataset by their reporters, those that are files from the working folder."""
    folder = f"{Path.cwd()}/"
    return {name.replace(folder, ""): each for name, each in store.lineage.scripts([urn])[urn]}


def rows(store: Store) -> list[Any]:
    with store._database.reading() as connection:
        return [*map(tuple, connection.execute(select(tables.lineage_script)))]


Facts = set[tuple[str, str, str, ColumnMapping | ColumnUse | None]]


def facts(edges: Iterable[Any]) -> Facts:
    return {
        (edge.upstream, edge.downstream, edge.type, fact)
        for edge in edges
        for fact in (None, *edge.columns, *edge.uses)
    }


def stored_facts(store: Store, urn: str) -> Facts:
    return facts(store.lineage.edges_of(urn, "upstream"))


def read_again(store: Store, urn: str, known: dict[str, list[str]] | None = None) -> Facts:
    """What the texts of a dataset say with nothing but what is kept of them and schemas."""
    found: Facts = set()
    for reporter, script in store.lineage.scripts([urn])[urn]:
        urns = dict(script.tables)
        schemas = store.schemas.current(urns.values())
        columns: dict[str, list[str] | None] = dict.fromkeys(urns.values())
        columns |= {urn: [field.name for field in each.fields] for urn, each in schemas.items()}
        columns |= known or {}
        analysed = analyse(
            script.sql,
            dialect=script.dialect,
            columns=lambda parts, urns=urns, columns=columns: columns[urns[parts]],
            file=script.file,
        )

        def at(table: DatasetReference, urns: dict[tuple[str, ...], str] = urns) -> str:
            match table:
                case TableName():
                    return urns[table.parts]
                case LocationReference():
                    return next(urn for parts, urn in urns.items() if parts[-1] == table.uri)
                case _:
                    raise AssertionError(table)

        for edge in report_script(analysed, reporter=reporter).edges:
            if at(edge.downstream) == urn:
                for fact in (None, *edge.columns, *edge.uses):
                    found.add((at(edge.upstream), urn, edge.type, fact))
    return found


SEVERAL = """\
-- Two tables of one file.
create temporary table german as
select id, amount from raw.orders where country = 'DE';

create table "Shop".paid as
select g.id, sum(g.amount) as total
from german g join raw.events e on e.id = g.id
group by 1;

create view days as select e.at from events e
where e.id not in (select p.id from "Shop".paid p);
"""


def test_a_file_keeps_its_text_for_all_that_it_makes(lake):
    write("models/several.sql", SEVERAL)
    lake.lumos.lineage.ingest("models", dialect="duckdb")
    (paid,) = kept(lake.store, PAID).values()
    assert kept(lake.store, DAYS) == {"sql:models/several.sql": paid}
    without_comment = SEVERAL.replace("-- Two tables of one file.", "")
    assert (paid.sql, paid.dialect, paid.dataset) == (without_comment, "duckdb", None)
    assert str(paid.file).removeprefix(f"{Path.cwd()}/") == "models/several.sql"
    assert dict(paid.tables) == {
        ("raw", "orders"): ORDERS,
        ("raw", "events"): EVENTS,
        ("events",): EVENTS,
        ("Shop", "paid"): PAID,
        ("shop", "paid"): PAID,
        ("days",): DAYS,
    }
    for made in (PAID, DAYS):
        assert read_again(lake.store, made) == stored_facts(lake.store, made)


def test_a_file_with_a_query_alone_keeps_it_as_what_makes_its_table(lake):
    write(
        "models/totals.sql",
        "-- All\nselect id,\n  cast(customerid as string) as customer\nfrom orders",
    )
    lake.lumos.lineage.ingest("models")
    (urn,) = {edge.downstream for edge in lake.store.lineage.all()}
    (script,) = kept(lake.store, urn).values()
    (name,) = (name for name, each in script.tables if each == urn)
    quoted = ".".join(f'"{part}"' for part in name)
    assert name[-2:] == ("models", "totals")
    assert script.sql.startswith(f"CREATE TABLE {quoted} AS\nselect")
    assert dict(script.tables) == {("orders",): ORDERS, name: urn}
    found = {(fact.line, fact.upstream) for *_, fact in stored_facts(lake.store, urn) if fact}
    assert found == {(2, "id"), (3, "customerId")}
    assert {(fact.file, fact.line) for *_, fact in read_again(lake.store, urn) if fact} == {
        (script.file, 2),
        (script.file, 3),
    }


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("bigquery", "create table `Shop.Paid` as select id from raw.`Orders`"),
        ("tsql", "create view [Shop].[Paid] as select [Id] from Raw.[Orders] o"),
        ("snowflake", 'create table "SHOP"."PAID" as select id from raw."Orders"'),
        ("postgres", 'create table "Shop".paid as select id from raw."Orders"'),
    ],
)
def test_whatever_reasoning_calls_a_table_is_among_the_kept_names(lake, dialect, sql):
    file = write("a.sql", f"{sql};\ninsert into shop.paid select id from raw.orders")
    lake.lumos.lineage.ingest(str(file), dialect=dialect)
    made = {edge.downstream for edge in lake.store.lineage.all()}
    (script,) = {each for some in made for each in kept(lake.store, some).values()}
    names: list[tuple[str, ...]] = []

    def table(parts: tuple[str, ...]) -> TableVersions:
        names.append(parts)
        return TableVersions.of(".".join(parts), None)

    def is_wanted(parts: tuple[str, ...]) -> bool:
        names.append(parts)
        return True

    effects(script.sql, dialect=dialect, tables=table, is_wanted=is_wanted)
    assert len(names) >= 4
    assert set(names) <= dict(script.tables).keys()


def test_files_in_the_place_of_a_table_are_among_its_tables(lake):
    write("a.sql", "create table a as select id from parquet.`s3://lake/raw/x`")
    lake.lumos.lineage.ingest("a.sql", dialect="spark")
    (script,) = kept(lake.store, "lumos://spark/a").values()
    assert dict(script.tables) == {
        ("parquet", "s3://lake/raw/x"): "lumos://s3/lake/raw/x",
        ("a",): "lumos://spark/a",
    }
    assert read_again(lake.store, "lumos://spark/a") == stored_facts(lake.store, "lumos://spark/a")


def test_a_template_is_kept_as_it_was_understood(lake):
    text = "select o.id\nfrom {{ ref('orders') }} o\njoin {{ var('other') }} x on x.id = o.id"
    write("models/some.sql", text)
    lake.lumos.lineage.ingest("models")
    (urn,) = {edge.downstream for edge in lake.store.lineage.all()}
    (script,) = kept(lake.store, urn).values()
    assert "{{" not in script.sql
    assert {each for _, each in script.tables} == {ORDERS, urn}


@pytest.mark.parametrize(
    "text", ["select id from orders; select 1;", "create table a (id int);", "selec x fro y"]
)
def test_a_text_that_says_nothing_of_lineage_is_not_kept(lake, text):
    write("a.sql", text)
    lake.lumos.lineage.ingest("a.sql")
    assert rows(lake.store) == []


def test_models_of_dbt_keep_their_compiled_sql_each_for_its_table(lake):
    write_project(Path("target"), manifest=manifest(), catalog=CATALOG)
    lake.lumos.lineage.ingest("target")
    start = "lumos://postgres/shop"
    orders, totals = f"{start}/analytics/orders", f"{start}/analytics/totals"
    (first,) = kept(lake.store, orders).values()
    (second,) = kept(lake.store, totals).values()
    assert first.sql.startswith('CREATE TABLE "shop"."analytics"."orders" AS with __dbt__cte__')
    assert second.sql.startswith('CREATE VIEW "shop"."analytics"."totals" AS\n\nselect')
    assert (first.dialect, first.dataset) == ("postgres", orders)
    # Another model stands before it in the compiled SQL.
    assert first.file == "compiled/shop/models/orders.sql"
    assert (second.file, second.dataset) == ("models/totals.sql", totals)
    assert dict(first.tables) == {
        ("shop", "raw", "orders"): f"{start}/raw/orders",
        ("shop", "analytics", "orders"): orders,
    }
    columns = {f"{start}/raw/orders": ["id", "amount", "country"], orders: ["id", "amount"]}
    for made in (orders, totals):
        # What dbt knows beside the SQL is no part of it.
        from_sql = {each for each in stored_facts(lake.store, made) if "seeds" not in each[0]}
        assert read_again(lake.store, made, columns) == from_sql


def test_what_is_not_read_from_sql_keeps_none(lake):
    write(
        "lineage.yaml", "lineage:\n  - {from: orders, to: lumos://tableau/sales, columns: [id]}\n"
    )
    write("events.ndjson", json.dumps(event()))
    yesterday = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    statement = {"query_text": "create table x as select id from orders", "user_name": "ann"}
    write("log.json", json.dumps([{**statement, "start_time": yesterday}]))
    report = lake.lumos.lineage.ingest(".", dialect="snowflake")
    assert set(report.files) == {"declared", "openlineage", "query log"}
    assert lake.store.lineage.count() > 0
    assert rows(lake.store) == []


def test_a_second_ingest_leaves_the_texts_as_they_are(lake):
    write("a.sql", "create table a as select id from orders")
    write_project(Path("target"), manifest=manifest())
    lake.lumos.lineage.ingest(".")
    before = rows(lake.store)
    lake.lumos.lineage.ingest(".")
    assert rows(lake.store) == before
    assert len(before) == 3


def test_a_text_follows_its_file(lake):
    file = write("models/a.sql", "create table a as select id from orders")
    write("models/b.sql", "create table b as select id from orders")
    lake.lumos.lineage.ingest("models")
    file.write_text("-- changed\ncreate table a as select id from orders")
    lake.lumos.lineage.ingest("models")
    (script,) = kept(lake.store, "lumos://sql/a").values()
    assert script.sql == "\ncreate table a as select id from orders"
    file.unlink()
    lake.lumos.lineage.ingest("models")
    assert kept(lake.store, "lumos://sql/a") == {}
    assert len(rows(lake.store)) == 1


SECRETIVE = """\
-- password: HUSH1
create user bob password 'HUSH2';
create table a as select id, decrypt(country, 'HUSH3') as c from raw.orders;
set session my.token = 'HUSH4';
"""


def test_no_secret_of_a_file_is_written_anywhere(lake, workplace):
    write("a.sql", SECRETIVE)
    lake.lumos.lineage.ingest("a.sql", dialect="postgres")
    (script,) = kept(lake.store, "lumos://postgres/a").values()
    assert "HUSH" not in script.sql
    assert read_again(lake.store, "lumos://postgres/a") == stored_facts(
        lake.store, "lumos://postgres/a"
    )
    facts = [
        fact for *_, fact in stored_facts(lake.store, "lumos://postgres/a") if fact is not None
    ]
    assert "decrypt(country, '***')" in {fact.transformation for fact in facts}
    for file in workplace.rglob("lumos.db*"):
        assert not file.is_file() or b"HUSH" not in file.read_bytes()


def test_a_text_from_before_goes_with_the_next_ingest(lake, workplace):
    write("a.sql", SECRETIVE)
    lake.lumos.lineage.ingest("a.sql", dialect="postgres")
    (row,) = rows(lake.store)
    old = to_json(Script(sql=SECRETIVE, dialect="postgres", file="a.sql"))
    with lake.store._database.writing() as connection:
        connection.execute(tables.lineage_script.update().values(body=old))
    lake.lumos.lineage.ingest("a.sql", dialect="postgres")
    assert [each[1:] for each in rows(lake.store)] == [row[1:]]
    for file in workplace.rglob("lumos.db*"):
        assert not file.is_file() or b"HUSH" not in file.read_bytes()


def test_a_dry_run_keeps_no_text(lake):
    write("a.sql", "create table a as select id from orders")
    lake.lumos.lineage.ingest("a.sql", dry_run=True)
    assert rows(lake.store) == []


def test_where_the_earlier_word_stays_its_text_stays_too(lake):
    first = "create table a as select id from orders;\ncreate table b as select id from events;"
    file = write("a.sql", first)
    lake.lumos.lineage.ingest("a.sql")
    second = "create table a as\nselect id from orders;\ncreat table b selec id;"
    file.write_text(second)
    for _ in range(2):
        lake.lumos.lineage.ingest("a.sql")
        a, b = "lumos://sql/a", "lumos://sql/b"
        assert [each.sql for _, each in lake.store.lineage.scripts([a])[a]] == [second]
        texts = {each.sql: each.dataset for _, each in lake.store.lineage.scripts([b])[b]}
        assert texts == {first: b, second: None}
        assert len(rows(lake.store)) == 2
    for made in (a, b):
        assert read_again(lake.store, made) >= stored_facts(lake.store, made) > set()
    file.write_text(first)
    lake.lumos.lineage.ingest("a.sql")
    assert len(rows(lake.store)) == 1


def test_lineage_of_a_store_that_kept_no_texts_has_them_after_the_next_ingest(lake):
    write("a.sql", "create table a as select id from orders")
    lake.lumos.lineage.ingest("a.sql")
    with lake.lumos.database.writing() as connection:
        connection.execute(tables.lineage_script.delete())
    assert kept(lake.store, "lumos://sql/a") == {}
    report = lake.lumos.lineage.ingest("a.sql")
    assert report.edges.unchanged == 1
    assert kept(lake.store, "lumos://sql/a").keys() == {"sql:a.sql"}


@pytest.fixture
def shop(database: PostgresDatabase) -> PostgresDatabase:
    database.run(
        "CREATE SCHEMA sales",
        'CREATE TABLE sales.orders (id bigint PRIMARY KEY, customer int, "Total" numeric(12,2))',
        "CREATE TABLE public.customers (id int PRIMARY KEY, email text)",
        'CREATE VIEW sales."Large" AS SELECT o.*, c.email AS mail FROM sales.orders o '
        'JOIN public.customers c ON c.id = o.customer WHERE o."Total" > 100',
        "CREATE VIEW public.one AS SELECT 1 AS one",
    )
    return database


def scan(shop: PostgresDatabase) -> Store:
    lumos = Lumos(overrides={"sources": [shop.section()]})
    lumos.ingest(accept_removals=True)
    return Store.open(lumos.database)


def test_views_keep_their_definitions(shop):
    store = scan(shop)
    start = f"lumos://postgres/{shop.name}"
    view = f"{start}/sales/Large"
    (script,) = kept(store, view).values()
    assert script.sql.startswith(f'CREATE VIEW "{shop.name}"."sales"."Large" AS ')
    assert (script.dialect, script.file, script.dataset) == ("postgres", None, view)
    assert sorted(urn for _, urn in script.tables) == [
        f"{start}/public/customers", view, f"{start}/sales/orders",
    ]  # fmt: skip
    assert read_again(store, view) == stored_facts(store, view) > set()
    assert kept(store, f"{start}/public/one") == {}


def test_views_follow_their_definitions_and_those_known_without_them_get_them(shop):
    store = scan(shop)
    view = f"lumos://postgres/{shop.name}/sales/Large"
    before = rows(store)
    with store._database.writing() as connection:
        connection.execute(tables.lineage_script.delete())
    assert [row[1:] for row in rows(scan(shop))] == [row[1:] for row in before]
    shop.run('DROP VIEW sales."Large"', 'CREATE VIEW sales."Large" AS SELECT id FROM sales.orders')
    (script,) = kept(scan(shop), view).values()
    assert "customers" not in script.sql
    shop.run('DROP VIEW sales."Large"')
    assert rows(scan(shop)) == []
