"""The costs of one period by dataset and job, with their names, teams, domains and tags."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lumos.cost.reports import CostRow, GroupBy, NodeKind
from lumos.cost.solver.attribution import Contributions, contributions
from lumos.cost.solver.savings import avoidable_costs
from lumos.cost.solver.topology import Adjacency
from lumos.model.catalog import Job
from lumos.model.cost import ADJUSTMENT, IDLE, SHARED, UNALLOCATED
from lumos.model.dataset import Owner, Ownership
from lumos.model.money import amount_of
from lumos.model.urn import SCHEME, Urn, display_names, name_in
from lumos.store import Store

if TYPE_CHECKING:
    from lumos.cost.inputs.graph import CostInputs
    from lumos.cost.solver.attribution import Attribution
    from lumos.cost.solver.graph import Bools, CostGraph, Integers


# In parentheses, to distinguish them from real names.
NO_LABEL: Final[Mapping[GroupBy, str]] = {
    "team": "(no owner)",
    "domain": "(no domain)",
    "platform": "(no platform)",
    "tag": "(no tag)",
}


class NodeLabels:
    """Names, owners, domains and tags of datasets and jobs, each loaded on first use."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def name(self, urn: str) -> str:
        """A short name, with a part of the path if several datasets have the same name."""
        if urn in self._jobs:
            return self._jobs[urn].name
        name = self._plain_name(urn)
        return self._distinct_names.get(urn, name)

    def _plain_name(self, urn: str) -> str:
        return self._datasets[urn][0] if urn in self._datasets else name_in(urn)

    def joined(self, by: GroupBy, urn: str) -> str:
        """The groups of a dataset or job, joined by commas."""
        return ", ".join(self.of(by, urn))

    def of(self, by: GroupBy, urn: str) -> tuple[str, ...]:
        """The teams, domains, platforms or tags of a dataset or job.

        A job without any has those of its outputs.
        """
        labels = self._own_labels(by, urn)
        if not labels and urn in self._jobs:
            outputs = self._jobs[urn].outputs
            labels = tuple(
                dict.fromkeys(label for output in outputs for label in self._own_labels(by, output))
            )
        return labels or (NO_LABEL[by],)

    def owners(self, urn: str) -> tuple[str, ...]:
        """All owners of a dataset or job, people and groups.

        A job without an owner has the owners of its outputs.
        """
        if urn in self._jobs:
            job = self._jobs[urn]
            if job.owner:
                return (job.owner,)
            return _distinct(name for each in job.outputs for name in self.owners(each))
        ownership = self._ownership.get(urn)
        return _distinct(each.name for each in ownership.owners) if ownership else ()

    def run_days(self, urn: str) -> list[date]:
        """The days on which a job is known to have completed."""
        job = self._jobs.get(urn)
        runs = () if job is None else job.runs
        return [each.started_at.date() for each in runs if each.state == "COMPLETE"]

    def tagged(self, tag: str) -> tuple[str, ...]:
        folded = tag.casefold()
        return tuple(
            urn
            for urn, each in self._governance.items()
            if any(name.casefold() == folded for name in each.tags)
        )

    @property
    def tags(self) -> frozenset[str]:
        """All tags in use."""
        return frozenset(name for each in self._governance.values() for name in each.tags)

    def _own_labels(self, by: GroupBy, urn: str) -> tuple[str, ...]:
        job = self._jobs.get(urn)
        match by:
            case "platform":
                if job is not None:
                    return (job.platform,)
                if urn in self._datasets:
                    return (self._datasets[urn][1],)
                return (Urn.parse(urn).platform,) if urn.startswith(SCHEME) else ()
            case "team":
                if job is not None:
                    return tuple(filter(None, [job.owner]))
                return _teams(self._ownership.get(urn))
            case "domain":
                documentation = self._documentation.get(urn)
                return tuple(filter(None, [documentation and documentation.domain]))
            case "tag":
                governance = self._governance.get(urn)
                return _distinct(governance.tags) if governance else ()

    @cached_property
    def _datasets(self) -> dict[str, tuple[str, str]]:
        locations = self._store.dataset_locations()
        return {each.urn: (each.name, each.platform) for each in locations}

    @cached_property
    def _distinct_names(self) -> dict[str, str]:
        """The display names of datasets that share their name with others."""
        names = Counter(name for name, _ in self._datasets.values())
        shared = {urn: name for urn, (name, _) in self._datasets.items() if names[name] > 1}
        return display_names(shared, shared)

    @cached_property
    def _jobs(self) -> dict[str, Job]:
        return {job.urn: job for job in self._store.lineage.jobs()}

    @cached_property
    def _ownership(self) -> dict[str, Ownership]:
        """The owners of each dataset; for tables that were never scanned, from lineage reports."""
        reported = {
            urn: Ownership(owners=tuple(Owner(name=name) for name in names))
            for urn, names in self._store.lineage.owners().items()
        }
        return reported | self._store.aspects("ownership")

    @cached_property
    def _documentation(self) -> dict[str, Any]:
        return self._store.aspects("documentation")

    @cached_property
    def _governance(self) -> dict[str, Any]:
        return self._store.aspects("governance")


def _teams(ownership: Ownership | None) -> tuple[str, ...]:
    """The groups that own a dataset, or its users if no group does."""
    if ownership is None:
        return ()
    groups = _distinct(each.name for each in ownership.owners if each.kind == "group")
    return groups or _distinct(each.name for each in ownership.owners)


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


_NO_LINEAGE: Final = (
    "No lineage is known, so no upstream cost is attributed. Import lineage with: lumos lineage "
    "ingest PATH"
)


class CostLedger:
    """The costs of a period and their attribution along lineage, in micro-units.

    Docstrings give the shapes of arrays: k is the number of cost types, n the number of nodes.
    """

    def __init__(
        self,
        inputs: "CostInputs",
        attribution: "Attribution",
        labels: NodeLabels,
        method: str,
        *,
        today: date,
    ) -> None:
        self.inputs = inputs
        self.attribution = attribution
        self.labels = labels
        self.method = method
        self._today = today
        self._contributions: dict[int, Contributions] = {}
        self.graph: CostGraph = inputs.graph

    @cached_property
    def node_by_urn(self) -> dict[str, int]:
        """The node number of each dataset and job."""
        return {urn: number for number, urn in enumerate(self.graph.urns)}

    @cached_property
    def own(self) -> "Integers":
        """[n] own cost, summed over cost types."""
        return np.asarray(self.graph.costs.sum(axis=0))

    @cached_property
    def totals(self) -> "Integers":
        """[n] total (loaded) cost, including upstream cost, summed over cost types."""
        return np.asarray(self.attribution.loaded.sum(axis=0))

    @cached_property
    def retained(self) -> "Integers":
        """[n] cost that is not passed on downstream, summed over cost types."""
        return np.asarray(self.attribution.retained.sum(axis=0))

    @cached_property
    def needed(self) -> "Bools":
        """[n] whether an end use depends on the node."""
        upstream_adjacency = Adjacency(self.graph.nodes, self.graph.downstream, self.graph.upstream)
        return np.asarray(upstream_adjacency.origins(np.flatnonzero(self.graph.live)) >= 0)

    @property
    def unattributed(self) -> dict[str, int]:
        """Nonzero costs that are not attributed along lineage, by reserved name."""
        amounts = {
            UNALLOCATED: self.inputs.unallocated,
            IDLE: self.inputs.idle,
            SHARED: self.inputs.shared,
            ADJUSTMENT: self.inputs.adjustment,
        }
        return {name: amount for name, amount in amounts.items() if amount}

    @property
    def spent(self) -> int:
        """The total spend, including unattributed costs."""
        return int(self.own.sum()) + sum(self.unattributed.values())

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on the completeness of the figures of this period."""
        remarks = list(self.inputs.remarks)
        if not self.graph.edges:
            remarks.append(_NO_LINEAGE)
        if self.inputs.period.last >= self._today:
            remarks.append(
                f"{self.inputs.period.name} is not over: storage is included for the whole period, "
                "compute only as far as it is metered."
            )
        return tuple(remarks)

    @property
    def avoidable(self) -> "Bools | None":
        """[n] whether removing a node ends its own cost; None if this is true for all nodes."""
        return self.inputs.avoidable

    def saved_by(self, nodes: "Integers") -> "Integers":
        """[k, len(nodes)] the monthly savings if these nodes are removed."""
        costs = avoidable_costs(self.graph, self.avoidable)[:, nodes]
        if self.inputs.period.months == 1:
            return np.asarray(costs)
        monthly = [[self.monthly(int(each)) for each in row] for row in costs]
        return np.array(monthly, dtype=np.int64).reshape(costs.shape)

    @property
    def assumed(self) -> int:
        """The part of the spend that is split equally because usage is unknown."""
        return int(self.attribution.assumed_amount.sum())

    def monthly(self, amount: int) -> int:
        """An amount of the period converted to one month."""
        monthly: Fraction = amount / self.inputs.period.months
        return round(monthly)

    def kind(self, node: int) -> NodeKind:
        """Whether a node is a dataset or a job."""
        return "job" if self.graph.is_job[node] else "dataset"

    def urn(self, node: int) -> str:
        return self.graph.urns[node]

    def name(self, node: int) -> str:
        """The display name of a node."""
        return self.labels.name(self.urn(node))

    def team(self, node: int) -> str:
        """The teams that own a node, joined by commas."""
        return self.labels.joined("team", self.urn(node))

    def is_verified(self, node: int) -> bool:
        """Whether usage data covers this node, so that missing reads mean that it is unused."""
        return self.urn(node) not in self.inputs.unverified

    def by_type(self, amounts: Iterable[Any]) -> dict[str, Decimal]:
        """Nonzero amounts by cost type."""
        amounts_by_type = zip(self.graph.types, amounts, strict=True)
        return {type: amount_of(int(amount)) for type, amount in amounts_by_type if amount}

    def row(self, node: int) -> CostRow:
        """A node with its costs as a report row."""
        return CostRow(
            urn=self.urn(node),
            name=self.name(node),
            kind=self.kind(node),
            team=self.team(node),
            domain=self.labels.joined("domain", self.urn(node)),
            platform=self.labels.joined("platform", self.urn(node)),
            tag=self.labels.joined("tag", self.urn(node)),
            own=amount_of(int(self.own[node])),
            total=amount_of(int(self.totals[node])),
            retained=amount_of(int(self.retained[node])),
            by_type=self.by_type(self.attribution.loaded[:, node]),
        )

    def contributions_to(self, node: int) -> Contributions:
        """The contribution of each upstream node to the total cost of a node."""
        if node not in self._contributions:
            self._contributions[node] = contributions(self.graph, self.attribution, node)
        return self._contributions[node]

    def job_costs(self, node: int) -> "Integers":
        """[k] the part of the own cost of a dataset's writing jobs that is attributed to it."""
        edges = np.flatnonzero(self.graph.downstream == node)
        upstream = self.graph.upstream[edges]
        is_writer = self.graph.is_job[upstream] & (upstream != node)
        edges, upstream = edges[is_writer], upstream[is_writer]
        shares = self.attribution.shares.values[:, edges]
        attributed = (self.graph.costs[:, upstream] * shares).sum(axis=1)
        return np.asarray(np.rint(attributed), np.int64)

    def with_writers(self, nodes: Iterable[int]) -> list[int]:
        """The nodes, and the jobs that write only to them and so are removed with them."""
        is_chosen = np.zeros(self.graph.nodes, dtype=np.bool_)
        is_chosen[list(nodes)] = True
        is_flow = self.graph.upstream != self.graph.downstream
        upstream, downstream = self.graph.upstream[is_flow], self.graph.downstream[is_flow]
        writes_chosen = np.bincount(upstream, is_chosen[downstream], minlength=self.graph.nodes) > 0
        writes_other = np.bincount(upstream, ~is_chosen[downstream], minlength=self.graph.nodes) > 0
        return [
            int(each)
            for each in np.flatnonzero(
                is_chosen | (self.graph.is_job & writes_chosen & ~writes_other)
            )
        ]

    def cycle_of(self, node: int) -> tuple[str, ...]:
        """The URNs of the lineage cycle that a node is part of, or nothing."""
        for component in self.attribution.components:
            nodes = [int(each) for each in component.members]
            if node in nodes:
                return tuple(self.urn(each) for each in nodes)
        return ()
