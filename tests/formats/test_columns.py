"""Statistics of columns: from footers, over row groups and files, and never of texts."""

import datetime
import decimal
import io
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lumos.formats import parquet as parquet_columns
from lumos.formats.columns import (
    FileColumnStatistics,
    column_statistics,
    merge_columns,
    pack_columns,
    unpack_columns,
)
from lumos.formats.varints import MalformedData

from .material import TABLE, facts_of, orc_bytes, parquet_bytes

DAY = datetime.date(2024, 2, 29)
AT = datetime.datetime(2024, 2, 29, 12, 30, 15, 123456)
VALUES = {
    "i8": pa.array([5, -5, None], pa.int8()),
    "i32": pa.array([5, -(2**31), None], pa.int32()),
    "i64": pa.array([2**63 - 1, -(2**63), None], pa.int64()),
    "u8": pa.array([255, 0, None], pa.uint8()),
    "u32": pa.array([2**32 - 1, 1, None], pa.uint32()),
    "u64": pa.array([2**64 - 1, 1, None], pa.uint64()),
    "f32": pa.array([1.5, -2.5, None], pa.float32()),
    "f64": pa.array([1e300, -1e300, None], pa.float64()),
    "day": pa.array([DAY, datetime.date(1969, 12, 31), None], pa.date32()),
    "ms": pa.array([AT.replace(microsecond=0), AT.replace(year=1960, microsecond=0), None], pa.timestamp("ms")),
    "us": pa.array([AT, AT.replace(year=1960), None], pa.timestamp("us", tz="UTC")),
    "ns": pa.array([1_999, -1_999, None], pa.timestamp("ns")),
    "time": pa.array([datetime.time(1, 2, 3), datetime.time(23), None], pa.time64("us")),
    "small": pa.array([decimal.Decimal("1.25"), decimal.Decimal("-9.5"), None], pa.decimal128(5, 2)),
    "large": pa.array([decimal.Decimal("9" * 28 + ".12"), decimal.Decimal("-1"), None], pa.decimal128(38, 2)),
    "text": pa.array(["secret", "hidden", None]),
    "bytes": pa.array([b"secret", b"hidden", None]),
    "flag": pa.array([True, False, None]),
    "nothing": pa.nulls(3, pa.int32()),
    "void": pa.nulls(3),
}  # fmt: skip
EXPECTED = {
    "i8": ("-5", "5"),
    "i32": ("-2147483648", "5"),
    "i64": ("-9223372036854775808", "9223372036854775807"),
    "u8": ("0", "255"),
    "u32": ("1", "4294967295"),
    "u64": ("1", "18446744073709551615"),
    "f32": ("-2.5", "1.5"),
    "f64": ("-1e+300", "1e+300"),
    "day": ("1969-12-31", "2024-02-29"),
    "ms": ("1960-02-29T12:30:15", "2024-02-29T12:30:15"),
    "us": ("1960-02-29T12:30:15.123456Z", "2024-02-29T12:30:15.123456Z"),
    "ns": ("1969-12-31T23:59:59.999998", "1970-01-01T00:00:00.000002"),
    "time": ("01:02:03", "23:00:00"),
    "small": ("-9.50", "1.25"),
    "large": ("-1.00", "9" * 28 + ".12"),
}


@pytest.mark.parametrize("rows", [1, 2, 3], ids="{} rows to a group".format)
@pytest.mark.parametrize("integers", [False, True])
def test_bounds_of_numbers_and_times_come_from_parquet_footers(rows: int, integers: bool) -> None:
    data = parquet_bytes(pa.table(VALUES), row_group_size=rows, store_decimal_as_integer=integers)
    statistics = column_statistics(facts_of("a.parquet", data, column_stats=True).columns)
    bounds = {
        name: (column.minimum, column.maximum)
        for name, column in statistics.items()
        if column.minimum is not None or column.maximum is not None
    }
    assert bounds == EXPECTED
    counts = {name: column.null_count for name, column in statistics.items()}
    # Of a column that holds nothing but nulls by its type, no writer counts them.
    assert counts == {name: values.null_count for name, values in VALUES.items()} | {"void": None}
    assert all(column.compressed_bytes for column in statistics.values())


def test_bounds_of_numbers_and_times_come_from_orc_footers() -> None:
    # What ORC has no types for; and of times before 1970 its writer tells no nanoseconds.
    without = ("u8", "u32", "u64", "time", "void", "us", "ns")
    table = pa.table({name: values for name, values in VALUES.items() if name not in without})
    statistics = column_statistics(facts_of("a.orc", orc_bytes(table), column_stats=True).columns)
    assert {name: (column.minimum, column.maximum) for name, column in statistics.items()} == {
        name: {"small": ("-9.5", "1.25"), "large": ("-1", "9" * 28 + ".12")}.get(
            name, EXPECTED.get(name, (None, None))
        )
        for name in table.column_names
    }
    assert all(column.null_count == table[name].null_count for name, column in statistics.items())


def test_texts_of_a_file_are_nowhere_in_its_statistics() -> None:
    for data in (parquet_bytes(pa.table(VALUES)), orc_bytes(pa.table({"text": VALUES["text"]}))):
        packed = pack_columns(facts_of("x", data, column_stats=True).columns)
        assert b"text" in packed
        assert b"secret" not in packed
        assert b"hidden" not in packed


def test_nested_columns_have_the_paths_that_schemas_have() -> None:
    expected = [
        "id", "name", "price", "at", "items[].sku", "items[].count", "share", "labels{key}", "labels{}",
    ]  # fmt: skip
    for data in (parquet_bytes(TABLE), orc_bytes(TABLE)):
        columns = facts_of("x", data, column_stats=True).columns
        assert [column.path for column in columns] == expected


def test_statistics_are_read_only_when_asked_for() -> None:
    assert facts_of("a.parquet", parquet_bytes(TABLE)).columns == ()


def by_pyarrow(data: bytes) -> list[tuple[int | None, int]]:
    metadata = pq.read_metadata(io.BytesIO(data))
    counts = []
    for index in range(metadata.num_columns):
        chunks = [
            metadata.row_group(group).column(index) for group in range(metadata.num_row_groups)
        ]
        nulls = [chunk.statistics.null_count if chunk.statistics else None for chunk in chunks]
        counts.append(
            (None if None in nulls else sum(nulls), sum(chunk.total_compressed_size for chunk in chunks))
        )  # fmt: skip
    return counts


NUMBERS = st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=9)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "use_dictionary": st.booleans(),
        "write_statistics": st.booleans(),
        "write_page_index": st.booleans(),
        "row_group_size": st.integers(1, 4),
        "compression": st.sampled_from(["none", "zstd"]),
        "use_content_defined_chunking": st.booleans(),
    },
)


@settings(max_examples=examples(100))
@given(numbers=NUMBERS, options=OPTIONS)
def test_counts_are_those_that_pyarrow_reads(
    numbers: list[int | None], options: dict[str, Any]
) -> None:
    nested = [None if number is None else [{"x": number}, None] for number in numbers]
    texts = [None if number is None else "t" * (number % 300) for number in numbers]
    table = pa.table({"n": pa.array(numbers, pa.int64()), "deep": nested, "text": texts})
    data = parquet_bytes(table, **options)
    columns = facts_of("a.parquet", data, column_stats=True).columns
    assert [(each.null_count, each.compressed_bytes) for each in columns] == by_pyarrow(data)
    if columns[0].bounded:
        present = [number for number in numbers if number is not None]
        bounds = (min(present), max(present)) if present else (None, None)
        assert (columns[0].minimum, columns[0].maximum) == bounds
    else:
        assert options.get("write_statistics") is False


@pytest.mark.parametrize("name", ["matched", "walked"])
def test_nearly_all_columns_are_matched_by_the_pattern(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked = []
    walk = parquet_columns._walk_chunk
    monkeypatch.setattr(
        parquet_columns, "_walk_chunk", lambda *place: walked.append(place) or walk(*place)
    )
    table = TABLE if name == "matched" else pa.table({"x": ["t" * 200]})
    facts_of("a.parquet", parquet_bytes(table), column_stats=True)
    assert bool(walked) is (name == "walked")


def footer_of(data: bytes) -> bytes:
    return data[-8 - int.from_bytes(data[-8:-4], "little") : -8]


def test_what_the_pattern_matches_is_what_walking_finds() -> None:
    """Also in damaged footers: the pattern is a shortcut and nothing else."""
    chance = random.Random(1)
    pattern = parquet_columns._common_chunk_pattern()
    footers = [
        footer_of(parquet_bytes(TABLE, row_group_size=20)),
        footer_of(parquet_bytes(pa.table(VALUES), write_page_index=True)),
        footer_of(parquet_bytes(TABLE, use_dictionary=False, write_statistics=["id"])),
    ]
    compared = 0
    for _ in range(150):
        footer = bytearray(chance.choice(footers))
        for _ in range(chance.choice((0, 1, 3))):
            footer[chance.randrange(len(footer))] = chance.randrange(256)
        for position in range(len(footer)):
            match = pattern.match(bytes(footer), position)
            if match is None:
                continue
            try:
                chunk, end = parquet_columns._walk_chunk(bytes(footer), position)
            except MalformedData as problem:
                pytest.fail(f"matched what is malformed: {problem}")
            assert (parquet_columns._chunk_from_match(match), match.end()) == (chunk, end)
            compared += 1
    assert compared > 1000


def column(**facts: Any) -> FileColumnStatistics:
    usual = {"path": "a", "kind": "number", "null_count": 1, "compressed_bytes": 10}
    return FileColumnStatistics(**{**usual, "minimum": 1, "maximum": 2, "bounded": True, **facts})


@pytest.mark.parametrize(
    ("other", "together"),
    [
        pytest.param(column(minimum=-5), column(null_count=2, compressed_bytes=20, minimum=-5), id="a smaller minimum"),
        pytest.param(column(maximum=2.5), column(null_count=2, compressed_bytes=20, maximum=2.5), id="an integer and a float"),
        pytest.param(column(maximum=decimal.Decimal("2.1")), column(null_count=2, compressed_bytes=20, maximum=decimal.Decimal("2.1")), id="an integer and a decimal"),
        pytest.param(column(null_count=None), column(null_count=None, compressed_bytes=20), id="a file that does not count nulls"),
        pytest.param(column(minimum=None, maximum=None), column(null_count=2, compressed_bytes=20), id="a file of nulls only"),
        pytest.param(column(minimum=None, maximum=None, bounded=False), column(null_count=2, compressed_bytes=20, bounded=False), id="a file without bounds"),
        pytest.param(column(kind="date"), column(null_count=2, compressed_bytes=20, kind="", minimum=None, maximum=None, bounded=False), id="another type"),
    ],
)  # fmt: skip
def test_columns_of_several_files_become_one(
    other: FileColumnStatistics, together: FileColumnStatistics
) -> None:
    assert merge_columns([[column()], [other]]) == (together,)
    assert merge_columns([[other], [column()]]) == (together,)


def test_a_column_that_some_files_lack_is_kept() -> None:
    first, second = column(), column(path="b")
    assert merge_columns([[first], [first, second]]) == (
        column(null_count=2, compressed_bytes=20),
        second,
    )


def test_bounds_that_do_not_hold_for_all_files_are_not_reported() -> None:
    [statistics] = column_statistics([column(bounded=False)]).values()
    assert (statistics.minimum, statistics.maximum) == (None, None)


def test_columns_travel_in_a_short_form() -> None:
    columns = facts_of("a.parquet", parquet_bytes(pa.table(VALUES)), column_stats=True).columns
    assert unpack_columns(pack_columns(columns)) == columns
