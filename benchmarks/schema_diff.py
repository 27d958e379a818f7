"""Two snapshots of an estate compared: in memory beside a plain comparison, and on Spark."""

import gc
import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq

from lumos.model.json_codec import from_json, to_json
from lumos.model.schema import Field, Schema
from lumos.model.types import DATE, FLOAT64, INT32, INT64, STRING, DataType
from lumos.schemas.findings import FingerprintedSchema, find_differences
from lumos.schemas.inventory_file import InventoryRow, write_inventory

DATASETS = 100_000
ON_SPARK = 1_000_000
FIELDS = 25
ONE_CHANGED_IN = 100
RUNS = 7
_TYPES: tuple[DataType, ...] = (INT64, STRING, FLOAT64, DATE, INT32)

_COMPARE = """
import json, sys
from lumos import Lumos
overrides = {"spark.config": {"spark.driver.memory": "2g"}}
inventory = Lumos(overrides=overrides).schema_inventory
report = inventory.compare(sys.argv[1], sys.argv[2], to=sys.argv[3])
print(json.dumps({"changed": report.summary.datasets, "changes": report.summary.changes}))
"""


def measure() -> dict[str, Any]:
    """Seconds of both ways in memory, and of the same job on Spark over more datasets."""
    return {"in_memory": _in_memory(), "on_spark": _on_spark()}


def _in_memory() -> dict[str, Any]:
    before, after = (_decoded(changed=changed) for changed in (False, True))
    gc.collect()
    gc.freeze()
    plain: list[float] = []
    lumos: list[float] = []
    for _ in range(RUNS):
        plain.append(_seconds(lambda: _plainly(before, after)))
        lumos.append(_seconds(lambda: find_differences(before, after)))
    assert len(find_differences(before, after).changed) == DATASETS // ONE_CHANGED_IN
    return {
        "datasets": DATASETS,
        "fields_each": FIELDS,
        "changed": DATASETS // ONE_CHANGED_IN,
        "plain_seconds": round(statistics.median(plain), 3),
        "lumos_seconds": round(statistics.median(lumos), 3),
        "times_plain": round(statistics.median(lumos) / statistics.median(plain), 2),
    }


def _plainly(
    before: dict[str, FingerprintedSchema], after: dict[str, FingerprintedSchema]
) -> dict[str, list[object]]:
    """What anybody would write: which datasets came, went or changed, and which fields differ."""
    found: dict[str, list[object]] = {urn: [] for urn in before.keys() ^ after.keys()}
    for urn, new in after.items():
        old = before.get(urn)
        if old is not None and old.fingerprint != new.fingerprint:
            fields = {field.name: field for field in _fields(old)}
            others = {field.name: field for field in _fields(new)}
            found[urn] = [
                (name, fields.get(name), others.get(name))
                for name in fields.keys() | others.keys()
                if fields.get(name) != others.get(name)
            ]
    return found


def _fields(known: FingerprintedSchema) -> tuple[Field, ...]:
    assert isinstance(known.schema, Schema)
    return known.schema.fields


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _on_spark() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        places = [str(Path(folder) / name) for name in ("before.parquet", "after.parquet")]
        for place, changed in zip(places, (False, True), strict=True):
            write_inventory(_snapshot(ON_SPARK, changed=changed), place)
        megabytes = sum(os.path.getsize(place) for place in places) / 1e6
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", _COMPARE, *places, str(Path(folder) / "differences")],
            capture_output=True,
            text=True,
            check=True,
            cwd=folder,
        )
        seconds = time.perf_counter() - started
        floor = _seconds(lambda: _fingerprints_that_differ(*places))
    return {
        "datasets": ON_SPARK,
        "megabytes_of_parquet": round(megabytes),
        "seconds_with_start_of_spark": round(seconds, 1),
        "fingerprints_alone_without_spark": round(floor, 1),
        **msgspec.json.decode(done.stdout),
    }


def _fingerprints_that_differ(before: str, after: str) -> set[str]:
    columns = ["urn", "fingerprint"]
    old, new = (
        dict(zip(*(column.to_pylist() for column in table.columns), strict=True))
        for table in (pq.read_table(place, columns=columns) for place in (before, after))
    )
    return {urn for urn, fingerprint in new.items() if old.get(urn) != fingerprint}


def _snapshot(datasets: int, *, changed: bool) -> Iterator[InventoryRow]:
    """Datasets of which no two have the same columns."""
    usual, other = _body(changed=False), _body(changed=True)
    for number in range(datasets):
        body = other if changed and number % ONE_CHANGED_IN == 0 else usual
        body = body.replace(b"@", b"%d" % number)
        fingerprint = hashlib.blake2b(body, digest_size=16).hexdigest()
        urn = f"lumos://s3/lake/raw/domain_{number % 50}/table_{number}"
        yield InventoryRow(urn, fingerprint, body, "parquet")


def _body(*, changed: bool) -> bytes:
    fields = [
        Field(name=f"column_@_{place}", type=_TYPES[place % len(_TYPES)], nullable=place % 5 != 0)
        for place in range(FIELDS)
    ]
    if changed:
        fields[3] = Field(name="renamed_@", type=fields[3].type)
        fields[7] = msgspec.structs.replace(fields[7], type=STRING, nullable=False)
    return to_json(Schema(fields=tuple(fields)))


def _decoded(*, changed: bool) -> dict[str, FingerprintedSchema]:
    """A snapshot as it comes from a file: nothing shared between datasets."""
    return {
        row.urn: FingerprintedSchema(row.fingerprint, from_json(row.body, Schema), row.format)
        for row in _snapshot(DATASETS, changed=changed)
    }
