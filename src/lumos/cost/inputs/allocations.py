"""Shares of cost that people allocated to edges, by cost type."""

from collections.abc import Sequence

import numpy as np

from lumos.config import Settings
from lumos.config.costs import Allocation
from lumos.config.prices import allocations_of
from lumos.cost.inputs.names import Finder
from lumos.cost.inputs.nodes import Wiring
from lumos.cost.solver.graph import Floats
from lumos.errors import MisuseError


def explicit_shares(
    settings: Settings, wiring: Wiring, finder: Finder, types: Sequence[str]
) -> Floats:
    """[k, m] the allocated shares, or [1, m] without any; nan where there is none."""
    allocations = allocations_of(settings)
    edges = len(wiring.upstream)
    if not allocations:
        return np.full((1, edges), np.nan)
    shares = np.full((len(types), edges), np.nan)
    for each in allocations:
        edge = _edge(each, wiring, finder)
        for row, name in enumerate(types):
            share = each.share if each.share is not None else each.shares.get(name)  # type: ignore[call-overload]
            if share is None:
                continue
            if not np.isnan(shares[row, edge]):
                raise MisuseError(
                    f"The share of {each.upstream} for {each.downstream} is allocated twice. Keep "
                    "one of the allocations in the configuration."
                )
            shares[row, edge] = share
    _refuse_more_than_all(shares, wiring, types)
    return shares


def _edge(allocation: Allocation, wiring: Wiring, finder: Finder) -> int:
    """The edge that is meant; the way through the only job between two datasets is one."""
    start, end = (
        finder.configured(each, "An allocation")
        for each in (allocation.upstream, allocation.downstream)
    )
    edge = wiring.edge(start, end)
    if edge is not None:
        return edge
    between = [job for job in wiring.readers(start) if end in wiring.readers(job)]
    jobs = [job for job in between if wiring.is_job[job]]
    if len(jobs) == 1 and wiring.readers(jobs[0]) == [end]:
        found = wiring.edge(start, jobs[0])
        assert found is not None
        return found
    names = f"{allocation.upstream} to {allocation.downstream}"
    if not jobs:
        raise MisuseError(
            f"A share is allocated from {names}, but there is no such lineage. Add it with: lumos "
            f"lineage add {allocation.upstream} {allocation.downstream}"
        )
    listed = ", ".join(wiring.urns[job] for job in jobs)
    raise MisuseError(
        f"A share is allocated from {names}, but {listed} between them "
        f"{'writes' if len(jobs) == 1 else 'write'} other datasets too. Allocate shares to and "
        "from the jobs instead."
    )


def _refuse_more_than_all(shares: Floats, wiring: Wiring, types: Sequence[str]) -> None:
    for row, name in enumerate(types):
        told = ~np.isnan(shares[row])
        sums = np.bincount(wiring.upstream[told], shares[row][told], minlength=len(wiring.urns))
        for node in np.flatnonzero(sums > 1 + 1e-9):
            raise MisuseError(
                f"The shares of {wiring.urns[node]} add up to {sums[node]:g} for {name}; at most 1 "
                "can be allocated. Lower some allocations in the configuration."
            )
