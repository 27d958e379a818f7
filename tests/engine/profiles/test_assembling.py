"""Tallies and estimates in words."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from lumos.engine.profiles.assembling import profile_of
from lumos.model.dataset import ColumnProfile
from lumos.model.text import parse_type
from lumos.pipeline.profiling.columns import Leaf
from lumos.pipeline.profiling.profile import Profiled
from lumos.pipeline.profiling.sketching import Estimates
from lumos.pipeline.profiling.tallies import Tally
from lumos.pipeline.profiling.values import values_of


def told(type: str, values: pa.Array, estimates: Estimates) -> ColumnProfile:
    leaf = Leaf("a", ("a",), parse_type(type))
    leaf = leaf._replace(values=leaf.kind not in ("text", "bytes"))
    tally = Tally()
    tally.add(leaf, values_of(leaf, values, len(values)))
    profiled = Profiled(len(values), 1, 1, [tally], {0: estimates}, [])
    profile = profile_of(profiled, [leaf], at=datetime(2024, 1, 1, tzinfo=UTC), sampled=None)
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
    assert told(type, pa.array(values), Estimates(sketched)).distinct == distinct


def test_whole_numbers_are_told_without_a_fraction() -> None:
    values = pa.array([0, 5, 2**64 - 1], pa.uint64())
    column = told(
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
def test_nanoseconds_are_told_to_the_last_digit(
    type: str, arrow: pa.DataType, value: int, text: str
) -> None:
    column = told(type, pa.array([value], pa.int64()).view(arrow), Estimates(1, (value,) * 7))
    assert (column.minimum, column.quantiles["0.5"]) == (text, text)
