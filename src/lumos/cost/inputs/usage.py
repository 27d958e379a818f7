"""Derives weights of edges and end uses from recorded reads."""

from collections import defaultdict
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from lumos.config import Settings
from lumos.cost.inputs.nodes import CostNodes, job_names
from lumos.cost.solver.graph import Bools, Floats, unread_nodes
from lumos.model.period import Period
from lumos.usage.pseudonyms import reader_renamer
from lumos.usage.unread import ReadEvidence, log_scope_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from lumos.model.catalog import Job
    from lumos.store import Store

# Long enough to include the reads of quarterly reports.
_LOOKBACK: Final = timedelta(days=89)


class UsageWeights(NamedTuple):
    """End uses (`live`, [n]), and weights and times of the last reads by edge ([m]).

    `read` are the URNs with recorded reads, `unverified` those whose reads are not recorded.
    """

    live: Bools
    weights: Floats
    last_read: Floats
    read: frozenset[str]
    unverified: frozenset[str]


class _EdgeReads(NamedTuple):
    edge: int
    reads: int
    bytes: int | None
    rows: int | None


def read_usage(
    store: "Store", settings: Settings, cost_nodes: CostNodes, period: Period
) -> UsageWeights:
    """The weights and last reads of the period, and the end uses of the 90 days up to its end.

    Nodes with reads from outside of the graph are end uses. Nodes without readers are end uses too,
    unless their reads are recorded and there were none.
    """
    since = min(period.first, period.last - _LOOKBACK)
    readers = _readers(settings, cost_nodes)
    is_end_use = unread_nodes(len(cost_nodes.urns), cost_nodes.upstream, cost_nodes.downstream)
    end_uses, read, read_by_jobs = _end_uses(store, cost_nodes, readers, since, period.last)
    evidence = ReadEvidence(store)
    recorded_since = reads_known_since(
        store, lambda urn: cost_nodes.datasets.get(urn, (None, None))[1], readers
    )
    unverified = set()
    for urn, (_, source) in cost_nodes.datasets.items():
        first_day = recorded_since.get(log_scope_of(urn, source))
        has_usage_snapshot = urn in evidence.imported
        if (first_day is None or first_day > since) and not has_usage_snapshot:
            if urn not in read:
                unverified.add(urn)
        elif is_end_use[node := cost_nodes.node_by_urn[urn]] and urn not in read:
            is_end_use[node] = has_usage_snapshot and _may_be_read(evidence, urn, since)
    unverified.update(
        urn
        for node, urn in enumerate(cost_nodes.urns)
        if not cost_nodes.is_job[node] and urn not in cost_nodes.datasets and urn not in read
    )
    for node in end_uses:
        is_end_use[node] = True
    weights, last_read = _edge_weights(store, cost_nodes, readers, period)
    return UsageWeights(
        is_end_use,
        weights.reshape(1, -1),
        last_read,
        frozenset(read | read_by_jobs),
        frozenset(unverified),
    )


def reads_known_since(
    store: "Store", source_of: "Callable[[str], str | None]", jobs: "Collection[str]"
) -> dict[str, date]:
    """The first day with recorded reads by location, without reads by jobs."""
    first_days: dict[str, date] = {}
    for urn, reader, first in store.costs.first_reads():
        source = source_of(urn)
        if source is not None and reader not in jobs:
            location = log_scope_of(urn, source)
            first_days[location] = min(first_days.get(location, first), first)
    return first_days


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
    """The nodes that are read from outside of the graph, their URNs, and the URNs read by jobs."""
    end_uses: set[int] = set()
    read: set[str] = set()
    read_by_jobs: set[str] = set()
    for urn, reader, *_ in store.costs.reads(first, last):
        node = cost_nodes.node_by_urn.get(urn)
        if node is None:
            continue
        consumer = readers.get(reader)
        if consumer is None or cost_nodes.edge(node, consumer) is None:
            end_uses.add(node)
            read.add(urn)
        else:
            read_by_jobs.add(urn)
    return end_uses, read, read_by_jobs


def _edge_weights(
    store: "Store", cost_nodes: CostNodes, readers: dict[str, int], period: Period
) -> tuple[Floats, Floats]:
    """The weights and last reads by edge. Weights are bytes or rows, if known for all readers.

    Otherwise they are numbers of reads.
    """
    weights = np.full(len(cost_nodes.upstream), np.nan)
    last_read = np.full(len(cost_nodes.upstream), np.nan)
    by_node: dict[int, dict[int, _EdgeReads]] = defaultdict(dict)
    for urn, reader, count, size, rows, at in store.costs.reads(period.first, period.last):
        node, consumer = cost_nodes.node_by_urn.get(urn), readers.get(reader)
        edge = None if node is None or consumer is None else cost_nodes.edge(node, consumer)
        if node is None or edge is None:
            continue
        reads_of_edge = _EdgeReads(edge, int(count), _integer(size), _integer(rows))
        earlier = by_node[node].get(edge)
        by_node[node][edge] = (
            reads_of_edge if earlier is None else _add_reads(earlier, reads_of_edge)
        )
        last_read[edge] = np.fmax(last_read[edge], at.timestamp())
    for reads_by_edge in by_node.values():
        reads = list(reads_by_edge.values())
        measures = ([each.bytes for each in reads], [each.rows for each in reads])
        counts = [each.reads for each in reads]
        best_measure = next((each for each in measures if None not in each and any(each)), counts)
        for each, weight in zip(reads, best_measure, strict=True):
            assert weight is not None
            weights[each.edge] = float(weight)
    return weights, last_read


def _add_reads(first: _EdgeReads, second: _EdgeReads) -> _EdgeReads:
    return _EdgeReads(
        first.edge,
        first.reads + second.reads,
        None if first.bytes is None or second.bytes is None else first.bytes + second.bytes,
        None if first.rows is None or second.rows is None else first.rows + second.rows,
    )


def _integer(number: object) -> int | None:
    return None if number is None else int(str(number))
