"""The way into a database: rights, refusals in one clear sentence, and harm done to nobody."""

import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from databases import PostgresDatabase
from lumos.config.secret import ConnectionString, Secret
from lumos.config.sources import PostgresSourceSettings as Section
from lumos.errors import MisuseError
from lumos.sources import SourceNotUsable
from lumos.sources.postgres import PostgresSource, queries
from lumos.sources.postgres.connection import PostgresConnector

HUSH = "hush-4711"


def refusal(**facts: Any) -> str:
    with pytest.raises(SourceNotUsable) as refused:
        PostgresSource(Section(**facts)).check()
    assert HUSH not in str(refused.value)
    assert refused.value.__suppress_context__
    return str(refused.value)


def parts(shop: PostgresDatabase, **facts: object) -> dict[str, Any]:
    """The keys of a section, one by one instead of as a URL."""
    port = int(_port(shop))
    given = {"host": "127.0.0.1", "port": port, "database": shop.name, "user": "lumos"}
    return {**given, **facts}


@pytest.fixture
def picky(database: PostgresDatabase) -> Iterator[PostgresDatabase]:
    """A server that asks for passwords, but of its superuser."""
    file = Path(database.ask("SHOW hba_file"))
    before = file.read_text()
    trusted = "host all lumos 127.0.0.1/32 trust\n"
    file.write_text(f"{trusted}host all all 127.0.0.1/32 scram-sha-256\n")
    database.run("SELECT pg_reload_conf()")
    yield database
    file.write_text(before)
    database.run("SELECT pg_reload_conf()")


def test_it_may_be_described_by_parts_or_by_a_url(database: PostgresDatabase) -> None:
    database.run("CREATE TABLE t (id int)")
    by_parts = PostgresSource(Section(**parts(database)))
    by_url = database.source()
    assert by_parts.check() == by_url.check()
    assert by_parts.address == by_url.address
    assert by_url.address.startswith("postgresql://127.0.0.1:")
    assert by_url.scope == database.name


@pytest.mark.parametrize("scheme", ["postgres://", "postgresql+psycopg://"])
def test_addresses_of_other_tools_are_taken(database: PostgresDatabase, scheme: str) -> None:
    url = database.url.replace("postgresql://", scheme)
    assert database.source(connection_string=ConnectionString(url)).scope == database.name


def test_keys_complete_a_connection_string(picky: PostgresDatabase) -> None:
    with picky.role(password=HUSH) as role:
        url = ConnectionString(picky.url.replace("lumos@", "").rpartition("/")[0])
        source = picky.source(
            connection_string=url, user=role, password=Secret(HUSH), database=picky.name
        )
        assert source.check().startswith(f"postgresql://127.0.0.1:{_port(picky)}/{picky.name}")


def _port(database: PostgresDatabase) -> str:
    return database.url.rpartition(":")[2].partition("/")[0]


def test_without_a_database_in_it_the_server_says_which_one(postgres: str) -> None:
    url = f"{postgres.rpartition('/')[0]}/?options=-c%20search_path%3Dpublic"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE DATABASE lumos")
    source = PostgresSource(Section(connection_string=ConnectionString(url)))
    assert source.scope == "lumos"


def test_a_wrong_password_is_told_without_showing_it(picky: PostgresDatabase) -> None:
    with picky.role(password="right") as role:
        told = refusal(**parts(picky, user=role, password=Secret(HUSH)))
        assert f"rejected the login of {role}: password authentication failed" in told
        assert refusal(connection_string=ConnectionString(picky.address(role, HUSH))) == told
        assert "no password supplied" in refusal(**parts(picky, user=role))


def test_an_unknown_user_is_told(database: PostgresDatabase) -> None:
    assert 'rejected the login of nobody: role "nobody" does not exist' in refusal(
        **parts(database, user="nobody", password=Secret(HUSH))
    )


def test_an_unknown_database_is_told(database: PostgresDatabase) -> None:
    told = refusal(**parts(database, database="shp", password=Secret(HUSH)))
    assert told.startswith("There is no database 'shp' at 127.0.0.1:")


def test_a_database_that_may_not_be_connected_to_is_told(database: PostgresDatabase) -> None:
    database.run(f"REVOKE CONNECT ON DATABASE {database.name} FROM PUBLIC")
    with database.role() as role:
        told = refusal(**parts(database, user=role, password=Secret(HUSH)))
    assert told.startswith(f"{role} has no permission to connect to {database.name} at 127.0.0.1:")


def test_a_server_that_does_not_run_is_told() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told = refusal(host="127.0.0.1", port=port, user="u", database="d", password=Secret(HUSH))
    assert told.startswith(f"Cannot connect to PostgreSQL at 127.0.0.1:{port}: ")


def test_something_else_that_answers_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        answer = threading.Thread(target=_answer_like_a_web_server, args=(server,))
        answer.start()
        told = refusal(host="127.0.0.1", port=port, user="u", database="d", password=Secret(HUSH))
        answer.join()
    assert told.startswith(f"The server at 127.0.0.1:{port} is not PostgreSQL: ")


def _answer_like_a_web_server(server: socket.socket) -> None:
    client, _ = server.accept()
    with client:
        client.recv(1024)
        client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_a_host_that_does_not_exist_is_told() -> None:
    told = refusal(host="db.invalid", user="u", database="d", password=Secret(HUSH))
    assert told.startswith("Unknown host 'db.invalid': ")


def test_encryption_is_asked_for_where_it_is_set(database: PostgresDatabase) -> None:
    told = refusal(**parts(database, sslmode="require", password=Secret(HUSH)))
    assert told.startswith("No encrypted connection to 127.0.0.1:")
    assert "does not support SSL" in told


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://u:%zz{HUSH}@127.0.0.1/d",
        f"postgresql://u:{HUSH}/x@127.0.0.1:1/d",
        f"postgresql://u:x@{HUSH}@127.0.0.1:1/d",
        f"postgresql://u:x#{HUSH}@127.0.0.1:1/d",
        f"host=127.0.0.1 password={HUSH} {HUSH}",
        f"postgresql://127.0.0.1:1/d?password={HUSH}&connect_timeout={HUSH}",
        f"postgresql://127.0.0.1:1/d?pasword={HUSH}",
    ],
)
def test_no_broken_connection_string_shows_its_password(url: str) -> None:
    told = refusal(connection_string=ConnectionString(url))
    assert "percent-encoded" in told or "connection option" in told or "***" in told


def test_a_user_who_may_only_connect_sees_everything_but_rows(database: PostgresDatabase) -> None:
    database.run(
        "CREATE SCHEMA closed",
        "REVOKE ALL ON SCHEMA closed FROM PUBLIC",
        "CREATE TABLE closed.secrets (id int PRIMARY KEY DEFAULT 1, what text)",
        "COMMENT ON TABLE closed.secrets IS 'Not for everybody'",
        "CREATE VIEW closed.some AS SELECT id FROM closed.secrets",
        "INSERT INTO closed.secrets VALUES (1, 'x')",
        "ANALYZE",
        f"REVOKE ALL ON DATABASE {database.name} FROM PUBLIC",
    )
    with database.role(f"GRANT CONNECT ON DATABASE {database.name} TO {{role}}") as role:
        url = ConnectionString(database.address(role))
        with psycopg.connect(url.reveal()) as connection, pytest.raises(psycopg.Error):
            connection.execute("SELECT * FROM closed.secrets")
        assert database.look(connection_string=url) == database.look()


def test_of_a_closed_catalog_the_documented_tables_are_enough(database: PostgresDatabase) -> None:
    text = (Path(__file__).parents[2] / "docs" / "POSTGRES.md").read_text(encoding="utf-8")
    rights = text.partition("Where the catalog was closed")[2].partition("`EXECUTE`")[0]
    tables = re.findall(r"`(pg_\w+)`", rights)
    database.run(
        "CREATE EXTENSION postgres_fdw",
        "CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw",
        "CREATE TYPE colour AS ENUM ('red')",
        "CREATE FOREIGN TABLE elsewhere (id int) SERVER far",
        "CREATE TABLE t (id int PRIMARY KEY DEFAULT 1, c colour CHECK (c <> 'red'), s text[])",
        "CREATE TABLE p (d date) PARTITION BY RANGE (d)",
        "CREATE TABLE p1 PARTITION OF p DEFAULT",
        "CREATE VIEW v AS SELECT id FROM t",
        "REVOKE SELECT ON ALL TABLES IN SCHEMA pg_catalog FROM PUBLIC",
        "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC",
    )
    grants = [f"GRANT SELECT ON pg_catalog.{table} TO {{role}}" for table in tables]
    grants.append("GRANT EXECUTE ON FUNCTION pg_control_system() TO {role}")
    with database.role(*grants) as role:
        url = ConnectionString(database.address(role))
        assert database.look(connection_string=url) == database.look()


def test_a_catalog_that_is_closed_is_told(database: PostgresDatabase) -> None:
    database.run("REVOKE SELECT ON pg_catalog.pg_attrdef FROM PUBLIC")
    with database.role() as role:
        source = database.source(connection_string=ConnectionString(database.address(role)))
        with pytest.raises(SourceNotUsable, match="permission denied for table pg_attrdef"):
            source.read(lambda _: None)


def test_without_the_right_to_ask_for_the_cluster_reading_goes_on(
    database: PostgresDatabase,
) -> None:
    database.run(
        "CREATE TABLE t (id int)", "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC"
    )
    with database.role() as role:
        found = database.found(connection_string=ConnectionString(database.address(role)))
    identity = found["public.t"].location.identity
    assert identity is not None
    assert identity.startswith("/")


def test_the_server_sees_who_reads_and_that_it_cannot_write(database: PostgresDatabase) -> None:
    with PostgresConnector(Section(**parts(database))).connect() as connection:
        name = connection.execute("SHOW application_name").fetchone()
        assert name == ("lumos",)
        assert connection.execute("SHOW transaction_isolation").fetchone() == ("repeatable read",)
        assert connection.execute("SHOW transaction_read_only").fetchone() == ("on",)


def test_a_name_of_ones_own_may_be_given(database: PostgresDatabase) -> None:
    section = Section(connection_string=ConnectionString(f"{database.url}?application_name=me"))
    with PostgresConnector(section).connect() as connection:
        assert connection.execute("SHOW application_name").fetchone() == ("me",)


def test_reading_ends_at_the_time_that_is_set(
    database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "SCHEMAS", "SELECT pg_sleep(30)::text")
    with pytest.raises(SourceNotUsable, match=r"took longer than 1 seconds\. Raise 'statement"):
        database.look(statement_timeout=1)


def test_a_connection_that_breaks_is_told(
    database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "SCHEMAS", "SELECT pg_terminate_backend(pg_backend_pid())::text")
    with pytest.raises(SourceNotUsable, match="Run again; nothing was recorded"):
        database.look()


def test_views_on_a_locked_table_are_reported_and_all_else_is_read(
    database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumos.sources.postgres.source._LOCK_TIMEOUT", "100ms")
    database.run(
        "CREATE TABLE a (id int)",
        "CREATE TABLE b (id int)",
        "CREATE VIEW of_a AS SELECT id FROM a",
        "CREATE VIEW of_b AS SELECT id FROM b",
    )
    with database.transaction("ALTER TABLE a ADD more int"):
        found = database.look()
    assert [each.path.rpartition("/")[2] for each in found.datasets] == ["a", "b", "of_b"]
    (problem,) = found.problems
    assert (problem.path, problem.code) == (f"{database.name}/public/of_a", "locked")
    # What is not committed is not there.
    assert [field.name for field in found.datasets[0].schema.fields] == ["id"]


def test_reading_begins_anew_where_tables_vanish_meanwhile(
    database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.run("CREATE TABLE t (id int)")
    asked = queries.SCHEMAS
    broken = iter(["SELECT 1/0 FROM no_such_table", asked])
    monkeypatch.setattr(
        "lumos.sources.postgres.source.queries", _Queries(SCHEMAS=lambda: next(broken))
    )
    assert list(database.found()) == ["public.t"]


class _Queries:
    """The questions, one of them asked otherwise each time."""

    def __init__(self, **replaced: Any) -> None:
        self._replaced = replaced

    def __getattr__(self, name: str) -> Any:
        return self._replaced[name]() if name in self._replaced else getattr(queries, name)


def test_a_view_that_vanishes_meanwhile_is_left_to_the_next_scan(
    database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.run("CREATE TABLE t (id int)", "CREATE VIEW v AS SELECT id FROM t")
    monkeypatch.setattr(queries, "VIEWS", queries.VIEWS.replace("wanted.oid)\n", "1::oid)\n"))
    found = database.look()
    assert [each.name for each in found.datasets] == ["public.t"]
    assert [(each.path, each.code) for each in found.problems] == [
        (f"{database.name}/public/v", "changing")
    ]


@pytest.mark.slow
def test_reading_beside_somebody_who_makes_and_drops_tables(database: PostgresDatabase) -> None:
    database.run(
        *(f"CREATE TABLE fixed_{number} (id int)" for number in range(200)),
        *(f"CREATE VIEW v_{number} AS SELECT id FROM fixed_{number}" for number in range(50)),
    )
    over = threading.Event()

    def stir() -> None:
        with psycopg.connect(database.url, autocommit=True) as connection:
            while not over.is_set():
                connection.execute("CREATE TABLE fleeting (id int DEFAULT 7, CHECK (id > 0))")
                connection.execute("CREATE VIEW of_fleeting AS SELECT id FROM fleeting")
                connection.execute("DROP TABLE fleeting CASCADE")

    stirrer = threading.Thread(target=stir)
    stirrer.start()
    try:
        end = time.monotonic() + 5
        while time.monotonic() < end:
            names = [each.path.rpartition("/")[2] for each in database.look().datasets]
            assert len([name for name in names if "fleeting" not in name]) == 250
    finally:
        over.set()
        stirrer.join()


def test_names_without_an_encoding_are_told(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE DATABASE raw TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'")
    raw = PostgresDatabase(f"{postgres.rpartition('/')[0]}/raw")
    with psycopg.connect(raw.url, autocommit=True, client_encoding="SQL_ASCII") as connection:
        connection.execute(b'CREATE TABLE "gr\xf6\xdfe" (id int)')
    with pytest.raises(SourceNotUsable, match="names that are not UTF-8"):
        raw.look()


def test_the_section_alone_touches_nothing() -> None:
    source = PostgresSource(Section(host="db.invalid", database="shop", instance="eu"))
    assert (source.identity, source.scope) == ("postgres@eu", "shop")
    assert source.address == "postgresql://db.invalid/shop"


@pytest.mark.parametrize(
    ("facts", "address"),
    [
        ({"host": "db", "database": "a b"}, "postgresql://db/a%20b"),
        ({"host": "db", "port": 6432, "database": "d"}, "postgresql://db:6432/d"),
        ({"host": "/run/pg", "database": "d"}, "postgresql://%2Frun%2Fpg/d"),
        ({"host": "::1", "database": "d"}, "postgresql://[::1]/d"),
        (
            {"connection_string": ConnectionString(f"postgresql://u:{HUSH}@a:1,b:2/d")},
            "postgresql://a:1/d",
        ),
    ],
)
def test_the_address_shows_no_user(facts: dict[str, Any], address: str) -> None:
    assert PostgresSource(Section(**facts)).address == address


NO_HOSTS = ["...", "nope..host", f"{'a' * 70}.example.com"]


@pytest.mark.parametrize("host", NO_HOSTS)
def test_a_host_that_no_host_can_be_is_refused_with_the_configuration(host: str) -> None:
    for facts in (
        {"host": host},
        {"connection_string": ConnectionString(f"postgresql://u:{HUSH}@{host}/d")},
    ):
        with pytest.raises(MisuseError, match="cannot be the host of a postgres source") as refused:
            Section(**facts)
        assert HUSH not in str(refused.value)


@pytest.mark.parametrize("host", NO_HOSTS)
def test_a_host_that_only_libpq_sees_is_told_in_one_sentence(host: str) -> None:
    dsn = ConnectionString(f"host={host} dbname=d password={HUSH}")
    assert refusal(connection_string=dsn).startswith(f"Unknown host '{host}': this is not")


def test_where_no_database_is_named_the_name_that_was_taken_is_told(postgres: str) -> None:
    with PostgresDatabase(postgres).role(password="p") as role:
        address = PostgresDatabase(postgres).address(role, "p").rpartition("/")[0]
        told = refusal(connection_string=ConnectionString(address))
    assert f"No database was set, and there is none named after the user: '{role}' at " in told
