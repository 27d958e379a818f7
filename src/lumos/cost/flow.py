"""Which datasets and bands make the picture of how cost flows; jobs are part of what they write."""

from collections import defaultdict
from typing import Final

import numpy as np

from lumos.cost.ledger import Books
from lumos.cost.solver.graph import Floats
from lumos.rendering.flow import Band, Stop

# More than that is no picture that anybody understands at first sight.
MOST_STOPS: Final = 22


def estate_flow(books: Books, *, most: int = MOST_STOPS) -> tuple[list[Stop], list[Band]]:
    """How cost flows through the datasets that carry most."""
    kept = books.retained.astype(np.float64)
    return _flow(books, np.ones((len(books.graph.types), 1)), kept, most)


def flow_to(books: Books, node: int, *, most: int = MOST_STOPS) -> tuple[list[Stop], list[Band]]:
    """How cost comes to one dataset; only what arrives there."""
    made = books.made_of(node)
    arriving = np.zeros(books.attribution.loaded.shape)
    # What goes round in a cycle arrives again and again; here it counts when it first does.
    again = made.reach[:, made.nodes == node]
    arriving[:, made.nodes] = made.reach / np.where(again > 0, again, 1)
    kept = np.zeros(books.graph.nodes)
    kept[node] = books.retained[node]
    return _flow(books, arriving, kept, most)


def _flow(books: Books, arriving: Floats, kept: Floats, most: int) -> tuple[list[Stop], list[Band]]:
    graph, shares = books.graph, books.attribution.shares.values
    totals = (books.attribution.loaded * arriving).sum(axis=0)
    own = (graph.costs * arriving).sum(axis=0)
    wide = np.broadcast_to(arriving, books.attribution.loaded.shape)
    moving = np.flatnonzero(graph.upstream != graph.downstream)
    above, below = graph.upstream[moving], graph.downstream[moving]
    flows = np.zeros(len(moving))
    for row in range(len(graph.types)):
        loaded = books.attribution.loaded[row]
        flows += loaded[above] * shares[row, moving] * wide[row, below]
    # A job that keeps something, or that feeds jobs, is a stop of its own.
    passing = graph.is_job & (kept < 1)
    between_jobs = passing[above] & passing[below]
    passing[above[between_jobs]] = False
    passing[below[between_jobs]] = False
    candidates = np.flatnonzero(~passing & (totals > 0))
    order = candidates[np.lexsort((candidates, -totals[candidates]))]
    chosen = set(map(int, order[:most]))
    near = np.isin(above, list(chosen)) | np.isin(below, list(chosen))
    into: dict[int, list[tuple[int, float]]] = defaultdict(list)
    out_of: dict[int, list[tuple[int, float]]] = defaultdict(list)
    bands: dict[tuple[int, int], float] = defaultdict(float)
    direct = defaultdict(float, {node: float(own[node]) for node in chosen})
    for u, d, amount in zip(above[near], below[near], flows[near], strict=True):
        if passing[d]:
            into[int(d)].append((int(u), float(amount)))
        elif passing[u]:
            out_of[int(u)].append((int(d), float(amount)))
        elif u in chosen and d in chosen:
            bands[int(u), int(d)] += float(amount)
    for job, leaving in out_of.items():
        if totals[job] <= 0:
            continue
        for d, amount in leaving:
            portion = amount / float(totals[job])
            direct[d] += float(own[job]) * portion
            for u, arrives in into.get(job, ()):
                bands[u, d] += arrives * portion
    stops = [
        Stop(
            key=books.urn(node),
            name=books.name(node),
            team=books.team(node),
            total=round(float(totals[node])),
            direct=round(direct[node]),
            kept=round(float(kept[node])),
            unneeded=not books.needed[node],
        )
        for node in sorted(chosen)
    ]
    return stops, [Band(books.urn(u), books.urn(d), round(each)) for (u, d), each in bands.items()]
