"""Opens files on the executors: format, schema and rows from footers and headers alone."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from lumos.formats import UnreadableFile, read_file
from lumos.model.codec import to_json
from lumos.pipeline.columns import FILES, FILES_IN_SPARK
from lumos.pipeline.placement import place
from lumos.storage import storage_of


def read_files(listed: DataFrame, *, root: str, scan: int) -> DataFrame:
    """What each file says of itself; rows that carry a `read_in` are known and pass unopened."""
    return listed.mapInArrow(_reader(root, scan), schema=FILES_IN_SPARK)


def _reader(root: str, scan: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        bodies_sent: set[str] = set()
        for batch in batches:
            table = pa.Table.from_batches([batch])
            fresh, known = _split(table)
            rows = [_row(listed, root, scan, bodies_sent) for listed in fresh.to_pylist()]
            yield pa.RecordBatch.from_pylist(rows, schema=FILES)
            if known.num_rows:
                yield from known.select(FILES.names).cast(FILES).to_batches()

    return read


def _split(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    if "read_in" not in table.column_names:
        return table, table.slice(0, 0)
    is_known = pc.is_valid(table.column("read_in"))
    return table.filter(pc.invert(is_known)), table.filter(is_known)


def _row(listed: dict[str, Any], root: str, scan: int, bodies_sent: set[str]) -> dict[str, Any]:
    path = listed["path"]
    if listed["code"] is not None:
        return listed
    base, pattern, partitions = place(path, root)
    row = {
        **{name: listed[name] for name in ("path", "size", "modified")},
        "base": base,
        "pattern": pattern,
        "partitions": [{"key": key, "value": value} for key, value in partitions],
        "read_in": scan,
    }
    return {**row, **_facts(path, bodies_sent)}


def _facts(path: str, bodies_sent: set[str]) -> dict[str, Any]:
    try:
        with storage_of(path).open(path) as file:
            found = read_file(path.rpartition("/")[2], file)
    except UnreadableFile as problem:
        return {"code": problem.code, "reason": problem.reason}
    except FileNotFoundError:
        return {"code": "vanished", "reason": "The file was gone before it could be read."}
    except PermissionError:
        return {"code": "permission_denied", "reason": "No permission to read the file."}
    except Exception as problem:  # noqa: BLE001 - one hostile file must never end a scan
        reason = f"It could not be read: {type(problem).__name__}: {problem}"
        return {"code": "unreadable", "reason": reason}
    if found is None:
        return {}
    format, facts = found
    full = facts.schema.full
    body = None if full in bodies_sent else to_json(facts.schema)
    bodies_sent.add(full)
    return {
        "format": format.name,
        "shape": facts.schema.shape,
        "full": full,
        "body": body,
        "row_count": facts.row_count,
        "row_count_exact": facts.row_count_exact,
    }
