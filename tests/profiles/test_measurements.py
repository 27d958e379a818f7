"""What is counted exactly of columns, and that parts add up to the whole."""

import math
import random
import statistics
import uuid
from collections import Counter
from datetime import date, datetime
from decimal import Decimal as Exact
from typing import Any

import pyarrow as pa
import pytest

from lumos.model.schema import Field, Schema
from lumos.model.types import STRING, parse_type
from lumos.profiles import values
from lumos.profiles.columns import ProfiledColumn, profiled_columns
from lumos.profiles.measurements import MAX_TRACKED_VALUES, ColumnTally
from lumos.profiles.values import array_from_values, column_values

STRUCT = parse_type("STRUCT<x: INT64, y: STRING>")


def leaf(type: str) -> ProfiledColumn:
    schema = Schema(fields=(Field(name="a", type=parse_type(type)),))
    (only,) = profiled_columns(schema)
    return only._replace(values=True, top=only.kind not in ("list", "map"))


def tally(
    type: str, found: Any, arrow: pa.DataType | None = None, *, pieces: int = 1
) -> ColumnTally:
    column = leaf(type)
    whole = ColumnTally()
    array = found if isinstance(found, pa.Array) else pa.array(found, arrow)
    size = -(-len(array) // pieces) or 1
    for start in range(0, len(array), size):
        part = ColumnTally()
        some = array[start : start + size]
        part.add(column, column_values(column, some, len(some)))
        whole.join(part)
    return whole


@pytest.mark.parametrize("pieces", [1, 2, 7])
def test_moments_and_bounds_are_those_of_all_values(pieces: int) -> None:
    some = random.Random(1)
    values = [None if some.random() < 0.2 else some.gauss(1e9, 3) for _ in range(500)]
    present = [value for value in values if value is not None]
    found = tally("FLOAT64", values, pieces=pieces)
    assert (found.rows, found.nulls) == (500, 500 - len(present))
    assert (found.low, found.high) == (min(present), max(present))
    assert found.mean == pytest.approx(statistics.fmean(present), rel=1e-12)
    assert found.stddev == pytest.approx(statistics.stdev(present), rel=1e-6)


@pytest.mark.parametrize(
    ("type", "values", "low", "high"),
    [
        pytest.param("INT8", [3, -2], -2, 3, id="integers"),
        pytest.param("UINT64", pa.array([2**63 + 1, 5], pa.uint64()), 5, 2**63 + 1, id="unsigned"),
        pytest.param("DATE", [date(1970, 1, 3), date(1969, 12, 31)], -1, 2, id="dates"),
        pytest.param("DECIMAL(9,2)", [Exact("10.50"), Exact("9.75")], "9.75", "10.50", id="exact"),
        pytest.param(
            "TIMESTAMP(us)", [datetime(1970, 1, 1, 0, 0, 1)], 1_000_000, 1_000_000, id="moments"
        ),
        pytest.param(
            "TIMESTAMPTZ(ms)", pa.array([7], pa.timestamp("ms", "UTC")), 7000, 7000, id="zoned"
        ),
    ],
)
def test_bounds_are_kept_in_the_unit_of_their_kind(
    type: str, values: Any, low: Any, high: Any
) -> None:
    found = tally(type, values)
    assert (found.low, found.high) == (low, high)


def test_nan_is_neither_a_value_nor_null() -> None:
    found = tally("FLOAT64", [1.0, math.nan, None, -0.0])
    assert (found.rows, found.nulls, found.nans, found.values) == (4, 1, 1, 2)
    assert (found.low, found.high) == (0.0, 1.0)


def test_what_is_not_of_the_type_is_a_misfit_and_not_null() -> None:
    found = tally("INT64", [" 12", "+7", "x", None, "1.5", ""])
    assert (found.nulls, found.misfits, found.low, found.high) == (1, 3, 7, 12)


NOT_UNICODE = pa.Array.from_buffers(pa.string(), 2, pa.array([b"ok", b"\xff\xfe"]).buffers())
FAR = pa.array([datetime(9999, 12, 31), datetime(1970, 1, 1)], pa.timestamp("us"))


@pytest.mark.parametrize(
    ("type", "values", "misfits"),
    [
        pytest.param("STRING", NOT_UNICODE, 1, id="no text at all"),
        pytest.param("INT64", NOT_UNICODE, 2, id="no text in a column of numbers"),
        pytest.param("INT64", [True, False], 2, id="truths are no numbers"),
        pytest.param("BOOLEAN", [0, 7], 2, id="numbers are no truths"),
        pytest.param("INT64", [1.0, 1.5, 1e19, math.nan], 3, id="fractions"),
        pytest.param("DECIMAL(10,2)", [1e30, math.inf, 1.25], 2, id="too large to be exact"),
        pytest.param("TIMESTAMP(us)", [1714521600], 1, id="numbers are no moments"),
        pytest.param("INT64", FAR, 2, id="moments are no numbers"),
        pytest.param("TIMESTAMP(ns)", FAR, 1, id="beyond nanoseconds"),
        pytest.param("TIMESTAMP(ms)", pa.array([2**61, 0], pa.timestamp("ms")), 1, id="too far"),
        pytest.param("TIME(us)", FAR, 2, id="moments are no times of day"),
        pytest.param("ARRAY<INT64>", [1, 2], 2, id="numbers are no lists"),
        pytest.param("MAP<STRING, INT64>", [{"a": 1}], 1, id="structs are no maps"),
        pytest.param("FLOAT64", [2**60 + 1], 0, id="a double near by"),
        pytest.param("TIMESTAMP(us)", [date(1970, 1, 2)], 0, id="days are moments"),
        pytest.param("STRING", [1, 2], 0, id="of numbers there are texts"),
    ],
)
def test_values_of_another_type_are_reported_as_such_and_not_as_others(
    type: str, values: Any, misfits: int
) -> None:
    found = tally(type, values)
    assert (found.misfits, found.nulls) == (misfits, 0)
    assert found.values == len(values) - misfits


@pytest.mark.parametrize(
    ("type", "odd"),
    [
        pytest.param(type, odd, id=type)
        for type, odd in [
            ("INT64", "x"),
            ("FLOAT64", "x"),
            ("DATE", "x"),
            ("TIMESTAMP(us)", "yesterday"),
            ("TIMESTAMP(ns)", datetime(9999, 12, 31)),
            ("TIME(us)", "noon"),
            ("BOOLEAN", "x"),
            ("DURATION(us)", "x"),
        ]
    ],
)
def test_many_values_of_another_type_are_not_looked_at_one_by_one(
    monkeypatch: pytest.MonkeyPatch, type: str, odd: Any
) -> None:
    tries = []

    def converted(array: pa.Array, target: pa.DataType) -> pa.Array:
        tries.append(len(array))
        return original(array, target)

    original = values._convert
    monkeypatch.setattr(values, "_convert", converted)
    assert tally(type, [odd] * 1000).misfits == 1000
    assert len(tries) < 10


@pytest.mark.parametrize(
    ("type", "texts", "low"),
    [
        pytest.param("TIMESTAMP(us)", ["1970-01-01T00:00:01.123456789"], 1_123_456, id="finer"),
        pytest.param("TIMESTAMPTZ(us)", ["1970-01-01 00:00:01"], 1_000_000, id="no zone is UTC"),
        pytest.param(
            "TIMESTAMPTZ(us)", ["1970-01-01T01:00:00.000001999+01:00"], 1, id="zoned and finer"
        ),
        pytest.param("TIME(us)", ["00:00:01.5"], 1_500_000, id="time"),
        pytest.param("TIME(us)", [" 00:00:01.123456789"], 1_123_456, id="finer time"),
    ],
)
def test_moments_are_read_of_texts(type: str, texts: list[str], low: int) -> None:
    for arrow in (pa.string(), pa.large_string()):
        found = tally(type, texts, arrow)
        assert (found.misfits, found.low) == (0, low)


def test_ids_of_records_are_the_bytes_that_other_formats_have() -> None:
    id = uuid.UUID(int=7)
    assert array_from_values([id, None], parse_type("UUID")).to_pylist() == [id.bytes, None]
    assert array_from_values([id, date(2024, 1, 1)], STRING).to_pylist() == [str(id), "2024-01-01"]


def test_texts_and_bytes_have_lengths_and_no_bounds() -> None:
    found = tally("STRING", ["äöü", "", None])
    assert (found.shortest, found.longest, found.total_length, found.sized_count) == (0, 3, 3, 2)
    assert (found.low, found.high, found.measured_count) == (None, None, 0)
    assert tally("BINARY", [b"abc"]).longest == 3


@pytest.mark.parametrize("pieces", [1, 2])
def test_lists_and_maps_have_lengths_and_elements(pieces: int) -> None:
    found = tally("ARRAY<INT64>", [[1, None], [], None], pa.list_(pa.int64()), pieces=pieces)
    assert (found.nulls, found.shortest, found.longest) == (1, 0, 2)
    assert (found.elements, found.null_elements) == (2, 1)
    map_ = pa.map_(pa.string(), pa.int64())
    entries = [[("a", 1), ("b", None)], None]
    found = tally("MAP<STRING, INT64>", entries, map_, pieces=pieces)
    assert (found.longest, found.elements, found.null_elements) == (2, 2, 1)


def test_a_member_is_null_where_its_struct_is() -> None:
    column = pa.array([{"x": 1}, None, {"x": None}], pa.struct([("x", pa.int64())]))
    x, y = profiled_columns(Schema(fields=(Field(name="a", type=STRUCT),)))
    assert column_values(x, column, 3) == (pa.array([1, None, None]), 0, False)
    assert column_values(y, column, 3) == (pa.nulls(3, pa.string()), 0, False)
    assert column_values(y, pa.array([5, None, 6]), 3) == (pa.nulls(3, pa.string()), 2, False)


def test_leaves_are_named_from_the_top_and_end_at_lists() -> None:
    schema = Schema(
        fields=(
            Field(name="a.b", type=parse_type("STRUCT<c: INT64, d: STRUCT<e: STRING>>")),
            Field(name="l", type=parse_type("ARRAY<STRUCT<x: INT64>>")),
        )
    )
    assert [each.path for each in profiled_columns(schema)] == ["`a.b`.c", "`a.b`.d.e", "l"]


@pytest.mark.parametrize("pieces", [1, 3, 10])
def test_frequent_values_are_never_counted_too_high_and_off_by_the_slack_at_most(
    pieces: int,
) -> None:
    some = random.Random(2)
    values = [some.choice([7, 8, some.randrange(10**6)]) for _ in range(20_000)]
    truth = Counter(values)
    found = tally("INT64", values, pieces=pieces)
    assert len(found.top) <= MAX_TRACKED_VALUES
    assert found.slack < len(values) / MAX_TRACKED_VALUES + pieces
    for value, count in found.top:
        assert truth[value] - found.slack <= count <= truth[value]
    assert {value for value, _ in found.top[:2]} == {7, 8}


def test_few_values_are_counted_exactly() -> None:
    found = tally("BOOLEAN", [True, False, True, None], pieces=2)
    assert (dict(found.top), found.slack) == ({True: 2, False: 1}, 0)


def test_a_column_that_a_file_lacks_is_null_there() -> None:
    column = leaf("DATE")
    found = ColumnTally()
    found.add(column, column_values(column, None, 3))
    assert (found.rows, found.nulls, found.values) == (3, 3, 0)
