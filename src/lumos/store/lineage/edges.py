"""Lineage edges: values, database rows, and merging the reports of several reporters."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import (
    Connection,
    Executable,
    Row,
    select,
)

from lumos.model.dataset import Lineage, UpstreamEdge
from lumos.model.json_codec import to_json
from lumos.model.lineage import ColumnMapping, ColumnUse, Edge, LineageType
from lumos.store import tables
from lumos.store.statements import among, insert_missing


class StoredEdge(Edge, frozen=True, kw_only=True):
    """An edge by one reporter: first seen `at`, and last seen in its latest report."""

    last_seen: datetime


class MergedEdge(msgspec.Struct, frozen=True, kw_only=True):
    """The edge between two datasets, merged from all reporters."""

    upstream: str
    downstream: str
    type: LineageType
    confidence: float
    columns: tuple[ColumnMapping, ...]
    uses: tuple[ColumnUse, ...]
    origins: tuple[StoredEdge, ...]


def merge_edges(edges: Iterable[StoredEdge]) -> tuple[MergedEdge, ...]:
    """Merge the edges between the same two datasets, ordered by both URNs."""

    def ends(edge: StoredEdge) -> tuple[str, str]:
        return edge.upstream, edge.downstream

    ordered = sorted(edges, key=lambda edge: (*ends(edge), edge.origin, edge.job or ""))
    return tuple(_merge(tuple(group)) for _, group in groupby(ordered, key=ends))


def _merge(edges: tuple[StoredEdge, ...]) -> MergedEdge:
    confidence = max(edge.confidence for edge in edges)
    return MergedEdge(
        upstream=edges[0].upstream,
        downstream=edges[0].downstream,
        type=min(
            (edge.type for edge in edges if edge.confidence == confidence),
            key=_TYPES_BY_SPECIFICITY.index,
        ),
        confidence=confidence,
        columns=all_mappings(edge.columns for edge in edges),
        uses=all_uses(edge.uses for edge in edges),
        origins=edges,
    )


class LineageChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of edges that a report changed; `touched` are the datasets at their ends."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    touched: tuple[str, ...] = ()


class LineageReporter(NamedTuple):
    """A reporter of lineage, the time of its last report and its number of edges."""

    name: str
    reported_at: datetime
    edges: int


# The most specific type first.
_TYPES_BY_SPECIFICITY: tuple[LineageType, ...] = ("VIEW", "COPIED", "TRANSFORMED")


def all_mappings(groups: Iterable[Sequence[ColumnMapping]]) -> tuple[ColumnMapping, ...]:
    """All mappings without duplicates and without less detailed versions of another mapping."""
    unique = dict.fromkeys(mapping for group in groups for mapping in group)
    detailed = {_ends(each) for each in unique if not _has_no_detail(each)}
    return tuple(each for each in unique if not _has_no_detail(each) or _ends(each) not in detailed)


def all_uses(groups: Iterable[Sequence[ColumnUse]]) -> tuple[ColumnUse, ...]:
    """All uses without duplicates."""
    return tuple(dict.fromkeys(use for group in groups for use in group))


def _ends(mapping: ColumnMapping) -> tuple[str, str]:
    return mapping.upstream, mapping.downstream


def _has_no_detail(mapping: ColumnMapping) -> bool:
    return mapping == ColumnMapping(upstream=mapping.upstream, downstream=mapping.downstream)


NO_JOB: Final = 0


class EdgeBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The column lineage of an edge, as stored."""

    columns: tuple[ColumnMapping, ...] = ()
    uses: tuple[ColumnUse, ...] = ()


def body_of(edge: Edge) -> bytes | None:
    """The column lineage of an edge as stored in the database, or None."""
    if not edge.columns and not edge.uses:
        return None
    return to_json(EdgeBody(columns=edge.columns, uses=edge.uses))


def current_urns(connection: Connection, urns: Collection[str]) -> dict[str, str]:
    """The current URN of each URN."""
    alias = tables.alias.c
    aliases = select(alias.urn, alias.dataset_urn).where(among(connection, alias.urn, urns))
    rows = connection.execute(aliases)
    return {urn: urn for urn in urns} | {row.urn: row.dataset_urn for row in rows}


def node_ids(connection: Connection, urns: Collection[str]) -> dict[str, int]:
    """The node ids of those URNs that have one."""
    node = tables.lineage_node.c
    statement = select(node.urn, node.id).where(among(connection, node.urn, urns))
    return {row.urn: row.id for row in connection.execute(statement).all()}


def add_nodes(connection: Connection, urns: Collection[str]) -> dict[str, int]:
    """The node ids of the given URNs; missing nodes are created."""
    found = node_ids(connection, urns)
    # Sorted, so that two writers cannot deadlock.
    missing = sorted(urn for urn in urns if urn not in found)
    if missing:
        statement = insert_missing(connection.dialect.name, tables.lineage_node)
        connection.execute(statement, [{"urn": urn} for urn in missing])
        found |= node_ids(connection, missing)
    return found


def edges_of(
    connection: Connection, statement: Executable, parameters: dict[str, Any] | None = None
) -> Iterator[StoredEdge]:
    """Run a statement that is based on `EDGES`, and yield its edges."""
    return map(edge_of, connection.execute(statement, parameters))


def edge_of(row: Row[Any]) -> StoredEdge:
    body = NO_BODY if row.body is None else _DECODE(row.body)
    return StoredEdge(
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


NO_BODY: Final = EdgeBody()
_DECODE: Final = msgspec.json.Decoder(EdgeBody).decode
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


# The entry of a dataset contains both its lineage aspect and the reported edges. When such an entry
# is imported again, reported edges are removed from the aspect: otherwise they would stay in it
# after the reporter has retracted them.

# Prefix of the reporter of edges from the lineage aspect of a dataset, followed by its URN.
ASPECT_REPORTER: Final = "snapshot:"


class ReportedUpstream(NamedTuple):
    """A reported upstream edge, and whether its upstream dataset is in the store."""

    edge: UpstreamEdge
    is_in_store: bool


def reported_upstream(
    connection: Connection, urns: Collection[str]
) -> dict[str, tuple[ReportedUpstream, ...]]:
    """The reported upstream edges of datasets, without those from lineage aspects."""
    statement = (
        EDGES.add_columns(tables.dataset.c.state)
        .outerjoin(tables.dataset, tables.dataset.c.urn == UPSTREAM.c.urn)
        .where(REPORTER.name.not_like(f"{ASPECT_REPORTER}%"))
    )
    in_store: set[str] = set()
    edges = []
    for row in connection.execute(statement.where(among(connection, DOWNSTREAM.c.urn, urns))):
        edges.append(edge_of(row))
        if row.state is not None:
            in_store.add(row.upstream)
    by_dataset = sorted(merge_edges(edges), key=lambda edge: (edge.downstream, edge.upstream))
    return {
        urn: tuple(ReportedUpstream(upstream_of(edge), edge.upstream in in_store) for edge in group)
        for urn, group in groupby(by_dataset, key=lambda edge: edge.downstream)
    }


def upstream_of(edge: MergedEdge) -> UpstreamEdge:
    """An edge as an upstream edge of its downstream dataset."""
    return UpstreamEdge(urn=edge.upstream, type=edge.type, columns=edge.columns, uses=edge.uses)


def downstream_of(edge: MergedEdge) -> UpstreamEdge:
    """An edge as a downstream edge of its upstream dataset."""
    return UpstreamEdge(urn=edge.downstream, type=edge.type, columns=edge.columns, uses=edge.uses)


def merge_lineage(own: Lineage | None, reported: Sequence[ReportedUpstream]) -> Lineage | None:
    """Merge the lineage aspect of a dataset with reported edges from datasets in the store."""
    in_store = [each.edge for each in reported if each.is_in_store]
    if not in_store:
        return own
    edges: dict[str, UpstreamEdge] = {}
    for edge in (*(own.upstream if own else ()), *in_store):
        known = edges.get(edge.urn)
        edges[edge.urn] = edge if known is None else _merge_upstream(known, edge)
    return Lineage(upstream=tuple(edges.values()), downstream=own.downstream if own else ())


def without_reported(
    lineage: Lineage | None, reported: Sequence[ReportedUpstream]
) -> Lineage | None:
    """The edges of a lineage aspect that no reporter reports."""
    if lineage is None or not reported:
        return lineage
    by_urn = {each.edge.urn: each.edge for each in reported}
    upstream = tuple(
        remaining
        for edge in lineage.upstream
        if (remaining := _subtract_edge(edge, by_urn.get(edge.urn))) is not None
    )
    if not upstream and not lineage.downstream and lineage.upstream:
        return None
    return Lineage(upstream=upstream, downstream=lineage.downstream)


def contains_reported(lineage: Lineage | None, reported: Sequence[ReportedUpstream]) -> bool:
    """Whether a lineage aspect contains all reported edges from datasets in the store."""
    edges = {edge.urn: edge for edge in (lineage.upstream if lineage else ())}
    return all(
        each.edge.urn in edges
        and _subtract_edge(each.edge, edges[each.edge.urn], compare_types=False) is None
        for each in reported
        if each.is_in_store
    )


def lineage_fingerprint(reported: Iterable[ReportedUpstream]) -> str:
    """A hash of reported edges."""
    body = to_json([each.edge for each in reported])
    return hashlib.blake2b(body, digest_size=16).hexdigest()


def _merge_upstream(own: UpstreamEdge, reported: UpstreamEdge) -> UpstreamEdge:
    return UpstreamEdge(
        urn=own.urn,
        type=own.type,
        columns=all_mappings((own.columns, reported.columns)),
        uses=all_uses((own.uses, reported.uses)),
    )


def _subtract_edge(
    edge: UpstreamEdge, other: UpstreamEdge | None, *, compare_types: bool = True
) -> UpstreamEdge | None:
    """An edge minus the column lineage of another edge, or None if nothing remains."""
    if other is None:
        return edge
    columns = tuple(each for each in edge.columns if each not in other.columns)
    uses = tuple(each for each in edge.uses if each not in other.uses)
    if not columns and not uses and (edge.type == other.type or not compare_types):
        return None
    return msgspec.structs.replace(edge, columns=columns, uses=uses)
