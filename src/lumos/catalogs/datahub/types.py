"""Converts types of fields from and to DataHub's type classes and native types."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from lumos.errors import LumosError
from lumos.model.conversions.sql_types import Dialect, type_from_sql
from lumos.model.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    Array,
    Binary,
    DataType,
    Enum,
    Map,
    String,
    Struct,
    Union,
    Unknown,
    kind_of,
    parse_type,
)

_NAMESPACE: Final = "com.linkedin.schema."
_CLASS_BY_KIND: Final = {
    "BOOLEAN": "BooleanType", "UUID": "StringType", "JSON": "RecordType", "NULL": "NullType",
    "DATE": "DateType", "TIME": "TimeType", "TIMESTAMP": "TimeType", "TIMESTAMPTZ": "TimeType",
    "DURATION": "TimeType", "INTERVAL": "TimeType", "UNKNOWN": "NullType",
}  # fmt: skip
_DIALECTS: Final[dict[str, Dialect]] = {
    "snowflake": "snowflake", "bigquery": "bigquery", "postgres": "postgres",
    "athena": "hive", "databricks": "hive", "delta-lake": "hive", "glue": "hive", "hive": "hive",
    "iceberg": "hive", "spark": "hive",
}  # fmt: skip
_ALL_DIALECTS: Final[tuple[Dialect, ...]] = ("postgres", "snowflake", "bigquery", "hive")
# Names in Avro, which many sources of DataHub use.
_AVRO: Final[dict[str, DataType]] = {
    "boolean": BOOLEAN, "bytes": BINARY, "double": FLOAT64, "float": FLOAT32, "int": INT32,
    "long": INT64, "string": STRING,
}  # fmt: skip
_TYPE_BY_CLASS: Final[dict[str, DataType]] = {
    "BooleanType": BOOLEAN, "BytesType": BINARY, "DateType": DATE, "FixedType": BINARY,
    "StringType": STRING,
}  # fmt: skip


def class_of(type: DataType) -> str:
    match type:
        case String():
            return "StringType"
        case Binary(length):
            return "BytesType" if length is None else "FixedType"
        case Enum():
            return "EnumType"
        case Array():
            return "ArrayType"
        case Map():
            return "MapType"
        case Struct():
            return "RecordType"
        case Union():
            return "UnionType"
        case _:
            return _CLASS_BY_KIND.get(kind_of(type), "NumberType")


def encode_type(type: DataType) -> dict[str, Any]:
    """Encode a type for the key `type` of a row in DataHub's schema."""
    details: dict[str, Any] = {}
    match type:
        case Array(element, _):
            details = {"nestedType": [_type_name(element)]}
        case Map(key, value, _):
            details = {"keyType": _type_name(key), "valueType": _type_name(value)}
        case Union(options):
            details = {"nestedTypes": [_type_name(option) for option in options]}
        case _:
            pass
    return {"type": {f"{_NAMESPACE}{class_of(type)}": details}}


def class_in(value: Any) -> str:
    """The class in an encoded type, or an empty text."""
    classes = value.get("type") if isinstance(value, dict) else None
    name = next(iter(classes), "") if isinstance(classes, dict) else ""
    return name.rpartition(".")[2]


@lru_cache(maxsize=65_536)
def type_of(native: str, type_class: str, platform: str) -> DataType:
    """The type of a field without nested fields, decoded from its native text and its class."""
    for candidate in _interpretations(native, platform):
        if candidate is not None and class_of(candidate) == type_class:
            return candidate
    # DataHub uses the class; a native text that contradicts it is ignored.
    return _TYPE_BY_CLASS.get(type_class, Unknown(native))


def _interpretations(native: str, platform: str) -> Iterator[DataType | None]:
    yield exact_type(native)
    yield _AVRO.get(native.lower())
    preferred = _DIALECTS.get(platform, "postgres")
    for dialect in (preferred, *(each for each in _ALL_DIALECTS if each != preferred)):
        parsed = type_from_sql(native, dialect)
        yield None if isinstance(parsed, Unknown) else parsed
    # Arrow and pandas write these names in lower case.
    yield exact_type(native.upper())


def exact_type(text: str) -> DataType | None:
    """The type with this canonical text, or None."""
    try:
        type = parse_type(text)
    except (LumosError, ValueError):
        return None
    return type if type.text == text else None


def _type_name(type: DataType) -> str:
    return kind_of(type).lower()
