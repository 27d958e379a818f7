"""Iceberg's manifests: which files are live, what deletes rows of them, and what lies elsewhere."""

import io
import json
import uuid
from datetime import date
from typing import Any

import fastavro
import pytest

from lumos.formats.interface import UnreadableFile
from lumos.formats.tables.avro_containers import AvroContainer
from lumos.formats.tables.interface import RowDeletes, TableFeature

from .iceberg_tables import (
    LOCATION,
    READER,
    avro,
    data_file,
    facts_of,
    in_memory,
    live_of,
    manifest,
    manifest_list,
    metadata,
    parquet_manifest,
    sized,
    snapshot,
    with_manifests,
)


def problem_of(folder: Any) -> tuple[str, str]:
    with pytest.raises(UnreadableFile) as problem:
        facts_of(folder)
    return problem.value.code, problem.value.reason


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "bzip2", "xz"])
def test_manifests_are_read_whatever_compresses_them(codec: str) -> None:
    content = manifest([data_file(f"data/{n}.parquet", rows=n) for n in range(3000)], codec=codec)
    facts = facts_of(with_manifests(metadata(), {"m0.avro": content}))
    assert (facts.files, facts.bytes, facts.rows) == (3000, 300_000, sum(range(3000)))


def test_entries_that_were_deleted_are_not_live() -> None:
    files = [
        data_file("data/a", status=0, sequence=1),
        data_file("data/b", status=1),
        data_file("data/c", status=2),
    ]
    folder = with_manifests(metadata(), {"m0.avro": manifest(files)})
    assert [file.path for file in live_of(folder)] == ["data/a", "data/b"]


def test_a_snapshot_of_the_first_version_may_name_its_manifests_itself() -> None:
    content = manifest([data_file("data/a")], version=1, metadata={"partition-spec-id": "0"})
    named = snapshot(1, **{"manifest-list": None, "manifests": [f"{LOCATION}/metadata/m0.avro"]})
    table_metadata = metadata(1, snapshots=[named], current_snapshot_id=1)
    facts = facts_of(in_memory({"v1.metadata.json": table_metadata, "m0.avro": content}))
    assert (facts.files, facts.rows) == (1, 10)


def test_a_list_of_the_first_version_knows_no_deletes() -> None:
    manifests = {"m0.avro": manifest([data_file("data/a")], version=1)}
    folder = with_manifests(metadata(1), manifests, version=1)
    assert (facts_of(folder).files, facts_of(folder).rows_exact) == (1, True)


PARTITIONS: list[tuple[str, Any, Any, str | None]] = [
    ("identity", "string", "a=b/c", "a=b/c"),
    ("identity", "int", 5, "5"),
    ("identity", "boolean", True, "true"),
    ("identity", {"type": "int", "logicalType": "date"}, 19844, "2024-05-01"),
    ("identity", {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True}, 1714564800000001, "2024-05-01T12:00:00.000001+00:00"),
    ("identity", {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False}, -1, "1969-12-31T23:59:59.999999"),
    ("identity", {"type": "long", "logicalType": "timestamp-nanos"}, 1, "1970-01-01T00:00:00.000000001"),
    ("identity", {"type": "long", "logicalType": "time-micros"}, 3_600_000_000, "01:00:00"),
    ("identity", {"type": "fixed", "name": "d", "size": 16, "logicalType": "decimal", "precision": 38, "scale": 2}, (-12345678901234567890123456789012345).to_bytes(16, "big", signed=True), "-123456789012345678901234567890123.45"),
    ("identity", {"type": "fixed", "name": "u", "size": 16, "logicalType": "uuid"}, uuid.UUID(int=7).bytes, str(uuid.UUID(int=7))),
    ("identity", "bytes", b"\x00\xff", "AP8="),
    ("identity", ["null", "string"], None, None),
    ("bucket[16]", "int", 3, "3"),
    ("truncate[2]", "string", "ab", "ab"),
    ("year", "int", 54, "2024"),
    ("month", "int", 52 * 12 + 4, "2022-05"),
    ("month", "int", -1, "1969-12"),
    ("day", "int", 19844, "2024-05-01"),
    ("day", {"type": "int", "logicalType": "date"}, 19844, "2024-05-01"),
    ("day", "int", 2_000_000_000, "2000000000"),
    ("hour", "int", 24 * 19844 + 7, "2024-05-01-07"),
    ("newish", "int", 5, "5"),
]  # fmt: skip


@pytest.mark.parametrize(("transform", "type", "value", "text"), PARTITIONS)
def test_values_of_partitions_are_reported_as_people_write_them(
    transform: str, type: Any, value: Any, text: str | None
) -> None:
    raw = (
        type
        if not isinstance(type, dict)
        else {key: type[key] for key in type if key != "logicalType"}
    )
    content = manifest(
        [data_file("data/a", partition={"p_x": value})],
        partition=({"name": "p_x", "type": raw, "field-id": 1000},),
    )
    # fastavro wants Python's values for logical types, which are put into the schema afterwards.
    content = _with_schema(content, type)
    spec = {
        "spec-id": 0,
        "fields": [{"name": "p.x", "transform": transform, "source-id": 1, "field-id": 1000}],
    }
    folder = with_manifests(metadata(partition_specs=[spec]), {"m0.avro": content})
    assert [file.partition for file in live_of(folder)] == [(("p.x", text),)]


def _with_schema(content: bytes, type: Any) -> bytes:
    """The file with another type of its partition value, which is written in the same way."""

    def changed(node: Any) -> Any:
        if isinstance(node, dict):
            if node.get("name") == "p_x":
                return {**node, "type": type}
            return {key: changed(part) for key, part in node.items()}
        return [changed(part) for part in node] if isinstance(node, list) else node

    header = AvroContainer(content).metadata["avro.schema"]
    new = json.dumps(changed(json.loads(header))).encode()
    assert sized(header) in content
    return content.replace(sized(header), sized(new))


def table_with_deletes(deletes: list[dict[str, Any]], version: int = 3) -> Any:
    data = [
        data_file("data/old", sequence=1),
        data_file("data/same", sequence=5),
        data_file("data/new", sequence=9),
    ]
    manifests = {
        "m0.avro": manifest(data, version=version),
        "m1.avro": manifest(deletes, version=version),
    }
    return with_manifests(
        metadata(version), manifests, deletes=("m1.avro",), sequence=5, version=version
    )


def applied(folder: Any) -> dict[str, tuple[RowDeletes, ...]]:
    return {file.path: file.deletes for file in live_of(folder)}


def test_deletion_vectors_apply_to_their_files_and_rows_are_exact() -> None:
    vector = {
        "content": 1,
        "file_format": "PUFFIN",
        "content_offset": 4,
        "content_size_in_bytes": 40,
    }
    folder = table_with_deletes(
        [
            data_file(
                "data/v.puffin", rows=3, referenced_data_file=f"{LOCATION}/data/old", **vector
            ),
            data_file(
                "data/v.puffin", rows=2, referenced_data_file=f"{LOCATION}/data/gone", **vector
            ),
        ]
    )
    facts = facts_of(folder)
    assert (facts.files, facts.bytes, facts.rows, facts.rows_exact) == (3, 300, 27, True)
    assert facts.properties["iceberg.delete-files"] == "2"
    assert facts.properties["iceberg.delete-bytes"] == "80"
    assert TableFeature("deletion vectors", True) in facts.features
    assert applied(folder) == {
        "data/old": (RowDeletes("dv", "data/v.puffin", 4, 40, 3),),
        "data/same": (),
        "data/new": (),
    }


def test_a_deletion_vector_stands_for_earlier_positions() -> None:
    positions = data_file("data/p", rows=5, content=1)
    vector = data_file(
        "data/v", rows=3, content=1, file_format="puffin", content_offset=4, content_size_in_bytes=40,
        referenced_data_file=f"{LOCATION}/data/old",
    )  # fmt: skip
    found = applied(table_with_deletes([positions, vector]))
    assert [each.kind for each in found["data/old"]] == ["dv"]
    assert [each.kind for each in found["data/same"]] == ["positions"]


def test_positions_apply_to_files_up_to_their_commit_and_rows_are_no_longer_exact() -> None:
    folder = table_with_deletes([data_file("data/p", rows=4, content=1)], version=2)
    facts = facts_of(folder)
    assert (facts.rows, facts.rows_exact) == (26, False)
    assert {path: len(deletes) for path, deletes in applied(folder).items()} == {
        "data/old": 1,
        "data/same": 1,
        "data/new": 0,
    }
    assert TableFeature("position deletes", True) in facts.features


def test_equality_deletes_apply_to_older_files_and_are_named_as_not_read() -> None:
    folder = table_with_deletes([data_file("data/e", rows=4, content=2)], version=2)
    facts = facts_of(folder)
    assert (facts.rows, facts.rows_exact) == (30, False)
    assert {path: len(deletes) for path, deletes in applied(folder).items()} == {
        "data/old": 1,
        "data/same": 0,
        "data/new": 0,
    }
    assert TableFeature("equality deletes", False) in facts.features
    assert "equality deletes" in facts.remarks[0].reason


def test_deletes_of_one_partition_do_not_apply_to_another() -> None:
    partition = ({"name": "p", "type": "int", "field-id": 1000},)
    data = [data_file("data/1", partition={"p": 1}), data_file("data/2", partition={"p": 2})]
    manifests = {
        "m0.avro": manifest(data, partition=partition),
        "m1.avro": manifest(
            [data_file("data/d", content=1, partition={"p": 2})], partition=partition
        ),
    }
    spec = {
        "spec-id": 0,
        "fields": [{"name": "p", "transform": "identity", "source-id": 1, "field-id": 1000}],
    }
    folder = with_manifests(metadata(partition_specs=[spec]), manifests, deletes=("m1.avro",))
    assert {path: len(deletes) for path, deletes in applied(folder).items()} == {
        "data/1": 0,
        "data/2": 1,
    }


@pytest.mark.parametrize("name", ["snap-1.avro", "m0.avro"])
@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        pytest.param(lambda _: None, "is missing", id="gone"),
        pytest.param(lambda _: b"", "does not begin with Avro", id="empty"),
        pytest.param(lambda data: data[:-9], "ends inside", id="cut off"),
        pytest.param(lambda data: data[:40], "ends inside", id="no header"),
        pytest.param(
            lambda data: data.replace(b"avro.codec", b"avro.codex").replace(
                b"avro.schema", b"avro.scheme"
            ),
            "not valid JSON",
            id="no schema",
        ),
        pytest.param(
            lambda data: data.replace(b"path", b"math"), "missing required field", id="other fields"
        ),
    ],
)
def test_a_broken_manifest_is_a_broken_table(name: str, damage: Any, reason: str) -> None:
    folder = with_manifests(metadata(), {"m0.avro": manifest([data_file("data/a")])})
    files = dict(folder.files)
    changed = damage(files[f"metadata/{name}"])
    if changed is None:
        del files[f"metadata/{name}"]
    else:
        files[f"metadata/{name}"] = changed
    folder.files = files
    code, reason_text = problem_of(folder)
    assert code == "broken_table"
    assert f"metadata/{name}" in reason_text
    assert reason in reason_text


SUMMARY = {
    "operation": "append",
    "total-data-files": "7",
    "total-files-size": "700",
    "total-records": "70",
}


@pytest.mark.parametrize(
    ("table_metadata", "contents", "reason"),
    [
        pytest.param(
            {"manifest-list": "s3://other/snap-1.avro"},
            {},
            "outside of the table (s3://other)",
            id="elsewhere",
        ),
        pytest.param({"key-id": "k1"}, {}, "encrypted", id="a key"),
        pytest.param({}, {"snap-1.avro": b"AGS1...."}, "encrypted", id="encrypted"),
        pytest.param({}, {"snap-1.avro": b"PAR1...."}, "is a Parquet file", id="of a newer format"),
    ],
)
def test_without_readable_manifests_the_totals_of_the_writer_are_used(
    table_metadata: dict[str, Any], contents: dict[str, Any], reason: str
) -> None:
    one = snapshot(1, summary=SUMMARY, **table_metadata)
    document = metadata(3, snapshots=[one], current_snapshot_id=1)
    facts = facts_of(in_memory({"v1.metadata.json": document, **contents}))
    assert (facts.files, facts.bytes, facts.rows, facts.rows_exact) == (7, 700, 70, False)
    assert [remark.code for remark in facts.remarks] == ["outside_data"]
    assert reason in facts.remarks[0].reason


def test_manifests_in_parquet_and_paths_below_the_root_are_read_as_version_4_has_them() -> None:
    spec = {
        "spec-id": 0,
        "fields": [{"name": "d", "transform": "day", "source-id": 2, "field-id": 1000}],
    }
    content = parquet_manifest(
        [("data/a.parquet", date(2024, 5, 1)), (f"{LOCATION}/data/b.parquet", None)]
    )
    folder = with_manifests(metadata(4, partition_specs=[spec]), {"m0.parquet": content})
    assert [(file.path, file.partition) for file in live_of(folder)] == [
        ("data/a.parquet", (("d", "2024-05-01"),)),
        ("data/b.parquet", (("d", None),)),
    ]


@pytest.mark.parametrize(
    "content", [b"PAR1", b"PAR1" * 30, parquet_manifest([])[:-9], parquet_manifest([])[:300]]
)
def test_a_broken_manifest_in_parquet_is_a_broken_table(content: bytes) -> None:
    folder = with_manifests(metadata(4), {"m0.parquet": content})
    assert problem_of(folder)[0] == "broken_table"


def test_a_path_that_climbs_out_of_the_table_is_not_followed() -> None:
    one = snapshot(
        1, summary=SUMMARY, **{"manifest-list": f"{LOCATION}/metadata/../../x/snap.avro"}
    )
    facts = facts_of(
        in_memory({"v1.metadata.json": metadata(snapshots=[one], current_snapshot_id=1)})
    )
    assert "outside of the table" in facts.remarks[0].reason


def test_a_data_file_that_lies_above_the_table_is_damage() -> None:
    folder = with_manifests(
        metadata(), {"m0.avro": manifest([data_file("data/../../other/a.parquet")])}
    )
    assert problem_of(folder)[0] == "broken_table"


def elsewhere(*paths: str, **properties: str) -> Any:
    files = [{**data_file(""), "file_path": path} for path in paths]
    table_metadata = metadata(
        properties={name.replace("_", "."): value for name, value in properties.items()}
    )
    return with_manifests(table_metadata, {"m0.avro": manifest(files)})


def test_files_outside_the_root_are_claimed_one_by_one() -> None:
    paths = (
        f"{LOCATION}/data/a.parquet",
        "s3a://lake/imported/dt=1/b.parquet",
        "s3://other/c.parquet",
    )
    folder = elsewhere(*paths)
    assert facts_of(folder).outside_locations == (
        "s3://other/c.parquet",
        "s3a://lake/imported/dt=1/b.parquet",
    )
    assert [file.path for file in live_of(folder)] == ["data/a.parquet", *paths[1:]]


def test_very_many_files_outside_the_root_are_claimed_by_their_folders() -> None:
    paths = [f"s3://other/t/dt={n % 7}/country=de/{n}.parquet" for n in range(10_001)]
    assert facts_of(elsewhere(*paths)).outside_locations == ("s3://other/t",)


def test_a_path_for_data_is_claimed_as_a_whole() -> None:
    folder = elsewhere(
        "s3://data/t/0f3a/x.parquet", "s3://data/t/1b2c/y.parquet", write_data_path="s3://data/t/"
    )
    assert facts_of(folder).outside_locations == ("s3://data/t",)


def test_a_folder_that_holds_the_table_itself_is_not_claimed() -> None:
    assert (
        facts_of(elsewhere("s3://lake/x.parquet", write_data_path="s3://lake/")).outside_locations
        == ()
    )


def test_metadata_that_lies_apart_does_not_move_the_data() -> None:
    content = manifest([data_file("data/a.parquet")])
    apart = "s3://meta/t/metadata"
    listed = manifest_list({"m0.avro": content})
    table_metadata = metadata(
        properties={"write.metadata.path": apart},
        snapshots=[snapshot(1, **{"manifest-list": f"{apart}/snap-1.avro"})],
        current_snapshot_id=1,
        location="s3://data/t",
    )
    reader = fastavro.reader(io.BytesIO(listed))
    records = [
        {**each, "manifest_path": f"{apart}/m0.avro"} for each in reader if isinstance(each, dict)
    ]
    listed = avro("manifest_file", reader.writer_schema["fields"], records)  # type: ignore[index, call-overload]
    folder = in_memory(
        {"v1.metadata.json": table_metadata, "snap-1.avro": listed, "m0.avro": content},
        root="s3://meta/t",
    )
    facts = facts_of(folder)
    assert facts.files == 1
    assert facts.outside_locations == (f"{LOCATION}/data/a.parquet",)


def test_live_files_of_an_unread_table_are_not_reported() -> None:
    _, memory = READER.read(in_memory({"v1.metadata.json": metadata()}), None, max_commits=1)
    assert list(READER.live(memory)) == []
