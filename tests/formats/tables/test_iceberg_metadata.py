"""What the versions of the format say in Iceberg's metadata files."""

import json
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table.metadata import TableMetadataUtil

from lumos.formats.interface import UnreadableFile
from lumos.formats.tables.interface import TableFeature

from .iceberg_tables import (
    LOCATION,
    READER,
    SIMPLE,
    UUID,
    facts_of,
    field,
    in_memory,
    metadata,
    packed,
    schema,
    snapshot,
)

A = "1c12d441-03fe-4693-9a96-a0705ddf69c1"


def problem_of(folder: Any) -> tuple[str, str]:
    with pytest.raises(UnreadableFile) as problem:
        facts_of(folder)
    return problem.value.code, problem.value.reason


def test_a_view_is_no_table() -> None:
    view = {"view-uuid": UUID, "format-version": 1, "location": LOCATION, "schemas": [SIMPLE]}
    code, reason = problem_of(in_memory({"v1.metadata.json": view}))
    assert (code, "view" in reason) == ("unsupported_feature", True)


def test_a_table_of_the_first_version_has_one_schema_and_one_spec() -> None:
    document = metadata(
        1,
        schemas=None,
        current_schema_id=None,
        partition_specs=None,
        sort_orders=None,
        schema=schema(field(1, "id", "long", required=True), field(2, "ts", "timestamp")),
        partition_spec=[{"name": "d", "transform": "day", "source-id": 2, "field-id": 1000}],
        current_snapshot_id=None,
        snapshots=None,
    )
    facts = facts_of(in_memory({"v1.metadata.json": document}))
    judge = TableMetadataUtil.parse_obj(json.loads(json.dumps({**document, "snapshots": []})))
    assert [field.name for field in facts.schema.fields] == list(judge.schema().column_names)
    assert str(facts.schema) == "id INT64 NOT NULL\nts TIMESTAMP(us)"
    assert facts.partition_by == ("days(ts)",)


NEW = schema(
    field(1, "a", "timestamp_ns"),
    field(2, "b", "timestamptz_ns", **{"initial-default": "1970-01-01T00:00:00+00:00", "write-default": "2024-01-01T00:00:00+00:00"}),
    field(3, "c", "unknown"),
    field(4, "d", "variant"),
    field(5, "e", "geometry(OGC:CRS84)"),
    field(6, "f", "geography(srid:4326, karney)"),
    field(7, "g", "fancy<9>"),
    field(8, "h", {"type": "struct", "fields": [field(9, "x", "int", **{"write-default": 5})]}),
)  # fmt: skip


def test_types_and_defaults_of_the_third_version_are_read_or_named() -> None:
    facts = facts_of(in_memory({"v1.metadata.json": metadata(3, schemas=[NEW])}))
    assert str(facts.schema).splitlines() == [
        "a TIMESTAMP(ns)",
        "b TIMESTAMPTZ(ns) DEFAULT '2024-01-01T00:00:00+00:00'",
        "c NULL",
        "d JSON",
        "e UNKNOWN('geometry')",
        "f UNKNOWN('geography')",
        "g UNKNOWN('fancy<9>')",
        "h STRUCT<x: INT32>",
    ]
    assert [each.native_type for each in facts.schema.fields[4:6]] == [
        "geometry(OGC:CRS84)",
        "geography(srid:4326, karney)",
    ]
    assert facts.schema.fields[1].properties == {
        "iceberg.initial-default": "1970-01-01T00:00:00+00:00"
    }
    assert [(each.path, each.field_id, each.default) for each in facts.schema.fields[7].nested] == [
        ("h.x", 9, "5")
    ]
    assert facts.features == (
        TableFeature("format v3", True),
        TableFeature("type fancy<9>", False),
        TableFeature("type geography", False),
        TableFeature("type geometry", False),
        TableFeature("type timestamp_ns", True),
        TableFeature("type timestamptz_ns", True),
        TableFeature("type unknown", True),
        TableFeature("type variant", True),
        TableFeature("default values", True),
        TableFeature("row lineage", True),
    )
    assert [remark.code for remark in facts.remarks] == ["unsupported_feature"]
    assert "fancy<9>, type geography, type geometry" in facts.remarks[0].reason


def test_unknown_transforms_are_reported_with_their_names() -> None:
    spec = {
        "spec-id": 0,
        "fields": [
            {"name": "both", "transform": "bucket[4]", "source-ids": [1, 2], "field-id": 1000},
            {"name": "z", "transform": "zorder(3)", "source-id": 1, "field-id": 1001},
            {"name": "gone", "transform": "void", "source-id": 1, "field-id": 1002},
            {"name": "cut", "transform": "truncate[8]", "source-id": 9, "field-id": 1003},
        ],
    }
    facts = facts_of(in_memory({"v1.metadata.json": metadata(3, partition_specs=[spec])}))
    assert facts.partition_by == ("bucket[4](id, ts)", "zorder(3)(id)", "truncate[8](dropped 9)")
    assert TableFeature("transforms of several columns", True) in facts.features
    assert TableFeature("transform zorder(3)", False) in facts.features


def test_a_newer_format_is_read_as_far_as_it_is_known() -> None:
    document = metadata(4, novelty={"a": [1]}, encryption_keys=[{"key-id": "k"}])
    facts = facts_of(in_memory({"v1.metadata.json": document}))
    assert str(facts.schema) == "id INT64 NOT NULL\nts TIMESTAMPTZ(us)"
    assert TableFeature("format v4", False) in facts.features
    assert TableFeature("encryption", False) in facts.features


def test_identifier_fields_are_keys_and_those_in_structs_a_property() -> None:
    inner = {"type": "struct", "fields": [field(3, "b", "long", required=True)]}
    document = schema(
        field(1, "id", "long", required=True), field(2, "a", inner, required=True), keys=(1, 3)
    )
    facts = facts_of(in_memory({"v1.metadata.json": metadata(schemas=[document])}))
    assert str(facts.schema) == "id INT64 NOT NULL KEY\na STRUCT<b: INT64 NOT NULL> NOT NULL"
    assert facts.properties["iceberg.identifier-fields"] == "a.b"


def test_secrets_among_the_properties_are_left_out() -> None:
    document = {
        "s3.secret-access-key": "x",
        "s3.session-token": "x",
        "adls.sas.y": "x",
        "gcs.oauth2.token": "x",
        "note": "see https://me:hidden@lake.example/x",
        "made-from": "jdbc:sqlserver://db.example;user=me;password=hidden",
        "copied-from": "https://lake.example/x?sv=1&sig=hidden",
        "owner": "me",
        "home": "https://lake.example:8080/orders?by=me@lake.example",
    }
    facts = facts_of(in_memory({"v1.metadata.json": metadata(properties=document)}))
    kept = {name: document[name] for name in ("owner", "home")}
    assert facts.properties == {**kept, "iceberg.format-version": "2"}


def test_types_nested_too_deeply_are_cut_off() -> None:
    type: Any = "int"
    for _ in range(150):
        type = {"type": "list", "element-id": 5, "element": type, "element-required": False}
    facts = facts_of(
        in_memory({"v1.metadata.json": metadata(schemas=[schema(field(1, "a", type))])})
    )
    assert "too deep" in str(facts.schema)


def test_equal_names_of_columns_are_distinguished() -> None:
    document = schema(field(1, "a", "int"), field(2, "a", "long"), field(3, "", "string"))
    facts = facts_of(in_memory({"v1.metadata.json": metadata(schemas=[document])}))
    assert [each.name for each in facts.schema.fields] == ["a", "a_2", "column_3"]


ONE = schema(field(1, "a", "int"), id=0)
TWO = schema(field(1, "a", "long"), id=1)
THREE = schema(field(1, "a", "long"), field(2, "b", "string"), id=2)


def past_of(folder: Any) -> list[tuple[str, int, str, bool]]:
    return [
        (
            str(past.schema).replace("\n", ", "),
            int(past.at.timestamp()),
            past.version,
            past.exact_time,
        )
        for past in facts_of(folder).past
    ]


def test_without_old_files_the_first_snapshot_of_a_schema_shows_its_time() -> None:
    snapshots = [
        snapshot(10, at=1_000_000, schema_id=0, **{"parent-snapshot-id": 9}),
        snapshot(20, at=2_000_000, schema_id=0),
        snapshot(30, at=3_000_000, schema_id=1),
        snapshot(40, at=4_000_000, schema_id=0),
    ]
    document = metadata(
        schemas=[ONE, TWO], snapshots=snapshots, current_snapshot_id=None, last_updated_ms=9_000_000
    )
    assert past_of(in_memory({"v7.metadata.json": document})) == [
        # There was an earlier snapshot, which is expired.
        ("a INT32", 1000, "10", False),
        ("a INT64", 3000, "30", True),
        ("a INT32", 4000, "40", True),
    ]


def test_clocks_of_writers_that_differ_do_not_change_the_order_of_schemas() -> None:
    empty = {"manifest-list": None, "manifests": []}
    snapshots = [
        snapshot(1, at=5_000_000, schema_id=0, **empty),
        snapshot(2, at=2_000_000, schema_id=1, **empty),
        snapshot(3, at=6_000_000, schema_id=1, **empty),
        snapshot(4, at=4_000_000, schema_id=2, **empty),
    ]
    document = metadata(
        schemas=[ONE, TWO, THREE],
        current_schema_id=2,
        snapshots=snapshots,
        current_snapshot_id=4,
        last_updated_ms=4_000_000,
        last_sequence_number=4,
    )
    assert past_of(in_memory({"v7.metadata.json": document})) == [
        ("a INT32", 5000, "1", True),
        # Never earlier than what was there before it.
        ("a INT64", 5000, "2", False),
        ("a INT64, b STRING", 6000, "4", False),
    ]


def unseen_between(*, now: int, at: int) -> dict[str, Any]:
    """Of the schemas 0, 1 and 2, snapshots show the first and the last alone."""
    empty = {"manifest-list": None, "manifests": []}
    return metadata(
        schemas=[ONE, TWO, THREE],
        current_schema_id=now,
        snapshots=[
            snapshot(10, at=1_000_000, **empty),
            snapshot(30, at=3_000_000, schema_id=2, **empty),
        ],
        current_snapshot_id=30,
        last_updated_ms=at,
    )


def test_a_schema_that_nothing_shows_lies_between_its_neighbours() -> None:
    document = unseen_between(now=2, at=3_000_000)
    assert past_of(in_memory({"v7.metadata.json": document})) == [
        ("a INT32", 1000, "10", True),
        ("a INT64", 3000, "30", False),
        ("a INT64, b STRING", 3000, "30", True),
    ]


def test_a_schema_that_came_back_was_there_before_those_with_higher_numbers() -> None:
    document = unseen_between(now=1, at=4_000_000)
    assert [schema for schema, *_ in past_of(in_memory({"v7.metadata.json": document}))] == [
        "a INT32",
        "a INT64",
        "a INT64, b STRING",
        "a INT64",
    ]


def log(*entries: tuple[str, int]) -> list[dict[str, Any]]:
    return [
        {"metadata-file": f"{LOCATION}/metadata/{name}", "timestamp-ms": at} for name, at in entries
    ]


def test_old_metadata_files_show_when_a_schema_came_and_are_opened_once() -> None:
    first = metadata(schemas=[ONE], last_updated_ms=1_000_000)
    second = metadata(schemas=[ONE, TWO], current_schema_id=1, last_updated_ms=2_000_000)
    names = (f"00000-{A}.metadata.json", f"00001-{A}.metadata.json")
    third = metadata(
        schemas=[ONE, TWO],
        current_schema_id=1,
        last_updated_ms=3_000_000,
        metadata_log=log((names[0], 1_000_000), (names[1], 2_000_000)),
    )
    folder = in_memory({names[0]: first, names[1]: second, f"00002-{A}.metadata.json": third})
    expected = [("a INT32", 1000, "none", True), ("a INT64", 2000, "none", True)]
    assert past_of(folder) == expected
    _, memory = READER.read(folder, None, max_commits=10)
    folder.opened.clear()
    assert READER.read(folder, memory, max_commits=10)[0] == facts_of(folder)
    assert folder.opened[:1] == [f"metadata/00002-{A}.metadata.json"]
    assert folder.opened[1:2] == folder.opened[:1]


@pytest.mark.parametrize(
    "old", [None, b"", b"{}", b"\xff"], ids=["gone", "empty", "no metadata", "no text"]
)
def test_old_metadata_files_that_cannot_be_read_only_cost_the_exact_time(old: bytes | None) -> None:
    name = f"00000-{A}.metadata.json"
    document = metadata(
        schemas=[ONE, TWO],
        current_schema_id=1,
        last_updated_ms=3_000_000,
        metadata_log=log((name, 1_000_000)),
    )
    files: dict[str, Any] = {f"00001-{A}.metadata.json": document}
    if old is not None:
        files[name] = old
    assert past_of(in_memory(files))[-1] == ("a INT64", 3000, "none", False)


def test_the_first_version_keeps_its_old_schemas_in_old_files_only() -> None:
    def version_1(schema: dict[str, Any], at: int, **more: Any) -> dict[str, Any]:
        return metadata(
            1, schemas=None, current_schema_id=None, schema={"type": "struct", "fields": schema["fields"]}, last_updated_ms=at, **more
        )  # fmt: skip

    files = {
        "v1.metadata.json": version_1(ONE, 1_000_000),
        "v2.metadata.json": version_1(TWO, 2_000_000),
        "v3.metadata.json": version_1(
            THREE,
            3_000_000,
            metadata_log=log(("v1.metadata.json", 1_000_000), ("v2.metadata.json", 2_000_000)),
        ),
    }
    assert past_of(in_memory(files)) == [
        ("a INT32", 1000, "none", True),
        ("a INT64", 2000, "none", True),
        ("a INT64, b STRING", 3000, "none", True),
    ]


def test_a_long_log_is_opened_at_its_end_only() -> None:
    names = [f"{number:05}-{A}.metadata.json" for number in range(151)]
    schemas = [schema(field(1, "a", "int"), field(2, f"b{n}", "int"), id=n) for n in range(151)]
    files: dict[str, Any] = {
        name: metadata(schemas=schemas[: n + 1], current_schema_id=n, last_updated_ms=n * 1000)
        for n, name in enumerate(names)
    }
    files[names[150]]["metadata-log"] = log(
        *((name, n * 1000) for n, name in enumerate(names[:150]))
    )
    folder = in_memory(files)
    past = facts_of(folder).past
    assert len(folder.opened) == 101
    assert [each.exact_time for each in past] == [False] * 51 + [True] * 100
    assert [each.schema.fields[1].name for each in past] == [f"b{n}" for n in range(151)]


def test_a_rolled_back_table_is_as_old_as_its_rolling_back() -> None:
    snapshots = [snapshot(10, at=1_000_000), snapshot(20, at=2_000_000)]
    document = metadata(
        snapshots=[{**each, "manifest-list": None, "manifests": []} for each in snapshots],
        current_snapshot_id=10,
        snapshot_log=[{"snapshot-id": id, "timestamp-ms": at} for id, at in ((10, 1_000_000), (20, 2_000_000), (10, 3_000_000))],
    )  # fmt: skip
    facts = facts_of(in_memory({"v3.metadata.json": document}))
    assert (facts.version, int(facts.at.timestamp())) == ("10", 3000)


def test_metadata_compressed_with_zstd_is_read() -> None:
    data = pa.compress(packed(metadata(properties={"comment": "new"})), codec="zstd", asbytes=True)
    assert facts_of(in_memory({"v1.metadata.json": data})).description == "new"
