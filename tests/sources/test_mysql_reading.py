"""What is read from MariaDB, on a real server; what differs in MySQL is tested on its printed rows."""

import re
from pathlib import Path

import pytest

from databases import MysqlDatabase
from lumos.model.dataset import Definition, Owner
from lumos.model.types import parse_type
from lumos.sources.mysql.connection import MysqlConnection
from lumos.sources.mysql.datasets import MysqlColumn, columns_in, default_of, type_of_column

pytestmark = pytest.mark.usefixtures("workplace")


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("tinyint(1)", "BOOLEAN"),
        ("tinyint(4)", "INT8"),
        ("tinyint unsigned", "UINT8"),
        ("tinyint(1) unsigned", "UINT8"),
        ("smallint(6)", "INT16"),
        ("mediumint(8) unsigned zerofill", "UINT32"),
        ("int", "INT32"),
        ("int(11)", "INT32"),
        ("bigint(20) unsigned", "UINT64"),
        ("bit(1)", "BOOLEAN"),
        ("bit(8)", "UNKNOWN('bit(8)')"),
        ("decimal(10,2)", "DECIMAL(10,2)"),
        ("decimal(10,0) unsigned", "DECIMAL(10,0)"),
        ("float", "FLOAT32"),
        ("float(7,4)", "FLOAT32"),
        ("double", "FLOAT64"),
        ("char(3)", "STRING(3)"),
        ("varchar(40)", "STRING(40)"),
        ("longtext", "STRING"),
        ("binary(16)", "BINARY(16)"),
        ("varbinary(16)", "BINARY"),
        ("mediumblob", "BINARY"),
        ("date", "DATE"),
        ("time", "TIME(s)"),
        ("time(2)", "TIME(ms)"),
        ("datetime(6)", "TIMESTAMP(us)"),
        ("timestamp", "TIMESTAMPTZ(s)"),
        ("year(4)", "INT16"),
        ("json", "JSON"),
        ("uuid", "UUID"),
        ("enum('a','b''c','d,e)')", "ENUM('a','b''c','d,e)')"),
        ("set('a','b')", "UNKNOWN('set(''a'',''b'')')"),
        ("point", "UNKNOWN('point')"),
        ("varchar(x)", "UNKNOWN('varchar(x)')"),
    ],
)
def test_types_are_read_as_the_server_prints_them(printed: str, expected: str) -> None:
    assert type_of_column(printed).text == parse_type(expected).text == expected


@pytest.mark.parametrize(
    ("default", "extra", "generation", "in_mariadb", "in_mysql"),
    [
        (None, "", None, None, None),
        ("NULL", "", None, None, "'NULL'"),
        ("'it''s'", "", None, "'it''s'", "'''it''''s'''"),
        ("open", "", None, "open", "'open'"),
        ("1.50", "", None, "1.50", "1.50"),
        ("b'101'", "", None, "b'101'", "b'101'"),
        ("uuid()", "DEFAULT_GENERATED", None, "uuid()", "uuid()"),
        ("CURRENT_TIMESTAMP", "DEFAULT_GENERATED on update CURRENT_TIMESTAMP", None,
         "CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP",
         "CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"),
        (None, "auto_increment", None, "AUTO_INCREMENT", "AUTO_INCREMENT"),
        (None, "STORED GENERATED", "`a` + 1",
         "GENERATED ALWAYS AS (`a` + 1) STORED", "GENERATED ALWAYS AS (`a` + 1) STORED"),
        (None, "VIRTUAL GENERATED", "concat('password=hush', `a`)",
         "GENERATED ALWAYS AS (concat('password=***', `a`)) VIRTUAL",
         "GENERATED ALWAYS AS (concat('password=***', `a`)) VIRTUAL"),
    ],
)  # fmt: skip
def test_defaults_are_expressions_although_mysql_prints_bare_values(
    default: str | None, extra: str, generation: str | None, in_mariadb: str, in_mysql: str
) -> None:
    column = MysqlColumn("t", 1, "c", default, "YES", "int", "", extra, None, generation)
    assert default_of(column, is_mariadb=True) == in_mariadb
    assert default_of(column, is_mariadb=False) == in_mysql


def test_the_columns_of_a_partitioning_are_found_by_their_quoted_names() -> None:
    columns = [MysqlColumn("t", 1, name, None, "YES", "int", "", "", None, None)
               for name in ("Day", "odd`name", "year")]  # fmt: skip
    assert columns_in("RANGE (year(`day`))", columns) == {"Day"}
    assert columns_in("HASH (`odd``name`)", columns) == {"odd`name"}


def test_a_table_is_read_with_keys_comments_defaults_and_constraints(
    mysql_database: MysqlDatabase,
) -> None:
    mysql_database.run(
        "CREATE TABLE customers (id INT UNSIGNED PRIMARY KEY, name VARCHAR(40) UNIQUE)",
        """CREATE TABLE orders (
             id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY COMMENT 'The number',
             customer INT UNSIGNED NOT NULL,
             state ENUM('open', 'it''s paid') DEFAULT 'open',
             details JSON,
             total DECIMAL(10,2) NOT NULL CHECK (total >= 0),
             tax DECIMAL(10,2) GENERATED ALWAYS AS (total * 0.2) STORED,
             changed TIMESTAMP(3) DEFAULT current_timestamp(3) ON UPDATE current_timestamp(3),
             secret INT INVISIBLE DEFAULT 1,
             CONSTRAINT who FOREIGN KEY (customer) REFERENCES customers (id) ON DELETE CASCADE
           ) COMMENT 'Orders of the shop'""",
        "INSERT INTO customers VALUES (1, 'ann')",
    )
    found = mysql_database.found()
    orders = found["orders"]
    shown = {
        field.name: (field.type.text, field.nullable, field.key, field.default)
        for field in orders.schema.fields
    }
    assert shown == {
        "id": ("UINT64", False, True, "AUTO_INCREMENT"),
        "customer": ("UINT32", False, False, None),
        "state": ("ENUM('open','it''s paid')", True, False, "'open'"),
        "details": ("JSON", True, False, None),
        "total": ("DECIMAL(10,2)", False, False, None),
        "tax": ("DECIMAL(10,2)", True, False, "GENERATED ALWAYS AS (`total` * 0.2) STORED"),
        "changed": ("TIMESTAMPTZ(ms)", True, False,
                    "current_timestamp(3) ON UPDATE current_timestamp(3)"),
        "secret": ("INT32", True, False, "1"),
    }  # fmt: skip
    assert orders.schema.fields[0].description == "The number"
    assert [orders.schema.fields[i].native_type for i in (3, 7)] == [
        "longtext",
        "int(11) invisible",
    ]
    assert orders.name == f"{mysql_database.name}.orders"
    assert (orders.format, orders.statistics.row_count) == ("table", 0)
    assert orders.statistics.total_size_bytes > 0
    metadata = orders.source_metadata
    assert metadata is not None
    assert metadata.description == "Orders of the shop"
    assert metadata.properties["engine"] == "InnoDB"
    assert metadata.properties["constraint.total"] == "CHECK (`total` >= 0)"
    assert metadata.properties["constraint.who"] == (
        f"FOREIGN KEY (`customer`) REFERENCES `{mysql_database.name}`.`customers` (`id`) "
        "ON UPDATE RESTRICT ON DELETE CASCADE"
    )
    assert "constraint.details" not in metadata.properties
    customers = found["customers"].source_metadata
    assert customers is not None
    assert customers.properties["constraint.name"] == "UNIQUE (`name`)"


def test_a_unique_key_without_nulls_is_the_key_if_there_is_no_primary_key(
    mysql_database: MysqlDatabase,
) -> None:
    mysql_database.run(
        "CREATE TABLE t (a INT NOT NULL, b INT NOT NULL, c INT, UNIQUE (b), UNIQUE (c))"
    )
    assert [field.key for field in mysql_database.schema("t").fields] == [False, True, False]


def test_views_have_their_query_and_definer_and_invalid_ones_are_problems(
    mysql_database: MysqlDatabase,
) -> None:
    mysql_database.run(
        "CREATE TABLE orders (id INT, total INT)",
        "CREATE TABLE old (id INT)",
        "CREATE VIEW large AS SELECT id FROM orders WHERE total > 3 AND id <> 'password=hush'",
        "CREATE VIEW broken AS SELECT id FROM old",
        "DROP TABLE old",
        "CREATE SEQUENCE numbers",
    )
    discovery = mysql_database.look()
    found = {each.path.split("/")[1]: each for each in discovery.datasets}
    assert set(found) == {"orders", "large"}
    view = found["large"]
    assert view.format == "view"
    metadata = view.source_metadata
    assert metadata is not None
    database = mysql_database.name
    assert metadata.definition == Definition(
        sql=f"select `{database}`.`orders`.`id` AS `id` from `{database}`.`orders` "
        f"where `{database}`.`orders`.`total` > 3 and `{database}`.`orders`.`id` <> 'password=***'",
        dialect="mysql",
    )
    assert metadata.owner == Owner(name="root@127.0.0.1")
    (problem,) = discovery.problems
    assert (problem.path, problem.code, problem.remark) == (
        f"{database}/broken", "invalid_view", False,
    )  # fmt: skip


def test_partitions_are_part_of_their_table(mysql_database: MysqlDatabase) -> None:
    mysql_database.run(
        "CREATE TABLE sales (id INT, day DATE, PRIMARY KEY (id, day)) "
        "PARTITION BY RANGE (year(day)) (PARTITION a VALUES LESS THAN (2020), "
        "PARTITION b VALUES LESS THAN MAXVALUE)",
        "CREATE TABLE visits (a INT, b INT) PARTITION BY LIST COLUMNS (a) SUBPARTITION BY HASH (b) "
        "SUBPARTITIONS 2 (PARTITION p VALUES IN (1, 2))",
    )
    found = mysql_database.found()
    assert set(found) == {"sales", "visits"}
    assert found["sales"].location.partitioning == "RANGE (year(`day`))"
    assert found["sales"].location.partition_keys == ("day",)
    assert found["visits"].location.partitioning == "LIST COLUMNS (`a`), HASH (`b`)"
    assert found["visits"].location.partition_keys == ("a", "b")


# Reserved words, mixed case, quotes, Unicode, path separators and attempted injections.
NAMES = (
    "select", "Orders", "orders", "it's", 'say "hi"', "back`tick", "Straße ü", "数据", "a/b.c%d?e#f",
    "x'; DROP TABLE orders; --", "\\' OR 1=1", "%s %(a)s {0}",
)  # fmt: skip


def test_odd_names_are_kept_apart_and_cannot_inject_sql(mysql_database: MysqlDatabase) -> None:
    def quoted(name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    mysql_database.run(
        *(f"CREATE TABLE {quoted(name)} ({quoted(name)} INT PRIMARY KEY)" for name in NAMES)
    )
    source = mysql_database.source()
    found = source.read(lambda _: None)
    assert not found.problems
    urns = {str(source.urn(each.path, environment="PROD")) for each in found.datasets}
    assert len(urns) == len(NAMES)
    assert {each.schema.fields[0].name for each in found.datasets} == set(NAMES)
    # InnoDB encodes names, and the ids belong to the right tables.
    assert len({each.location.identity for each in found.datasets} - {None}) == len(NAMES)
    assert all(source.covers(each.path) for each in found.datasets)


def test_databases_with_odd_names_are_read_and_selected(mysql_database: MysqlDatabase) -> None:
    odd = ("Shop", "shop", "x'; DROP DATABASE shop; --", "Straße")
    mysql_database.run(*(f"CREATE DATABASE `{name}`" for name in odd))
    try:
        mysql_database.run(
            *(f"CREATE TABLE `{name}`.t (`{number}` INT)" for number, name in enumerate(odd))
        )
        found = mysql_database.look(databases=odd).datasets
        assert {each.name: each.schema.fields[0].name for each in found} == {
            f"{name}.t": str(number) for number, name in enumerate(odd)
        }
        only = mysql_database.look(databases=("shop",)).datasets
        assert [each.name for each in only] == ["shop.t"]
    finally:
        mysql_database.run(*(f"DROP DATABASE `{name}`" for name in odd))


def test_as_many_columns_as_the_server_allows_are_read(mysql_database: MysqlDatabase) -> None:
    # InnoDB allows 1,017 columns, Aria about 2,000; MariaDB itself 4,096.
    columns = ", ".join(f"c{number} TINYINT" for number in range(1_017))
    many = ", ".join(f"c{number} TINYINT" for number in range(2_000))
    mysql_database.run(
        f"CREATE TABLE wide ({columns})", f"CREATE TABLE wider ({many}) ENGINE=MyISAM"
    )
    schema = mysql_database.schema("wider")
    assert [field.name for field in schema.fields] == [f"c{number}" for number in range(2_000)]
    assert len(mysql_database.schema("wide").fields) == 1_017


def test_patterns_select_tables(mysql_database: MysqlDatabase) -> None:
    mysql_database.run(*(f"CREATE TABLE {name} (a INT)" for name in ("orders", "tmp_1", "users")))
    name = mysql_database.name
    assert set(mysql_database.found(exclude=("tmp_*",))) == {"orders", "users"}
    assert set(mysql_database.found(tables=(f"{name}.o*",))) == {"orders"}
    assert set(mysql_database.found(watched=("users",))) == {"users"}
    (problem,) = mysql_database.look(databases=(name, "shp_*")).problems
    assert (problem.code, problem.remark, problem.path) == ("no_such_database", True, "shp_%2A")


def test_a_table_that_another_session_locks_or_drops_does_not_stop_the_scan(
    mysql_database: MysqlDatabase,
) -> None:
    mysql_database.run("CREATE TABLE orders (a INT)", "CREATE TABLE users (a INT)")
    with mysql_database.connection() as other:
        other.execute("LOCK TABLES orders WRITE")
        assert set(mysql_database.found()) == {"orders", "users"}
    source = mysql_database.source()

    # The source reads tables first and their columns later.
    stream = MysqlConnection.stream
    with pytest.MonkeyPatch.context() as patch:

        def dropping(self: MysqlConnection, query: str, *parameters: object) -> object:
            mysql_database.run("DROP TABLE IF EXISTS users")
            return stream(self, query, *parameters)

        patch.setattr(MysqlConnection, "stream", dropping)
        discovery = source.read(lambda _: None)
    assert [each.path.split("/")[1] for each in discovery.datasets] == ["orders"]
    assert [(each.code, each.remark) for each in discovery.problems] == [("changing", False)]


def test_reading_changes_nothing_and_reads_no_rows(
    mysql_database: MysqlDatabase, tmp_path: Path
) -> None:
    mysql_database.run("CREATE TABLE t (a INT) ENGINE=MyISAM", "INSERT INTO t VALUES (1)")
    log = tmp_path / "general.log"
    mysql_database.run(f"SET GLOBAL general_log_file = '{log}'", "SET GLOBAL general_log = 1")
    try:
        mysql_database.look()
    finally:
        mysql_database.run("SET GLOBAL general_log = 0")
    text = log.read_text()
    assert text.count("Query") > 8
    tables = re.findall(r"\b(?:FROM|JOIN)\s+\(?(?:SELECT\b.*?\bFROM\s+)?([\w.]+)", text, re.DOTALL)
    assert len(tables) > 5
    assert all(table.startswith("information_schema.") for table in tables)
