"""The texts of SQL that reporters took edges from, so that they can be reasoned about later."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec
from sqlalchemy import Connection, delete, exists, select

from lumos.model.json_codec import to_json
from lumos.model.lineage import Script
from lumos.store import tables
from lumos.store.lineage.rows import EDGE, REPORTER, among, node_ids, present_names

# What is longer was written by a machine, and would make every reading slow.
MOST_BYTES: Final = 1024**2


def replace_all(
    connection: Connection, reporter: int, scripts: Sequence[Script], nodes: Mapping[str, int]
) -> None:
    """Makes a reporter's texts exactly these; `nodes` has the numbers of their datasets."""
    wanted = dict.fromkeys(
        (None if script.dataset is None else nodes[script.dataset], _body(script))
        for script in scripts
        if len(script.sql.encode()) <= MOST_BYTES
    )
    statement = select(_SCRIPT.id, _SCRIPT.dataset, _SCRIPT.body).where(
        _SCRIPT.reporter == reporter
    )
    present = {(row.dataset, row.body): row.id for row in connection.execute(statement)}
    gone = [id for key, id in present.items() if key not in wanted]
    if gone:
        chosen = among(connection, _SCRIPT.id, gone)
        connection.execute(delete(tables.lineage_script).where(chosen))
    new = [
        {"reporter": reporter, "dataset": dataset, "body": body}
        for dataset, body in wanted
        if (dataset, body) not in present
    ]
    if new:
        connection.execute(tables.lineage_script.insert(), new)


def forget(connection: Connection, reporters: Iterable[int]) -> None:
    """Takes the texts of some reporters away."""
    spoke = among(connection, _SCRIPT.reporter, reporters)
    connection.execute(delete(tables.lineage_script).where(spoke))


def scripts_of(
    connection: Connection, urns: Collection[str]
) -> dict[str, tuple[tuple[str, Script], ...]]:
    """For each dataset, the texts that make it with their reporters, under present names."""
    names = present_names(connection, urns)
    urn_of = {id: urn for urn, id in node_ids(connection, set(names.values())).items()}
    made = _made(connection, urn_of)
    texts = _texts(connection, {id for ids in made.values() for id in ids}, urn_of)
    by_name = {
        urn_of[node]: tuple(sorted((texts[id] for id in ids), key=_order))
        for node, ids in made.items()
    }
    return {urn: by_name.get(name, ()) for urn, name in names.items()}


def without_scripts(connection: Connection, prefix: str) -> set[str]:
    """Reporters whose names begin in some way that tell of edges and keep no text."""
    statement = select(REPORTER.name).where(
        REPORTER.name.startswith(prefix, autoescape=True),
        exists().where(EDGE.reporter == REPORTER.id),
        ~exists().where(_SCRIPT.reporter == REPORTER.id),
    )
    return set(connection.scalars(statement))


def _made(connection: Connection, nodes: Collection[int]) -> dict[int, set[int]]:
    """Which texts make which datasets, by their numbers."""
    own = select(_SCRIPT.dataset, _SCRIPT.id).where(among(connection, _SCRIPT.dataset, nodes))
    by_edges = (
        select(EDGE.downstream, _SCRIPT.id)
        .distinct()
        .join_from(tables.lineage_edge, tables.lineage_script, _SCRIPT.reporter == EDGE.reporter)
        .where(_SCRIPT.dataset.is_(None), among(connection, EDGE.downstream, nodes))
    )
    made: dict[int, set[int]] = {}
    for statement in (own, by_edges):
        for node, id in connection.execute(statement):
            made.setdefault(node, set()).add(id)
    return made


def _texts(
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
    named = {urn for _, script in texts.values() for _, urn in script.tables}
    moved = {old: new for old, new in present_names(connection, named).items() if old != new}
    if not moved:
        return texts
    return {id: (reporter, _renamed(script, moved)) for id, (reporter, script) in texts.items()}


def _with_dataset(script: Script, urn: str | None) -> Script:
    return script if urn is None else msgspec.structs.replace(script, dataset=urn)


def _renamed(script: Script, moved: Mapping[str, str]) -> Script:
    renamed = tuple((parts, moved.get(urn, urn)) for parts, urn in script.tables)
    return msgspec.structs.replace(script, tables=renamed)


def _body(script: Script) -> bytes:
    """What is kept of a text beside the dataset, which may get another name."""
    return to_json(msgspec.structs.replace(script, dataset=None))


def _order(kept: tuple[str, Script]) -> tuple[str, str, str]:
    reporter, script = kept
    return reporter, script.file or "", script.sql


_SCRIPT: Final = tables.lineage_script.c
_DECODE: Final = msgspec.json.Decoder(Script).decode
