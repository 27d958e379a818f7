"""Tables with long histories for the measurements of their readers; all of them are metadata alone.

Delta logs are written as the protocol has them, by hand, since ten thousand real commits take an
hour; their checkpoint is deltalake's. Iceberg's manifests repeat an entry that pyiceberg wrote.
"""

import io
import json
import sys
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

COMMITS = 10_000
FILES = 10_000
MANIFESTS = 100
SNAPSHOTS = 10_000
HUDI_COMMITS = 2_000
SCHEMAS = 20
COLUMNS = 20
START = 1_700_000_000_000
_HUDI_GROUPS = 50


def delta(root: Path) -> None:
    """A file with each commit, one goes with every third, and a column comes with every 500th."""
    (root / "_delta_log").mkdir(parents=True)
    for version in range(COMMITS):
        delta_commit(root, version)


def delta_checkpointed(root: Path) -> None:
    """The same; deltalake made a checkpoint of all but the last nine commits."""
    from deltalake import DeltaTable

    (root / "_delta_log").mkdir(parents=True)
    for version in range(COMMITS - 9):
        delta_commit(root, version)
    DeltaTable(root).create_checkpoint()
    for version in range(COMMITS - 9, COMMITS):
        delta_commit(root, version)


def delta_commit(root: Path, version: int) -> None:
    """One more commit."""
    actions: list[dict[str, Any]] = []
    if version == 0:
        actions.append({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}})
    if version % (COMMITS // SCHEMAS) == 0 and version < COMMITS:
        actions.append({"metaData": _delta_metadata(version // (COMMITS // SCHEMAS))})
    actions.append({"add": _delta_file(version)})
    if version > 10 and version % 3 == 0:
        gone = {"path": _name(version - 5), "deletionTimestamp": START, "dataChange": True}
        actions.append({"remove": gone})
    info = {"timestamp": START + version * 1000, "operation": "WRITE", "operationParameters": {}}
    actions.append({"commitInfo": info})
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (root / "_delta_log" / f"{version:020}.json").write_text(text, encoding="utf-8")


def _name(number: int) -> str:
    return f"part-{number:05}.parquet"


def _delta_metadata(schema: int) -> dict[str, Any]:
    fields = [
        {"name": f"c{number}", "type": "long", "nullable": True, "metadata": {}}
        for number in range(COLUMNS + schema)
    ]
    return {
        "id": "5a1c2d3e-0000-4000-8000-000000000000",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": START,
    }


def _delta_file(version: int) -> dict[str, Any]:
    bounds = {f"c{number}": version for number in range(COLUMNS)}
    nulls = {f"c{number}": 0 for number in range(COLUMNS)}
    told = {"numRecords": 100, "minValues": bounds, "maxValues": bounds, "nullCount": nulls}
    return {
        "path": _name(version),
        "partitionValues": {},
        "size": 1000 + version,
        "modificationTime": START + version * 1000,
        "dataChange": True,
        "stats": json.dumps(told),
    }


def iceberg(root: Path) -> None:
    """A table of 10,000 snapshots and 20 schemas, whose last one has 100 manifests of 100 files."""
    from pyiceberg.catalog.memory import InMemoryCatalog

    catalog = InMemoryCatalog("made", warehouse=f"file://{root.parent}")
    catalog.create_namespace(root.name)
    table = catalog.create_table(
        f"{root.name}.t", pa.schema([(f"c{number}", pa.int64()) for number in range(COLUMNS)])
    )
    table.append(pa.table({f"c{number}": [1] for number in range(COLUMNS)}))
    metadata = root / "t" / "metadata"
    written = sorted(metadata.glob("*.metadata.json"))
    template = json.loads(written[-1].read_text(encoding="utf-8"))
    manifest = next(metadata.glob("*-m0.avro"))
    listed = next(metadata.glob("snap-*.avro"))
    for number in range(MANIFESTS):
        _iceberg_manifest(metadata / f"made-{number:05}-m0.avro", manifest, number)
    made = sorted(metadata.glob("made-*-m0.avro"))
    _manifest_list(metadata / "snap-made.avro", listed, made)
    document = _iceberg_metadata(template, f"file://{metadata}/snap-made.avro")
    for each in written:
        each.unlink()
    _write(metadata / f"{SNAPSHOTS:05}-made.metadata.json", document)


def iceberg_commit(root: Path) -> None:
    """One more snapshot, with one more manifest of 100 files."""
    metadata = root / "t" / "metadata"
    (last,) = metadata.glob("*.metadata.json")
    document = json.loads(last.read_text(encoding="utf-8"))
    made = sorted(metadata.glob("made-*-m0.avro"))
    more = metadata / f"made-{len(made):05}-m0.avro"
    _iceberg_manifest(more, made[0], len(made))
    _manifest_list(metadata / "snap-later.avro", metadata / "snap-made.avro", [*made, more])
    before = document["snapshots"][-1]
    after = {
        **before,
        "snapshot-id": before["snapshot-id"] + 1,
        "parent-snapshot-id": before["snapshot-id"],
        "sequence-number": before["sequence-number"] + 1,
        "timestamp-ms": before["timestamp-ms"] + 1000,
        "manifest-list": f"file://{metadata}/snap-later.avro",
    }
    document["snapshots"].append(after)
    _current(document)
    _write(metadata / f"{SNAPSHOTS + 1:05}-made.metadata.json", document)


def _iceberg_metadata(template: dict[str, Any], manifest_list: str) -> dict[str, Any]:
    snapshot = template["snapshots"][-1]
    fields = [
        {"id": number + 1, "name": f"c{number}", "required": False, "type": "long"}
        for number in range(COLUMNS + SCHEMAS)
    ]
    document = {
        **template,
        "schemas": [
            {"type": "struct", "schema-id": number, "fields": fields[: COLUMNS + number]}
            for number in range(SCHEMAS)
        ],
        "current-schema-id": SCHEMAS - 1,
        "last-column-id": COLUMNS + SCHEMAS,
        "snapshots": [
            {
                **{key: value for key, value in snapshot.items() if key != "parent-snapshot-id"},
                **({"parent-snapshot-id": 999 + number} if number else {}),
                "snapshot-id": 1000 + number,
                "sequence-number": number + 1,
                "timestamp-ms": START + number * 1000,
                "schema-id": number // (SNAPSHOTS // SCHEMAS),
                "manifest-list": manifest_list,
            }
            for number in range(SNAPSHOTS)
        ],
        "metadata-log": [],
    }
    _current(document)
    return document


def _current(document: dict[str, Any]) -> None:
    """Makes the last snapshot the current one."""
    last = document["snapshots"][-1]
    document["snapshot-log"] = [
        {"snapshot-id": each["snapshot-id"], "timestamp-ms": each["timestamp-ms"]}
        for each in document["snapshots"]
    ]
    document["current-snapshot-id"] = last["snapshot-id"]
    document["refs"] = {"main": {"snapshot-id": last["snapshot-id"], "type": "branch"}}
    document["last-sequence-number"] = last["sequence-number"]
    document["last-updated-ms"] = last["timestamp-ms"]


def _iceberg_manifest(path: Path, template: Path, number: int) -> None:
    each = FILES // MANIFESTS
    with template.open("rb") as file:
        reader = fastavro.reader(file)
        record: Any = next(reader)
        data_file = record["data_file"]
        folder = data_file["file_path"].rpartition("/")[0]
        names = [f"{folder}/{number * each + place:06}.parquet" for place in range(each)]
        records = [{**record, "data_file": {**data_file, "file_path": name}} for name in names]
        _avro(path, reader, records)


def _manifest_list(path: Path, template: Path, manifests: list[Path]) -> None:
    with template.open("rb") as file:
        reader = fastavro.reader(file)
        record: Any = next(reader)
        records = [
            {
                **record,
                "manifest_path": f"file://{manifest}",
                "manifest_length": manifest.stat().st_size,
                "added_files_count": FILES // MANIFESTS,
            }
            for manifest in manifests
        ]
        _avro(path, reader, records)


def _avro(path: Path, like: Any, records: list[dict[str, Any]]) -> None:
    told = {key: value for key, value in like.metadata.items() if not key.startswith("avro.")}
    buffer = io.BytesIO()
    fastavro.writer(buffer, like.writer_schema, records, codec="deflate", metadata=told)
    path.write_bytes(buffer.getvalue())


def _write(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document), encoding="utf-8")


def hudi(root: Path) -> None:
    """A table of version 9 whose 50 file groups were each written anew 40 times."""
    _hudi(HUDI_COMMITS).save(root)


def hudi_commit(root: Path) -> None:
    """One more commit."""
    table = _hudi(HUDI_COMMITS)
    before = set(table.files)
    table.write({"group-0": 3})
    for path in set(table.files) - before:
        (root / path).write_bytes(table.files[path])


def _hudi(commits: int) -> Any:
    from formats.tables.hudi_tables import COLUMNS as FIRST
    from formats.tables.hudi_tables import HudiTable, avro_schema

    table = HudiTable(9)
    for number in range(commits):
        added = range(number // (commits // SCHEMAS))
        table.schema = avro_schema({**FIRST, **{f"c{column}": "long" for column in added}})
        table.write({f"group-{number % _HUDI_GROUPS}": 3})
    return table
