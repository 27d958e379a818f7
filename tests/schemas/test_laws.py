"""What holds for all schemas: nothing from equals, there and back, order, every pair of types."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lumos.errors import MisuseError
from lumos.model.change import AnySchemaChange, Reordered, Verdict
from lumos.model.json_codec import from_json, to_json
from lumos.model.schema import Field, Schema, parse_schema
from lumos.model.types import (
    INT32,
    INT64,
    MAX_DEPTH,
    SIMPLE,
    STRING,
    Array,
    Binary,
    DataType,
    Decimal,
    Duration,
    Enum,
    Map,
    Member,
    SchemaSyntaxError,
    String,
    Struct,
    Time,
    Timestamp,
    Union,
    Unknown,
    kind_of,
    parse_type,
)
from lumos.schemas.apply import apply
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import classify
from lumos.schemas.findings import change_fingerprint
from lumos.schemas.renames import suggest_renames
from lumos.schemas.rules import RULES
from lumos.schemas.type_rules import select_type_rule

from .strategies import SCHEMAS, pairs_of_schemas

FORMATS = (None, "parquet", "orc", "avro", "iceberg", "delta", "csv", "json", "postgres")
OF_EVERY_KIND: tuple[DataType, ...] = (
    *SIMPLE.values(),
    Decimal(9, 2),
    String(),
    Binary(),
    Time(),
    Timestamp(),
    Timestamp(zoned=True),
    Duration(),
    Enum(["x"]),
    Array(INT64),
    Map(STRING, INT64),
    Struct([Member("x", INT64)]),
    Union([INT64, STRING]),
    Unknown("geometry"),
)


@settings(max_examples=examples(150))
@given(SCHEMAS)
def test_a_schema_does_not_differ_from_itself(schema: Schema) -> None:
    assert compare(schema, schema) == ()
    assert compare(schema, from_json(to_json(schema), Schema)) == ()


@settings(max_examples=examples(300))
@given(pairs_of_schemas())
def test_applying_what_differs_gives_the_other_schema_also_from_json(
    pair: tuple[Schema, Schema],
) -> None:
    before, after = pair
    changes = compare(before, after)
    assert (changes == ()) is (before.full == after.full)
    assert apply(changes, before).full == after.full
    assert from_json(to_json(changes), tuple[AnySchemaChange, ...]) == changes


@settings(max_examples=examples(150))
@given(pairs_of_schemas(), st.sampled_from(FORMATS), st.data())
def test_verdicts_do_not_depend_on_the_order_of_fields_except_that_of_positions(
    pair: tuple[Schema, Schema], format: str | None, data: st.DataObject
) -> None:
    def verdicts(before: Schema, after: Schema) -> set[tuple[object, ...]]:
        return {
            (type(finding.change), finding.change.path, finding.rule, finding.consumer,
             finding.storage, finding.flags, finding.breaks_if, change_fingerprint("u", finding))
            for finding in classify(compare(before, after), format=format)
            if not isinstance(finding.change, Reordered)
        }  # fmt: skip

    shuffled = [Schema(fields=tuple(data.draw(st.permutations(schema.fields)))) for schema in pair]
    assert verdicts(*shuffled) == verdicts(*pair)


@settings(max_examples=examples(150))
@given(pairs_of_schemas())
def test_a_rename_is_suggested_only_between_a_removed_and_an_added_sibling(
    pair: tuple[Schema, Schema],
) -> None:
    changes = compare(*pair)
    renames = suggest_renames(changes)
    removed = {change.path for change in changes if type(change).__name__ == "FieldRemoved"}
    added = {change.path for change in changes if type(change).__name__ == "FieldAdded"}
    assert {rename.before for rename in renames} <= removed
    assert {rename.after for rename in renames} <= added
    assert len({rename.before for rename in renames}) == len(renames)
    assert len({rename.after for rename in renames}) == len(renames)


def test_every_kind_of_type_is_tried_here() -> None:
    from model.strategies import TYPES

    tried = {kind_of(type) for type in OF_EVERY_KIND}
    assert len(tried) == len(OF_EVERY_KIND)

    @settings(max_examples=examples(150), database=None)
    @given(TYPES)
    def known(type: DataType) -> None:
        assert kind_of(type) in tried

    known()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(before, after, id=f"{kind_of(before)} to {kind_of(after)}")
        for before, after in product(OF_EVERY_KIND, repeat=2)
    ],
)
def test_every_ordered_pair_of_kinds_has_an_answer(before: DataType, after: DataType) -> None:
    changes = compare(
        Schema(fields=(Field(name="a", type=before),)),
        Schema(fields=(Field(name="a", type=after),)),
    )
    if before == after:
        assert changes == ()
        return
    for format in FORMATS:
        (finding,) = classify(changes, format=format)
        assert finding.rule in RULES
        assert isinstance(finding.storage, Verdict)
        judged = select_type_rule(before, after, is_map_key=True)
        assert judged.rule in {"map-key", "unknown-type"}
    if finding.rule == "unrelated-types":
        assert finding.consumer is Verdict.BREAKING


def nested(inner: DataType, levels: int, *, structs_in: int = 2) -> DataType:
    """A type inside arrays and structs, these at every level or only at every second."""
    for level in range(levels):
        is_struct = level % structs_in == 0
        inner = Struct([Member("x", inner)]) if is_struct else Array(inner)
    return inner


@pytest.mark.parametrize("structs_in", [1, 2, MAX_DEPTH])
def test_the_deepest_schemas_are_compared_and_changed(structs_in: int) -> None:
    before, after = (
        Schema(fields=(Field(name="a", type=nested(type, MAX_DEPTH - 1, structs_in=structs_in)),))
        for type in (INT32, INT64)
    )
    (finding,) = classify(compare(before, after))
    assert finding.rule == "integer-widened"
    assert len(finding.change.path) > MAX_DEPTH
    assert apply((finding.change,), before) == after
    assert parse_schema(str(after)) == after


@pytest.mark.parametrize("levels", [MAX_DEPTH, 5_000])
@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("ARRAY<", ">"),
        ("STRUCT<x: ", ">"),
        ("MAP<STRING, ", ">"),
        ("MAP<", ", INT8>"),
        ("UNION<", ">"),
    ],
)
def test_deeper_text_is_an_error_with_its_place(opening: str, closing: str, levels: int) -> None:
    text = opening * levels + "INT64" + closing * levels
    for read in (lambda: parse_type(text), lambda: parse_schema(f"a {text}")):
        with pytest.raises(SchemaSyntaxError, match=f"nests deeper than {MAX_DEPTH} levels"):
            read()


def test_a_deeper_type_cannot_even_be_made() -> None:
    with pytest.raises(ValueError, match="nests deeper"):
        nested(INT64, 5_000)


def test_very_wide_schemas_are_compared() -> None:
    names = [f"c{number}" for number in range(20_000)]
    before = Schema(fields=tuple(Field(name=name, type=INT32) for name in names))
    after = Schema(fields=tuple(Field(name=name, type=INT64) for name in reversed(names)))
    assert len(classify(compare(before, after))) == 20_001


def test_a_schema_with_a_field_twice_is_refused() -> None:
    twice = Schema(fields=(Field(name="a b", type=INT64), Field(name="a b", type=STRING)))
    with pytest.raises(MisuseError, match="`a b` is defined twice"):
        compare(twice, parse_schema("x INT64"))


def test_changes_of_another_schema_are_refused() -> None:
    changes = compare(parse_schema("a INT64\nb STRING"), parse_schema("b STRING\na INT64"))
    with pytest.raises(MisuseError, match="do not fit this schema"):
        apply(changes, parse_schema("a INT64\nc STRING"))
