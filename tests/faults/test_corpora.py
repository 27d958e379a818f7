"""Odd Parquet, ORC and Avro files that other projects publish: read, or reported as what they are."""

import io
import subprocess
import sys
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import corpora

from .reading import data_files

TESTS = Path(__file__).parents[1]
pytestmark = pytest.mark.slow

# How many files each has, and which of them have a problem. All else must be read.
JARS = [
    ("org.apache.avro", "avro", "1.12.0", "9e35355120c615fbcd4a8b0a8b6f136c35634c1841cd9135e2df4ef14cc58834", 12, {}),
    ("org.apache.drill.exec", "drill-java-exec", "1.21.2", "4777b8719af96a7ad4907ec65ef62d27a15ea7248de966d772a9d66576ec3d8d", 254, {
        "datetime.parquet": "corrupt_file",
        "multilevel/parquetWithBadFormat/1996/Q1/badFormat.parquet": "not_parquet",
        "project/pushdown/empty.parquet": "empty_file",
    }),
    ("org.apache.hive", "hive-exec", "3.1.3", "2648df75a57abcf2d923c9339c85c4a03ee1e61baa9b5914e56c400fd553c1af", 1, {}),
    ("org.apache.orc", "orc-core", "2.1.2", "28009ff7de9e3d9b420c76ee283c07a0ee359d1d6ad4b6fe839567958b243aa1", 7, {
        "orc_corrupt_zlib.orc": "corrupt_file",
    }),
    ("org.apache.parquet", "parquet-avro", "1.15.2", "ec1bb1f39fc631d9056dc7bd079408632916cb1c4aea838fb483d3f3ead7d347", 1, {}),
    ("org.apache.parquet", "parquet-hadoop", "1.15.2", "f96c94bcd688f59a38e8b89099533814e2dbf7665f78bdce3bacb0fb8ebe3e87", 6, {}),
    ("org.apache.spark", "spark-avro_2.13", "4.0.0", "a871250cb8b14fe82104067c9e5be696ddcaac65a4abd11eef06f0198a863bc2", 24, {}),
    ("org.apache.spark", "spark-sql_2.13", "4.0.0", "f90a8d03589d0c113aa330e970970390a1d7ec00837a6cf8d29309b309b6f3b1", 42, {
        "test-data/group-field-with-enum-as-logical-annotation.parquet": "corrupt_file",
    }),
    ("io.trino", "trino-hive", "476", "77d4049f2df95096d3ec4324d709dcc06e7284b27ff34fcf3d26ebf6937feeb4", 9, {}),
    ("io.trino", "trino-iceberg", "476", "c804a441cb04863995ce4089bd7461f5eb7474faa39e718a405ed8820cbc84fb", 13, {}),
    ("io.trino", "trino-orc", "476", "95f29b24e1159ab0e20fe089b50c222adcee3741ebefb90a1cccbb3b7c8a3be7", 3, {}),
    ("io.trino", "trino-parquet", "476", "c672e89ffa584b5f917db49d68a5b438df6bc464d1068be97584c85e9b9287e2", 6, {}),
]  # fmt: skip
_STUBS = "crates/core/tests/data/timeline/commits_stub"
SDISTS = [
    ("deltalake", "1.6.6", "91864d97adb429fa8b8748b4f68d69adab3d0417ffa9f100bdb85805890c997f", 379, {}),
    ("fastavro", "1.13.1", "6f05aa2539bf7a19e9eb3bdaf6580c4d0f082a8230f641eaf9c84e4bcf0e6bc4", 36, {}),
    ("hudi", "0.5.0", "dc8e1f3405d262491b97e8f009bcae2cbd66279dd2a8300b738ecdc3d9cba51d", 13, {
        f"{_STUBS}/a.parquet": "empty_file",
        f"{_STUBS}/part1/b.parquet": "empty_file",
        f"{_STUBS}/part2/part22/c.parquet": "empty_file",
        f"{_STUBS}/part3/part32/part33/d.parquet": "empty_file",
    }),
    ("pyarrow", "26.0.1", "93affcbd8a343e98dc19e9ec8fe17271ebf8fe98102d8b7454175074409f8b72", 8, {}),
]  # fmt: skip
# The library of this test wants every key in a header to be text.
ONLY_READ_HERE = {"share/test/data/syncInMeta.avro": "6001"}


@pytest.mark.parametrize(
    ("organisation", "name", "version", "sha256", "count", "problems"),
    [pytest.param(*each, id=each[1]) for each in JARS],
)
def test_test_files_of_other_projects_are_read_or_reported(
    organisation: str, name: str, version: str, sha256: str, count: int, problems: dict[str, str]
) -> None:
    assert_read_or_reported(corpora.jar(organisation, name, version, sha256), count, problems)


@pytest.mark.parametrize(
    ("name", "version", "sha256", "count", "problems"),
    [pytest.param(*each, id=each[0]) for each in SDISTS],
)
def test_test_files_of_python_packages_are_read_or_reported(
    name: str, version: str, sha256: str, count: int, problems: dict[str, str]
) -> None:
    assert_read_or_reported(corpora.sdist(name, version, sha256), count, problems)


def assert_read_or_reported(corpus: Path, count: int, problems: dict[str, str]) -> None:
    if not Path("/proc/self/statm").exists():
        pytest.skip("The memory of a process is known on Linux only.")
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "faults.reading", str(corpus)],
        cwd=TESTS,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"{lines[-1:]}:\n{done.stderr[-2000:]}"
    outcomes = dict(line.split("\t") for line in lines)
    assert {
        name: said for name, said in outcomes.items() if said.isidentifier() and said != "None"
    } == problems
    assert len(outcomes) == count
    for name, data in data_files(corpus):
        if name not in problems:
            expected = ONLY_READ_HERE.get(name) or str(rows_by_library(name, data))
            # The rows of a long Avro file are not counted.
            allowed = (expected, "None") if name.endswith(".avro") else (expected,)
            assert outcomes[name] in allowed, name


def rows_by_library(name: str, data: bytes) -> int:
    """The rows as the format's own library counts them."""
    if name.endswith(".avro"):
        return sum(block.num_records for block in fastavro.block_reader(io.BytesIO(data)))
    source = pa.BufferReader(data)
    if data.startswith(b"ORC"):
        return int(orc.ORCFile(source).nrows)
    return int(pq.ParquetFile(source).metadata.num_rows)
