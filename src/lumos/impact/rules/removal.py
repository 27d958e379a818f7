"""What it does that a dataset goes as a whole."""

from lumos.impact.rules.downstream import Downstream
from lumos.impact.rules.ordering import Graph
from lumos.impact.rules.recommendations import name_of, recommendations
from lumos.impact.rules.values import Coverage, DatasetImpact, Impact, Reason
from lumos.impact.rules.verdicts import BREAKING


def impact_of_removal(urn: str, downstream: Downstream) -> Impact:
    """Everything that is made from a dataset breaks when it goes."""
    graph = Graph(urn, downstream.links(urn))
    order = tuple(sorted(graph.rank.keys() - {urn}, key=graph.rank.__getitem__))
    found = [
        DatasetImpact(
            urn=each,
            verdict=BREAKING,
            distance=graph.distance[each],
            owners=tuple(downstream.owners(each)),
            reasons=(_reason(urn, graph, each),),
        )
        for each in order
    ]
    found.sort(key=lambda each: (each.distance, each.urn))
    return Impact(
        urn=urn,
        changes=(),
        downstream=tuple(found),
        recommendations=recommendations((), found, order, is_chain=graph.has_chain(order)),
        coverage=Coverage(datasets=len(found), determined=len(found)),
        order=order,
    )


def _reason(urn: str, graph: Graph, dataset: str) -> Reason:
    if urn in graph.parents[dataset]:
        return Reason(text=f"reads {name_of(urn)}, which goes", verdict=BREAKING)
    parent = min(graph.parents[dataset], key=lambda each: graph.distance.get(each, len(graph.rank)))
    return Reason(text=f"is made from {name_of(parent)}, which breaks", verdict=BREAKING)
