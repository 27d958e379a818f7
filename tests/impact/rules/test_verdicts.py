"""The verdict on one place where a changed value is used."""

import pytest

from lumos.impact.rules.results import rank
from lumos.impact.rules.type_uses import ArgumentKind, ClauseKind, TypeUse, UseOperation, ValueType
from lumos.impact.rules.verdicts import Assessment, assess_column_change, assess_use
from lumos.model.change import Verdict
from lumos.model.types import parse_type

BREAKING, COMPATIBLE, UNDETERMINED = (
    Verdict.BREAKING, Verdict.COMPATIBLE, Verdict.UNDETERMINED,
)  # fmt: skip


def value(text: str) -> ValueType:
    """`STRING NOT NULL` or `STRING`, which may be null."""
    type, _, rest = text.partition(" NOT NULL")
    del rest
    return ValueType(type=parse_type(type), nullable=" NOT NULL" not in text)


def type_use(
    operation: UseOperation, before: str, after: str, *, partner: str | None = None, clause_kind: ClauseKind = ClauseKind.FILTER,
    accepts: tuple[ArgumentKind, ...] | None = None, literal: bool = False, text: str | None = None,
) -> TypeUse:  # fmt: skip
    met = None if partner is None else value(partner)
    return TypeUse(
        clause_kind=clause_kind, operation=operation, value="x", before=value(before), after=value(after), partner=met,
        partner_before=met, accepts=accepts, is_literal=literal, partner_text=text,
    )  # fmt: skip


def worst(found: TypeUse) -> Assessment:
    return min(assess_use(found), key=lambda each: rank(each.verdict))


@pytest.mark.parametrize(
    ("before", "after", "partner", "clause_kind", "verdict"),
    [
        ("STRING", "INT64", "STRING", ClauseKind.JOIN, BREAKING),
        ("STRING", "INT64", "INT64", ClauseKind.JOIN, COMPATIBLE),
        ("STRING", "INT64", "UNKNOWN", ClauseKind.JOIN, UNDETERMINED),
        ("INT32", "INT64", "INT32", ClauseKind.JOIN, COMPATIBLE),
        ("INT32", "INT64", "UNKNOWN", ClauseKind.JOIN, COMPATIBLE),
        ("INT32", "FLOAT64", "INT32", ClauseKind.JOIN, BREAKING),
        ("INT32", "FLOAT64", "INT32", ClauseKind.FILTER, COMPATIBLE),
        ("INT32", "FLOAT64", "FLOAT64", ClauseKind.JOIN, COMPATIBLE),
        ("INT64", "INT32", "INT64", ClauseKind.FILTER, BREAKING),
        ("INT64", "STRING", "INT64", ClauseKind.FILTER, BREAKING),
        ("DATE", "TIMESTAMP(us)", "DATE", ClauseKind.FILTER, BREAKING),
        ("DATE", "TIMESTAMP(us)", "STRING", ClauseKind.FILTER, BREAKING),
        ("DATE", "TIMESTAMP(us)", "TIMESTAMP(us)", ClauseKind.FILTER, COMPATIBLE),
        ("DATE", "STRING", "STRING", ClauseKind.FILTER, BREAKING),
        ("STRING(9)", "STRING(4)", "STRING", ClauseKind.FILTER, BREAKING),
        ("STRING(4)", "STRING(9)", "STRING", ClauseKind.FILTER, COMPATIBLE),
        ("BOOLEAN", "INT32", "BOOLEAN", ClauseKind.FILTER, BREAKING),
        ("ENUM('a')", "ENUM('a','b')", "STRING", ClauseKind.FILTER, BREAKING),
        ("STRING", "UNKNOWN", "STRING", ClauseKind.FILTER, UNDETERMINED),
    ],
)
def test_comparisons(
    before: str, after: str, partner: str, clause_kind: ClauseKind, verdict: Verdict
) -> None:
    found = worst(type_use(UseOperation.COMPARED, before, after, partner=partner, clause_kind=clause_kind,
                          literal=partner == "STRING"))  # fmt: skip
    assert found.verdict is verdict


def test_a_comparison_says_what_it_expects_and_where() -> None:
    found = worst(
        type_use(
            UseOperation.COMPARED, "STRING", "INT64", partner="STRING", clause_kind=ClauseKind.JOIN
        )
    )
    assert found == Assessment(BREAKING, "expects STRING x in JOIN", fails=True)


def test_a_symbol_that_is_gone_is_missed_where_it_is_written_out() -> None:
    named = type_use(UseOperation.COMPARED, "ENUM('a','b')", "ENUM('a')", partner="STRING", literal=True,
                    text="'a', 'b'")  # fmt: skip
    unnamed = type_use(UseOperation.COMPARED, "ENUM('a','b')", "ENUM('a')", partner="STRING", literal=True,
                      text="'a'")  # fmt: skip
    assert worst(named).verdict is BREAKING
    assert worst(unnamed).verdict is COMPATIBLE


def test_two_sides_that_change_alike_still_fit() -> None:
    found = type_use(
        UseOperation.COMPARED, "STRING", "INT64", partner="INT64", clause_kind=ClauseKind.JOIN
    )
    alike = TypeUse(**{field: getattr(found, field) for field in found.__struct_fields__}
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
    found = TypeUse(
        clause_kind=ClauseKind.FILTER, operation=UseOperation.COMPARED, value="x", before=value(before), after=value(after),
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
    found = worst(type_use(UseOperation.CAST, before, after, partner=to))
    assert (found.verdict, found.text) == (verdict, text)


@pytest.mark.parametrize(
    ("before", "after", "accepts", "verdict"),
    [
        ("STRING", "INT64", (ArgumentKind.TEXT,), BREAKING),
        ("INT32", "INT64", (ArgumentKind.NUMBER,), COMPATIBLE),
        ("INT32", "FLOAT64", (ArgumentKind.NUMBER,), COMPATIBLE),
        ("INT32", "FLOAT64", (ArgumentKind.INTEGER,), BREAKING),
        ("INT32", "FLOAT64", None, UNDETERMINED),
        ("INT32", "INT64", None, UNDETERMINED),
        ("STRING(4)", "STRING", None, COMPATIBLE),
        ("INT32", "INT64", (ArgumentKind.INTEGER,), COMPATIBLE),
        ("INT32", "INT64", (ArgumentKind.SHORT_INTEGER,), BREAKING),
        ("INT16", "INT32", (ArgumentKind.SHORT_INTEGER,), COMPATIBLE),
        ("INT64", "FLOAT64", (ArgumentKind.SHORT_INTEGER,), BREAKING),
        ("INT32", "FLOAT64", (ArgumentKind.EXACT,), BREAKING),
        ("INT32", "DECIMAL(12,2)", (ArgumentKind.EXACT,), COMPATIBLE),
        ("DATE", "TIMESTAMP(us)", (ArgumentKind.DATE,), BREAKING),
        ("INT32", "DECIMAL(12,0)", (ArgumentKind.INTEGER,), BREAKING),
        ("INT16", "INT32", (ArgumentKind.INTEGER,), COMPATIBLE),
        ("STRING", "INT64", None, UNDETERMINED),
        ("DATE", "TIMESTAMP(us)", (ArgumentKind.TIME,), COMPATIBLE),
        ("TIMESTAMP(us)", "TIMESTAMPTZ(us)", (ArgumentKind.TIME,), BREAKING),
        ("STRING", "INT64", (ArgumentKind.ANY,), BREAKING),
        ("STRING", "UNKNOWN", (ArgumentKind.TEXT,), UNDETERMINED),
    ],
)
def test_arguments_of_functions(
    before: str, after: str, accepts: tuple[ArgumentKind, ...] | None, verdict: Verdict
) -> None:
    found = worst(type_use(UseOperation.CALLED, before, after, accepts=accepts, text="F"))
    assert found.verdict is verdict


@pytest.mark.parametrize(
    ("operation", "before", "after", "partner", "verdict"),
    [
        (UseOperation.COUNTED, "STRING", "INT64", None, COMPATIBLE),
        (UseOperation.GROUPED, "INT32", "FLOAT64", None, BREAKING),
        (UseOperation.GROUPED, "INT32", "INT64", None, COMPATIBLE),
        (UseOperation.GROUPED, "DATE", "TIMESTAMP(us)", None, BREAKING),
        (UseOperation.GROUPED, "STRING", "INT64", None, COMPATIBLE),
        (UseOperation.GROUPED, "STRING", "DECIMAL(20,0)", None, COMPATIBLE),
        (UseOperation.GROUPED, "STRING", "DECIMAL(20,2)", None, UNDETERMINED),
        (UseOperation.GROUPED, "STRING", "UUID", None, COMPATIBLE),
        (UseOperation.GROUPED, "STRING", "TIMESTAMP(us)", None, UNDETERMINED),
        (UseOperation.GROUPED, "STRING", "BOOLEAN", None, UNDETERMINED),
        (UseOperation.GROUPED, "INT64", "STRING", None, COMPATIBLE),
        (UseOperation.GROUPED, "INT64", "STRING(4)", None, UNDETERMINED),
        (UseOperation.GROUPED, "FLOAT64", "STRING", None, UNDETERMINED),
        (UseOperation.GROUPED, "TIMESTAMPTZ(us)", "STRING", None, UNDETERMINED),
        (UseOperation.GROUPED, "INT64", "INT32", None, COMPATIBLE),
        (UseOperation.GROUPED, "INT64", "FLOAT64", None, BREAKING),
        (UseOperation.GROUPED, "FLOAT64", "INT64", None, BREAKING),
        (UseOperation.GROUPED, "FLOAT64", "FLOAT32", None, BREAKING),
        (UseOperation.GROUPED, "DECIMAL(10,2)", "DECIMAL(9,2)", None, COMPATIBLE),
        (UseOperation.GROUPED, "DECIMAL(10,2)", "DECIMAL(10,1)", None, BREAKING),
        (UseOperation.GROUPED, "DECIMAL(10,2)", "FLOAT64", None, COMPATIBLE),
        (UseOperation.GROUPED, "DECIMAL(18,2)", "FLOAT64", None, BREAKING),
        (UseOperation.GROUPED, "BOOLEAN", "INT32", None, COMPATIBLE),
        (UseOperation.GROUPED, "INT32", "BOOLEAN", None, BREAKING),
        (UseOperation.GROUPED, "TIMESTAMP(us)", "DATE", None, BREAKING),
        (UseOperation.GROUPED, "TIMESTAMP(us)", "TIMESTAMPTZ(us)", None, UNDETERMINED),
        (UseOperation.GROUPED, "TIMESTAMP(us)", "TIMESTAMP(ms)", None, BREAKING),
        (UseOperation.GROUPED, "ARRAY<STRING>", "ARRAY<INT64>", None, COMPATIBLE),
        (
            UseOperation.GROUPED,
            "STRUCT<a: STRING, b: INT64>",
            "STRUCT<a: INT64, b: INT64>",
            None,
            COMPATIBLE,
        ),
        (UseOperation.GROUPED, "STRUCT<a: TIMESTAMP(us)>", "STRUCT<a: DATE>", None, BREAKING),
        (UseOperation.GROUPED, "STRING", "JSON", None, UNDETERMINED),
        (UseOperation.GROUPED, "STRING", "ARRAY<STRING>", None, UNDETERMINED),
        (UseOperation.SORTED, "INT64", "INT32", None, COMPATIBLE),
        (UseOperation.SORTED, "INT64", "FLOAT64", None, BREAKING),
        (UseOperation.SORTED, "DATE", "STRING", None, BREAKING),
        (UseOperation.PASSED_THROUGH, "STRING", "INT64", None, COMPATIBLE),
        (UseOperation.ENCODED, "INT32", "INT64", None, COMPATIBLE),
        (UseOperation.ENCODED, "STRING", "INT64", None, BREAKING),
        (UseOperation.ENCODED, "INT32", "DECIMAL(12,0)", None, BREAKING),
        (UseOperation.ENCODED, "STRUCT<a: INT32>", "STRUCT<a: FLOAT64>", None, BREAKING),
        (UseOperation.ENCODED, "STRUCT<a: INT32>", "STRUCT<a: INT64>", None, COMPATIBLE),
        (UseOperation.HASHED, "STRING", "INT64", None, BREAKING),
        (UseOperation.HASHED, "INT32", "INT64", None, UNDETERMINED),
        (UseOperation.HASHED, "STRING(4)", "STRING", None, COMPATIBLE),
        (UseOperation.FORMATTED, "FLOAT32", "FLOAT64", None, BREAKING),
        (UseOperation.SORTED, "INT32", "FLOAT64", None, COMPATIBLE),
        (UseOperation.SORTED, "STRING", "INT64", None, BREAKING),
        (UseOperation.COMBINED, "STRING", "INT64", "STRING", BREAKING),
        (UseOperation.COMBINED, "INT32", "INT64", "INT32", COMPATIBLE),
        (UseOperation.COMBINED, "STRING", "INT64", "UNKNOWN", UNDETERMINED),
        (UseOperation.CALCULATED, "INT32", "INT64", "INT32", COMPATIBLE),
        (UseOperation.CALCULATED, "INT32", "STRING", "INT32", BREAKING),
        (UseOperation.CALCULATED, "DATE", "TIMESTAMP(us)", "INT32", BREAKING),
        (UseOperation.CALCULATED, "DATE", "TIMESTAMP(us)", "INTERVAL", COMPATIBLE),
        (UseOperation.FORMATTED, "INT32", "STRING", None, COMPATIBLE),
        (UseOperation.FORMATTED, "STRING", "INT64", None, COMPATIBLE),
        (UseOperation.FORMATTED, "STRING", "ARRAY<STRING>", None, BREAKING),
        (UseOperation.STORED, "INT32", "INT64", "INT32", BREAKING),
        (UseOperation.STORED, "STRING(9)", "STRING(20)", "STRING(9)", BREAKING),
        (UseOperation.CALCULATED, "INT32", "INT64", "DATE", BREAKING),
        (UseOperation.STORED, "STRING", "INT64", "STRING", BREAKING),
        (UseOperation.STORED, "INT64", "INT32", "INT64", COMPATIBLE),
        (UseOperation.STORED, "DECIMAL(9,2)", "DECIMAL(12,4)", "DECIMAL(9,2)", BREAKING),
        (UseOperation.STORED, "DATE", "TIMESTAMP(us)", "DATE", BREAKING),
        (UseOperation.UNKNOWN, "STRING", "STRING", None, UNDETERMINED),
        (UseOperation.USED_BY_POSITION, "STRING", "STRING", None, BREAKING),
    ],
)
def test_other_uses(
    operation: UseOperation, before: str, after: str, partner: str | None, verdict: Verdict
) -> None:
    assert worst(type_use(operation, before, after, partner=partner)).verdict is verdict


@pytest.mark.parametrize(
    ("operation", "clause_kind", "partner", "verdict"),
    [
        (UseOperation.COMPARED, ClauseKind.JOIN, "STRING", BREAKING),
        (UseOperation.COMPARED, ClauseKind.FILTER, "STRING", COMPATIBLE),
        (UseOperation.NOT_IN, ClauseKind.FILTER, "STRING", BREAKING),
        (UseOperation.STORED, ClauseKind.INSERT, "STRING NOT NULL", BREAKING),
        (UseOperation.STORED, ClauseKind.INSERT, "STRING", COMPATIBLE),
        (UseOperation.GROUPED, ClauseKind.GROUP_BY, None, COMPATIBLE),
        (UseOperation.COMBINED, ClauseKind.PROJECTION, "STRING", COMPATIBLE),
    ],
)
def test_nulls(
    operation: UseOperation, clause_kind: ClauseKind, partner: str | None, verdict: Verdict
) -> None:
    found = worst(
        type_use(operation, "STRING NOT NULL", "STRING", partner=partner, clause_kind=clause_kind)
    )
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
    (found,) = assess_column_change(
        "x", value(before), value(after), is_key=is_key, is_unknown=False
    )
    assert found.verdict is verdict
