"""Schemas, settings and features of Delta tables: what is in the metadata is told, by its name."""

import json
from typing import Any

import pytest

from lumos.formats.tables.interface import TableFacts

from .delta_judge import read
from .delta_logs import add, field, log, metadata, protocol, struct
from .folder import MemoryFolder


def _facts(*fields: Any, **more: Any) -> TableFacts:
    return read(MemoryFolder(log([protocol(), metadata(*fields, **more)])))


@pytest.mark.parametrize(
    ("delta", "type"),
    [
        ("byte", "INT8"),
        ("short", "INT16"),
        ("integer", "INT32"),
        ("long", "INT64"),
        ("float", "FLOAT32"),
        ("double", "FLOAT64"),
        ("boolean", "BOOLEAN"),
        ("decimal(12,2)", "DECIMAL(12,2)"),
        ("string", "STRING"),
        ("string collate UNICODE_CI", "STRING"),
        ("binary", "BINARY"),
        ("date", "DATE"),
        ("timestamp", "TIMESTAMPTZ(us)"),
        ("timestamp_ntz", "TIMESTAMP(us)"),
        ("void", "NULL"),
        ("variant", "JSON"),
        ("interval year to month", "INTERVAL"),
        ("interval day to second", "DURATION(us)"),
        ("geometry(OGC:CRS84)", "UNKNOWN('geometry(OGC:CRS84)')"),
        ("quaternion", "UNKNOWN('quaternion')"),
        ({"type": "array", "elementType": "long", "containsNull": False}, "ARRAY<INT64 NOT NULL>"),
        (
            {"type": "map", "keyType": "string", "valueType": "date", "valueContainsNull": True},
            "MAP<STRING, DATE>",
        ),
        (struct(field("x", "short"), field("y", "void")), "STRUCT<x: INT16, y: NULL>"),
        ({"type": "graph", "nodes": 3}, "UNKNOWN('graph')"),
        (None, "UNKNOWN"),
    ],
)
def test_every_type_of_delta_has_its_own(delta: Any, type: str) -> None:
    column = _facts(field("c", delta, nullable=False)).schema.fields[0]
    assert (column.name, column.type.text, column.nullable) == ("c", type, False)
    if isinstance(delta, str):
        assert column.native_type == delta


def test_lengths_of_texts_are_kept_where_spark_hides_them() -> None:
    column = field("c", "string", __CHAR_VARCHAR_TYPE_STRING="varchar(20)")
    length_field = _facts(column).schema.fields[0]
    assert (length_field.type.text, length_field.native_type) == ("STRING(20)", "varchar(20)")


def test_field_ids_and_comments_stand_at_every_depth() -> None:
    mapped = {"delta.columnMapping.id": 7, "delta.columnMapping.physicalName": "col-7"}
    inner = {"delta.columnMapping.id": 9, "delta.columnMapping.physicalName": "col-9"}
    points = {
        "type": "array",
        "elementType": struct(field("x", "long", comment="across", **inner)),
        "containsNull": True,
    }
    column = _facts(field("p", points, comment="the points", **mapped)).schema.fields[0]
    assert (column.field_id, column.description) == (7, "the points")
    assert column.properties == {"delta.columnMapping.physicalName": "col-7"}
    nested = {each.path: each for each in column.nested}["p[].x"]
    assert (nested.field_id, nested.description) == (9, "across")
    assert nested.properties == {"delta.columnMapping.physicalName": "col-9"}


def test_generated_and_identity_columns_say_how() -> None:
    widened = [{"fromType": "short", "toType": "integer"}]
    facts = _facts(
        field("day", "date", **{"delta.generationExpression": "CAST(at AS DATE)"}),
        field("id", **{"delta.identity.start": 1, "delta.identity.highWaterMark": 99}),
        field("n", "integer", **{"delta.typeChanges": widened}),
        field("d", CURRENT_DEFAULT="7"),
        partition_by=["DAY"],
    )
    day, number, count, default = facts.schema.fields
    assert day.properties == {"delta.generationExpression": "CAST(at AS DATE)"}
    # The last number given out is data.
    assert number.properties == {"delta.identity.start": "1"}
    assert json.loads(count.properties["delta.typeChanges"]) == widened
    assert default.default == "7"
    assert [column.partition for column in facts.schema.fields] == [True, False, False, False]


def test_settings_are_reported_as_they_are() -> None:
    made = metadata(field("a"), owner="ann", **{"delta.constraints.ok": "a > 0"})
    made["metaData"].update(name="orders", description="Orders of the shop")
    made["metaData"]["configuration"]["odd"] = None
    made["metaData"]["configuration"]["fs.azure.account.key.lake"] = "c2VjcmV0"
    columns = json.dumps({"clusteringColumns": [["a"], ["b", "c"]], "domainName": "x"})
    domain = {"domain": "delta.clustering", "configuration": columns, "removed": False}
    facts = read(MemoryFolder(log([protocol(1, 2), made, {"domainMetadata": domain}])))
    assert facts.properties == {
        "owner": "ann",
        "delta.constraints.ok": "a > 0",
        "delta.minReaderVersion": "1",
        "delta.minWriterVersion": "2",
        "delta.name": "orders",
        "delta.clusteringColumns": "a, b.c",
    }
    assert facts.description == "Orders of the shop"


@pytest.mark.parametrize(
    "schema_string", [None, "", '{"type":"struct"}', '{"type":"struct","fields":[5,null]}']
)
def test_a_table_whose_schema_says_nothing_has_no_columns(schema_string: str | None) -> None:
    made = metadata()
    made["metaData"].update(schemaString=schema_string, partitionColumns=None, configuration=None)
    assert read(MemoryFolder(log([protocol(), made]))).schema.fields == ()


def test_columns_of_one_name_are_distinguished() -> None:
    facts = _facts(field("a"), field("a", "string"), field(""))
    assert [column.name for column in facts.schema.fields] == ["a", "a_2", "column_3"]


@pytest.mark.parametrize(
    ("made", "features", "is_remarked"),
    [
        pytest.param(protocol(1, 2), [], False, id="old"),
        pytest.param(protocol(1, 6), [], False, id="old writer"),
        pytest.param(
            protocol(
                3,
                7,
                readerFeatures=["deletionVectors", "variantType-preview"],
                writerFeatures=["deletionVectors", "variantType-preview", "rowTracking"],
            ),
            [("deletionVectors", True), ("variantType-preview", True), ("rowTracking", True)],
            False,
            id="known",
        ),
        pytest.param(
            protocol(3, 7, readerFeatures=["fancyNew"], writerFeatures=["fancyNew", "odd"]),
            [("fancyNew", False), ("odd", True)],
            True,
            id="unknown",
        ),
        pytest.param(
            protocol(3, 7, readerFeatures=[], writerFeatures=["catalogManaged"]),
            [("catalogManaged", False)],
            True,
            id="managed by a catalog",
        ),
        pytest.param(
            protocol(9, 9),
            [("reader version 9", False), ("writer version 9", True)],
            True,
            id="of times to come",
        ),
    ],
)
def test_features_are_named_and_the_table_is_reported_all_the_same(
    made: dict[str, Any], features: list[tuple[str, bool]], is_remarked: bool
) -> None:
    facts = read(MemoryFolder(log([made, metadata(field("a")), add("x")])))
    assert [tuple(feature) for feature in facts.features] == features
    codes = [remark.code for remark in facts.remarks]
    assert codes == (["unsupported_feature"] if is_remarked else [])
    if is_remarked:
        assert features[0][0] in facts.remarks[0].reason
    assert facts.files == 1


def test_column_mapping_is_named_where_its_mode_is_set() -> None:
    made = metadata(field("a"), **{"delta.columnMapping.mode": "name"})
    facts = read(MemoryFolder(log([protocol(2, 5), made])))
    assert [tuple(feature) for feature in facts.features] == [("columnMapping", True)]
