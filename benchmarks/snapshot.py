"""Snapshots beside msgspec alone, in little memory, and on Spark.

The floor encodes or decodes the same values from and to the same JSON with the model's codec and
does nothing else: no hashes, no order, no references, no files.
"""

import gc
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import (
    Documentation,
    Governance,
    Lineage,
    Owner,
    Ownership,
    UpstreamEdge,
)
from lumos.model.json_codec import from_json, to_json
from lumos.model.schema import Field, Schema
from lumos.model.types import DATE, FLOAT64, INT32, INT64, STRING, DataType
from lumos.snapshots.format.comparison import compare
from lumos.snapshots.format.document import SnapshotFacts
from lumos.snapshots.format.validation import validate
from lumos.snapshots.format.writer import write_snapshot
from lumos.snapshots.on_spark import compare_schemas

DATASETS = 20_000
IN_LITTLE_MEMORY = 200_000
ON_SPARK = 1_000_000
FOR_PEOPLE = 1_000
FIELDS = 25
ONE_CHANGED_IN = 100
RUNS = 7
_FACTS = SnapshotFacts(exported_at=datetime(2024, 1, 15, tzinfo=UTC), platform="local")
_TYPES: tuple[DataType, ...] = (INT64, STRING, FLOAT64, DATE, INT32)

_PEAK = """
import re, sys, time
from pathlib import Path
started = time.process_time()
{work}
seconds = time.process_time() - started
# What getrusage says goes back to the process that this one was forked from.
status = Path("/proc/self/status").read_text()
megabytes = int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) / 1024
print('{{"seconds": %.1f, "megabytes": %.0f, "found": %d}}' % (seconds, megabytes, found))
"""
_VALIDATE = """
from lumos.snapshots.format.validation import validate
found = len(list(validate(sys.argv[1])))
"""
_DIFF = """
from lumos.snapshots.on_spark import compare_schemas
from lumos.snapshots.format.comparison import compare
found = sum(1 for _ in compare(sys.argv[1], sys.argv[2], compare_schemas=compare_schemas))
"""
_SPARK = """
import json, sys, time
from pathlib import Path
from lumos.snapshots.on_spark import compare_folders, validate_folder
from lumos.spark.session import spark_session
before, after, out = map(Path, sys.argv[1:])
settings = {"spark.driver.memory": "3g"}
with spark_session(master="local[*]", settings=settings, short=False) as session:
    started = time.perf_counter()
    examined = validate_folder(session, before)
    validated = time.perf_counter()
    sums = compare_folders(session, before, after, to=out)
    compared = time.perf_counter()
print(json.dumps({
    "validate_seconds": round(validated - started, 1), "problems": len(examined.problems),
    "diff_seconds": round(compared - validated, 1), "differences": sum(sums.impacts.values()),
}))
"""


def measure() -> dict[str, Any]:
    """CPU seconds beside the floor, peak memory of streams, and seconds on Spark."""
    with tempfile.TemporaryDirectory() as folder:
        return {
            **{ending: _beside_msgspec(Path(folder), ending) for ending in ("json", "jsonl")},
            "other_encodings": _other_encodings(Path(folder)),
            "in_little_memory": _in_little_memory(Path(folder)),
            "on_spark": _on_spark(Path(folder)),
        }


def _beside_msgspec(folder: Path, ending: str) -> dict[str, Any]:
    entries, changed, others = (
        list(_estate(DATASETS, changed=every)) for every in (0, ONE_CHANGED_IN, 1)
    )
    data = to_json(entries)
    places = [folder / f"{name}.{ending}" for name in ("before", "changed", "others")]
    before, after, all_new = places
    write_snapshot(after, _FACTS, changed)
    write_snapshot(all_new, _FACTS, others)
    del changed, others
    works: dict[str, Callable[[], object]] = {
        "encode": lambda: to_json(entries),
        "export": lambda: write_snapshot(before, _FACTS, entries),
        "decode": lambda: from_json(data, list[CatalogEntry]),
        "validate": lambda: list(validate(before)),
        "diff": lambda: list(compare(before, after, compare_schemas=compare_schemas)),
        "diff_all_changed": lambda: sum(
            1 for _ in compare(before, all_new, compare_schemas=compare_schemas)
        ),
    }
    seconds: dict[str, list[float]] = {name: [] for name in works}
    gc.collect()
    gc.freeze()
    for _ in range(RUNS):
        for name, work in works.items():
            if name == "export":
                before.unlink(missing_ok=True)
            seconds[name].append(_cpu_seconds(work))
    gc.unfreeze()
    median = {name: statistics.median(each) for name, each in seconds.items()}
    return {
        "datasets": DATASETS,
        "fields_each": FIELDS,
        "megabytes": round(len(data) / 1e6, 1),
        "cpu_seconds": {name: round(each, 3) for name, each in median.items()},
        "export_times_encode": round(median["export"] / median["encode"], 2),
        "validate_times_decode": round(median["validate"] / median["decode"], 2),
        # Two snapshots are read, so that the floor decodes both.
        "diff_times_decode": round(median["diff"] / median["decode"] / 2, 2),
        "diff_all_changed_times_decode": round(
            median["diff_all_changed"] / median["decode"] / 2, 2
        ),
    }


def _cpu_seconds(work: Callable[[], object]) -> float:
    # Of a machine that others use as well, only this process's own time says something.
    started = time.process_time()
    work()
    return time.process_time() - started


def _other_encodings(folder: Path) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for ending, datasets in (("yaml", FOR_PEOPLE), ("jsonl.zst", DATASETS), ("parquet", DATASETS)):
        entries = list(_estate(datasets, changed=0))
        file = folder / f"other.{ending}"
        exported = _cpu_seconds(lambda: write_snapshot(file, _FACTS, entries))  # noqa: B023
        validated = _cpu_seconds(lambda: list(validate(file)))  # noqa: B023
        files = [file] if file.is_file() else list(file.iterdir())
        figures[ending] = {
            "datasets": datasets,
            "export_cpu_seconds": round(exported, 2),
            "validate_cpu_seconds": round(validated, 2),
            "megabytes": round(sum(each.stat().st_size for each in files) / 1e6, 1),
        }
    return figures


def _in_little_memory(folder: Path) -> dict[str, Any]:
    before, after = folder / "before.jsonl", folder / "after.jsonl"
    write_snapshot(before, _FACTS, _estate(IN_LITTLE_MEMORY, changed=0))
    write_snapshot(after, _FACTS, _estate(IN_LITTLE_MEMORY, changed=ONE_CHANGED_IN))
    figures = {
        "datasets": IN_LITTLE_MEMORY,
        "megabytes_of_jsonl": round(before.stat().st_size / 1e6),
        "validate": _in_a_process(_PEAK.format(work=_VALIDATE), before),
        "diff": _in_a_process(_PEAK.format(work=_DIFF), before, after),
    }
    before.unlink()
    after.unlink()
    return figures


def _on_spark(folder: Path) -> dict[str, Any]:
    before, after = folder / "before.parquet", folder / "after.parquet"
    started = time.process_time()
    write_snapshot(before, _FACTS, _estate(ON_SPARK, changed=0))
    exported = time.process_time() - started
    write_snapshot(after, _FACTS, _estate(ON_SPARK, changed=ONE_CHANGED_IN))
    return {
        "datasets": ON_SPARK,
        "megabytes_of_parquet": round(sum(file.stat().st_size for file in before.iterdir()) / 1e6),
        "export_cpu_seconds": round(exported, 1),
        **_in_a_process(_SPARK, before, after, folder / "differences"),
    }


def _in_a_process(code: str, *arguments: Path) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        cwd=arguments[0].parent,
    )
    return msgspec.json.decode(done.stdout)


def _estate(datasets: int, *, changed: int) -> Iterator[CatalogEntry]:
    """Datasets that no two are alike; one in so many has another column and description."""
    for number in range(datasets):
        is_changed = changed > 0 and number % changed == 0
        fields = [
            Field(
                name=f"column_{number % 499}_{place}",
                type=_TYPES[(number + place) % len(_TYPES)],
                nullable=place % 5 != 0,
                description=f"what column {place} of {number} means",
            )
            for place in range(FIELDS)
        ]
        if is_changed:
            fields[3] = Field(name="renamed", type=fields[3].type)
        upstream = UpstreamEdge(urn=_urn(number // 2))
        yield CatalogEntry(
            urn=_urn(number),
            name=f"table_{number}",
            platform="s3",
            format="parquet",
            schema=Schema(fields=tuple(fields)),
            lineage=Lineage(upstream=(upstream,)),
            ownership=Ownership(owners=(Owner(name=f"team_{number % 97}", kind="group"),)),
            governance=Governance(tags=("tier-1", f"domain-{number % 50}")),
            documentation=Documentation(
                description=f"{'New' if is_changed else 'All'} that is known of {number}"
            ),
        )


def _urn(number: int) -> str:
    return f"lumos://s3/lake/raw/domain_{number % 50}/table_{number}"
