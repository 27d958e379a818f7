"""The verdict on one place where a changed value is used."""

import pytest

from lumos.impact.rules.values import rank
from lumos.impact.rules.verdicts import Decision, decide, passed_on
from lumos.model.change import Verdict
from lumos.model.meeting import Act, Kind, Meeting, Place, Value
from lumos.model.text import parse_type

BREAKING, COMPATIBLE, UNDETERMINED = (
    Verdict.BREAKING, Verdict.COMPATIBLE, Verdict.UNDETERMINED,
)  # fmt: skip


def value(text: str) -> Value:
    """`STRING NOT NULL` or `STRING`, which may be null."""
    type, _, rest = text.partition(" NOT NULL")
    del rest
    return Value(type=parse_type(type), nullable=" NOT NULL" not in text)


def meeting(
    act: Act, before: str, after: str, *, partner: str | None = None, place: Place = Place.FILTER,
    accepts: tuple[Kind, ...] | None = None, literal: bool = False, text: str | None = None,
) -> Meeting:  # fmt: skip
    met = None if partner is None else value(partner)
    return Meeting(
        place=place, act=act, value="x", before=value(before), after=value(after), partner=met,
        partner_before=met, accepts=accepts, is_literal=literal, partner_text=text,
    )  # fmt: skip


def worst(found: Meeting) -> Decision:
    return min(decide(found), key=lambda each: rank(each.verdict))


@pytest.mark.parametrize(
    ("before", "after", "partner", "place", "verdict"),
    [
        ("STRING", "INT64", "STRING", Place.JOIN, BREAKING),
        ("STRING", "INT64", "INT64", Place.JOIN, COMPATIBLE),
        ("STRING", "INT64", "UNKNOWN", Place.JOIN, UNDETERMINED),
        ("INT32", "INT64", "INT32", Place.JOIN, COMPATIBLE),
        ("INT32", "INT64", "UNKNOWN", Place.JOIN, COMPATIBLE),
        ("INT32", "FLOAT64", "INT32", Place.JOIN, BREAKING),
        ("INT32", "FLOAT64", "INT32", Place.FILTER, COMPATIBLE),
        ("INT32", "FLOAT64", "FLOAT64", Place.JOIN, COMPATIBLE),
        ("INT64", "INT32", "INT64", Place.FILTER, BREAKING),
        ("INT64", "STRING", "INT64", Place.FILTER, BREAKING),
        ("DATE", "TIMESTAMP(us)", "DATE", Place.FILTER, BREAKING),
        ("DATE", "TIMESTAMP(us)", "STRING", Place.FILTER, BREAKING),
        ("DATE", "TIMESTAMP(us)", "TIMESTAMP(us)", Place.FILTER, COMPATIBLE),
        ("DATE", "STRING", "STRING", Place.FILTER, BREAKING),
        ("STRING(9)", "STRING(4)", "STRING", Place.FILTER, BREAKING),
        ("STRING(4)", "STRING(9)", "STRING", Place.FILTER, COMPATIBLE),
        ("BOOLEAN", "INT32", "BOOLEAN", Place.FILTER, BREAKING),
        ("ENUM('a')", "ENUM('a','b')", "STRING", Place.FILTER, BREAKING),
        ("STRING", "UNKNOWN", "STRING", Place.FILTER, UNDETERMINED),
    ],
)
def test_comparisons(before: str, after: str, partner: str, place: Place, verdict: Verdict) -> None:
    found = worst(meeting(Act.COMPARED, before, after, partner=partner, place=place,
                          literal=partner == "STRING"))  # fmt: skip
    assert found.verdict is verdict


def test_a_comparison_says_what_it_expects_and_where() -> None:
    found = worst(meeting(Act.COMPARED, "STRING", "INT64", partner="STRING", place=Place.JOIN))
    assert found == Decision(BREAKING, "expects STRING x in JOIN", fails=True)


def test_a_symbol_that_is_gone_is_missed_where_it_is_written_out() -> None:
    named = meeting(Act.COMPARED, "ENUM('a','b')", "ENUM('a')", partner="STRING", literal=True,
                    text="'a', 'b'")  # fmt: skip
    unnamed = meeting(Act.COMPARED, "ENUM('a','b')", "ENUM('a')", partner="STRING", literal=True,
                      text="'a'")  # fmt: skip
    assert worst(named).verdict is BREAKING
    assert worst(unnamed).verdict is COMPATIBLE


def test_two_sides_that_change_alike_still_fit() -> None:
    found = meeting(Act.COMPARED, "STRING", "INT64", partner="INT64", place=Place.JOIN)
    alike = Meeting(**{field: getattr(found, field) for field in found.__struct_fields__}
                    | {"partner_before": value("STRING")})  # fmt: skip
    assert worst(alike).verdict is COMPATIBLE


@pytest.mark.parametrize(
    ("before", "after", "is_ordering", "verdict"),
    [
        ("STRING", "INT64", True, BREAKING),
        ("INT64", "INT32", True, COMPATIBLE),
        ("DATE", "TIMESTAMP(us)", True, COMPATIBLE),
        ("TIMESTAMP(us)", "DATE", False, BREAKING),
        ("TIMESTAMP(us)", "TIMESTAMPTZ(us)", False, UNDETERMINED),
        ("ENUM('a')", "ENUM('a','b')", False, COMPATIBLE),
        ("DECIMAL(9,2)", "DECIMAL", False, COMPATIBLE),
    ],
)
def test_two_sides_that_change_alike_must_still_compare_alike(
    before: str, after: str, is_ordering: bool, verdict: Verdict
) -> None:
    found = Meeting(
        place=Place.FILTER, act=Act.COMPARED, value="x", before=value(before), after=value(after),
        partner=value(after), partner_before=value(before), is_ordering=is_ordering,
    )  # fmt: skip
    assert worst(found).verdict is verdict


@pytest.mark.parametrize(
    ("before", "after", "to", "verdict", "text"),
    [
        ("STRING", "INT64", "STRING", COMPATIBLE, "casts x to STRING anyway"),
        ("INT64", "STRING", "INT64", COMPATIBLE, "casts x to INT64 anyway"),
        ("STRING", "INT64", "DATE", BREAKING, "casts x to DATE, which INT64 does not allow"),
        ("DATE", "TIMESTAMP(us)", "DATE", COMPATIBLE, "casts x to DATE anyway"),
        ("STRING", "ARRAY<STRING>", "STRING", BREAKING,
         "casts x to STRING, which ARRAY<STRING> does not allow"),
        ("INT32", "INT64", "INT32", COMPATIBLE, "casts x to INT32 anyway"),
        ("STRING", "UNKNOWN", "STRING", COMPATIBLE, "casts x to STRING anyway"),
    ],
)  # fmt: skip
def test_casts(before: str, after: str, to: str, verdict: Verdict, text: str) -> None:
    found = worst(meeting(Act.CAST, before, after, partner=to))
    assert (found.verdict, found.text) == (verdict, text)


@pytest.mark.parametrize(
    ("before", "after", "accepts", "verdict"),
    [
        ("STRING", "INT64", (Kind.TEXT,), BREAKING),
        ("INT32", "INT64", (Kind.NUMBER,), COMPATIBLE),
        ("INT32", "FLOAT64", (Kind.NUMBER,), COMPATIBLE),
        ("INT32", "FLOAT64", (Kind.INTEGER,), BREAKING),
        ("INT32", "FLOAT64", None, UNDETERMINED),
        ("INT32", "INT64", None, UNDETERMINED),
        ("STRING(4)", "STRING", None, COMPATIBLE),
        ("INT32", "INT64", (Kind.INTEGER,), COMPATIBLE),
        ("INT32", "INT64", (Kind.SHORT_INTEGER,), BREAKING),
        ("INT16", "INT32", (Kind.SHORT_INTEGER,), COMPATIBLE),
        ("INT64", "FLOAT64", (Kind.SHORT_INTEGER,), BREAKING),
        ("INT32", "FLOAT64", (Kind.EXACT,), BREAKING),
        ("INT32", "DECIMAL(12,2)", (Kind.EXACT,), COMPATIBLE),
        ("DATE", "TIMESTAMP(us)", (Kind.DATE,), BREAKING),
        ("INT32", "DECIMAL(12,0)", (Kind.INTEGER,), BREAKING),
        ("INT16", "INT32", (Kind.INTEGER,), COMPATIBLE),
        ("STRING", "INT64", None, UNDETERMINED),
        ("DATE", "TIMESTAMP(us)", (Kind.TIME,), COMPATIBLE),
        ("TIMESTAMP(us)", "TIMESTAMPTZ(us)", (Kind.TIME,), BREAKING),
        ("STRING", "INT64", (Kind.ANY,), BREAKING),
        ("STRING", "UNKNOWN", (Kind.TEXT,), UNDETERMINED),
    ],
)
def test_arguments_of_functions(
    before: str, after: str, accepts: tuple[Kind, ...] | None, verdict: Verdict
) -> None:
    found = worst(meeting(Act.CALLED, before, after, accepts=accepts, text="F"))
    assert found.verdict is verdict


@pytest.mark.parametrize(
    ("act", "before", "after", "partner", "verdict"),
    [
        (Act.COUNTED, "STRING", "INT64", None, COMPATIBLE),
        (Act.GROUPED, "INT32", "FLOAT64", None, BREAKING),
        (Act.GROUPED, "INT32", "INT64", None, COMPATIBLE),
        (Act.GROUPED, "DATE", "TIMESTAMP(us)", None, BREAKING),
        (Act.GROUPED, "STRING", "INT64", None, COMPATIBLE),
        (Act.GROUPED, "STRING", "DECIMAL(20,0)", None, COMPATIBLE),
        (Act.GROUPED, "STRING", "DECIMAL(20,2)", None, UNDETERMINED),
        (Act.GROUPED, "STRING", "UUID", None, COMPATIBLE),
        (Act.GROUPED, "STRING", "TIMESTAMP(us)", None, UNDETERMINED),
        (Act.GROUPED, "STRING", "BOOLEAN", None, UNDETERMINED),
        (Act.GROUPED, "INT64", "STRING", None, COMPATIBLE),
        (Act.GROUPED, "INT64", "STRING(4)", None, UNDETERMINED),
        (Act.GROUPED, "FLOAT64", "STRING", None, UNDETERMINED),
        (Act.GROUPED, "TIMESTAMPTZ(us)", "STRING", None, UNDETERMINED),
        (Act.GROUPED, "INT64", "INT32", None, COMPATIBLE),
        (Act.GROUPED, "INT64", "FLOAT64", None, BREAKING),
        (Act.GROUPED, "FLOAT64", "INT64", None, BREAKING),
        (Act.GROUPED, "FLOAT64", "FLOAT32", None, BREAKING),
        (Act.GROUPED, "DECIMAL(10,2)", "DECIMAL(9,2)", None, COMPATIBLE),
        (Act.GROUPED, "DECIMAL(10,2)", "DECIMAL(10,1)", None, BREAKING),
        (Act.GROUPED, "DECIMAL(10,2)", "FLOAT64", None, COMPATIBLE),
        (Act.GROUPED, "DECIMAL(18,2)", "FLOAT64", None, BREAKING),
        (Act.GROUPED, "BOOLEAN", "INT32", None, COMPATIBLE),
        (Act.GROUPED, "INT32", "BOOLEAN", None, BREAKING),
        (Act.GROUPED, "TIMESTAMP(us)", "DATE", None, BREAKING),
        (Act.GROUPED, "TIMESTAMP(us)", "TIMESTAMPTZ(us)", None, UNDETERMINED),
        (Act.GROUPED, "TIMESTAMP(us)", "TIMESTAMP(ms)", None, BREAKING),
        (Act.GROUPED, "ARRAY<STRING>", "ARRAY<INT64>", None, COMPATIBLE),
        (
            Act.GROUPED,
            "STRUCT<a: STRING, b: INT64>",
            "STRUCT<a: INT64, b: INT64>",
            None,
            COMPATIBLE,
        ),
        (Act.GROUPED, "STRUCT<a: TIMESTAMP(us)>", "STRUCT<a: DATE>", None, BREAKING),
        (Act.GROUPED, "STRING", "JSON", None, UNDETERMINED),
        (Act.GROUPED, "STRING", "ARRAY<STRING>", None, UNDETERMINED),
        (Act.SORTED, "INT64", "INT32", None, COMPATIBLE),
        (Act.SORTED, "INT64", "FLOAT64", None, BREAKING),
        (Act.SORTED, "DATE", "STRING", None, BREAKING),
        (Act.HANDED_ON, "STRING", "INT64", None, COMPATIBLE),
        (Act.ENCODED, "INT32", "INT64", None, COMPATIBLE),
        (Act.ENCODED, "STRING", "INT64", None, BREAKING),
        (Act.ENCODED, "INT32", "DECIMAL(12,0)", None, BREAKING),
        (Act.ENCODED, "STRUCT<a: INT32>", "STRUCT<a: FLOAT64>", None, BREAKING),
        (Act.ENCODED, "STRUCT<a: INT32>", "STRUCT<a: INT64>", None, COMPATIBLE),
        (Act.HASHED, "STRING", "INT64", None, BREAKING),
        (Act.HASHED, "INT32", "INT64", None, UNDETERMINED),
        (Act.HASHED, "STRING(4)", "STRING", None, COMPATIBLE),
        (Act.SPELLED, "FLOAT32", "FLOAT64", None, BREAKING),
        (Act.SORTED, "INT32", "FLOAT64", None, COMPATIBLE),
        (Act.SORTED, "STRING", "INT64", None, BREAKING),
        (Act.COMBINED, "STRING", "INT64", "STRING", BREAKING),
        (Act.COMBINED, "INT32", "INT64", "INT32", COMPATIBLE),
        (Act.COMBINED, "STRING", "INT64", "UNKNOWN", UNDETERMINED),
        (Act.CALCULATED, "INT32", "INT64", "INT32", COMPATIBLE),
        (Act.CALCULATED, "INT32", "STRING", "INT32", BREAKING),
        (Act.CALCULATED, "DATE", "TIMESTAMP(us)", "INT32", BREAKING),
        (Act.CALCULATED, "DATE", "TIMESTAMP(us)", "INTERVAL", COMPATIBLE),
        (Act.SPELLED, "INT32", "STRING", None, COMPATIBLE),
        (Act.SPELLED, "STRING", "INT64", None, COMPATIBLE),
        (Act.SPELLED, "STRING", "ARRAY<STRING>", None, BREAKING),
        (Act.STORED, "INT32", "INT64", "INT32", BREAKING),
        (Act.STORED, "STRING(9)", "STRING(20)", "STRING(9)", BREAKING),
        (Act.CALCULATED, "INT32", "INT64", "DATE", BREAKING),
        (Act.STORED, "STRING", "INT64", "STRING", BREAKING),
        (Act.STORED, "INT64", "INT32", "INT64", COMPATIBLE),
        (Act.STORED, "DECIMAL(9,2)", "DECIMAL(12,4)", "DECIMAL(9,2)", BREAKING),
        (Act.STORED, "DATE", "TIMESTAMP(us)", "DATE", BREAKING),
        (Act.LOST, "STRING", "STRING", None, UNDETERMINED),
        (Act.PLACED, "STRING", "STRING", None, BREAKING),
    ],
)
def test_other_uses(
    act: Act, before: str, after: str, partner: str | None, verdict: Verdict
) -> None:
    assert worst(meeting(act, before, after, partner=partner)).verdict is verdict


@pytest.mark.parametrize(
    ("act", "place", "partner", "verdict"),
    [
        (Act.COMPARED, Place.JOIN, "STRING", BREAKING),
        (Act.COMPARED, Place.FILTER, "STRING", COMPATIBLE),
        (Act.NOT_IN, Place.FILTER, "STRING", BREAKING),
        (Act.STORED, Place.INSERT, "STRING NOT NULL", BREAKING),
        (Act.STORED, Place.INSERT, "STRING", COMPATIBLE),
        (Act.GROUPED, Place.GROUP_BY, None, COMPATIBLE),
        (Act.COMBINED, Place.PROJECTION, "STRING", COMPATIBLE),
    ],
)
def test_nulls(act: Act, place: Place, partner: str | None, verdict: Verdict) -> None:
    found = worst(meeting(act, "STRING NOT NULL", "STRING", partner=partner, place=place))
    assert found.verdict is verdict


@pytest.mark.parametrize(
    ("before", "after", "is_key", "verdict"),
    [
        ("STRING", "INT64", False, BREAKING),
        ("INT32", "INT64", True, COMPATIBLE),
        ("INT32", "FLOAT64", False, COMPATIBLE),
        ("INT32", "FLOAT64", True, BREAKING),
        ("STRING NOT NULL", "STRING", False, COMPATIBLE),
        ("STRING NOT NULL", "STRING", True, BREAKING),
    ],
)
def test_columns_that_are_handed_on(
    before: str, after: str, is_key: bool, verdict: Verdict
) -> None:
    (found,) = passed_on("x", value(before), value(after), is_key=is_key, is_lost=False)
    assert found.verdict is verdict
