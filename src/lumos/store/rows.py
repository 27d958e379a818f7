"""Ways of writing a row that may be repeated without harm, for both databases."""

from collections.abc import Collection, Iterator
from functools import cache
from typing import Final

from sqlalchemy import Executable, Table
from sqlalchemy.dialects import postgresql, sqlite

# SQLite and PostgreSQL both limit the number of parameters of a statement.
_MOST_AT_ONCE: Final = 500


def portions(keys: Collection[str]) -> Iterator[list[str]]:
    """Keys, sorted, in lists that are short enough for one statement."""
    wanted = sorted(keys)
    for start in range(0, len(wanted), _MOST_AT_ONCE):
        yield wanted[start : start + _MOST_AT_ONCE]


@cache
def replace(dialect: str, table: Table, *kept: str) -> Executable:
    """Inserts a row, or replaces all of it but its key and what is kept."""
    insert = _insert(dialect, table)
    keys = [column.name for column in table.primary_key]
    names = [column.name for column in table.columns if column.name not in (*keys, *kept)]
    return insert.on_conflict_do_update(
        index_elements=keys, set_={name: insert.excluded[name] for name in names}
    )


@cache
def add_if_new(dialect: str, table: Table) -> Executable:
    """Inserts rows, but for those that are there."""
    return _insert(dialect, table).on_conflict_do_nothing()


@cache
def insert_if_new(dialect: str, table: Table) -> Executable:
    insert = _insert(dialect, table)
    return insert.on_conflict_do_nothing().returning(next(iter(table.primary_key)))


def _insert(dialect: str, table: Table) -> sqlite.Insert | postgresql.Insert:
    return postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)
