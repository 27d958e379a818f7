"""How many files of each format one process reads in a second, against their bare bytes.

Every file has 30 columns, 100 rows and contents of its own; twenty schemas take turns, as the
tables of a lake do. The floor opens the same files and reads the same bytes. Where the usual
reader of a format does the same work, its figure stands beside.
"""

import gzip
import io
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import fastavro
import msgspec
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.orc
import pyarrow.parquet

from lumos.formats.identification import read_file
from lumos.storage import LocalStorage

COLUMNS = 30
ROWS = 100
TABLES = 20
FILES_EACH = 50
RUNS = 3
_READ = 64 * 1024


def measure() -> dict[str, Any]:
    """Files per second, those of the floor and of the format's usual reader, and their ratios."""
    figures: dict[str, Any] = {
        "columns": COLUMNS,
        "rows": ROWS,
        "schemas": TABLES,
        "files": TABLES * FILES_EACH,
    }
    with tempfile.TemporaryDirectory() as folder:
        tables = _tables()
        for name, (write, reference) in _FORMATS.items():
            files = _written(Path(folder), name, tables, write)
            figures[name] = _measured(files, reference)
        statistics_of = _written(Path(folder), "parquet", tables, _parquet)
        figures["parquet with column statistics"] = _measured(
            statistics_of, _parquet_statistics, column_stats=True
        )
    return figures


def _measured(
    files: list[str], reference: Callable[[str], object] | None, *, column_stats: bool = False
) -> dict[str, Any]:
    storage = LocalStorage()
    from_end = files[0].endswith((".parquet", ".orc"))

    def lumos(path: str) -> object:
        with storage.open(path) as file:
            return read_file(path.rpartition("/")[2], file, column_stats=column_stats)

    def floor(path: str) -> object:
        with storage.open(path) as file:
            return file.tail(_READ) if from_end else file.head(_READ)

    rates = {"floor": _rate(floor, files), "lumos": _rate(lumos, files)}
    if reference is not None:
        rates["usual reader"] = _rate(reference, files)
    return {
        **{f"{who}_per_second": round(rate) for who, rate in rates.items()},
        **{
            f"lumos_to_{who}": round(rates["lumos"] / rate, 2)
            for who, rate in rates.items()
            if who != "lumos"
        },
    }


def _rate(read: Callable[[str], object], files: list[str]) -> float:
    """Files per second of the processor's time, so that other processes do not count."""
    taken = []
    for _ in range(RUNS):
        started = time.process_time()
        for file in files:
            read(file)
        taken.append(time.process_time() - started)
    return len(files) / statistics.median(taken)


def _tables() -> list[pa.Table]:
    """One table for each schema, with rows enough that every file gets its own."""
    chance = random.Random(1)
    rows = ROWS + FILES_EACH
    start = datetime(2024, 1, 1)
    kinds: list[tuple[str, Callable[[], Any]]] = [
        ("id", lambda: chance.randrange(10**9)),
        ("name", lambda: f"name {chance.randrange(10**6)}"),
        ("amount", lambda: None if chance.random() < 0.1 else round(chance.random() * 1000, 4)),
        ("at", lambda: start + timedelta(seconds=chance.randrange(10**7))),
        ("active", lambda: chance.random() < 0.5),
    ]
    return [
        pa.table(
            {
                f"{kinds[column % 5][0]}_{table}_{column}": [
                    kinds[column % 5][1]() for _ in range(rows)
                ]
                for column in range(COLUMNS)
            }
        )
        for table in range(TABLES)
    ]


def _written(
    folder: Path, name: str, tables: list[pa.Table], write: Callable[[pa.Table], bytes]
) -> list[str]:
    place = folder / name.replace(".", "_")
    place.mkdir(exist_ok=True)
    files = []
    for number in range(TABLES * FILES_EACH):
        table = tables[number % TABLES].slice(number // TABLES, ROWS)
        file = place / f"{number}.{name}"
        file.write_bytes(write(table))
        files.append(str(file))
    return files


def _parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer)
    return buffer.getvalue()


def _orc(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pyarrow.orc.write_table(table, buffer, compression="zlib")
    return buffer.getvalue()


def _avro(table: pa.Table) -> bytes:
    kinds = {
        "int64": "long",
        "string": "string",
        "double": "double",
        "bool": "boolean",
        "timestamp[us]": {"type": "long", "logicalType": "local-timestamp-micros"},
    }
    fields = [{"name": f.name, "type": ["null", kinds[str(f.type)]]} for f in table.schema]
    buffer = io.BytesIO()
    schema = {"type": "record", "name": "row", "fields": fields}
    fastavro.writer(buffer, schema, table.to_pylist(), codec="deflate")
    return buffer.getvalue()


def _csv(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    options = pyarrow.csv.WriteOptions(quoting_style="needed")
    pyarrow.csv.write_csv(table, buffer, options)
    return buffer.getvalue()


def _json(table: pa.Table) -> bytes:
    return b"".join(msgspec.json.encode(row) + b"\n" for row in table.to_pylist())


def _parquet_footer(path: str) -> object:
    return pyarrow.parquet.read_metadata(path).schema.to_arrow_schema()


def _parquet_statistics(path: str) -> object:
    metadata = pyarrow.parquet.read_metadata(path)
    group = metadata.row_group(0)
    chunks = [group.column(column) for column in range(metadata.num_columns)]
    return [
        (chunk.path_in_schema, chunk.total_compressed_size, chunk.statistics.null_count,
         chunk.statistics.min_raw, chunk.statistics.max_raw)
        for chunk in chunks
    ]  # fmt: skip


def _orc_footer(path: str) -> object:
    return pyarrow.orc.ORCFile(path).schema


def _avro_header(path: str) -> object:
    with open(path, "rb") as file:
        return fastavro.reader(file).writer_schema


_FORMATS: dict[str, tuple[Callable[[pa.Table], bytes], Callable[[str], object] | None]] = {
    "parquet": (_parquet, _parquet_footer),
    "orc": (_orc, _orc_footer),
    "avro": (_avro, _avro_header),
    "csv": (_csv, pyarrow.csv.read_csv),
    "csv.gz": (lambda table: gzip.compress(_csv(table)), pyarrow.csv.read_csv),
    "jsonl": (_json, pyarrow.json.read_json),
}
