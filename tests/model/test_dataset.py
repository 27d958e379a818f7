"""Datasets: each aspect travels on its own."""

from datetime import UTC, datetime

import msgspec
import pytest

from lumos.model.catalog import Job
from lumos.model.dataset import (
    ASPECTS,
    IDENTITY,
    ColumnStatistics,
    Cost,
    Dataset,
    Definition,
    Documentation,
    DriftedShape,
    Governance,
    Lineage,
    Location,
    Owner,
    Ownership,
    Quality,
    QualityCheck,
    Reader,
    Schedule,
    Statistics,
    UpstreamEdge,
    Usage,
    Versioning,
    VersionRecord,
)
from lumos.model.json_codec import from_json, from_plain, to_json, to_plain
from lumos.model.lineage import ColumnMapping, Edge, JobRun
from lumos.model.schema import parse_schema

NOW = datetime(2024, 5, 17, 8, 30, tzinfo=UTC)
ORDERS = Dataset(
    urn="lumos://s3/lake/orders",
    name="orders",
    platform="s3",
    format="parquet",
    location=Location(uri="s3://lake/orders/", partitioning="hive", partition_keys=("day",)),
    schema=parse_schema(
        "id INT64 NOT NULL KEY\nitems ARRAY<STRUCT<sku: STRING>>\nday DATE PARTITION"
    ),
    statistics=Statistics(
        file_count=3,
        total_size_bytes=10**12,
        row_count=12,
        row_count_exact=True,
        last_modified=NOW,
        columns={"id": ColumnStatistics(null_count=0, minimum="1", maximum="12")},
    ),
    drift=(DriftedShape(shape="abc", file_count=1, examples=("a.parquet",), first_seen=NOW),),
    definition=Definition(sql="SELECT id FROM raw.orders", dialect="postgres"),
    lineage=Lineage(
        upstream=(
            UpstreamEdge(
                urn="lumos://s3/lake/raw",
                type="COPIED",
                columns=(ColumnMapping(upstream="id", downstream="id", transformation="id + 1"),),
            ),
        ),
        downstream=(UpstreamEdge(urn="lumos://s3/lake/report"),),
    ),
    ownership=Ownership(owners=(Owner(name="ann"), Owner(name="sales", kind="group"))),
    governance=Governance(tags=("pii",), terms=("Order",), compliance=("GDPR",)),
    documentation=Documentation(description="Orders", business_context="Sales", domain="shop"),
    properties={"team": "sales", "größe": "🦆"},
    versioning=Versioning(
        cloud_version="S-2",
        schema_version="1.1.0",
        history=(VersionRecord(cloud_version="S-1", schema_version="1.0.0", at=NOW),),
    ),
    schedule=Schedule(cron="0 6 * * *", availability_lag_minutes=30),
    usage=Usage(readers=(Reader(name="bi", reads=4, last_read=NOW),), last_accessed=NOW),
    quality=Quality(
        score=0.98,
        measured_at=NOW,
        dimensions={"completeness": 1.0},
        checks=(QualityCheck(name="ids are unique", status="PASSED"),),
    ),
    cost=Cost(currency="EUR", period="2024-05", own={"storage": 1.25}, calculated_at=NOW),
)


def test_every_aspect_is_tried_here() -> None:
    assert {name for name in ASPECTS if getattr(ORDERS, name) is None} == set()
    assert set(ASPECTS).isdisjoint(IDENTITY)


def test_a_dataset_comes_back_from_json() -> None:
    assert from_json(to_json(ORDERS), Dataset) == ORDERS
    assert from_plain(to_plain(ORDERS), Dataset) == ORDERS


@pytest.mark.parametrize("aspect", ASPECTS)
def test_an_aspect_travels_alone(aspect: str) -> None:
    nothing = Dataset(urn=ORDERS.urn, name=ORDERS.name, platform=ORDERS.platform)
    partial = msgspec.structs.replace(nothing, **{aspect: getattr(ORDERS, aspect)})
    assert set(to_plain(partial)) == {"urn", "name", "platform", aspect}
    assert from_json(to_json(partial), Dataset) == partial


@pytest.mark.parametrize(
    "value",
    [Owner(name="ann"), Schedule(cron="0 3 * * *"), UpstreamEdge(urn="lumos://s3/a")],
    ids=lambda value: type(value).__name__,
)
def test_what_is_the_default_is_left_out_however_it_was_said(value: msgspec.Struct) -> None:
    fields = {name: getattr(value, name) for name in value.__struct_fields__}
    assert to_json(from_json(to_json(fields), type(value))) == to_json(value)


def test_times_leave_in_utc() -> None:
    assert to_plain(ORDERS)["usage"]["last_accessed"] == "2024-05-17T08:30:00Z"


def test_a_dataset_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        ORDERS.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    "value",
    [
        Edge(upstream="lumos://s3/a", downstream="lumos://s3/b", origin="dbt", at=NOW, type="VIEW"),
        Job(urn="lumos://airflow/dag/task", name="task", platform="airflow", inputs=("lumos://s3/a",)),
        JobRun(run_id="r1", job="lumos://airflow/dag/task", started_at=NOW, state="FAILED"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_edges_jobs_and_runs_come_back_from_json(value: msgspec.Struct) -> None:
    assert from_json(to_json(value), type(value)) == value
