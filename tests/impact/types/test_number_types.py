"""Types of computed numbers, compared with what Spark and DuckDB make of the same expressions."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar

import pytest
from pyspark.sql import SparkSession

from lumos.impact.rules.type_uses import TableVersions
from lumos.impact.types.effects import effects
from lumos.model.conversions.spark import schema_from_spark
from lumos.model.schema import Field, Schema
from lumos.model.types import DataType, Unknown, parse_type

SIZES = ("1,1", "7,2", "9,4", "12,2", "18,10", "19,2", "38,10", "38,38")
# Sizes on both sides of every limit: 18 digits of 64 bits, 28 before ten more of a sum, 38 in all.
MANY_SIZES = tuple(
    f"{precision},{scale}"
    for precision in (1, 2, 5, 7, 9, 10, 17, 18, 19, 20, 27, 28, 29, 36, 37, 38)
    for scale in sorted({0, 1, 2, 6, 9, precision // 2, precision - 1, precision})
    if scale <= precision
)
INTEGERS = {"tiny": "INT8", "small": "INT16", "whole": "INT32", "big": "INT64"}
FLOATS = {"single": "FLOAT32", "double": "FLOAT64"}
LITERALS = ("0", "100", "3000000000", "0.0", "100.25", "0.05", "1e3", "-1", "-0.5")
OPERATORS = ("{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} % {}")
COMBINED = (
    "coalesce({}, {})", "case when true then {} else {} end", "if(true, {}, {})",
    "greatest({}, {})", "least({}, {})", "nullif({}, {})",
)  # fmt: skip
AGGREGATES = ("sum({})", "avg({})", "min({})", "max({})", "sum(distinct {})", "mode({})",
              "any_value({})", "max_by({}, whole)")  # fmt: skip
OF_ONE = ("-{}", "abs({})", "round({})", "round({}, 1)", "round({}, 5)", "floor({})", "ceil({})")
# One type for every number, so that no change of the argument can be seen.
CONSTANT = (
    "sqrt({})", "cbrt({})", "exp({})", "ln({})", "log10({})", "pow({}, 2)", "sign({})", "sin({})",
    "cos({})", "atan({})", "degrees({})", "radians({})", "{0} = {0}", "{} in (1, 2)",
    "{} between 1 and 2", "{} is null",
)  # fmt: skip
CONSTANT_AGGREGATES = (
    "count({})", "count(distinct {})", "stddev({})", "stddev_pop({})", "var_samp({})",
    "var_pop({})", "corr({0}, {0})", "covar_samp({0}, {0})", "skewness({})", "kurtosis({})",
)  # fmt: skip


class Numbers:
    """A table with a column of every type, and expressions over its columns."""

    def __init__(self, sizes: Sequence[str]) -> None:
        decimals = {f"d{size.replace(',', '_')}": f"DECIMAL({size})" for size in sizes}
        self.types = {**decimals, **INTEGERS, **FLOATS}
        self.schema = Schema(
            fields=tuple(
                Field(name=name, type=parse_type(type)) for name, type in self.types.items()
            )
        )

    def expressions(self, of_two: Iterable[str], of_one: Iterable[str]) -> list[str]:
        """All templates filled with all columns, or with all columns and literals."""
        named = [*self.types]
        pairs = [*product(named, named), *product(named, LITERALS), *product(LITERALS, named)]
        return [
            *(
                template.format(*(f"({each})" for each in pair))
                for template in of_two
                for pair in pairs
            ),
            *(template.format(name) for template in of_one for name in named),
            *LITERALS,
        ]

    def derive(self, expressions: Sequence[str], dialect: str) -> list[DataType]:
        """The types that Lumos derives for expressions."""
        return self.derive_query(_select(expressions), dialect)

    def derive_query(self, query: str, dialect: str) -> list[DataType]:
        """The types that Lumos derives for the columns of a query."""
        (found,) = effects(
            f"create table t as {query}",
            dialect=dialect,
            tables={("numbers",): TableVersions.of("numbers", self.schema)}.get,
            is_wanted=lambda _: True,
            with_fields=True,
        )
        return [field.type for field in found.fields]


def _select(expressions: Sequence[str]) -> str:
    items = ", ".join(f"{each} as x{number}" for number, each in enumerate(expressions))
    return f"select {items} from numbers"


def _wrong(
    expressions: Sequence[str], derived: Sequence[DataType], engine: Sequence[DataType]
) -> list[str]:
    return [
        f"{expression}: {mine.text}, the engine says {theirs.text}"
        for expression, mine, theirs in zip(expressions, derived, engine, strict=True)
        if mine != theirs
    ]


def _same_for_all(expressions: Sequence[str], types: Sequence[DataType], per_template: int) -> bool:
    groups = [{*types[at : at + per_template]} for at in range(0, len(expressions), per_template)]
    return all(len(each) == 1 for each in groups)


class Spark:
    """Spark's analysis of queries; nothing is run."""

    dialect = "spark"
    names: ClassVar = {"INT8": "TINYINT", "INT16": "SMALLINT", "INT32": "INT", "INT64": "BIGINT", "FLOAT32": "FLOAT", "FLOAT64": "DOUBLE"}  # fmt: skip

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def types(self, numbers: Numbers, query: str) -> list[DataType]:
        schema = self._session.sql(f"{_numbers(numbers, self.names)} {query}").schema
        return [field.type for field in schema_from_spark(schema.jsonValue()).fields]


class Duckdb:
    """DuckDB's binder; nothing is run."""

    dialect = "duckdb"
    names: ClassVar = {"INT8": "TINYINT", "INT16": "SMALLINT", "INT32": "INTEGER", "INT64": "BIGINT", "FLOAT32": "FLOAT", "FLOAT64": "DOUBLE"}  # fmt: skip

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._lumos = {"HUGEINT": "DECIMAL(39,0)", "BOOLEAN": "BOOLEAN"} | {
            name: type for type, name in self.names.items()
        }

    def types(self, numbers: Numbers, query: str) -> list[DataType]:
        rows = self._connection.execute(
            f"describe {_numbers(numbers, self.names)} {query}"
        ).fetchall()
        return [parse_type(self._lumos.get(type, type)) for _, type, *_ in rows]


def _numbers(numbers: Numbers, names: Mapping[str, str]) -> str:
    columns = (
        f"cast(null as {names.get(type, type)}) as {name}" for name, type in numbers.types.items()
    )
    return f"with numbers as (select {', '.join(columns)})"


@pytest.fixture(params=[pytest.param("spark", marks=pytest.mark.slow), "duckdb"])
def engine(request: pytest.FixtureRequest) -> "Spark | Duckdb":
    if request.param == "spark":
        return Spark(request.getfixturevalue("spark"))
    return Duckdb(pytest.importorskip("duckdb").connect())


LAG = "lag({}) over (order by whole)"


@pytest.mark.parametrize(
    ("sizes", "of_two", "of_one"),
    [
        pytest.param(SIZES, (*OPERATORS, *COMBINED), (*OF_ONE, LAG), id="scalar"),
        pytest.param(SIZES, (), AGGREGATES, id="aggregates"),
        *(
            pytest.param(MANY_SIZES, (template,), OF_ONE, id=template, marks=pytest.mark.slow)
            for template in (*OPERATORS, *COMBINED)
        ),
        pytest.param(MANY_SIZES, (), AGGREGATES, id="many aggregates", marks=pytest.mark.slow),
    ],
)
def test_computed_numbers_have_the_type_that_the_engine_gives_them(
    engine: "Spark | Duckdb", sizes: Sequence[str], of_two: Sequence[str], of_one: Sequence[str]
) -> None:
    numbers = Numbers(sizes)
    expressions = numbers.expressions(of_two, of_one)
    types = dict(zip(expressions, numbers.derive(expressions, engine.dialect), strict=True))
    known = [each for each in types if not isinstance(types[each], Unknown)]
    assert all(_is_unproven(each, engine.dialect) for each in types.keys() - {*known})
    derived = [types[each] for each in known]
    assert _wrong(known, derived, engine.types(numbers, _select(known))) == []


def _is_unproven(expression: str, dialect: str) -> bool:
    """What is left unknown although it is made of numbers alone."""
    if dialect != "duckdb":
        return False
    if re.search(r"\b(tiny|small)\b", expression) and re.search(r"\(-?\d+\)", expression):
        # DuckDB gives a literal the type of a short column if it fits.
        return True
    if re.search(r" [+-] ", expression) and re.search(r"d(9|1\d)_", expression):
        # Versions of DuckDB differ where a sum needs more than the 18 digits of 64 bits.
        return True
    # DuckDB refuses products with more than 38 fraction digits.
    scales = map(int, re.findall(r"d\d+_(\d+)", expression))
    return " * " in expression and sum(scales) + 2 > 38


@pytest.mark.parametrize("sizes", [SIZES, pytest.param(MANY_SIZES, marks=pytest.mark.slow)])
def test_the_arms_of_a_set_operation_share_the_type_that_the_engine_gives_them(
    engine: "Spark | Duckdb", sizes: Sequence[str]
) -> None:
    numbers = Numbers(sizes)
    every = [*product(numbers.types, numbers.types), *product(numbers.types, LITERALS)]
    # The time that Spark takes for set operations grows with the square of the columns.
    for kind, first in product(
        ("union all", "union", "intersect", "except"), range(0, len(every), 200)
    ):
        pairs = every[first : first + 200]
        arms = (_select([each[side] for each in pairs]) for side in (0, 1))
        query = f" {kind} ".join(arms)
        derived = numbers.derive_query(query, engine.dialect)
        expected = engine.types(numbers, query)
        assert _wrong([f"{one} {kind} {other}" for one, other in pairs], derived, expected) == []


def test_integer_division_has_the_type_that_the_engine_gives_it(engine: "Spark | Duckdb") -> None:
    numbers = Numbers(SIZES)
    names = [name for name in numbers.types if name not in FLOATS or engine.dialect == "duckdb"]
    operator = "//" if engine.dialect == "duckdb" else "div"
    expressions = [f"{one} {operator} {other}" for one, other in product(names, names)]
    derived = numbers.derive(expressions, engine.dialect)
    assert _wrong(expressions, derived, engine.types(numbers, _select(expressions))) == []


NESTED = {
    "spark": ("array({}, {})[0]", "map('k', {}, 'j', {})['k']", "struct({} as v, {} as w).v",
              "concat(array({}), array({}))[0]"),
    "duckdb": ("[{}, {}][1]", "list_value({}, {})[1]", "map(['k', 'j'], [{}, {}])['k']",
               "(map {{'k': {}, 'j': {}}})['k']", "struct_pack(v := {}, w := {}).v",
               "list_concat([{}], [{}])[1]", "([{}] || [{}])[1]"),
}  # fmt: skip
# Lists of different types that are put together.
UNPROVEN_NESTED = ("concat(", "||")


@pytest.mark.parametrize("sizes", [SIZES, pytest.param(MANY_SIZES, marks=pytest.mark.slow)])
def test_values_in_lists_maps_and_structs_have_the_type_that_the_engine_gives_them(
    engine: "Spark | Duckdb", sizes: Sequence[str]
) -> None:
    numbers = Numbers(sizes)
    for template in NESTED[engine.dialect]:
        expressions = numbers.expressions((template,), ())
        types = dict(zip(expressions, numbers.derive(expressions, engine.dialect), strict=True))
        known = [each for each in types if not isinstance(types[each], Unknown)]
        assert len(known) > len(numbers.types)
        if not any(each in template for each in UNPROVEN_NESTED):
            assert all(_is_unproven(each, engine.dialect) for each in types.keys() - {*known})
        derived = [types[each] for each in known]
        assert _wrong(known, derived, engine.types(numbers, _select(known))) == []


@pytest.mark.parametrize(
    ("dialect", "expression"),
    [
        ("spark", "array_union(array(d7_2), array(d9_4))"),
        ("spark", "array_except(array(d7_2), array(d9_4))"),
        ("spark", "array_intersect(array(d7_2), array(d9_4))"),
        ("spark", "array_insert(array(d7_2), 1, d9_4)"),
        ("spark", "concat(array(d7_2), array(d9_4))"),
        ("spark", "map_concat(map('k', d7_2), map('j', d9_4))"),
        ("spark", "sequence(tiny, whole, big)"),
        ("spark", "array(array(d7_2), array(d9_4))"),
        ("duckdb", "list_concat([d7_2], [d9_4])"),
        ("duckdb", "[d7_2] || [d9_4]"),
        ("mysql", "array(d7_2, d9_4)"),
    ],
)
def test_lists_of_different_types_that_are_put_together_are_unknown(
    dialect: str, expression: str
) -> None:
    (type,) = Numbers(SIZES).derive([expression], dialect)
    assert isinstance(type, Unknown)


@pytest.mark.parametrize("templates", [CONSTANT, CONSTANT_AGGREGATES], ids=["scalar", "aggregates"])
def test_functions_that_are_held_for_insensitive_to_types_are(
    engine: "Spark | Duckdb", templates: Sequence[str]
) -> None:
    numbers = Numbers(SIZES)
    expressions = [template.format(name) for template in templates for name in numbers.types]
    for types in (
        numbers.derive(expressions, engine.dialect), engine.types(numbers, _select(expressions))
    ):  # fmt: skip
        assert _same_for_all(expressions, types, len(numbers.types))


@pytest.mark.parametrize("dialect", ["spark", "duckdb"])
@pytest.mark.parametrize(
    "expression",
    ["median(d7_2)", "percentile_cont(0.5) within group (order by d7_2)", "my_function(d7_2)",
     "round(d7_2, whole)", "'1' + d7_2", "cast(null as decimal(7, 2)) + my_function(d7_2)", "lag(d7_2, 1, 0) over (order by whole)", "max_by(d7_2, whole, 3)"],
)  # fmt: skip
def test_what_is_not_proven_is_unknown(expression: str, dialect: str) -> None:
    (type,) = Numbers(SIZES).derive([expression], dialect)
    assert isinstance(type, Unknown)


@pytest.mark.parametrize("dialect", ["mysql", "oracle", "trino", "redshift", "clickhouse"])
@pytest.mark.parametrize(
    "expression", ["d7_2 + d7_2", "d7_2 / d9_4", "sum(d7_2)", "avg(d7_2)", "coalesce(d7_2, 0.0)",
                   "coalesce(d7_2, d9_4)", "round(d7_2, 1)"],
)  # fmt: skip
def test_decimals_of_dialects_without_rules_are_unknown(expression: str, dialect: str) -> None:
    (type,) = Numbers(SIZES).derive([expression], dialect)
    assert isinstance(type, Unknown)


@pytest.mark.parametrize(
    ("dialect", "expression", "type"),
    [
        ("postgres", "d7_2 / d9_4", "DECIMAL"),
        ("postgres", "coalesce(d7_2, d9_4)", "DECIMAL"),
        ("postgres", "d7_2 * 0.5", "DECIMAL"),
        ("snowflake", "d7_2 * 0.5", "UNKNOWN"),
        ("snowflake", "double * 0.5", "FLOAT64"),
        ("snowflake", "median(d7_2)", "UNKNOWN"),
        ("duckdb", "d7_2 + d9_4", "DECIMAL(10,4)"),
        ("duckdb", "d18_10 + d9_4", "UNKNOWN"),
        ("duckdb", "d19_2 + d9_4", "DECIMAL(22,4)"),
        ("bigquery", "d7_2 * d9_4", "DECIMAL(38,9)"),
        ("bigquery", "avg(d38_38)", "DECIMAL(76,38)"),
        ("snowflake", "d12_2 / d7_2", "DECIMAL(20,8)"),
        ("snowflake", "d18_10 * d18_10", "DECIMAL(28,12)"),
        ("tsql", "d12_2 / d7_2", "DECIMAL(22,10)"),
        ("tsql", "d12_2 * d7_2", "DECIMAL(20,4)"),
        ("hive", "d12_2 * d7_2", "DECIMAL(20,4)"),
        ("hive", "d38_10 * d7_2", "UNKNOWN"),
    ],
)
def test_sizes_of_decimals_by_dialect(dialect: str, expression: str, type: str) -> None:
    assert Numbers(SIZES).derive([expression], dialect) == [parse_type(type)]
