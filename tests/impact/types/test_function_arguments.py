"""Retyped arguments of functions: none is called safe where the engine refuses the statement."""

from collections.abc import Callable, Iterator, Mapping

import pytest
from pyspark.errors import PySparkException

from lumos.impact.rules.type_uses import TableVersions
from lumos.impact.rules.verdicts import assess_use
from lumos.impact.types.effects import effects
from lumos.model.change import Verdict
from lumos.model.schema import Field, Schema
from lumos.model.types import parse_type

BEFORE = {"a": "DECIMAL(10,2)", "b": "DECIMAL(10,2)", "i": "INT32", "l": "INT64", "f": "FLOAT64",
          "s": "STRING", "d": "DATE"}  # fmt: skip
RETYPES = (
    ("a", "DECIMAL(12,2)"), ("a", "DECIMAL(30,2)"), ("a", "DECIMAL(12,4)"), ("a", "FLOAT64"),
    ("b", "DECIMAL(12,2)"), ("i", "INT64"), ("i", "DECIMAL(12,0)"),
)  # fmt: skip
EXPRESSIONS = {
    "spark": (
        "array_position(array(b), a)", "array_insert(array(b), 1, a)", "array_remove(array(b), a)",
        "array_contains(array(b), a)", "array_append(array(b), a)", "array_prepend(array(b), a)",
        "array_union(array(b), array(a))", "array_except(array(b), array(a))",
        "array_intersect(array(b), array(a))", "arrays_overlap(array(b), array(a))",
        "map_concat(map('k', b), map('j', a))", "map_contains_key(map(b, 1), a)",
        "element_at(map(b, 1), a)", "map(b, 1)[a]", "array(a, b)", "map('k', a, 'j', b)",
        "concat(array(a), array(b))", "array_join(array(s), s)", "array_repeat(a, i)",
        "slice(array(1, 2), i, 1)", "element_at(array(1, 2), i)", "sequence(1, i)",
        "aggregate(array(a), b, (p, q) -> q)", "zip_with(array(a), array(b), (p, q) -> p * q)",
        "elt(i, 'a', 'b')", "space(i)", "make_date(i, 1, 1)", "date_from_unix_date(i)",
        "format_number(a, i)", "width_bucket(a, b, 10, i)", "chr(i)", "lpad(s, i, 'x')",
        "round(f, 1)", "date_add(d, i)", "add_months(d, i)", "conv(s, i, 2)", "factorial(i)",
        "bit_get(l, i)", "shiftleft(l, i)", "nullif(a, b)",
        "lag(a, 1, b) over (order by i)", "array_position(array(i), i)", "levenshtein(s, s, i)",
    ),
    "duckdb": (
        "chr(i)", "lpad(s, i, 'x')", "rpad(s, i, 'x')", "round(f, i)", "trunc(f, i)",
        "regexp_extract_all(s, 'a', i)", "factorial(i)", "d + i", "d - i", "left(s, i)",
        "substring(s, i)", "repeat(s, i)", "split_part(s, 'x', i)", "to_days(i)", "range(i)",
        "make_date(i, 1, 1)", "[1, 2][i]", "list_contains([b], a)", "list_position([b], a)",
        "list_append([b], a)", "list_concat([b], [a])", "[b] || [a]", "list_value(a, b)",
        "list_has_any([b], [a])", "map([b], [1])[a]", "list_resize([1], i)", "gcd(i, l)",
        "bit_count(i)", "xor(i, i)", "i << 2", "lag(a, 1, b) over (order by i)", "hash(a)",
        "lag(s, i) over (order by i)", "ntile(i) over (order by i)", "bitstring('1', i)",
    ),
}  # fmt: skip
# Functions of any number: no retype among numbers is doubtful.
SAFE = ("abs({})", "sqrt({})", "sign({})", "sum({})", "max({})", "count({})", "coalesce({}, 0)",
        "case when {} > 1 then 1 end")  # fmt: skip

Accepts = Callable[[Mapping[str, str], str], bool]


@pytest.fixture(params=[pytest.param("spark", marks=pytest.mark.slow), "duckdb"])
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def accepts(dialect: str, request: pytest.FixtureRequest) -> Accepts:
    """Whether the engine binds an expression over columns of these types."""
    if dialect == "spark":
        run, refusal = request.getfixturevalue("spark").sql, PySparkException
    else:
        duckdb = pytest.importorskip("duckdb")
        run, refusal = duckdb.connect().execute, duckdb.Error
    names = {"INT32": "int", "INT64": "bigint", "FLOAT64": "double"}
    if dialect == "duckdb":
        names["STRING"] = "varchar"

    def accepts(types: Mapping[str, str], expression: str) -> bool:
        columns = ", ".join(f"cast(null as {names.get(type, type)}) as {name}"
                            for name, type in types.items())  # fmt: skip
        query = f"with t as (select {columns}) select {expression} as x from t"
        try:
            run(query if dialect == "spark" else f"describe {query}")
        except refusal:
            return False
        return True

    return accepts


def _retypes(expression: str) -> Iterator[dict[str, str]]:
    for column, type in RETYPES:
        if column in expression:
            yield {**BEFORE, column: type}


def _is_called_safe(expression: str, after: Mapping[str, str], dialect: str) -> bool:
    versions = TableVersions.of("t", _schema(BEFORE), _schema(after))
    (found,) = effects(
        f"create table r as select {expression} as x from t",
        dialect=dialect, tables={("t",): versions}.get, is_wanted=lambda _: True,
    )  # fmt: skip
    decisions = [each for use in found.type_uses for each in assess_use(use)]
    is_unknown = any(each.is_unknown for each in found.outputs)
    return not is_unknown and all(each.verdict is Verdict.COMPATIBLE for each in decisions)


def _schema(types: Mapping[str, str]) -> Schema:
    return Schema(
        fields=tuple(Field(name=name, type=parse_type(type)) for name, type in types.items())
    )


def test_no_retyped_argument_is_called_safe_where_the_engine_refuses_it(
    dialect: str, accepts: Accepts
) -> None:
    bound = [each for each in EXPRESSIONS[dialect] if accepts(BEFORE, each)]
    refused = [(each, after) for each in bound for after in _retypes(each)
               if not accepts(after, each)]  # fmt: skip
    assert bound == [*EXPRESSIONS[dialect]]
    assert refused
    unsafe = [(each, after) for each, after in refused if _is_called_safe(each, after, dialect)]
    assert unsafe == []


def test_functions_of_any_number_are_not_doubted(dialect: str, accepts: Accepts) -> None:
    for expression in (each.format(column) for each in SAFE for column in "ai"):
        for after in ({**BEFORE, "a": "DECIMAL(12,2)"}, {**BEFORE, "i": "INT64"}):
            assert accepts(after, expression)
            assert _is_called_safe(expression, after, dialect), expression
