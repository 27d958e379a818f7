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

_FIND_TRIGGER: Final = (
    "SELECT 1 FROM pg_catalog.pg_event_trigger WHERE evtname = 'lumos_ddl' AND evtenabled <> 'D'"
)
_LISTEN: Final = "LISTEN lumos_ddl"
# Temporary tables are ignored. Commands that drop objects report no objects here.
_CREATE: Final = (
    "CREATE SCHEMA IF NOT EXISTS lumos",
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
    # Fails if somebody else has put anything there.
    "DROP SCHEMA IF EXISTS lumos RESTRICT",
)


class PostgresNotifications(EventSource):
    """Notifications of one database while a connection is open; nothing is delivered later."""

    is_durable: ClassVar[bool] = False

    def __init__(self, settings: PostgresSourceSettings) -> None:
        self._connector = PostgresConnector(settings)
        database = self._connector.database or ""
        self.name = self.root = f"postgresql://{self._connector.host}/{database}"
        self._resources = ExitStack()
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._has_failed = False
        self._number = 0

    def open(self) -> None:
        try:
            connection = self._resources.enter_context(self._connector.connect())
            # Notifications arrive between transactions only.
            connection.autocommit = True
            if connection.execute(_FIND_TRIGGER).fetchone() is None:
                raise EventSourceFailed(
                    f"{self.name} has no event trigger. A superuser creates it with: "
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
    return _change(settings, _CREATE, "created", dry_run=dry_run)


def teardown_trigger(settings: PostgresSourceSettings, *, dry_run: bool) -> EventSetupReport:
    """Drop the event trigger of a database."""
    return _change(settings, _DROP, "deleted", dry_run=dry_run)


def _change(
    settings: PostgresSourceSettings,
    statements: Sequence[str],
    status: StepStatus,
    *,
    dry_run: bool,
) -> EventSetupReport:
    connector = PostgresConnector(settings)
    address = f"postgresql://{connector.host}/{connector.database or ''}"
    with connector.connect() as connection:
        exists = connection.execute(_FIND_TRIGGER).fetchone() is not None
        connection.rollback()
        if exists:
            status = "changed" if status == "created" else status
        elif status == "deleted":
            status = "missing"
        if not dry_run and status != "missing":
            connection.read_only = False
            try:
                for statement in statements:
                    connection.execute(statement.encode())
                connection.commit()
            except psycopg.errors.InsufficientPrivilege:
                connection.rollback()
                raise EventSourceFailed(
                    f"The user of {address} may not create event triggers; only superusers may. "
                    "Run this command as a superuser, or use 'watch_mode: polling'."
                ) from None
    return EventSetupReport(
        address=address,
        steps=(SetupStep(kind="event trigger", name="lumos_ddl", status=status),),
        dry_run=dry_run,
    )
