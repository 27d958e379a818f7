"""Which schema is a dataset's, when its files have several."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Final

import msgspec

from lumos.formats import FORMATS
from lumos.model.dataset import DriftedShape, Location, Statistics
from lumos.model.discovery import FoundDataset
from lumos.model.schema import Field, Schema
from lumos.model.types import (
    DATE,
    FLOAT64,
    INT32,
    INT64,
    NULL,
    STRING,
    Array,
    DataType,
    Decimal,
    Map,
    Member,
    Struct,
    Timestamp,
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CALENDAR: Final = {
    "year": "{yyyy}", "yyyy": "{yyyy}", "month": "{mm}", "mm": "{mm}", "day": "{dd}", "dd": "{dd}",
    "hour": "{hh}", "hh": "{hh}",
}  # fmt: skip


class ShapeInUse(msgspec.Struct, frozen=True, kw_only=True):
    """One schema of a dataset and the files that have it now."""

    base: str
    format: str
    location: str
    shape: str
    schema: Schema
    file_count: int
    size: int
    row_count: int | None
    row_count_exact: bool | None
    modified: int
    newest_partition: str
    since: int
    examples: list[str]
    content: int


class PartitionKey(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A key of hive-style folders and what all its values have in common."""

    position: int
    key: str
    integers: bool
    digits: bool
    dates: bool


def merge(path: str, shapes: Sequence[ShapeInUse], keys: Sequence[PartitionKey]) -> FoundDataset:
    """The dataset at a path from its shapes in use."""
    ordered = sorted(shapes, key=_age)
    newest = ordered[-1]
    partitions = _partition_fields(keys)
    content = reduce(lambda left, right: left ^ right, (shape.content for shape in shapes))
    declares = FORMATS[newest.format].declares_schema
    own = _declared(ordered) if declares else _inferred(shape.schema for shape in ordered)
    files = sum(shape.file_count for shape in shapes)
    return FoundDataset(
        path=path,
        format=newest.format,
        location=Location(
            uri=newest.location,
            partitioning="/".join(map(_placeholder, partitions)) or None,
            partition_keys=tuple(field.name for field in partitions),
        ),
        schema=_with_partitions(own, partitions),
        statistics=Statistics(
            file_count=files,
            total_size_bytes=sum(shape.size for shape in shapes),
            row_count=_total_rows(shapes),
            row_count_exact=all(bool(shape.row_count_exact) for shape in shapes),
            last_modified=_EPOCH + timedelta(microseconds=max(shape.modified for shape in shapes)),
        ),
        drift=tuple(_drift(ordered, newest)) if declares else (),
        content=f"{files:x}-{content & (2**64 - 1):016x}",
    )


def _age(shape: ShapeInUse) -> tuple[int, str, int, int, str]:
    """Oldest first: by the scan that met it, its newest partition or file, and how common it is."""
    return (shape.since, shape.newest_partition, shape.modified, shape.file_count, shape.shape)


def _total_rows(shapes: Iterable[ShapeInUse]) -> int | None:
    rows = [shape.row_count for shape in shapes]
    return None if None in rows else sum(filter(None, rows))


def _declared(ordered: Sequence[ShapeInUse]) -> Schema:
    """The newest shape; columns that only ever were null there take their type from older files."""
    newest = ordered[-1].schema
    known: dict[str, DataType] = {}
    for shape in ordered:
        known.update(
            {field.name: field.type for field in shape.schema.fields if field.type != NULL}
        )
    return Schema(
        fields=tuple(
            msgspec.structs.replace(field, type=known.get(field.name, NULL))
            if field.type == NULL
            else field
            for field in newest.fields
        )
    )


def _drift(ordered: Sequence[ShapeInUse], newest: ShapeInUse) -> Iterable[DriftedShape]:
    by_shape: dict[str, list[ShapeInUse]] = {}
    for shape in ordered:
        if shape.shape != newest.shape:
            by_shape.setdefault(shape.shape, []).append(shape)
    for fingerprint, group in by_shape.items():
        yield DriftedShape(
            shape=fingerprint,
            file_count=sum(shape.file_count for shape in group),
            examples=tuple(sorted({path for shape in group for path in shape.examples}))[:3],
            differences=tuple(_differences(group[0].schema, newest.schema)),
            last_seen=_EPOCH + timedelta(microseconds=max(shape.modified for shape in group)),
        )


def _differences(older: Schema, newest: Schema) -> Iterable[str]:
    there = {field.name: field.shape() for field in older.fields}
    here = {field.name: field.shape() for field in newest.fields}
    for name in [*here, *(name for name in there if name not in here)]:
        if there.get(name) != here.get(name):
            yield f"{there.get(name, 'nothing')} instead of {here.get(name, 'nothing')}"


def _inferred(schemas: Iterable[Schema]) -> Schema:
    """A widening union: a column missing from some files is no change."""
    fields: dict[str, Field] = {}
    for schema in schemas:
        for field in schema.fields:
            known = fields.get(field.name)
            type = field.type if known is None else widened(known.type, field.type)
            fields[field.name] = Field(name=field.name, type=type)
    return Schema(fields=tuple(fields.values()))


def widened(left: DataType, right: DataType) -> DataType:
    """The narrowest inferred type that holds the values of both."""
    if left == right or right == NULL:
        return left
    if left == NULL:
        return right
    match left, right:
        case Array(), Array():
            return Array(widened(left.element, right.element))
        case Map(), Map():
            return Map(widened(left.key, right.key), widened(left.value, right.value))
        case Struct(), Struct():
            return _widened_struct(left, right)
    both = {left, right}
    if both <= {INT64, FLOAT64}:
        return FLOAT64
    if both <= {INT64, Decimal(38, 0)}:
        return Decimal(38, 0)
    if both <= {DATE, Timestamp("us")}:
        return Timestamp("us")
    return STRING


def _widened_struct(left: Struct, right: Struct) -> Struct:
    members = {member.name: member.type for member in left.members}
    for member in right.members:
        members[member.name] = widened(members.get(member.name, NULL), member.type)
    return Struct(Member(name, type) for name, type in members.items())


def _partition_fields(keys: Sequence[PartitionKey]) -> list[Field]:
    fields: dict[str, Field] = {}
    for key in sorted(keys):
        fields[key.key] = Field(name=key.key, type=_partition_type(key), partition=True)
    return list(fields.values())


def _partition_type(key: PartitionKey) -> DataType:
    if key.dates:
        return DATE
    # 01 is a month where the key says so, and an identifier anywhere else.
    if key.digits and key.key.casefold() in _CALENDAR:
        return INT32
    return INT64 if key.integers else STRING


def _placeholder(field: Field) -> str:
    if field.type == DATE:
        return f"{field.name}={{date}}"
    return f"{field.name}={_CALENDAR.get(field.name.casefold(), f'{{{field.name}}}')}"


def _with_partitions(schema: Schema, partitions: Sequence[Field]) -> Schema:
    """Partition columns come last, as Spark and Hive have them; a file's own copy of one goes."""
    names = {field.name for field in partitions}
    own = (field for field in schema.fields if field.name not in names)
    return Schema(fields=(*own, *partitions))
