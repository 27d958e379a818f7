"""Opens files on the executors: format, schema and rows from footers and headers alone."""

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from lumos.formats import UnreadableFile, read_file
from lumos.model.codec import to_json
from lumos.pipeline.columns import FILES, FILES_IN_SPARK, LISTED
from lumos.pipeline.placement import place
from lumos.storage import USUAL, Access, Storage, storage_of


def read_files(listed: DataFrame, *, root: str, scan: int, access: Access = USUAL) -> DataFrame:
    """What each file says of itself; those that are as an earlier scan knew them stay closed.

    A file that can no longer be read keeps what was known of it, so that it changes no dataset.
    """
    return listed.mapInArrow(_reader(root, scan, access), schema=FILES_IN_SPARK)


def _reader(
    root: str, scan: int, access: Access
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        storage = storage_of(root, access)
        bodies_sent: set[str] = set()
        for batch in batches:
            fresh, known = _split(pa.Table.from_batches([batch]))
            rows = [_row(listed, storage, root, scan, bodies_sent) for listed in fresh.to_pylist()]
            yield pa.RecordBatch.from_pylist(rows, schema=FILES)
            if known.num_rows:
                yield from known.to_batches()

    return read


def _split(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows to open, and as they were the rows of files that did not change."""
    if "known_size" not in table.column_names:
        return table, table.slice(0, 0)
    same = reduce(
        pc.and_,
        (
            pc.equal(table.column(name), table.column(f"known_{name}"))
            for name in ("size", "modified", "etag")
        ),
    )
    is_known = pc.fill_null(same, False)
    return table.filter(pc.invert(is_known)), _as_known(table.filter(is_known))


def _as_known(table: pa.Table) -> pa.Table:
    nothing = {field.name: pa.nulls(table.num_rows, field.type) for field in FILES}
    return pa.table(
        {
            name: table.column("path")
            if name == "path"
            else table.column(f"known_{name}")
            if f"known_{name}" in table.column_names
            else nothing[name]
            for name in FILES.names
        }
    ).cast(FILES)


def _row(
    listed: dict[str, Any], storage: Storage, root: str, scan: int, bodies_sent: set[str]
) -> dict[str, Any]:
    if listed["code"] is not None:
        return {name: listed[name] for name in LISTED.names}
    path = listed["path"]
    facts = _facts(storage, path, listed["size"], bodies_sent)
    if "code" in facts and listed.get("known_format") is not None:
        known = {name: listed.get(f"known_{name}") for name in FILES.names}
        return {**known, "path": path, "read_in": scan, **facts}
    base, pattern, partitions = place(path, root)
    return {
        **{name: listed[name] for name in ("path", "size", "modified", "etag")},
        "base": base,
        "pattern": pattern,
        "partitions": [{"key": key, "value": value} for key, value in partitions],
        "read_in": scan,
        **facts,
    }


def _facts(storage: Storage, path: str, size: int, bodies_sent: set[str]) -> dict[str, Any]:
    try:
        with storage.open(path, size=size) as file:
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
