"""What counts as a difference, without scans."""

import pytest

from lumos.model.change import Verdict
from lumos.model.schema import parse_schema
from lumos.reconcile.rules import is_same_format, is_stale, schema_findings
from lumos.schemas.findings import kind_of


@pytest.mark.parametrize(
    ("table", "files", "expected"),
    [
        pytest.param("id INT64\nat TIMESTAMP(ns)", "at TIMESTAMPTZ(us)\nID INT64 NOT NULL", [], id="only what hive can express"),
        pytest.param("a STRING(9)\nb INT16", "a ENUM('x')\nb UINT8", [], id="nearest types of hive"),
        pytest.param("s STRUCT<a: INT32>", "s STRUCT<A: INT32>", [], id="nested names without case"),
        pytest.param("id INT64\ndt STRING", "id INT64\ndt DATE PARTITION", [], id="partition columns are not in files"),
        pytest.param("id INT64", "id INT64\nnew STRING", [("new", "added", Verdict.COMPATIBLE)], id="unregistered column"),
        pytest.param("id INT64\nold STRING", "id INT64", [("old", "removed", Verdict.BREAKING)], id="column without data"),
        pytest.param("id INT32", "id STRING", [("id", "type", Verdict.BREAKING)], id="other type"),
    ],
)  # fmt: skip
def test_columns_are_compared_as_far_as_a_metastore_can_express_them(
    table, files, expected
) -> None:
    found = schema_findings(
        parse_schema(table), parse_schema(files), keys=("dt",), format="parquet"
    )
    assert [
        (each.change.path, kind_of(each.change).partition("_")[0], each.consumer) for each in found
    ] == [(path, "type" if kind == "type" else kind, verdict) for path, kind, verdict in expected]


def test_json_has_no_types_and_csv_no_names() -> None:
    table, files = parse_schema("id STRING\na INT64"), parse_schema("id INT64")
    assert [each.change.path for each in schema_findings(table, files, keys=(), format="json")] == [
        "a"
    ]
    assert schema_findings(table, files, keys=(), format="csv") == ()


def test_formats_are_compared_if_both_are_known() -> None:
    assert is_same_format("", {"csv"})
    assert is_same_format("parquet", set())
    assert is_same_format("parquet", {"parquet", "csv"})
    assert not is_same_format("parquet", {"csv"})


@pytest.mark.parametrize(
    ("registered", "measured", "stale"),
    [
        (None, 5, False),
        (5, None, False),
        (100, 105, False),
        (100, 130, True),
        (0, 1, True),
        (0, 0, False),
    ],
)
def test_statistics_are_stale_if_they_differ_by_more_than_a_tenth(
    registered, measured, stale
) -> None:
    assert is_stale(registered, measured) is stale
