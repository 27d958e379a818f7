"""Contents of lineage reports besides edges and jobs: SQL texts, unparsed statements, owners."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Select, Table, delete, exists, select

from lumos.model.json_codec import from_json, to_json
from lumos.model.lineage import Script, UnparsedStatement
from lumos.store import tables
from lumos.store.lineage.edges import EDGE, REPORTER, current_urns, node_ids
from lumos.store.statements import among

# Longer scripts are usually generated, and would slow down every read.
MAX_SCRIPT_BYTES: Final = 1024**2


def replace_scripts(
    connection: Connection, scripts: Mapping[int, Sequence[Script]], nodes: Mapping[str, int]
) -> None:
    """Replace the SQL texts of reporters; `nodes` has the ids of their datasets."""
    # The body is stored without the dataset, which may be renamed.
    rows = (
        (
            reporter,
            None if script.dataset is None else nodes[script.dataset],
            to_json(msgspec.structs.replace(script, dataset=None)),
        )
        for reporter, some in scripts.items()
        for script in some
        if len(script.sql.encode()) <= MAX_SCRIPT_BYTES
    )
    _replace_rows(connection, tables.lineage_script, ("dataset", "body"), scripts, rows)


def replace_unparsed(
    connection: Connection, statements: Mapping[int, Sequence[UnparsedStatement]]
) -> None:
    """Replace the unparsed statements of reporters."""
    rows = ((reporter, to_json(each)) for reporter, some in statements.items() for each in some)
    _replace_rows(connection, tables.lineage_unparsed, ("body",), statements, rows)


def _replace_rows(
    connection: Connection,
    table: Table,
    columns: tuple[str, ...],
    reporters: Collection[int],
    rows: Iterable[tuple[Any, ...]],
) -> None:
    """Replace the rows of reporters: insert missing rows, and delete all others.

    A row has the reporter and the columns.
    """
    all_columns = ("reporter", *columns)
    statement = select(table.c.id, *(table.c[name] for name in all_columns))
    stored = connection.execute(statement.where(among(connection, table.c.reporter, reporters)))
    present = {tuple(values): id for id, *values in stored}
    wanted = dict.fromkeys(rows)
    deleted = [id for values, id in present.items() if values not in wanted]
    if deleted:
        connection.execute(delete(table).where(among(connection, table.c.id, deleted)))
    new = [
        dict(zip(all_columns, values, strict=True)) for values in wanted if values not in present
    ]
    if new:
        connection.execute(table.insert(), new)


def delete_contents(connection: Connection, reporters: Collection[int]) -> None:
    """Delete the SQL texts, unparsed statements and owners of the given reporters."""
    for table in (tables.lineage_script, tables.lineage_owner, tables.lineage_unparsed):
        connection.execute(delete(table).where(among(connection, table.c.reporter, reporters)))


def scripts_of(
    connection: Connection, urns: Collection[str]
) -> dict[str, tuple[tuple[str, Script], ...]]:
    """The SQL texts that write each dataset with their reporters, with current URNs."""
    current = current_urns(connection, urns)
    urn_of = {id: urn for urn, id in node_ids(connection, set(current.values())).items()}
    scripts_by_node = _scripts_by_node(connection, urn_of)
    texts = _load_scripts(
        connection, {id for ids in scripts_by_node.values() for id in ids}, urn_of
    )
    by_urn = {
        urn_of[node]: tuple(sorted((texts[id] for id in ids), key=_order))
        for node, ids in scripts_by_node.items()
    }
    return {urn: by_urn.get(current_urn, ()) for urn, current_urn in current.items()}


def without_scripts(connection: Connection, prefix: str) -> set[str]:
    """Reporters with a prefix that have edges but no SQL texts."""
    statement = select(REPORTER.name).where(
        REPORTER.name.startswith(prefix, autoescape=True),
        exists().where(EDGE.reporter == REPORTER.id),
        ~exists().where(_SCRIPT.reporter == REPORTER.id),
    )
    return set(connection.scalars(statement))


def _scripts_by_node(connection: Connection, nodes: Collection[int]) -> dict[int, set[int]]:
    """The ids of the SQL texts that write each node.

    A text without a dataset writes all datasets that its reporter has edges to.
    """
    by_dataset = select(_SCRIPT.dataset, _SCRIPT.id).where(
        among(connection, _SCRIPT.dataset, nodes)
    )
    by_reporter = (
        select(EDGE.downstream, _SCRIPT.id)
        .distinct()
        .join_from(tables.lineage_edge, tables.lineage_script, _SCRIPT.reporter == EDGE.reporter)
        .where(_SCRIPT.dataset.is_(None), among(connection, EDGE.downstream, nodes))
    )
    scripts: dict[int, set[int]] = {}
    for statement in (by_dataset, by_reporter):
        for node, id in connection.execute(statement):
            scripts.setdefault(node, set()).add(id)
    return scripts


def _load_scripts(
    connection: Connection, ids: Collection[int], urn_of: Mapping[int, str]
) -> dict[int, tuple[str, Script]]:
    statement = (
        select(_SCRIPT.id, _SCRIPT.dataset, _SCRIPT.body, REPORTER.name)
        .join_from(tables.lineage_script, tables.lineage_reporter)
        .where(among(connection, _SCRIPT.id, ids))
    )
    texts = {
        row.id: (row.name, _with_dataset(_DECODE(row.body), urn_of.get(row.dataset)))
        for row in connection.execute(statement)
    }
    mentioned_urns = {urn for _, script in texts.values() for _, urn in script.tables}
    new_urns = {
        old: new for old, new in current_urns(connection, mentioned_urns).items() if old != new
    }
    if not new_urns:
        return texts
    return {
        id: (reporter, _rename_tables(script, new_urns)) for id, (reporter, script) in texts.items()
    }


def _with_dataset(script: Script, urn: str | None) -> Script:
    return script if urn is None else msgspec.structs.replace(script, dataset=urn)


def _rename_tables(script: Script, new_urns: Mapping[str, str]) -> Script:
    renamed = tuple((parts, new_urns.get(urn, urn)) for parts, urn in script.tables)
    return msgspec.structs.replace(script, tables=renamed)


def _order(reported: tuple[str, Script]) -> tuple[str, str, str]:
    reporter, script = reported
    return reporter, script.file or "", script.sql


_SCRIPT: Final = tables.lineage_script.c
_DECODE: Final = msgspec.json.Decoder(Script).decode


def all_unparsed(connection: Connection) -> tuple[tuple[str, UnparsedStatement], ...]:
    """Every unparsed statement with its reporter, by file and line, with current URNs."""
    statement = select(REPORTER.name, _UNPARSED.body).join_from(
        tables.lineage_unparsed, tables.lineage_reporter
    )
    found = [
        (row.name, from_json(row.body, UnparsedStatement)) for row in connection.execute(statement)
    ]
    mentioned_urns = {urn for _, each in found for urn in (*each.reads, *each.writes)}
    current = current_urns(connection, mentioned_urns) if mentioned_urns else {}
    renamed = ((reporter, _rename_statement(each, current)) for reporter, each in found)
    return tuple(sorted(renamed, key=lambda pair: (pair[0], pair[1].file or "", pair[1].line)))


def _rename_statement(statement: UnparsedStatement, names: Mapping[str, str]) -> UnparsedStatement:
    reads, writes = (
        tuple(dict.fromkeys(names[urn] for urn in urns))
        for urns in (statement.reads, statement.writes)
    )
    return msgspec.structs.replace(statement, reads=reads, writes=writes)


_UNPARSED: Final = tables.lineage_unparsed.c


Owners = Mapping[str, tuple[str, ...]]


def replace_owners(connection: Connection, owners: Mapping[int, Owners]) -> None:
    """Replace the owners that reporters report, by URN."""
    bodies = {
        (reporter, urn): to_json(names)
        for reporter, some in owners.items()
        for urn, names in some.items()
        if names
    }
    statement = select(_OWNER.reporter, _OWNER.urn, _OWNER.body).where(
        among(connection, _OWNER.reporter, owners)
    )
    present = {(row.reporter, row.urn): row.body for row in connection.execute(statement)}
    deleted = [key for key, body in present.items() if bodies.get(key) != body]
    for reporter, group in groupby(sorted(deleted), key=itemgetter(0)):
        is_deleted = among(connection, _OWNER.urn, [urn for _, urn in group])
        statement_of_reporter = delete(tables.lineage_owner).where(_OWNER.reporter == reporter)
        connection.execute(statement_of_reporter.where(is_deleted))
    new = [
        {"reporter": reporter, "urn": urn, "body": body}
        for (reporter, urn), body in bodies.items()
        if present.get((reporter, urn)) != body
    ]
    if new:
        connection.execute(tables.lineage_owner.insert(), new)


def owners_of(
    connection: Connection, urns: Collection[str] | None = None
) -> dict[str, tuple[str, ...]]:
    """The owners of the given datasets, or of all, by any reporter; others are omitted."""
    statement = (
        select(_OWNER.urn, _OWNER.body)
        .join_from(tables.lineage_owner, tables.lineage_reporter)
        .order_by(_OWNER.urn, REPORTER.name)
    )
    if urns is not None:
        statement = statement.where(among(connection, _OWNER.urn, urns))
    return _owners_by_urn(connection, statement)


def owners_by(connection: Connection, reporter: str) -> dict[str, tuple[str, ...]]:
    """The owners by one reporter, by URN."""
    statement = (
        select(_OWNER.urn, _OWNER.body)
        .join_from(tables.lineage_owner, tables.lineage_reporter)
        .where(REPORTER.name == reporter)
    )
    return _owners_by_urn(connection, statement)


def _owners_by_urn(connection: Connection, statement: Select[Any]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for row in connection.execute(statement):
        names = (*found.get(row.urn, ()), *from_json(row.body, tuple[str, ...]))
        found[row.urn] = tuple(dict.fromkeys(names))
    return found


_OWNER: Final = tables.lineage_owner.c
