"""What reading a lake in a bucket costs in requests."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lumos.pipeline.reading import Reader
from lumos.storage import Listed, Stretch
from lumos.storage.s3 import S3Access, S3Storage
from s3_server import S3Server


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
        listed = [each for each in storage.walk(Stretch("s3://lake")) if isinstance(each, Listed)]
        rows = list(Reader(storage).read((each, None) for each in listed))
        assert [row.code for row in rows] == [None] * 20
        assert all(row.format for row in rows)
        assert server.counted("GET", listing=True) == 1
        assert server.counted("GET", listing=False) == 20
        assert server.counted("HEAD", listing=False) == 0
