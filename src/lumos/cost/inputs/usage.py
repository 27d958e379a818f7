"""Recorded reads: weights of edges, end uses, and datasets whose readers are unknown."""

from collections import defaultdict
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from lumos.config import Settings
from lumos.cost.inputs.nodes import CostNodes, job_names
from lumos.cost.solver.graph import Bools, Floats, unread_nodes
from lumos.model.period import Period
from lumos.usage.pseudonyms import reader_renamer
from lumos.usage.unread import ReadEvidence, location_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from lumos.model.catalog import Job
    from lumos.store import Store

# Quarterly reports read their inputs once in this time.
_LOOKBACK: Final = timedelta(days=89)


class UsageWeights(NamedTuple):
    """What recorded reads say about nodes ([n]) and edges ([m])."""

    live: Bools
    weights: Floats
    last_read: Floats
    read: frozenset[str]
    unverified: frozenset[str]


class _Read(NamedTuple):
    edge: int
    reads: int
    bytes: int | None
    rows: int | None


def read_usage(
    store: "Store", settings: Settings, cost_nodes: CostNodes, period: Period
) -> UsageWeights:
    """Weights and last reads of the period; end uses of the ninety days up to its end.

    Nodes without readers are end uses, except for datasets whose reads are recorded and that
    were not read.
    """
    since = min(period.first, period.last - _LOOKBACK)
    readers = _readers(settings, cost_nodes)
    live = unread_nodes(len(cost_nodes.urns), cost_nodes.upstream, cost_nodes.downstream)
    end_uses, read, used = _end_uses(store, cost_nodes, readers, since, period.last)
    evidence = ReadEvidence(store)
    known = reads_known_since(
        store, lambda urn: cost_nodes.datasets.get(urn, (None, None))[1], readers
    )
    unverified = set()
    for urn, (_, source) in cost_nodes.datasets.items():
        first = known.get(location_of(urn, source))
        has_usage_snapshot = urn in evidence.imported
        if (first is None or first > since) and not has_usage_snapshot:
            if urn not in read:
                unverified.add(urn)
        elif live[node := cost_nodes.node_by_urn[urn]] and urn not in read:
            live[node] = has_usage_snapshot and _may_be_read(evidence, urn, since)
    unverified.update(
        urn
        for node, urn in enumerate(cost_nodes.urns)
        if not cost_nodes.is_job[node] and urn not in cost_nodes.datasets and urn not in read
    )
    for node in end_uses:
        live[node] = True
    weights, last_read = _edge_weights(store, cost_nodes, readers, period)
    return UsageWeights(
        live, weights.reshape(1, -1), last_read, frozenset(read | used), frozenset(unverified)
    )


def reads_known_since(
    store: "Store", source_of: "Callable[[str], str | None]", jobs: "Collection[str]"
) -> dict[str, date]:
    """The first day with recorded reads by people, by location; reads by jobs do not count."""
    found: dict[str, date] = {}
    for urn, reader, first in store.costs.first_reads():
        source = source_of(urn)
        if source is not None and reader not in jobs:
            location = location_of(urn, source)
            found[location] = min(found.get(location, first), first)
    return found


def _may_be_read(evidence: ReadEvidence, urn: str, since: date) -> bool:
    """Whether an imported usage snapshot may contain reads since that day."""
    period = evidence.periods.get(urn)
    return urn in evidence.undated or (period is not None and period.last >= since)


def _readers(settings: Settings, cost_nodes: CostNodes) -> dict[str, int]:
    """The nodes of jobs that appear as readers in query logs, by reader name."""
    by_name = jobs_by_reader(settings, cost_nodes.jobs.values())
    return {name: cost_nodes.node_by_urn[urn] for name, urn in by_name.items()}


def jobs_by_reader(settings: Settings, jobs: "Iterable[Job]") -> dict[str, str]:
    """The URNs of jobs that appear as readers in query logs, by reader name."""
    rename = reader_renamer(settings.usage) or str
    return {rename(name): job.urn for job in jobs for name in job_names(job)}


def _end_uses(
    store: "Store", cost_nodes: CostNodes, readers: dict[str, int], first: date, last: date
) -> tuple[set[int], set[str], set[str]]:
    """Nodes with readers outside of the graph, their URNs, and the URNs that only jobs read."""
    end_uses: set[int] = set()
    read: set[str] = set()
    used: set[str] = set()
    for urn, reader, *_ in store.costs.reads(first, last):
        node = cost_nodes.node_by_urn.get(urn)
        if node is None:
            continue
        consumer = readers.get(reader)
        if consumer is None or cost_nodes.edge(node, consumer) is None:
            end_uses.add(node)
            read.add(urn)
        else:
            used.add(urn)
    return end_uses, read, used


def _edge_weights(
    store: "Store", cost_nodes: CostNodes, readers: dict[str, int], period: Period
) -> tuple[Floats, Floats]:
    """Weights and last reads by edge: bytes if known for all readers, else rows or reads."""
    weights = np.full(len(cost_nodes.upstream), np.nan)
    last_read = np.full(len(cost_nodes.upstream), np.nan)
    by_node: dict[int, dict[int, _Read]] = defaultdict(dict)
    for urn, reader, times, size, rows, at in store.costs.reads(period.first, period.last):
        node, consumer = cost_nodes.node_by_urn.get(urn), readers.get(reader)
        edge = None if node is None or consumer is None else cost_nodes.edge(node, consumer)
        if node is None or edge is None:
            continue
        read = _Read(edge, int(times), _integer(size), _integer(rows))
        known = by_node[node].get(edge)
        by_node[node][edge] = read if known is None else _sum(known, read)
        last_read[edge] = np.fmax(last_read[edge], at.timestamp())
    for reads_by_edge in by_node.values():
        reads = list(reads_by_edge.values())
        measures = ([each.bytes for each in reads], [each.rows for each in reads])
        counts = [each.reads for each in reads]
        weights_of_reads = next(
            (each for each in measures if None not in each and any(each)), counts
        )
        for each, weight in zip(reads, weights_of_reads, strict=True):
            assert weight is not None
            weights[each.edge] = float(weight)
    return weights, last_read


def _sum(one: _Read, other: _Read) -> _Read:
    return _Read(
        one.edge,
        one.reads + other.reads,
        None if one.bytes is None or other.bytes is None else one.bytes + other.bytes,
        None if one.rows is None or other.rows is None else one.rows + other.rows,
    )


def _integer(number: object) -> int | None:
    return None if number is None else int(str(number))
