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
    """The keys, sorted, in lists that are short enough for one statement."""
    ordered = sorted(keys)
    for start in range(0, len(ordered), _MAX_PARAMETERS):
        yield ordered[start : start + _MAX_PARAMETERS]


@cache
def replace(dialect: str, table: Table, *kept: str) -> Executable:
    """Insert a row, or replace all its columns except the key and those in `kept`."""
    insert = _insert(dialect, table)
    keys = [column.name for column in table.primary_key]
    names = [column.name for column in table.columns if column.name not in (*keys, *kept)]
    return insert.on_conflict_do_update(
        index_elements=keys, set_={name: insert.excluded[name] for name in names}
    )


@cache
def add_if_new(dialect: str, table: Table) -> Executable:
    """Insert the rows whose keys are new."""
    return _insert(dialect, table).on_conflict_do_nothing()


@cache
def insert_if_new(dialect: str, table: Table) -> Executable:
    """Insert a row if its key is new, and return its key then."""
    insert = _insert(dialect, table)
    return insert.on_conflict_do_nothing().returning(next(iter(table.primary_key)))


def _insert(dialect: str, table: Table) -> sqlite.Insert | postgresql.Insert:
    return postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)


def among(
    connection: Connection, column: ColumnElement[Any], values: Iterable[int] | Iterable[str]
) -> ColumnElement[bool]:
    """Whether the column has one of the values; any number of values is one parameter."""
    listed = list(values)
    if connection.dialect.name == "postgresql":
        kind = ARRAY(Text if isinstance(column.type, String) else BigInteger)
        return column == func.any(bindparam(None, listed, type_=kind))
    # SQLite reads text from JSON only up to the first NUL.
    with_nul = [value for value in listed if isinstance(value, str) and "\0" in value]
    plain = [value for value in listed if value not in with_nul] if with_nul else listed
    unpacked = func.json_each(to_json(plain).decode()).table_valued("value")
    condition = column.in_(select(unpacked.c.value))
    return or_(condition, column.in_(with_nul)) if with_nul else condition
