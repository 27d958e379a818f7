"""Walks of ten hops among 1,000,000 edges in the store, on SQLite, in process and warm.

All figures are time of the processor: walks wait for nothing, and other work may go on beside them.
"""

import gc
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import text

from lumos.model.lineage import ColumnMapping, ColumnUse, Derivation, Edge, UseKind
from lumos.store import Database, Store

DATASETS = 250_000
EDGES = 1_000_000
LAYERS = 12
HOPS = 10
WALKS = 200
REPORTERS = 200
LISTED = 1000
_AT = datetime(2024, 1, 1, tzinfo=UTC)
# The walk as one statement, which comes to a node once for every length of a way to it.
_RECURSIVE = text(
    "WITH RECURSIVE walk(node, depth) AS ("
    " SELECT id, 0 FROM lineage_node WHERE urn = :urn"
    " UNION SELECT edge.downstream, depth + 1 FROM walk"
    " JOIN lineage_edge AS edge ON edge.upstream = walk.node WHERE depth < :hops)"
    " SELECT node.urn, min(depth) FROM walk JOIN lineage_node AS node ON node.id = walk.node"
    " GROUP BY node.id"
)
_Links = list[tuple[int, int]]


def measure() -> dict[str, Any]:
    """Milliseconds of a walk in an estate of domains, and in one where all hangs together."""
    return {
        "datasets": DATASETS,
        "edges": EDGES,
        "hops": HOPS,
        "domains": _measured(spread=0.0005, limit=None),
        "all_together": _measured(spread=1.0, limit=LISTED),
    }


def _measured(*, spread: float, limit: int | None) -> dict[str, Any]:
    chance = random.Random(7)
    links = _links(chance, spread)
    starts = [chance.randrange(DATASETS // LAYERS) for _ in range(WALKS)]
    with tempfile.TemporaryDirectory() as folder:
        database = Database.sqlite(Path(folder) / "lumos.db")
        store = Store.open(database, create=True)
        began = time.process_time()
        _fill(store, chance, links)
        filled = time.process_time() - began

        def walk(start: int) -> int:
            return store.lineage.walk(
                _urn(start), direction="downstream", depth=HOPS, limit=limit
            ).total

        def recursive(start: int) -> int:
            with database.reading() as connection:
                rows = connection.execute(_RECURSIVE, {"urn": _urn(start), "hops": HOPS})
                return len(rows.all())

        # The links of this measurement are no part of what is measured.
        gc.collect()
        gc.freeze()
        began = time.process_time()
        walk(starts[0])
        first = time.process_time() - began
        reached, walks = _times(walk, starts)
        in_one_statement, statements = _times(recursive, starts[:5])
        again = time.process_time()
        _report(store, 0, links, chance)
        again = time.process_time() - again
    plain = _plain_walk(links)
    gc.freeze()
    in_memory, floor = _times(plain, starts)
    gc.unfreeze()
    assert reached == in_memory
    assert in_one_statement == reached[:5]
    return {
        "fill_cpu_seconds": round(filled, 1),
        "one_reporter_again_cpu_ms": round(again * 1000, 1),
        "datasets_reached_median": int(statistics.median(reached)),
        "datasets_reached_most": max(reached),
        "first_walk_cpu_ms": round(first * 1000, 1),
        **_spread(walks),
        "recursive_sql_median_cpu_ms": round(statistics.median(statements) * 1000, 1),
        "dictionaries_in_memory_median_cpu_ms": round(statistics.median(floor) * 1000, 2),
        "times_memory": round(statistics.median(walks) / statistics.median(floor), 1),
    }


def _links(chance: random.Random, spread: float) -> _Links:
    """From each layer to the next; a small spread leaves ways within what belongs together."""
    size = DATASETS // LAYERS
    links = []
    for _ in range(EDGES):
        layer = chance.randrange(LAYERS - 1)
        place = chance.randrange(size)
        shifted = int(place + chance.gauss(0, spread) * size) % size
        links.append((layer * size + place, (layer + 1) * size + shifted))
    return links


def _urn(number: int) -> str:
    return f"lumos://warehouse/analytics/layer_{number % LAYERS}/dataset_{number:06}"


def _fill(store: Store, chance: random.Random, links: _Links) -> None:
    for reporter in range(REPORTERS):
        _report(store, reporter, links, chance)


def _report(store: Store, reporter: int, links: _Links, chance: random.Random) -> None:
    share = EDGES // REPORTERS
    some = links[reporter * share : (reporter + 1) * share]
    with store.transaction() as transaction:
        edges = [edge for link in some for edge in _edges(reporter, link, chance)]
        transaction.lineage.report(f"dbt:{reporter}", edges, at=_AT)


def _edges(reporter: int, link: tuple[int, int], chance: random.Random) -> Iterator[Edge]:
    columns = tuple(
        ColumnMapping(
            upstream=f"c{number}",
            downstream=f"c{chance.randrange(20)}",
            derivation=Derivation.IDENTITY,
            file=f"models/m{reporter}.sql",
            line=number,
        )
        for number in range(2)
    )
    use = ColumnUse(upstream="c9", usage=UseKind.JOIN, expression="a.c9 = b.c9", line=7)
    yield Edge(
        upstream=_urn(link[0]),
        downstream=_urn(link[1]),
        origin=f"dbt:{reporter}",
        at=_AT,
        columns=columns,
        uses=(use,),
    )


def _plain_walk(links: _Links) -> Callable[[int], int]:
    onward: dict[str, list[str]] = {}
    for before, after in links:
        onward.setdefault(_urn(before), []).append(_urn(after))

    def walk(start: int) -> int:
        seen = {_urn(start)}
        frontier = list(seen)
        for _ in range(HOPS):
            found = []
            for urn in frontier:
                for after in onward.get(urn, ()):
                    if after not in seen:
                        seen.add(after)
                        found.append(after)
            frontier = found
        return len(seen)

    return walk


def _times(walk: Callable[[int], int], starts: Sequence[int]) -> tuple[list[int], list[float]]:
    reached, taken = [], []
    for start in starts:
        began = time.process_time()
        reached.append(walk(start))
        taken.append(time.process_time() - began)
    return reached, taken


def _spread(taken: list[float]) -> dict[str, float]:
    ordered = sorted(taken)
    return {
        "walk_median_cpu_ms": round(statistics.median(taken) * 1000, 1),
        "walk_p95_cpu_ms": round(ordered[int(0.95 * len(ordered))] * 1000, 1),
        "walk_largest_cpu_ms": round(ordered[-1] * 1000, 1),
    }
