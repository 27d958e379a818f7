"""Which kinds of values the functions take that the parser knows."""

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from lumos.impact.rules.type_uses import ArgumentKind

Kinds = tuple[ArgumentKind, ...]
ANY: Final[Kinds] = (ArgumentKind.ANY,)
_NUMBER: Final[Kinds] = (ArgumentKind.NUMBER,)
_EXACT: Final[Kinds] = (ArgumentKind.EXACT,)
_INTEGER: Final[Kinds] = (ArgumentKind.INTEGER,)
_SHORT: Final[Kinds] = (ArgumentKind.SHORT_INTEGER,)
_TEXT: Final[Kinds] = (ArgumentKind.TEXT,)
_TIME: Final[Kinds] = (ArgumentKind.TIME,)
_TIME_OR_TEXT: Final[Kinds] = (ArgumentKind.TIME, ArgumentKind.TEXT)
BOOLEAN: Final[Kinds] = (ArgumentKind.BOOLEAN,)
NESTED: Final[Kinds] = (ArgumentKind.NESTED,)


def _classes(names: str) -> list[type[exp.Expr]]:
    """Those of the names that this version of the parser has."""
    found = (getattr(exp, name, None) for name in names.split())
    return [each for each in found if isinstance(each, type) and issubclass(each, exp.Expr)]


def _alike(kinds: Kinds, names: str, **others: Kinds) -> dict[type[exp.Expr], Mapping[str, Kinds]]:
    taken_by_all = {"": kinds, **others}
    return dict.fromkeys(_classes(names), taken_by_all)


# By the name of an argument; '' is any other.
_TAKEN: Final[dict[type[exp.Expr], Mapping[str, Kinds]]] = {
    **_alike(
        _TEXT,
        "Upper Lower Trim Replace Length Split RegexpSplit RegexpReplace RegexpLike RegexpILike "
        "Like ILike LikeAny ILikeAny SimilarTo Glob StartsWith EndsWith Contains StrPosition "
        "Initcap MD5 MD5Digest SHA SHA1Digest Reverse Ascii Unicode Levenshtein Translate Soundex "
        "StrToDate StrToTime ParseJSON GroupConcat Unhex FromBase64 StringToArray Overlay "
        "CharacterLength BitLength ByteLength RegexpCount RegexpInstr ParseDatetime ParseTime "
        "TimeStrToDate JSONExtractScalar",
    ),
    **_alike(_TEXT, "Substring", start=_SHORT, length=_SHORT),
    **_alike(_TEXT, "Left Right Pad", expression=_SHORT, fill_pattern=_TEXT),
    **_alike(_TEXT, "Repeat", times=_SHORT),
    **_alike(_TEXT, "RegexpExtract RegexpExtractAll", position=_SHORT, group=_SHORT),
    **_alike(_TEXT, "SplitPart", part_index=_SHORT),
    **_alike(_TEXT, "SHA2 SHA2Digest", length=_SHORT),
    **_alike((ArgumentKind.TEXT, ArgumentKind.NESTED), "JSONExtract JSONBExtract JSONBExtractScalar"),
    **_alike(
        _NUMBER,
        "Abs Ceil Floor Sqrt Cbrt Exp Ln Log Pow Sign Sum Avg Stddev StddevPop StddevSamp Variance "
        "VariancePop Quantile PercentileCont PercentileDisc ApproxQuantile Median Sin Cos Tan Asin "
        "Acos Atan Atan2 Degrees Radians UnixToTime UnixToStr Corr CovarPop CovarSamp SafeDivide "
        "Kurtosis Skewness",
    ),
    **_alike(_NUMBER, "Round Trunc", decimals=_SHORT),
    **_alike(
        _INTEGER,
        "BitwiseAnd BitwiseOr BitwiseXor BitwiseNot Interval BitwiseAndAgg BitwiseOrAgg "
        "BitwiseXorAgg BitwiseCount Limit Offset Fetch",
    ),
    **_alike(_INTEGER, "BitwiseLeftShift BitwiseRightShift", expression=_SHORT),
    **_alike(_SHORT, "Chr Ntile"),
    **_alike((ArgumentKind.INTEGER, ArgumentKind.TEXT), "Hex LowerHex"),
    **_alike(
        _TIME,
        "Year Month Day Week Quarter Hour Minute Second DayOfWeek DayOfMonth DayOfYear WeekOfYear "
        "DayOfWeekIso Extract TimestampTrunc DateTrunc DatetimeTrunc TimeTrunc DateDiff "
        "TimestampDiff DatetimeDiff TimeDiff LastDay TimeToStr TimeToUnix MonthsBetween AtTimeZone "
        "FromTimeZone UnixSeconds UnixMillis UnixMicros ConvertTimezone YearOfWeek",
    ),
    **_alike(
        _TIME,
        "DateAdd DateSub DatetimeAdd DatetimeSub TimestampAdd TimestampSub TimeAdd TimeSub "
        "AddMonths NextDay",
        expression=_SHORT,
    ),
    **_alike(_TIME_OR_TEXT, "TsOrDsToDate TsOrDsToTimestamp TsOrDsToTime TimeStrToTime TsOrDsDiff "
             "StrToUnix TimeStrToUnix Date Timestamp Datetime"),
    **_alike(_TIME_OR_TEXT, "TsOrDsAdd", expression=_SHORT),
    **_alike(BOOLEAN, "And Or Xor Not LogicalAnd LogicalOr CountIf"),
    **_alike(
        ANY,
        "Min Max ArgMax ArgMin ApproxTopK Array VarMap Map MapFromEntries JSONFormat",
    ),
    **_alike((ArgumentKind.DATE,), "UnixDate"),
    **_alike((ArgumentKind.NUMBER, ArgumentKind.TIME), "ToChar"),
    **_alike(ANY, "Lag Lead NthValue", offset=_SHORT),
    # Not those of two lists, or of a list and an element: their types must go together.
    **_alike(NESTED, "Explode ExplodeOuter Posexplode PosexplodeOuter Unnest ArraySize "
             "ArrayToString Inline Bracket MapKeys MapValues Flatten"),
}  # fmt: skip


# Who counts places and days with 32 bits, and refuses more.
_SPARK: Final = frozenset({"spark", "spark2", "databricks", "hive"})
_POSTGRES: Final = frozenset({"postgres", "redshift", "materialize", "risingwave"})
_COUNTING_SHORT: Final = _SPARK | _POSTGRES | {""}
# Functions that refuse longer integers in dialects that otherwise take them.
_PRESTO: Final = frozenset(_classes("Round Trunc"))
_COUNTING_SHORT_IN: Final[Mapping[str, frozenset[type[exp.Expr]]]] = {
    "duckdb": frozenset(_classes("Chr Pad Round Trunc RegexpExtract RegexpExtractAll")),
    **dict.fromkeys(("presto", "trino", "athena"), _PRESTO),
}
# Spark makes the number that it wants of any other one, but only for these.
_CASTING_IN_SPARK: Final = frozenset(
    _classes("Repeat Pad Left Right Substring SplitPart RegexpExtract RegexpExtractAll Chr Hex "
             "BitwiseLeftShift BitwiseRightShift TimestampAdd DatetimeAdd DateAdd AddMonths")
)  # fmt: skip
# Whose STRING_AGG writes any value out.
_LISTING_ANYTHING: Final = frozenset({"spark", "databricks", "duckdb"})
_DIVIDING_FLOATS: Final = frozenset({"duckdb", "mysql", "clickhouse", "doris", "starrocks"})
_WITHOUT_REST_OF_FLOATS: Final = _POSTGRES | {"bigquery", "tsql", "fabric"}


def taken(node: exp.Expr, argument: str, dialect: str = "") -> Kinds | None:
    """The kinds that an argument of a function may have, or None if nobody knows."""
    if isinstance(node, exp.Round | exp.Trunc) and argument == "this" and dialect in _POSTGRES:
        return _EXACT if node.args.get("decimals") is not None else _NUMBER
    if isinstance(node, exp.JSONFormat) and dialect in _SPARK:
        return NESTED
    if isinstance(node, exp.GroupConcat) and argument == "this" and dialect in _LISTING_ANYTHING:
        return ANY
    arguments = _TAKEN.get(type(node))
    if arguments is None:
        return None
    kinds = arguments.get(argument, arguments[""])
    if dialect in _SPARK and type(node) in _CASTING_IN_SPARK:
        return tuple(_CAST.get(kind, kind) for kind in kinds)
    is_short = dialect in _COUNTING_SHORT or type(node) in _COUNTING_SHORT_IN.get(dialect, ())
    if not is_short:
        return tuple(_LONGER.get(kind, kind) for kind in kinds)
    return kinds


_CAST: Final = {
    ArgumentKind.SHORT_INTEGER: ArgumentKind.NUMBER,
    ArgumentKind.INTEGER: ArgumentKind.NUMBER,
}
_LONGER: Final = {ArgumentKind.SHORT_INTEGER: ArgumentKind.INTEGER}


def calculated(node: exp.Expr, dialect: str) -> tuple[Kinds | None, str | None]:
    """The kinds that an operator takes, where it does not take all numbers, and its name."""
    if isinstance(node, exp.IntDiv) and dialect not in _DIVIDING_FLOATS:
        return _EXACT, "DIV"
    if isinstance(node, exp.Mod) and dialect in _WITHOUT_REST_OF_FLOATS:
        return _EXACT, "MOD"
    return None, None


def place(node: exp.Bracket, dialect: str) -> Kinds:
    """What a place in a list may be; ELEMENT_AT, which counts from one, is stricter."""
    return _SHORT if is_element_at(node, dialect) else _INTEGER


def is_element_at(node: exp.Bracket, dialect: str) -> bool:
    """Whether this is ELEMENT_AT, whose key must have the type of the map's keys."""
    return node.args.get("offset") == 1 and dialect in _SPARK


def cast_to_boolean(dialect: str) -> Kinds | None:
    """What can be cast to true or false, where that is not every number."""
    return (
        (ArgumentKind.SHORT_INTEGER, ArgumentKind.TEXT, ArgumentKind.BOOLEAN)
        if dialect in _POSTGRES
        else None
    )


def name_of(node: exp.Expr) -> str:
    """A function as people call it."""
    if isinstance(node, exp.Anonymous):
        return str(node.name).upper()
    if isinstance(node, exp.Func):
        return node.sql_name().upper()
    return node.key.upper()
