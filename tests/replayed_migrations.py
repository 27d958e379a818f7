"""New stores without running the migrations each time."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, event, inspect

Migrate = Callable[[Connection], None]


class ReplayedMigrations:
    """Runs the migrations in the first empty database of a kind, and then what they executed."""

    def __init__(self, migrate: Migrate) -> None:
        self._migrate = migrate
        self._statements: dict[str, list[tuple[str, Any]]] = {}

    def __call__(self, connection: Connection) -> None:
        kind = connection.dialect.name
        if inspect(connection).get_table_names():
            self._migrate(connection)
        elif kind in self._statements:
            for statement, parameters in self._statements[kind]:
                connection.exec_driver_sql(statement, parameters)
        else:
            self._statements[kind] = self._recorded(connection)

    def _recorded(self, connection: Connection) -> list[tuple[str, Any]]:
        statements: list[tuple[str, Any]] = []

        def note(
            _connection: object, _cursor: object, statement: str, parameters: Any, *_: Any
        ) -> None:
            if not statement.lstrip().startswith(("SELECT", "PRAGMA")):
                statements.append((statement, parameters))

        event.listen(connection, "before_cursor_execute", note)
        try:
            self._migrate(connection)
        finally:
            event.remove(connection, "before_cursor_execute", note)
        return statements
