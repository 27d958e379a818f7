"""Files in memory: one that counts its reads, and a valid file of every format and compression."""

import bz2
import decimal
import gzip
import io
import json
from functools import cache
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from lumos.formats.identification import read_file
from lumos.formats.interface import FileFacts


class MemoryFile:
    """Ranged reads of some bytes, each of which storage would charge as a request."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)
        self.reads: list[tuple[str, int]] = []

    def head(self, length: int) -> bytes:
        self.reads.append(("head", length))
        return self.data[:length]

    def tail(self, length: int) -> bytes:
        self.reads.append(("tail", length))
        return self.data[max(0, self.size - length) :]


def found(name: str, data: bytes, **options: bool) -> tuple[str, FileFacts]:
    """The format and facts of a file that must be one with data."""
    result = read_file(name, MemoryFile(data), **options)
    assert result is not None
    return result[0].name, result[1]


def facts_of(name: str, data: bytes, **options: bool) -> FileFacts:
    """The facts of a file that must be one with data."""
    return found(name, data, **options)[1]


def parquet_bytes(table: pa.Table, **options: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


def orc_bytes(table: pa.Table, **options: Any) -> bytes:
    buffer = io.BytesIO()
    orc.write_table(table, buffer, **options)
    return buffer.getvalue()


def avro_bytes(
    fields: list[dict[str, Any]], records: list[dict[str, Any]], **options: Any
) -> bytes:
    buffer = io.BytesIO()
    schema = {"type": "record", "name": "row", "fields": fields}
    fastavro.writer(buffer, schema, records, **options)
    return buffer.getvalue()


COMPRESS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}

ROWS = 50
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "name": [f"name {number}" for number in range(ROWS)],
        "price": pa.array([decimal.Decimal(n) / 4 for n in range(ROWS)], pa.decimal128(10, 2)),
        "at": pa.array(range(ROWS), pa.timestamp("us")),
        "items": [[{"sku": "x", "count": 1}]] * ROWS,
        "share": [number / 3 if number % 5 else None for number in range(ROWS)],
        "labels": pa.array([[("key", 1)]] * ROWS, pa.map_(pa.string(), pa.int32())),
    }
)
_AVRO_FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "name", "type": ["null", "string"]},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
]


@cache
def valid_files() -> dict[str, bytes]:
    """A file of every format, dialect and compression, by its name."""
    csv = "id,name,share,day\n" + "".join(
        f'{n},"name ""{n}""",{n / 7},2024-01-{n % 28 + 1:02}\n' for n in range(ROWS)
    )
    records = [{"id": n, "at": {"x": [1, 2.5, None]}, "t": "a\nb", "b": n > 3} for n in range(ROWS)]
    lines = "".join(json.dumps(record) + "\n" for record in records).encode()
    array = json.dumps(records).encode()
    files = {
        "a.parquet": parquet_bytes(TABLE, row_group_size=20),
        "v2.parquet": parquet_bytes(
            TABLE, data_page_version="2.0", store_schema=False, write_page_index=True
        ),
        **{
            f"{codec}.orc": orc_bytes(TABLE, compression=codec)
            for codec in ("uncompressed", "snappy", "zlib", "lz4", "zstd")
        },
        "a.avro": avro_bytes(
            _AVRO_FIELDS, [{"id": n, "name": None, "tags": ["x"]} for n in range(ROWS)]
        ),
        "a.csv": csv.encode(),
        "a.tsv": csv.replace(",", "\t").encode(),
        "utf16.csv": csv.encode("utf-16"),
        "extensionless": csv.encode(),
        "a.jsonl": lines,
        "a.json": array,
        "pretty.json": json.dumps(records, indent=1).encode(),
        "lines.log": lines,
    }
    for name, data in (("a.csv", csv.encode()), ("a.jsonl", lines), ("a.json", array)):
        files |= {f"{name}.{ending}": compress(data) for ending, compress in COMPRESS.items()}
    return {**files, "compressed": gzip.compress(lines)}
