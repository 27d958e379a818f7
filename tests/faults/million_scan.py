"""Scans a bucket of very many keys twice in this process, opening nothing, and tells what it took.

Tasks and driver run one after the other, so that what is told is the most that either of them, and
what both hold together, came to.
"""

import json
import re
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from lumos.discovery.lake import job as discovery
from lumos.discovery.lake import scan_task as work
from lumos.discovery.lake.summaries import FileRow
from lumos.model.json_codec import to_json
from lumos.model.schema import Schema, parse_schema
from lumos.spark.tasks import Task, task_table
from lumos.storage import FileSelection, FileStorage, ListedFile
from lumos.storage.s3 import S3Access

SCHEMA: Schema = parse_schema("id INT64\nname STRING")


class Reader:
    """Says of every file the same, as if it was opened."""

    def __init__(self, storage: FileStorage, *, column_stats: bool) -> None:
        del storage, column_stats
        self.encoded_schemas = {SCHEMA.full: to_json(SCHEMA)}

    def read(self, files: Iterable[tuple[ListedFile, FileRow | None]]) -> Iterator[FileRow]:
        for listed, _ in files:
            yield FileRow(
                *listed[:4], format="parquet", schema_fingerprint=SCHEMA.full, row_count=1
            )


def run_tasks(
    _spark: object, schema: pa.Schema, rows: list[Any], do: Task, _: str, **_tasks: int
) -> list[bytes]:
    if not rows:
        return []
    batches = task_table(schema, rows).to_batches(max_chunksize=1)
    return [each for batch in do(batches) for each in batch.columns[-1].to_pylist()]


def peak() -> float:
    """The most memory so far, in MB; what getrusage tells began before this program did."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (most,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(most) / 1024


def main(url: str, state: str, parts: int) -> None:
    work.DataFileReader = Reader  # type: ignore[misc,assignment]
    discovery.run_tasks = run_tasks  # type: ignore[assignment]
    discovery.task_count = lambda _spark: parts  # type: ignore[assignment]
    access = S3Access(endpoint_url=url, access_key_id="k", secret_access_key="s")
    measurements: list[dict[str, float | int]] = []
    begun = peak()
    for number in (1, 2):
        started, used = time.perf_counter(), time.process_time()
        found = discovery.scan_lake(
            SimpleNamespace(),  # type: ignore[arg-type]
            FileSelection("s3://lake", access=access),
            state=state,
            before=f"{number - 1}" if number > 1 else None,
            after=f"{number}",
        )
        measurements.append(
            {
                "listed": found.files_listed,
                "read": found.files_read,
                "datasets": len(found.datasets),
                "begun": begun,
                "peak": peak(),
                "seconds": time.perf_counter() - started,
                "processor_seconds": time.process_time() - used,
            }
        )
    json.dump(measurements, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
