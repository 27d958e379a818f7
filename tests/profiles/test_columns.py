"""Tallies and estimates in words."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from lumos.model.dataset import ColumnProfile
from lumos.model.types import parse_type
from lumos.profiles.columns import ProfiledColumn
from lumos.profiles.measurements import ColumnTally, Estimates, ProfileResult
from lumos.profiles.reports import build_profile
from lumos.profiles.values import column_values
from lumos.spark.problems import ProblemList


def profile_of(type: str, values: pa.Array, estimates: Estimates) -> ColumnProfile:
    leaf = ProfiledColumn("a", ("a",), parse_type(type))
    leaf = leaf._replace(values=leaf.kind not in ("text", "bytes"))
    tally = ColumnTally()
    tally.add(leaf, column_values(leaf, values, len(values)))
    profiled = ProfileResult(len(values), 1, 1, [tally], {0: estimates}, ProblemList())
    profile = build_profile(profiled, [leaf], at=datetime(2024, 1, 1, tzinfo=UTC), sampled=None)
    return profile.columns["a"]


@pytest.mark.parametrize(
    ("type", "values", "sketched", "distinct"),
    [
        pytest.param("STRING", ["x", None, "", "zz", ""], 2, 3, id="empty among others"),
        pytest.param("STRING", ["", ""], 0, 1, id="empty alone"),
        pytest.param("BINARY", [b"a", b"", b"abc"], 2, 3, id="bytes"),
        pytest.param("STRING", ["x", "y"], 2, 2, id="none empty"),
    ],
)
def test_the_empty_text_is_a_value_although_sketches_pass_over_it(
    type: str, values: list[Any], sketched: int, distinct: int
) -> None:
    assert profile_of(type, pa.array(values), Estimates(sketched)).distinct == distinct


def test_whole_numbers_are_reported_without_a_fraction() -> None:
    values = pa.array([0, 5, 2**64 - 1], pa.uint64())
    column = profile_of(
        "UINT64", values, Estimates(3, (0.0,) * 3 + (5.0,) + (1.8446744073709552e19,) * 3)
    )
    assert (column.quantiles["0.01"], column.quantiles["0.5"]) == ("0", "5")
    assert column.quantiles["0.99"] == column.maximum == str(2**64 - 1)


@pytest.mark.parametrize(
    ("type", "arrow", "value", "text"),
    [
        ("TIMESTAMP(ns)", pa.timestamp("ns"), 1, "1970-01-01T00:00:00.000000001"),
        ("TIMESTAMP(ns)", pa.timestamp("ns"), -1, "1969-12-31T23:59:59.999999999"),
        ("TIMESTAMPTZ(ns)", pa.timestamp("ns", "UTC"), 10**9, "1970-01-01T00:00:01Z"),
        ("TIME(ns)", pa.time64("ns"), 1_000_001, "00:00:00.001000001"),
    ],
)
def test_nanoseconds_are_reported_to_the_last_digit(
    type: str, arrow: pa.DataType, value: int, text: str
) -> None:
    column = profile_of(type, pa.array([value], pa.int64()).view(arrow), Estimates(1, (value,) * 7))
    assert (column.minimum, column.quantiles["0.5"]) == (text, text)


@pytest.mark.parametrize(
    ("type", "arrow", "value", "text"),
    [
        ("TIMESTAMP(us)", pa.timestamp("us"), -62_135_596_800_000_000, "0001-01-01T00:00:00"),
        (
            "TIMESTAMP(us)",
            pa.timestamp("us"),
            253_402_300_799_999_999,
            "9999-12-31T23:59:59.999999",
        ),
        ("TIMESTAMPTZ(us)", pa.timestamp("us", "UTC"), 2**60, "+38504-08-17T21:30:06.846976Z"),
        ("DATE", pa.date32(), -800_000, "-0221-09-04"),
        ("DATE", pa.date32(), 4_000_000, "+12921-08-18"),
        ("DATE", pa.date32(), -719_528, "0000-01-01"),
    ],
)
def test_moments_of_all_years_are_reported(
    type: str, arrow: pa.DataType, value: int, text: str
) -> None:
    whole = pa.int32() if type == "DATE" else pa.int64()
    column = profile_of(type, pa.array([value], whole).view(arrow), Estimates(1, (value,) * 7))
    assert (column.minimum, column.quantiles["0.5"]) == (text, text)


@pytest.mark.parametrize(
    ("type", "arrow", "value", "text"),
    [
        ("FLOAT64", pa.float64(), 1 / 3, "0.3333333333333333"),
        ("FLOAT64", pa.float64(), 1234567890123456.0, "1234567890123456"),
        ("FLOAT64", pa.float64(), 3.0, "3"),
        ("FLOAT32", pa.float32(), 0.1, "0.1"),
        ("FLOAT32", pa.float32(), 1e9, "1000000000"),
        ("FLOAT32", pa.float64(), 1e300, "1e+300"),
        ("DECIMAL(38,18)", pa.decimal128(38, 18), 0, "0.000000000000000000"),
    ],
)
def test_bounds_are_reported_exactly_and_in_few_digits(
    type: str, arrow: pa.DataType, value: Any, text: str
) -> None:
    column = profile_of(type, pa.array([value], arrow), Estimates(1, ()))
    assert (column.minimum, column.maximum) == (text, text)


def test_numbers_whose_sum_is_too_large_have_a_mean() -> None:
    assert profile_of("FLOAT64", pa.array([1e308] * 7), Estimates(1, ())).mean == "1e+308"
