"""Permissions, logins and addresses of MariaDB, on a real server."""

import pymysql
import pytest

from databases import MysqlDatabase
from lumos.config.secret import ConnectionString, Secret
from lumos.sources import SourceNotUsable

pytestmark = pytest.mark.usefixtures("workplace")

HUSH = "hush-4711"
LEAST = (
    "GRANT REFERENCES ON {database}.* TO {user}",
    "GRANT SELECT, SHOW VIEW ON {database}.large TO {user}",
)


@pytest.fixture
def shop(mysql_database: MysqlDatabase) -> MysqlDatabase:
    mysql_database.run(
        "CREATE TABLE orders (id INT PRIMARY KEY, total INT CHECK (total > 0), details JSON)",
        "CREATE VIEW large AS SELECT id FROM orders WHERE total > 3",
    )
    return mysql_database


def seen(shop: MysqlDatabase, user: str) -> dict[str, object]:
    return dict(shop.found(connection_string=ConnectionString(shop.address(user))))


def test_the_documented_grants_are_enough_and_do_not_allow_reading_rows(
    shop: MysqlDatabase,
) -> None:
    everything = shop.found()
    with shop.user(*LEAST) as user:
        address = ConnectionString(shop.address(user))
        discovery = shop.look(connection_string=address)
        assert not discovery.problems
        found = {each.path.split("/")[1]: each for each in discovery.datasets}
        for name, each in everything.items():
            assert found[name].schema == each.schema
            assert found[name].source_metadata == each.source_metadata
        # Ids of tables need PROCESS.
        assert found["orders"].location.identity is None
        with shop.connection(user) as cursor, pytest.raises(pymysql.err.OperationalError):
            cursor.execute("SELECT * FROM orders")
    with shop.user(*LEAST, "GRANT PROCESS ON *.* TO {user}") as user:
        address = ConnectionString(shop.address(user))
        assert shop.found(connection_string=address)["orders"].location.identity is not None


def test_without_show_view_a_view_has_no_query_and_a_remark(shop: MysqlDatabase) -> None:
    with shop.user("GRANT REFERENCES ON {database}.* TO {user}") as user:
        discovery = shop.look(connection_string=ConnectionString(shop.address(user)))
    (view,) = (each for each in discovery.datasets if each.path.endswith("large"))
    assert view.source_metadata is not None
    assert view.source_metadata.definition is None
    assert [(each.code, each.remark) for each in discovery.problems] == [("no_show_view", True)]


def test_databases_without_permission_are_problems_and_others_are_read(
    shop: MysqlDatabase,
) -> None:
    closed = f"{shop.name}_closed"
    shop.run(f"CREATE DATABASE {closed}", f"CREATE TABLE {closed}.t (a INT)")
    try:
        with shop.user(*LEAST, "GRANT SHOW DATABASES ON *.* TO {user}") as user:
            address = ConnectionString(shop.address(user))
            discovery = shop.look(connection_string=address, databases=(f"{shop.name}*",))
            assert len(discovery.datasets) == 2
            (problem,) = discovery.problems
            assert (problem.path, problem.code, problem.remark) == (closed, "no_permission", False)
            with pytest.raises(SourceNotUsable, match="can read no database"):
                shop.look(connection_string=address, databases=(closed,))
    finally:
        shop.run(f"DROP DATABASE {closed}")


def test_only_the_granted_tables_are_seen(shop: MysqlDatabase) -> None:
    with shop.user("GRANT REFERENCES ON {database}.orders TO {user}") as user:
        assert set(seen(shop, user)) == {"orders"}


def test_a_failed_login_names_the_user_and_hides_the_password(shop: MysqlDatabase) -> None:
    with shop.user(*LEAST, password=HUSH) as user:
        assert len(seen(shop, f"{user}:{HUSH}")) == 2
        assert len(shop.found(connection_string=ConnectionString(shop.address(user)),
                              password=Secret(HUSH))) == 2  # fmt: skip
        with pytest.raises(SourceNotUsable, match="rejected the login") as refused:
            seen(shop, f"{user}:{HUSH}x")
    assert HUSH not in str(refused.value)
    assert user in str(refused.value)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("mysql://reader:hush-4711@127.0.0.1:1/shop", "Cannot connect to the server at 127.0.0.1:1"),
        ("mysql://reader:hush-4711@no-such-host.invalid/shop", "Unknown host 'no-such-host.invalid'"),
        ("mysql://reader:hush-4711/x@db/shop", "Invalid connection string"),
        ("oracle://reader:hush-4711@db/shop", "Invalid connection string"),
        ("mysql://reader:hush-4711@db/shop?useSSL=true", "Unknown parameter 'useSSL'"),
        ("mysql://reader:hush-4711@db/shop?ssl-mode=sometimes", "Unknown sslmode 'sometimes'"),
        ("mysql://reader:hush-4711@db/shop?ssl-mode=VERIFY_CA&ssl_ca=/no/such/file",
         "No encrypted connection to db"),
    ],
)  # fmt: skip
def test_what_cannot_be_reached_is_explained_in_one_line_without_the_password(
    shop: MysqlDatabase, address: str, message: str
) -> None:
    with pytest.raises(SourceNotUsable) as refused:
        shop.source(connection_string=ConnectionString(address)).check()
    assert message in str(refused.value)
    assert "hush" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_server_without_encryption_is_refused_if_encryption_is_required(
    shop: MysqlDatabase,
) -> None:
    assert len(shop.found(sslmode="disable")) == 2
    with pytest.raises(SourceNotUsable, match="No encrypted connection"):
        shop.source(sslmode="require").check()


def test_check_counts_what_a_scan_would_read(shop: MysqlDatabase) -> None:
    assert shop.source().check() == (
        f"{shop.server.replace('root@', '')}, MariaDB 10.11, 2 tables and views in 1 database"
    )
