"""Argument types of SQL functions, by dialect.

Functions that accept any type were tested with many types on Spark and DuckDB. For other dialects,
the list follows their documentation. For all other functions, the impact depends on the kinds of
types that an argument accepts; if these are unknown, it is undetermined.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from sqlglot import exp

from lumos.impact.rules.type_uses import ArgumentKind, UseOperation
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

Kinds = tuple[ArgumentKind, ...]
ANY: Final[Kinds] = (ArgumentKind.ANY,)
_NUMBER: Final[Kinds] = (ArgumentKind.NUMBER,)
_EXACT_NUMBER: Final[Kinds] = (ArgumentKind.EXACT,)
_INTEGER: Final[Kinds] = (ArgumentKind.INTEGER,)
_SHORT_INTEGER: Final[Kinds] = (ArgumentKind.SHORT_INTEGER,)
_TEXT: Final[Kinds] = (ArgumentKind.TEXT,)
_TEXT_OR_NESTED: Final[Kinds] = (ArgumentKind.TEXT, ArgumentKind.NESTED)
_TIME: Final[Kinds] = (ArgumentKind.TIME,)
_TIME_OR_TEXT: Final[Kinds] = (ArgumentKind.TIME, ArgumentKind.TEXT)
CONDITION: Final[Kinds] = (ArgumentKind.BOOLEAN,)
COLLECTION: Final[Kinds] = (ArgumentKind.NESTED,)


def _classes(names: str) -> list[type[exp.Expr]]:
    """The sqlglot classes with these names, as far as the installed version has them."""
    candidates = (getattr(exp, name, None) for name in names.split())
    return [each for each in candidates if isinstance(each, type) and issubclass(each, exp.Expr)]


def _same_kinds(
    kinds: Kinds, class_names: str, **others: Kinds
) -> dict[type[exp.Expr], Mapping[str, Kinds]]:
    """Map each class to the kinds of its arguments; `others` are the kinds of named arguments."""
    kinds_by_argument = {"": kinds, **others}
    return dict.fromkeys(_classes(class_names), kinds_by_argument)


# Accepted kinds by argument name; '' applies to all arguments that are not named.
_ACCEPTED: Final[dict[type[exp.Expr], Mapping[str, Kinds]]] = {
    **_same_kinds(
        _TEXT,
        "Upper Lower Trim Replace Length Split RegexpSplit RegexpReplace RegexpLike RegexpILike "
        "Like ILike LikeAny ILikeAny SimilarTo Glob StartsWith EndsWith Contains StrPosition "
        "Initcap MD5 MD5Digest SHA SHA1Digest Reverse Ascii Unicode Levenshtein Translate Soundex "
        "StrToDate StrToTime ParseJSON GroupConcat Unhex FromBase64 StringToArray Overlay "
        "CharacterLength BitLength ByteLength RegexpCount RegexpInstr ParseDatetime ParseTime "
        "TimeStrToDate JSONExtractScalar",
    ),
    **_same_kinds(_TEXT, "Substring", start=_SHORT_INTEGER, length=_SHORT_INTEGER),
    **_same_kinds(_TEXT, "Left Right Pad", expression=_SHORT_INTEGER, fill_pattern=_TEXT),
    **_same_kinds(_TEXT, "Repeat", times=_SHORT_INTEGER),
    **_same_kinds(
        _TEXT, "RegexpExtract RegexpExtractAll", position=_SHORT_INTEGER, group=_SHORT_INTEGER
    ),
    **_same_kinds(_TEXT, "SplitPart", part_index=_SHORT_INTEGER),
    **_same_kinds(_TEXT, "SHA2 SHA2Digest", length=_SHORT_INTEGER),
    **_same_kinds(_TEXT_OR_NESTED, "JSONExtract JSONBExtract JSONBExtractScalar"),
    **_same_kinds(
        _NUMBER,
        "Abs Ceil Floor Sqrt Cbrt Exp Ln Log Pow Sign Sum Avg Stddev StddevPop StddevSamp Variance "
        "VariancePop Quantile PercentileCont PercentileDisc ApproxQuantile Median Sin Cos Tan Asin "
        "Acos Atan Atan2 Degrees Radians UnixToTime UnixToStr Corr CovarPop CovarSamp SafeDivide "
        "Kurtosis Skewness",
    ),
    **_same_kinds(_NUMBER, "Round Trunc", decimals=_SHORT_INTEGER),
    **_same_kinds(
        _INTEGER,
        "BitwiseAnd BitwiseOr BitwiseXor BitwiseNot Interval BitwiseAndAgg BitwiseOrAgg "
        "BitwiseXorAgg BitwiseCount Limit Offset Fetch",
    ),
    **_same_kinds(_INTEGER, "BitwiseLeftShift BitwiseRightShift", expression=_SHORT_INTEGER),
    **_same_kinds(_SHORT_INTEGER, "Chr Ntile"),
    **_same_kinds((ArgumentKind.INTEGER, ArgumentKind.TEXT), "Hex LowerHex"),
    **_same_kinds(
        _TIME,
        "Year Month Day Week Quarter Hour Minute Second DayOfWeek DayOfMonth DayOfYear WeekOfYear "
        "DayOfWeekIso Extract TimestampTrunc DateTrunc DatetimeTrunc TimeTrunc DateDiff "
        "TimestampDiff DatetimeDiff TimeDiff LastDay TimeToStr TimeToUnix MonthsBetween AtTimeZone "
        "FromTimeZone UnixSeconds UnixMillis UnixMicros ConvertTimezone YearOfWeek",
    ),
    **_same_kinds(
        _TIME,
        "DateAdd DateSub DatetimeAdd DatetimeSub TimestampAdd TimestampSub TimeAdd TimeSub "
        "AddMonths NextDay",
        expression=_SHORT_INTEGER,
    ),
    **_same_kinds(_TIME_OR_TEXT, "TsOrDsToDate TsOrDsToTimestamp TsOrDsToTime TimeStrToTime "
             "TsOrDsDiff StrToUnix TimeStrToUnix Date Timestamp Datetime"),
    **_same_kinds(_TIME_OR_TEXT, "TsOrDsAdd", expression=_SHORT_INTEGER),
    **_same_kinds(CONDITION, "And Or Xor Not LogicalAnd LogicalOr CountIf"),
    **_same_kinds(
        ANY,
        "Min Max ArgMax ArgMin ApproxTopK Array VarMap Map MapFromEntries JSONFormat",
    ),
    **_same_kinds((ArgumentKind.DATE,), "UnixDate"),
    **_same_kinds((ArgumentKind.NUMBER, ArgumentKind.TIME), "ToChar"),
    **_same_kinds(ANY, "Lag Lead NthValue", offset=_SHORT_INTEGER),
    # Functions of two arrays, or of an array and an element, are omitted: their types must match.
    **_same_kinds(COLLECTION, "Explode ExplodeOuter Posexplode PosexplodeOuter Unnest ArraySize "
             "ArrayToString Inline Bracket MapKeys MapValues Flatten"),
}  # fmt: skip


_SPARK: Final = frozenset({"spark", "spark2", "databricks", "hive"})
_POSTGRES: Final = frozenset({"postgres", "redshift", "materialize", "risingwave"})
# Dialects in which arguments for positions and days must be 32-bit integers.
_SHORT_POSITIONS: Final = _SPARK | _POSTGRES | {""}
# Functions that reject 64-bit integers in dialects that otherwise accept them.
_PRESTO_SHORT_ARGUMENTS: Final = frozenset(_classes("Round Trunc"))
_SHORT_ARGUMENTS: Final[Mapping[str, frozenset[type[exp.Expr]]]] = {
    "duckdb": frozenset(_classes("Chr Pad Round Trunc RegexpExtract RegexpExtractAll")),
    **dict.fromkeys(("presto", "trino", "athena"), _PRESTO_SHORT_ARGUMENTS),
}
# Functions for which Spark casts any number to the expected type.
_CASTING_IN_SPARK: Final = frozenset(
    _classes("Repeat Pad Left Right Substring SplitPart RegexpExtract RegexpExtractAll Chr Hex "
             "BitwiseLeftShift BitwiseRightShift TimestampAdd DatetimeAdd DateAdd AddMonths")
)  # fmt: skip
# Dialects whose STRING_AGG accepts any type.
_STRING_AGG_OF_ANY_TYPE: Final = frozenset({"spark", "databricks", "duckdb"})
# Dialects whose DIV accepts floats, and those whose MOD rejects them.
_FLOAT_DIV: Final = frozenset({"duckdb", "mysql", "clickhouse", "doris", "starrocks"})
_WITHOUT_FLOAT_MOD: Final = _POSTGRES | {"bigquery", "tsql", "fabric"}


def accepted_kinds(node: exp.Expr, argument: str, dialect: str = "") -> Kinds | None:
    """The kinds that an argument of a function accepts; None if unknown."""
    if isinstance(node, exp.Round | exp.Trunc) and argument == "this" and dialect in _POSTGRES:
        return _EXACT_NUMBER if node.args.get("decimals") is not None else _NUMBER
    if isinstance(node, exp.JSONFormat) and dialect in _SPARK:
        return COLLECTION
    if (
        isinstance(node, exp.GroupConcat)
        and argument == "this"
        and dialect in _STRING_AGG_OF_ANY_TYPE
    ):
        return ANY
    arguments = _ACCEPTED.get(type(node))
    if arguments is None:
        return None
    kinds = arguments.get(argument, arguments[""])
    if dialect in _SPARK and type(node) in _CASTING_IN_SPARK:
        return tuple(_CASTABLE_KINDS.get(kind, kind) for kind in kinds)
    is_short = dialect in _SHORT_POSITIONS or type(node) in _SHORT_ARGUMENTS.get(dialect, ())
    if not is_short:
        return tuple(_WIDER_KIND.get(kind, kind) for kind in kinds)
    return kinds


_CASTABLE_KINDS: Final = {
    ArgumentKind.SHORT_INTEGER: ArgumentKind.NUMBER,
    ArgumentKind.INTEGER: ArgumentKind.NUMBER,
}
_WIDER_KIND: Final = {ArgumentKind.SHORT_INTEGER: ArgumentKind.INTEGER}


def operator_kinds(node: exp.Expr, dialect: str) -> tuple[Kinds | None, str | None]:
    """The kinds that an operator accepts and its name, if it does not accept all numbers."""
    if isinstance(node, exp.IntDiv) and dialect not in _FLOAT_DIV:
        return _EXACT_NUMBER, "DIV"
    if isinstance(node, exp.Mod) and dialect in _WITHOUT_FLOAT_MOD:
        return _EXACT_NUMBER, "MOD"
    return None, None


def index_kinds(node: exp.Bracket, dialect: str) -> Kinds:
    """The kinds that an array index accepts; ELEMENT_AT in Spark is stricter."""
    return _SHORT_INTEGER if is_element_at(node, dialect) else _INTEGER


def is_element_at(node: exp.Bracket, dialect: str) -> bool:
    """Whether this is ELEMENT_AT, whose key must have the key type of the map."""
    return node.args.get("offset") == 1 and dialect in _SPARK


def boolean_cast_kinds(dialect: str) -> Kinds | None:
    """The kinds that can be cast to BOOLEAN, in dialects that restrict them."""
    return (
        (ArgumentKind.SHORT_INTEGER, ArgumentKind.TEXT, ArgumentKind.BOOLEAN)
        if dialect in _POSTGRES
        else None
    )


def name_of(node: exp.Expr) -> str:
    """The name of a function."""
    if isinstance(node, exp.Anonymous):
        return str(node.name).upper()
    if isinstance(node, exp.Func):
        return node.sql_name().upper()
    return node.key.upper()


Operations = tuple[UseOperation, ...]
_COUNTED: Final[Operations] = (UseOperation.COUNTED,)
_GROUPED: Final[Operations] = (UseOperation.GROUPED,)
_PASSED_THROUGH: Final[Operations] = (UseOperation.PASSED_THROUGH,)
_ENCODED: Final[Operations] = (UseOperation.ENCODED,)
_HASHED: Final[Operations] = (UseOperation.HASHED,)
_DISTINCT_VALUES: Final[Operations] = (UseOperation.GROUPED, UseOperation.PASSED_THROUGH)


class FunctionUse(NamedTuple):
    """The operations of a function on an argument, and the type that it returns.

    Without `argument`, this applies to all arguments. Without `returns`, the function returns the
    type of the argument, or the type that the parser determines.
    """

    operations: Operations
    argument: str | None = None
    returns: DataType | None = None


Function = type[exp.Expr] | str
_ANY_TYPE_EVERYWHERE: Final[dict[Function, FunctionUse]] = {
    **dict.fromkeys(
        (exp.AnyValue, exp.First, exp.Last, exp.FirstValue, exp.LastValue, exp.NthValue, exp.Lag,
         exp.Lead, exp.ArgMax, exp.ArgMin),
        FunctionUse(_PASSED_THROUGH, "this"),
    ),
    **dict.fromkeys(
        (exp.ArrayAgg, exp.Struct, exp.IgnoreNulls, exp.RespectNulls), FunctionUse(_PASSED_THROUGH)
    ),
    exp.ArrayUniqueAgg: FunctionUse(_DISTINCT_VALUES),
    exp.ApproxDistinct: FunctionUse(_GROUPED, "this"),
    **dict.fromkeys((exp.Grouping, exp.GroupingId), FunctionUse(_COUNTED)),
    **dict.fromkeys(
        (exp.JSONObject, exp.JSONArray, exp.JSONArrayAgg, exp.JSONFormat), FunctionUse(_ENCODED)
    ),
    exp.Typeof: FunctionUse(_HASHED),
}  # fmt: skip
_ANY_TYPE_IN_SPARK: Final[dict[Function, FunctionUse]] = {
    exp.GroupConcat: FunctionUse((UseOperation.FORMATTED,), "this"),
    exp.Mode: FunctionUse(_DISTINCT_VALUES),
    exp.ArrayDistinct: FunctionUse(_DISTINCT_VALUES),
    exp.Grouping: FunctionUse(_COUNTED, returns=INT8),
    exp.GroupingId: FunctionUse(_COUNTED, returns=INT64),
    **dict.fromkeys(("isnull", "isnotnull"), FunctionUse(_COUNTED, returns=BOOLEAN)),
    **dict.fromkeys(("some", "every"), FunctionUse((UseOperation.CALLED,), returns=BOOLEAN)),
    "hash": FunctionUse(_HASHED, returns=INT32),
    "xxhash64": FunctionUse(_HASHED, returns=INT64),
    "hll_sketch_agg": FunctionUse(_HASHED, returns=BINARY),
    "to_csv": FunctionUse(_ENCODED, returns=STRING),
}
_ANY_TYPE_IN_DUCKDB: Final[dict[Function, FunctionUse]] = {
    exp.Mode: FunctionUse(_DISTINCT_VALUES),
    exp.ArrayDistinct: FunctionUse(_DISTINCT_VALUES),
    exp.Grouping: FunctionUse(_COUNTED, returns=INT64),
    exp.GroupingId: FunctionUse(_COUNTED, returns=INT64),
    exp.GroupConcat: FunctionUse((UseOperation.FORMATTED,), "this"),
    "arbitrary": FunctionUse(_PASSED_THROUGH),
    "entropy": FunctionUse(_GROUPED, returns=FLOAT64),
    "hash": FunctionUse(_HASHED, returns=UINT64),
    **dict.fromkeys(("to_json", "json_group_array"), FunctionUse(_ENCODED, returns=JSON)),
    exp.JSONObject: FunctionUse(_ENCODED, returns=JSON),
    exp.JSONArray: FunctionUse(_ENCODED, returns=JSON),
}
_DIALECTS: Final[Mapping[str, Mapping[Function, FunctionUse]]] = {
    "spark": _ANY_TYPE_EVERYWHERE | _ANY_TYPE_IN_SPARK,
    "databricks": _ANY_TYPE_EVERYWHERE | _ANY_TYPE_IN_SPARK,
    "duckdb": _ANY_TYPE_EVERYWHERE | _ANY_TYPE_IN_DUCKDB,
}
# Dialects that can group by strings of any length.
_GROUP_BY_ANY_STRING: Final = frozenset(
    {"spark", "spark2", "databricks", "hive", "duckdb", "postgres", "redshift", "bigquery",
     "snowflake", "mysql", "trino", "presto", "athena", "clickhouse", "sqlite"}
)  # fmt: skip


def functions_of_any_type(dialect: str) -> Mapping[Function, FunctionUse]:
    """The functions of a dialect that accept any type."""
    return _DIALECTS.get(dialect, _ANY_TYPE_EVERYWHERE)


def use_of(node: exp.Expr, argument: str, dialect: str) -> FunctionUse | None:
    """How a function that accepts any type uses an argument; None if it is not listed."""
    use = functions_of_any_type(dialect).get(function_of(node))
    if use is None or use.argument not in (None, argument):
        return None
    return use


def function_of(node: exp.Expr) -> Function:
    """The key of a function: its class, or its name if the parser has no class for it."""
    return str(node.name).lower() if isinstance(node, exp.Anonymous) else type(node)


def can_group_by_any_string(dialect: str) -> bool:
    """Whether the dialect can group by strings of any length; others cannot group by CLOBs."""
    return dialect in _GROUP_BY_ANY_STRING
