"""Functions that take values of any type: what they do with each argument, by dialect.

Those of Spark and DuckDB are compared with the engines over a grid of types; other dialects have
those that their documentation describes alike. A function that is not here is judged by the kinds
that it takes, and is undetermined if nobody knows them.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from sqlglot import exp

from lumos.impact.rules.type_uses import UseOperation
from lumos.model.types import (
    BINARY,
    BOOLEAN,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    JSON,
    STRING,
    UINT64,
    DataType,
)

Acts = tuple[UseOperation, ...]
_COUNTED: Final[Acts] = (UseOperation.COUNTED,)
_GROUPED: Final[Acts] = (UseOperation.GROUPED,)
_HANDED_ON: Final[Acts] = (UseOperation.HANDED_ON,)
_ENCODED: Final[Acts] = (UseOperation.ENCODED,)
_HASHED: Final[Acts] = (UseOperation.HASHED,)
_ONE_OF_EACH: Final[Acts] = (UseOperation.GROUPED, UseOperation.HANDED_ON)


class Use(NamedTuple):
    """What a function does with an argument, and what it returns whatever the argument is.

    Without `argument`, all of its arguments are used like that; without `returns`, the type is that
    of the argument or one that the parser knows.
    """

    acts: Acts
    argument: str | None = None
    returns: DataType | None = None


Function = type[exp.Expr] | str
_EVERYWHERE: Final[dict[Function, Use]] = {
    **dict.fromkeys(
        (exp.AnyValue, exp.First, exp.Last, exp.FirstValue, exp.LastValue, exp.NthValue, exp.Lag,
         exp.Lead, exp.ArgMax, exp.ArgMin),
        Use(_HANDED_ON, "this"),
    ),
    **dict.fromkeys(
        (exp.ArrayAgg, exp.Struct, exp.IgnoreNulls, exp.RespectNulls), Use(_HANDED_ON)
    ),
    exp.ArrayUniqueAgg: Use(_ONE_OF_EACH),
    exp.ApproxDistinct: Use(_GROUPED, "this"),
    **dict.fromkeys((exp.Grouping, exp.GroupingId), Use(_COUNTED)),
    **dict.fromkeys(
        (exp.JSONObject, exp.JSONArray, exp.JSONArrayAgg, exp.JSONFormat), Use(_ENCODED)
    ),
    exp.Typeof: Use(_HASHED),
}  # fmt: skip
_SPARK: Final[dict[Function, Use]] = {
    exp.GroupConcat: Use((UseOperation.SPELLED,), "this"),
    exp.Mode: Use(_ONE_OF_EACH),
    exp.ArrayDistinct: Use(_ONE_OF_EACH),
    exp.Grouping: Use(_COUNTED, returns=INT8),
    exp.GroupingId: Use(_COUNTED, returns=INT64),
    **dict.fromkeys(("isnull", "isnotnull"), Use(_COUNTED, returns=BOOLEAN)),
    **dict.fromkeys(("some", "every"), Use((UseOperation.CALLED,), returns=BOOLEAN)),
    "hash": Use(_HASHED, returns=INT32),
    "xxhash64": Use(_HASHED, returns=INT64),
    "hll_sketch_agg": Use(_HASHED, returns=BINARY),
    "to_csv": Use(_ENCODED, returns=STRING),
}
_DUCKDB: Final[dict[Function, Use]] = {
    exp.Mode: Use(_ONE_OF_EACH),
    exp.ArrayDistinct: Use(_ONE_OF_EACH),
    exp.Grouping: Use(_COUNTED, returns=INT64),
    exp.GroupingId: Use(_COUNTED, returns=INT64),
    exp.GroupConcat: Use((UseOperation.SPELLED,), "this"),
    "arbitrary": Use(_HANDED_ON),
    "entropy": Use(_GROUPED, returns=FLOAT64),
    "hash": Use(_HASHED, returns=UINT64),
    **dict.fromkeys(("to_json", "json_group_array"), Use(_ENCODED, returns=JSON)),
    exp.JSONObject: Use(_ENCODED, returns=JSON),
    exp.JSONArray: Use(_ENCODED, returns=JSON),
}
_DIALECTS: Final[Mapping[str, Mapping[Function, Use]]] = {
    "spark": _EVERYWHERE | _SPARK,
    "databricks": _EVERYWHERE | _SPARK,
    "duckdb": _EVERYWHERE | _DUCKDB,
}
# Where every text can be grouped by, however long it may be.
_GROUPING_BY_TEXT: Final = frozenset(
    {"spark", "spark2", "databricks", "hive", "duckdb", "postgres", "redshift", "bigquery",
     "snowflake", "mysql", "trino", "presto", "athena", "clickhouse", "sqlite"}
)  # fmt: skip


def uses(dialect: str) -> Mapping[Function, Use]:
    """The functions of a dialect that take values of any type."""
    return _DIALECTS.get(dialect, _EVERYWHERE)


def use_of(node: exp.Expr, argument: str, dialect: str) -> Use | None:
    """What a function does with an argument of any type, or None if it is not one of these."""
    use = uses(dialect).get(function_of(node))
    if use is None or use.argument not in (None, argument):
        return None
    return use


def function_of(node: exp.Expr) -> Function:
    """What a function is known by: its class, or its name where the parser has no class for it."""
    return str(node.name).lower() if isinstance(node, exp.Anonymous) else type(node)


def groups_by_text(dialect: str) -> bool:
    """Whether texts of any length can be grouped by, which a CLOB cannot."""
    return dialect in _GROUPING_BY_TEXT
