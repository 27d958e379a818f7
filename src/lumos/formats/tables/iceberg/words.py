"""Partitioning and sorting in words, and values of partitions as text."""

import base64
import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from lumos.formats.tables.iceberg.metadata import Spec, SpecField
from lumos.formats.tables.iceberg.schema import column_names

_PERIODS: Final = {"year": "years", "month": "months", "day": "days", "hour": "hours"}
_KNOWN: Final = re.compile(r"identity|void|year|month|day|hour|(?:bucket|truncate)\[\d+\]")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def partitioned_by(spec: Spec, columns: dict[int, str]) -> tuple[str, ...]:
    """What rows are divided by: `country`, `bucket[16](id)`, `days(ts)`."""
    return tuple(_words(field, columns) for field in spec.fields if field.transform != "void")


def sorted_by(order: Spec, columns: dict[int, str]) -> tuple[str, ...]:
    """What rows are sorted by: `id asc nulls first`."""
    return tuple(
        " ".join(
            part
            for part in (
                _words(field, columns),
                field.direction,
                (field.null_order or "").replace("-", " "),
            )
            if part
        )
        for field in order.fields
    )


def identity_columns(spec: Spec) -> frozenset[int]:
    """The ids of columns whose values themselves are partitions."""
    return frozenset(
        id for field in spec.fields if field.transform == "identity" for id in field.sources
    )


def unknown_transforms(specs: Iterable[Spec]) -> set[str]:
    """Transforms that no version up to 3 has."""
    names = {field.transform for spec in specs for field in spec.fields}
    return {name for name in names if not _KNOWN.fullmatch(name)}


def _words(field: SpecField, columns: dict[int, str]) -> str:
    names = column_names(columns, field.sources)
    if field.transform == "identity":
        return names
    return f"{_PERIODS.get(field.transform, field.transform)}({names})"


def partition_text(value: Any, transform: str, type: object) -> str | None:
    """A partition's value as people write it, of the raw value and Avro type in a manifest."""
    if value is None:
        return None
    try:
        render = _OF_TRANSFORM.get(transform) or _OF_TYPE.get(_logical(type), _plain)
        return render(value, type)
    except (ArithmeticError, TypeError, ValueError):
        # What is outside the calendar still tells partitions apart.
        return _plain(value, type)


def _logical(type: object) -> str:
    """The name of an Avro type that decides how its raw values are written."""
    if isinstance(type, list):
        type = next((option for option in type if option != "null"), None)
    if not isinstance(type, dict):
        return ""
    logical = type.get("logicalType")
    return logical if isinstance(logical, str) else _logical(type.get("type"))


def _fact(type: object, name: str) -> Any:
    if isinstance(type, list):
        type = next((option for option in type if option != "null"), None)
    return type.get(name) if isinstance(type, dict) else None


def _year(value: int, _: object) -> str:
    return f"{1970 + value:04}"


def _month(value: int, _: object) -> str:
    return f"{1970 + value // 12:04}-{value % 12 + 1:02}"


def _day(value: int, _: object) -> str:
    return (date(1970, 1, 1) + timedelta(days=value)).isoformat()


def _hour(value: int, _: object) -> str:
    return (_EPOCH + timedelta(hours=value)).strftime("%Y-%m-%d-%H")


def _timestamp(value: int, type: object, per_second: int = 1_000_000) -> str:
    seconds, rest = divmod(value, per_second)
    text = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    if rest:
        text += f".{rest:0{len(str(per_second)) - 1}}"
    return text + ("+00:00" if _fact(type, "adjust-to-utc") is True else "")


def _nanoseconds(value: int, type: object) -> str:
    return _timestamp(value, type, 1_000_000_000)


def _time(value: int, _: object) -> str:
    return (_EPOCH + timedelta(microseconds=value)).time().isoformat()


def _decimal(value: bytes, type: object) -> str:
    sign, digits, _ = Decimal(int.from_bytes(value, "big", signed=True)).as_tuple()
    # Arithmetic would round to the digits of the context.
    return format(Decimal((sign, digits, -min(int(_fact(type, "scale") or 0), 1000))), "f")


def _uuid(value: bytes, _: object) -> str:
    return str(UUID(bytes=value)) if isinstance(value, bytes) else str(value)


def _plain(value: Any, _: object) -> str:
    """Of numbers, texts and bytes as they are, and of what a manifest in Parquet has typed."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


_OF_TRANSFORM: Final[dict[str, Callable[[Any, object], str]]] = {
    "year": _year,
    "month": _month,
    "day": _day,
    "hour": _hour,
}
_OF_TYPE: Final[dict[str, Callable[[Any, object], str]]] = {
    "date": _day,
    "time-micros": _time,
    "timestamp-micros": _timestamp,
    "timestamp-nanos": _nanoseconds,
    "local-timestamp-micros": _timestamp,
    "decimal": _decimal,
    "uuid": _uuid,
}
