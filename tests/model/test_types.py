"""The type algebra and its canonical text."""

import copy
import pickle
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from examples import examples
from lumos.errors import LumosError
from lumos.model.types import (
    BINARY,
    INT8,
    INT32,
    INT64,
    MAX_DEPTH,
    SIMPLE,
    STRING,
    UNKNOWN,
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

from .strategies import TYPES


def structure(value: Any) -> Any:
    """All that a type is made of, so that two types with one text would show."""
    if isinstance(value, DataType | Member):
        names = vars(type(value))["__match_args__"]
        parts = [structure(getattr(value, name)) for name in names]
        return (type(value).__name__, *parts)
    return tuple(map(structure, value)) if isinstance(value, tuple) else value


@pytest.mark.parametrize("examples", [200, pytest.param(10_000, marks=pytest.mark.slow)])
def test_every_type_comes_back_from_its_text(examples: int) -> None:
    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(TYPES)
    def comes_back(type: DataType) -> None:
        parsed = parse_type(type.text)
        assert parsed == type
        assert structure(parsed) == structure(type)

    comes_back()


@pytest.mark.parametrize(
    ("text", "type"),
    [
        *((kind, simple) for kind, simple in SIMPLE.items()),
        ("DECIMAL(10,2)", Decimal(10, 2)),
        ("DECIMAL(10,-2)", Decimal(10, -2)),
        ("DECIMAL", Decimal()),
        ("STRING", STRING),
        ("STRING(40)", String(40)),
        ("BINARY", BINARY),
        ("BINARY(16)", Binary(16)),
        ("TIME(us)", Time("us")),
        ("TIMESTAMP(s)", Timestamp("s")),
        ("TIMESTAMPTZ(ns)", Timestamp("ns", zoned=True)),
        ("DURATION(ms)", Duration("ms")),
        ("ENUM('a','b')", Enum(["a", "b"])),
        ("ENUM('it''s')", Enum(["it's"])),
        ("ENUM()", Enum([])),
        ("ARRAY<INT64 NOT NULL>", Array(INT64, element_nullable=False)),
        ("ARRAY<ARRAY<STRING>>", Array(Array(STRING))),
        ("MAP<STRING, INT64>", Map(STRING, INT64)),
        ("MAP<STRING, INT64 NOT NULL>", Map(STRING, INT64, value_nullable=False)),
        (
            "STRUCT<page_url: STRING, n: INT64 NOT NULL>",
            Struct([Member("page_url", STRING), Member("n", INT64, nullable=False)]),
        ),
        ("STRUCT<`a.b`: INT8>", Struct([Member("a.b", INT8)])),
        ("STRUCT<`back``tick`: INT8>", Struct([Member("back`tick", INT8)])),
        ("STRUCT<>", Struct([])),
        ("UNION<INT64, STRING>", Union([INT64, STRING])),
        ("UNKNOWN('geometry')", Unknown("geometry")),
        ("UNKNOWN('recursive:Node')", Unknown("recursive:Node")),
        ("UNKNOWN", UNKNOWN),
    ],
)  # fmt: skip
def test_a_type_has_one_canonical_text(text: str, type: DataType) -> None:
    assert str(type) == text
    assert parse_type(text) == type
    assert structure(parse_type(text)) == structure(type)


@pytest.mark.parametrize(
    ("loose", "canonical"),
    [
        ("int64", "INT64"),
        ("  Decimal( 10 , 2 )  ", "DECIMAL(10,2)"),
        ("DECIMAL(10)", "DECIMAL(10,0)"),
        ("TIMESTAMP", "TIMESTAMP(us)"),
        ("timestamptz(NS)", "TIMESTAMPTZ(ns)"),
        ("TIME", "TIME(us)"),
        ("DURATION", "DURATION(us)"),
        ("UNKNOWN('')", "UNKNOWN"),
        ("array<int64 not  null>", "ARRAY<INT64 NOT NULL>"),
        ("MAP<string,int64>", "MAP<STRING, INT64>"),
        ("struct<`a`:int8,b:int8>", "STRUCT<a: INT8, b: INT8>"),
        ("STRUCT<\n  a: INT8, # the first\n  b: STRING\n>\n", "STRUCT<a: INT8, b: STRING>"),
    ],
)
def test_case_and_spacing_do_not_matter(loose: str, canonical: str) -> None:
    assert parse_type(loose).text == canonical


def test_types_are_equal_and_hash_alike_when_their_texts_are() -> None:
    assert Array(INT64) == parse_type("ARRAY<INT64>")
    assert len({Array(INT64), parse_type("ARRAY<INT64>"), Array(INT32)}) == 2
    assert INT64 != "INT64"


@pytest.mark.parametrize("value", [INT64, Decimal(10, 2), Struct([]), Member("a", INT64)])
def test_types_cannot_be_changed(value: Any) -> None:
    with pytest.raises(AttributeError, match="is frozen"):
        value.text = "STRING"
    with pytest.raises(AttributeError, match="is frozen"):
        del value.text


@settings(max_examples=examples(200))
@given(TYPES)
def test_types_survive_pickling_and_copying(type: DataType) -> None:
    assert structure(pickle.loads(pickle.dumps(type))) == structure(type)
    assert copy.deepcopy(type) is type


def test_a_member_survives_pickling() -> None:
    member = Member("a b", INT64, nullable=False)
    assert structure(pickle.loads(pickle.dumps(member))) == structure(member)


@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        ("", 1, 1, "expected a type"),
        ("INT", 1, 1, "no type named 'INT'. Did you mean 'INT32'?"),
        ("varchar(10)", 1, 1, "no type named 'varchar'. Did you mean 'STRING'?"),
        ("STRNG", 1, 1, "no type named 'STRNG'. Did you mean 'STRING'?"),
        ("quux", 1, 1, "no type named 'quux'."),
        ("ARRAY<INT64", 1, 12, "expected '>', found the end of the line"),
        ("ARRAY", 1, 6, "expected '<', found the end of the line"),
        ("STRUCT<a INT64>", 1, 10, "expected ':', found 'INT64'"),
        ("STRUCT<1a: INT64>", 1, 8, "expected a name (put unusual names in `backticks`)"),
        ("STRUCT<\n  a: INT8,\n  b: INTT8\n>", 3, 6, "no type named 'INTT8'. Did you mean 'INT8'?"),
        ("DECIMAL(x)", 1, 9, "expected a whole number"),
        ("DECIMAL(1,2,3)", 1, 13, "too many numbers"),
        ("DECIMAL(0)", 1, 1, "DECIMAL needs a precision of at least 1, not 0"),
        ("STRING(0)", 1, 1, "STRING needs a length of at least 1, not 0"),
        ("TIME(fortnights)", 1, 6, "'fortnights' is not a unit of time; known: s, ms, us, ns"),
        ("ENUM(a)", 1, 6, "expected text in 'single quotes'"),
        ("UNKNOWN('a','b')", 1, 17, "UNKNOWN takes one name"),
        ("INT64 INT64", 1, 7, "unexpected 'INT64' after the type"),
        ("INT64;", 1, 6, "unexpected ';'"),
    ],
)  # fmt: skip
def test_an_error_says_where_and_what_would_be_right(
    text: str, line: int, column: int, problem: str
) -> None:
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_type(text)
    error = caught.value
    assert (error.line, error.column, error.problem) == (line, column, problem)
    assert isinstance(error, LumosError)


def test_the_deepest_type_is_read_and_printed() -> None:
    text = "ARRAY<" * (MAX_DEPTH - 1) + "INT64" + ">" * (MAX_DEPTH - 1)
    assert parse_type(text).text == text
    assert parse_type(text).depth == MAX_DEPTH


@pytest.mark.parametrize("levels", [MAX_DEPTH, 5_000])
@pytest.mark.parametrize("opening", ["ARRAY<", "MAP<STRING, ", "STRUCT<a: ", "UNION<"])
def test_nesting_too_deep_is_an_error_and_no_crash(opening: str, levels: int) -> None:
    with pytest.raises(SchemaSyntaxError, match="nests deeper than 100 levels"):
        parse_type(opening * levels + "INT64" + ">" * levels)


def test_a_type_built_too_deep_is_refused() -> None:
    deepest = parse_type("ARRAY<" * (MAX_DEPTH - 1) + "INT64" + ">" * (MAX_DEPTH - 1))
    with pytest.raises(ValueError, match="nests deeper than 100 levels"):
        Array(deepest)


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda: Decimal(0), "precision of at least 1"),
        (lambda: Decimal(None, 2), "unbounded DECIMAL has no scale"),
        (lambda: String(0), "length of at least 1"),
        (lambda: Binary(-1), "length of at least 1"),
        (lambda: Time("minutes"), "not a unit of time"),  # type: ignore[arg-type]
    ],
)
def test_a_type_with_impossible_numbers_is_refused(build: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        build()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("INT64", "INT64"),
        ("DECIMAL(10,2)", "DECIMAL"),
        ("TIMESTAMP(us)", "TIMESTAMP"),
        ("TIMESTAMPTZ(us)", "TIMESTAMPTZ"),
        ("STRUCT<a: INT8>", "STRUCT"),
        ("UNKNOWN('x')", "UNKNOWN"),
    ],
)
def test_the_kind_is_how_the_text_begins(text: str, kind: str) -> None:
    assert kind_of(parse_type(text)) == kind
