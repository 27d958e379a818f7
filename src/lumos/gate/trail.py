"""The lines of SQL that derive the columns on the path of a change from each other."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TypeAlias

from lumos.gate.reports import GateLocation
from lumos.impact.reports import ImpactReport
from lumos.model.types import quoted_name
from lumos.store import Store

# Two consecutive steps of a path, each as urn#column.
Hop: TypeAlias = tuple[str, str]


def hop_locations(store: Store, reports: Iterable[ImpactReport]) -> Mapping[Hop, GateLocation]:
    """The lines of SQL that derive the columns of all paths in some reports."""
    hops = {
        hop
        for report in reports
        for row in report.downstream
        for reason in row.reasons
        for hop in pairwise(reason.path)
    }
    links = {(before.partition("#")[0], after.partition("#")[0]) for before, after in hops}
    found = {}
    for edge in store.lineage.between(links):
        for mapping in edge.columns:
            if mapping.file is not None:
                before = f"{edge.upstream}#{quoted_name(mapping.upstream)}"
                after = f"{edge.downstream}#{quoted_name(mapping.downstream)}"
                location = GateLocation(file=mapping.file, line=mapping.line)
                found[before, after] = location
    return {hop: found[hop] for hop in hops & found.keys()}
