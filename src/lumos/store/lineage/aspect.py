"""The lineage aspect of datasets: what it was told, and what reporters say now.

A dataset's entry gives out both as one. So what reporters say is not kept as told as well when such
an entry comes back, or it would stay after they have withdrawn it.
"""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import Final, NamedTuple

import msgspec
from sqlalchemy import Connection

from lumos.model.dataset import Lineage, UpstreamEdge
from lumos.model.json_codec import to_json
from lumos.store import tables
from lumos.store.lineage.merging import all_mappings, all_uses
from lumos.store.lineage.rows import DOWNSTREAM, EDGES, REPORTER, UPSTREAM, among, edge_of
from lumos.store.lineage.values import MergedEdge, merged

# Who tells what an imported entry, or a catalog, says of a dataset.
TOLD: Final = "snapshot:"


class ReportedUpstream(NamedTuple):
    """What reporters say a dataset is made from, and whether the store has that."""

    edge: UpstreamEdge
    is_here: bool


def reported_upstream(
    connection: Connection, urns: Collection[str]
) -> dict[str, tuple[ReportedUpstream, ...]]:
    """What reporters say that datasets are made from, but for what was told of the datasets."""
    statement = (
        EDGES.add_columns(tables.dataset.c.state)
        .outerjoin(tables.dataset, tables.dataset.c.urn == UPSTREAM.c.urn)
        .where(REPORTER.name.not_like(f"{TOLD}%"))
    )
    here: set[str] = set()
    edges = []
    for row in connection.execute(statement.where(among(connection, DOWNSTREAM.c.urn, urns))):
        edges.append(edge_of(row))
        if row.state is not None:
            here.add(row.upstream)
    by_dataset = sorted(merged(edges), key=lambda edge: (edge.downstream, edge.upstream))
    return {
        urn: tuple(ReportedUpstream(upstream_of(edge), edge.upstream in here) for edge in some)
        for urn, some in groupby(by_dataset, key=lambda edge: edge.downstream)
    }


def upstream_of(edge: MergedEdge) -> UpstreamEdge:
    """An edge as the dataset at its lower end tells it."""
    return UpstreamEdge(urn=edge.upstream, type=edge.type, columns=edge.columns, uses=edge.uses)


def downstream_of(edge: MergedEdge) -> UpstreamEdge:
    """An edge as the dataset at its upper end tells it."""
    return UpstreamEdge(urn=edge.downstream, type=edge.type, columns=edge.columns, uses=edge.uses)


def given_out(told: Lineage | None, reported: Sequence[ReportedUpstream]) -> Lineage | None:
    """What was told and what is reported as one, as far as it leads to what the store has."""
    here = [each.edge for each in reported if each.is_here]
    if not here:
        return told
    edges: dict[str, UpstreamEdge] = {}
    for edge in (*(told.upstream if told else ()), *here):
        known = edges.get(edge.urn)
        edges[edge.urn] = edge if known is None else _both(known, edge)
    return Lineage(upstream=tuple(edges.values()), downstream=told.downstream if told else ())


def left_to_tell(lineage: Lineage | None, reported: Sequence[ReportedUpstream]) -> Lineage | None:
    """What an aspect says and no reporter does."""
    if lineage is None or not reported:
        return lineage
    said = {each.edge.urn: each.edge for each in reported}
    upstream = tuple(
        left
        for edge in lineage.upstream
        if (left := _without(edge, said.get(edge.urn))) is not None
    )
    if not upstream and not lineage.downstream and lineage.upstream:
        return None
    return Lineage(upstream=upstream, downstream=lineage.downstream)


def says_all(lineage: Lineage | None, reported: Sequence[ReportedUpstream]) -> bool:
    """Whether an aspect holds everything that is given out of what reporters say."""
    edges = {edge.urn: edge for edge in (lineage.upstream if lineage else ())}
    return all(
        each.edge.urn in edges and _without(each.edge, edges[each.edge.urn], typed=False) is None
        for each in reported
        if each.is_here
    )


def fingerprint(reported: Iterable[ReportedUpstream]) -> str:
    """The same for the same words of reporters."""
    words = to_json([each.edge for each in reported])
    return hashlib.blake2b(words, digest_size=16).hexdigest()


def _both(told: UpstreamEdge, reported: UpstreamEdge) -> UpstreamEdge:
    return UpstreamEdge(
        urn=told.urn,
        type=told.type,
        columns=all_mappings((told.columns, reported.columns)),
        uses=all_uses((told.uses, reported.uses)),
    )


def _without(
    edge: UpstreamEdge, said: UpstreamEdge | None, *, typed: bool = True
) -> UpstreamEdge | None:
    """An edge without what another says, or nothing where that says all."""
    if said is None:
        return edge
    columns = tuple(each for each in edge.columns if each not in said.columns)
    uses = tuple(each for each in edge.uses if each not in said.uses)
    if not columns and not uses and (edge.type == said.type or not typed):
        return None
    return msgspec.structs.replace(edge, columns=columns, uses=uses)
