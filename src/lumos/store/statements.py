"""Idempotent writes and conditions on many values, for SQLite and PostgreSQL."""

from collections.abc import Collection, Iterable, Iterator
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Connection,
    Executable,
    String,
    Table,
    Text,
    bindparam,
    func,
    or_,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite

from lumos.model.json_codec import to_json

# SQLite and PostgreSQL both limit the number of parameters of a statement.
_MAX_PARAMETERS: Final = 500


def batches(keys: Collection[str]) -> Iterator[list[str]]:
    """The sorted keys, in lists that are short enough for one statement."""
    ordered = sorted(keys)
    for start in range(0, len(ordered), _MAX_PARAMETERS):
        yield ordered[start : start + _MAX_PARAMETERS]


@cache
def replace(dialect: str, table: Table, *keep: str) -> Executable:
    """Insert a row, or replace all its columns except the key and those in `keep`."""
    insert = _insert(dialect, table)
    keys = [column.name for column in table.primary_key]
    names = [column.name for column in table.columns if column.name not in (*keys, *keep)]
    return insert.on_conflict_do_update(
        index_elements=keys, set_={name: insert.excluded[name] for name in names}
    )


@cache
def insert_missing(dialect: str, table: Table, **computed: ColumnElement[Any]) -> Executable:
    """Insert the rows whose keys are new, with the given columns computed by the database."""
    return _insert(dialect, table).values(computed).on_conflict_do_nothing()


@cache
def insert_if_new(dialect: str, table: Table, key: str | None = None) -> Executable:
    """Insert rows if their keys are new; returns the keys of inserted rows."""
    column = next(iter(table.primary_key)) if key is None else table.c[key]
    return _insert(dialect, table).on_conflict_do_nothing().returning(column)


def _insert(dialect: str, table: Table) -> sqlite.Insert | postgresql.Insert:
    return postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)


def by_code_point(connection: Connection, column: ColumnElement[str]) -> ColumnElement[str]:
    """The column, to be sorted by code point as in Python, whatever the locale of the server."""
    return column.collate("C") if connection.dialect.name == "postgresql" else column


def among(
    connection: Connection, column: ColumnElement[Any], values: Iterable[int] | Iterable[str]
) -> ColumnElement[bool]:
    """A condition: the column has one of the values, which are passed as a single parameter."""
    all_values = list(values)
    if connection.dialect.name == "postgresql":
        kind = ARRAY(Text if isinstance(column.type, String) else BigInteger)
        return column == func.any(bindparam(None, all_values, type_=kind))
    # SQLite reads text from JSON only up to the first NUL.
    with_nul = [value for value in all_values if isinstance(value, str) and "\0" in value]
    without_nul = (
        [value for value in all_values if value not in with_nul] if with_nul else all_values
    )
    value_rows = func.json_each(to_json(without_nul).decode()).table_valued("value")
    condition = column.in_(select(value_rows.c.value))
    return or_(condition, column.in_(with_nul)) if with_nul else condition
