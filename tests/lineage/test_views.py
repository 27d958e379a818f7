"""Views of a PostgreSQL database tell what they are made from."""

import pytest
from sqlalchemy import delete

from databases import PostgresDatabase
from lumos import Lumos
from lumos.model.lineage import UseKind
from lumos.store import Store, tables
from lumos.store.lineage import StoredEdge

pytestmark = pytest.mark.usefixtures("workplace")


@pytest.fixture
def shop(database: PostgresDatabase) -> PostgresDatabase:
    database.run(
        "CREATE SCHEMA sales",
        'CREATE TABLE sales.orders (id bigint PRIMARY KEY, customer int, "Total" numeric(12,2))',
        "CREATE TABLE public.customers (id int PRIMARY KEY, email text)",
        'CREATE VIEW sales."Large" AS SELECT o.*, c.email AS mail FROM sales.orders o '
        'JOIN public.customers c ON c.id = o.customer WHERE o."Total" > 100',
        'CREATE MATERIALIZED VIEW public.counted AS SELECT count(*) AS n FROM sales."Large"',
    )
    return database


def scan(shop: PostgresDatabase) -> Lumos:
    lumos = Lumos(overrides={"sources": [shop.section()]})
    lumos.ingest(accept_removals=True)
    return lumos


def into(shop: PostgresDatabase, lumos: Lumos, path: str) -> dict[str, StoredEdge]:
    start = f"lumos://postgres/{shop.name}/"
    edges = Store.open(lumos.database).lineage.edges_of(f"{start}{path}", "upstream")
    return {edge.upstream.removeprefix(start): edge for edge in edges}


def test_a_scan_records_the_columns_that_a_view_is_made_from(shop):
    lumos = scan(shop)
    edges = into(shop, lumos, "sales/Large")
    orders, customers = edges["sales/orders"], edges["public/customers"]
    assert edges.keys() == {"sales/orders", "public/customers"}
    assert (orders.type, orders.origin) == (
        "VIEW",
        f"view:lumos://postgres/{shop.name}/sales/Large",
    )
    assert {(each.upstream, each.downstream) for each in orders.columns} == {
        ("id", "id"), ("customer", "customer"), ("Total", "Total"),
    }  # fmt: skip
    assert {(each.upstream, each.downstream) for each in customers.columns} == {("email", "mail")}
    assert {(each.upstream, each.usage) for each in orders.uses} == {
        ("customer", UseKind.JOIN), ("Total", UseKind.FILTER),
    }  # fmt: skip
    assert into(shop, lumos, "public/counted").keys() == {"sales/Large"}


def test_a_view_that_changes_or_goes_takes_its_lineage_along(shop):
    scan(shop)
    shop.run(
        "DROP MATERIALIZED VIEW public.counted",
        "CREATE OR REPLACE VIEW sales.mails AS SELECT email FROM public.customers",
        'DROP VIEW sales."Large"',
        'CREATE VIEW sales."Large" AS SELECT id FROM sales.orders',
    )
    lumos = scan(shop)
    assert into(shop, lumos, "sales/Large").keys() == {"sales/orders"}
    assert into(shop, lumos, "sales/mails").keys() == {"public/customers"}
    assert into(shop, lumos, "public/counted") == {}


def test_views_that_a_store_knew_before_lineage_are_followed_with_the_next_scan(shop):
    lumos = scan(shop)
    with lumos.database.writing() as connection:
        connection.execute(delete(tables.lineage_edge))
        connection.execute(delete(tables.lineage_script))
        connection.execute(delete(tables.lineage_reporter))
    assert into(shop, lumos, "sales/Large") == {}
    assert into(shop, scan(shop), "sales/Large").keys() == {"sales/orders", "public/customers"}
