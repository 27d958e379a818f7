"""Changed schemas of a real PostgreSQL, as notifications of its event trigger."""

import logging
import threading
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from lumos import Lumos
from lumos.config.secret import ConnectionString
from lumos.config.sources import PostgresSourceSettings
from lumos.sources.events import EventSourceFailed
from lumos.sources.events.factory import setup_events, teardown_events
from lumos.sources.events.postgres import PostgresNotifications
from lumos.sources.events.setup_report import EventSetupReport


@pytest.fixture
def section(empty_postgres: str) -> PostgresSourceSettings:
    return PostgresSourceSettings(connection_string=ConnectionString(empty_postgres))


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def test_each_changed_schema_notifies_and_temporary_tables_do_not(
    empty_postgres: str, section: PostgresSourceSettings
) -> None:
    events = PostgresNotifications(section)
    with pytest.raises(EventSourceFailed, match="lumos watch setup postgresql://"):
        events.open()
    (step,) = setup_events(empty_postgres, [], dry_run=True).steps
    assert (step.kind, step.status) == ("event trigger", "created")
    setup_events(empty_postgres, [], dry_run=False)
    assert setup_events(empty_postgres, [], dry_run=False).steps[0].status == "changed"
    events.open()
    assert events.receive(0.1) == []
    execute(empty_postgres, "CREATE TEMP TABLE passing (id int)", "SELECT 1")
    assert events.receive(0.3) == []
    for statement in ("CREATE TABLE orders (id int)", "ALTER TABLE orders ADD total int",
                      "DROP TABLE orders"):  # fmt: skip
        execute(empty_postgres, statement)
        (message,) = events.receive(10)
        assert message.events[0].path == f"{events.root}/"
    events.close()
    assert teardown_events(empty_postgres, [], dry_run=False).steps[0].status == "deleted"
    assert teardown_events(empty_postgres, [], dry_run=False).steps[0].status == "missing"


def test_a_lost_connection_is_opened_again_and_the_database_is_scanned(
    empty_postgres: str, section: PostgresSourceSettings
) -> None:
    setup_events(empty_postgres, [], dry_run=False)
    events = PostgresNotifications(section)
    events.open()
    execute(
        empty_postgres,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid()",
    )
    with pytest.raises(EventSourceFailed, match="ended the connection"):
        events.receive(5)
    assert len(events.receive(0.1)) == 1
    events.close()


def test_only_superusers_may_create_the_trigger_and_it_hinders_nobody(empty_postgres: str) -> None:
    execute(empty_postgres, "DROP ROLE IF EXISTS plain", "CREATE ROLE plain LOGIN PASSWORD 'p'",
            "GRANT CREATE ON DATABASE " + empty_postgres.rpartition("/")[2] + " TO plain")  # fmt: skip
    parsed = psycopg.conninfo.conninfo_to_dict(empty_postgres)
    url = f"postgresql://plain:p@{parsed['host']}:{parsed['port']}/{parsed['dbname']}"
    with pytest.raises(EventSourceFailed, match="only superusers may"):
        setup_events(url, [], dry_run=False)
    setup_events(empty_postgres, [], dry_run=False)
    events = PostgresNotifications(PostgresSourceSettings(connection_string=ConnectionString(url)))
    events.open()
    assert events._connection is not None
    assert events._connection.info.get_parameters()["keepalives_idle"] == "60"
    # The trigger concerns everybody who changes a schema, and must not get in their way.
    execute(url, "CREATE SCHEMA theirs", "CREATE TABLE theirs.notes (id int)")
    assert len(events.receive(10)) == 1
    events.close()


def steps(report: EventSetupReport) -> list[tuple[str, str]]:
    return [(step.kind, step.status) for step in report.steps]


def test_what_belongs_to_others_stays(empty_postgres: str) -> None:
    def found(query: str) -> list[Any]:
        with psycopg.connect(empty_postgres) as connection:
            return connection.execute(query.encode()).fetchall()

    triggers = "SELECT evtname, evtfoid::regproc::text FROM pg_event_trigger"
    schemas = "SELECT nspname FROM pg_namespace WHERE nspname = 'lumos'"
    # A schema of somebody else.
    execute(empty_postgres, "CREATE SCHEMA lumos", "GRANT USAGE ON SCHEMA lumos TO PUBLIC")
    setup_events(empty_postgres, [], dry_run=False)
    removed = [("event trigger", "deleted"), ("schema", "kept")]
    assert steps(teardown_events(empty_postgres, [], dry_run=False)) == removed
    assert (found(triggers), found(schemas)) == ([], [("lumos",)])
    # A table in the schema of the setup, which another table needs.
    execute(empty_postgres, "DROP SCHEMA lumos")
    setup_events(empty_postgres, [], dry_run=False)
    execute(empty_postgres, "CREATE TABLE lumos.theirs (id int)")
    assert steps(teardown_events(empty_postgres, [], dry_run=True)) == removed
    assert steps(teardown_events(empty_postgres, [], dry_run=False)) == removed
    assert (found(triggers), found(schemas)) == ([], [("lumos",)])
    # A disabled trigger is removed as well, and the schema with it.
    execute(empty_postgres, "DROP TABLE lumos.theirs")
    setup_events(empty_postgres, [], dry_run=False)
    execute(empty_postgres, "ALTER EVENT TRIGGER lumos_ddl ENABLE REPLICA")
    with pytest.raises(EventSourceFailed, match="no active event trigger"):
        PostgresNotifications(
            PostgresSourceSettings(connection_string=ConnectionString(empty_postgres))
        ).open()
    removed = [("event trigger", "deleted"), ("schema", "deleted")]
    assert steps(teardown_events(empty_postgres, [], dry_run=False)) == removed
    assert (found(triggers), found(schemas)) == ([], [])
    # A trigger of somebody else.
    execute(
        empty_postgres,
        "CREATE FUNCTION public.f() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN END$$",
        "CREATE EVENT TRIGGER lumos_ddl ON sql_drop EXECUTE FUNCTION public.f()",
    )
    with pytest.raises(EventSourceFailed, match=r"lumos_ddl, which calls public\.f and was not"):
        setup_events(empty_postgres, [], dry_run=False)
    assert steps(teardown_events(empty_postgres, [], dry_run=False)) == [("event trigger", "kept")]
    assert found(triggers) == [("lumos_ddl", "f")]


def test_a_new_table_is_recorded_at_once(
    workplace: Path, empty_postgres: str, caplog: pytest.LogCaptureFixture
) -> None:
    setup_events(empty_postgres, [], dry_run=False)
    execute(empty_postgres, "CREATE TABLE users (id int)")
    source = {"type": "postgres", "connection_string": empty_postgres, "watch_mode": "events"}
    config = {"change_detection": {"sources": [source]}}
    (workplace / "lumos.yaml").write_text(yaml.safe_dump(config))
    lumos, stop, found = Lumos("lumos.yaml"), threading.Event(), list[str]()
    caplog.set_level(logging.WARNING)

    def on_event(event: Any) -> None:
        found.append(f"{event.urn.rpartition('/')[2]} {event.type}")

    thread = threading.Thread(target=lambda: lumos.watch(stop=stop, on_event=on_event))
    thread.start()
    try:
        _wait_for(lambda: found == ["users CREATED"])
        execute(empty_postgres, "CREATE TABLE orders (id int)")
        _wait_for(lambda: found[1:] == ["orders CREATED"])
        execute(empty_postgres, "ALTER TABLE orders ADD total int")
        _wait_for(lambda: found[2:] == ["orders SCHEMA_CHANGED"])
    finally:
        stop.set()
        thread.join()
    assert caplog.messages == []


def _wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 300
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert condition()
