"""What of a text is kept: what tells of lineage, on its lines and without secrets."""

from typing import Any

import pytest
from msgspec.structs import replace

from lineage.sql.edges import of
from lineage.sql.test_everyday import CASES
from lumos.lineage.sql import analyse


def kept(text: str, dialect: str | None = "postgres") -> str:
    return analyse(text, dialect=dialect).storable_text


SECRETS = [
    ("postgres", "create table a as select id from dblink('host=h password=HUSH', 'select 1')"),
    ("postgres", "create table a as select decrypt(name, 'HUSH') as n from raw"),
    ("postgres", "create table a as select pgp_sym_decrypt(n, 'HUSH', 'x') as n from raw"),
    ("postgres", "create table a as select id from raw where password = 'HUSH'"),
    ("postgres", "create table a as select id from raw where api_key in ('HUSH1', 'HUSH2')"),
    ("postgres", "create table a as select 'HUSH' as password, id from raw"),
    ("postgres", "create table a as select 'https://u:HUSH@host/x' as link, id from raw"),
    ("postgres", 'create table a as select \'{"token": "HUSH"}\' as j, id from raw'),
    ("postgres", "create table a as select $$password=HUSH$$ as s, id from raw"),
    ("postgres", "create table a as select 'postgresql://u:HUSH@h/d' as s, id from raw"),
    ("postgres", 'create table a as select id from "postgres://u:HUSH@h/db".raw'),
    ("bigquery", 'create table a as select id from raw where password = "HUSH"'),
    ("bigquery", 'create table a as select f(r"""pwd=HUSH""") as x, id from raw'),
    ("snowflake", "copy into a from 's3://b/x' credentials = (aws_key_id='HUSH' x='HUSH')"),
    ("snowflake", "copy into a from 's3://b/x?sig=HUSH&a=b'"),
    (
        "redshift",
        "copy a from 's3://b' credentials 'aws_access_key_id=HUSH;aws_secret_access_key=HUSH'",
    ),
    ("tsql", "select id into a from openrowset('SQLNCLI', 'Server=s;Pwd=HUSH;', 'select 1') t"),
    ("spark", "create table a using jdbc options (password 'HUSH', url 'x') as select id from raw"),
    ("postgres", "create table a as select f('AKIAHUSHHUSHHUSHHUSH') as x, id from raw"),
    ("snowflake", "create table a as select http_get(u, 'Bearer hunter21HUSH') as z from raw"),
    ("snowflake", "create table a as select http_get(u, 'basic dXNlHUSH9yZA==') as z from raw"),
    ("duckdb", "create table a as select f('Authorization: Digest HUSH, x HUSH') as z from raw"),
    ("duckdb", 'create table a as select f(\'{"authorization": "HUSH"}\') as z from raw'),
    ("duckdb", "create table a as select f('eyJhbGciOiJIUzI1.HUSH') as z from raw"),
    ("duckdb", "create table a as select f('eyJhbGciOiJIUzI1.HUSH.HUSH') as z from raw"),
    ("duckdb", "create table a as select f('ghp_HUSHhushHUSHhushHUSHhush') as z from raw"),
    ("duckdb", "create table a as select f('github_pat_HUSHhushHUSHhushHUSH') as z from raw"),
    ("duckdb", "create table a as select f('xoxe-HUSH-123456-abc') as z from raw"),
    ("duckdb", "create table a as select f('sk-proj-HUSHhushHUSHhush1234') as z from raw"),
    ("duckdb", "create table a as select f('-----BEGIN RSA PRIVATE KEY-----\nHUSH') as z from raw"),
    ("postgres", "create table a as select f(password => 'HUSH') as x, id from raw"),
    ("postgres", "create table a as select id from raw where password = 'HUSH\nHUSH' and id = 1"),
]


@pytest.mark.parametrize(("dialect", "sql"), SECRETS)
def test_secrets_are_masked_in_what_is_kept_and_in_every_clause(dialect: str, sql: str) -> None:
    text = f"create table first as select id from raw;\n{sql};\ncreate table b as select id from a"
    script = analyse(text, dialect=dialect)
    assert "HUSH" not in script.storable_text
    assert not any("HUSH" in (edge.expression or "") for edge in script.edges)
    assert "**" in script.storable_text
    assert script.storable_text.count("\n") == text.count("\n")
    again = analyse(script.storable_text, dialect=dialect)
    assert (again.edges, again.statements) == (script.edges, script.statements)
    assert again.storable_text == script.storable_text


@pytest.mark.parametrize(
    "literal",
    [
        "'Basic subscription'",
        "'bearer of news'",
        "'sk-1'",
        "'DE'",
        "'%@example.com'",
        "'2024-01-01'",
        "'key: value'",
        "'s3://lake/x'",
        "'a=b'",
        "''",
    ],
)
def test_other_literals_stay_as_they_are(literal: str) -> None:
    text = f"create table a as select id, coalesce(note, {literal}) n from raw where k = {literal}"
    assert kept(text) == text


NOTHING = [
    "create user bob password 'HUSH'",
    "create user bob identified by HUSH",
    "set session my.token = 'HUSH'",
    "alter user bob with password 'HUSH'",
    "grant select on a to HUSH",
    "comment on table a is 'HUSH'",
    "select id from raw where note = 'HUSH'",
    "create server s foreign data wrapper w options (host 'HUSH')",
]


@pytest.mark.parametrize("statement", NOTHING)
def test_a_statement_that_gives_no_information_is_left_out_with_its_lines(statement: str) -> None:
    lines = statement.replace(" ", "\n", 2)
    text = f"{lines}; -- HUSH\n/* HUSH\n*/ create table a as select id\nfrom raw # 1;"
    text = text.replace(" # 1", "")
    found = kept(text)
    assert "HUSH" not in found
    assert found.strip(" ;\n") == "create table a as select id\nfrom raw"
    assert found.count("\n") == text.count("\n")
    (edge,) = {edge.line for edge in analyse(found, dialect="postgres").edges}
    assert edge == text.count("\n")


def test_what_is_not_understood_is_kept_without_its_literals() -> None:
    found = kept("create table a as select id from raw;\nmerge into a usin 'HUSH' select from;")
    assert "merge into a usin" in found
    assert "HUSH" not in found


def test_where_a_quote_never_ends_nothing_of_its_statement_is_kept() -> None:
    text = (
        "create table a as select id from raw;\nselect 'HUSH;\ncreate table b as select id from a"
    )
    script = analyse(text, dialect="postgres")
    assert "HUSH" not in script.storable_text
    assert {edge.to_table for edge in analyse(script.storable_text, dialect="postgres").edges} == {
        edge.to_table for edge in script.edges
    }


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        (
            "tsql",
            "create procedure p as begin\ndeclare @x int = 1;\nset @x = (select max(id) from raw);\n"
            "select id into #t from raw where id > @x;\ninsert into a select id from #t;\nend",
        ),
        (
            "postgres",
            "create function f() returns void as $$\ndeclare n int; begin\n"
            "select max(id) into n from raw;\ninsert into a select id + n from raw;\nend\n"
            "$$ language plpgsql;",
        ),
        (
            "oracle",
            "declare cursor c is select id from raw;\nbegin for r in c loop\n"
            "insert into a values (r.id);\nend loop; end;\n/",
        ),
        ("tsql", "declare @x int; select @x = max(id) from raw; insert into a (id) select @x"),
        ("mysql", "delimiter //\ncreate table a as select id from raw//\ndelimiter ;\nuse x;"),
        (
            "teradata",
            "create volatile table t as (select id from raw) with data;\ninsert into a select * from t;",
        ),
        (
            "snowflake",
            "create temp table t as select id from raw;\ncreate table a as select * from t;\nalter table a rename to b;",
        ),
    ],
)
def test_the_stored_text_has_the_same_lineage_as_the_original(dialect: str, text: str) -> None:
    script = analyse(text, dialect=dialect)
    again = analyse(script.storable_text, dialect=dialect)
    assert set(script.edges)
    facts = [
        {
            (e.from_table, e.from_column, e.to_table, e.to_column, e.usage, e.line)
            for e in each.edges
        }
        for each in (script, again)
    ]
    assert facts[0] == facts[1]


@pytest.mark.parametrize("case", CASES, ids=[each["sql"][:60] for each in CASES])
def test_everyday_statements_are_kept_with_all_their_edges(case: dict[str, Any]) -> None:
    dialect, schema = case.get("dialect"), case.get("schema")
    script = of(f"-- first\n{case['sql']}", dialect, schema)
    again = of(script.storable_text, dialect, schema)
    into = [
        {replace(edge, statement=0) for edge in each.edges if edge.to_table}
        for each in (script, again)
    ]
    assert into[0] == into[1]
    assert "first" not in script.storable_text
