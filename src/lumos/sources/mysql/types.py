"""Types of MySQL and MariaDB columns, as the information schema prints them."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

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
    JSON,
    STRING,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    UUID,
    Binary,
    DataType,
    Decimal,
    Enum,
    String,
    Time,
    Timestamp,
    Unit,
    Unknown,
)

_TYPE: Final = re.compile(
    r"(?P<name>[a-z]\w*)(?:\((?P<arguments>.*)\))?(?P<rest>[\w\s]*)", re.DOTALL
)
_LABEL: Final = re.compile(r"'((?:[^']|'')*)'")
_UNITS: Final[tuple[Unit, ...]] = ("s", "ms", "ms", "ms", "us", "us", "us")
_INTEGERS: Final = {
    "tinyint": (INT8, UINT8),
    "smallint": (INT16, UINT16),
    "mediumint": (INT32, UINT32),
    "int": (INT32, UINT32),
    "integer": (INT32, UINT32),
    "bigint": (INT64, UINT64),
}
_PLAIN: Final[dict[str, DataType]] = {
    "float": FLOAT32,
    "double": FLOAT64,
    "date": DATE,
    "year": INT16,
    "json": JSON,
    "uuid": UUID,
    **dict.fromkeys(("tinytext", "text", "mediumtext", "longtext"), STRING),
    **dict.fromkeys(("varbinary", "tinyblob", "blob", "mediumblob", "longblob"), BINARY),
}
_WITH_NUMBERS: Final[dict[str, Callable[[Sequence[int]], DataType]]] = {
    "decimal": lambda numbers: Decimal(*numbers) if numbers else Decimal(10, 0),
    "char": lambda numbers: String(numbers[0] if numbers else 1),
    "varchar": lambda numbers: String(numbers[0] if numbers else None),
    "binary": lambda numbers: Binary(numbers[0] if numbers else 1),
    "time": lambda numbers: Time(_unit(numbers)),
    "datetime": lambda numbers: Timestamp(_unit(numbers)),
    # Stored in UTC and converted to the time zone of the session.
    "timestamp": lambda numbers: Timestamp(_unit(numbers), zoned=True),
}


@lru_cache(maxsize=4096)
def type_of_column(text: str) -> DataType:
    """The data type; types without an equivalent are UNKNOWN with their native name."""
    match = _TYPE.fullmatch(text)
    if match is None:
        return Unknown(text)
    name, arguments = match["name"], match["arguments"] or ""
    # BOOL is a synonym of tinyint(1), and the only one that is printed with this width.
    if text in ("tinyint(1)", "bit(1)"):
        return BOOLEAN
    if name in _INTEGERS:
        return _INTEGERS[name]["unsigned" in match["rest"]]
    if name == "enum":
        return Enum([label.replace("''", "'") for label in _LABEL.findall(arguments)])
    if name in _PLAIN:
        return _PLAIN[name]
    if name in _WITH_NUMBERS:
        try:
            return _WITH_NUMBERS[name]([int(each) for each in arguments.split(",") if each])
        except ValueError:
            return Unknown(text)
    return Unknown(text)


def _unit(numbers: Sequence[int]) -> Unit:
    digits = numbers[0] if numbers else 0
    return _UNITS[digits] if digits < len(_UNITS) else "us"
