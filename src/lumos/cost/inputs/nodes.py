"""Datasets and jobs as numbers, and the edges between them: dataset, job, dataset."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, product
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from lumos.cost.solver.graph import Bools, Integers

if TYPE_CHECKING:
    from lumos.model.catalog import Job
    from lumos.store import Store

# Of a job with more pairs of inputs and outputs than this, direct edges beside it are kept.
_MOST_PAIRS = 10_000


class Wiring:
    """The nodes of a graph and its edges, each once, in the order of their ends."""

    def __init__(
        self,
        urns: list[str],
        places: dict[str, int],
        datasets: dict[str, tuple[str, str]],
        jobs: "dict[str, Job]",
        is_job: Bools,
        edges: Integers,
    ) -> None:
        self.urns = urns
        self.places = places
        # The platform and the source of each live dataset.
        self.datasets = datasets
        self.jobs = jobs
        self.is_job = is_job
        self.upstream, self.downstream = edges[:, 0].copy(), edges[:, 1].copy()

    def edge(self, upstream: int, downstream: int) -> int | None:
        """The number of an edge, where there is one."""
        first, last = np.searchsorted(self.upstream, [upstream, upstream + 1])
        place = int(first + np.searchsorted(self.downstream[first:last], downstream))
        return place if place < last and self.downstream[place] == downstream else None

    def readers(self, node: int) -> list[int]:
        """What reads a node."""
        first, last = np.searchsorted(self.upstream, [node, node + 1])
        return [int(each) for each in self.downstream[first:last] if each != node]

    def writers(self, node: int) -> list[int]:
        """What writes a node."""
        found = self.upstream[self.downstream == node]
        return [int(each) for each in found if each != node]

    def add_job(self, urn: str, outputs: Sequence[int]) -> int:
        """A job that lineage does not know, and what it was seen to write."""
        node = self.places.get(urn)
        if node is None:
            node = self.places[urn] = len(self.urns)
            self.urns.append(urn)
            self.is_job = np.append(self.is_job, True)
        edges = [(node, each) for each in outputs if self.edge(node, each) is None]
        if edges:
            both = np.stack([self.upstream, self.downstream], axis=1)
            every = _once(np.concatenate([both, np.array(edges, dtype=np.int64)]), len(self.urns))
            self.upstream, self.downstream = every[:, 0].copy(), every[:, 1].copy()
        return node


def wired(store: "Store") -> Wiring:
    """All live datasets and jobs of a store, and all that its lineage speaks of."""
    datasets = _datasets(store)
    jobs = {job.urn: job for job in store.lineage.jobs()}
    numbers = chain.from_iterable(chain.from_iterable(store.costs.links()))
    triples = np.fromiter(numbers, dtype=np.int64).reshape(-1, 3)
    is_used = np.zeros(triples.max(initial=0) + 1, dtype=np.bool_)
    is_used[triples.ravel()] = True
    is_used[0] = False
    # Names are read twice, for there is hardly room for all of them twice.
    beside = {urn for _, urn in _used(store, is_used) if urn not in datasets}
    beside.update(jobs.keys() - datasets.keys())
    for job in jobs.values():
        beside.update(urn for urn in (*job.inputs, *job.outputs) if urn not in datasets)
    urns = sorted(chain(datasets, beside))
    places = {urn: number for number, urn in enumerate(urns)}
    lookup = np.zeros(len(is_used), dtype=np.int64)
    for number, urn in _used(store, is_used):
        lookup[number] = places[urn]
    is_job = np.zeros(len(urns), dtype=np.bool_)
    is_job[[places[urn] for urn in jobs]] = True
    is_job[lookup[triples[triples[:, 2] != 0, 2]]] = True
    edges = _edges(triples, lookup, places, jobs.values(), len(urns))
    return Wiring(urns, places, datasets, jobs, is_job, edges)


def _datasets(store: "Store") -> dict[str, tuple[str, str]]:
    """The platform and the source of each live dataset; those of one source share them."""
    known: dict[tuple[str, str], tuple[str, str]] = {}
    found: dict[str, tuple[str, str]] = {}
    for urn, platform, source in store.costs.datasets():
        found[urn] = known.setdefault((platform, source), (platform, source))
    return found


def _used(store: "Store", is_used: Bools) -> Iterator[tuple[int, str]]:
    """What edges speak of."""
    for number, urn in store.costs.nodes():
        if number < len(is_used) and is_used[number]:
            yield number, urn


def _edges(
    triples: Integers,
    lookup: Integers,
    places: dict[str, int],
    jobs: "Iterable[Job]",
    nodes: int,
) -> Integers:
    """Where a job is known, the way leads through it, and the way past it is left out.

    What a job makes of its own output, as incremental models do, is no way to anywhere.
    """
    triples = triples[triples[:, 0] != triples[:, 1]]
    by_job = triples[:, 2] != 0
    up, down, job = (lookup[triples[:, column]] for column in range(3))
    through = np.stack([up[by_job], down[by_job]], axis=1)
    into = np.stack([up[by_job], job[by_job]], axis=1)
    out_of = np.stack([job[by_job], down[by_job]], axis=1)
    flows, flown, own = (_pairs(each) for each in _flows(jobs, places))
    # A job may read what it writes for the sake of something else that it writes.
    own = own[_are_among(_codes(own, nodes), _codes(into, nodes))]
    through = np.concatenate([through, flown])
    direct = np.stack([up[~by_job], down[~by_job]], axis=1)
    past = _are_among(_codes(direct, nodes), _codes(through, nodes))
    return _once(np.concatenate([into, out_of, flows, own, direct[~past]]), nodes)


_Pairs: TypeAlias = list[tuple[int, int]]


def _flows(jobs: "Iterable[Job]", places: dict[str, int]) -> tuple[_Pairs, _Pairs, _Pairs]:
    """The edges into and out of jobs by what they read and write, and the ways through them.

    Apart from these, what jobs read that they write as well.
    """
    edges: _Pairs = []
    ways: _Pairs = []
    own: _Pairs = []
    for job in jobs:
        node = places[job.urn]
        outputs = {places[urn] for urn in job.outputs}
        inputs = {places[urn] for urn in job.inputs}
        reads = inputs - outputs
        edges += [(each, node) for each in reads]
        edges += [(node, each) for each in outputs]
        own += [(each, node) for each in inputs & outputs]
        if len(reads) * len(outputs) <= _MOST_PAIRS:
            ways += product(reads, outputs)
    return edges, ways, own


def _pairs(pairs: _Pairs) -> Integers:
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _codes(edges: Integers, nodes: int) -> Integers:
    return edges[:, 0] * nodes + edges[:, 1]


def _are_among(codes: Integers, others: Integers) -> Bools:
    """Which codes are among others; `np.isin` would load all that masked arrays are made of."""
    if not len(others):
        return np.zeros(len(codes), dtype=np.bool_)
    others = np.sort(others)
    at = np.minimum(np.searchsorted(others, codes), len(others) - 1)
    return np.asarray(others[at] == codes)


def _once(edges: Integers, nodes: int) -> Integers:
    codes = np.sort(_codes(edges, nodes))
    codes = codes[np.append(True, codes[1:] != codes[:-1])] if len(codes) else codes
    return np.stack([codes // max(nodes, 1), codes % max(nodes, 1)], axis=1)
