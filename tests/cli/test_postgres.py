"""What people see of a database."""

from pathlib import Path
from typing import Any

import pytest

from databases import PostgresDatabase

pytestmark = pytest.mark.usefixtures("workplace")


@pytest.fixture
def shop(database: PostgresDatabase) -> PostgresDatabase:
    database.run(
        "CREATE TABLE orders (id bigint PRIMARY KEY, total numeric(12,2))",
        "COMMENT ON TABLE orders IS 'All orders'",
        "CREATE VIEW large AS SELECT id FROM orders WHERE total > 100",
        "INSERT INTO orders SELECT n, n FROM generate_series(1, 1000) n",
        "ANALYZE",
    )
    return database


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.strip()]


def test_tables_are_shown_without_files_and_with_estimates_marked(
    lumos: Any, shop: PostgresDatabase
) -> None:
    result = lumos("ingest", shop.url)
    assert result.code == 0
    header, large, orders, summary = lines(result.out)
    assert large == ["public.large", "view", "S-1", "1.0.0", "new"]
    assert orders[:4] == ["public.orders", "table", "~1,000", "~49.2"]
    assert "file" not in " ".join(summary)
    assert header[0] == "DATASET"


def test_what_changed_beside_fields_is_described_in_words(
    lumos: Any, shop: PostgresDatabase
) -> None:
    lumos("ingest", shop.url)
    shop.run("COMMENT ON TABLE orders IS 'Some orders'", "ALTER VIEW large RENAME TO larger")
    out = lumos("ingest", shop.url).out
    assert "public.orders  S-2 1.0.0\n  description changed\n" in out
    assert "public.larger  S-1 1.0.0\n  was large\n" in out


def test_a_scan_of_a_database_names_who_breaks(
    lumos: Any, shop: PostgresDatabase, workplace: Path
) -> None:
    shop.run("ALTER TABLE orders ADD COLUMN note text, ADD COLUMN day date")
    lumos("ingest", shop.url)
    (workplace / "notes.sql").write_text(
        "-- Owner: support\ncreate table notes as\nselect id, note, odd(day) as d from orders\n"
    )
    lumos("lineage", "ingest", "notes.sql", "--dialect", "postgres")
    shop.run("ALTER TABLE orders ALTER COLUMN day TYPE timestamp")
    result = lumos("ingest", shop.url, "--exit-code", "--strict")
    # Nobody knows whether the function takes the new type.
    assert "    day became TIMESTAMP(us): may break notes (support), notes.sql:3\n" in result.out
    assert result.code == 11
    shop.run("ALTER TABLE orders DROP COLUMN note")
    result = lumos("ingest", shop.url, "--exit-code", "--strict")
    assert "    note was removed: breaks notes (support), notes.sql:3\n" in result.out
    assert result.code == 10


def test_show_prints_the_metadata_of_the_database(lumos: Any, shop: PostgresDatabase) -> None:
    lumos("ingest", shop.url)
    out = lumos("show", "public.orders").out
    assert ["description", "All", "orders"] in lines(out)
    assert ["owners", "lumos"] in lines(out)
    assert not any(line[:1] in (["files"], ["modified"]) for line in lines(out))
    out = lumos("show", "large").out
    assert "FROM public.orders" in out
    assert not any(line[:1] in (["rows"], ["size"]) for line in lines(out))


def test_show_prints_types_as_the_database_writes_them(lumos: Any, shop: PostgresDatabase) -> None:
    lumos("ingest", shop.url)
    fields = lumos("show", "orders", "--json").json["dataset"]["schema"]["fields"]
    assert [field["native_type"] for field in fields] == ["bigint", "numeric(12,2)"]


def test_discover_shows_tables_and_records_nothing(lumos: Any, shop: PostgresDatabase) -> None:
    result = lumos("discover", shop.url)
    assert result.code == 0
    assert f"{shop.url.replace('lumos@', '')}/public/orders" in result.out
    assert "2 datasets, " in result.out
    assert not Path(".lumos").exists()


def test_an_empty_database_is_said_to_be_empty(lumos: Any, database: PostgresDatabase) -> None:
    result = lumos("ingest", database.url)
    assert result.code == 1
    assert "No dataset was found in postgresql://" in result.err
    assert "Lumos finds tables, views, collections and topics" in result.err


def test_a_refusal_is_one_sentence_without_the_password(
    lumos: Any, database: PostgresDatabase
) -> None:
    address = database.url.replace("lumos@", "nobody:hush-4711@")
    result = lumos("--debug", "ingest", address)
    assert result.code == 2
    assert "rejected the login of nobody" in result.err
    assert "hush-4711" not in result.out + result.err


def test_one_source_that_fails_is_reported_and_ends_with_1_while_others_are_recorded(
    lumos: Any, shop: PostgresDatabase, workplace: Path
) -> None:
    (workplace / "lumos.yaml").write_text(
        "sources:\n"
        "  - {type: postgres, host: 127.0.0.1, port: 1, database: d, user: u}\n"
        f"  - {{type: postgres, connection_string: '{shop.url}'}}\n"
    )
    result = lumos("ingest")
    assert result.code == 1
    assert "postgres 127.0.0.1: Cannot connect to PostgreSQL" in " ".join(result.err.split())
    assert "0 unchanged" in result.words
    assert lumos("list", "--json").json["datasets"]
