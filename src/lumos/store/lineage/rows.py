"""Rows of edges as values, and back; URNs as the numbers of nodes."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

import msgspec
from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Connection,
    Row,
    Select,
    String,
    Text,
    bindparam,
    func,
    or_,
    select,
)

from lumos.model.json_codec import to_json
from lumos.model.lineage import ColumnMapping, ColumnUse, Edge
from lumos.store import tables
from lumos.store.lineage.values import KeptEdge
from lumos.store.rows import add_if_new

NO_JOB: Final = 0


class Body(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an edge says of columns."""

    columns: tuple[ColumnMapping, ...] = ()
    uses: tuple[ColumnUse, ...] = ()


def body_of(edge: Edge) -> bytes | None:
    """What an edge says of columns as it is kept."""
    if not edge.columns and not edge.uses:
        return None
    return to_json(Body(columns=edge.columns, uses=edge.uses))


def among(
    connection: Connection, column: ColumnElement[Any], values: Iterable[int] | Iterable[str]
) -> ColumnElement[bool]:
    """That a column has one of some values, however many: they travel as one."""
    wanted = list(values)
    if connection.dialect.name == "postgresql":
        kind = ARRAY(Text if isinstance(column.type, String) else BigInteger)
        return column == func.any(bindparam(None, wanted, type_=kind))
    # SQLite takes text from JSON only up to a NUL in it.
    odd = [value for value in wanted if isinstance(value, str) and "\0" in value]
    plain = [value for value in wanted if value not in odd] if odd else wanted
    unpacked = func.json_each(to_json(plain).decode()).table_valued("value")
    found = column.in_(select(unpacked.c.value))
    return or_(found, column.in_(odd)) if odd else found


def present_names(connection: Connection, urns: Collection[str]) -> dict[str, str]:
    """URNs and those under which the datasets are known now."""
    alias = tables.alias.c
    moved = select(alias.urn, alias.dataset_urn).where(among(connection, alias.urn, urns))
    rows = connection.execute(moved)
    return {urn: urn for urn in urns} | {row.urn: row.dataset_urn for row in rows}


def node_ids(connection: Connection, urns: Collection[str]) -> dict[str, int]:
    """The numbers of those URNs that have one."""
    node = tables.lineage_node.c
    statement = select(node.urn, node.id).where(among(connection, node.urn, urns))
    return {row.urn: row.id for row in connection.execute(statement).all()}


def add_nodes(connection: Connection, urns: Collection[str]) -> dict[str, int]:
    """The numbers of all these URNs."""
    found = node_ids(connection, urns)
    # In one order, so that two writers wait for each other and never both.
    missing = sorted(urn for urn in urns if urn not in found)
    if missing:
        statement = add_if_new(connection.dialect.name, tables.lineage_node)
        connection.execute(statement, [{"urn": urn} for urn in missing])
        found |= node_ids(connection, missing)
    return found


def edges_of(connection: Connection, statement: Select[Any]) -> Iterator[KeptEdge]:
    """The edges that a selection of `EDGES` gives."""
    return map(edge_of, connection.execute(statement))


def edge_of(row: Row[Any]) -> KeptEdge:
    """An edge from a row of `EDGES`."""
    body = NO_BODY if row.body is None else _DECODE(row.body)
    return KeptEdge(
        upstream=row.upstream,
        downstream=row.downstream,
        origin=row.origin,
        at=row.first_seen,
        last_seen=row.last_seen,
        type=row.type,
        confidence=row.confidence,
        created_by=row.created_by,
        job=row.job,
        columns=body.columns,
        uses=body.uses,
    )


NO_BODY: Final = Body()
_DECODE: Final = msgspec.json.Decoder(Body).decode
EDGE: Final = tables.lineage_edge.c
UPSTREAM: Final = tables.lineage_node.alias("upstream_node")
DOWNSTREAM: Final = tables.lineage_node.alias("downstream_node")
JOB: Final = tables.lineage_node.alias("job_node")
REPORTER: Final = tables.lineage_reporter.c
EDGES: Final = select(
    UPSTREAM.c.urn.label("upstream"),
    DOWNSTREAM.c.urn.label("downstream"),
    JOB.c.urn.label("job"),
    REPORTER.name.label("origin"),
    EDGE.type,
    EDGE.confidence,
    EDGE.created_by,
    EDGE.first_seen,
    EDGE.last_seen,
    EDGE.body,
).select_from(
    tables.lineage_edge.join(UPSTREAM, UPSTREAM.c.id == EDGE.upstream)
    .join(DOWNSTREAM, DOWNSTREAM.c.id == EDGE.downstream)
    .join(tables.lineage_reporter, REPORTER.id == EDGE.reporter)
    .outerjoin(JOB, JOB.c.id == EDGE.job)
)
