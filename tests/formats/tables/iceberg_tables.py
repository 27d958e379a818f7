"""Iceberg tables for tests: written by pyiceberg, and by hand where it cannot write them."""

import gzip
import io
import json
from datetime import date
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.memory import InMemoryCatalog

from lumos.formats.tables import table_reader
from lumos.formats.tables.interface import LiveFile, TableFacts

from .folder import LocalFolder, MemoryFolder

LOCATION = "s3://lake/table"
UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
READER = table_reader("iceberg")
MOST = 10_000


def facts_of(folder: MemoryFolder | LocalFolder, memory: bytes | None = None) -> TableFacts:
    return READER.read(folder, memory, max_commits=MOST)[0]


def live_of(folder: MemoryFolder | LocalFolder) -> list[LiveFile]:
    return list(READER.live(READER.read(folder, None, max_commits=MOST)[1]))


def catalog_at(folder: Path) -> InMemoryCatalog:
    """The judge's catalog, with one namespace, `n`, whose tables lie below `folder/n`."""
    catalog = InMemoryCatalog("judge", warehouse=f"file://{folder}")
    catalog.create_namespace("n")
    return catalog


def field(id: int, name: str, type: Any, *, required: bool = False, **more: Any) -> dict[str, Any]:
    return {"id": id, "name": name, "type": type, "required": required, **more}


def schema(*fields: dict[str, Any], id: int = 0, keys: tuple[int, ...] = ()) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "struct", "schema-id": id, "fields": list(fields)}
    return {**found, "identifier-field-ids": list(keys)} if keys else found


SIMPLE = schema(field(1, "id", "long", required=True), field(2, "ts", "timestamptz"))


def snapshot(
    id: int, *, at: int = 1_700_000_000_000, schema_id: int = 0, **more: Any
) -> dict[str, Any]:
    return {
        "snapshot-id": id,
        "sequence-number": id,
        "timestamp-ms": at,
        "summary": {"operation": "append"},
        "manifest-list": f"{LOCATION}/metadata/snap-{id}.avro",
        "schema-id": schema_id,
        **more,
    }


def metadata(version: int = 2, **changes: Any) -> dict[str, Any]:
    """A metadata file of that version; `_` in names stands for `-`, and None leaves one out."""
    body: dict[str, Any] = {
        "format-version": version,
        "table-uuid": UUID,
        "location": LOCATION,
        "last-updated-ms": 1_700_000_000_000,
        "last-column-id": 2,
        "schemas": [SIMPLE],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {},
        "current-snapshot-id": -1,
        "snapshots": [],
    }
    if version >= 2:
        body["last-sequence-number"] = 1
    if version >= 3:
        body["next-row-id"] = 0
    body.update((name.replace("_", "-"), value) for name, value in changes.items())
    return {name: value for name, value in body.items() if value is not None}


def packed(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode()


def in_memory(files: dict[str, bytes | dict[str, Any]], **more: Any) -> MemoryFolder:
    """A folder with these files of metadata."""
    return MemoryFolder(
        {
            f"metadata/{name}": packed(content) if isinstance(content, dict) else content
            for name, content in files.items()
        },
        **more,
    )


def data_file(path: str, *, size: int = 100, rows: int = 10, **more: Any) -> dict[str, Any]:
    """A file as a manifest tells of it; `status` and `sequence` are of its entry."""
    return {"file_path": f"{LOCATION}/{path}", "size": size, "rows": rows, **more}


def manifest(
    files: list[dict[str, Any]],
    *,
    partition: tuple[dict[str, Any], ...] = (),
    codec: str = "deflate",
    version: int = 2,
    metadata: dict[str, str] | None = None,
) -> bytes:
    """A manifest whose partition record has these Avro fields."""
    optional = {"default": None}
    of_file = [
        {"name": "file_path", "type": "string", "field-id": 100},
        {"name": "file_format", "type": "string", "field-id": 101},
        {
            "name": "partition",
            "field-id": 102,
            "type": {"type": "record", "name": "r102", "fields": list(partition)},
        },
        {"name": "record_count", "type": "long", "field-id": 103},
        {"name": "file_size_in_bytes", "type": "long", "field-id": 104},
        {
            "name": "lower_bounds",
            "field-id": 125,
            "type": ["null", _bounds("k126_v127")],
            **optional,
        },
    ]
    of_entry: list[dict[str, Any]] = [
        {"name": "status", "type": "int", "field-id": 0},
        {"name": "snapshot_id", "type": ["null", "long"], "field-id": 1, **optional},
    ]
    if version >= 2:
        of_file.insert(0, {"name": "content", "type": "int", "field-id": 134})
        of_entry.append(
            {"name": "sequence_number", "type": ["null", "long"], "field-id": 3, **optional}
        )
    if version >= 3:
        of_file += [
            {
                "name": "referenced_data_file",
                "type": ["null", "string"],
                "field-id": 143,
                **optional,
            },
            {"name": "content_offset", "type": ["null", "long"], "field-id": 144, **optional},
            {
                "name": "content_size_in_bytes",
                "type": ["null", "long"],
                "field-id": 145,
                **optional,
            },
        ]
    of_entry.append(
        {
            "name": "data_file",
            "field-id": 2,
            "type": {"type": "record", "name": "r2", "fields": of_file},
        }
    )
    records = [
        {
            "status": each.get("status", 1),
            "snapshot_id": 1,
            "sequence_number": each.get("sequence"),
            "data_file": {
                "file_format": "PARQUET",
                "content": 0,
                "partition": {},
                "record_count": each["rows"],
                "file_size_in_bytes": each["size"],
                "lower_bounds": [{"key": 1, "value": b"\x00"}],
                **each,
            },
        }
        for each in files
    ]
    return avro("manifest_entry", of_entry, records, codec=codec, metadata=metadata)


def parquet_manifest(files: list[tuple[str, date | None]]) -> bytes:
    """A manifest as version 4 has it, of files by their paths and days."""
    day = pa.field("d", pa.date32(), metadata={"PARQUET:field_id": "1000"})
    of_file = pa.struct(
        [
            ("content", pa.int32()),
            ("file_path", pa.string()),
            ("file_format", pa.string()),
            ("partition", pa.struct([day])),
            ("record_count", pa.int64()),
            ("file_size_in_bytes", pa.int64()),
            ("lower_bounds", pa.map_(pa.int32(), pa.binary())),
        ]
    )
    entries = [
        {
            "content": 0,
            "file_path": path,
            "file_format": "parquet",
            "partition": {"d": day},
            "record_count": 10,
            "file_size_in_bytes": 100,
            "lower_bounds": [(1, b"x")],
        }
        for path, day in files
    ]
    table = pa.table(
        {
            "status": pa.array([1] * len(files), pa.int32()),
            "sequence_number": pa.nulls(len(files), pa.int64()),
            "data_file": pa.array(entries, of_file),
        }
    )
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def _bounds(name: str) -> dict[str, Any]:
    fields = [{"name": "key", "type": "int"}, {"name": "value", "type": "bytes"}]
    items = {"type": "record", "name": name, "fields": fields}
    return {"type": "array", "items": items, "logicalType": "map"}


def manifest_list(
    manifests: dict[str, bytes],
    *,
    deletes: tuple[str, ...] = (),
    specs: dict[str, int] | None = None,
    sequence: int = 1,
    version: int = 2,
) -> bytes:
    """A list of manifests by their names; `deletes` are those that hold delete files."""
    fields = [
        {"name": "manifest_path", "type": "string", "field-id": 500},
        {"name": "manifest_length", "type": "long", "field-id": 501},
        {"name": "partition_spec_id", "type": "int", "field-id": 502},
        {"name": "added_snapshot_id", "type": ["null", "long"], "field-id": 503, "default": None},
    ]
    if version >= 2:
        fields += [
            {"name": "content", "type": "int", "field-id": 517},
            {"name": "sequence_number", "type": "long", "field-id": 515},
        ]
    records = [
        {
            "manifest_path": f"{LOCATION}/metadata/{name}",
            "manifest_length": len(content),
            "partition_spec_id": (specs or {}).get(name, 0),
            "added_snapshot_id": 1,
            "content": int(name in deletes),
            "sequence_number": sequence,
        }
        for name, content in manifests.items()
    ]
    return avro("manifest_file", fields, records)


def avro(
    name: str, fields: list[dict[str, Any]], records: list[dict[str, Any]], **more: Any
) -> bytes:
    buffer = io.BytesIO()
    fastavro.writer(buffer, {"type": "record", "name": name, "fields": fields}, records, **more)
    return buffer.getvalue()


def zigzag(number: int) -> bytes:
    """A whole number as Avro writes it."""
    number, out = number << 1, bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def sized(text: bytes) -> bytes:
    """Bytes with their length before them."""
    return zigzag(len(text)) + text


def with_manifests(
    document: dict[str, Any], manifests: dict[str, bytes], **of_list: Any
) -> MemoryFolder:
    """A table whose one snapshot is made of these manifests."""
    listed = manifest_list(manifests, **of_list)
    body = {**document, "snapshots": [snapshot(1)], "current-snapshot-id": 1}
    return in_memory({"v1.metadata.json": body, "snap-1.avro": listed, **manifests})


def sample_tables() -> dict[str, dict[str, bytes]]:
    """A small table of each version, with all that a reader looks at."""
    tables = {f"v{version}": _sample(version) for version in (1, 2, 3)}
    compressed = {
        name.replace(".metadata.json", ".gz.metadata.json"): content
        if name.endswith(".avro")
        else gzip.compress(content)
        for name, content in tables["v2"].items()
    }
    days = [(f"data/{n}.parquet", date(2024, 5, 1 + n)) for n in range(3)]
    newest = with_manifests(metadata(4), {"m0.parquet": parquet_manifest(days)})
    return {**tables, "compressed": compressed, "v4": dict(newest.files)}


def _sample(version: int) -> dict[str, bytes]:
    partition = ({"name": "day", "type": ["null", "int"], "field-id": 1000},)
    data = [
        data_file(f"data/{n}.parquet", partition={"day": 19_000 + n}, sequence=n)
        for n in range(1, 4)
    ]
    manifests = {"m0.avro": manifest(data, partition=partition, version=version)}
    if version > 1:
        deletes = [
            data_file("data/p.parquet", content=1, partition={"day": 19_001}, sequence=5),
            data_file("data/e.parquet", content=2, partition={"day": None}, sequence=5),
        ]
        if version > 2:
            vector = {"file_format": "puffin", "content_offset": 4, "content_size_in_bytes": 9}
            path = f"{LOCATION}/data/2.parquet"
            deletes.append(
                data_file("v", content=1, partition={"day": 1}, referenced_data_file=path, **vector)
            )
        manifests["m1.avro"] = manifest(deletes, partition=partition, version=version)
    files: dict[str, bytes | dict[str, Any]] = {
        "snap-2.avro": manifest_list(manifests, deletes=("m1.avro",), version=version),
        **manifests,
    }
    wider = schema(*SIMPLE["fields"], field(3, "a", _NESTED, doc="Inner"), id=1, keys=(1,))
    spec = [{"name": "day", "transform": "day", "source-id": 2, "field-id": 1000}]
    body = {
        "partition_specs": [{"spec-id": 0, "fields": spec}],
        "partition_spec": spec,
        "properties": {"owner": "me"},
    }
    first = metadata(version, last_updated_ms=1_000_000, **body)
    last = metadata(
        version,
        schemas=[SIMPLE, wider],
        schema=wider,
        current_schema_id=1,
        last_updated_ms=3_000_000,
        snapshots=[snapshot(1, at=2_000_000), snapshot(2, at=3_000_000, schema_id=1)],
        current_snapshot_id=2,
        refs={"main": {"snapshot-id": 2, "type": "branch"}, "t": {"snapshot-id": 1, "type": "tag"}},
        metadata_log=[
            {"metadata-file": f"{LOCATION}/metadata/v1.metadata.json", "timestamp-ms": 1_000_000}
        ],
        snapshot_log=[{"snapshot-id": 2, "timestamp-ms": 3_000_000}],
        **body,
    )
    files |= {"v1.metadata.json": first, "v2.metadata.json": last, "version-hint.text": b"2"}
    return dict(in_memory(files).files)


_NESTED = {
    "type": "map",
    "key-id": 4,
    "key": "string",
    "value-id": 5,
    "value-required": False,
    "value": {"type": "list", "element-id": 6, "element": "decimal(9,2)", "element-required": True},
}
