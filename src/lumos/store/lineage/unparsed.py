"""Statements that reporters have and nobody could parse, so that impact counts them as unknown."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from sqlalchemy import Connection, delete, select

from lumos.model.json_codec import from_json, to_json
from lumos.model.lineage import UnparsedStatement
from lumos.store import tables
from lumos.store.lineage.rows import REPORTER, among, present_names


def replace_all(
    connection: Connection, reporter: int, statements: Sequence[UnparsedStatement]
) -> None:
    """Makes the unparsed statements of a reporter exactly these."""
    wanted = dict.fromkeys(map(to_json, statements))
    statement = select(_UNPARSED.id, _UNPARSED.body).where(_UNPARSED.reporter == reporter)
    present = {row.body: row.id for row in connection.execute(statement)}
    gone = [id for body, id in present.items() if body not in wanted]
    if gone:
        chosen = among(connection, _UNPARSED.id, gone)
        connection.execute(delete(tables.lineage_unparsed).where(chosen))
    new = [{"reporter": reporter, "body": body} for body in wanted if body not in present]
    if new:
        connection.execute(tables.lineage_unparsed.insert(), new)


def forget(connection: Connection, reporters: Iterable[int]) -> None:
    """Removes the unparsed statements of some reporters."""
    spoke = among(connection, _UNPARSED.reporter, reporters)
    connection.execute(delete(tables.lineage_unparsed).where(spoke))


def all_unparsed(connection: Connection) -> tuple[tuple[str, UnparsedStatement], ...]:
    """Every unparsed statement with its reporter, by file and line, under present names."""
    statement = select(REPORTER.name, _UNPARSED.body).join_from(
        tables.lineage_unparsed, tables.lineage_reporter
    )
    found = [
        (row.name, from_json(row.body, UnparsedStatement)) for row in connection.execute(statement)
    ]
    named = {urn for _, each in found for urn in (*each.reads, *each.writes)}
    present = present_names(connection, named) if named else {}
    renamed = ((reporter, _renamed(each, present)) for reporter, each in found)
    return tuple(sorted(renamed, key=lambda pair: (pair[0], pair[1].file or "", pair[1].line)))


def _renamed(statement: UnparsedStatement, names: Mapping[str, str]) -> UnparsedStatement:
    reads, writes = (
        tuple(dict.fromkeys(names[urn] for urn in urns))
        for urns in (statement.reads, statement.writes)
    )
    return msgspec.structs.replace(statement, reads=reads, writes=writes)


_UNPARSED: Final = tables.lineage_unparsed.c
