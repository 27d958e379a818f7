"""Scans of a MariaDB server: history, lineage of views, renames, removals and usage."""

import pytest

from databases import MysqlDatabase
from lumos import Lumos
from lumos.errors import MisuseError
from lumos.store import Store

pytestmark = pytest.mark.usefixtures("workplace")


@pytest.fixture
def shop(mysql_database: MysqlDatabase) -> MysqlDatabase:
    mysql_database.run(
        "CREATE TABLE orders (id INT PRIMARY KEY, customer INT, total INT) COMMENT 'Orders'",
        "CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(40))",
        "CREATE TABLE notes (id INT)",
        "CREATE VIEW large AS SELECT o.id, c.name FROM orders o JOIN customers c "
        "ON c.id = o.customer WHERE o.total > 3",
    )
    return mysql_database


@pytest.fixture
def lumos(shop: MysqlDatabase) -> Lumos:
    return Lumos(overrides={"sources": [shop.section(name="shop-db")]})


def urn(shop: MysqlDatabase, name: str) -> str:
    return f"lumos://mysql/{shop.name}/{name}"


def events(lumos: Lumos, urn: str) -> list[str]:
    return [event.type.value for event in Store.open(lumos.database).events(urn)]


def test_a_view_yields_column_lineage(shop: MysqlDatabase, lumos: Lumos) -> None:
    report = lumos.ingest()
    assert not report.problems
    edges = Store.open(lumos.database).lineage.edges_by(f"view:{urn(shop, 'large')}")
    columns = {
        (edge.upstream, pair.upstream, pair.downstream) for edge in edges for pair in edge.columns
    }
    assert {edge.upstream for edge in edges} == {urn(shop, "orders"), urn(shop, "customers")}
    assert (urn(shop, "customers"), "name", "name") in columns
    assert (urn(shop, "orders"), "id", "id") in columns


def test_changes_have_verdicts_and_metadata_is_named(shop: MysqlDatabase, lumos: Lumos) -> None:
    lumos.ingest()
    shop.run(
        "ALTER TABLE orders DROP customer, MODIFY total BIGINT",
        "ALTER TABLE notes COMMENT 'Texts', ENGINE=MyISAM, MODIFY id INT COMMENT 'number'",
        "CREATE OR REPLACE VIEW large AS SELECT id FROM orders",
    )
    changed = {each.urn: each for each in lumos.ingest().datasets if each.change == "changed"}
    orders = {each.path: each.kind for each in changed[urn(shop, "orders")].changes}
    assert orders == {"customer": "removed", "total": "type_changed"}
    assert events(lumos, urn(shop, "notes"))[-1] == "METADATA_CHANGED"
    summary = Store.open(lumos.database).events(urn(shop, "notes"))[-1].summary
    assert "engine" in summary
    assert lumos.ingest().summary.datasets_changed == 0


def test_a_renamed_table_keeps_its_history_by_its_innodb_id(
    shop: MysqlDatabase, lumos: Lumos
) -> None:
    lumos.ingest()
    other = f"{shop.name}_archive"
    shop.run(f"CREATE DATABASE {other}")
    try:
        shop.run("RENAME TABLE orders TO purchases", f"RENAME TABLE notes TO {other}.notes")
        section = shop.section(databases=[shop.name, other])
        Lumos(overrides={"sources": [section]}).ingest()
        assert events(lumos, urn(shop, "purchases"))[-1] == "RENAMED"
        assert events(lumos, f"lumos://mysql/{other}/notes")[-1] == "RENAMED"
    finally:
        shop.run(f"DROP DATABASE {other}")


def test_a_rebuilt_table_and_recounted_rows_are_no_change(
    shop: MysqlDatabase, lumos: Lumos
) -> None:
    lumos.ingest()
    shop.run("INSERT INTO notes VALUES (1), (2)", "OPTIMIZE TABLE notes", "ANALYZE TABLE notes")
    again = lumos.ingest()
    assert (again.summary.datasets_changed, again.summary.datasets_new) == (0, 0)
    assert events(lumos, urn(shop, "notes")) == ["CREATED"]


def test_tables_stay_recorded_if_permissions_were_revoked(shop: MysqlDatabase) -> None:
    other = f"{shop.name}_open"
    shop.run(f"CREATE DATABASE {other}", *(f"CREATE TABLE {other}.t{i} (a INT)" for i in range(9)))
    grants = [f"GRANT SELECT, SHOW VIEW ON {name}.* TO {{user}}" for name in (shop.name, other)]
    try:
        with shop.user(*grants, "GRANT SHOW DATABASES ON *.* TO {user}") as user:
            section = shop.section(
                connection_string=shop.address(user), databases=[f"{shop.name}*"]
            )
            lumos = Lumos(overrides={"sources": [section]})
            assert len(lumos.ingest().datasets) == 13
            # Four of thirteen tables would be few enough to be removed.
            shop.run(f"REVOKE ALL ON {shop.name}.* FROM '{user}'@'%'")
            report = lumos.ingest(accept_removals=True)
            assert [problem.code for problem in report.problems] == ["no_permission"]
            assert (report.missing, len(lumos.list().datasets)) == ((), 13)
    finally:
        shop.run(f"DROP DATABASE {other}")


def test_an_address_may_be_named(shop: MysqlDatabase) -> None:
    assert len(Lumos().ingest(shop.url).datasets) == 4
    mariadb = Lumos().discover(shop.url.replace("mysql://", "mariadb://"))
    assert {each.platform for each in mariadb.datasets} == {"mariadb"}


def test_digests_of_the_server_are_counted_as_reads(shop: MysqlDatabase, lumos: Lumos) -> None:
    lumos.ingest()
    shop.run(
        "SELECT name FROM customers WHERE id IN (1, 2, 3)",
        "SELECT name FROM customers WHERE id IN (4, 5)",
        "SELECT `total` FROM `orders` WHERE customer = 'ann''s secret'",
    )
    for _ in range(2):
        report = lumos.usage.ingest("shop-db")
        assert report.logs[0].kind == "mysql digests"
        assert lumos.usage.show("customers").reads == 2
    assert lumos.usage.show("orders").reads == 1
    # A second ingest replaces the totals of the first one.
    shop.run("SELECT name FROM customers WHERE id IN (7)")
    lumos.usage.ingest(shop.url, name="shop-db")
    assert lumos.usage.show("customers").reads == 3
    with pytest.raises(MisuseError, match="on their own"):
        lumos.usage.ingest("shop-db", "queries.csv")


def test_a_database_without_statistics_is_refused(shop: MysqlDatabase) -> None:
    with (
        shop.user("GRANT REFERENCES ON {database}.* TO {user}") as user,
        pytest.raises(MisuseError, match="no permission"),
    ):
        Lumos().usage.ingest(shop.address(user))
