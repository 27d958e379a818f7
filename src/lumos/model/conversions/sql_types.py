"""Type texts of Postgres, Snowflake, BigQuery and Hive, from and to Lumos types.

| direction      | lost                                                                         |
|----------------|------------------------------------------------------------------------------|
| from any       | CHAR's padding; fractions of seconds between the units (timestamp(2) is ms)   |
| from any       | maximum lengths of bytes: BINARY(n) in Lumos has a fixed length                |
| from Postgres  | citext (STRING), the zone of timetz, the fields of intervals, array sizes      |
| from Snowflake | the widths of integers (all DECIMAL(38,0)) and floats; LTZ or TZ               |
| to any         | UINTn (the next signed type), FLOAT16, ENUM symbols, invalid UNKNOWN names  |
| to Postgres    | INT8, units below us, NOT NULL inside; MAP, STRUCT, UNION (jsonb)              |
| to Snowflake   | integers and DURATION (NUMBER), FLOAT32, UUID, INTERVAL (text), UNION (VARIANT) |
| to BigQuery    | integers (INT64), units (us), MAP, arrays in arrays (structs), UNION (JSON)    |
| to Hive        | NOT NULL, units (ns), TIME, UUID, JSON, INTERVAL (string), DURATION (bigint)   |
"""

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from lumos.model import types
from lumos.model.conversions.fallback_types import SIGNED_FOR, capped_decimal, plain_decimal
from lumos.model.conversions.sql_type_reader import (
    Dialect,
    SqlTypeName,
    SqlTypeReader,
    UnreadableType,
    quoted,
)

__all__ = ["Dialect", "type_from_sql", "type_to_sql"]

_TypeOrReader: TypeAlias = types.DataType | Callable[[tuple[int, ...]], types.DataType]

_DIGITS: Final[dict[types.Unit, int]] = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def type_from_sql(text: str, dialect: Dialect) -> types.DataType:
    """Read a type text of a dialect; return UNKNOWN with the text if it cannot be read."""
    text = text.strip()

    def scalar(name: SqlTypeName) -> types.DataType:
        return _scalar(name, dialect)

    try:
        return SqlTypeReader(text, dialect, scalar).whole()
    except UnreadableType:
        return types.Unknown(text)


def _scalar(name: SqlTypeName, dialect: Dialect) -> types.DataType:
    words = name.words
    if dialect == "postgres":
        words = words.removeprefix("pg_catalog.")
        element = words.removesuffix(" array") if words.endswith(" array") else ""
        # In Postgres, the name of an array type is an underscore and the name of the element type.
        element = element or (words[1:] if words.startswith("_") else "")
        if element:
            return types.Array(_scalar(SqlTypeName(element, name.numbers, element), dialect))
    reader = _READERS[dialect].get(words)
    if reader is None or name.numbers is None:
        return types.Unknown(name.text)
    try:
        return reader if isinstance(reader, types.DataType) else reader(name.numbers)
    except ValueError:
        return types.Unknown(name.text)


def _unit(digits: int) -> types.Unit:
    return next((unit for unit, max_digits in _DIGITS.items() if digits <= max_digits), "ns")


def _decimal(default: types.Decimal) -> _TypeOrReader:
    return lambda numbers: types.Decimal(*numbers[:2]) if numbers else default


def _string(default_length: int | None = None, *, unlimited: tuple[int, ...] = ()) -> _TypeOrReader:
    def reader(numbers: tuple[int, ...]) -> types.DataType:
        length = numbers[0] if numbers else default_length
        return types.String(None if length in unlimited else length)

    return reader


def _time(digits: int) -> _TypeOrReader:
    return lambda numbers: types.Time(_unit(numbers[0] if numbers else digits))


def _timestamp(digits: int, *, zoned: bool = False) -> _TypeOrReader:
    return lambda numbers: types.Timestamp(_unit(numbers[0] if numbers else digits), zoned=zoned)


def _float_type(numbers: tuple[int, ...]) -> types.DataType:
    return types.FLOAT32 if numbers and numbers[0] <= 24 else types.FLOAT64


def _for_names(reader: _TypeOrReader, names: str) -> dict[str, _TypeOrReader]:
    return dict.fromkeys(names.split("|"), reader)


_INTERVAL_FIELDS: Final = "|".join(
    f"interval {field}"
    for field in (
        "year", "month", "day", "hour", "minute", "second", "year to month", "day to hour",
        "day to minute", "day to second", "hour to minute", "hour to second", "minute to second",
    )
)  # fmt: skip
# The two default lengths of Snowflake, which it reports as if they had been declared.
_SNOWFLAKE_UNLIMITED: Final = (16_777_216, 134_217_728)

_READERS: Final[dict[Dialect, dict[str, _TypeOrReader]]] = {
    "postgres": {
        **_for_names(types.BOOLEAN, "boolean|bool"),
        **_for_names(types.INT16, "smallint|int2|smallserial|serial2"),
        **_for_names(types.INT32, "integer|int|int4|serial|serial4"),
        **_for_names(types.INT64, "bigint|int8|bigserial|serial8"),
        **_for_names(types.UINT32, "oid"),
        **_for_names(types.FLOAT32, "real|float4"),
        **_for_names(types.FLOAT64, "double precision|float8"),
        **_for_names(_float_type, "float"),
        **_for_names(_decimal(types.Decimal()), "numeric|decimal|dec"),
        **_for_names(types.Decimal(19, 2), "money"),
        **_for_names(types.STRING, "text|citext|name"),
        **_for_names(_string(), "character varying|char varying|varchar|bpchar"),
        **_for_names(_string(1), "character|char"),
        **_for_names(types.BINARY, "bytea"),
        **_for_names(types.DATE, "date"),
        **_for_names(_time(6), "time|time without time zone|timetz|time with time zone"),
        **_for_names(_timestamp(6), "timestamp|timestamp without time zone"),
        **_for_names(_timestamp(6, zoned=True), "timestamptz|timestamp with time zone"),
        **_for_names(types.INTERVAL, f"interval|{_INTERVAL_FIELDS}"),
        **_for_names(types.UUID, "uuid"),
        **_for_names(types.JSON, "json|jsonb"),
        **_for_names(types.Map(types.STRING, types.STRING), "hstore"),
        **_for_names(types.Array(types.Unknown()), "array"),
    },
    "snowflake": {
        **_for_names(types.BOOLEAN, "boolean"),
        **_for_names(types.Decimal(38, 0), "int|integer|bigint|smallint|tinyint|byteint"),
        **_for_names(_decimal(types.Decimal(38, 0)), "number|numeric|decimal|dec"),
        **_for_names(types.FLOAT64, "float|float4|float8|double|double precision|real"),
        **_for_names(
            _string(unlimited=_SNOWFLAKE_UNLIMITED),
            "varchar|string|text|nvarchar|nvarchar2|char varying|nchar varying|character varying",
        ),
        **_for_names(_string(1, unlimited=_SNOWFLAKE_UNLIMITED), "char|character|nchar"),
        **_for_names(types.BINARY, "binary|varbinary"),
        **_for_names(types.DATE, "date"),
        **_for_names(_time(9), "time"),
        **_for_names(
            _timestamp(9),
            "timestamp_ntz|timestampntz|timestamp|datetime|timestamp without time zone",
        ),
        **_for_names(
            _timestamp(9, zoned=True),
            "timestamp_tz|timestamptz|timestamp with time zone|"
            "timestamp_ltz|timestampltz|timestamp with local time zone",
        ),
        **_for_names(types.JSON, "variant"),
        **_for_names(types.Map(types.STRING, types.JSON), "object"),
        **_for_names(types.Array(types.JSON), "array"),
        **_for_names(types.UUID, "uuid"),
    },
    "bigquery": {
        **_for_names(types.BOOLEAN, "bool|boolean"),
        **_for_names(types.INT64, "int64|int|integer|bigint|smallint|tinyint|byteint"),
        **_for_names(types.FLOAT64, "float64|float"),
        **_for_names(_decimal(types.Decimal(38, 9)), "numeric|decimal"),
        **_for_names(_decimal(types.Decimal(76, 38)), "bignumeric|bigdecimal"),
        **_for_names(_string(), "string"),
        **_for_names(types.BINARY, "bytes"),
        **_for_names(types.DATE, "date"),
        **_for_names(types.Time("us"), "time"),
        **_for_names(types.Timestamp("us"), "datetime"),
        **_for_names(_timestamp(6, zoned=True), "timestamp"),
        **_for_names(types.INTERVAL, "interval"),
        **_for_names(types.JSON, "json"),
    },
    "hive": {
        **_for_names(types.BOOLEAN, "boolean"),
        **_for_names(types.INT8, "tinyint"),
        **_for_names(types.INT16, "smallint"),
        **_for_names(types.INT32, "int|integer"),
        **_for_names(types.INT64, "bigint"),
        **_for_names(types.FLOAT32, "float"),
        **_for_names(types.FLOAT64, "double|double precision"),
        **_for_names(_decimal(types.Decimal(10, 0)), "decimal|numeric|dec"),
        **_for_names(_string(), "string|varchar|char"),
        **_for_names(types.BINARY, "binary"),
        **_for_names(types.DATE, "date"),
        **_for_names(types.Timestamp("ns"), "timestamp"),
        **_for_names(
            types.Timestamp("ns", zoned=True), "timestamp with local time zone|timestamplocaltz"
        ),
        **_for_names(types.Duration("ns"), "interval_day_time|interval day to second"),
        **_for_names(types.INTERVAL, "interval|interval_year_month|interval year to month"),
        **_for_names(types.NULL, "void"),
    },
}

_TEXT_BY_TYPE: Final[dict[Dialect, dict[types.DataType, str]]] = {
    "postgres": {
        types.BOOLEAN: "boolean",
        types.INT8: "smallint",
        types.INT16: "smallint",
        types.INT32: "integer",
        types.INT64: "bigint",
        types.FLOAT16: "real",
        types.FLOAT32: "real",
        types.FLOAT64: "double precision",
        types.STRING: "text",
        types.BINARY: "bytea",
        types.DATE: "date",
        types.Decimal(): "numeric",
        types.INTERVAL: "interval",
        types.UUID: "uuid",
        types.JSON: "jsonb",
        **{types.Duration(unit): "interval" for unit in types.UNITS},
    },
    "snowflake": {
        types.BOOLEAN: "BOOLEAN",
        # The precision is the number of digits of the largest value.
        **{type: f"NUMBER({len(str(2 ** (bits - 1)))},0)" for type, bits in types.SIGNED.items()},
        types.FLOAT16: "FLOAT",
        types.FLOAT32: "FLOAT",
        types.FLOAT64: "FLOAT",
        types.STRING: "VARCHAR",
        types.BINARY: "BINARY",
        types.DATE: "DATE",
        types.Decimal(): "NUMBER(38,18)",
        types.UUID: "VARCHAR(36)",
        types.JSON: "VARIANT",
        types.Array(types.JSON): "ARRAY",
        types.Map(types.STRING, types.JSON): "OBJECT",
        **{types.Duration(unit): "NUMBER(19,0)" for unit in types.UNITS},
    },
    "bigquery": {
        types.BOOLEAN: "BOOL",
        **dict.fromkeys(types.SIGNED, "INT64"),
        types.FLOAT16: "FLOAT64",
        types.FLOAT32: "FLOAT64",
        types.FLOAT64: "FLOAT64",
        types.STRING: "STRING",
        types.BINARY: "BYTES",
        types.DATE: "DATE",
        types.Decimal(): "BIGNUMERIC",
        types.Decimal(38, 9): "NUMERIC",
        types.Decimal(76, 38): "BIGNUMERIC",
        types.INTERVAL: "INTERVAL",
        types.JSON: "JSON",
        **{types.Duration(unit): "INTERVAL" for unit in types.UNITS},
        **{types.Time(unit): "TIME" for unit in types.UNITS},
        **{types.Timestamp(unit): "DATETIME" for unit in types.UNITS},
        **{types.Timestamp(unit, zoned=True): "TIMESTAMP" for unit in types.UNITS},
    },
    "hive": {
        types.BOOLEAN: "boolean",
        types.INT8: "tinyint",
        types.INT16: "smallint",
        types.INT32: "int",
        types.INT64: "bigint",
        types.FLOAT16: "float",
        types.FLOAT32: "float",
        types.FLOAT64: "double",
        types.STRING: "string",
        types.BINARY: "binary",
        types.DATE: "date",
        types.Decimal(): "decimal(38,18)",
        types.NULL: "void",
        **{types.Duration(unit): "bigint" for unit in types.UNITS},
        **{types.Timestamp(unit): "timestamp" for unit in types.UNITS},
        **{
            types.Timestamp(unit, zoned=True): "timestamp with local time zone"
            for unit in types.UNITS
        },
    },
}
_MAX_STRING_LENGTH: Final[dict[Dialect, int]] = {
    "postgres": 10_485_760,
    "snowflake": 134_217_728,
    "bigquery": 2**63 - 1,
    "hive": 65_535,
}
_SAFE_NAME: Final = re.compile(r"[A-Za-z_][\w.]*(\([\w, ]*\)|<\w+>)?\Z", re.ASCII)


def type_to_sql(type: types.DataType, dialect: Dialect) -> str:
    """The nearest type of the dialect, as text for a column definition."""
    type = SIGNED_FOR.get(type, type)
    text_by_type = _TEXT_BY_TYPE[dialect]
    if type in text_by_type:
        return text_by_type[type]
    match type:
        case types.Decimal(int(precision), scale):
            return _write_decimal(precision, scale, dialect)
        case types.String(int(length)) if length <= _MAX_STRING_LENGTH[dialect]:
            name = {"bigquery": "STRING", "snowflake": "VARCHAR"}.get(dialect, "varchar")
            return f"{name}({length})"
        case types.Binary(int(length)) if dialect == "bigquery" and length < 2**63:
            return f"BYTES({length})"
        case types.Binary(int(length)) if dialect == "snowflake" and length <= 8_388_608:
            return f"BINARY({length})"
        case types.Binary():
            return text_by_type[types.BINARY]
        case types.Time(unit) if dialect != "hive":
            return _write_time("time", unit, dialect)
        case types.Timestamp(unit, zoned):
            names = {"postgres": ("timestamp", "timestamptz")}
            plain, with_zone = names.get(dialect, ("timestamp_ntz", "timestamp_tz"))
            return _write_time(with_zone if zoned else plain, unit, dialect)
        case types.Array() | types.Map() | types.Struct() | types.Union():
            return _NESTED_WRITERS[dialect](type)
        case types.Unknown(name) if _SAFE_NAME.match(name) and type_from_sql(name, dialect) == type:
            return name
        case _:
            return text_by_type[types.STRING]


def _write_time(name: str, unit: types.Unit, dialect: Dialect) -> str:
    if dialect == "snowflake":
        return f"{name.upper()}({_DIGITS[unit]})"
    return f"{name}({_DIGITS[unit]})" if unit in ("s", "ms") else name


def _write_decimal(precision: int, scale: int, dialect: Dialect) -> str:
    match dialect:
        case "postgres":
            is_supported = precision <= 1000 and abs(scale) <= 1000
            return f"numeric({precision},{scale})" if is_supported else "numeric"
        case "bigquery":
            plain = plain_decimal(precision, scale)
            integer_digits = (plain.precision or 0) - plain.scale
            if plain.scale <= 9 and integer_digits <= 29:
                return f"NUMERIC({plain.precision},{plain.scale})"
            is_supported = plain.scale <= 38 and integer_digits <= 38
            return f"BIGNUMERIC({plain.precision},{plain.scale})" if is_supported else "BIGNUMERIC"
        case "snowflake" | "hive":
            capped = capped_decimal(precision, scale, max_digits=38)
            name = "NUMBER" if dialect == "snowflake" else "decimal"
            # Snowflake's largest scale is 37.
            scale = min(capped.scale, 37) if dialect == "snowflake" else capped.scale
            return f"{name}({capped.precision},{scale})"


def _type_with_nullability(type: types.DataType, nullable: bool, dialect: Dialect) -> str:
    return type_to_sql(type, dialect) + ("" if nullable else " NOT NULL")


def _members(members: tuple[types.Member, ...], dialect: Dialect) -> str:
    texts = []
    for each in members:
        type = _type_with_nullability(each.type, each.nullable, dialect)
        texts.append(f"{quoted(each.name, dialect)} {type}")
    return ", ".join(texts)


def _write_postgres(type: types.DataType) -> str:
    return (
        f"{type_to_sql(type.element, 'postgres')}[]" if isinstance(type, types.Array) else "jsonb"
    )


def _write_snowflake(type: types.DataType) -> str:
    match type:
        case types.Array(element, nullable):
            return f"ARRAY({_type_with_nullability(element, nullable, 'snowflake')})"
        case types.Map(key, value, nullable):
            # Keys can only be texts or integers.
            is_key = isinstance(key, types.String) or (
                isinstance(key, types.Decimal) and key.scale == 0
            )
            name = type_to_sql(key if is_key or key in types.SIGNED else types.STRING, "snowflake")
            return f"MAP({name}, {_type_with_nullability(value, nullable, 'snowflake')})"
        case types.Struct(members) if members:
            return f"OBJECT({_members(members, 'snowflake')})"
        case types.Struct():
            return "OBJECT"
        case _:
            return "VARIANT"


def _write_bigquery(type: types.DataType) -> str:
    match type:
        case types.Array(element, nullable):
            inner = type_to_sql(element, "bigquery")
            # BigQuery has no arrays of arrays.
            if inner.startswith("ARRAY<"):
                inner = f"STRUCT<`element` {inner}>"
            return f"ARRAY<{inner}>"
        case types.Map(key, value, nullable):
            entry = (
                types.Member("key", key, nullable=False),
                types.Member("value", value, nullable=nullable),
            )
            return f"ARRAY<STRUCT<{_members(entry, 'bigquery')}>>"
        case types.Struct(members) if members:
            return f"STRUCT<{_members(members, 'bigquery')}>"
        case _:
            return "JSON"


def _write_hive(type: types.DataType) -> str:
    match type:
        case types.Array(element):
            return f"array<{type_to_sql(element, 'hive')}>"
        case types.Map(key, value):
            nested = isinstance(key, types.Array | types.Map | types.Struct | types.Union)
            name = type_to_sql(types.STRING if nested else key, "hive")
            return f"map<{name},{type_to_sql(value, 'hive')}>"
        case types.Struct(members):
            texts = []
            for each in members:
                name = (
                    each.name
                    if types.quoted_name(each.name) == each.name
                    else quoted(each.name, "hive")
                )
                texts.append(f"{name}:{type_to_sql(each.type, 'hive')}")
            return f"struct<{','.join(texts)}>"
        case types.Union(options):
            names = [type_to_sql(option, "hive") for option in options]
            return f"uniontype<{','.join(names)}>"
        case _:
            return "string"


_NESTED_WRITERS: Final[dict[Dialect, Callable[[types.DataType], str]]] = {
    "postgres": _write_postgres,
    "snowflake": _write_snowflake,
    "bigquery": _write_bigquery,
    "hive": _write_hive,
}
