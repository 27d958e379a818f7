"""Uses that take values of any type: Lumos's verdict beside what Spark and DuckDB make of them.

A column `x`, and `z` with it, gets another type; `o` keeps the type that both had. The engine binds
every query with both types, and runs it over values that are the same in both: what the new type
cannot hold is left out, and texts are those that the engine writes for values of the new type.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, ClassVar, Protocol

import sqlglot
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from impact.tpc_retypes import OneQuery, derivation_of
from lumos.impact.context import analyse_derivation
from lumos.impact.rules.graph import DatasetDerivation
from lumos.impact.rules.propagation import impact_of
from lumos.impact.types.sqlglot_types import from_sqlglot, to_sqlglot
from lumos.model.change import Verdict
from lumos.model.conversions.spark import schema_from_spark
from lumos.model.schema import Field, Schema
from lumos.model.types import DataType, Unknown, parse_type
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import classify

# Equal values, values of one day or of one whole number, and an order that texts do not have.
VALUES = {
    "INT8": ("1", "9", "10", "9", "100"),
    "INT16": ("1", "9", "10", "9", "100"),
    "INT32": ("1", "9", "10", "9", "100"),
    "INT64": ("1", "9", "10", "9", "100", "1000000000000000001", "1000000000000000000"),
    "DECIMAL(10,2)": ("1.50", "1.25", "9.00", "10.00", "9.00", "1.00"),
    "DECIMAL(12,0)": ("1", "9", "10", "9", "100"),
    "FLOAT32": ("0.1", "0.5", "9", "10", "9", "1.25"),
    "FLOAT64": ("0.1", "0.5", "9", "10", "9", "1.25", "0.30000000000000004"),
    "BOOLEAN": ("true", "false", "true"),
    "DATE": ("2024-01-02", "2024-01-10", "2024-01-02", "2023-12-31"),
    "TIMESTAMP(us)": ("2024-01-02 00:00:00", "2024-01-02 10:00:00", "2024-01-10 09:00:00",
                      "2024-01-02 10:00:00"),
    "TIMESTAMPTZ(us)": ("2024-01-02 00:00:00", "2024-01-02 10:00:00", "2024-01-10 09:00:00",
                        "2024-01-02 10:00:00"),
    "STRING": ("b", "a", "c", "a"),
}  # fmt: skip
FILLER = {"DECIMAL(12,2)": "DECIMAL(10,2)", "DECIMAL(14,4)": "DECIMAL(10,2)",
          "DECIMAL(9,0)": "DECIMAL(12,0)", "DECIMAL(20,0)": "DECIMAL(12,0)"}  # fmt: skip
TYPES = (*VALUES, *FILLER)
PAIRS = tuple(pair for pair in product(TYPES, TYPES) if pair[0] != pair[1])
# Wider, narrower, a text that becomes a number and back, a day that becomes a moment and back.
FEW_PAIRS = (
    ("STRING", "INT64"), ("INT64", "STRING"), ("INT32", "INT64"), ("INT32", "DECIMAL(12,2)"),
    ("INT32", "FLOAT64"), ("INT64", "INT32"), ("DATE", "TIMESTAMP(us)"), ("TIMESTAMP(us)", "DATE"),
    ("STRING", "DATE"), ("FLOAT64", "INT64"),
)  # fmt: skip

# One row in all.
AGGREGATES = (
    "count(x)", "count(distinct x)", "count(distinct case when k > 1 then x end)",
    "approx_count_distinct(x)", "count_if(x is null)", "bool_or(x is not null)",
    "count(x) filter (where x is not null)", "count(distinct x) filter (where k > 1)",
    "count(*) filter (where x is null)", "any_value(x)", "first(x)", "last(x)", "min(x)", "max(x)",
    "mode(x)", "array_agg(x)", "array_agg(distinct x)", "max_by(x, k)", "min_by(x, k)",
    "max_by(k, x)", "min_by(k, x)", "string_agg(x, ',')", "length(string_agg(distinct x, ','))",
    "cast(any_value(x) as {text})", "cast(first(x) as {text})", "cast(max_by(x, k) as {text})",
    "cast(max(x) as {text})", "cast(mode(x) as {text})", "count(any_value(x)) over ()",
    "sum(case when x is null then 0 else 1 end)", "any_value(k) filter (where x is not null)",
    "any_value(x) is null", "approx_count_distinct(case when k > 1 then x end)",
)  # fmt: skip
# One row for every row.
SCALARS = (
    "x is null", "x is not null", "coalesce(x, z)", "coalesce(x, o)", "nullif(x, z)", "nullif(x, o)",
    "case when x is null then 0 else 1 end", "case when k > 1 then x else z end",
    "case when k > 1 then x else o end", "case x when z then 1 else 0 end", "if(x is null, 1, 2)",
    "x = z", "x = o", "x < z", "x <> z", "x is distinct from z", "x in (z)", "x between z and z",
    "greatest(x, z)", "least(x, z)", "cast(greatest(x, z) as {text})", "greatest(x, o)",
    "coalesce(cast(x as {text}), 'none')", "cast(x as {text})", "try_cast(x as {text})",
    "concat(x, '-')", "md5(x)", "upper(x)", "length(x)", "typeof(x)", "hash(x)",
    "row_number() over (order by x, k)", "row_number() over (partition by x order by k)",
    "rank() over (order by x)", "dense_rank() over (order by x)", "ntile(2) over (order by x, k)",
    "lag(x) over (order by k)", "lead(x) over (order by k)", "lag(x, 1, z) over (order by k)",
    "lag(x, 1, o) over (order by k)", "cast(lag(x) over (order by k) as {text})",
    "lag(k) over (order by x, k)", "first_value(x) over (order by k)",
    "first_value(k) over (order by x, k)", "last_value(x) over (order by k)",
    "nth_value(x, 2) over (order by k)", "count(x) over (partition by k)",
    "count(*) over (partition by x)", "max(x) over ()", "max(k) over (partition by x)",
    "sum(k) over (order by x, k)", "cast(first_value(x) over (order by k) as {text})",
    "lag(x) over (order by k) is null",
)  # fmt: skip
QUERIES = (
    "select count(*) as r from t group by x",
    "select x, count(*) as r from t group by x",
    "select distinct x as r from t",
    "select count(*) as r from (select distinct x from t)",
    "select count(*) as r from (select x from t group by x)",
    "select k, count(*) as r from t group by grouping sets ((x, k), (k))",
    "select grouping(x) as r, count(*) as n from t group by rollup (x)",
    "select count(*) as r, grouping_id(x, k) as g from t group by cube (x, k)",
    "select k as r from (select * from t order by x, k limit 2)",
    "select count(*) as r from (select x from t union select z from t)",
    "select count(*) as r from (select x from t union all select z from t)",
    "select count(*) as r from (select x from t intersect select z from t)",
    "select count(*) as r from (select x from t except select z from t where k > 1)",
    "select count(*) as r from (select x from t union select o from t)",
    "select x as r from t union all select z from t",
    "select x as r from t union select o from t",
    "select a.k as r from t a join t b on a.x = b.x",
    "select a.k as r from t a join t b on a.x = b.o",
    "select a.k as r from t a join t b on a.x < b.z",
    "select k as r from t where x in (select z from t where k > 1)",
    "select k as r from t group by k having count(distinct x) > 0",
    "select k as r from t where x is not null",
    "select k as r from t where x > z",
    "select k as r from t qualify row_number() over (partition by x order by k) = 1",
    "select count(c) as r from (select count(distinct x) as c from t group by k)",
)  # fmt: skip
OWN_AGGREGATES = {
    "spark": (
        "count(distinct x, k)", "collect_list(x)", "collect_set(x)", "size(collect_set(x))", "size(collect_list(x))",
        "hll_sketch_agg(x)", "hll_sketch_estimate(hll_sketch_agg(x))", "first(x, true)",
        "listagg(x, ',')", "every(x is null)", "count(struct(x, k))", "count(distinct struct(x, k))",
        "max(struct(x, k)).k", "any_value(struct(x, k)).k",
        "to_json(collect_list(x))", "approx_top_k(x)",
    ),
    "duckdb": (
        "list(x)", "list(distinct x)", "len(list(x))", "len(list(distinct x))", "arg_max(x, k)",
        "arg_min(k, x)", "arbitrary(x)", "group_concat(x)", "histogram(x)", "entropy(x)",
        "approx_top_k(x, 2)", "count(distinct {{'a': x, 'b': k}})", "max({{'a': x, 'b': k}}).b",
        "any_value({{'a': x, 'b': k}}).b", "quantile_disc(x, 0.5)", "json_group_array(x)",
        "max(x, 2)", "count(distinct (x, k))",
    ),
}  # fmt: skip
OWN_SCALARS = {
    "spark": (
        "isnull(x)", "isnotnull(x)", "nvl(x, z)", "nvl2(x, 1, 2)", "ifnull(x, o)", "x <=> z",
        "equal_null(x, z)", "struct(x, k)", "struct(x, k).k", "named_struct('a', x)", "array(x, z)",
        "size(array(x, z))", "map('a', x)", "to_json(struct(x))", "to_json(named_struct('a', array(x)))",
        "to_csv(struct(x))", "xxhash64(x)", "sha2(x, 256)", "crc32(x)", "decode(x, z, 1, 0)",
        "array_distinct(array(x, z))", "size(array_distinct(array(x, z)))", "array_contains(array(x), z)",
        "concat_ws(',', x, k)", "string(x)",
    ),
    "duckdb": (
        "ifnull(x, z)", "{{'a': x, 'b': k}}", "{{'a': x, 'b': k}}.b", "struct_pack(a := x)",
        "[x, z]", "len([x, z])", "map(['a'], [x])", "to_json(x)", "to_json({{'a': x}})",
        "json_object('a', x)", "json_array(x)", "sha256(x)", "x isnull", "x notnull", "x::{text}",
        "list_distinct([x, z])", "list_contains([x], z)", "concat_ws(',', x, k)",
    ),
}  # fmt: skip
_TEXT = {"spark": "string", "duckdb": "varchar"}
# Engines are slow to plan a query with a hundred windows, and one refusal costs few more binds.
_AT_ONCE = 12


@dataclass(frozen=True, kw_only=True)
class Use:
    """A use as an expression `item` of all rows or of each, or as a query of its own."""

    item: str = ""
    is_aggregate: bool = False
    query: str


def uses(dialect: str) -> list[Use]:
    """Every use, as the dialect writes it; the result of an expression is called `r`."""
    text = _TEXT[dialect]
    found = []
    for is_aggregate, items in (
        (True, (*AGGREGATES, *OWN_AGGREGATES[dialect])), (False, (*SCALARS, *OWN_SCALARS[dialect])),
    ):  # fmt: skip
        for item in (each.format(text=text) for each in items):
            query = f"select {item} as r from t"
            found.append(Use(item=item, is_aggregate=is_aggregate, query=query))
    return [*found, *(Use(query=each) for each in QUERIES)]


Row = tuple[Any, ...]
Types = Mapping[str, DataType]


class Engine(Protocol):
    """Binds and runs queries over one table."""

    dialect: str

    def fill(self, before: str, after: str, *, is_empty: bool) -> None:
        """Two versions of the table: `t0` has the old types, `t1` the new ones."""
        ...

    def types(self, query: str) -> Types | None:
        """The columns of a query's result, or None if the engine refuses it."""
        ...

    def rows(self, query: str) -> list[Row]: ...


def _numbered(values: Sequence[str]) -> str:
    return ", ".join(f"({number}, '{value}')" for number, value in enumerate(values, start=1))


def _table(
    engine: "SparkEngine | DuckdbEngine", before: str, after: str, is_empty: bool
) -> tuple[str, str]:
    """The queries of both versions; `z` has the values of `x` in another order."""
    old, new = engine.name(before), engine.name(after)
    if before == "STRING" and after in VALUES | FILLER:
        literals = VALUES[FILLER.get(after, after)]
        made = f"cast(cast(v as {new}) as {old})"
    else:
        literals, made = VALUES[FILLER.get(before, before)], f"cast(v as {old})"
    count = len(literals)
    rows = f"select k, {made} as x from (values {_numbered(literals)}) as v(k, v)"
    cast = f"select try_cast(x as {new}) as r from ({rows})"
    is_castable = not is_empty and engine.types(cast) is not None
    held = rows
    if is_castable:
        held = f"select k, x from ({rows}) where try_cast(x as {new}) is not null"
    shifted = (
        f"select a.k, a.x, b.x as z from ({held}) a join ({held}) b on b.k = a.k % {count} + 1"
    )

    def version(type: str) -> str:
        if not is_castable:
            # No value is the same in both types, so that queries can only be bound.
            columns = [("k", "int"), *((name, type) for name in "xz"), ("o", old)]
            return (
                f"select {', '.join(f'cast(null as {t}) as {n}' for n, t in columns)} where 1 = 0"
            )
        return f"select k, cast(x as {type}) as x, cast(z as {type}) as z, z as o from ({shifted})"

    return version(old), version(new)


class SparkEngine:
    """Spark, with the names that its SQL has for types."""

    dialect = "spark"
    _names: ClassVar = {"INT8": "tinyint", "INT16": "smallint", "INT32": "int", "INT64": "bigint", "FLOAT32": "float", "FLOAT64": "double", "TIMESTAMP(us)": "timestamp_ntz", "TIMESTAMPTZ(us)": "timestamp"}  # fmt: skip

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def name(self, type: str) -> str:
        return self._names.get(type, type)

    def fill(self, before: str, after: str, *, is_empty: bool) -> None:
        for name, query in zip(("t0", "t1"), _table(self, before, after, is_empty), strict=True):
            found = self._session.sql(query)
            if not is_empty:
                kept = self._session.createDataFrame(found.collect(), found.schema)
                found = kept.coalesce(1)
            found.createOrReplaceTempView(name)

    def types(self, query: str) -> Types | None:
        try:
            found = self._session.sql(query).schema
        except PySparkException:
            return None
        fields = schema_from_spark(found.jsonValue()).fields
        # Lumos does not follow nulls inside of lists and structures.
        return {each.name.lower(): from_sqlglot(to_sqlglot(each.type)) for each in fields}

    def rows(self, query: str) -> list[Row]:
        return [tuple(each) for each in self._session.sql(query).collect()]


class DuckdbEngine:
    """DuckDB, with the names that it has for types."""

    dialect = "duckdb"
    _names: ClassVar = {"INT8": "tinyint", "INT16": "smallint", "INT32": "int", "INT64": "bigint", "FLOAT32": "float", "FLOAT64": "double", "TIMESTAMP(us)": "timestamp", "TIMESTAMPTZ(us)": "timestamptz", "STRING": "varchar"}  # fmt: skip

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        connection.execute("set threads = 1")

    def name(self, type: str) -> str:
        return self._names.get(type, type)

    def fill(self, before: str, after: str, *, is_empty: bool) -> None:
        for name, query in zip(("t0", "t1"), _table(self, before, after, is_empty), strict=True):
            self._connection.execute(f"create or replace table {name} as {query} order by k")

    def types(self, query: str) -> Types | None:
        import duckdb

        try:
            found = self._connection.execute(f"describe {query}").fetchall()
        except duckdb.Error:
            return None
        return {
            name.lower(): from_sqlglot(sqlglot.exp.DataType.build(type, dialect="duckdb"))
            for name, type, *_ in found
        }

    def rows(self, query: str) -> list[Row]:
        return list(self._connection.execute(query).fetchall())


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What Lumos and the engine say of one query after `x` and `z` became another type.

    `predicted` and `changed` are the columns that get another type, with both types, as Lumos
    says and as the engine does;
    `has_other_values` says that a column of the same type has other values.
    """

    query: str
    before: str
    after: str
    verdict: Verdict
    predicted: Mapping[str, tuple[DataType, DataType]]
    fails: bool
    changed: Mapping[str, tuple[DataType, DataType]]
    has_other_values: bool

    @property
    def is_unsafe(self) -> bool:
        """Whether the query fails, or its result changes, and Lumos says neither."""
        if self.verdict is not Verdict.COMPATIBLE:
            return False
        return (
            self.fails
            or self.has_other_values
            or any(self.predicted.get(name) != types for name, types in self.changed.items())
        )

    @property
    def is_kept(self) -> bool:
        """Whether the engine accepts the query, and gives the same result."""
        return not (self.fails or self.changed or self.has_other_values)

    @property
    def is_false_alarm(self) -> bool:
        return self.is_kept and self.verdict is not Verdict.COMPATIBLE

    def __str__(self) -> str:
        engine = "fails" if self.fails else "other values" if self.has_other_values else "keeps"
        if self.changed:
            engine = ", ".join(
                f"{name} {a.text} -> {b.text}" for name, (a, b) in self.changed.items()
            )
        return f"{self.query}, {self.before} -> {self.after}: {self.verdict}; engine: {engine}"


@dataclass(frozen=True, kw_only=True)
class _Result:
    """The columns of a result: their types, and their values in a fixed order of rows."""

    types: Types
    values: Mapping[str, list[str]]


def outcomes(
    engine: Engine, pairs: Iterable[tuple[str, str]], *, with_values: bool
) -> Iterator[Outcome]:
    """What becomes of every use that the engine accepts before; `with_values` runs it, too."""
    known = uses(engine.dialect)
    for before, after in pairs:
        engine.fill(before, after, is_empty=not with_values)
        old, new = (_results(engine, table, known, with_values) for table in ("t0", "t1"))
        for use in old:
            was, now = old[use], new.get(use)
            changed = {
                name: (type, now.types[name])
                for name, type in was.types.items()
                if now is not None and now.types[name] != type
            }
            verdict, predicted = judged(use.query, engine.dialect, before, after)
            yield Outcome(
                query=use.query, before=before, after=after, verdict=verdict, predicted=predicted,
                fails=now is None, changed=changed,
                has_other_values=now is not None and any(
                    values != now.values[name]
                    for name, values in was.values.items() if name not in changed
                ),
            )  # fmt: skip


def _results(
    engine: Engine, table: str, known: Sequence[Use], with_values: bool
) -> dict[Use, _Result]:
    """The uses that the engine accepts over one version of the table, with what they give."""
    found: dict[Use, _Result] = {}
    prefix = f"with t as (select * from {table})"
    for is_aggregate in (True, False):
        items = [use for use in known if use.item and use.is_aggregate is is_aggregate]
        # Beside an aggregate of distinct values, others see the rows in another order.
        at_once = 1 if is_aggregate and with_values else _AT_ONCE
        for at in range(0, len(items), at_once):
            bound = _bound(engine, prefix, items[at : at + at_once])
            values = _columns(engine, prefix, [*bound], is_aggregate) if with_values else {}
            for use, type in bound.items():
                found[use] = _Result(types={"r": type}, values=values.get(use, {}))
    for use in known:
        types = engine.types(f"{prefix} {use.query}") if not use.item else None
        if types is not None:
            rows = engine.rows(f"{prefix} {use.query}") if with_values else []
            columns = {name: sorted(repr(row[place]) for row in rows)
                       for place, name in enumerate(types)}  # fmt: skip
            found[use] = _Result(types=types, values=columns)
    return found


def _columns(
    engine: Engine, prefix: str, items: Sequence[Use], is_aggregate: bool
) -> dict[Use, dict[str, list[str]]]:
    """The values of expressions, those of rows in the order of `k`."""
    # An estimate differs within its error; COUNT(DISTINCT x) shows which values are equal.
    exact = [use for use in items if not use.item.startswith("approx")]
    if not exact:
        return {}
    rows = engine.rows(f"{prefix} {_select(exact, key=() if is_aggregate else ('k',))}")
    if not is_aggregate:
        rows = [row[1:] for row in sorted(rows, key=lambda row: row[0])]
    return {use: {"r": [repr(row[place]) for row in rows]} for place, use in enumerate(exact)}


def _select(items: Sequence[Use], key: Sequence[str] = ()) -> str:
    return f"select {', '.join([*key, *(f'{use.item} as r{n}' for n, use in enumerate(items))])} from t"


def _bound(engine: Engine, prefix: str, items: Sequence[Use]) -> dict[Use, DataType]:
    """The expressions that the engine accepts, with their types; few binds where most are fine."""
    types = engine.types(f"{prefix} {_select(items)}") if items else {}
    if types is not None:
        return dict(zip(items, types.values(), strict=True))
    if len(items) == 1:
        return {}
    half = len(items) // 2
    return _bound(engine, prefix, items[:half]) | _bound(engine, prefix, items[half:])


@cache
def derivation_from(query: str, dialect: str) -> DatasetDerivation:
    return derivation_of(query, dialect, {"t": _schema("INT32", "INT32")})


def judged(
    query: str, dialect: str, before: str, after: str
) -> tuple[Verdict, dict[str, tuple[DataType, DataType]]]:
    """Lumos's verdict on a query, and the columns of its result that get another type."""
    old, new = (_schema(type, before) for type in (before, after))
    downstream = OneQuery(derivation_from(query, dialect), {"t": old})
    impact = impact_of("t", classify(compare(old, new)), downstream, analyse_derivation)
    if not impact.downstream:
        return Verdict.COMPATIBLE, {}
    (found,) = impact.downstream
    return found.verdict, {
        each.name.lower(): (each.before.type, each.after.type)
        for each in found.columns
        if each.before is not None and each.after is not None
        and not isinstance(each.after.type, Unknown)
    }  # fmt: skip


def _schema(changed: str, kept: str) -> Schema:
    types = {"k": "INT32", "x": changed, "z": changed, "o": kept}
    return Schema(fields=tuple(Field(name=n, type=parse_type(t)) for n, t in types.items()))
