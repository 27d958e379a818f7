"""What happens in the database when a dataset gets another URN, or becomes part of another."""

from typing import Any, Final

from sqlalchemy import Connection, delete, select, update

from lumos.store import search, tables
from lumos.store.annotations import copy_annotations

# What a scan writes about a dataset is about its files; the rest was said of it by people.
_OF_FILES: Final = ("location", "statistics", "drift")


def move(connection: Connection, urn: str, row: dict[str, Any]) -> None:
    """Gives all that is known of a dataset to the one in `row`; its events stay as they are."""
    connection.execute(tables.dataset.insert().values(**row))
    for table in (tables.aspect, tables.schema_version, tables.schema_memory, tables.beside):
        connection.execute(update(table).where(table.c.urn == urn).values(urn=row["urn"]))
    alias = tables.alias.c
    connection.execute(
        update(tables.alias).where(alias.dataset_urn == urn).values(dataset_urn=row["urn"])
    )
    search.remove(connection, [urn])
    connection.execute(delete(tables.dataset).where(tables.dataset.c.urn == urn))


def hand_over(connection: Connection, urn: str, into: str) -> None:
    """Gives a dataset what was said of another, where nobody said anything of it."""
    aspect = tables.aspect.c
    own = select(aspect.name).where(aspect.urn == into)
    rows = connection.execute(
        select(tables.aspect).where(
            aspect.urn == urn, aspect.name.not_in(_OF_FILES), aspect.name.not_in(own)
        )
    ).all()
    for row in rows:
        connection.execute(tables.aspect.insert().values(**{**row._mapping, "urn": into}))
    copy_annotations(connection, urn, into)
