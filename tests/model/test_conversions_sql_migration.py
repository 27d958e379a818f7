"""Tables after migrations."""

import pytest

from lumos.model.conversions.sql_migration import MigratedTables
from lumos.model.types import SchemaSyntaxError

CREATE = "create table shop.users (id bigint primary key, name varchar(20) not null default 'x');"


def after(*migrations: str) -> dict[str, list[str]]:
    state = MigratedTables("postgres")
    for number, text in enumerate(migrations):
        state.apply(f"{number}.sql", text)
    return {".".join(key): str(table.schema).splitlines() for key, table in state.tables.items()}


ID = "id INT64 NOT NULL KEY"
NAME = "name STRING(20) NOT NULL DEFAULT 'x'"


@pytest.mark.parametrize(
    ("migration", "columns"),
    [
        ("alter table users add column email text", [ID, NAME, "email STRING"]),
        ("alter table users add email text not null, add age int default 3", [ID, NAME, "email STRING NOT NULL", "age INT32 DEFAULT '3'"]),
        ("alter table users add column if not exists name int", [ID, NAME]),
        ("alter table shop.users add (a int, b numeric(10,2))", [ID, NAME, "a INT32", "b DECIMAL(10,2)"]),
        ("alter table users add column n int after id;", [ID, NAME, "n INT32"]),
        ("alter table users drop column name", [ID]),
        ("alter table if exists only users drop if exists NAME cascade", [ID]),
        ("alter table users alter column name type text using name::text", [ID, "name STRING NOT NULL DEFAULT 'x'"]),
        ("alter table users alter name set data type varchar(30), alter name drop default", [ID, "name STRING(30) NOT NULL"]),
        ("alter table users alter column name drop not null", [ID, "name STRING(20) DEFAULT 'x'"]),
        ("alter table users modify column name int null", [ID, "name INT32"]),
        ("alter table users change name title text not null", [ID, "title STRING NOT NULL"]),
        ("alter table users rename column name to title", [ID, NAME.replace("name", "title")]),
        ("alter table users add constraint c check (id > 0), drop constraint d", [ID, NAME]),
        ("alter table users drop primary key", [ID.removesuffix(" KEY"), NAME]),
        ("comment on column shop.users.name is 'it''s'", [ID, NAME + " COMMENT 'it''s'"]),
        ("create table if not exists users (z int)", [ID, NAME]),
        ("create or replace table users (z int)", ["z INT32"]),
        ("create function f() returns int as $$ drop table users; $$ language sql", [ID, NAME]),
        ("alter table others drop column x; drop index users; create index i on users (name)", [ID, NAME]),
    ],
)  # fmt: skip
def test_a_migration_changes_the_columns(migration: str, columns: list[str]) -> None:
    assert after(CREATE, migration) == {"shop.users": columns}


@pytest.mark.parametrize(
    ("migration", "tables"),
    [
        ("drop table if exists users cascade", []),
        ("alter table users rename to people", ["shop.people"]),
        ("rename table shop.users to shop.people", ["shop.people"]),
        ("create table other.users (a int)", ["shop.users", "other.users"]),
        ("create table users as select 1 as a", []),
        ("create table copy (like users)", ["shop.users"]),
    ],
)
def test_a_migration_changes_the_tables(migration: str, tables: list[str]) -> None:
    assert list(after(CREATE, migration)) == tables


def test_a_migration_with_an_error_changes_nothing() -> None:
    state = MigratedTables("postgres")
    state.apply("1.sql", CREATE)
    with pytest.raises(SchemaSyntaxError):
        state.apply("2.sql", "drop table users; create table x (a int, a int);")
    assert list(state.tables) == [("shop", "users")]


def test_the_last_definition_of_a_view_counts() -> None:
    state = MigratedTables("postgres")
    state.apply(
        "1.sql", CREATE + "create view v as select id from users; create view w as select 1;"
    )
    text = "create or replace view v as select name from users; drop view w;"
    state.apply("2.sql", text)
    ((key, view),) = state.views.items()
    assert (key, view.file) == (("v",), "2.sql")
    assert text[view.start : view.end] == "create or replace view v as select name from users"
