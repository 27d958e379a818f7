"""Rows of every format say the same of the same data."""

import bz2
import gzip
import io
import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal as Exact
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from lumos.formats.identification import read_file
from lumos.formats.interface import UnreadableFile
from lumos.model.schema import Field, Schema
from lumos.model.types import DATE, INT64
from lumos.profiles.columns import column_types, profiled_columns
from lumos.profiles.job import ProfileJob, read_tasks
from lumos.profiles.measurements import ColumnTally, FileTotals
from lumos.profiles.rows import read_batches
from lumos.profiles.tasks import FileTask
from lumos.storage import DEFAULT_ACCESS, LocalStorage
from lumos.storage.errors import StorageDenied

COUNT = 500
RECORDS: list[dict[str, Any]] = [
    {
        "id": number,
        "share": number / 7 if number % 5 else None,
        "name": None if number % 10 == 0 else f"näme {number % 13}",
        "good": number % 3 == 0,
        "inside": {"x": number % 4, "y": "t" * (number % 6)} if number % 7 else None,
        "tags": ["a", None][: number % 3] if number % 11 else None,
    }
    for number in range(COUNT)
]
ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("share", pa.float64()),
        ("name", pa.string()),
        ("good", pa.bool_()),
        ("inside", pa.struct([("x", pa.int64()), ("y", pa.string())])),
        ("tags", pa.list_(pa.string())),
    ]
)
AVRO = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "share", "type": ["null", "double"]},
        {"name": "name", "type": ["null", "string"]},
        {"name": "good", "type": "boolean"},
        {
            "name": "inside",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "i",
                    "fields": [{"name": "x", "type": "long"}, {"name": "y", "type": "string"}],
                },
            ],
        },
        {"name": "tags", "type": ["null", {"type": "array", "items": ["null", "string"]}]},
    ],
}


def parquet(rows: list[dict[str, Any]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=ARROW), sink, row_group_size=100)
    return sink.getvalue()


def orc_file(rows: list[dict[str, Any]]) -> bytes:
    sink = io.BytesIO()
    orc.write_table(pa.Table.from_pylist(rows, schema=ARROW), sink, stripe_size=1024)
    return sink.getvalue()


def avro(codec: str) -> Callable[[list[dict[str, Any]]], bytes]:
    def write(rows: list[dict[str, Any]]) -> bytes:
        sink = io.BytesIO()
        fastavro.writer(sink, AVRO, rows, codec=codec, sync_interval=2000)
        return sink.getvalue()

    return write


def lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode()


def pretty(rows: list[dict[str, Any]]) -> bytes:
    return "\n".join(json.dumps(row, indent=1) for row in rows).encode()


def packed(data: bytes) -> bytes:
    return bytes(pa.compress(data, "zstd", asbytes=True))


WRITERS: dict[str, Callable[[list[dict[str, Any]]], bytes]] = {
    "a.parquet": parquet,
    "a.orc": orc_file,
    "a.avro": avro("null"),
    "deflate.avro": avro("deflate"),
    "snappy.avro": avro("snappy"),
    "a.jsonl": lines,
    "a.json.gz": lambda rows: gzip.compress(lines(rows)),
    "a.json.bz2": lambda rows: bz2.compress(lines(rows)),
    "array.json": lambda rows: json.dumps(rows).encode(),
    "pretty.json": pretty,
}


def schema_of(file: Path) -> tuple[str, Schema]:
    with LocalStorage().open(str(file)) as opened:
        found = read_file(file.name, opened)
    assert found is not None
    return found[0].name, found[1].schema


def measured(file: Path, schema: Schema | None = None, **options: Any) -> FileTotals:
    """What one task counts of a file, against its own schema or another one."""
    format, own = schema_of(file)
    leaves = tuple(
        leaf._replace(values=leaf.kind != "text", top=leaf.kind not in ("list", "map", "opaque"))
        for leaf in profiled_columns(schema or own)
    )
    names = tuple(field.name for field in own.fields)
    task = FileTask(str(file), file.stat().st_size, format, 0, names=names, **options)
    counted: dict[int, FileTotals] = {}
    assert not list(
        read_tasks(ProfileJob(leaves, DEFAULT_ACCESS), [task], counted, (), pa.schema([]))
    )
    return counted[0]


def counts(facts: FileTotals) -> list[Any]:
    return [
        (each.rows, each.nulls, each.misfits, each.low, each.high, each.shortest, each.longest,
         each.elements, each.null_elements, sorted(each.top))
        for each in facts.tallies
    ]  # fmt: skip


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> tuple[Schema, FileTotals]:
    file = tmp_path_factory.mktemp("truth") / "a.parquet"
    file.write_bytes(parquet(RECORDS))
    schema = schema_of(file)[1]
    return schema, measured(file, schema)


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_says_the_same(
    tmp_path: Path, name: str, truth: tuple[Schema, FileTotals]
) -> None:
    schema, expected = truth
    file = tmp_path / name
    file.write_bytes(WRITERS[name](RECORDS))
    found = measured(file, schema)
    assert (found.rows, found.files, found.problems.listed) == (COUNT, 1, [])
    assert counts(found) == counts(expected)


def test_profiles_describe_the_rows_exactly(truth: tuple[Schema, FileTotals]) -> None:
    schema, facts = truth
    by_path = dict(
        zip((leaf.path for leaf in profiled_columns(schema)), facts.tallies, strict=True)
    )
    shares = [row["share"] for row in RECORDS if row["share"] is not None]
    assert (by_path["share"].low, by_path["share"].high) == (min(shares), max(shares))
    assert by_path["inside.x"].nulls == sum(row["inside"] is None for row in RECORDS)
    assert by_path["tags"].null_elements == sum((row["tags"] or []).count(None) for row in RECORDS)
    assert dict(by_path["good"].top)[True] == sum(row["good"] for row in RECORDS)
    assert dict(by_path["name"].top)["näme 1"] == sum(row["name"] == "näme 1" for row in RECORDS)


@pytest.mark.parametrize("name", ["a.parquet", "a.orc"])
def test_portions_of_a_file_add_up_to_all_of_it(
    tmp_path: Path, name: str, truth: tuple[Schema, FileTotals]
) -> None:
    schema, expected = truth
    file = tmp_path / name
    file.write_bytes(WRITERS[name](RECORDS))
    whole = FileTotals(0, 0, [ColumnTally() for _ in expected.tallies])
    for number in range(3):
        whole.join(measured(file, schema, portion=(number, 3)))
    assert (whole.rows, whole.files) == (COUNT, 1)
    assert counts(whole) == counts(expected)


@pytest.mark.parametrize("share", [pytest.param(1.0, id="all"), pytest.param(0.5, id="sample")])
@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_rows_of_portions_and_samples_go_by_their_number_in_the_whole_file(
    tmp_path: Path, format: str, share: float
) -> None:
    count, portions = 20_000, 3
    table = pa.table({"id": pa.array(range(count), pa.int64())})
    file = tmp_path / f"a.{format}"
    if format == "orc":
        orc.write_table(table, str(file), stripe_size=1024, compression="uncompressed")
        assert orc.ORCFile(str(file)).nstripes > 2 * portions
    else:
        pq.write_table(table, str(file), row_group_size=1000)
    deleted = set(range(0, count, 7))
    left: list[int] = []
    for number in range(portions):
        task = FileTask(
            str(file), 0, format, 0, names=("id",), portion=(number, portions), sample=share
        )
        gone = BitMap64(deleted)
        for batch in read_batches(task, LocalStorage(), {"id": INT64}, gone):
            left += batch.columns["id"].to_pylist()
    assert deleted.isdisjoint(left)
    if share == 1.0:
        assert left == [number for number in range(count) if number not in deleted]


@pytest.mark.parametrize("name", WRITERS)
def test_a_sample_of_a_file_is_about_its_share_of_the_rows(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(WRITERS[name](RECORDS))
    assert measured(file, sample=0.2).rows == pytest.approx(COUNT / 5, abs=2)
    assert measured(file, max_rows=7).rows == 7


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("a.csv", "id,when,name\n1,2024-01-02,x\n NA,,\n3,2024-01-04,\"y,z\"\n", id="csv"),
        pytest.param("a.tsv", "id\twhen\tname\n1\t2024-01-02\tx\n\\N\t\t\n3\t2024-01-04\ty,z\n", id="tsv"),
        pytest.param("c.csv", "# made by hand\nid;when;name\n1;2024-01-02;x\n;;\n3;2024-01-04;y,z\n", id="comment"),
        pytest.param("h.csv", "\"i\n\nd\",when,\"na\nme\"\n1,2024-01-02,x\n NA,,\n3,2024-01-04,\"y,z\"\n", id="broken heading"),
        pytest.param("l.csv", "# made by hand\n\n\nid,when,name\n1,2024-01-02,x\n NA,,\n3,2024-01-04,\"y,z\"\n", id="empty lines"),
        pytest.param("e.csv", "sep=;\nid;when;name\n1;2024-01-02;x\n;;\n3;2024-01-04;y,z\n", id="declared"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "encode",
    [
        pytest.param(str.encode, id="utf-8"),
        pytest.param(lambda text: gzip.compress(text.encode()), id="gzip"),
        pytest.param(lambda text: text.encode("utf-16"), id="utf-16"),
        pytest.param(lambda text: text.replace("\n", "\r\n").encode(), id="windows"),
    ],
)
def test_text_of_any_dialect_encoding_and_compression_is_divided_as_it_was_discovered(
    tmp_path: Path, name: str, text: str, encode: Callable[[str], bytes]
) -> None:
    data = encode(text)
    file = tmp_path / (f"{name}.gz" if data.startswith(b"\x1f\x8b") else name)
    file.write_bytes(data)
    found = measured(file)
    ids, moments, names = found.tallies
    assert found.rows == 3
    assert (ids.low, ids.high, ids.nulls, ids.misfits) == (1, 3, 1, 0)
    assert (moments.low, moments.high) == ((date(2024, 1, 2) - date(1970, 1, 1)).days,
                                           (date(2024, 1, 4) - date(1970, 1, 1)).days)  # fmt: skip
    assert (names.nulls, names.longest) == (1, 3)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "a.orc"])
def test_a_partition_has_the_value_of_the_path_as_its_type_has_whatever_files_hold(
    tmp_path: Path, name: str
) -> None:
    file = tmp_path / name
    table = pa.table({"a": [1, 2], "dt": ["x", "y"]})
    if name == "a.csv":
        file.write_text("a,dt\n1,x\n2,y\n")
    elif name == "a.jsonl":
        file.write_bytes(lines(table.to_pylist()))
    else:
        (pq if name == "a.parquet" else orc).write_table(table, str(file))
    schema = Schema(fields=(Field(name="a", type=INT64), Field(name="dt", type=DATE)))
    found = measured(file, schema, partitions=(("dt", "2024-01-02"),))
    numbers, days = found.tallies
    assert (numbers.low, numbers.high) == (1, 2)
    assert (days.low, days.high, days.misfits, days.nulls) == (19_724, 19_724, 0, 0)


def test_rows_of_another_width_count_and_values_of_another_type_are_reported(
    tmp_path: Path,
) -> None:
    rows = "".join(f"{number},x{number}\n" for number in range(100))
    file = tmp_path / "a.csv"
    file.write_text(f"id,name\n{rows}7\n8,y,more\n")
    schema = schema_of(file)[1]
    found = measured(file, schema)
    assert (found.rows, found.tallies[0].misfits, found.tallies[1].nulls) == (102, 0, 1)
    file.write_text(f"id,name\n{rows}many,x\n")
    assert measured(file, schema).tallies[0].misfits == 1


def test_invalid_records_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(lines([{"a": number} for number in range(50)]) + b'{"a": \n{"a": 1.5}\n7\n')
    found = measured(file)
    assert found.rows == 51
    assert [(each.code, each.remark) for each in found.problems.listed] == [("bad_records", True)]


def test_moments_and_exact_numbers_of_avro(tmp_path: Path) -> None:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "sum", "type": {"type": "bytes", "logicalType": "decimal",
                                     "precision": 9, "scale": 2}},
            {"name": "either", "type": ["null", "long", "string"]},
        ],
    }  # fmt: skip
    row = {"at": datetime(2024, 1, 1, tzinfo=UTC), "day": date(2024, 1, 1), "sum": Exact("1.25")}
    file = tmp_path / "a.avro"
    with file.open("wb") as sink:
        fastavro.writer(sink, schema, [{**row, "either": 1}, {**row, "either": None}])
    at, day, total, either = measured(file).tallies
    assert (at.low, day.low, total.low) == (1_704_067_200_000_000, 19_723, "1.25")
    assert (either.nulls, either.misfits) == (1, 0)


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        pytest.param(["", "b", "c"], ["column_1", "b", "c"], id="none"),
        pytest.param(["a", "b", "a"], ["a", "b", "a_3"], id="the same"),
    ],
)
@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_columns_without_a_name_of_their_own_have_their_values(
    tmp_path: Path, format: str, names: list[str], columns: list[str]
) -> None:
    table = pa.table([pa.array([number, number]) for number in (1, 2, 3)], names=names)
    file = tmp_path / f"a.{format}"
    (pq if format == "parquet" else orc).write_table(table, str(file))
    assert [field.name for field in schema_of(file)[1].fields] == columns
    assert [(each.low, each.high) for each in measured(file).tallies] == [(1, 1), (2, 2), (3, 3)]


def test_times_of_spark_2_and_hive_reach_as_far_as_their_calendars(tmp_path: Path) -> None:
    far = [datetime(1, 1, 1), datetime(2024, 5, 1), datetime(9999, 12, 31)]
    table = pa.table({"t": pa.array(far, pa.timestamp("us"))})
    file = tmp_path / "a.parquet"
    pq.write_table(table, file, use_deprecated_int96_timestamps=True)
    (tally,) = measured(file).tallies
    bounds = table["t"].cast(pa.int64()).to_pylist()
    assert (tally.low, tally.high, tally.misfits) == (bounds[0], bounds[2], 0)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        pytest.param(StorageDenied("Access Denied (AccessDenied)"), "Access Denied (AccessDenied)",
                     id="storage"),
        pytest.param(PermissionError(13, "Permission denied", "/a"), "Permission denied", id="disk"),
        pytest.param(TimeoutError(), "TimeoutError", id="without words"),
    ],
)  # fmt: skip
def test_a_fault_of_the_storage_is_reported_in_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: OSError, words: str
) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(lines([{"a": 1}]))

    def fail(*_: Any) -> None:
        raise fault

    monkeypatch.setattr("lumos.profiles.job.read_batches", fail)
    (problem,) = measured(file).problems.listed
    assert (problem.code, problem.reason) == ("unreadable", f"The file could not be read: {words}")


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_is_cut_off_is_unreadable_or_shorter_but_never_a_crash(
    tmp_path: Path, name: str
) -> None:
    data = WRITERS[name](RECORDS)
    file = tmp_path / name
    file.write_bytes(data)
    format, schema = schema_of(file)
    wanted = column_types(profiled_columns(schema))
    names = tuple(field.name for field in schema.fields)
    for length in range(0, len(data), max(1, len(data) // 25)):
        file.write_bytes(data[:length])
        task = FileTask(str(file), length, format, 0, names=names)
        try:
            rows = sum(batch.rows for batch in read_batches(task, LocalStorage(), wanted))
        except UnreadableFile:
            continue
        assert rows < COUNT
