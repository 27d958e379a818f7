"""A period reckoned up: who costs what, with names, in micro-units."""

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lumos.cost.labels import Labels
from lumos.cost.reports import CostRow, Kind
from lumos.cost.solver.contributions import Contributions, contributions
from lumos.cost.solver.reach import Ways
from lumos.cost.solver.savings import avoidable_costs
from lumos.model.metering import ADJUSTMENT, IDLE, SHARED, UNALLOCATED
from lumos.model.money import amount_of

if TYPE_CHECKING:
    from lumos.cost.inputs.graph import Inputs
    from lumos.cost.solver.attribution import Attribution
    from lumos.cost.solver.graph import Bools, CostGraph, Integers

_NO_LINEAGE: Final = (
    "No lineage is known, so no upstream cost is attributed. Import lineage with: lumos lineage "
    "ingest PATH"
)


class Books:
    """What was spent in a period, and where lineage carries it."""

    def __init__(
        self,
        inputs: "Inputs",
        attribution: "Attribution",
        labels: Labels,
        method: str,
        *,
        today: date,
    ) -> None:
        self.inputs = inputs
        self.attribution = attribution
        self.labels = labels
        self.method = method
        self._today = today
        self._made: dict[int, Contributions] = {}
        self.graph: CostGraph = inputs.graph

    @cached_property
    def places(self) -> dict[str, int]:
        """The number of each dataset and job."""
        return {urn: number for number, urn in enumerate(self.graph.urns)}

    @cached_property
    def own(self) -> "Integers":
        """[n] own cost, all types together."""
        return np.asarray(self.graph.costs.sum(axis=0))

    @cached_property
    def totals(self) -> "Integers":
        """[n] loaded cost, all types together; never added up."""
        return np.asarray(self.attribution.loaded.sum(axis=0))

    @cached_property
    def retained(self) -> "Integers":
        """[n] what nothing downstream carries on, all types together."""
        return np.asarray(self.attribution.retained.sum(axis=0))

    @cached_property
    def needed(self) -> "Bools":
        """[n] whether some end use needs it."""
        against = Ways(self.graph.nodes, self.graph.downstream, self.graph.upstream)
        return np.asarray(against.origins(np.flatnonzero(self.graph.live)) >= 0)

    @property
    def beside(self) -> dict[str, int]:
        """What lineage does not carry, as far as there is any."""
        named = {
            UNALLOCATED: self.inputs.unallocated,
            IDLE: self.inputs.idle,
            SHARED: self.inputs.shared,
            ADJUSTMENT: self.inputs.adjustment,
        }
        return {name: amount for name, amount in named.items() if amount}

    @property
    def spent(self) -> int:
        """All that was spent, what lineage does not carry included."""
        return int(self.own.sum()) + sum(self.beside.values())

    @property
    def remarks(self) -> tuple[str, ...]:
        """The limits of all figures of the period."""
        told = list(self.inputs.remarks)
        if not self.graph.edges:
            told.append(_NO_LINEAGE)
        if self.inputs.period.last >= self._today:
            told.append(
                f"{self.inputs.period.name} is not over: storage is counted for the whole period, "
                "compute only as far as it is metered."
            )
        return tuple(told)

    @property
    def avoidable(self) -> "Bools | None":
        """Which own costs end with what they are spent on; nothing where all do."""
        return self.inputs.avoidable

    def saved_by(self, nodes: "Integers") -> "Integers":
        """[k, len(nodes)] what the end of some nodes saves in a month."""
        costs = avoidable_costs(self.graph, self.avoidable)[:, nodes]
        if self.inputs.period.months == 1:
            return np.asarray(costs)
        monthly = [[self.monthly(int(each)) for each in row] for row in costs]
        return np.array(monthly, dtype=np.int64).reshape(costs.shape)

    @property
    def assumed(self) -> int:
        """How much of what was spent went along an equal split for want of usage."""
        return int(self.attribution.assumed_amount.sum())

    def monthly(self, amount: int) -> int:
        """An amount of the period as that of one month."""
        found: Fraction = amount / self.inputs.period.months
        return round(found)

    def kind(self, node: int) -> Kind:
        """Whether a node is a dataset or a job."""
        return "job" if self.graph.is_job[node] else "dataset"

    def urn(self, node: int) -> str:
        """The URN of a node."""
        return self.graph.urns[node]

    def name(self, node: int) -> str:
        """The short name of a node."""
        return self.labels.name(self.urn(node))

    def team(self, node: int) -> str:
        """Whose a node is."""
        return self.labels.team(self.urn(node))

    def is_verified(self, node: int) -> bool:
        """Whether readers of a node would be known."""
        return self.urn(node) not in self.inputs.unverified

    def by_type(self, amounts: Iterable[Any]) -> dict[str, Decimal]:
        """Amounts by cost type, without those that are nothing."""
        named = zip(self.graph.types, amounts, strict=True)
        return {type: amount_of(int(amount)) for type, amount in named if amount}

    def row(self, node: int) -> CostRow:
        """A node with its costs."""
        return CostRow(
            urn=self.urn(node),
            name=self.name(node),
            kind=self.kind(node),
            team=self.team(node),
            own=amount_of(int(self.own[node])),
            total=amount_of(int(self.totals[node])),
            retained=amount_of(int(self.retained[node])),
            by_type=self.by_type(self.attribution.loaded[:, node]),
        )

    def made_of(self, node: int) -> Contributions:
        """What the loaded cost of a node is made of."""
        if node not in self._made:
            self._made[node] = contributions(self.graph, self.attribution, node)
        return self._made[node]

    def jobs_of(self, node: int) -> "Integers":
        """[k] what the jobs that write a dataset cost by themselves, as far as it carries them."""
        edges = np.flatnonzero(self.graph.downstream == node)
        above = self.graph.upstream[edges]
        writing = self.graph.is_job[above] & (above != node)
        edges, above = edges[writing], above[writing]
        shares = self.attribution.shares.values[:, edges]
        carried = (self.graph.costs[:, above] * shares).sum(axis=1)
        return np.asarray(np.rint(carried), np.int64)

    def with_writers(self, nodes: Iterable[int]) -> list[int]:
        """Some nodes, and the jobs that write nothing but these: who ends a dataset ends them."""
        chosen = np.zeros(self.graph.nodes, dtype=np.bool_)
        chosen[list(nodes)] = True
        written = self.graph.upstream != self.graph.downstream
        above, below = self.graph.upstream[written], self.graph.downstream[written]
        writes_one = np.bincount(above, chosen[below], minlength=self.graph.nodes) > 0
        writes_other = np.bincount(above, ~chosen[below], minlength=self.graph.nodes) > 0
        return [
            int(each)
            for each in np.flatnonzero(chosen | (self.graph.is_job & writes_one & ~writes_other))
        ]

    def cycle_of(self, node: int) -> tuple[str, ...]:
        """The cycle that a node is in, or nothing."""
        for component in self.attribution.components:
            nodes = [int(each) for each in component.members]
            if node in nodes:
                return tuple(self.urn(each) for each in nodes)
        return ()
