"""Rows of tables: those that a reader of the table would see, under the names that it uses."""

import base64
import json
import struct
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import deltalake
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.types import LongType, StringType
from pyroaring import BitMap64

from lumos.discovery.lake.table_folder import StoredTableFolder
from lumos.discovery.lake.table_reader import TableMemory
from lumos.formats.interface import UnreadableFile
from lumos.formats.tables import table_reader
from lumos.formats.tables.interface import RowDeletes
from lumos.model.json_codec import to_json
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.types import parse_type
from lumos.profiles.avro_files import names_in_file
from lumos.profiles.columnar_files import field_positions, rename_members
from lumos.profiles.columns import known_fields, profiled_columns
from lumos.profiles.files import table_files
from lumos.profiles.job import ProfileJob, read_tasks
from lumos.profiles.measurements import ColumnTally, FileTotals
from lumos.profiles.rows import deleted_rows, undeleted_row_flags
from lumos.profiles.tasks import FileTask
from lumos.storage import DEFAULT_ACCESS, LocalStorage

VECTOR_MAGIC = struct.pack("<i", 1681511377)
Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"


def measured(kind: str, root: Path) -> tuple[FileTotals, dict[str, ColumnTally]]:
    """What is counted of a table as a scan would find it, also by column."""
    folder = StoredTableFolder(LocalStorage(), str(root))
    facts, memory = table_reader(kind).read(folder, None, max_commits=100)
    found = table_files(str(root), TableMemory(kind, to_json(facts), memory))
    leaves = tuple(
        leaf._replace(values=leaf.kind not in ("text", "bytes", "list", "map", "opaque"))
        for leaf in profiled_columns(facts.schema)
    )
    job = ProfileJob(leaves, DEFAULT_ACCESS, found.fields)
    counted: dict[int, FileTotals] = {}
    tasks = (file.task for file in found.files)
    assert not list(read_tasks(job, tasks, counted, (), pa.schema([])))
    if not counted:
        return FileTotals(0, 0, []), {}
    measurement = counted[0]
    for remark in found.remarks:
        measurement.problems.add(remark)
    return measurement, dict(zip((leaf.path for leaf in leaves), measurement.tallies, strict=True))


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param([], id="none"),
        pytest.param([0, 7, 65_535, 65_536, 2**33 + 5], id="arrays"),
        pytest.param(list(range(0, 20_000, 2)), id="bitmap"),
        pytest.param(list(range(100, 9_000)), id="runs"),
        pytest.param([n * 65_536 for n in range(9)] + list(range(100, 9_000)), id="many"),
    ],
)
@pytest.mark.parametrize("optimised", [False, True])
def test_bitmaps_are_read_as_their_library_writes_them(numbers: list[int], optimised: bool) -> None:
    bitmap = BitMap64(numbers)
    if optimised:
        bitmap.run_optimize()
    body = VECTOR_MAGIC + bitmap.serialize()
    deletes = RowDeletes("dv", "", count=len(numbers), inline=body)
    assert list(deleted_rows([deletes], "", DEFAULT_ACCESS)) == sorted(numbers)


def test_a_short_vector_of_a_million_rows_stays_small_in_memory() -> None:
    bitmap = BitMap64(range(1_000_000))
    bitmap.run_optimize()
    body = VECTOR_MAGIC + bitmap.serialize()
    assert len(body) < 300
    tracemalloc.start()
    try:
        deleted = deleted_rows([RowDeletes("dv", "", inline=body)], "", DEFAULT_ACCESS)
        flags = undeleted_row_flags(999_998, 4, deleted)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(deleted) == 1_000_000
    assert flags.to_pylist() == [False, False, True, True]
    assert peak < 1024 * 1024


@pytest.mark.parametrize(
    ("content", "count", "reason"),
    [
        pytest.param(b"", None, "cannot be read", id="empty file"),
        pytest.param(struct.pack(">i", 2**30) + VECTOR_MAGIC, None, "1,073,741,824", id="too long"),
        pytest.param(struct.pack(">i", -1), None, "-1 bytes", id="negative length"),
        pytest.param(struct.pack(">i", 12) + b"x" * 12, None, "begins with", id="another file"),
        pytest.param(struct.pack(">i", 12) + VECTOR_MAGIC + b"x" * 8, None, "read", id="no bitmap"),
        pytest.param(
            struct.pack(">i", 12) + VECTOR_MAGIC + bytes(8), 3, "0 rows, .* lists 3", id="count"
        ),
    ],
)
def test_a_damaged_vector_is_named(
    content: bytes, count: int | None, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "vector.bin").write_bytes(content)
    deletes = RowDeletes("dv", str(tmp_path / "vector.bin"), count=count)
    with pytest.raises(UnreadableFile, match=reason) as caught:
        deleted_rows([deletes], "", DEFAULT_ACCESS)
    assert caught.value.code == "corrupt_file"


def test_negative_positions_are_named(tmp_path: Path) -> None:
    path = tmp_path / "deletes.parquet"
    pq.write_table(pa.table({"file_path": ["a"], "pos": pa.array([-1], pa.int64())}), path)
    with pytest.raises(UnreadableFile, match="negative position"):
        deleted_rows([RowDeletes("positions", str(path))], "a", DEFAULT_ACCESS)


def rows(first: int, last: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(first, last), pa.int64()),
            "part": pa.array([f"p{number % 2}" for number in range(first, last)]),
        }
    )


def inline_vector(rows: list[int]) -> dict[str, Any]:
    body = VECTOR_MAGIC + BitMap64(rows).serialize()
    padded = body + bytes(-len(body) % 4)
    text = base64.b85encode(padded).translate(bytes.maketrans(B85, Z85)).decode()
    return {
        "storageType": "i",
        "pathOrInlineDv": text,
        "sizeInBytes": len(body),
        "cardinality": len(rows),
    }


def test_deletion_vectors_and_column_mapping_of_delta(tmp_path: Path) -> None:
    table = tmp_path / "table"
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
    measurement, columns = measured("delta", table)
    assert (measurement.rows, measurement.problems.listed) == (1000 - len(deleted), [])
    assert (columns["id"].low, columns["id"].high, columns["inside.x"].high) == (2, 599, 599)


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
    _, columns = measured("iceberg", Path(table.location().removeprefix("file://")))
    assert (columns["number"].nulls, columns["number"].high) == (0, 50)
    assert (columns["id"].nulls, columns["id"].misfits, columns["id"].longest) == (50, 0, 1)


@pytest.mark.parametrize(
    ("type", "initial", "low", "length"),
    [
        pytest.param("long", 7, 7, None, id="long"),
        pytest.param("boolean", True, None, None, id="boolean"),
        pytest.param("double", 1.5, 1.5, None, id="double"),
        pytest.param("decimal(9, 2)", "14.20", "14.20", None, id="decimal"),
        pytest.param("date", "1970-01-03", 2, None, id="date"),
        pytest.param("time", "00:00:01.5", 1_500_000, None, id="time"),
        pytest.param("timestamp", "1970-01-01T00:00:01", 1_000_000, None, id="timestamp"),
        pytest.param("timestamptz", "1970-01-01T00:00:01+00:00", 1_000_000, None, id="zoned"),
        pytest.param("string", "", None, 0, id="empty text"),
        pytest.param("binary", "0001ff", None, 3, id="binary"),
        pytest.param("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7", None, 16, id="uuid"),
    ],
)
def test_rows_older_than_a_column_of_iceberg_have_its_initial_default(
    tmp_path: Path, type: str, initial: Any, low: Any, length: int | None
) -> None:
    table = iceberg(tmp_path).create_table("ns.t", schema=rows(0, 1).schema)
    table.append(rows(0, 3))
    added = {"id": 3, "name": "new", "required": False, "type": type}
    later = {**added, "id": 4, "name": "later", "write-default": initial}
    kept = {"id": 2, "name": "part", "required": False, "type": "string", "initial-default": "no"}
    (measurement,) = (
        file for file in tmp_path.rglob("*.metadata.json") if file.name.startswith("00001")
    )
    metadata = json.loads(measurement.read_text())
    (schema,) = metadata["schemas"]
    first = schema["fields"][0]
    both = {**added, "initial-default": initial, "write-default": initial}
    fields = [first, kept, both, later]
    metadata["schemas"].append({**schema, "schema-id": 1, "fields": fields})
    metadata |= {"format-version": 3, "next-row-id": 3, "current-schema-id": 1, "last-column-id": 4}
    (measurement.parent / measurement.name.replace("00001", "00002")).write_text(
        json.dumps(metadata)
    )
    found, columns = measured("iceberg", measurement.parent.parent)
    assert (found.rows, found.problems.listed) == (3, [])
    new = columns["new"]
    assert (new.nulls, new.misfits, new.low, new.longest) == (0, 0, low, length)
    assert columns["later"].nulls == 3, "a default of new rows alone"
    assert columns["part"].shortest == columns["part"].longest == 2
    assert columns["part"].nulls == 0


def identities(root: Path) -> set[bytes]:
    """What the files of an Iceberg table are known by."""
    facts, memory = table_reader("iceberg").read(
        StoredTableFolder(LocalStorage(), str(root)), None, max_commits=100
    )
    found = table_files(str(root), TableMemory("iceberg", to_json(facts), memory))
    return {file.identity for file in found.files}


def test_files_are_measured_anew_when_their_bytes_are_other_columns(tmp_path: Path) -> None:
    numbers = pa.table({"id": pa.array([1, 2], pa.int64()), "v": pa.array([10, 20], pa.int64())})
    catalog = iceberg(tmp_path)
    swapped, added = (catalog.create_table(f"ns.{name}", numbers.schema) for name in "sa")
    before = []
    for table in (swapped, added):
        table.append(numbers)
        root = Path(table.location().removeprefix("file://"))
        before.append((root, identities(root)))
        assert identities(root) == before[-1][1]
    for old, new in (("id", "other"), ("v", "id"), ("other", "v")):
        with swapped.update_schema(allow_incompatible_changes=True) as update:
            update.rename_column(old, new)
    with swapped.update_schema() as update:
        update.move_first("id")
    with added.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("v")
    with added.update_schema() as update:
        update.add_column("v", LongType())
    for root, known in before:
        assert identities(root).isdisjoint(known)


def test_files_without_ids_are_read_by_the_name_mapping_of_iceberg() -> None:
    mapping = [
        {"field-id": 1, "names": ["a"]},
        {"field-id": 2, "names": ["s"], "fields": [{"field-id": 3, "names": ["old", "older"]}]},
    ]
    nested = NestedField(path="inside.x", field_id=3)
    type = parse_type("STRUCT<x: INT64>")
    schema = Schema(
        fields=(
            Field(name="id", type=parse_type("INT64"), field_id=1),
            Field(name="inside", type=type, field_id=2, nested=(nested,)),
            Field(name="a", type=parse_type("INT64"), field_id=9),
        )
    )
    known = known_fields(schema, {"schema.name-mapping.default": json.dumps(mapping)})
    file = [pa.field("s", pa.struct([("older", pa.int64())])), pa.field("a", pa.int64())]
    assert {at: each.name for at, each in field_positions(known, file).items()} == {
        0: "inside",
        1: "id",
    }
    assert rename_members(pa.array([{"older": 7}], file[0].type), known[1]).to_pylist() == [
        {"x": 7}
    ]
    task = FileTask("", 0, "avro", 0, fields=known)
    records = {"fields": [{"name": "a"}, {"name": "s"}]}
    assert names_in_file(records, task, ["id", "inside", "a"]) == {"id": "a", "inside": "s"}


def test_partitions_of_delta_by_moments_and_empty_texts(tmp_path: Path) -> None:
    at = pa.array([datetime(2024, 1, 1, 1, tzinfo=UTC), None], pa.timestamp("us", tz="UTC"))
    table = pa.table({"id": pa.array([1, 2], pa.int64()), "at": at, "text": ["", "a"]})
    deltalake.write_deltalake(str(tmp_path), table, partition_by=["at", "text"])
    _, columns = measured("delta", tmp_path)
    moments, texts = columns["at"], columns["text"]
    assert (moments.nulls, moments.misfits) == (1, 0)
    assert moments.low == moments.high == 1_704_070_800_000_000
    assert (texts.nulls, texts.shortest) == (1, 1), "the protocol writes null as an empty text"


def test_partitions_of_delta_by_bytes(tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2, 3], "bytes": pa.array([b"\x01\xff", b"a", None], pa.binary())})
    deltalake.write_deltalake(str(tmp_path), table, partition_by=["bytes"])
    column = measured("delta", tmp_path)[1]["bytes"]
    assert (column.shortest, column.longest, column.nulls) == (1, 2, 1)


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
    measurement, columns = measured("iceberg", folder)
    assert (measurement.rows, columns["id"].low, measurement.problems.listed) == (90, 10, [])


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
        measurement = {key: text for key, text in manifest.metadata.items() if "avro" not in key}
    (entry,) = entries
    about = entry["data_file"]
    about.update(
        content=1,
        file_path=f"file://{deletes}",
        record_count=10,
        file_size_in_bytes=deletes.stat().st_size,
    )
    measurement["content"] = "deletes"
    own = folder / "metadata/deletes-m0.avro"
    with own.open("wb") as file:
        fastavro.writer(file, entry_schema, [entry], metadata=measurement)
    row = {**found[0], "manifest_path": f"file://{own}", "content": 1}
    row["manifest_length"] = own.stat().st_size
    with listing.open("wb") as file:
        fastavro.writer(file, schema, [*found, row], metadata=properties)


def test_hudi_tables_count_the_newest_files_alone(tmp_path: Path) -> None:
    table = tmp_path / "table"
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
    measurement, columns = measured("hudi", table)
    assert (measurement.rows, columns["id"].high) == (20, 19)


@pytest.mark.parametrize("at", ["path", "vector"])
def test_a_log_leads_into_no_other_store(at: str, tmp_path: Path) -> None:
    # A table in a bucket names a file of this machine.
    secret = tmp_path / "secret.parquet"
    pq.write_table(pa.table({"id": [1, 2]}), secret)
    task = FileTask(str(secret), 1, "parquet", unit=0, table_root=str(tmp_path))
    leaves = tuple(profiled_columns(Schema(fields=(Field(name="id", type=parse_type("INT64")),))))

    def read(task: FileTask) -> FileTotals:
        counted: dict[int, FileTotals] = {}
        assert not list(
            read_tasks(ProfileJob(leaves, DEFAULT_ACCESS), [task], counted, (), pa.schema([]))
        )
        return counted[0]

    assert read(task).rows == 2
    if at == "path":
        task = task._replace(table_root="s3://lake/table")
    else:
        task = task._replace(deletes=(RowDeletes("dv", "s3://other/vector.bin"),))
    found = read(task)
    assert (found.rows, [problem.code for problem in found.problems.listed]) == (
        0,
        ["outside_path"],
    )
