"""A store with datasets, jobs, reads and meters, built in a few words."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from lumos.config import Settings, load
from lumos.cost.inputs.graph import CostInputs, build_inputs
from lumos.model.catalog import Job
from lumos.model.cost import MeteredUsage
from lumos.model.dataset import Governance, Statistics
from lumos.model.lineage import Edge, JobRun
from lumos.model.period import Period, period_of
from lumos.store import Database, KnownDataset, Store
from lumos.store.usage import Reads

GB = 1024**3
AT = datetime(2024, 1, 10, tzinfo=UTC)
JANUARY = period_of("2024-01", today=date.max)


def at(day: int, hour: int = 0) -> datetime:
    """A moment of January 2024, or before or after it."""
    return datetime(2024, 1, 1, hour, tzinfo=UTC) + timedelta(days=day - 1)


def urn(name: str, platform: str = "s3") -> str:
    return f"lumos://{platform}/lake/{name}"


def job_urn(name: str) -> str:
    return f"lumos://spark/etl/{name}"


FIFTH = at(5)
HOUR = timedelta(hours=1)


class CostSample:
    """What is known, and what it costs."""

    def __init__(self, folder: Path, config: str = "") -> None:
        self.folder = folder
        self.store = Store.open(Database.sqlite(folder / "lumos.db"), create=True)
        self.settings: Settings = Settings()
        self.configure(config)

    def configure(self, text: str) -> None:
        file = self.folder / "lumos.yaml"
        file.write_text(text)
        self.settings = load(file, environment={})

    def dataset(self, name: str, size: int = 0, *, platform: str = "s3", day: int = 10, tags: tuple[str, ...] = (), **classes: int) -> str:  # fmt: skip
        known = KnownDataset(
            urn=urn(name, platform), name=name, platform=platform, format="parquet", source=f"{platform}:lake",
            state="live", cloud_version="S-1", schema_version="1.0.0", schema_hash=None, fingerprint="f" * 32,
            content="1-0", created_at=AT, updated_at=AT,
        )  # fmt: skip
        held = sum(classes.values()) or size
        with self.store.transaction() as transaction:
            transaction.save(known)
            statistics = Statistics(total_size_bytes=held, bytes_by_class=classes)
            transaction.save_aspect(known.urn, "statistics", statistics, writer="scan", at=at(day))
            if tags:
                transaction.save_aspect(
                    known.urn, "governance", Governance(tags=tags), writer="scan", at=at(day)
                )
        return known.urn

    def lineage(self, *edges: tuple[str, str] | tuple[str, str, str], jobs: tuple[Job, ...] = (), reporter: str = "a") -> None:  # fmt: skip
        reported_edges = [
            Edge(
                upstream=each[0],
                downstream=each[1],
                origin=reporter,
                at=AT,
                job=each[2] if len(each) > 2 else None,
            )
            for each in edges
        ]
        with self.store.transaction() as transaction:
            transaction.lineage.report(reporter, reported_edges, jobs=jobs, at=AT)

    def meter(self, target: str, first: datetime = FIFTH, last: datetime = FIFTH + HOUR, *, reporter: str = "spark", **facts: Any) -> None:  # fmt: skip
        facts = {"engine": "spark", "run": f"{target}-{first}", **facts}
        if "amount" not in facts:
            facts = {"quantities": {"core_hour": Decimal(10)}, **facts}
        with self.store.transaction() as transaction:
            metered = MeteredUsage(target=target, started_at=first, ended_at=last, **facts)
            transaction.costs.add_usage(reporter, [metered], at=AT)

    def read(self, dataset: str, reader: str, *, day: int = 5, times: int = 1, size: int | None = None, rows: int | None = None) -> None:  # fmt: skip
        with self.store.transaction() as transaction:
            moment = at(day, 12)
            transaction.usage.add(
                "log:a", [Reads(dataset, moment.date(), reader, times, moment, size, rows)]
            )

    def inputs(self, period: Period = JANUARY, **supposed: Mapping[str, Any]) -> CostInputs:
        return build_inputs(self.store, self.settings, period, **supposed)


def job(name: str, *, inputs: tuple[str, ...] = (), outputs: tuple[str, ...] = (), runs: tuple[JobRun, ...] = (), **facts: Any) -> Job:  # fmt: skip
    return Job(
        urn=job_urn(name),
        name=name,
        platform="spark",
        inputs=inputs,
        outputs=outputs,
        runs=runs,
        **facts,
    )


def run(name: str, start: datetime, end: datetime | None, id: str = "") -> JobRun:
    return JobRun(
        run_id=id or str(start),
        job=job_urn(name),
        started_at=start,
        ended_at=end,
        state="COMPLETE" if end else "RUNNING",
    )


def costs(inputs: CostInputs, type: str = "storage") -> dict[str, Decimal]:
    """What each node costs by itself, of one type, as far as it costs anything."""
    row = inputs.graph.costs[inputs.graph.types.index(type)]
    return {
        name: Decimal(int(cost)) / 1_000_000
        for name, cost in zip(inputs.graph.urns, row, strict=True)
        if cost
    }


def edges(inputs: CostInputs) -> set[tuple[str, str]]:
    graph = inputs.graph
    return {
        (graph.urns[up], graph.urns[down])
        for up, down in zip(graph.upstream, graph.downstream, strict=True)
    }


def along(inputs: CostInputs, values: Any) -> dict[tuple[str, str], float]:
    """What is known of each edge."""
    graph = inputs.graph
    ends = zip(graph.upstream, graph.downstream, values, strict=True)
    return {
        (graph.urns[up], graph.urns[down]): float(value)
        for up, down, value in ends
        if value == value
    }


def live(inputs: CostInputs) -> set[str]:
    return {
        name for name, is_live in zip(inputs.graph.urns, inputs.graph.live, strict=True) if is_live
    }
