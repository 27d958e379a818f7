"""Events of PostgreSQL: an event trigger notifies listeners of each change of a schema."""

import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Any, ClassVar, Final

import psycopg

from lumos.config.settings import StorageEventType
from lumos.config.sources import PostgresSourceSettings
from lumos.sources.events.interface import (
    EventSource,
    EventSourceFailed,
    ObjectEvent,
    ReceivedMessage,
)
from lumos.sources.events.setup_report import EventSetupReport, SetupStep, StepStatus
from lumos.sources.interface import SourceNotUsable
from lumos.sources.postgres.connection import PostgresConnector

# The trigger, whether it is that of the setup, and whether it fires in sessions of users.
_FIND_TRIGGER: Final = """
    SELECT
        namespace.nspname || '.' || called.proname,
        namespace.nspname = 'lumos' AND called.proname = 'notify_ddl',
        evtenabled IN ('O', 'A')
    FROM pg_catalog.pg_event_trigger
    JOIN pg_catalog.pg_proc AS called ON called.oid = evtfoid
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = called.pronamespace
    WHERE evtname = 'lumos_ddl'
"""
_MARK: Final = "Created by lumos watch setup"
# The schema, and whether the setup created it and nobody else has put anything there.
_FIND_SCHEMA: Final = f"""
    SELECT coalesce(obj_description(oid, 'pg_namespace') = '{_MARK}', false) AND NOT EXISTS (
        SELECT 1 FROM pg_catalog.pg_depend
        WHERE refclassid = 'pg_catalog.pg_namespace'::regclass AND refobjid = namespace.oid
        AND objid IS DISTINCT FROM to_regprocedure('lumos.notify_ddl()')
    )
    FROM pg_catalog.pg_namespace AS namespace WHERE nspname = 'lumos'
"""
_LISTEN: Final = "LISTEN lumos_ddl"
_CREATE_SCHEMA: Final = ("CREATE SCHEMA lumos", f"COMMENT ON SCHEMA lumos IS '{_MARK}'")
# Temporary tables are ignored. Commands that drop objects report no objects here.
_CREATE: Final = (
    """
    CREATE OR REPLACE FUNCTION lumos.notify_ddl() RETURNS event_trigger
    LANGUAGE plpgsql SET search_path = pg_catalog AS $$
    BEGIN
        IF tg_tag LIKE 'DROP%' OR EXISTS (
            SELECT 1 FROM pg_event_trigger_ddl_commands()
            WHERE schema_name IS NULL OR schema_name NOT LIKE 'pg\\_temp%'
        ) THEN
            PERFORM pg_notify('lumos_ddl', tg_tag);
        END IF;
    END $$
    """,
    "DROP EVENT TRIGGER IF EXISTS lumos_ddl",
    "CREATE EVENT TRIGGER lumos_ddl ON ddl_command_end EXECUTE FUNCTION lumos.notify_ddl()",
)
_DROP: Final = (
    "DROP EVENT TRIGGER IF EXISTS lumos_ddl",
    "DROP FUNCTION IF EXISTS lumos.notify_ddl()",
)


class PostgresNotifications(EventSource):
    """Notifications of one database while a connection is open; nothing is delivered later."""

    is_durable: ClassVar[bool] = False

    def __init__(self, settings: PostgresSourceSettings) -> None:
        self._connector = PostgresConnector(settings)
        self.name = self.root = _address(self._connector)
        self._resources = ExitStack()
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._has_failed = False
        self._number = 0

    def open(self) -> None:
        try:
            connection = self._resources.enter_context(self._connector.connect())
            # Notifications arrive between transactions only.
            connection.autocommit = True
            trigger = connection.execute(_FIND_TRIGGER).fetchone()
            if trigger is None or not all(trigger[1:]):
                raise EventSourceFailed(
                    f"{self.name} has no active event trigger. A superuser creates it with: "
                    f"lumos watch setup {self.name}"
                )
            connection.execute(_LISTEN)
        except (SourceNotUsable, psycopg.Error) as problem:
            self.close()
            raise EventSourceFailed(f"{self.name} cannot be listened to: {problem}") from None
        except EventSourceFailed:
            self.close()
            raise
        self._connection = connection

    def receive(self, wait: float) -> list[ReceivedMessage]:
        if self._connection is None:
            self.open()
        assert self._connection is not None
        try:
            tags = [each.payload for each in self._connection.notifies(timeout=wait, stop_after=1)]
        except psycopg.Error as problem:
            self._has_failed = True
            self.close()
            raise EventSourceFailed(f"{self.name} ended the connection: {problem}") from None
        if not tags and not self._has_failed:
            return []
        # Changes while there was no connection are not known, so report one for the database.
        self._has_failed = False
        self._number += 1
        event = ObjectEvent(f"{self.root}/", StorageEventType.CREATED, time.time())
        return [ReceivedMessage(str(self._number), events=(event,))]

    def acknowledge(self, receipts: Sequence[str]) -> None:
        """Nothing to do: the server delivers each notification once."""

    def close(self) -> None:
        self._connection = None
        # The connection may be broken already.
        with suppress(psycopg.Error):
            self._resources.close()


def setup_trigger(settings: PostgresSourceSettings, *, dry_run: bool) -> EventSetupReport:
    """Create the event trigger of a database, or replace it by the current version."""
    connector = PostgresConnector(settings)
    with connector.connect() as connection:
        trigger = connection.execute(_FIND_TRIGGER).fetchone()
        schema = connection.execute(_FIND_SCHEMA).fetchone()
        if trigger is not None and not trigger[1]:
            raise EventSourceFailed(
                f"{_address(connector)} already has an event trigger lumos_ddl, which calls "
                f"{trigger[0]} and was not created by Lumos. Rename it, or use 'watch_mode: "
                "polling'."
            )
        if not dry_run:
            _execute(connector, connection, [*([] if schema else _CREATE_SCHEMA), *_CREATE])
    return _report(connector, [("created" if trigger is None else "changed")], dry_run=dry_run)


def teardown_trigger(settings: PostgresSourceSettings, *, dry_run: bool) -> EventSetupReport:
    """Drop the event trigger of a database, and the schema if only the setup used it."""
    connector = PostgresConnector(settings)
    with connector.connect() as connection:
        trigger = connection.execute(_FIND_TRIGGER).fetchone()
        schema = connection.execute(_FIND_SCHEMA).fetchone()
        if trigger is None or not trigger[1]:
            return _report(connector, ["kept" if trigger else "missing"], dry_run=dry_run)
        is_own = schema is not None and schema[0]
        if not dry_run:
            statements = [*_DROP, *(["DROP SCHEMA lumos RESTRICT"] if is_own else [])]
            _execute(connector, connection, statements)
    return _report(connector, ["deleted", "deleted" if is_own else "kept"], dry_run=dry_run)


def _address(connector: PostgresConnector) -> str:
    return f"postgresql://{connector.host}/{connector.database or ''}"


def _execute(
    connector: PostgresConnector,
    connection: psycopg.Connection[tuple[Any, ...]],
    statements: Sequence[str],
) -> None:
    connection.rollback()
    connection.read_only = False
    try:
        for statement in statements:
            connection.execute(statement.encode())
        connection.commit()
    except psycopg.errors.InsufficientPrivilege:
        connection.rollback()
        raise EventSourceFailed(
            f"The user of {_address(connector)} may not create event triggers; only superusers "
            "may. Run this command as a superuser, or use 'watch_mode: polling'."
        ) from None


def _report(
    connector: PostgresConnector, statuses: Sequence[StepStatus], *, dry_run: bool
) -> EventSetupReport:
    """What was done with the trigger and, if it was removed, with the schema."""
    steps = [SetupStep(kind="event trigger", name="lumos_ddl", status=statuses[0])]
    steps += [SetupStep(kind="schema", name="lumos", status=each) for each in statuses[1:]]
    return EventSetupReport(address=_address(connector), steps=tuple(steps), dry_run=dry_run)
