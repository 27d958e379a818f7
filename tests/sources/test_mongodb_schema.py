"""Which schema documents come to: types, unions, presence, maps, and what is known before."""

import datetime as dt
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import bson
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lumos.model.schema import Field, Schema
from lumos.model.types import NULL, DataType, parse_type
from lumos.sources.mongodb.documents import (
    DECODING,
    MAX_DEPTH,
    MAX_FIELDS,
    MAX_KEYS,
    DocumentCounter,
    FieldCounts,
    unite_types,
)
from lumos.sources.mongodb.schema import ValidatorRules, merge_with_known, observed_schema

NO_RULES = ValidatorRules({}, frozenset())


def seen_in(documents: Sequence[Mapping[str, Any]]) -> FieldCounts:
    noted = DocumentCounter()
    for document in documents:
        # As they come over the wire.
        noted.count_document(bson.decode(bson.encode(document), DECODING))
    return noted.seen


def schema_of(*documents: Mapping[str, Any]) -> Schema:
    return observed_schema(seen_in(documents), NO_RULES, has_key=True)


def type_of(*values: object) -> str:
    (field,) = schema_of(*({"a": value} for value in values)).fields
    return field.type.text


@pytest.mark.parametrize(
    ("value", "type", "native"),
    [
        (True, "BOOLEAN", "bool"),
        (1, "INT32", "int"),
        (2**40, "INT64", "long"),
        (bson.Int64(1), "INT64", "long"),
        (1.5, "FLOAT64", "double"),
        (bson.Decimal128("1.50"), "DECIMAL", "decimal"),
        ("x", "STRING", "string"),
        (bson.ObjectId(), "BINARY(12)", "objectId"),
        (dt.datetime(2024, 5, 1), "TIMESTAMPTZ(ms)", "date"),
        (b"x", "BINARY", "binData"),
        (bson.Binary(b"x", 5), "BINARY", "binData"),
        (bson.Binary.from_uuid(uuid.UUID(int=1)), "UUID", "uuid"),
        (bson.Regex("x"), "STRING", "regex"),
        (bson.Code("x"), "STRING", "javascript"),
        (bson.Timestamp(1, 1), "UNKNOWN('timestamp')", "timestamp"),
        (bson.MinKey(), "UNKNOWN('minKey')", "minKey"),
        (None, "NULL", None),
        ({}, "STRUCT<>", "object"),
        ({"x": 1}, "STRUCT<x: INT32>", "object"),
        ([], "ARRAY<NULL>", "array"),
        ([1, None], "ARRAY<INT32>", "array"),
        (bson.DBRef("c", 1), "STRUCT<`$ref`: STRING, `$id`: INT32>", "object"),
    ],
)
def test_every_type_of_bson_has_one_in_the_algebra(
    value: object, type: str, native: str | None
) -> None:
    (field,) = schema_of({"a": value}).fields
    assert (field.type.text, field.native_type) == (type, native)
    assert parse_type(type) == field.type


@pytest.mark.parametrize(
    ("values", "type"),
    [
        ((1, None), "INT32"),
        ((1, bson.Int64(2)), "INT64"),
        ((1, 2.5), "FLOAT64"),
        ((1, bson.Decimal128("2")), "DECIMAL"),
        ((1.5, bson.Decimal128("2")), "UNION<DECIMAL, FLOAT64>"),
        (("x", 1), "UNION<INT32, STRING>"),
        ((1, "x"), "UNION<INT32, STRING>"),
        (([1], ["x"]), "ARRAY<UNION<INT32, STRING>>"),
        (([1], "x"), "UNION<STRING, ARRAY<INT32>>"),
        (({"x": 1}, {"y": 2}), "STRUCT<x: INT32, y: INT32>"),
        (({"x": 1}, {"x": "y"}), "STRUCT<x: UNION<INT32, STRING>>"),
        (([{"x": 1}, {"y": 1}],), "ARRAY<STRUCT<x: INT32, y: INT32>>"),
    ],
)
def test_types_that_differ_widen_or_become_a_union(values: tuple[object, ...], type: str) -> None:
    assert type_of(*values) == type


def test_presence_is_told_of_keys_that_not_all_have_also_inside() -> None:
    documents: list[dict[str, Any]] = [{"a": {"x": 1}} for _ in range(99)]
    schema = schema_of(*documents, {"a": {"x": 1, "y": None}, "b": None})
    assert {field.name: field.properties for field in schema.fields} == {
        "a": {},
        "b": {"mongodb.presence": "0.01"},
    }
    assert {note.path: note.properties for note in schema.fields[0].nested} == {
        "a.x": {},
        "a.y": {"mongodb.presence": "0.01"},
    }


def test_nearly_all_is_not_all() -> None:
    schema = schema_of(*({"a": 1} for _ in range(999)), {})
    assert schema.fields[0].properties == {"mongodb.presence": "0.99"}


def test_keys_come_in_their_usual_order_and_the_id_first() -> None:
    schema = schema_of({"b": 1, "a": 1, "_id": 1}, {"b": 1, "a": 1, "_id": 1}, {"a": 1, "b": 1})
    assert [str(field) for field in schema.fields] == [
        "_id INT32 NOT NULL KEY",
        "b INT32",
        "a INT32",
    ]


@pytest.mark.parametrize(
    ("keys", "type"),
    [
        pytest.param([str(bson.ObjectId()) for _ in range(20)], "MAP<STRING, INT32>", id="ids"),
        pytest.param(
            [f"2024-05-{day:02}" for day in range(1, 31)], "MAP<STRING, INT32>", id="days"
        ),
        pytest.param([str(number) for number in range(50)], "MAP<STRING, INT32>", id="numbers"),
        pytest.param(
            [f"k{number}" for number in range(MAX_KEYS + 1)], "MAP<STRING, INT32>", id="many"
        ),
        pytest.param(["2024-05-01", "2024-05-02"], "", id="too few to tell"),
        pytest.param([f"k{number}" for number in range(50)], "", id="names"),
    ],
)
def test_keys_that_are_data_make_a_map(keys: list[str], type: str) -> None:
    told = type_of(*({key: 1} for key in keys))
    assert told == type if type else told.startswith("STRUCT<")


def test_documents_that_nest_without_end_are_cut() -> None:
    deep: object = 1
    for _ in range(MAX_DEPTH + 20):
        deep = {"x": deep}
    told = type_of(deep)
    assert told.endswith("x: JSON" + ">" * told.count("<"))
    assert told.count("x:") == MAX_DEPTH - 1


def test_documents_with_keys_without_end_are_cut_and_that_is_said() -> None:
    documents = DocumentCounter()
    documents.count_document({f"k{number}": 1 for number in range(MAX_KEYS + 1)})
    assert documents.is_truncated
    assert len(documents.seen.members) == MAX_KEYS
    many = DocumentCounter()
    for number in range(60):
        many.count_document({f"k{number}": {f"x{inner}": 1 for inner in range(500)}})
    assert many.is_truncated
    assert sum(len(each.members) + 1 for each in many.seen.members.values()) <= MAX_FIELDS


def test_the_same_counts_come_from_parts_as_from_the_whole() -> None:
    documents = [
        {"a": number, "b": {str(bson.ObjectId()): number}, "c": [number, "x"]}
        for number in range(40)
    ]
    together = seen_in(documents[:10])
    together.add(seen_in(documents[10:]))
    assert observed_schema(together, NO_RULES, has_key=True) == schema_of(*documents)


def test_what_is_counted_survives_the_way_home() -> None:
    seen = seen_in([{"a": [{"b": 1}]}])
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(seen), type=FieldCounts) == seen


def test_words_of_people_do_not_pass_for_words_of_the_place() -> None:
    known = Schema(
        fields=(
            Field(
                name="gone",
                type=parse_type("INT32"),
                description="Ours.",
                tags=("pii",),
                properties={"mongodb.presence": "0.5", "owner": "ann"},
            ),
        )
    )
    (kept,) = merge_with_known(Schema(), known, whole=False).fields
    assert (kept.description, kept.tags, kept.properties) == (None, (), {"mongodb.presence": "0"})


def test_known_keys_keep_their_places_and_new_ones_follow() -> None:
    known = schema_of({"a": {"x": 1, "y": 1}, "b": 1})
    observed = schema_of({"c": 1, "b": "x", "a": {"z": 1, "y": 1}})
    assert [str(field) for field in merge_with_known(observed, known, whole=False).fields] == [
        "a STRUCT<x: INT32, y: INT32, z: INT32>",
        "b UNION<INT32, STRING>",
        "c INT32",
    ]
    assert [str(field) for field in merge_with_known(observed, known, whole=True).fields] == [
        "a STRUCT<y: INT32, z: INT32>",
        "b STRING",
        "c INT32",
    ]


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(lambda scan: {f"k{scan}_{n}": 1 for n in range(1500)}, id="keys"),
        pytest.param(
            lambda scan: {f"k{n}": {f"x{scan}_{m}": 1 for m in range(500)} for n in range(30)},
            id="keys inside",
        ),
    ],
)
def test_samples_of_ever_other_keys_add_no_more_than_anybody_names(
    document: Callable[[int], dict[str, Any]],
) -> None:
    first = schema_of(document(0))
    second = merge_with_known(schema_of(document(1)), first, whole=False)
    third = merge_with_known(schema_of(document(2)), second, whole=False)
    assert second.shape != first.shape
    assert third.shape == second.shape
    assert len(second.fields) <= MAX_KEYS
    assert str(second).count("INT32") <= MAX_FIELDS


scalars = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(), st.text(max_size=2))
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["x", "y", "z"]), inner, max_size=3)
    ),
    max_leaves=6,
)
documents = st.lists(st.dictionaries(st.sampled_from(["a", "b", "c"]), values), max_size=6)


@settings(max_examples=examples(50))
@given(documents, documents)
def test_a_second_sample_of_the_same_documents_changes_nothing(
    first: list[dict[str, Any]], second: list[dict[str, Any]]
) -> None:
    known = schema_of(*first, *second)
    for sample in (first, second):
        assert merge_with_known(schema_of(*sample), known, whole=False).full == known.full


types = st.lists(values, min_size=1, max_size=4).map(
    lambda some: parse_type(type_of(*some)) if some else NULL
)


@settings(max_examples=examples(50))
@given(types, types, types)
def test_a_union_does_not_depend_on_the_order_in_which_it_is_met(
    one: DataType, two: DataType, three: DataType
) -> None:
    def members(type: DataType) -> str:
        return "".join(sorted(type.text))

    assert members(unite_types((one, two, three))) == members(unite_types((three, two, one)))
    assert unite_types((one, two, one)) == unite_types((one, two))
    assert unite_types((unite_types((one, two)), two)) == unite_types((one, two))


@pytest.mark.parametrize(
    ("declared", "nullable"),
    [
        ({"bsonType": "int"}, False),
        ({"bsonType": ["int", "null"]}, True),
        ({"description": "of any type"}, True),
        ({"enum": [1, 2]}, False),
        ({"enum": [1, None]}, True),
    ],
)
@pytest.mark.parametrize("documents", [[], [{"a": 1}]])
def test_a_key_that_must_be_there_may_still_be_null(
    declared: dict[str, Any], nullable: bool, documents: list[dict[str, Any]]
) -> None:
    validator = {"$jsonSchema": {"required": ["a"], "properties": {"a": declared}}}
    (field,) = observed_schema(
        seen_in(documents), ValidatorRules.of(validator, enforced=True), has_key=True
    ).fields
    assert field.nullable is nullable


def days(count: int) -> dict[str, Any]:
    return {"m": {f"2024-{day // 28 + 1:02}-{day % 28 + 1:02}": 1 for day in range(count)}}


@pytest.mark.parametrize(
    ("before", "now"), [(days(10), days(30)), (days(30), days(10)), (days(30), days(30))]
)
def test_keys_that_turned_out_to_be_data_leave_no_notes(
    before: dict[str, Any], now: dict[str, Any]
) -> None:
    (field,) = merge_with_known(schema_of(now), schema_of(before), whole=False).fields
    assert field.type.text == "MAP<STRING, INT32>"
    assert [note.path for note in field.nested] == ["m{}"]


def test_objects_that_may_be_something_else_by_now_leave_no_notes_on_their_keys() -> None:
    before = schema_of({"v": {"a": 1}}, {"v": {"a": 1, "b": [{"c": 1}]}})
    (field,) = merge_with_known(schema_of({"v": "text"}), before, whole=False).fields
    assert field.type.text == "UNION<STRING, STRUCT<a: INT32, b: ARRAY<STRUCT<c: INT32>>>>"
    assert field.nested == ()


def test_notes_on_keys_that_a_sample_does_not_meet_stay() -> None:
    before = schema_of({"v": {"a": 1, "b.c": [{"d": 1}]}})
    (field,) = merge_with_known(schema_of({"v": {"a": 1}}), before, whole=False).fields
    assert [note.path for note in field.nested] == [
        "v.a",
        "v.`b.c`",
        "v.`b.c`[]",
        "v.`b.c`[].d",
    ]


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (
            [{"a": 1, "b": 2}, "text"],
            [{"b": 1, "a": 2}, "text"],
            "UNION<STRING, STRUCT<a: INT32, b: INT32>>",
        ),
        (
            [{"a": 1, "b": 2}],
            [{"b": 1, "a": 2}, "text"],
            "UNION<STRING, STRUCT<a: INT32, b: INT32>>",
        ),
        ([{"a": 1, "b": 2}, "text"], [{"b": 1, "a": 2}], "STRUCT<a: INT32, b: INT32>"),
        (
            [[{"a": 1, "b": 2}], "text"],
            [[{"b": 1, "a": 2}], "text"],
            "UNION<STRING, ARRAY<STRUCT<a: INT32, b: INT32>>>",
        ),
    ],
)
def test_keys_inside_a_union_keep_the_order_in_which_they_are_known(
    before: list[object], now: list[object], expected: str
) -> None:
    known = schema_of(*({"v": value} for value in before))
    (field,) = merge_with_known(
        schema_of(*({"v": value} for value in now)), known, whole=True
    ).fields
    assert field.type.text == expected
