"""Attribution and savings of 1,000,000 datasets with 3,000,000 edges, beside a bare solve.

All figures are time of the processor: nothing waits here, and other work may go on beside it.
"""

import gc
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from lumos.cost.solver.attribution import attribute
from lumos.cost.solver.graph import CostGraph, Floats, Integers, unread_nodes
from lumos.cost.solver.retirement import plan_retirement
from lumos.cost.solver.savings import savings_of_all
from lumos.cost.solver.shares import compute_shares

DATASETS = 1_000_000
EDGES = 3_000_000
LAYERS = 20
TYPES = ("storage", "compute", "egress", "other")
ROUNDS = 5
# Of many edges there and back, a sixth of all datasets become one component.
CYCLES = {"acyclic": 0, "some_cycles": 1000, "one_large_component": 50_000}


def measure() -> dict[str, Any]:
    """Seconds for graphs with and without cycles, each in a process of its own."""
    found: dict[str, Any] = {"datasets": DATASETS, "edges": EDGES, "types": len(TYPES)}
    for name, cycles in CYCLES.items():
        command = [sys.executable, "-m", "benchmarks.cost", str(cycles)]
        done = subprocess.run(command, capture_output=True, check=True)
        found[name] = msgspec.json.decode(done.stdout)
    found["model_file"] = _model_file()
    return found


def estate(cycles: int) -> CostGraph:
    """Layers of datasets that read from any layer before; some edges are there in both ways."""
    chance = np.random.default_rng(7)
    layer = np.sort(chance.integers(0, LAYERS, DATASETS))
    first = np.searchsorted(layer, np.arange(LAYERS))
    downstream = chance.integers(first[1], DATASETS, EDGES - cycles)
    upstream = (chance.random(EDGES - cycles) * first[layer[downstream]]).astype(np.int64)
    back = chance.choice(EDGES - cycles, cycles, replace=False)
    upstream, downstream = (
        np.concatenate([upstream, downstream[back]]),
        np.concatenate([downstream, upstream[back]]),
    )
    names = chance.permutation(DATASETS)
    pairs = np.unique(names[upstream] * DATASETS + names[downstream])
    chance.shuffle(pairs)
    upstream, downstream = pairs // DATASETS, pairs % DATASETS
    return CostGraph(
        urns=range(DATASETS),  # type: ignore[arg-type]
        types=TYPES,
        is_job=np.zeros(DATASETS, dtype=np.bool_),
        costs=chance.integers(0, 1_000_000_000, (len(TYPES), DATASETS)),
        live=unread_nodes(DATASETS, upstream, downstream),
        upstream=upstream,
        downstream=downstream,
        explicit=np.full((1, len(pairs)), np.nan),
        weights=chance.integers(1, 10**9, (len(TYPES), len(pairs))).astype(np.float64),
        last_read=np.full(len(pairs), np.nan),
    )


def bare_solve(upstream: Integers, downstream: Integers, share: Floats, own: Floats) -> Floats:
    """One cost type, shares given: peeled level by level, each pushed to the next with `add.at`."""
    nodes = len(own)
    order = np.argsort(upstream, kind="stable")
    target, share = downstream[order], share[order]
    starts = np.concatenate(([0], np.cumsum(np.bincount(upstream, minlength=nodes))))
    waiting = np.bincount(downstream, minlength=nodes)
    loaded = own.copy()
    frontier = np.flatnonzero(waiting == 0)
    while len(frontier):
        count = starts[frontier + 1] - starts[frontier]
        ends = np.cumsum(count)
        edges = np.repeat(starts[frontier] - ends + count, count) + np.arange(ends[-1])
        reached = target[edges]
        np.add.at(loaded, reached, np.repeat(loaded[frontier], count) * share[edges])
        np.subtract.at(waiting, reached, 1)
        fresh = np.zeros(nodes, dtype=np.bool_)
        fresh[reached[waiting[reached] == 0]] = True
        frontier = np.flatnonzero(fresh)
    return loaded


def _measured(cycles: int) -> dict[str, Any]:
    graph = estate(cycles)
    divided = compute_shares(graph, "lineage_weighted").values[0]
    own = graph.costs[0].astype(np.float64)
    floors, solves = [], []
    for _ in range(ROUNDS if cycles < DATASETS // 100 else 1):
        floors.append(_seconds(lambda: bare_solve(graph.upstream, graph.downstream, divided, own)))
        solves.append(_seconds(lambda: attribute(graph)))
    floor, solve = statistics.median(floors), statistics.median(solves)
    components = attribute(graph).components
    return {
        "bare_solve": round(floor, 3),
        "attribution": round(solve, 3),
        "times_bare_solve": round(solve / floor, 2),
        "savings_of_all": round(_seconds(lambda: savings_of_all(graph)), 2),
        "retirement_of_10": round(_seconds(lambda: plan_retirement(graph, 10)), 2),
        "components": len(components),
        "largest_component": max((len(each.members) for each in components), default=0),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def _model_file() -> dict[str, Any]:
    """`lumos cost model` on a file of all that, from start to exit."""
    with tempfile.TemporaryDirectory() as folder:
        file, answer = Path(folder) / "model.json", Path(folder) / "answer.json"
        # Its own process, for what this one holds would count as the other's memory.
        subprocess.run([sys.executable, "-m", "benchmarks.cost", str(file)], check=True)
        command = [sys.executable, "-m", "lumos", "cost", "model", str(file), "--json"]
        with answer.open("wb") as stream:
            process = subprocess.Popen(command, stdout=stream)
            _, _, used = os.wait4(process.pid, 0)
        return {
            "megabytes": file.stat().st_size // 1_000_000,
            "seconds": round(used.ru_utime + used.ru_stime, 1),
            "peak_mb": used.ru_maxrss // 1024,
        }


def _write(file: Path) -> None:
    graph = estate(CYCLES["some_cycles"])
    urns = [f"lumos://lake/sales/table_{node:07}" for node in range(graph.nodes)]
    costs = zip(urns, *(graph.costs / 1_000_000).tolist(), strict=True)
    pairs = zip(graph.upstream.tolist(), graph.downstream.tolist(), strict=True)
    with file.open("wb") as stream:
        stream.write(b'{"datasets":')
        stream.write(
            msgspec.json.encode(
                [{"urn": urn, "costs": dict(zip(TYPES, own, strict=True))} for urn, *own in costs]
            )
        )
        stream.write(b',"edges":')
        edges = [
            {"from": urns[at], "to": urns[to], "bytes": int(weight)}
            for (at, to), weight in zip(pairs, graph.weights[0], strict=True)
        ]
        stream.write(msgspec.json.encode(edges) + b"}")


def _seconds(work: Callable[[], object]) -> float:
    gc.collect()
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    if sys.argv[1].isdigit():
        sys.stdout.buffer.write(msgspec.json.encode(_measured(int(sys.argv[1]))))
    else:
        _write(Path(sys.argv[1]))
