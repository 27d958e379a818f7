"""A web shop whose data costs money: a lake, the jobs that fill it, who reads it, what they used.

The files are as large as those of a real shop and take no room: between the rows and the footer of
each lies a hole. Only footers are read.
"""

import csv
import json
import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

GB = 1024**3


class Dataset(NamedTuple):
    """A folder of the lake: how large it is, whose it is and which columns it has."""

    path: str
    size_gb: int
    team: str
    domain: str
    columns: tuple[str, ...]
    tags: tuple[str, ...] = ()


class Job(NamedTuple):
    """A job that runs each day: core hours of one run, what it reads (GB) and writes."""

    name: str
    core_hours: float
    reads: dict[str, int]
    writes: tuple[str, ...]
    runs_a_day: int = 1


DATASETS = (
    Dataset("raw/clicks", 92_000, "platform", "web", ("event_id", "user_id", "at", "url")),
    Dataset("raw/orders", 3_100, "platform", "sales", ("order_id", "user_id", "at", "amount")),
    Dataset("raw/customers", 140, "platform", "sales", ("user_id", "name", "email"), ("pii",)),
    Dataset("raw/ad_spend", 420, "marketing", "marketing", ("campaign_id", "day", "spend")),
    Dataset("raw/server_logs", 61_000, "sre", "operations", ("host", "at", "status", "path")),
    Dataset("staging/clicks_clean", 38_000, "data-eng", "web", ("event_id", "user_id", "page")),
    Dataset("staging/sessions", 17_500, "data-eng", "web", ("session_id", "user_id")),
    Dataset("core/users", 900, "data-eng", "sales", ("user_id", "email"), ("pii", "gold")),
    Dataset("core/orders", 2_600, "data-eng", "sales", ("order_id", "user_id", "net"), ("gold",)),
    Dataset("core/attribution", 1_900, "marketing", "marketing", ("order_id", "campaign_id")),
    Dataset("features/user_features", 8_400, "ml", "machine learning", ("user_id", "f1", "f2")),
    Dataset("ml/recommendations", 1_150, "ml", "machine learning", ("user_id", "item_id", "score")),
    Dataset("ml/churn_scores", 60, "ml", "machine learning", ("user_id", "churn")),
    Dataset("ml/fraud_scores", 85, "risk", "machine learning", ("order_id", "fraud")),
    Dataset("marts/revenue", 45, "finance", "sales", ("day", "country", "revenue"), ("gold",)),
    Dataset("marts/marketing_roi", 30, "marketing", "marketing", ("campaign_id", "roi")),
    Dataset("marts/daily_kpis", 12, "analytics", "sales", ("day", "visits", "orders", "rate")),
    Dataset("marts/legacy_funnel", 2_300, "analytics", "web", ("day", "users"), ("deprecated",)),
    Dataset("ops/error_rates", 150, "sre", "operations", ("host", "day", "errors")),
)  # fmt: skip

JOBS = (
    Job("clean_clicks", 410, {"raw/clicks": 3_100}, ("staging/clicks_clean",)),
    Job("sessionize", 300, {"staging/clicks_clean": 1_250}, ("staging/sessions",)),
    Job("build_core", 150, {"raw/orders": 105, "raw/customers": 140, "staging/sessions": 120},
        ("core/users", "core/orders")),
    Job("attribute_orders", 85, {"staging/sessions": 210, "raw/ad_spend": 15, "core/orders": 90},
        ("core/attribution",)),
    Job("build_features", 340, {"core/users": 900, "staging/sessions": 580, "core/orders": 260},
        ("features/user_features",)),
    Job("train_recommendations", 450, {"features/user_features": 5_600}, ("ml/recommendations",)),
    Job("score_churn", 75, {"features/user_features": 840, "core/users": 120},
        ("ml/churn_scores",)),
    Job("score_fraud", 130, {"features/user_features": 420, "core/orders": 80},
        ("ml/fraud_scores",)),
    Job("report_revenue", 28, {"core/orders": 260}, ("marts/revenue",)),
    Job("report_roi", 22, {"core/attribution": 190, "marts/revenue": 4}, ("marts/marketing_roi",)),
    Job("report_kpis", 16, {"core/orders": 85, "core/users": 30, "staging/sessions": 60},
        ("marts/daily_kpis",)),
    Job("legacy_funnel", 105, {"staging/clicks_clean": 620, "core/orders": 40},
        ("marts/legacy_funnel",)),
    Job("count_errors", 44, {"raw/server_logs": 2_050}, ("ops/error_rates",)),
)  # fmt: skip

# Who looks at what, with how many reads a day; nobody looks at marts/legacy_funnel any more.
PEOPLE = {
    "ml/recommendations": (("shop-frontend", 400),),
    "ml/churn_scores": (("crm", 3),),
    "ml/fraud_scores": (("checkout", 900),),
    "marts/revenue": (("cfo-dashboard", 12), ("ann", 2)),
    "marts/marketing_roi": (("marketing-dashboard", 6),),
    "marts/daily_kpis": (("board-report", 5), ("bob", 1)),
    "ops/error_rates": (("grafana", 48),),
}

CONFIGURATION = """\
sources:
  - type: file
    path: lake
cost_model:
  currency: USD
  storage:
    local: {cost_per_gb_month: 0.023, classes: {glacier: 0.0036}}
  compute:
    spark: {cost_per_core_hour: 0.19}
  idle: {spark_cluster: 2150}
  shared: {catalog_and_orchestration: 1400}
  adjustments: {support_credit: -600}
  features:
    recommendations:
      datasets: [ml/recommendations]
    machine_learning:
      patterns: ["ml/*", "features/*"]
"""


def create(place: Path, *, today: date, months: int = 5) -> None:
    """The lake, lumos.yaml, and the files that tell of lineage, usage, owners and work."""
    place.mkdir(parents=True, exist_ok=True)
    (place / "lumos.yaml").write_text(CONFIGURATION)
    for dataset in DATASETS:
        _write_files(place / "lake", dataset)
    days = [today - timedelta(days=back) for back in range(months * 31, 0, -1)]
    (place / "openlineage.ndjson").write_text("".join(_events(place / "lake", days)))
    _write_csv(
        place / "usage.csv",
        ("dataset", "user", "time", "reads"),
        _reads(place / "lake", days[-100:]),
    )
    head = ("job", "started_at", "ended_at", "engine", "quantity", "unit", "run")
    _write_csv(place / "metering.csv", head, _metered(days))
    (place / "enrich.yaml").write_text("".join(_words()))


def _words() -> Iterator[str]:
    """Whose the datasets are, and what they are about, as a file under review."""
    yield "version: 1\ngroups:\n"
    for team in sorted({each.team for each in DATASETS}):
        yield f"  {team}: {{email: {team}@shop.example}}\n"
    yield "datasets:\n"
    for each in DATASETS:
        yield f"  - {{dataset: {each.path}, domain: {each.domain}, owners: [{each.team}]"
        yield f", tags: [{', '.join(each.tags)}]}}\n" if each.tags else "}\n"


def _write_files(lake: Path, dataset: Dataset) -> None:
    """Up to eight files whose sizes make up the dataset's."""
    folder = lake / dataset.path
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.table({name: pa.array(["1", "2"]) for name in dataset.columns})
    count = min(8, max(1, dataset.size_gb // 50))
    for number in range(count):
        file = folder / f"part-{number:05}.parquet"
        pq.write_table(table, file)
        _widen(file, dataset.size_gb * GB // count)


def _widen(file: Path, size: int) -> None:
    """Moves the footer to the end of a hole; the rows stay where the footer says they are."""
    content = file.read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    with file.open("r+b") as opened:
        opened.truncate(len(content) - footer)
        opened.seek(max(size - footer, len(content) - footer))
        opened.write(content[-footer:])
    os.utime(file, (1_700_000_000, 1_700_000_000))


def _events(lake: Path, days: list[date]) -> Iterator[str]:
    for day in days:
        for number, job in enumerate(JOBS):
            at = datetime.combine(day, time(1 + number), UTC)
            inputs = [
                _place(lake, path) | {"inputFacets": {"inputStatistics": _size(size)}}
                for path, size in job.reads.items()
            ]
            event = {
                "eventType": "COMPLETE",
                "eventTime": at.isoformat(),
                "producer": "https://shop.example/jobs",
                "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
                "run": {"runId": _run(job, day)},
                "job": {"namespace": "spark", "name": job.name},
                "inputs": inputs,
                "outputs": [_place(lake, path) for path in job.writes],
            }
            yield json.dumps(event) + "\n"


def _place(lake: Path, path: str) -> dict[str, object]:
    return {"namespace": "file", "name": str(lake / path)}


def _size(gigabytes: int) -> dict[str, object]:
    return {
        "_producer": "https://shop.example/jobs",
        "_schemaURL": "https://openlineage.io/spec/facets/1-0-0/InputStatisticsInputDatasetFacet.json",
        "size": gigabytes * GB,
    }


def _run(job: Job, day: date) -> str:
    return f"{JOBS.index(job):08x}-{day.month:04x}-4{day.day:03x}-8000-{day.year:012x}"


def _reads(lake: Path, days: list[date]) -> Iterator[tuple[object, ...]]:
    for day in days:
        for path, readers in PEOPLE.items():
            for reader, reads in readers:
                yield lake / path, reader, f"{day}T12:00:00Z", reads


def _metered(days: list[date]) -> Iterator[tuple[object, ...]]:
    """What each run used; the shop grows by four percent a month."""
    for number, day in enumerate(days):
        growth = 1.04 ** ((number - len(days)) / 30)
        for place, job in enumerate(JOBS):
            start = datetime.combine(day, time(place), UTC)
            hours = round(job.core_hours * growth, 2)
            end = start + timedelta(minutes=50)
            yield (job.name, start.isoformat(), end.isoformat(), "spark", hours, "core_hour",
                   _run(job, day))  # fmt: skip


def _write_csv(file: Path, head: tuple[str, ...], rows: Iterator[tuple[object, ...]]) -> None:
    with file.open("w", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow(head)
        writer.writerows(rows)
