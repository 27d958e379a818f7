"""Rows of Avro: times that few calendars reach, and files of no records."""

import bz2
import io
import lzma
import zlib
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from fastavro import _read
from fastavro.read import LOGICAL_READERS

from lumos.profiles.measurements import ColumnTally
from profiles.test_rows import measured

DAY = 86_400


def tally(file: Path, type: dict[str, Any], values: list[Any]) -> ColumnTally:
    schema = {"type": "record", "name": "r", "fields": [{"name": "t", "type": type}]}
    with file.open("wb") as sink:
        fastavro.writer(sink, schema, [{"t": value} for value in values])
    found = measured(file)
    assert (found.rows, found.files, found.problems.listed) == (len(values), 1, [])
    return found.tallies[0]


@pytest.mark.parametrize(
    ("kind", "logical", "per_second"),
    [
        pytest.param("long", "timestamp-millis", 1000, id="millis"),
        pytest.param("long", "local-timestamp-millis", 1000, id="local millis"),
        pytest.param("long", "timestamp-micros", 10**6, id="micros"),
        pytest.param("long", "local-timestamp-micros", 10**6, id="local micros"),
        pytest.param("int", "date", 1 / DAY, id="days"),
    ],
)
def test_times_before_year_1_and_after_9999_are_read_as_others_are(
    tmp_path: Path, kind: str, logical: str, per_second: float
) -> None:
    # A day of the years -8000, 1970 and 10000.
    seconds = [-3_700_000 * DAY, 0, 2_932_897 * DAY]
    found = tally(
        tmp_path / "a.avro",
        {"type": kind, "logicalType": logical},
        [round(each * per_second) for each in seconds],
    )
    counted = [each // DAY if logical == "date" else each * 10**6 for each in seconds]
    assert (found.low, found.high, found.misfits, found.nulls) == (counted[0], counted[2], 0, 0)


@pytest.mark.parametrize("logical", ["timestamp-nanos", "local-timestamp-nanos"])
def test_times_to_the_nanosecond(tmp_path: Path, logical: str) -> None:
    values = [1_704_067_200_000_000_001, -5]
    found = tally(tmp_path / "a.avro", {"type": "long", "logicalType": logical}, values)
    assert (found.low, found.high, found.misfits) == (-5, values[0], 0)


@pytest.mark.parametrize(
    ("type", "values"),
    [
        pytest.param({"type": "long", "logicalType": "timestamp-millis"}, [0, 2**62], id="moment"),
        pytest.param({"type": "int", "logicalType": "time-millis"}, [0, 99_999_999], id="hour"),
        pytest.param(
            {"type": "long", "logicalType": "timestamp-millis"},
            [datetime(2024, 1, 1, tzinfo=UTC), -(2**62)],
            id="moment before all",
        ),
    ],
)
def test_a_value_that_is_no_time_is_of_another_type(
    tmp_path: Path, type: dict[str, Any], values: list[Any]
) -> None:
    assert tally(tmp_path / "a.avro", type, values).misfits == 1


def test_days_of_all_years_stand_beside_each_other(tmp_path: Path) -> None:
    values = [date(2024, 1, 1), 10_000_000]
    found = tally(tmp_path / "a.avro", {"type": "int", "logicalType": "date"}, values)
    assert (found.low, found.high, found.misfits) == (19_723, 10_000_000, 0)


@pytest.mark.parametrize(
    ("schema", "values", "lengths"),
    [
        pytest.param("string", ["a", "bb"], (1, 2), id="texts"),
        pytest.param({"type": "map", "values": "int"}, [{"x": 1}, {}], (0, 1), id="maps"),
        pytest.param(["null", "string"], [None, "bb"], (2, 2), id="texts or null"),
    ],
)
def test_values_that_are_no_records_are_the_column_that_stands_for_them(
    tmp_path: Path, schema: Any, values: list[Any], lengths: tuple[int, int]
) -> None:
    file = tmp_path / "a.avro"
    with file.open("wb") as sink:
        fastavro.writer(sink, schema, values)
    (found,) = measured(file).tallies
    assert (found.rows, found.nulls) == (2, values.count(None))
    assert (found.shortest, found.longest) == lengths


def test_the_library_reads_as_before_for_others(tmp_path: Path) -> None:
    readers, blocks = dict(LOGICAL_READERS), dict(_read.BLOCK_READERS)
    file = tmp_path / "a.avro"
    type = {"type": "long", "logicalType": "timestamp-millis"}
    tally(file, type, [0, 2**62])
    assert {name: LOGICAL_READERS[name] for name in readers} == readers
    assert blocks == _read.BLOCK_READERS
    with file.open("rb") as source, pytest.raises(OverflowError):
        list(fastavro.reader(source))


@pytest.mark.parametrize("codec", ["zstandard", "snappy", "bzip2", "xz", "deflate", "null"])
def test_files_of_every_codec_are_read_without_other_libraries(tmp_path: Path, codec: str) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "t", "type": "long"}]}
    whole = io.BytesIO()
    fastavro.writer(whole, schema, [{"t": number} for number in range(5)], sync_marker=b"s" * 16)
    content = whole.getvalue()[-21:-16]
    packed = {
        "zstandard": lambda: pa.compress(content, "zstd", asbytes=True),
        "snappy": lambda: pa.compress(content, "snappy", asbytes=True) + b"\0" * 4,
        "bzip2": lambda: bz2.compress(content),
        "xz": lambda: lzma.compress(content),
        "deflate": lambda: zlib.compress(content)[2:-4],
        "null": lambda: content,
    }[codec]()
    head = whole.getvalue()[: -(5 + 16 + 2)].replace(
        b"\x08null", bytes([len(codec) * 2]) + codec.encode()
    )
    file = tmp_path / "a.avro"
    sizes = io.BytesIO()
    for number in (5, len(packed)):
        fastavro.schemaless_writer(sizes, "long", number)
    file.write_bytes(head + sizes.getvalue() + packed + b"s" * 16)
    found = measured(file)
    assert (found.rows, found.problems.listed, found.tallies[0].high) == (5, [], 4)
