"""Compressed text: only its beginning is unfolded, however much there is."""

import bz2
import gzip
import io
import tarfile
import tracemalloc
from contextlib import suppress
from functools import cache

import pyarrow as pa
import pytest

from lumos.formats.identification import read_file
from lumos.formats.interface import UnreadableFile

from .material import COMPRESS, TABLE, MemoryFile, facts_of, found, parquet_bytes

CSV = b"id,name\n" + b"1,Ann\n" * 100
LINES = b'{"id": 1}\n' * 100


@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize(
    ("name", "data", "format"),
    [("a.csv", CSV, "csv"), ("a.json", LINES, "json"), ("a", CSV, "csv"), ("a.txt", LINES, "json")],
    ids=["CSV", "JSON", "CSV without ending", "JSON in a text file"],
)
def test_compressed_text_is_read_like_other_text(
    ending: str, name: str, data: bytes, format: str
) -> None:
    found_format, facts = found(f"{name}.{ending}", COMPRESS[ending](data))
    assert (found_format, facts.row_count, facts.row_count_exact) == (format, 100, True)
    assert facts.remarks == ()


@pytest.mark.parametrize(
    ("name", "data", "remarks"),
    [
        pytest.param("a.csv", gzip.compress(CSV), ["It is named .csv but is compressed with gzip."], id="compressed without saying so"),
        pytest.param("a.csv.gz", CSV, ["It is named .gz but is not compressed."], id="not compressed"),
        pytest.param("a.csv.gz", bz2.compress(CSV), ["It is named .gz but is compressed with bzip2."], id="compressed otherwise"),
        pytest.param("a.csv.gz", gzip.compress(LINES), ["It is named .csv but is JSON."], id="another format, compressed"),
        pytest.param("a.parquet.gz", parquet_bytes(TABLE), ["It is named .gz but is not compressed."], id="Parquet, not compressed"),
        pytest.param("a.json.snappy", LINES, ["It is named .snappy but is not compressed."], id="not compressed with snappy"),
        pytest.param("a", gzip.compress(CSV), [], id="no name to be wrong"),
    ],
)  # fmt: skip
def test_a_name_that_is_wrong_about_compression_is_reported(
    name: str, data: bytes, remarks: list[str]
) -> None:
    facts = facts_of(name, data)
    assert [remark.reason for remark in facts.remarks] == remarks
    assert {remark.code for remark in facts.remarks} <= {"mislabelled"}


def test_several_compressed_files_in_a_row_are_one() -> None:
    for compress in COMPRESS.values():
        data = compress(b"a,b\n") + compress(b"1,2\n") + compress(b"3,4\n")
        facts = facts_of("x.csv", data)
        assert (str(facts.schema), facts.row_count) == ("a INT64\nb INT64", 2)


@pytest.mark.parametrize("ending", COMPRESS)
def test_the_beginning_of_a_large_file_costs_one_read(ending: str) -> None:
    rows = b"".join(b"%d,%d\n" % (number, number * 7919 % 104_729) for number in range(400_000))
    file = MemoryFile(COMPRESS[ending](b"a,b\n" + rows))
    result = read_file(f"x.csv.{ending}", file)
    assert result is not None
    assert str(result[1].schema) == "a INT64\nb INT64"
    assert len(file.reads) <= 2
    assert max(length for _, length in file.reads) <= 1024 * 1024


@cache
def bomb_of(ending: str) -> bytes:
    return COMPRESS[ending](b"0" * 100_000_000)


@pytest.mark.parametrize("name", ["bomb.csv", "bomb.json", "bomb"])
@pytest.mark.parametrize("ending", COMPRESS)
def test_a_bomb_does_not_go_off(name: str, ending: str) -> None:
    bomb = bomb_of(ending)
    tracemalloc.start()
    try:
        with suppress(UnreadableFile):
            read_file(f"{name}.{ending}", MemoryFile(bomb))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40_000_000


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        *(
            pytest.param(f"a.csv.{ending}", compress(CSV * 50)[:-20], "corrupt_file", id=f"{ending} cut off")
            for ending, compress in COMPRESS.items()
        ),
        *(
            pytest.param(f"a.csv.{ending}", compress(b"")[:4] + b"1AY&SY" + b"nonsense" * 9, "corrupt_file", id=f"{ending} damaged")
            for ending, compress in COMPRESS.items()
        ),
        pytest.param("a.csv.gz", gzip.compress(gzip.compress(CSV)), "nested_compression", id="twice compressed"),
        pytest.param("a.parquet.gz", gzip.compress(parquet_bytes(TABLE)), "compressed_container", id="Parquet inside gzip"),
        pytest.param("a.csv.gz", gzip.compress(b""), "empty_file", id="nothing, compressed"),
        pytest.param("a.json.gz", gzip.compress(b""), "empty_file", id="nothing, compressed as JSON"),
        pytest.param("a.csv.xz", b"\xfd7zXZ\x00" + bytes(50), "unsupported_compression", id="xz"),
        pytest.param("a.json.snappy", b"\xff\x06\x00\x00sNaPpY" + bytes(50), "unsupported_compression", id="snappy"),
        pytest.param("a.csv.gz", gzip.compress(bytes(500)), "not_text", id="zeros, compressed"),
    ],
)  # fmt: skip
def test_what_cannot_be_unfolded_is_refused_with_a_code(name: str, data: bytes, code: str) -> None:
    with pytest.raises(UnreadableFile) as problem:
        read_file(name, MemoryFile(data))
    assert problem.value.code == code


def tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.csv"))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        pytest.param("a.tar.gz", gzip.compress(tar()), id="an archive"),
        pytest.param("a.gz", gzip.compress(tar()), id="an archive without its ending"),
        pytest.param("a.sql.gz", gzip.compress(b"1,2,3\n4,5,6\n7,8,9\n"), id="a dump"),
        pytest.param("a.log.gz", gzip.compress(b"started\nstopped\n"), id="a log"),
        pytest.param("a.zst", pa.compress(b"some words", codec="zstd", asbytes=True), id="words"),
        pytest.param("a", gzip.compress(gzip.compress(CSV)), id="twice compressed without ending"),
    ],
)
def test_compressed_files_that_are_no_data_are_left_alone(name: str, data: bytes) -> None:
    assert read_file(name, MemoryFile(data)) is None
