"""Conversion between types of Lumos and of sqlglot."""

from functools import lru_cache
from typing import Final

from sqlglot import exp

from lumos.model.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    INTERVAL,
    JSON,
    NULL,
    STRING,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    UNKNOWN,
    UUID,
    Array,
    Binary,
    DataType,
    Decimal,
    Duration,
    Enum,
    Map,
    Member,
    String,
    Struct,
    Time,
    Timestamp,
)

_T = exp.DType
_TO_SQLGLOT: Final[dict[DataType, exp.DType]] = {
    BOOLEAN: _T.BOOLEAN, INT8: _T.TINYINT, INT16: _T.SMALLINT, INT32: _T.INT, INT64: _T.BIGINT,
    UINT8: _T.UTINYINT, UINT16: _T.USMALLINT, UINT32: _T.UINT, UINT64: _T.UBIGINT,
    FLOAT16: _T.FLOAT, FLOAT32: _T.FLOAT, FLOAT64: _T.DOUBLE, DATE: _T.DATE,
    INTERVAL: _T.INTERVAL, UUID: _T.UUID, JSON: _T.JSON, NULL: _T.NULL,
}  # fmt: skip
_FROM_SQLGLOT: Final[dict[exp.DType, DataType]] = {
    **{kind: type for type, kind in _TO_SQLGLOT.items() if type != FLOAT16},
    _T.MEDIUMINT: INT32, _T.UMEDIUMINT: UINT32, _T.INT128: Decimal(39), _T.INT256: Decimal(78),
    _T.UINT128: Decimal(39), _T.UINT256: Decimal(78), _T.BIT: BOOLEAN,
    _T.SMALLSERIAL: INT16, _T.SERIAL: INT32, _T.BIGSERIAL: INT64,
    _T.MONEY: Decimal(19, 4), _T.SMALLMONEY: Decimal(10, 4), _T.BIGDECIMAL: Decimal(76, 38),
    _T.BLOB: BINARY, _T.LONGBLOB: BINARY, _T.MEDIUMBLOB: BINARY, _T.TINYBLOB: BINARY,
    _T.DATE32: DATE, _T.JSONB: JSON, _T.VARIANT: JSON, _T.YEAR: INT16,
    _T.TIME: Time(), _T.TIMETZ: Time(), _T.TIMESTAMP: Timestamp(), _T.TIMESTAMPNTZ: Timestamp(),
    _T.TIMESTAMP_S: Timestamp("s"), _T.TIMESTAMP_MS: Timestamp("ms"),
    _T.TIMESTAMP_NS: Timestamp("ns"), _T.DATETIME: Timestamp(), _T.DATETIME2: Timestamp(),
    _T.SMALLDATETIME: Timestamp("s"), _T.DATETIME64: Timestamp(),
    _T.TIMESTAMPTZ: Timestamp(zoned=True), _T.TIMESTAMPLTZ: Timestamp(zoned=True),
}  # fmt: skip
_TEXT_TYPES: Final = frozenset(
    {_T.TEXT, _T.VARCHAR, _T.CHAR, _T.NCHAR, _T.NVARCHAR, _T.BPCHAR, _T.NAME, _T.FIXEDSTRING,
     _T.TINYTEXT, _T.MEDIUMTEXT, _T.LONGTEXT, _T.ENUM, _T.ENUM8, _T.ENUM16, _T.LOWCARDINALITY}
)  # fmt: skip
_BINARY_TYPES: Final = frozenset({_T.BINARY, _T.VARBINARY})
_DECIMAL_TYPES: Final = frozenset(
    {_T.DECIMAL, _T.DECIMAL32, _T.DECIMAL64, _T.DECIMAL128, _T.DECIMAL256, _T.UDECIMAL}
)
_ARRAY_TYPES: Final = frozenset({_T.ARRAY, _T.LIST})
_STRUCT_TYPES: Final = frozenset({_T.STRUCT, _T.NESTED})


@lru_cache(maxsize=4096)
def to_sqlglot(type: DataType) -> exp.DataType:
    """The sqlglot type of a Lumos type, or sqlglot's UNKNOWN."""
    match type:
        case Decimal(int(precision), scale):
            return _build_type(_T.DECIMAL, _parameter(precision), _parameter(scale))
        case Decimal():
            return _build_type(_T.DECIMAL)
        case String(int(length)):
            return _build_type(_T.VARCHAR, _parameter(length))
        case String() | Enum():
            return _build_type(_T.TEXT)
        case Binary():
            return _build_type(_T.VARBINARY)
        case Time():
            return _build_type(_T.TIME)
        case Timestamp(_, zoned):
            return _build_type(_T.TIMESTAMPTZ if zoned else _T.TIMESTAMPNTZ)
        case Duration():
            return _build_type(_T.INTERVAL)
        case Array(element):
            return _build_nested_type(_T.ARRAY, to_sqlglot(element).copy())
        case Map(key, value):
            return _build_nested_type(_T.MAP, to_sqlglot(key).copy(), to_sqlglot(value).copy())
        case Struct(members):
            return _build_nested_type(
                _T.STRUCT,
                *(
                    exp.ColumnDef(
                        this=exp.to_identifier(member.name), kind=to_sqlglot(member.type).copy()
                    )
                    for member in members
                ),
            )
        case _:
            return _build_type(_TO_SQLGLOT.get(type, _T.UNKNOWN))


def from_sqlglot(type: exp.Expr | None) -> DataType:
    """The Lumos type of a sqlglot type, or UNKNOWN."""
    if not isinstance(type, exp.DataType):
        return UNKNOWN
    kind = type.this
    if kind in _TEXT_TYPES:
        length = _type_parameters(type)
        return String(length[0]) if length and kind not in (_T.ENUM, _T.LOWCARDINALITY) else STRING
    if kind in _BINARY_TYPES:
        return BINARY
    if kind in _DECIMAL_TYPES:
        return _decimal(_type_parameters(type))
    if kind in _ARRAY_TYPES:
        parameters = type.expressions
        return Array(from_sqlglot(parameters[0]) if parameters else UNKNOWN)
    if kind is _T.MAP and len(type.expressions) == 2:
        return Map(from_sqlglot(type.expressions[0]), from_sqlglot(type.expressions[1]))
    if kind in _STRUCT_TYPES:
        return _struct(type)
    return _FROM_SQLGLOT.get(kind, UNKNOWN)


def _struct(type: exp.DataType) -> DataType:
    members = []
    for each in type.expressions:
        if not isinstance(each, exp.ColumnDef):
            return UNKNOWN
        members.append(Member(each.name, from_sqlglot(each.args.get("kind"))))
    return Struct(members) if members else UNKNOWN


def _decimal(parameters: list[int]) -> DataType:
    try:
        return Decimal(*parameters[:2]) if parameters else Decimal()
    except ValueError:
        return UNKNOWN


def _type_parameters(type: exp.DataType) -> list[int]:
    numbers = []
    for each in type.expressions:
        parameter = each.this if isinstance(each, exp.DataTypeParam) else each
        if (
            isinstance(parameter, exp.Literal)
            and parameter.this.isdigit()
            and int(parameter.this) > 0
        ):
            numbers.append(int(parameter.this))
        elif isinstance(parameter, exp.Literal) and parameter.this == "0":
            numbers.append(0)
    return numbers if not numbers or numbers[0] > 0 else []


def _build_type(kind: exp.DType, *parameters: exp.Expr) -> exp.DataType:
    return exp.DataType(this=kind, expressions=list(parameters))


def _build_nested_type(kind: exp.DType, *parameters: exp.Expr) -> exp.DataType:
    return exp.DataType(this=kind, expressions=list(parameters), nested=True)


def _parameter(value: int) -> exp.Expr:
    return exp.DataTypeParam(this=exp.Literal.number(value))
