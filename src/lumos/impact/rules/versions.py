"""Schemas of datasets before and after a change."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from lumos.impact.rules.edges import field_named
from lumos.impact.rules.graph import DownstreamGraph, SqlAnalyzer
from lumos.impact.rules.results import ColumnImpact
from lumos.impact.rules.type_uses import OutputColumn, StatementEffect, TableVersions, ValueType
from lumos.impact.rules.verdicts import COMPATIBLE, resolve_verdict, type_finding
from lumos.model.change import (
    AnySchemaChange,
    FieldAdded,
    FieldRemoved,
    NullabilityChanged,
    TypeChanged,
)
from lumos.model.paths import column_of, lineage_column
from lumos.model.schema import Field, Schema
from lumos.model.types import UNKNOWN, DataType, Unknown
from lumos.schemas.apply import apply

Pair = tuple[Field | None, Field | None]
Path = tuple[tuple[str, str], ...]


def first_versions(
    urn: str, changes: Sequence[AnySchemaChange], schema: Schema | None
) -> TableVersions:
    """The versions of the dataset whose schema is changed."""
    if schema is not None:
        return TableVersions.of(urn, schema, apply(changes, schema))
    columns: dict[str, Pair] = {}
    for change in changes:
        if column_of(change.path) == change.path:
            columns.update(_column_pair(change, columns))
    is_doubtful = any(column_of(change.path) != change.path for change in changes)
    return TableVersions(key=urn, columns=columns, is_complete=False, is_doubtful=is_doubtful)


def _column_pair(change: AnySchemaChange, known: Mapping[str, Pair]) -> dict[str, Pair]:
    """Return a column before and after, if only the change is given and the schema is unknown."""
    name = _unquote(change.path)
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


def _unquote(path: str) -> str:
    return path[1:-1].replace("``", "`") if path.startswith("`") else path


def next_versions(
    urn: str, schema: Schema | None, outputs: Iterable[OutputColumn], *, is_doubtful: bool
) -> TableVersions:
    """The versions of a downstream dataset, given its changed columns."""
    columns: dict[str, Pair] = {}
    lost: set[str] = set()
    if schema is not None:
        columns = {field.name: (field, field) for field in schema.fields}
    for output in outputs:
        stored = field_named(schema, output.name) if schema is not None else None
        name = stored.name if stored is not None else output.name
        columns[name] = _changed_pair(name, output, stored)
        if output.is_unknown:
            lost.add(name)
    return TableVersions(
        key=urn,
        columns=columns,
        is_complete=schema is not None,
        is_doubtful=is_doubtful,
        lost=frozenset(lost),
    )


def as_stored(output: OutputColumn, stored: Field | None) -> OutputColumn:
    """Return the output with the stored type of its column, if that fits old and new values.

    The analysis may be more exact than the engine: LAG of a DECIMAL(12,2) is a DECIMAL in
    PostgreSQL.
    """
    before, after = output.before, output.after
    if stored is None or before is None or after is None or output.is_unknown:
        return output
    types = (before.type, after.type)
    if stored.type in types or before.type == after.type or not _is_wide_enough(stored.type, types):
        return output
    return msgspec.structs.replace(
        output,
        before=msgspec.structs.replace(before, type=stored.type),
        after=msgspec.structs.replace(after, type=stored.type),
    )


def _is_wide_enough(stored: DataType, types: Iterable[DataType]) -> bool:
    return not isinstance(stored, Unknown) and all(
        resolve_verdict(type_finding(type, stored), frozenset()) is COMPATIBLE for type in types
    )


def _changed_pair(name: str, output: OutputColumn, stored: Field | None) -> Pair:
    before = stored
    if output.before is not None and (before is None or isinstance(before.type, Unknown)):
        before = Field(
            name=name, type=output.before.type, nullable=output.before.nullable is not False
        )
    if output.after is None:
        return before, None
    after = before or Field(name=name, type=output.after.type)
    if output.is_unknown:
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
    """The changed columns with their paths; adds the paths to `paths` for datasets downstream."""
    found = []
    for output in outputs:
        name = _stored_name(versions, output.name)
        if name not in versions.changed and not versions.is_doubtful:
            continue
        origins = (column_origin(each, paths) for each in output.origins)
        origin = next((each for each in origins if each is not None), None)
        path = (*paths.get(origin, (origin,)), (urn, name)) if origin else ((urn, name),)
        paths.setdefault((urn, name), path)
        before, after = versions.columns.get(name, (None, None))
        found.append(ColumnImpact(name=name, before=_value(before), after=_value(after), path=path))
    return tuple(dict.fromkeys(found))


def column_origin(
    origin: tuple[str, str], paths: Mapping[tuple[str, str], Path]
) -> tuple[str, str] | None:
    """The changed column that an origin is, or is inside of; None if it does not change."""
    if origin in paths:
        return origin
    column = origin[0], lineage_column(origin[1])
    return column if column in paths else None


def _stored_name(versions: TableVersions, name: str) -> str:
    """The name of a column as the table spells it."""
    if name in versions.columns:
        return name
    folded = name.casefold()
    return next((each for each in versions.columns if each.casefold() == folded), name)


def _value(field: Field | None) -> ValueType | None:
    return None if field is None else ValueType(type=field.type, nullable=field.nullable)


class DatasetSchemas:
    """Current schemas, cached."""

    def __init__(self, downstream: DownstreamGraph, reason: SqlAnalyzer | None) -> None:
        self._downstream = downstream
        self._reason = reason
        self._found: dict[str, Schema | None] = {}
        self._inferring: set[str] = set()

    def stored(self, urn: str) -> Schema | None:
        """The stored schema, or one inferred earlier."""
        if urn not in self._found:
            self._found[urn] = self._downstream.schema(urn)
        return self._found[urn]

    def known(self, urn: str) -> Schema | None:
        """The stored schema, or one inferred from the SQL that writes the dataset."""
        known = self.stored(urn)
        if known is not None or self._reason is None or urn in self._inferring:
            return known
        self._inferring.add(urn)
        for derivation in self._downstream.derivations(urn):
            if derivation.sql is None:
                continue
            effects = self._reason(derivation, urn, self._unchanged, with_fields=True)
            if effects and effects[0].fields and not effects[0].is_open:
                self._found[urn] = schema_of(effects[0])
                return self._found[urn]
        return None

    def _unchanged(self, urn: str) -> TableVersions:
        return TableVersions.of(urn, self.known(urn))


def schema_of(effect: StatementEffect) -> Schema:
    """Return the schema of a statement's result; of columns with one name, the last one counts."""
    return Schema(fields=tuple({field.name: field for field in effect.fields}.values()))
