"""Which kinds of values the functions take that the parser knows."""

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from lumos.model.meeting import Kind

Kinds = tuple[Kind, ...]
ANY: Final[Kinds] = (Kind.ANY,)
_NUMBER: Final[Kinds] = (Kind.NUMBER,)
_INTEGER: Final[Kinds] = (Kind.INTEGER,)
_TEXT: Final[Kinds] = (Kind.TEXT,)
_TIME: Final[Kinds] = (Kind.TIME,)
_TIME_OR_TEXT: Final[Kinds] = (Kind.TIME, Kind.TEXT)
BOOLEAN: Final[Kinds] = (Kind.BOOLEAN,)


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
    **_alike(_TEXT, "Substring", start=_INTEGER, length=_INTEGER),
    **_alike(_TEXT, "Left Right Pad", expression=_INTEGER, fill_pattern=_TEXT),
    **_alike(_TEXT, "Repeat", times=_INTEGER),
    **_alike(_TEXT, "RegexpExtract RegexpExtractAll", position=_INTEGER, group=_INTEGER),
    **_alike(_TEXT, "SplitPart", part_index=_INTEGER),
    **_alike(_TEXT, "SHA2 SHA2Digest", length=_INTEGER),
    **_alike((Kind.TEXT, Kind.NESTED), "JSONExtract JSONBExtract JSONBExtractScalar"),
    **_alike(
        _NUMBER,
        "Abs Ceil Floor Sqrt Cbrt Exp Ln Log Pow Sign Sum Avg Stddev StddevPop StddevSamp Variance "
        "VariancePop Quantile PercentileCont PercentileDisc ApproxQuantile Median Sin Cos Tan Asin "
        "Acos Atan Atan2 Degrees Radians UnixToTime UnixToStr Corr CovarPop CovarSamp SafeDivide "
        "Kurtosis Skewness Trunc",
    ),
    **_alike(_NUMBER, "Round", decimals=_INTEGER),
    **_alike(
        _INTEGER,
        "BitwiseAnd BitwiseOr BitwiseXor BitwiseNot BitwiseLeftShift BitwiseRightShift Chr Hex "
        "Interval BitwiseAndAgg BitwiseOrAgg BitwiseXorAgg Limit Offset Fetch",
    ),
    **_alike(
        _TIME,
        "Year Month Day Week Quarter Hour Minute Second DayOfWeek DayOfMonth DayOfYear WeekOfYear "
        "DayOfWeekIso Extract TimestampTrunc DateTrunc DatetimeTrunc TimeTrunc DateDiff "
        "TimestampDiff DatetimeDiff TimeDiff LastDay TimeToStr TimeToUnix MonthsBetween AtTimeZone "
        "FromTimeZone UnixSeconds UnixMillis UnixMicros UnixDate ConvertTimezone YearOfWeek",
    ),
    **_alike(
        _TIME,
        "DateAdd DateSub DatetimeAdd DatetimeSub TimestampAdd TimestampSub TimeAdd TimeSub "
        "AddMonths NextDay",
        expression=_INTEGER,
    ),
    **_alike(_TIME_OR_TEXT, "TsOrDsToDate TsOrDsToTimestamp TsOrDsToTime TimeStrToTime TsOrDsDiff "
             "StrToUnix TimeStrToUnix Date Timestamp Datetime"),
    **_alike(_TIME_OR_TEXT, "TsOrDsAdd", expression=_INTEGER),
    **_alike(BOOLEAN, "And Or Xor Not LogicalAnd LogicalOr CountIf"),
    **_alike(
        ANY,
        "Min Max AnyValue First Last ArrayAgg ArrayUniqueAgg FirstValue LastValue NthValue "
        "ArgMax ArgMin Struct JSONObject JSONArray JSONArrayAgg IgnoreNulls RespectNulls "
        "ApproxTopK Array VarMap Map Typeof MapFromEntries",
    ),
    **_alike(ANY, "Lag Lead", offset=_INTEGER),
    **_alike((Kind.NESTED,), "Explode ExplodeOuter Posexplode PosexplodeOuter Unnest ArraySize "
             "ArrayContains ArrayConcat ArrayToString Inline Bracket MapKeys MapValues Flatten"),
}  # fmt: skip


def taken(node: exp.Expr, argument: str) -> Kinds | None:
    """The kinds that an argument of a function may have, or None if nobody knows."""
    arguments = _TAKEN.get(type(node))
    if arguments is None:
        return None
    return arguments.get(argument, arguments[""])


def name_of(node: exp.Expr) -> str:
    """A function as people call it."""
    if isinstance(node, exp.Anonymous):
        return str(node.name).upper()
    if isinstance(node, exp.Func):
        return node.sql_name().upper()
    return node.key.upper()
