"""Datasets that change as a consequence: their versions, and the way by which columns change."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from lumos.impact.rules.facts import field_named
from lumos.impact.rules.type_uses import OutputColumn, TableVersions, ValueType
from lumos.impact.rules.values import ColumnImpact
from lumos.impact.rules.verdicts import COMPATIBLE, resolved, type_finding
from lumos.model.change import (
    AnySchemaChange,
    FieldAdded,
    FieldRemoved,
    NullabilityChanged,
    TypeChanged,
)
from lumos.model.schema import Field, Schema
from lumos.model.types import UNKNOWN, DataType, Unknown
from lumos.schemas.apply import apply
from lumos.schemas.paths import column_of

Pair = tuple[Field | None, Field | None]
Path = tuple[tuple[str, str], ...]


def first_versions(
    urn: str, changes: Sequence[AnySchemaChange], schema: Schema | None
) -> TableVersions:
    """The dataset that somebody changes."""
    if schema is not None:
        return TableVersions.of(urn, schema, apply(changes, schema))
    columns: dict[str, Pair] = {}
    for change in changes:
        if column_of(change.path) == change.path:
            columns.update(_pair(change, columns))
    is_doubtful = any(column_of(change.path) != change.path for change in changes)
    return TableVersions(key=urn, columns=columns, is_complete=False, is_doubtful=is_doubtful)


def _pair(change: AnySchemaChange, known: Mapping[str, Pair]) -> dict[str, Pair]:
    """A column of a dataset of which only the change is known."""
    name = _unquoted(change.path)
    old, new = known.get(name, (None, None))
    match change:
        case FieldAdded(after=field):
            return {field.name: (None, field)}
        case FieldRemoved(before=field):
            return {field.name: (field, None)}
        case TypeChanged(before=before, after=after):
            nulls = [each.nullable if each is not None else True for each in (old, new)]
            return {
                name: (
                    Field(name=name, type=before, nullable=nulls[0]),
                    Field(name=name, type=after, nullable=nulls[1]),
                )
            }
        case NullabilityChanged(before=before_null, after=after_null):
            types = [each.type if each is not None else UNKNOWN for each in (old, new)]
            return {
                name: (
                    Field(name=name, type=types[0], nullable=before_null),
                    Field(name=name, type=types[1], nullable=after_null),
                )
            }
        case _:
            return {}


def _unquoted(path: str) -> str:
    return path[1:-1].replace("``", "`") if path.startswith("`") else path


def next_versions(
    urn: str, schema: Schema | None, outputs: Iterable[OutputColumn], *, is_doubtful: bool
) -> TableVersions:
    """A dataset some of whose columns change."""
    columns: dict[str, Pair] = {}
    lost: set[str] = set()
    if schema is not None:
        columns = {field.name: (field, field) for field in schema.fields}
    for output in outputs:
        stored = field_named(schema, output.name) if schema is not None else None
        name = stored.name if stored is not None else output.name
        columns[name] = _changed(name, output, stored)
        if output.is_lost:
            lost.add(name)
    return TableVersions(
        key=urn,
        columns=columns,
        is_complete=schema is not None,
        is_doubtful=is_doubtful,
        lost=frozenset(lost),
    )


def as_stored(output: OutputColumn, stored: Field | None) -> OutputColumn:
    """A column with the type that its table has, where that holds what comes before and after.

    Reasoning may be more exact than the engine: LAG of a DECIMAL(12,2) is a DECIMAL in PostgreSQL.
    """
    before, after = output.before, output.after
    if stored is None or before is None or after is None or output.is_lost:
        return output
    types = (before.type, after.type)
    if stored.type in types or before.type == after.type or not _holds(stored.type, types):
        return output
    return msgspec.structs.replace(
        output,
        before=msgspec.structs.replace(before, type=stored.type),
        after=msgspec.structs.replace(after, type=stored.type),
    )


def _holds(stored: DataType, types: Iterable[DataType]) -> bool:
    return not isinstance(stored, Unknown) and all(
        resolved(type_finding(type, stored), frozenset()) is COMPATIBLE for type in types
    )


def _changed(name: str, output: OutputColumn, stored: Field | None) -> Pair:
    before = stored
    if output.before is not None and (before is None or isinstance(before.type, Unknown)):
        before = Field(
            name=name, type=output.before.type, nullable=output.before.nullable is not False
        )
    if output.after is None:
        return before, None
    after = before or Field(name=name, type=output.after.type)
    if output.is_lost:
        return before, msgspec.structs.replace(after, type=UNKNOWN)
    if output.before is None or output.before.type != output.after.type:
        after = msgspec.structs.replace(after, type=output.after.type, native_type=None)
    if output.before is None or output.before.nullable != output.after.nullable:
        after = msgspec.structs.replace(after, nullable=output.after.nullable is not False)
    return before, after


def columns_of(
    urn: str,
    versions: TableVersions,
    outputs: Iterable[OutputColumn],
    paths: dict[tuple[str, str], Path],
) -> tuple[ColumnImpact, ...]:
    """The columns that change, each with the way to it; the ways are kept for those behind it."""
    found = []
    for output in outputs:
        name = _written(versions, output.name)
        if name not in versions.changed and not versions.is_doubtful:
            continue
        origin = next((each for each in output.origins if each in paths), None)
        way = (*paths.get(origin, (origin,)), (urn, name)) if origin else ((urn, name),)
        paths.setdefault((urn, name), way)
        before, after = versions.columns.get(name, (None, None))
        found.append(ColumnImpact(name=name, before=_value(before), after=_value(after), path=way))
    return tuple(dict.fromkeys(found))


def _written(versions: TableVersions, name: str) -> str:
    """A column as its table has it, in this case or in another."""
    if name in versions.columns:
        return name
    folded = name.casefold()
    return next((each for each in versions.columns if each.casefold() == folded), name)


def _value(field: Field | None) -> ValueType | None:
    return None if field is None else ValueType(type=field.type, nullable=field.nullable)
