"""Converts types of any SQL dialect from their text, such as `NUMBER(10,2)`, to data types."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from sqlglot import exp
from sqlglot.errors import SqlglotError

from lumos.model.type_path import MAX_EXPANSION_LENGTH, TOO_DEEP, TOO_LARGE
from lumos.model.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    INTERVAL,
    JSON,
    MAX_DEPTH,
    STRING,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    UUID,
    Array,
    Binary,
    DataType,
    Decimal,
    Enum,
    Map,
    Member,
    String,
    Struct,
    Time,
    Timestamp,
    Unit,
    Unknown,
)

_Type: Final = exp.DataType.Type
# The names of dialects in SQLAlchemy that differ from those in sqlglot.
_DIALECTS: Final = {
    "mssql": "tsql",
    "postgresql": "postgres",
    "mariadb": "mysql",
    "clickhousedb": "clickhouse",
    "awsathena": "athena",
    "teradatasql": "teradata",
}
_PLAIN: Final[dict[object, DataType]] = {
    _Type.BOOLEAN: BOOLEAN,
    _Type.TINYINT: INT8,
    _Type.SMALLINT: INT16,
    _Type.MEDIUMINT: INT32,
    _Type.INT: INT32,
    _Type.BIGINT: INT64,
    _Type.INT128: Decimal(39, 0),
    _Type.UTINYINT: UINT8,
    _Type.USMALLINT: UINT16,
    _Type.UMEDIUMINT: UINT32,
    _Type.UINT: UINT32,
    _Type.UBIGINT: UINT64,
    _Type.UINT128: Decimal(39, 0),
    _Type.FLOAT: FLOAT32,
    _Type.DOUBLE: FLOAT64,
    _Type.DATE: DATE,
    _Type.DATE32: DATE,
    _Type.INTERVAL: INTERVAL,
    _Type.UUID: UUID,
    _Type.JSON: JSON,
    _Type.JSONB: JSON,
    _Type.VARIANT: JSON,
    **dict.fromkeys((_Type.TEXT, _Type.MEDIUMTEXT, _Type.LONGTEXT, _Type.TINYTEXT), STRING),
    **dict.fromkeys(
        (_Type.VARBINARY, _Type.BLOB, _Type.MEDIUMBLOB, _Type.LONGBLOB, _Type.TINYBLOB), BINARY
    ),
}
_STRINGS: Final = frozenset(
    (_Type.CHAR, _Type.NCHAR, _Type.VARCHAR, _Type.NVARCHAR, _Type.BPCHAR, _Type.NAME)
)
_DECIMALS: Final = frozenset(
    (_Type.DECIMAL, _Type.BIGDECIMAL, _Type.MONEY, _Type.SMALLMONEY, _Type.DECIMAL32,
     _Type.DECIMAL64, _Type.DECIMAL128, _Type.DECIMAL256)
)  # fmt: skip
_TIMESTAMPS: Final[dict[object, tuple[Unit, bool]]] = {
    _Type.TIMESTAMP: ("us", False),
    _Type.TIMESTAMPNTZ: ("us", False),
    _Type.DATETIME: ("us", False),
    _Type.DATETIME2: ("us", False),
    _Type.DATETIME64: ("ms", False),
    _Type.SMALLDATETIME: ("s", False),
    _Type.TIMESTAMP_S: ("s", False),
    _Type.TIMESTAMP_MS: ("ms", False),
    _Type.TIMESTAMP_NS: ("ns", False),
    _Type.TIMESTAMPTZ: ("us", True),
    _Type.TIMESTAMPLTZ: ("us", True),
}
_UNITS: Final[tuple[Unit, ...]] = ("s", "ms", "ms", "ms", "us", "us", "us", "ns", "ns", "ns")
_MONEY: Final = Decimal(19, 4)


def sqlglot_dialect(name: str) -> str:
    """The name of a dialect of SQLAlchemy in sqlglot."""
    return _DIALECTS.get(name, name)


@lru_cache(maxsize=4096)
def type_of_text(text: str, dialect: str) -> DataType:
    """The data type; types without an equivalent are UNKNOWN with their native name."""
    # SQLite stores any integer in up to 64 bits, whatever its type is called.
    if dialect == "sqlite" and "INT" in text.upper():
        return INT64
    try:
        parsed = exp.DataType.build(text, dialect=sqlglot_dialect(dialect))
    except (SqlglotError, ValueError):
        return Unknown(text)
    found = _convert(parsed, text, 1)
    return TOO_LARGE if len(found.text) > MAX_EXPANSION_LENGTH else found


def _convert(parsed: exp.DataType, text: str, depth: int) -> DataType:
    if depth >= MAX_DEPTH:
        return TOO_DEEP
    kind = parsed.this
    parameters = parsed.expressions

    def inner(node: exp.Expression) -> DataType:
        if not isinstance(node, exp.DataType):
            return Unknown(node.sql())
        return _convert(node, node.sql(), depth + 1)

    if kind in _NESTED and parameters:
        return _NESTED[kind](parameters, inner)
    if kind in (_Type.ENUM, _Type.ENUM8, _Type.ENUM16) and parameters:
        return Enum([each.name for each in parameters])
    if kind in _PLAIN:
        return _PLAIN[kind]
    numbers = [int(each.name) for each in parameters if each.name.isascii() and each.name.isdigit()]
    try:
        if kind in _STRINGS:
            return String(numbers[0] if numbers else None)
        if kind == _Type.BINARY:
            return Binary(numbers[0] if numbers else None)
        if kind in _DECIMALS:
            default = _MONEY if kind in (_Type.MONEY, _Type.SMALLMONEY) else Decimal()
            return Decimal(*numbers[:2]) if numbers else default
        if kind == _Type.TIME:
            return Time(_unit(numbers, "us"))
        if kind in _TIMESTAMPS:
            unit, zoned = _TIMESTAMPS[kind]
            return Timestamp(_unit(numbers, unit), zoned=zoned)
    except ValueError:
        return Unknown(text)
    return Unknown(text)


def _unit(numbers: Sequence[int], missing: Unit) -> Unit:
    return _UNITS[min(numbers[0], len(_UNITS) - 1)] if numbers else missing


def _struct(
    parameters: Sequence[exp.Expression], inner: Callable[[exp.Expression], DataType]
) -> DataType:
    members = []
    for number, each in enumerate(parameters, start=1):
        if isinstance(each, exp.ColumnDef) and each.kind is not None:
            members.append(Member(each.name, inner(each.kind)))
        else:
            members.append(Member(f"_{number}", inner(each)))
    return Struct(members)


_NESTED: Final[
    dict[
        object,
        Callable[[Sequence[exp.Expression], Callable[[exp.Expression], DataType]], DataType],
    ]
] = {
    _Type.ARRAY: lambda parameters, inner: Array(inner(parameters[0])),
    _Type.LIST: lambda parameters, inner: Array(inner(parameters[0])),
    _Type.MAP: lambda parameters, inner: (
        Map(inner(parameters[0]), inner(parameters[1])) if len(parameters) == 2 else Unknown("map")
    ),
    _Type.STRUCT: _struct,
    _Type.LOWCARDINALITY: lambda parameters, inner: inner(parameters[0]),
}
