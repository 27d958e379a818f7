"""Databases read through SQLAlchemy: SQLite and DuckDB, both real."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from lumos import Lumos
from lumos.config.secret import ConnectionString
from lumos.config.sources import SqlSourceSettings
from lumos.model.discovery import Discovery, FoundDataset
from lumos.sources import SourceNotUsable
from lumos.sources.sql import SqlSource
from lumos.sources.sql.catalog import InspectedCatalog
from lumos.sources.sql.source import query_of
from lumos.sources.sql.types import type_of_text
from lumos.store import Store

pytestmark = pytest.mark.usefixtures("workplace")


class FileDatabase:
    """A database in a file, and how to fill it and look at it."""

    def __init__(self, dialect: str, file: Path) -> None:
        self.dialect, self.file = dialect, file
        self.url = f"{dialect}:///{file}"

    def run(self, *statements: str) -> None:
        opened: Any = (sqlite3 if self.dialect == "sqlite" else duckdb).connect(str(self.file))
        with closing(opened) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()

    def source(self, **facts: Any) -> SqlSource:
        given = {"connection_string": ConnectionString(self.url), **facts}
        return SqlSource(SqlSourceSettings(**given))

    def look(self, **facts: Any) -> Discovery:
        return self.source(**facts).read(lambda _: None)

    def found(self, **facts: Any) -> dict[str, FoundDataset]:
        return {str(each.name): each for each in self.look(**facts).datasets}


@pytest.fixture(params=["sqlite", "duckdb"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> FileDatabase:
    return FileDatabase(request.param, tmp_path / "shop.db")


def lines(found: FoundDataset) -> list[str]:
    return [
        f"{field.name} {field.type.text}{'' if field.nullable else ' NOT NULL'}"
        f"{' KEY' if field.key else ''}{f' DEFAULT {field.default}' if field.default else ''}"
        for field in found.schema.fields
    ]


def test_sqlite_is_read_with_keys_defaults_constraints_and_views(tmp_path: Path) -> None:
    database = FileDatabase("sqlite", tmp_path / "my shop.db")
    database.run(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, name VARCHAR(20) NOT NULL DEFAULT 'x', "
        "total DECIMAL(10,2), paid BOOLEAN, placed DATETIME, details JSON, data BLOB, odd, "
        "CONSTRAINT positive CHECK (total > 0), UNIQUE (name))",
        "CREATE TABLE lines (order_id INT REFERENCES orders (id), count TINYINT)",
        'CREATE VIEW large ("a as b", c) AS SELECT id, total FROM orders WHERE total > 3',
    )
    found = database.found()
    assert set(found) == {"main.orders", "main.lines", "main.large"}
    assert lines(found["main.orders"]) == [
        "id INT64 NOT NULL KEY", "name STRING(20) NOT NULL DEFAULT 'x'", "total DECIMAL(10,2)",
        "paid BOOLEAN", "placed TIMESTAMP(us)", "details JSON", "data BINARY", "odd UNKNOWN",
    ]  # fmt: skip
    metadata = found["main.orders"].source_metadata
    assert metadata is not None
    assert metadata.properties == {
        "constraint.UNIQUE (name)": "UNIQUE (name)", "constraint.positive": "CHECK (total > 0)",
    }  # fmt: skip
    view = found["main.large"].source_metadata
    assert view is not None
    assert view.definition is not None
    assert view.definition.sql == "SELECT id, total FROM orders WHERE total > 3"
    assert view.definition.dialect == "sqlite"
    source = database.source()
    assert str(source.urn("my%20shop/main/orders", environment="PROD")) == (
        "lumos://sqlite/my%20shop/main/orders"
    )
    assert source.check() == f"sqlite://{database.file}, 3 tables and views"


def test_duckdb_is_read_with_nested_types_and_comments(tmp_path: Path) -> None:
    database = FileDatabase("duckdb", tmp_path / "shop.duckdb")
    database.run(
        "CREATE SCHEMA sales",
        "CREATE TABLE sales.orders (id BIGINT PRIMARY KEY, huge HUGEINT, "
        "item STRUCT(sku VARCHAR, tags VARCHAR[]), prices MAP(VARCHAR, DECIMAL(9,2)), "
        "state ENUM('open', 'paid') NOT NULL DEFAULT 'open', placed TIMESTAMPTZ, ref UUID, details JSON, "
        "code VARCHAR UNIQUE)",
        "COMMENT ON TABLE sales.orders IS 'Orders of the shop'",
        "COMMENT ON COLUMN sales.orders.id IS 'The number'",
        "CREATE VIEW sales.large AS SELECT id FROM sales.orders WHERE huge > 3",
    )
    found = database.found(schemas=("sales",))
    assert set(found) == {"sales.orders", "sales.large"}
    orders = found["sales.orders"]
    assert [line.partition(" DEFAULT")[0] for line in lines(orders)] == [
        "id INT64 NOT NULL KEY", "huge DECIMAL(39,0)",
        "item STRUCT<sku: STRING, tags: ARRAY<STRING>>", "prices MAP<STRING, DECIMAL(9,2)>",
        "state ENUM('open','paid') NOT NULL", "placed TIMESTAMPTZ(us)", "ref UUID", "details JSON",
        "code STRING",
    ]  # fmt: skip
    assert orders.schema.fields[0].description == "The number"
    assert orders.source_metadata is not None
    assert orders.source_metadata.description == "Orders of the shop"
    assert "UNIQUE (code)" in orders.source_metadata.properties.values()
    view = found["sales.large"].source_metadata
    assert view is not None
    assert view.definition is not None
    assert view.definition.sql.startswith("SELECT id FROM")


@pytest.mark.parametrize(
    ("dialect", "text", "expected"),
    [
        ("oracle", "NUMBER(10,2)", "DECIMAL(10,2)"),
        ("oracle", "VARCHAR2(40)", "STRING(40)"),
        ("mssql", "NVARCHAR(40)", "STRING(40)"),
        ("mssql", "DATETIMEOFFSET", "TIMESTAMPTZ(us)"),
        ("mssql", "MONEY", "DECIMAL(19,4)"),
        ("clickhouse", "Nullable(Array(String))", "ARRAY<STRING>"),
        ("clickhouse", "UInt64", "UINT64"),
        ("trino", "ARRAY(ROW(a BIGINT, b VARCHAR(3)))", "ARRAY<STRUCT<a: INT64, b: STRING(3)>>"),
        ("duckdb", "TIMESTAMP_NS", "TIMESTAMP(ns)"),
        ("sqlite", "UNSIGNED BIG INT", "INT64"),
        ("sqlite", "what is this?", "UNKNOWN('what is this?')"),
        ("nosuch", "INTEGER", "UNKNOWN('INTEGER')"),
    ],
)
def test_types_of_other_dialects_are_read_from_their_text(
    dialect: str, text: str, expected: str
) -> None:
    assert type_of_text(text, dialect).text == expected


@pytest.mark.parametrize(
    ("definition", "query"),
    [
        ("SELECT 1 AS a", "SELECT 1 AS a"),
        ("CREATE VIEW v AS SELECT a AS b FROM t;", "SELECT a AS b FROM t"),
        ('create temp view "x as y"(a) /* as */ as\nselect 1', "select 1"),
        (
            "CREATE VIEW [a AS b] AS WITH c AS (SELECT 1) SELECT * FROM c",
            "WITH c AS (SELECT 1) SELECT * FROM c",
        ),
        ("CREATE VIEW v", "CREATE VIEW v"),
    ],
)
def test_the_query_of_a_view_is_taken_from_its_statement(definition: str, query: str) -> None:
    assert query_of(definition) == query


NAMES = (
    "select", "it's", 'say "hi"', "Straße ü", "数据", "a/b.c%d?e#f", "x'; DROP TABLE orders; --",
    "%s %(a)s :schema {0}",
)  # fmt: skip


def test_odd_names_are_kept_apart_and_cannot_inject_sql(database: FileDatabase) -> None:
    def quoted(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    database.run(*(f"CREATE TABLE {quoted(name)} ({quoted(name)} INTEGER)" for name in NAMES))
    source = database.source()
    discovery = source.read(lambda _: None)
    assert not discovery.problems
    assert {each.schema.fields[0].name for each in discovery.datasets} == set(NAMES)
    assert len(
        {str(source.urn(each.path, environment="PROD")) for each in discovery.datasets}
    ) == len(NAMES)
    assert all(source.covers(each.path) for each in discovery.datasets)


def test_patterns_select_tables_and_unknown_schemas_are_remarks(database: FileDatabase) -> None:
    database.run("CREATE TABLE orders (a INT)", "CREATE TABLE tmp_1 (a INT)")
    assert set(database.found(exclude=("tmp_*",))) == {"main.orders"}
    assert set(database.found(tables=("main.tmp*",))) == {"main.tmp_1"}
    (problem,) = database.look(schemas=("main", "mian")).problems
    assert (problem.code, problem.remark) == ("no_such_schema", True)
    assert "Did you mean 'main'?" in problem.reason


def test_thousands_of_columns_are_read(tmp_path: Path) -> None:
    # SQLite's own limit is 2,000 columns.
    for dialect, count in (("sqlite", 2_000), ("duckdb", 4_000)):
        database = FileDatabase(dialect, tmp_path / f"{dialect}.db")
        database.run(f"CREATE TABLE wide ({', '.join(f'c{n} INTEGER' for n in range(count))})")
        names = [field.name for field in database.found()["main.wide"].schema.fields]
        assert names == [f"c{n}" for n in range(count)]


def test_a_table_that_is_dropped_during_the_scan_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = FileDatabase("sqlite", tmp_path / "shop.db")
    database.run("CREATE TABLE orders (a INT)", "CREATE TABLE users (a INT)")
    relations: Callable[..., Any] = InspectedCatalog._relations

    def dropping(self: InspectedCatalog, schema: str) -> Any:
        found = relations(self, schema)
        database.run("DROP TABLE users")
        return found

    monkeypatch.setattr(InspectedCatalog, "_relations", dropping)
    discovery = database.look()
    assert [each.name for each in discovery.datasets] == ["main.orders"]
    assert [(each.path, each.code) for each in discovery.problems] == [
        ("shop/main/users", "changing")
    ]


def test_schemas_that_the_database_refuses_are_problems_and_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = FileDatabase("sqlite", tmp_path / "shop.db")
    database.run("CREATE TABLE orders (a INT)")
    schemas = ["closed", "main", "secret"]
    monkeypatch.setattr(InspectedCatalog, "schemas", lambda _: schemas)
    source = database.source()
    assert source.check().endswith("1 table or view")
    discovery = source.read(lambda _: None)
    assert [each.name for each in discovery.datasets] == ["main.orders"]
    assert [(each.path, each.code, each.remark) for each in discovery.problems] == [
        ("shop/closed", "unreadable", False),
        ("shop/secret", "unreadable", False),
    ]
    assert discovery.problems[0].reason == "no such table: closed.sqlite_master"
    schemas.remove("main")
    with pytest.raises(SourceNotUsable, match=r"no such table: secret\.sqlite_master"):
        source.check()


def test_a_file_that_is_missing_is_refused_and_not_created(database: FileDatabase) -> None:
    with pytest.raises(SourceNotUsable, match="cannot be read") as refused:
        database.source().check()
    assert "\n" not in str(refused.value)
    assert not database.file.exists()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nosuch://user:hush@host/x", "No SQLAlchemy dialect 'nosuch'"),
        ("oracle+oracledb://user:hush/x@host/x", "Invalid connection string"),
        ("not a url", "Invalid connection string"),
    ],
)
def test_what_cannot_be_opened_is_explained_without_the_password(url: str, message: str) -> None:
    source = SqlSource(SqlSourceSettings(connection_string=ConnectionString(url)))
    with pytest.raises(SourceNotUsable) as refused:
        source.check()
    assert message in str(refused.value)
    assert "hush" not in str(refused.value)


def test_views_yield_lineage_and_changes_have_verdicts(database: FileDatabase) -> None:
    database.run(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, total INTEGER)",
        "CREATE VIEW large AS SELECT id AS number FROM orders WHERE total > 3",
    )
    lumos = Lumos()
    report = lumos.ingest(database.url)
    assert not report.problems
    orders, large = (f"lumos://{database.dialect}/shop/main/{name}" for name in ("orders", "large"))
    (edge,) = Store.open(lumos.database).lineage.edges_by(f"view:{large}")
    assert (edge.upstream, edge.downstream) == (orders, large)
    assert ("id", "number") in {(pair.upstream, pair.downstream) for pair in edge.columns}
    database.run("DROP VIEW large", "ALTER TABLE orders DROP COLUMN total")
    again = lumos.ingest(database.url, accept_removals=True)
    assert [(each.path, each.kind) for each in again.datasets[0].changes] == [("total", "removed")]
    assert again.missing == (large,)
