"""OpenLineage events become what jobs report."""

import gzip
import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from lumos.annotations.owner_names import OwnerOfUnknownKind
from lumos.lineage.openlineage import OpenLineageEvent, is_event, read_events, report_events
from lumos.lineage.openlineage.naming import dataset_reference
from lumos.lineage.reported_lineage import (
    DatasetAlias,
    LineageProblem,
    LocationReference,
    ReportedLineage,
    TableName,
)
from lumos.model.dataset import Owner
from lumos.model.lineage import ColumnMapping, ColumnUse, Derivation, UseKind

ORDERS = {"namespace": "s3://lake", "name": "raw/orders"}
TOTALS = {"namespace": "s3://lake", "name": "gold/totals"}


def event(
    type: str | None = "COMPLETE",
    *,
    at: str = "2024-01-15T06:00:00Z",
    run: str | None = "run-1",
    job: str = "totals",
    inputs: list[Any] | None = None,
    outputs: list[Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    return {
        "eventTime": at,
        "eventType": type,
        "run": None if run is None else {"runId": run, "facets": more.pop("run_facets", {})},
        "job": {"namespace": "nightly", "name": job, "facets": more.pop("job_facets", {})},
        "inputs": [ORDERS] if inputs is None else inputs,
        "outputs": [TOTALS] if outputs is None else outputs,
        "producer": "https://example.com/producer",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        **more,
    }


def with_facets(dataset: dict[str, str], **facets: Any) -> dict[str, Any]:
    return {**dataset, "facets": facets}


def decoded(*events: dict[str, Any]) -> list[OpenLineageEvent]:
    return [msgspec.json.decode(json.dumps(each), type=OpenLineageEvent) for each in events]


def report(*events: dict[str, Any]) -> ReportedLineage:
    (only,) = report_events(decoded(*events))
    return only


def totals_lineage(**column: Any) -> dict[str, Any]:
    return with_facets(TOTALS, columnLineage={"fields": {"total": column}})


@pytest.mark.parametrize(
    ("namespace", "name", "expected"),
    [
        ("s3://lake", "raw/orders", LocationReference(uri="s3://lake/raw/orders")),
        ("s3a://lake", "/raw/orders/", LocationReference(uri="s3://lake/raw/orders")),
        ("gs://lake", "raw/orders", LocationReference(uri="gs://lake/raw/orders")),
        ("abfss://raw@acme.dfs.core.windows.net", "orders", LocationReference(uri="abfss://raw@acme.dfs.core.windows.net/orders")),
        ("hdfs://nn:8020", "/warehouse/orders", LocationReference(uri="hdfs://nn:8020/warehouse/orders")),
        ("file", "/data/orders", LocationReference(uri="/data/orders")),
        ("file://worker-1", "data/orders", LocationReference(uri="/data/orders")),
        ("postgres://db:5432", "shop.public.orders", TableName(parts=("shop", "public", "orders"), platform="postgres", instance="db:5432")),
        ("snowflake://acme-eu", "SALES.PUBLIC.ORDERS", TableName(parts=("SALES", "PUBLIC", "ORDERS"), platform="snowflake", instance="acme-eu")),
        ("bigquery", "acme.sales.orders", TableName(parts=("acme", "sales", "orders"), platform="bigquery")),
        ("sqlserver://db:1433", "sales.dbo.orders", TableName(parts=("sales", "dbo", "orders"), platform="mssql", instance="db:1433")),
        ("awsathena://athena.eu-west-1.amazonaws.com", "awsdatacatalog.sales.orders", TableName(parts=("awsdatacatalog", "sales", "orders"), platform="athena", instance="athena.eu-west-1.amazonaws.com")),
        ("arn:aws:glue:eu-west-1:123456789012", "table/sales/orders", TableName(parts=("sales", "orders"), platform="glue")),
        ("kafka://broker:9092", "shop.orders.v1", TableName(parts=("shop.orders.v1",), platform="kafka", instance="broker:9092")),
        ("food_delivery", "public.orders", TableName(parts=("public", "orders"), instance="food_delivery")),
        ("mysql://db:3306", "shop.`odd.name`", TableName(parts=("shop", "odd.name"), platform="mysql", instance="db:3306")),
    ],
)  # fmt: skip
def test_a_namespace_and_a_name_say_what_is_meant(namespace, name, expected):
    assert dataset_reference(namespace, name) == expected


def test_a_run_gives_an_edge_from_each_input_to_each_output_with_its_job():
    found = report(event("START", at="2024-01-15T05:00:00Z", outputs=[]), event())
    (edge,) = found.edges
    assert found.reporter == "openlineage:nightly/totals"
    assert (edge.upstream, edge.downstream) == (
        LocationReference(uri="s3://lake/raw/orders"),
        LocationReference(uri="s3://lake/gold/totals"),
    )
    (job,) = found.jobs
    assert edge.job == job.urn == "lumos://openlineage/nightly/totals"
    (run,) = job.runs
    assert (run.started_at.hour, run.ended_at.hour, run.state) == (5, 6, "COMPLETE")


@pytest.mark.parametrize(
    ("type", "state"),
    [
        ("FAIL", "FAILED"),
        ("ABORT", "ABORTED"),
        ("COMPLETE", "COMPLETE"),
        ("RUNNING", "RUNNING"),
        ("OTHER", "RUNNING"),
    ],
)
def test_the_last_event_of_a_run_says_how_it_stands(type, state):
    found = report(event(type), event("START", at="2024-01-15T05:00:00Z"))
    assert found.jobs[0].runs[0].state == state


def test_order_and_repetition_of_events_change_nothing():
    start = event("START", at="2024-01-15T05:00:00Z", inputs=[])
    running = event("RUNNING", at="2024-01-15T05:30:00+00:00", outputs=[])
    complete = event(
        "COMPLETE", inputs=[with_facets(ORDERS, documentation={"description": "All orders"})]
    )
    in_order = report(start, running, complete)
    assert report(complete, start, complete, running, start) == in_order
    assert len(in_order.edges) == 1
    assert len(in_order.reads) == 1


def test_columns_of_the_newer_form_are_direct_or_indirect():
    output = with_facets(
        TOTALS,
        schema={"fields": [{"name": "total", "type": "double"}, {"name": "loaded_at"}]},
        columnLineage={
            "fields": {
                "total": {
                    "inputFields": [
                        {
                            **ORDERS,
                            "field": "amount",
                            "transformations": [
                                {
                                    "type": "DIRECT",
                                    "subtype": "AGGREGATION",
                                    "description": "SUM(amount)",
                                }
                            ],
                        },
                        {
                            **ORDERS,
                            "field": "kind",
                            "transformations": [{"type": "INDIRECT", "subtype": "CONDITIONAL"}],
                        },
                    ]
                }
            },
            "dataset": [
                {
                    **ORDERS,
                    "field": "country",
                    "transformations": [{"type": "INDIRECT", "subtype": "FILTER"}],
                }
            ],
        },
    )
    found = report(event(outputs=[output]))
    (edge,) = found.edges
    assert edge.columns == (
        ColumnMapping(
            upstream="amount",
            downstream="total",
            transformation="SUM(amount)",
            derivation=Derivation.AGGREGATION,
        ),
    )
    assert edge.uses == (
        ColumnUse(upstream="kind", usage=UseKind.CONDITIONAL, downstream="total"),
        ColumnUse(upstream="country", usage=UseKind.FILTER),
    )
    assert found.reads[0].columns == ("amount", "country", "kind")
    assert (found.coverage.columns, found.coverage.resolved) == (2, 1)


@pytest.mark.parametrize(
    ("older", "derivation", "text"),
    [
        ({"transformationType": "IDENTITY"}, Derivation.IDENTITY, None),
        (
            {"transformationType": "MASKED", "transformationDescription": ""},
            Derivation.TRANSFORMATION,
            "masked",
        ),
        ({"transformationDescription": "a + b"}, None, "a + b"),
        ({}, None, None),
    ],
)
def test_columns_of_the_older_form_are_read_too(older, derivation, text):
    output = totals_lineage(inputFields=[{**ORDERS, "field": "amount"}], **older)
    (edge,) = report(event(outputs=[output])).edges
    (mapping,) = edge.columns
    assert (mapping.derivation, mapping.transformation) == (derivation, text)


def test_a_dataset_that_only_the_columns_name_is_an_input_too():
    customers = {"namespace": "s3://lake", "name": "raw/customers"}
    output = totals_lineage(inputFields=[{**customers, "field": "id"}])
    upstreams = {edge.upstream.uri for edge in report(event(outputs=[output])).edges}
    assert upstreams == {"s3://lake/raw/orders", "s3://lake/raw/customers"}


def test_all_columns_as_they_are_make_a_copy():
    identity = [{"type": "DIRECT", "subtype": "IDENTITY"}]
    output = totals_lineage(inputFields=[{**ORDERS, "field": "total", "transformations": identity}])
    assert report(event(outputs=[output])).edges[0].type == "COPIED"
    renamed = totals_lineage(inputFields=[{**ORDERS, "field": "sum", "transformations": identity}])
    assert report(event(outputs=[renamed])).edges[0].type == "TRANSFORMED"


def test_the_newest_run_that_wrote_an_output_says_what_it_is_made_from():
    customers = {"namespace": "s3://lake", "name": "raw/customers"}
    other = {"namespace": "s3://lake", "name": "gold/other"}
    found = report(
        event(run="1", at="2024-01-15T06:00:00Z", outputs=[TOTALS, other]),
        event(run="2", at="2024-01-16T06:00:00Z", inputs=[customers]),
        event("FAIL", run="3", at="2024-01-17T06:00:00Z", inputs=[]),
    )
    assert {(edge.upstream.uri, edge.downstream.uri) for edge in found.edges} == {
        ("s3://lake/raw/customers", "s3://lake/gold/totals"),
        ("s3://lake/raw/orders", "s3://lake/gold/other"),
    }
    assert [run.run_id for run in found.jobs[0].runs] == ["1", "2", "3"]


def test_a_dropped_output_has_no_lineage():
    dropped = with_facets(TOTALS, lifecycleStateChange={"lifecycleStateChange": "DROP"})
    assert report(event(outputs=[dropped])).edges == ()


def test_facets_of_datasets_and_jobs_are_stored():
    orders = {
        **with_facets(
            ORDERS,
            documentation={"description": "All orders"},
            ownership={"owners": [{"name": "team:sales", "type": "MAINTAINER"}, {"name": "jane"}]},
            schema={"fields": [{"name": "id", "description": "The key"}, {"name": "amount"}]},
            tags={
                "tags": [
                    {"key": "pii", "value": "true"},
                    {"key": "tier", "value": "1", "field": "id"},
                ]
            },
            symlinks={
                "identifiers": [
                    {"namespace": "arn:aws:glue:eu:1", "name": "table/raw/orders", "type": "TABLE"}
                ]
            },
        ),
        "inputFacets": {"inputStatistics": {"rowCount": 10, "size": 2048}},
    }
    found = report(
        event(
            inputs=[orders],
            job_facets={
                "jobType": {
                    "processingType": "BATCH",
                    "integration": "SPARK",
                    "jobType": "SQL_JOB",
                },
                "documentation": {"description": "Sums up"},
                "ownership": {"owners": [{"name": "team:finance"}]},
            },
            run_facets={
                "parent": {"run": {"runId": "p"}, "job": {"namespace": "airflow", "name": "dag"}}
            },
        )
    )
    (described,) = found.annotations
    assert described.description == "All orders"
    assert described.owners == (
        Owner(name="sales", kind="group", type="MAINTAINER"),
        OwnerOfUnknownKind(name="jane"),
    )
    assert (described.columns, described.tags) == ({"id": "The key"}, ("pii",))
    assert described.column_tags == {"id": ("tier:1",)}
    assert found.aliases == (
        DatasetAlias(
            dataset=LocationReference(uri="s3://lake/raw/orders"),
            others=(TableName(parts=("raw", "orders"), platform="glue"),),
        ),
    )
    (job,) = found.jobs
    assert (job.urn, job.platform, job.owner, job.description) == (
        "lumos://spark/nightly/totals", "spark", "finance", "Sums up",
    )  # fmt: skip
    assert job.properties["parent"] == "airflow/dag"
    (read,) = found.reads
    assert (read.reader, read.rows, read.bytes, read.at) == (
        "nightly/totals", 10, 2048, datetime(2024, 1, 15, 6, tzinfo=UTC),
    )  # fmt: skip


def test_a_job_event_gives_edges_without_runs_or_reads():
    found = report(event(None, run=None))
    assert len(found.edges) == 1
    assert found.jobs[0].runs == ()
    assert found.reads == ()


def test_a_dataset_event_only_describes_the_dataset():
    view = {
        "eventTime": "2024-01-15T06:00:00Z",
        "dataset": with_facets(
            TOTALS,
            columnLineage={"fields": {"total": {"inputFields": [{**ORDERS, "field": "amount"}]}}},
        ),
    }
    found = report(view)
    assert found.reporter == "openlineage:dataset:s3://lake/gold/totals"
    assert found.edges[0].job is None
    assert found.jobs == ()


def test_a_broken_facet_is_a_remark_and_the_edge_stays():
    found = report(event(outputs=[with_facets(TOTALS, columnLineage={"fields": "none"})]))
    assert len(found.edges) == 1
    (problem,) = found.problems
    assert problem.severity == "remark"
    assert "'columnLineage'" in problem.reason


def test_an_output_that_is_also_an_input_is_reported_as_such():
    (edge,) = report(event(inputs=[TOTALS])).edges
    assert edge.upstream == edge.downstream


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda events: json.dumps(events), id="an array"),
        pytest.param(lambda events: json.dumps(events, indent=2), id="an array over many lines"),
        pytest.param(lambda events: "\n".join(map(json.dumps, events)), id="one to a line"),
        pytest.param(
            lambda events: "\n" + "\r\n\r\n".join(map(json.dumps, events)), id="blank lines"
        ),
        pytest.param(lambda events: "﻿" + "\n".join(map(json.dumps, events)), id="byte order mark"),
        pytest.param(
            lambda events: json.dumps({"totalCount": 2, "events": events}), id="a server's answer"
        ),
    ],
)
@pytest.mark.parametrize(
    "pack", [pytest.param(bytes, id="plain"), pytest.param(gzip.compress, id="gzip")]
)
def test_files_of_events_are_read_in_every_form(tmp_path, write, pack):
    file = tmp_path / "events.json"
    file.write_bytes(pack(write([event("START"), event()]).encode()))
    assert [each.event_type for each in read_events(file)] == ["START", "COMPLETE"]


def test_one_event_over_many_lines_is_one_event(tmp_path):
    file = tmp_path / "event.json"
    file.write_text(json.dumps(event(), indent=1))
    (found,) = read_events(file)
    assert isinstance(found, OpenLineageEvent)


def test_lines_that_are_no_events_are_named_and_the_rest_is_read(tmp_path):
    file = tmp_path / "events.ndjson"
    lines = [
        json.dumps(event()),
        "{broken",
        json.dumps({"eventTime": "yesterday"}),
        json.dumps(event("START")),
    ]
    file.write_text("\n".join(lines))
    found = list(read_events(file, name="events.ndjson"))
    problems = [each for each in found if isinstance(each, LineageProblem)]
    assert len(found) == 4
    assert [(each.place, each.line) for each in problems] == [
        ("events.ndjson", 2),
        ("events.ndjson", 3),
    ]


def test_a_gzip_file_that_breaks_off_is_a_problem(tmp_path):
    file = tmp_path / "events.ndjson.gz"
    file.write_bytes(
        gzip.compress(b"\n".join(json.dumps(event()).encode() for _ in range(100)))[:-60]
    )
    (problem,) = [each for each in read_events(file) if isinstance(each, LineageProblem)]
    assert "gzip" in problem.reason


def test_a_gzip_file_that_grows_beyond_measure_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("lumos.lineage.openlineage.events.MAX_EVENT_BYTES", 1000)
    file = tmp_path / "bomb.gz"
    file.write_bytes(gzip.compress(b"[" + b" " * 100_000 + b"]"))
    (problem,) = read_events(file)
    assert "too large" in problem.reason


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (event(), True),
        ({"eventTime": "2024-01-15", "dataset": {}}, True),
        ({"events": [event()]}, True),
        ({"metadata": {"dbt_schema_version": "v12"}}, False),
        ([1], False),
    ],
)
def test_events_are_distinguished_from_other_json(value, expected):
    assert is_event(value) is expected
