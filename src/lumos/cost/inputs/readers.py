"""Who reads what, as far as it is known: weights of edges, end uses, and what nobody can tell."""

from collections import defaultdict
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from lumos.config import Settings
from lumos.cost.inputs.names import names_of_job
from lumos.cost.inputs.nodes import Wiring
from lumos.cost.solver.graph import Bools, Floats, nothing_reads
from lumos.model.period import Period
from lumos.usage.readers import naming
from lumos.usage.unread import Evidence, place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from lumos.model.catalog import Job
    from lumos.store import Store

# Somebody who reads once a quarter needs what is read.
_LOOKED_BACK: Final = timedelta(days=89)


class Reading(NamedTuple):
    """What usage says of nodes ([n]) and edges ([m])."""

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


def readings(store: "Store", settings: Settings, wiring: Wiring, period: Period) -> Reading:
    """Weights and last reads of the period; end uses of the last ninety days up to its end.

    What nothing reads is an end use, but for datasets whose reads would be known and that nobody
    read.
    """
    since = min(period.first, period.last - _LOOKED_BACK)
    readers = _readers(settings, wiring)
    live = nothing_reads(len(wiring.urns), wiring.upstream, wiring.downstream)
    ended, read, used = _end_uses(store, wiring, readers, since, period.last)
    evidence = Evidence(store)
    known = known_since(store, lambda urn: wiring.datasets.get(urn, (None, None))[1], readers)
    unverified = set()
    for urn, (_, source) in wiring.datasets.items():
        first = known.get(place_of(urn, source))
        is_told = urn in evidence.told
        if (first is None or first > since) and not is_told:
            if urn not in read:
                unverified.add(urn)
        elif live[node := wiring.places[urn]] and urn not in read:
            live[node] = is_told and _may_be_read(evidence, urn, since)
    unverified.update(
        urn
        for node, urn in enumerate(wiring.urns)
        if not wiring.is_job[node] and urn not in wiring.datasets and urn not in read
    )
    for node in ended:
        live[node] = True
    weights, last_read = _weighed(store, wiring, readers, period)
    return Reading(
        live, weights.reshape(1, -1), last_read, frozenset(read | used), frozenset(unverified)
    )


def known_since(
    store: "Store", source_of: "Callable[[str], str | None]", jobs: "Collection[str]"
) -> dict[str, date]:
    """From which day on the reads of people are known, by place; jobs that read show nothing."""
    found: dict[str, date] = {}
    for urn, reader, first in store.costs.first_reads():
        source = source_of(urn)
        if source is not None and reader not in jobs:
            place = place_of(urn, source)
            found[place] = min(found.get(place, first), first)
    return found


def _may_be_read(evidence: Evidence, urn: str, since: date) -> bool:
    """Whether a snapshot tells of reads that may lie in the time that counts."""
    period = evidence.periods.get(urn)
    return urn in evidence.undated or (period is not None and period.last >= since)


def _readers(settings: Settings, wiring: Wiring) -> dict[str, int]:
    """The nodes that readers of query logs are, by the names that the store has for them."""
    by_name = jobs_by_reader(settings, wiring.jobs.values())
    return {name: wiring.places[urn] for name, urn in by_name.items()}


def jobs_by_reader(settings: Settings, jobs: "Iterable[Job]") -> dict[str, str]:
    """The jobs that readers of query logs are, by the names that the store has for them."""
    rename = naming(settings.usage) or str
    return {rename(name): job.urn for job in jobs for name in names_of_job(job)}


def _end_uses(
    store: "Store", wiring: Wiring, readers: dict[str, int], first: date, last: date
) -> tuple[set[int], set[str], set[str]]:
    """What somebody reads who is no job of the graph; and all that is read at all."""
    ended: set[int] = set()
    read: set[str] = set()
    used: set[str] = set()
    for urn, reader, *_ in store.costs.reads(first, last):
        node = wiring.places.get(urn)
        if node is None:
            continue
        consumer = readers.get(reader)
        if consumer is None or wiring.edge(node, consumer) is None:
            ended.add(node)
            read.add(urn)
        else:
            used.add(urn)
    return ended, read, used


def _weighed(
    store: "Store", wiring: Wiring, readers: dict[str, int], period: Period
) -> tuple[Floats, Floats]:
    """Bytes read along each edge where all of a node's readers tell them, or rows, or reads."""
    weights = np.full(len(wiring.upstream), np.nan)
    last_read = np.full(len(wiring.upstream), np.nan)
    by_node: dict[int, dict[int, _Read]] = defaultdict(dict)
    for urn, reader, times, size, rows, at in store.costs.reads(period.first, period.last):
        node, consumer = wiring.places.get(urn), readers.get(reader)
        edge = None if node is None or consumer is None else wiring.edge(node, consumer)
        if node is None or edge is None:
            continue
        told = _Read(edge, int(times), _whole(size), _whole(rows))
        known = by_node[node].get(edge)
        by_node[node][edge] = told if known is None else _sum(known, told)
        last_read[edge] = np.fmax(last_read[edge], at.timestamp())
    for several in by_node.values():
        told_of = list(several.values())
        measures = ([each.bytes for each in told_of], [each.rows for each in told_of])
        counts = [each.reads for each in told_of]
        chosen = next((each for each in measures if None not in each and any(each)), counts)
        for each, weight in zip(told_of, chosen, strict=True):
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


def _whole(number: object) -> int | None:
    return None if number is None else int(str(number))
