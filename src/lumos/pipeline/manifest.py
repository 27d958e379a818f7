"""Remembers what a scan saw, so that the next one opens only what is new or changed.

A manifest is a folder of Parquet files. Parts of `files` (a row per file) are written and read by
executors alone; `schemas`, `shapes` and `settled` grow with the number of datasets and belong to
the driver. `parts.json` is written last: without it there is no manifest.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lumos.pipeline.columns import FILES, FILES_IN_SPARK, SETTLED, SETTLED_IN_SPARK
from lumos.storage import USUAL, Access, storage_of

_SCHEMAS: Final = pa.schema([("full", pa.string()), ("body", pa.binary())])
_SHAPES: Final = pa.schema(
    [("dataset", pa.string()), ("shape", pa.string()), ("since", pa.int64())]
)
_Batches = Iterable[pa.RecordBatch]


class Manifest:
    """The manifest in a folder of any storage, or an empty one."""

    def __init__(self, folder: str | None, access: Access = USUAL) -> None:
        self._folder = folder
        self._access = access

    def is_there(self) -> bool:
        """Whether the folder holds a whole manifest."""
        if self._folder is None:
            return False
        try:
            self._read("parts.json")
        except FileNotFoundError:
            return False
        return True

    def files(self, spark: SparkSession) -> DataFrame | None:
        """Every file of the scan, read by the executors."""
        if self._folder is None:
            return None
        parts = msgspec.json.decode(self._read("parts.json"), type=list[str])
        names = spark.createDataFrame(pa.table({"part": pa.array(parts, pa.string())}))
        return names.mapInArrow(_part_reader(self._access), schema=FILES_IN_SPARK)

    def write_files(self, files: DataFrame) -> None:
        """Lets every executor write its part, then declares the manifest whole."""
        assert self._folder is not None
        writer = _part_writer(self._folder, self._access)
        written = files.mapInArrow(writer, schema="part string")
        parts = written.toArrow().column("part").to_pylist()
        self._write("parts.json", msgspec.json.encode(parts))

    def schemas(self) -> dict[str, bytes]:
        """The body of every schema in use, by its full fingerprint."""
        return {row["full"]: row["body"] for row in self._rows("schemas", _SCHEMAS)}

    def write_schemas(self, bodies: dict[str, bytes]) -> None:
        rows = [{"full": full, "body": bodies[full]} for full in bodies]
        self._write_rows("schemas", _SCHEMAS, rows)

    def shapes(self) -> dict[tuple[str, str], int]:
        """The number of the scan that first met each shape in each dataset."""
        rows = self._rows("shapes", _SHAPES)
        return {(row["dataset"], row["shape"]): row["since"] for row in rows}

    def write_shapes(self, shapes: dict[tuple[str, str], int]) -> None:
        rows = [
            {"dataset": dataset, "shape": shape, "since": since}
            for (dataset, shape), since in shapes.items()
        ]
        self._write_rows("shapes", _SHAPES, rows)

    def settled(self, spark: SparkSession) -> DataFrame:
        """How the scan settled what folders and name patterns mean."""
        rows = self._rows("settled", SETTLED)
        return spark.createDataFrame(pa.Table.from_pylist(rows, SETTLED), SETTLED_IN_SPARK)

    def write_settled(self, rows: list[dict[str, Any]]) -> None:
        self._write_rows("settled", SETTLED, rows)

    def _rows(self, name: str, schema: pa.Schema) -> list[dict[str, Any]]:
        if self._folder is None:
            return []
        rows: list[dict[str, Any]] = _table(self._read(f"{name}.parquet"), schema).to_pylist()
        return rows

    def _write_rows(self, name: str, schema: pa.Schema, rows: list[dict[str, Any]]) -> None:
        self._write(f"{name}.parquet", _parquet(pa.Table.from_pylist(rows, schema)))

    def _read(self, name: str) -> bytes:
        assert self._folder is not None
        return storage_of(self._folder, self._access).read(f"{self._folder}/{name}")

    def _write(self, name: str, data: bytes) -> None:
        assert self._folder is not None
        storage_of(self._folder, self._access).write(f"{self._folder}/{name}", data)


def with_known(listed: DataFrame, before: DataFrame | None) -> DataFrame:
    """The listed files with what an earlier scan knew of each, as columns `known_...`."""
    if before is None:
        return listed
    facts = [name for name in FILES.names if name not in ("code", "reason", "body")]
    known = before.where("format is not null or code is null").select(
        "path", *(F.col(name).alias(f"known_{name}") for name in facts if name != "path")
    )
    return listed.join(known, "path", "left")


def out_of_sight(listed: DataFrame, before: DataFrame) -> DataFrame:
    """What is known of files in places that could not be listed this time."""
    hidden = listed.where("size is null").select(F.concat("path", F.lit("/")).alias("place"))
    unseen = before.where("size is not null").join(listed.select("path"), "path", "anti")
    return unseen.join(
        F.broadcast(hidden), F.startswith(unseen["path"], hidden["place"]), "semi"
    ).select(*FILES.names)


def _part_writer(folder: str, access: Access) -> Callable[[_Batches], Iterator[pa.RecordBatch]]:
    def write(batches: _Batches) -> Iterator[pa.RecordBatch]:
        table = pa.Table.from_batches(batches, FILES)
        # A task that is tried twice writes two files; only the one that is reported counts.
        part = f"{folder}/files/{uuid.uuid4().hex}.parquet"
        storage_of(folder, access).write(part, _parquet(table))
        yield pa.RecordBatch.from_pydict({"part": [part]})

    return write


def _part_reader(access: Access) -> Callable[[_Batches], Iterator[pa.RecordBatch]]:
    def read(batches: _Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in batch.column("part").to_pylist():
                yield from _table(storage_of(part, access).read(part), FILES).to_batches()

    return read


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _table(data: bytes, schema: pa.Schema) -> pa.Table:
    return pq.read_table(pa.BufferReader(data), schema=schema)
