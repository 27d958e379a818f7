"""Whom reporters name as owners, also of datasets that no scan has found."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from sqlalchemy import Connection, Select, delete, select

from lumos.model.json_codec import from_json, to_json
from lumos.store import tables
from lumos.store.lineage.rows import REPORTER, among

Owners = Mapping[str, tuple[str, ...]]


def replace_all(connection: Connection, reporter: int, owners: Owners) -> None:
    """Makes the owners that a reporter names, by URN, exactly these."""
    wanted = {urn: to_json(names) for urn, names in owners.items() if names}
    statement = select(_OWNER.urn, _OWNER.body).where(_OWNER.reporter == reporter)
    present = {row.urn: row.body for row in connection.execute(statement)}
    gone = [urn for urn, body in present.items() if wanted.get(urn) != body]
    if gone:
        chosen = (_OWNER.reporter == reporter) & among(connection, _OWNER.urn, gone)
        connection.execute(delete(tables.lineage_owner).where(chosen))
    new = [
        {"reporter": reporter, "urn": urn, "body": body}
        for urn, body in wanted.items()
        if present.get(urn) != body
    ]
    if new:
        connection.execute(tables.lineage_owner.insert(), new)


def forget(connection: Connection, reporters: Iterable[int]) -> None:
    """Takes back what some reporters said."""
    spoke = among(connection, _OWNER.reporter, reporters)
    connection.execute(delete(tables.lineage_owner).where(spoke))


def owners_of(connection: Connection, urns: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Whom anybody names as owners of some datasets, each name once; nothing where nobody does."""
    statement = (
        select(_OWNER.urn, _OWNER.body)
        .join_from(tables.lineage_owner, tables.lineage_reporter)
        .where(among(connection, _OWNER.urn, urns))
        .order_by(_OWNER.urn, REPORTER.name)
    )
    return _named(connection, statement)


def told_by(connection: Connection, reporter: str) -> dict[str, tuple[str, ...]]:
    """The owners that one reporter names, by URN."""
    statement = (
        select(_OWNER.urn, _OWNER.body)
        .join_from(tables.lineage_owner, tables.lineage_reporter)
        .where(REPORTER.name == reporter)
    )
    return _named(connection, statement)


def _named(connection: Connection, statement: Select[Any]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for row in connection.execute(statement):
        names = (*found.get(row.urn, ()), *from_json(row.body, tuple[str, ...]))
        found[row.urn] = tuple(dict.fromkeys(names))
    return found


_OWNER: Final = tables.lineage_owner.c
