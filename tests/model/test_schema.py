"""Schemas: their text form, their fingerprints and their JSON."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from examples import examples
from lumos.model.json_codec import from_json, from_plain, to_json, to_plain
from lumos.model.schema import Field, NestedField, Schema, fingerprint, parse_schema
from lumos.model.types import INT32, INT64, STRING, Decimal, SchemaSyntaxError

from .strategies import schemas

ORDERS = """
# Orders as the shop writes them.
id INT64 NOT NULL KEY
`customer name` STRING(40) COMMENT 'as it''s typed'

amount DECIMAL(10,2) DEFAULT '0.00'   # in euros
items ARRAY<
  STRUCT<sku: STRING NOT NULL, n: INT32>
> NOT NULL
note STRING
day DATE NOT NULL PARTITION
"""
FIELD = Field(
    name="amount",
    type=Decimal(10, 2),
    default="0",
    description="What was paid",
    tags=("pii", "money"),
    native_type="numeric",
    field_id=3,
    nested=(NestedField(path="amount.x", description="inner", tags=("a",), field_id=4),),
)


def test_a_schema_is_read_from_one_field_per_line() -> None:
    schema = parse_schema(ORDERS)
    assert [field.name for field in schema.fields] == [
        "id", "customer name", "amount", "items", "note", "day",
    ]  # fmt: skip
    assert schema.field("id") == Field(name="id", type=INT64, nullable=False, key=True)
    customer = schema.field("customer name")
    assert customer is not None
    assert customer.description == "as it's typed"
    assert schema.field("amount") == Field(name="amount", type=Decimal(10, 2), default="0.00")
    assert schema.field("day").partition  # type: ignore[union-attr]
    assert schema.field("missing") is None


def test_a_schema_prints_the_canonical_form() -> None:
    assert str(parse_schema(ORDERS)).splitlines() == [
        "id INT64 NOT NULL KEY",
        "`customer name` STRING(40) COMMENT 'as it''s typed'",
        "amount DECIMAL(10,2) DEFAULT '0.00'",
        "items ARRAY<STRUCT<sku: STRING NOT NULL, n: INT32>> NOT NULL",
        "note STRING",
        "day DATE NOT NULL PARTITION",
    ]


@settings(max_examples=examples(300))
@given(schemas())
def test_every_schema_comes_back_from_its_text(schema: Schema) -> None:
    assert parse_schema(str(schema)) == schema


@settings(max_examples=examples(300))
@given(schemas())
def test_every_schema_comes_back_from_its_json(schema: Schema) -> None:
    assert from_json(to_json(schema), Schema) == schema
    assert from_plain(to_plain(schema), Schema) == schema


def test_json_carries_types_as_text_and_leaves_out_what_is_not_said() -> None:
    schema = Schema(fields=(Field(name="id", type=INT64),))
    assert to_json(schema) == b'{"fields":[{"name":"id","type":"INT64"}]}'
    assert from_json(to_json(Schema(fields=(FIELD,)), indent=2), Schema).fields == (FIELD,)


def test_json_with_a_type_that_is_no_text_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="expected the text of a type"):
        from_plain({"fields": [{"name": "id", "type": 3}]}, Schema)


@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        ("id INT64\nid STRING", 2, 1, "the field 'id' is listed twice"),
        ("id INT64 NOT NULL NOT NULL", 1, 19, "the same clause is given twice"),
        ("id INT64 UNIQUE", 1, 10, "unexpected 'UNIQUE'"),
        ("id", 1, 3, "expected a type"),
        ("id INT64\nname STRNG", 2, 6, "no type named 'STRNG'. Did you mean 'STRING'?"),
        ("id INT64 DEFAULT 0", 1, 18, "expected text in 'single quotes'"),
        ("a b INT64", 1, 3, "no type named 'b'"),
        ("a STRING\n(40)", 2, 1, "expected a name"),
        ("id ARRAY<INT64\nname STRING", 1, 9, "this '<' is not closed"),
    ],
)
def test_an_error_in_a_schema_says_where(text: str, line: int, column: int, problem: str) -> None:
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_schema(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert problem in caught.value.problem


@pytest.mark.parametrize("type", ["STRING", "DECIMAL", "TIMESTAMP", "TIME", "UNKNOWN", "DATE"])
def test_a_type_without_brackets_ends_with_its_line(type: str) -> None:
    schema = parse_schema(f"a {type}\nb {type} # c {type}\nd {type}")
    assert [field.name for field in schema.fields] == ["a", "b", "d"]


def test_names_that_differ_only_in_case_are_kept_apart_and_flagged() -> None:
    schema = parse_schema("Id INT64\nname STRING\nid STRING\nSTRASSE STRING\n`straße` STRING")
    assert len(schema.fields) == 5
    assert schema.names_that_differ_only_in_case() == (("Id", "id"), ("STRASSE", "straße"))


@pytest.mark.parametrize(
    ("changes", "shape_changes", "full_changes"),
    [
        pytest.param({"name": "Amount"}, True, True, id="name"),
        pytest.param({"type": Decimal(12, 2)}, True, True, id="type"),
        pytest.param({"nullable": False}, True, True, id="nullability"),
        pytest.param({"key": True}, True, True, id="key"),
        pytest.param({"partition": True}, True, True, id="partitioning"),
        pytest.param({"default": None}, False, True, id="default"),
        pytest.param({"default": ""}, False, True, id="empty default"),
        pytest.param({"description": "Other words"}, False, True, id="description"),
        pytest.param({"tags": ("pii",)}, False, True, id="tags"),
        pytest.param({"tags": ("money", "pii")}, False, False, id="order of tags"),
        pytest.param({"native_type": "decimal"}, False, False, id="native type"),
        pytest.param({"field_id": 9}, False, False, id="field id"),
        pytest.param({"nested": ()}, False, True, id="nested fields"),
        pytest.param(
            {"nested": (NestedField(path="amount.x", description="other", tags=("a",)),)},
            False, True, id="nested description",
        ),
        pytest.param(
            {"nested": (NestedField(path="amount.y", description="inner", tags=("a",)),)},
            False, True, id="nested path",
        ),
        pytest.param(
            {"nested": (NestedField(path="amount.x", description="inner", tags=("b",)),)},
            False, True, id="nested tags",
        ),
        pytest.param(
            {"nested": (NestedField(path="amount.x", default="inner", tags=("a",)),)},
            False, True, id="nested default",
        ),
        pytest.param(
            {"nested": (NestedField(
                path="amount.x", description="inner", tags=("a",), native_type="t", field_id=7),)},
            False, False, id="nested native type and field id",
        ),
    ],
)  # fmt: skip
def test_a_fingerprint_covers(
    changes: dict[str, Any], shape_changes: bool, full_changes: bool
) -> None:
    before = Schema(fields=(FIELD,))
    after = Schema(fields=(msgspec.structs.replace(FIELD, **changes),))
    assert (before.shape != after.shape) is shape_changes
    assert (before.full != after.full) is full_changes


def test_both_fingerprints_cover_the_order_of_fields() -> None:
    before, after = parse_schema("a INT32\nb INT32"), parse_schema("b INT32\na INT32")
    assert before.shape != after.shape
    assert before.full != after.full


def test_a_tag_is_not_mistaken_for_words() -> None:
    tagged = Schema(fields=(Field(name="a", type=INT32, tags=("x",)),))
    worded = Schema(fields=(Field(name="a", type=INT32, description="x"),))
    defaulted = Schema(fields=(Field(name="a", type=INT32, default="x"),))
    assert len({tagged.full, worded.full, defaulted.full}) == 3


# Stores and manifests everywhere hold these values: a new hash would make every dataset change.
def test_fingerprints_stay_what_they_are_for_ever() -> None:
    schema = parse_schema(ORDERS)
    assert schema.shape == "e1c063bec40ca6a668bada64ac70ea68"
    assert schema.full == "8ec28cf229556fc1b1efeb9868bff375"
    assert Schema(fields=(FIELD,)).full == "a54c266d2fdbf9f7804d70611f4c57eb"
    assert Schema().shape == Schema().full == "cae66941d9efbd404e4d88758ea67670"


def test_text_with_lone_surrogates_has_a_fingerprint() -> None:
    assert fingerprint(["a\ud800"]) != fingerprint(["a"])
    assert Schema(fields=(Field(name="\udcff", type=STRING),)).shape
