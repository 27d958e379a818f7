"""The nodes of the cost graph (datasets and jobs), their edges, and a finder by name."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, product
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from lumos.config import Settings
from lumos.cost.solver.graph import Bools, Integers
from lumos.errors import MisuseError, did_you_mean, nearest
from lumos.model.cost import MeteredUsage
from lumos.model.urn import SCHEME, InvalidUrn, Urn
from lumos.names import find_urn
from lumos.rendering.text import few, join_names
from lumos.store.errors import AmbiguousName, UnknownDataset

if TYPE_CHECKING:
    from lumos.lineage.name_index import NameIndex
    from lumos.model.catalog import Job
    from lumos.store import Store


# For jobs with more pairs of inputs and outputs, direct edges between them are not removed.
_MAX_PAIRS = 10_000
# The number of unmatched names to list.
_MAX_UNMATCHED = 3


class CostNodes:
    """Datasets and jobs with their edges, without duplicates, sorted by upstream and downstream."""

    def __init__(
        self,
        urns: list[str],
        node_by_urn: dict[str, int],
        datasets: dict[str, tuple[str, str]],
        jobs: "dict[str, Job]",
        is_job: Bools,
        edges: Integers,
    ) -> None:
        self.urns = urns
        self.node_by_urn = node_by_urn
        # The platform and the source of each live dataset.
        self.datasets = datasets
        self.jobs = jobs
        self.is_job = is_job
        self.upstream, self.downstream = edges[:, 0].copy(), edges[:, 1].copy()

    def edge(self, upstream: int, downstream: int) -> int | None:
        """The number of an edge, or None."""
        first, last = np.searchsorted(self.upstream, [upstream, upstream + 1])
        position = int(first + np.searchsorted(self.downstream[first:last], downstream))
        return position if position < last and self.downstream[position] == downstream else None

    def readers(self, node: int) -> list[int]:
        first, last = np.searchsorted(self.upstream, [node, node + 1])
        return [int(each) for each in self.downstream[first:last] if each != node]

    def writers(self, node: int) -> list[int]:
        upstream_nodes = self.upstream[self.downstream == node]
        return [int(each) for each in upstream_nodes if each != node]

    def add_job(self, urn: str, outputs: Sequence[int]) -> int:
        """Add a job that is missing in the lineage, with the outputs reported in its usage."""
        node = self.node_by_urn.get(urn)
        if node is None:
            node = self.node_by_urn[urn] = len(self.urns)
            self.urns.append(urn)
            self.is_job = np.append(self.is_job, True)
        edges = [(node, each) for each in outputs if self.edge(node, each) is None]
        if edges:
            existing = np.stack([self.upstream, self.downstream], axis=1)
            all_edges = _unique_edges(
                np.concatenate([existing, np.array(edges, dtype=np.int64)]), len(self.urns)
            )
            self.upstream, self.downstream = all_edges[:, 0].copy(), all_edges[:, 1].copy()
        return node


def load_nodes(store: "Store") -> CostNodes:
    """All live datasets and jobs of a store, and all nodes of its lineage."""
    datasets = _datasets(store)
    jobs = {job.urn: job for job in store.lineage.jobs()}
    numbers = chain.from_iterable(chain.from_iterable(store.costs.links()))
    triples = np.fromiter(numbers, dtype=np.int64).reshape(-1, 3)
    is_used = np.zeros(triples.max(initial=0) + 1, dtype=np.bool_)
    is_used[triples.ravel()] = True
    is_used[0] = False
    # Nodes are read from the store twice, since keeping all names would need too much memory.
    lineage_only = {urn for _, urn in _nodes_with_edges(store, is_used) if urn not in datasets}
    lineage_only.update(jobs.keys() - datasets.keys())
    for job in jobs.values():
        lineage_only.update(urn for urn in (*job.inputs, *job.outputs) if urn not in datasets)
    urns = sorted(chain(datasets, lineage_only))
    node_by_urn = {urn: number for number, urn in enumerate(urns)}
    node_by_lineage_id = np.zeros(len(is_used), dtype=np.int64)
    for number, urn in _nodes_with_edges(store, is_used):
        node_by_lineage_id[number] = node_by_urn[urn]
    is_job = np.zeros(len(urns), dtype=np.bool_)
    is_job[[node_by_urn[urn] for urn in jobs]] = True
    is_job[node_by_lineage_id[triples[triples[:, 2] != 0, 2]]] = True
    edges = _edges(triples, node_by_lineage_id, node_by_urn, jobs.values(), len(urns))
    return CostNodes(urns, node_by_urn, datasets, jobs, is_job, edges)


def _datasets(store: "Store") -> dict[str, tuple[str, str]]:
    """The platform and the source of each live dataset; equal tuples are stored once."""
    unique: dict[tuple[str, str], tuple[str, str]] = {}
    datasets: dict[str, tuple[str, str]] = {}
    for urn, platform, source in store.costs.datasets():
        datasets[urn] = unique.setdefault((platform, source), (platform, source))
    return datasets


def _nodes_with_edges(store: "Store", is_used: Bools) -> Iterator[tuple[int, str]]:
    """The lineage nodes that have edges."""
    for number, urn in store.costs.nodes():
        if number < len(is_used) and is_used[number]:
            yield number, urn


def _edges(
    triples: Integers,
    node_by_lineage_id: Integers,
    node_by_urn: dict[str, int],
    jobs: "Iterable[Job]",
    nodes: int,
) -> Integers:
    """All edges, without direct edges between datasets that a known job connects.

    Self-edges of datasets, as in incremental models, are omitted as well.
    """
    triples = triples[triples[:, 0] != triples[:, 1]]
    has_job = triples[:, 2] != 0
    upstream, downstream, job = (node_by_lineage_id[triples[:, column]] for column in range(3))
    connected = np.stack([upstream[has_job], downstream[has_job]], axis=1)
    job_inputs = np.stack([upstream[has_job], job[has_job]], axis=1)
    job_outputs = np.stack([job[has_job], downstream[has_job]], axis=1)
    flows, connected_by_jobs, own_inputs = (
        np.array(pairs, dtype=np.int64).reshape(-1, 2) for pairs in _job_edges(jobs, node_by_urn)
    )
    # A job may read one of its outputs to produce another output.
    own_inputs = own_inputs[_is_in(_edge_codes(own_inputs, nodes), _edge_codes(job_inputs, nodes))]
    connected = np.concatenate([connected, connected_by_jobs])
    direct = np.stack([upstream[~has_job], downstream[~has_job]], axis=1)
    is_redundant = _is_in(_edge_codes(direct, nodes), _edge_codes(connected, nodes))
    return _unique_edges(
        np.concatenate([job_inputs, job_outputs, flows, own_inputs, direct[~is_redundant]]), nodes
    )


_NodePairs: TypeAlias = list[tuple[int, int]]


def _job_edges(
    jobs: "Iterable[Job]", node_by_urn: dict[str, int]
) -> tuple[_NodePairs, _NodePairs, _NodePairs]:
    """The edges of jobs, pairs of datasets that jobs connect, and edges from outputs to jobs.

    The latter are only used for jobs that read one of their outputs.
    """
    edges: _NodePairs = []
    connected: _NodePairs = []
    own_inputs: _NodePairs = []
    for job in jobs:
        node = node_by_urn[job.urn]
        outputs = {node_by_urn[urn] for urn in job.outputs}
        inputs = {node_by_urn[urn] for urn in job.inputs}
        reads = inputs - outputs
        edges += [(each, node) for each in reads]
        edges += [(node, each) for each in outputs]
        own_inputs += [(each, node) for each in inputs & outputs]
        if len(reads) * len(outputs) <= _MAX_PAIRS:
            connected += product(reads, outputs)
    return edges, connected, own_inputs


def _edge_codes(edges: Integers, nodes: int) -> Integers:
    return edges[:, 0] * nodes + edges[:, 1]


def _is_in(codes: Integers, others: Integers) -> Bools:
    """Like `np.isin`, but faster at the first call: that imports masked arrays."""
    if not len(others):
        return np.zeros(len(codes), dtype=np.bool_)
    others = np.sort(others)
    positions = np.minimum(np.searchsorted(others, codes), len(others) - 1)
    return np.asarray(others[positions] == codes)


def _unique_edges(edges: Integers, nodes: int) -> Integers:
    codes = np.sort(_edge_codes(edges, nodes))
    codes = codes[np.append(True, codes[1:] != codes[:-1])] if len(codes) else codes
    return np.stack([codes // max(nodes, 1), codes % max(nodes, 1)], axis=1)


_DEFAULT_ENGINE: Final = "job"
_NOT_ALPHANUMERIC: Final = re.compile(r"[^a-z0-9]+")


class NodeFinder:
    """Finds datasets and jobs by URN, by name, or by the names that reporters use."""

    def __init__(self, store: "Store", settings: Settings, cost_nodes: CostNodes) -> None:
        self._store = store
        self._settings = settings
        self._nodes = cost_nodes
        self._usage_nodes: dict[tuple[str, bool, tuple[str, ...]], tuple[int, ...]] = {}
        self._ambiguous: set[str] = set()

    def urn(self, node: int) -> str:
        return self._nodes.urns[node]

    def node(self, name: str) -> int:
        """The dataset or job with this name; raises UnknownDataset if there is none."""
        if (urn := self._jobs_by_name.get(name)) is not None:
            return self._nodes.node_by_urn[urn]
        if name in self._nodes.node_by_urn:
            return self._nodes.node_by_urn[name]
        urn = find_urn(self._store, name, with_lineage=True)
        if urn not in self._nodes.node_by_urn:
            raise self._store.unknown(name)
        return self._nodes.node_by_urn[urn]

    def find_configured(self, name: str, where: str) -> int:
        """The dataset or job with this name in the configuration; errors name the setting."""
        try:
            return self.node(name)
        except (UnknownDataset, AmbiguousName) as problem:
            raise MisuseError(f"{where} in the configuration names '{name}'. {problem}") from None

    def resolve_moves(self, moves: Mapping[str, str]) -> dict[str, str]:
        """The storage classes of a what-if report by dataset URN instead of name."""
        class_by_urn = {}
        for name, storage_class in moves.items():
            urn = self._nodes.urns[self.node(name)]
            if urn not in self._nodes.datasets:
                raise MisuseError(f"{urn} is a job and has no storage class. Name a dataset.")
            class_by_urn[urn] = storage_class
        return class_by_urn

    @property
    def jobs(self) -> "Iterator[tuple[int, Job]]":
        """All jobs in the lineage."""
        for urn, job in self._nodes.jobs.items():
            yield self._nodes.node_by_urn[urn], job

    def find_jobs(self, name: str) -> tuple[int, ...]:
        """The job with this name, or the jobs that write the dataset with this name."""
        try:
            node = self.node(name)
        except UnknownDataset:
            question = did_you_mean(name, [job.name for _, job in self.jobs])
            raise MisuseError(
                f"No job named '{name}'.{question} Lineage names jobs: lumos lineage ingest PATH"
            ) from None
        if self._nodes.is_job[node]:
            return (node,)
        jobs = tuple(each for each in self._nodes.writers(node) if self._nodes.is_job[each])
        if not jobs:
            raise MisuseError(
                f"No job that writes {self._nodes.urns[node]} is known. "
                "Lineage names jobs: lumos lineage ingest PATH"
            )
        return jobs

    def charged_nodes(self, metered: MeteredUsage) -> tuple[int, ...]:
        """The nodes that metered usage is charged to; empty if none matches."""
        key = metered.target, metered.is_dataset, metered.outputs
        if key not in self._usage_nodes:
            self._usage_nodes[key] = self._find_charged(metered)
        return self._usage_nodes[key]

    def explain_unmatched(self, names: Sequence[str]) -> str:
        """Explain why usage under some names is not charged, with similar known names."""
        ambiguous = [name for name in names if name in self._ambiguous]
        unknown = [name for name in names if name not in self._ambiguous]
        reasons = []
        if unknown:
            listed = [f"{name}{self._suggestion(name)}" for name in few(unknown, _MAX_UNMATCHED)[0]]
            names_text = join_names(listed, _MAX_UNMATCHED, len(unknown))
            reasons.append(f"no dataset or job is named {names_text}")
        if ambiguous:
            reasons.append(f"several are named {join_names(ambiguous, _MAX_UNMATCHED)}")
        return (
            f"{'; '.join(reasons)}. Correct the names and import the usage again with --replace, "
            "or record their lineage: lumos lineage ingest PATH"
        )

    def _suggestion(self, name: str) -> str:
        # The store does not suggest jobs, and tables that are only known from lineage.
        others = (urn for urn in self._nodes.urns if urn not in self._nodes.datasets)
        known = {*self._store.unknown(name).nearest, *(urn.rpartition("/")[2] for urn in others)}
        similar = tuple(nearest(name, known, limit=1))
        return f" (did you mean '{similar[0]}'?)" if similar else ""

    def _find_charged(self, metered: MeteredUsage) -> tuple[int, ...]:
        name = metered.target
        if name in self._nodes.node_by_urn:
            return (self._nodes.node_by_urn[name],)
        if metered.is_dataset:
            return self._dataset(name)
        if (urn := self._jobs_by_name.get(name)) is not None:
            return (self._nodes.node_by_urn[urn],)
        steps = self._jobs_by_application.get(_normalize(name), ())
        if steps:
            return tuple(self._nodes.node_by_urn[urn] for urn in steps)
        if (node := self._jobs_by_urn.get(name)) is not None:
            return (node,)
        outputs = sorted(
            {node for location in metered.outputs for node in self._dataset_at(location)}
        )
        return (self._nodes.add_job(_job_urn(metered), outputs),) if outputs else ()

    def _dataset(self, name: str) -> tuple[int, ...]:
        """The dataset with this name, whether it was scanned or is only known from lineage.

        Unlike `find_urn`, it does not search for similar names: usage may have many unknown names.
        """
        try:
            urn = self._store.lookup(name)
        except AmbiguousName:
            self._ambiguous.add(name)
            return ()
        except InvalidUrn:
            return ()
        if urn is None:
            urns = self._store.lineage.find_by_name(name)
            urn = urns[0] if len(urns) == 1 else None
            self._ambiguous.update([name] if len(urns) > 1 else ())
        node = None if urn is None else self._nodes.node_by_urn.get(urn)
        return () if node is None else (node,)

    def _dataset_at(self, location: str) -> tuple[int, ...]:
        from lumos.lineage.reported_lineage import LocationReference, ResolutionMethod

        resolved = self._names.find(LocationReference(uri=location))
        is_known = (
            resolved.method is ResolutionMethod.LOCATION and resolved.urn in self._nodes.datasets
        )
        return (self._nodes.node_by_urn[resolved.urn],) if is_known else ()

    @cached_property
    def _names(self) -> "NameIndex":
        from lumos.lineage.name_index import load_name_index

        return load_name_index(self._settings, self._store)

    @cached_property
    def _jobs_by_name(self) -> dict[str, str]:
        """Jobs by unambiguous names, with and without their namespace."""
        urn_by_name: dict[str, str] = {}
        ambiguous: set[str] = set()
        for urn, job in self._nodes.jobs.items():
            for name in job_names(job):
                if urn_by_name.setdefault(name, urn) != urn:
                    ambiguous.add(name)
        self._ambiguous |= ambiguous
        return {name: urn for name, urn in urn_by_name.items() if name not in ambiguous}

    @cached_property
    def _jobs_by_urn(self) -> dict[str, int]:
        """Jobs that are only known from edges, by all unambiguous suffixes of their URNs."""
        node_by_name: dict[str, int] = {}
        ambiguous: set[str] = set()
        for node in np.flatnonzero(self._nodes.is_job).tolist():
            urn = self._nodes.urns[node]
            if urn in self._nodes.jobs:
                continue
            segments = urn.removeprefix(SCHEME).split("/")[1:]
            for start in range(len(segments)):
                name = "/".join(segments[start:])
                if node_by_name.setdefault(name, node) != node:
                    ambiguous.add(name)
        return {name: node for name, node in node_by_name.items() if name not in ambiguous}

    @cached_property
    def _jobs_by_application(self) -> dict[str, tuple[str, ...]]:
        """Jobs that are steps of one application, as in lineage from Spark."""
        urns_by_name: dict[str, dict[str, None]] = {}
        for urn, job in self._nodes.jobs.items():
            first, dot, _ = job.name.partition(".")
            parent = job.properties.get("parent", "").rpartition("/")[2]
            for name in (first if dot else "", parent):
                if normalized := _normalize(name):
                    urns_by_name.setdefault(normalized, {})[urn] = None
        return {name: tuple(urns) for name, urns in urns_by_name.items()}


def job_names(job: "Job") -> tuple[str, ...]:
    """The names that reporters use for a job."""
    namespace = job.properties.get("namespace")
    names = (job.urn, job.name)
    return (*names, f"{namespace}/{job.name}") if namespace else names


def _normalize(name: str) -> str:
    return _NOT_ALPHANUMERIC.sub("", name.lower())


def _job_urn(metered: MeteredUsage) -> str:
    if metered.target.startswith(SCHEME):
        return metered.target
    try:
        return str(Urn.of(metered.engine, (metered.target,)))
    except InvalidUrn:
        return str(Urn.of(_DEFAULT_ENGINE, (metered.target,)))
