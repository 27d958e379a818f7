"""Delta logs by hand, for what no writer at hand writes: file by file, as the protocol has it."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

LOG = "_delta_log"
START = 1_700_000_000_000
Actions = list[dict[str, Any]]


def commit_name(version: int) -> str:
    return f"{LOG}/{version:020}.json"


def lines(actions: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(action) + "\n" for action in actions).encode()


def field(name: str, type: Any = "long", *, nullable: bool = True, **metadata: Any) -> Any:
    return {"name": name, "type": type, "nullable": nullable, "metadata": metadata}


def struct(*fields: Any) -> Any:
    return {"type": "struct", "fields": list(fields)}


def metadata(
    *fields: Any, partition_by: Sequence[str] = (), id: str = "the-table", **configuration: str
) -> dict[str, Any]:
    return {
        "metaData": {
            "id": id,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(struct(*fields)),
            "partitionColumns": list(partition_by),
            "configuration": configuration,
            "createdTime": START,
        }
    }


def protocol(reader: int = 1, writer: int = 2, **features: list[str]) -> dict[str, Any]:
    return {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer, **features}}


def add(path: str, size: int = 100, *, rows: int | None = 10, **more: Any) -> dict[str, Any]:
    stats = {} if rows is None else {"stats": json.dumps({"numRecords": rows})}
    return {
        "add": {
            "path": path,
            "partitionValues": {},
            "size": size,
            "modificationTime": START,
            "dataChange": True,
            **stats,
            **more,
        }
    }


def remove(path: str, **more: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "deletionTimestamp": START, "dataChange": True, **more}}


def info(version: int, operation: str = "WRITE", **more: Any) -> dict[str, Any]:
    return {"commitInfo": {"timestamp": START + version * 1000, "operation": operation, **more}}


def log(*commits: Actions) -> dict[str, bytes]:
    """A log of those commits, from version 0 on."""
    return {commit_name(version): lines(actions) for version, actions in enumerate(commits)}


def small(commits: int = 4) -> dict[str, bytes]:
    """A table that gets a file of ten rows with every commit, and a column in commit 2."""
    made: list[Actions] = [[protocol(), metadata(field("a")), add("f0"), info(0)]]
    made += [[add(f"f{version}"), info(version)] for version in range(1, commits)]
    if commits > 2:
        made[2].insert(0, metadata(field("a"), field("b", "string")))
    return log(*made)


def without(files: dict[str, bytes], *versions: int) -> dict[str, bytes]:
    gone = {commit_name(version) for version in versions}
    return {name: data for name, data in files.items() if name not in gone}


_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_TEXTS = pa.map_(pa.string(), pa.string())
_CHECKPOINT = pa.schema(
    [
        (
            "add",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("partitionValues", _TEXTS),
                    ("size", pa.int64()),
                    ("modificationTime", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("stats", pa.string()),
                    ("deletionVector", _VECTOR),
                ]
            ),
        ),
        ("remove", pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64())])),
        (
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("name", pa.string()),
                    ("description", pa.string()),
                    ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
                    ("schemaString", pa.string()),
                    ("partitionColumns", pa.list_(pa.string())),
                    ("configuration", _TEXTS),
                    ("createdTime", pa.int64()),
                ]
            ),
        ),
        (
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("readerFeatures", pa.list_(pa.string())),
                    ("writerFeatures", pa.list_(pa.string())),
                ]
            ),
        ),
        (
            "sidecar",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("sizeInBytes", pa.int64()),
                    ("modificationTime", pa.int64()),
                    ("tags", _TEXTS),
                ]
            ),
        ),
        ("checkpointMetadata", pa.struct([("version", pa.int64()), ("tags", _TEXTS)])),
        (
            "domainMetadata",
            pa.struct(
                [("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]
            ),
        ),
    ]
)


def checkpoint(actions: Actions) -> bytes:
    """The actions as a Parquet file of a checkpoint."""
    rows = [{kind: _row(value) for kind, value in action.items()} for action in actions]
    table = pa.Table.from_pylist(rows, schema=_CHECKPOINT)
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def saved(files: dict[str, bytes], root: Path) -> Path:
    """The files on disk."""
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def _row(value: dict[str, Any]) -> dict[str, Any]:
    pairs = {"partitionValues", "configuration", "options"}
    row = {}
    for key, each in value.items():
        if isinstance(each, dict) and key in pairs:
            row[key] = list(each.items())
        else:
            row[key] = _row(each) if isinstance(each, dict) else each
    return row
