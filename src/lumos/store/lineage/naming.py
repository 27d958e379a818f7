"""Edges follow a dataset that gets another URN, or that becomes part of another."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, delete, or_, select, update

from lumos.model.dataset import Lineage, UpstreamEdge
from lumos.model.json_codec import from_json, to_json
from lumos.store import tables
from lumos.store.lineage.merging import all_mappings, all_uses
from lumos.store.lineage.rows import EDGE, Body, among, node_ids

# Reporters that speak of one dataset and carry its URN in their names.
_OF_A_DATASET: Final = ("snapshot:", "view:")


def move_edges(connection: Connection, urn: str, to: str) -> bool:
    """Lets the edges at one URN lead to another, and texts make that one.

    Edges between the two are no more.

    Gives whether there was any.
    """
    ids = node_ids(connection, [urn, to])
    if urn not in ids:
        return False
    node = tables.lineage_node
    if to not in ids:
        connection.execute(update(node).where(node.c.id == ids[urn]).values(urn=to))
        return True
    old, new = ids[urn], ids[to]
    touching = select(tables.lineage_edge).where(
        or_(*(each.in_((old, new)) for each in (EDGE.upstream, EDGE.downstream)))
    )
    rows = connection.execute(touching).all()
    present = {_key(row): row for row in rows if old not in (row.upstream, row.downstream)}
    for row in rows:
        if old not in (row.upstream, row.downstream):
            continue
        ends = {
            side: new if getattr(row, side) == old else getattr(row, side)
            for side in ("upstream", "downstream")
        }
        twin = present.get((row.reporter, ends["upstream"], ends["downstream"], row.job))
        is_between = ends["upstream"] == ends["downstream"] and row.upstream != row.downstream
        if twin is None and not is_between:
            moved = update(tables.lineage_edge).where(EDGE.id == row.id).values(**ends)
            connection.execute(moved)
            continue
        connection.execute(delete(tables.lineage_edge).where(EDGE.id == row.id))
        if twin is not None and not is_between:
            first = min(twin.first_seen, row.first_seen)
            both = {"body": _both(twin.body, row.body), "first_seen": first}
            connection.execute(update(tables.lineage_edge).where(EDGE.id == twin.id).values(both))
    script = tables.lineage_script
    connection.execute(update(script).where(script.c.dataset == old).values(dataset=new))
    connection.execute(delete(node).where(node.c.id == old))
    return True


def rename_reporters(connection: Connection, urn: str, to: str) -> None:
    """Lets those who speak of a dataset speak of it under its new name."""
    reporter = tables.lineage_reporter
    for prefix in _OF_A_DATASET:
        connection.execute(
            update(reporter).where(reporter.c.name == f"{prefix}{urn}").values(name=f"{prefix}{to}")
        )


def below(connection: Connection, urn: str) -> set[int]:
    """The numbers of what is made from a dataset."""
    node = tables.lineage_node
    statement = select(EDGE.downstream).join_from(
        tables.lineage_edge, node, node.c.id == EDGE.upstream
    )
    return set(connection.scalars(statement.where(node.c.urn == urn)))


def rename_in_told(connection: Connection, urn: str, to: str) -> set[str]:
    """Lets the lineage aspects of other datasets speak of a dataset by its new URN.

    Gives the datasets whose aspects changed.
    """
    changed: set[str] = set()
    edge, reporter, node = EDGE, tables.lineage_reporter.c, tables.lineage_node
    joined = tables.lineage_edge.join(tables.lineage_reporter, reporter.id == edge.reporter).join(
        node, or_(node.c.id == edge.upstream, node.c.id == edge.downstream)
    )
    statement = (
        select(reporter.name)
        .distinct()
        .select_from(joined)
        .where(node.c.urn == to, reporter.name.startswith("snapshot:", autoescape=True))
    )
    tellers = [name.removeprefix("snapshot:") for name in connection.scalars(statement)]
    aspect, beside = tables.aspect, tables.beside
    told = select(aspect.c.urn, aspect.c.body).where(
        among(connection, aspect.c.urn, tellers), aspect.c.name == "lineage"
    )
    for row in connection.execute(told).all():
        lineage = from_json(row.body, Lineage)
        renamed = Lineage(
            upstream=tuple(_renamed(lineage.upstream, urn, to)),
            downstream=tuple(_renamed(lineage.downstream, urn, to)),
        )
        if renamed == lineage:
            continue
        changed.add(row.urn)
        connection.execute(
            update(aspect)
            .where(aspect.c.urn == row.urn, aspect.c.name == "lineage")
            .values(body=to_json(renamed))
        )
        connection.execute(
            delete(beside).where(beside.c.urn == row.urn, beside.c.name == "lineage")
        )
    return changed


def _renamed(edges: Iterable[UpstreamEdge], urn: str, to: str) -> Iterable[UpstreamEdge]:
    return (msgspec.structs.replace(edge, urn=to) if edge.urn == urn else edge for edge in edges)


def _key(row: Any) -> tuple[int, int, int, int]:
    return row.reporter, row.upstream, row.downstream, row.job


def _both(one: bytes | None, other: bytes | None) -> bytes | None:
    bodies = [from_json(body, Body) for body in (one, other) if body is not None]
    if not bodies:
        return None
    return to_json(
        Body(
            columns=all_mappings(body.columns for body in bodies),
            uses=all_uses(body.uses for body in bodies),
        )
    )
