"""What reading a lake in a bucket costs in requests."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lumos.discovery.lake.summaries import DataFileReader
from lumos.http.retries import RetryPolicy
from lumos.storage import KeyRange, ListedFile
from lumos.storage.s3 import S3Access, S3Storage
from s3_server import Request, Response, S3Server, error


def parquet(rows: int) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": range(rows)}), sink, compression="none", use_dictionary=False)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("small.parquet", parquet(10)),
        ("large.parquet", parquet(100_000)),
        ("small.csv", b"id,name\n1,Ann\n"),
        ("large.csv", b"id,name\n" + b"1,Ann\n" * 100_000),
        ("large.json", b'{"id": 1, "name": "Ann"}\n' * 50_000),
    ],
)  # fmt: skip
def test_each_file_costs_one_request(name: str, data: bytes) -> None:
    lake = {f"raw/{number}/{name}": data for number in range(20)}
    with S3Server({"lake": lake}) as server:
        storage = S3Storage(S3Access(endpoint_url=server.url, anonymous=True))
        listed = [
            each for each in storage.walk(KeyRange("s3://lake")) if isinstance(each, ListedFile)
        ]
        rows = list(
            DataFileReader(storage, column_stats=False).read((each, None) for each in listed)
        )
        assert [row.code for row in rows] == [None] * 20
        assert all(row.format for row in rows)
        assert server.counted("GET", listing=True) == 1
        assert server.counted("GET", listing=False) == 20
        assert server.counted("HEAD", listing=False) == 0


def test_files_that_a_busy_server_never_gives_are_problems_and_the_others_are_read() -> None:
    def busy(request: Request) -> Response | None:
        return error(503, "SlowDown", "Reduce your rate") if "busy" in request.path else None

    lake = {"raw/busy.csv": b"id\n1\n", "raw/fine.csv": b"id\n1\n", "raw/gone.csv": b"id\n1\n"}
    with S3Server({"lake": lake}, answer=busy) as server:
        brief = RetryPolicy(tries=2, first_wait=0.01, max_wait=0.01)
        access = S3Access(endpoint_url=server.url, anonymous=True)
        storage = S3Storage(access, retries=brief)
        listed = [
            each for each in storage.walk(KeyRange("s3://lake")) if isinstance(each, ListedFile)
        ]
        del server.buckets["lake"]["raw/gone.csv"]
        rows = DataFileReader(storage, column_stats=False).read((each, None) for each in listed)
        found = {row.path.rpartition("/")[2]: (row.format, row.code, row.reason) for row in rows}
    assert found["fine.csv"] == ("csv", None, None)
    assert found["gone.csv"][1] == "vanished"
    assert found["busy.csv"][:2] == (None, "unreadable")
    assert "SlowDown" in str(found["busy.csv"][2])
