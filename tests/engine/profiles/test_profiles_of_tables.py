"""Profiles of tables count the rows that a reader of the table would see, and no others."""

import base64
import json
import struct
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import deltalake
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.types import StringType
from pyroaring import BitMap64

from lumos import Lumos
from lumos.engine.profiles.reports import ProfileReport

pytestmark = pytest.mark.usefixtures("workplace", "spark")

Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"


def profiled(lake: Path, name: str = "table") -> ProfileReport:
    lumos = Lumos()
    lumos.ingest(lake)
    return lumos.profiles.profile(name)


def rows(first: int, last: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(first, last), pa.int64()),
            "part": pa.array([f"p{number % 2}" for number in range(first, last)]),
        }
    )


def test_a_delta_table_is_its_live_files_with_partition_values_and_only_new_ones_are_read(
    tmp_path: Path,
) -> None:
    lake = tmp_path / "lake"
    place = str(lake / "table")
    deltalake.write_deltalake(place, rows(0, 100), partition_by=["part"])
    deltalake.write_deltalake(place, rows(100, 300), partition_by=["part"], mode="append")
    deltalake.DeltaTable(place).delete("id < 100")
    first = profiled(lake)
    assert first.profile.rows == 200
    assert first.profile.columns["id"].minimum == "100"
    assert (first.profile.columns["part"].nulls, first.profile.columns["part"].distinct) == (0, 2)
    deltalake.write_deltalake(place, rows(300, 310), partition_by=["part"], mode="append")
    more = profiled(lake)
    assert (more.profile.rows, more.files_read, more.files_known) == (210, 2, first.files_read)


def inline_vector(rows: list[int]) -> dict[str, Any]:
    body = struct.pack("<i", 1681511377) + BitMap64(rows).serialize()
    padded = body + bytes(-len(body) % 4)
    text = base64.b85encode(padded).translate(bytes.maketrans(B85, Z85)).decode()
    return {
        "storageType": "i",
        "pathOrInlineDv": text,
        "sizeInBytes": len(body),
        "cardinality": len(rows),
    }


def test_deletion_vectors_and_column_mapping_of_delta(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    table = lake / "table"
    log = table / "_delta_log"
    log.mkdir(parents=True)
    members = pa.array([{"col-x": n} for n in range(1000)], pa.struct([("col-x", pa.int64())]))
    file = pa.table({"col-1": pa.array(range(1000), pa.int64()), "col-2": members})
    pq.write_table(file, table / "a.parquet", row_group_size=300)
    deleted = [0, 1, 5, *range(600, 1000)]

    def field(name: str, type: Any, id: int, physical: str) -> dict[str, Any]:
        mapping = {"id": id, "physicalName": physical}
        metadata = {f"delta.columnMapping.{key}": value for key, value in mapping.items()}
        return {"name": name, "type": type, "nullable": True, "metadata": metadata}

    inside = {"type": "struct", "fields": [field("x", "long", 3, "col-x")]}
    schema = {
        "type": "struct",
        "fields": [field("id", "long", 1, "col-1"), field("inside", inside, 2, "col-2")],
    }
    features = ["deletionVectors", "columnMapping"]
    actions: list[dict[str, Any]] = [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": features,
                "writerFeatures": features,
            }
        },
        {
            "metaData": {
                "id": "t",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(schema),
                "partitionColumns": [],
                "configuration": {"delta.columnMapping.mode": "name"},
                "createdTime": 0,
            }
        },
        {
            "add": {
                "path": "a.parquet",
                "partitionValues": {},
                "size": (table / "a.parquet").stat().st_size,
                "modificationTime": 0,
                "dataChange": True,
                "deletionVector": inline_vector(deleted),
            }
        },
    ]
    (log / f"{0:020}.json").write_text("".join(f"{json.dumps(each)}\n" for each in actions))
    report = profiled(lake)
    ids = report.profile.columns["id"]
    assert (report.profile.rows, ids.minimum, ids.maximum) == (1000 - len(deleted), "2", "599")
    assert report.profile.columns["inside.x"].maximum == "599"
    assert report.problems == ()


def iceberg(lake: Path) -> Any:
    catalog = InMemoryCatalog("test", warehouse=f"file://{lake}")
    catalog.create_namespace("ns")
    return catalog


def test_an_iceberg_table_is_read_by_field_ids_after_a_rename(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    table = iceberg(lake).create_table("ns.t", schema=rows(0, 1).schema)
    table.append(rows(0, 50))
    with table.update_schema() as update:
        update.rename_column("id", "number")
    with table.update_schema() as update:
        update.add_column("id", StringType())
    more = pa.table({"number": pa.array([50], pa.int64()), "part": ["p"], "id": ["x"]})
    table.append(more)
    columns = profiled(lake, "t").profile.columns
    assert (columns["number"].nulls, columns["number"].maximum) == (0, "50")
    assert (columns["id"].nulls, columns["id"].misfits, columns["id"].distinct) == (50, 0, 1)


def test_position_deletes_of_iceberg(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    table = iceberg(lake).create_table("ns.t", schema=rows(0, 1).schema)
    table.append(rows(0, 100))
    (data,) = (each.file.file_path for each in table.scan().plan_files())
    folder = Path(table.location().removeprefix("file://"))
    deletes = folder / "data/deletes.parquet"
    positions = pa.table({"file_path": [data] * 10, "pos": pa.array(range(10), pa.int64())})
    pq.write_table(positions, deletes)
    add_delete_manifest(folder, deletes)
    report = profiled(lake, "t")
    assert (report.profile.rows, report.profile.columns["id"].minimum) == (90, "10")


def add_delete_manifest(folder: Path, deletes: Path) -> None:
    """Adds a manifest of deletes to the newest snapshot, which no library writes yet."""
    (listing,) = folder.glob("metadata/snap-*.avro")
    with listing.open("rb") as file:
        reader = fastavro.reader(file)
        schema, found = reader.writer_schema, list(reader)
        properties = {key: text for key, text in reader.metadata.items() if "avro" not in key}
    first = Path(found[0]["manifest_path"].removeprefix("file://"))
    with first.open("rb") as file:
        manifest = fastavro.reader(file)
        entry_schema, entries = manifest.writer_schema, list(manifest)
        told = {key: text for key, text in manifest.metadata.items() if "avro" not in key}
    (entry,) = entries
    about = entry["data_file"]
    about.update(
        content=1,
        file_path=f"file://{deletes}",
        record_count=10,
        file_size_in_bytes=deletes.stat().st_size,
    )
    told["content"] = "deletes"
    own = folder / "metadata/deletes-m0.avro"
    with own.open("wb") as file:
        fastavro.writer(file, entry_schema, [entry], metadata=told)
    row = {**found[0], "manifest_path": f"file://{own}", "content": 1}
    row["manifest_length"] = own.stat().st_size
    with listing.open("wb") as file:
        fastavro.writer(file, schema, [*found, row], metadata=properties)


def test_hudi_tables_count_the_newest_files_alone(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    table = lake / "table"
    (table / ".hoodie").mkdir(parents=True)
    avro = {"type": "record", "name": "t", "fields": [{"name": "id", "type": ["null", "long"]}]}
    (table / ".hoodie/hoodie.properties").write_text(
        "hoodie.table.name=t\nhoodie.table.type=COPY_ON_WRITE\nhoodie.table.version=6\n"
    )
    for instant, last in (("20240101000000000", 10), ("20240102000000000", 20)):
        name = f"aaaa-0_0-0-0_{instant}.parquet"
        pq.write_table(pa.table({"id": pa.array(range(last), pa.int64())}), table / name)
        stat = {
            "fileId": "aaaa-0",
            "path": name,
            "numWrites": last,
            "fileSizeInBytes": (table / name).stat().st_size,
        }
        commit = {
            "partitionToWriteStats": {"": [stat]},
            "extraMetadata": {"schema": json.dumps(avro)},
            "operationType": "UPSERT",
        }
        (table / f".hoodie/{instant}.commit").write_text(json.dumps(commit))
    report = profiled(lake)
    assert (report.profile.rows, report.profile.columns["id"].maximum) == (20, "19")


def test_a_profile_tells_when_a_table_changed_after_it(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    deltalake.write_deltalake(str(lake / "table"), rows(0, 10))
    report = profiled(lake)
    assert report.profile.measured_at <= datetime.now(UTC)
    deltalake.write_deltalake(str(lake / "table"), rows(10, 20), mode="overwrite")
    assert Lumos().profiles.profile("table").profile.rows == 10
    assert profiled(lake).profile.columns["id"].minimum == "10"
