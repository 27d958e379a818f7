"""A Hive metastore with many tables, and its comparison with the files of these tables.

BENCH_HIVE_TABLES sets the number of tables, BENCH_HIVE_FILES that of files in each.
"""

import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lumos import Lumos
from lumos.config.sources import HiveSourceSettings
from lumos.sources.metastores.hive import HiveSource

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

TABLES = int(os.environ.get("BENCH_HIVE_TABLES", "20000"))
FILES = int(os.environ.get("BENCH_HIVE_FILES", "20"))
COLUMNS = 20
DATABASES = 20
_BATCH = 200
# Of one file; ext4 allows 65,000.
_MOST_LINKS = 60_000


def measure() -> dict[str, Any]:
    """Seconds of bare calls, of reading, of scans, and of the comparison."""
    from servers.hive import HiveMetastore, hive_metastore

    with (
        tempfile.TemporaryDirectory() as folder,
        hive_metastore() as uri,
        HiveMetastore.connect(uri) as metastore,
    ):
        lake = Path(folder, "lake")
        _fill(metastore, lake)
        overrides = {
            "storage.path": f"{folder}/store/lumos.db",
            "sources": [{"type": "hive", "uri": uri}, {"type": "file", "path": str(lake)}],
        }
        lumos = Lumos(environment={}, overrides=overrides)
        source = HiveSource(HiveSourceSettings(uris=(uri,)))
        # The first calls after all tables were made are slower.
        _bare_calls(metastore)
        runs = {
            "bare_calls": _timed(lambda: _bare_calls(metastore)),
            "lumos_read": _timed(lambda: source.read(lambda _: None)),
            "scan_of_both": _timed(lumos.ingest),
            "scan_again": _timed(lumos.ingest),
            "reconcile": _timed(lambda: _reconcile(lumos)),
        }
    return {
        "tables": TABLES,
        "files": TABLES * FILES,
        # The CPU time is that of this process; those of the metastore and of Spark are not in it.
        **{
            name: {"seconds": round(wall, 2), "cpu_seconds": round(cpu, 2)}
            for name, (wall, cpu) in runs.items()
        },
        "read_to_bare_calls": _ratio(runs["lumos_read"], runs["bare_calls"]),
        "reconcile_to_scan": _ratio(runs["reconcile"], runs["scan_of_both"]),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """The wall and CPU seconds of a piece of work."""
    started, used = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - started, time.process_time() - used


def _ratio(one: tuple[float, float], other: tuple[float, float]) -> dict[str, float]:
    return {
        name: round(value / base, 2)
        for name, value, base in zip(("seconds", "cpu_seconds"), one, other, strict=True)
    }


def _fill(metastore: Any, lake: Path) -> None:
    columns = [(f"c{number}", "bigint") for number in range(COLUMNS)]
    pattern = lake.parent / "pattern.parquet"
    pq.write_table(pa.table({name: [1, 2] for name, _ in columns}), pattern)
    for number in range(DATABASES):
        metastore.create_database(f"d{number}", str(lake))
    for number in range(TABLES):
        # Numbers in names would make one dataset of all folders.
        name = "".join(chr(ord("a") + number // 26**place % 26) for place in range(5))
        location = lake / f"d{number % DATABASES}" / name
        location.mkdir(parents=True)
        if pattern.stat().st_nlink + FILES > _MOST_LINKS:
            # A copy has links of its own.
            pattern = shutil.copyfile(pattern, lake.parent / f"{name}.parquet")
        for file in range(FILES):
            os.link(pattern, location / f"part-{file}.parquet")
        metastore.put(f"d{number % DATABASES}", name, columns, location=f"file://{location}")


def _bare_calls(metastore: Any) -> None:
    client = metastore.client
    for database in client.get_all_databases():
        names = client.get_all_tables(database)
        for start in range(0, len(names), _BATCH):
            client.get_table_objects_by_name(database, names[start : start + _BATCH])


def _reconcile(lumos: Lumos) -> None:
    report = lumos.reconciliation.compare("hive")
    assert report.compared == TABLES
