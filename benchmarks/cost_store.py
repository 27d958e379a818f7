"""Costs of 1,000,000 datasets with 3,000,000 edges from a store in SQLite, in one process."""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from sqlalchemy import Table, create_engine

from benchmarks.cost import CYCLES, DATASETS, estate
from lumos.config import load
from lumos.cost.inputs.graph import build_inputs
from lumos.cost.solver.attribution import attribute
from lumos.cost.solver.graph import CostGraph
from lumos.cost.solver.savings import savings_of_all
from lumos.model.cost import CostType, MeteredUsage
from lumos.model.period import period_of
from lumos.store import Database, Store, tables

METERED = 100_000
READ = 300_000
AT = datetime(2024, 1, 10, tzinfo=UTC)
END = datetime(2024, 1, 11, tzinfo=UTC)
TOGETHER = 50_000
CONFIG = "cost_calculation: {storage_pricing: {aws_s3: {standard: 0.023, glacier: 0.004}}}"


def measure() -> dict[str, Any]:
    """Seconds of the processor and the most memory: loading, attribution, savings of all."""
    with tempfile.TemporaryDirectory() as folder:
        for step in ("build", "compute"):
            command = [sys.executable, "-m", "benchmarks.cost_store", step, folder]
            done = subprocess.run(command, capture_output=True, check=True)
        found: dict[str, Any] = msgspec.json.decode(done.stdout)
        return found


def build(folder: Path) -> None:
    """A store as scans, lineage, query logs and meters would leave it."""
    graph = estate(CYCLES["some_cycles"])
    database = folder / "lumos.db"
    Store.open(Database.sqlite(database), create=True)
    urns = [f"lumos://s3/lake/sales/table_{node:07}" for node in range(DATASETS)]
    with create_engine(f"sqlite:///{database}").begin() as connection:
        # Indexes of millions of rows in no order stay in memory while they grow.
        connection.exec_driver_sql("PRAGMA cache_size = -2000000")

        def fill(table: Table, rows: Iterable[dict[str, Any]]) -> None:
            remaining = iter(rows)
            while some := list(islice(remaining, TOGETHER)):
                connection.execute(table.insert(), some)

        fill(tables.dataset, map(_dataset, urns))
        fill(tables.storage_size, _sizes(urns))
        fill(tables.lineage_node, ({"id": n, "urn": urn} for n, urn in enumerate(urns, start=1)))
        fill(tables.lineage_reporter, [{"id": 1, "name": "manual", "reported_at": AT}])
        fill(tables.lineage_edge, _edges(graph))
        fill(tables.cost_meter, _meters(urns))
        fill(tables.usage_reads, _reads(urns))


def compute(folder: Path) -> dict[str, Any]:
    """All that a report on costs is made of."""
    file = folder / "lumos.yaml"
    file.write_text(CONFIG)
    store = Store.open(Database.sqlite(folder / "lumos.db"))
    moments = [time.process_time()]
    january = period_of("2024-01", today=date.max)
    inputs = build_inputs(store, load(file, environment={}), january)
    moments.append(time.process_time())
    attribution = attribute(inputs.graph)
    moments.append(time.process_time())
    saved = savings_of_all(inputs.graph)
    moments.append(time.process_time())
    assert attribution.retained.sum() == inputs.graph.costs.sum()
    assert len(saved) == inputs.graph.nodes
    loading, attributing, saving = np.diff(moments).round(1).tolist()
    return {
        "nodes": inputs.graph.nodes,
        "edges": inputs.graph.edges,
        "types": len(inputs.graph.types),
        "loading": loading,
        "attribution": attributing,
        "savings_of_all": saving,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def _dataset(urn: str) -> dict[str, Any]:
    return {
        "urn": urn, "name": urn.rpartition("/")[2], "platform": "s3", "format": "parquet",
        "source": "s3:lake", "state": "live", "cloud_version": "S-1", "schema_version": "1.0.0",
        "schema_hash": None, "fingerprint": "f" * 32, "content": "1-0", "created_at": AT,
        "updated_at": AT,
    }  # fmt: skip


def _sizes(urns: Iterable[str]) -> Iterator[dict[str, Any]]:
    classes = msgspec.json.encode({"STANDARD": 10**10, "GLACIER": 10**11})
    for urn in urns:
        yield {"urn": urn, "day": AT.date(), "bytes": 11 * 10**10, "classes": classes}


def _edges(graph: CostGraph) -> Iterator[dict[str, Any]]:
    facts = {
        "reporter": 1, "job": 0, "type": "direct", "confidence": 1.0, "created_by": "manual",
        "first_seen": AT, "last_seen": AT, "body": None,
    }  # fmt: skip
    order = np.lexsort((graph.downstream, graph.upstream))
    pairs = zip(graph.upstream[order].tolist(), graph.downstream[order].tolist(), strict=True)
    for upstream, downstream in pairs:
        yield {"upstream": upstream + 1, "downstream": downstream + 1, **facts}


def _meters(urns: list[str]) -> Iterator[dict[str, Any]]:
    types: tuple[CostType, ...] = ("compute", "egress", "other")
    for number, urn in enumerate(urns[:: DATASETS // METERED]):
        metered = MeteredUsage(
            target=urn, is_dataset=True, started_at=AT, ended_at=END, type=types[number % 3],
            amount=1_234_567, currency="USD",
        )  # fmt: skip
        yield {
            "reporter": "table:bill", "key": metered.key, "target": urn, "started_at": AT,
            "ended_at": END, "body": msgspec.json.encode(metered), "recorded_at": AT,
        }  # fmt: skip


def _reads(urns: list[str]) -> Iterator[dict[str, Any]]:
    for number, urn in enumerate(urns[:READ]):
        yield {
            "urn": urn, "day": AT.date(), "reader": f"person{number % 500}", "reporter": "log:a",
            "sum_key": 0, "reads": 3, "bytes": 10**9, "rows": None, "last_read": AT,
            "columns": None,
        }  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1] == "build":
        build(Path(sys.argv[2]))
    else:
        sys.stdout.buffer.write(msgspec.json.encode(compute(Path(sys.argv[2]))))
