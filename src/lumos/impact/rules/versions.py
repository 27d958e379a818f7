"""Schemas of datasets before and after a change."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from lumos.impact.rules.edges import find_field
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

# A column before and after a change; None if it does not exist.
FieldPair = tuple[Field | None, Field | None]
# The (dataset, column) steps from a changed column to one derived from it.
Path = tuple[tuple[str, str], ...]


def versions_of_changed_dataset(
    urn: str, changes: Sequence[AnySchemaChange], schema: Schema | None
) -> TableVersions:
    """The schemas of the changed dataset before and after its changes."""
    if schema is not None:
        return TableVersions.of(urn, schema, apply(changes, schema))
    columns: dict[str, FieldPair] = {}
    for change in changes:
        if column_of(change.path) == change.path:
            columns.update(_column_pair(change, columns))
    may_have_changed = any(column_of(change.path) != change.path for change in changes)
    return TableVersions(
        key=urn, columns=columns, is_complete=False, may_have_changed=may_have_changed
    )


def _column_pair(change: AnySchemaChange, pairs: Mapping[str, FieldPair]) -> dict[str, FieldPair]:
    """A changed column before and after, by name; for datasets whose schema is unknown."""
    path = change.path
    name = path[1:-1].replace("``", "`") if path.startswith("`") else path
    old, new = pairs.get(name, (None, None))
    match change:
        case FieldAdded(after=field):
            return {field.name: (None, field)}
        case FieldRemoved(before=field):
            return {field.name: (field, None)}
        case TypeChanged(before=before, after=after):
            nullable = [each.nullable if each is not None else True for each in (old, new)]
            return {
                name: (
                    Field(name=name, type=before, nullable=nullable[0]),
                    Field(name=name, type=after, nullable=nullable[1]),
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


def versions_of_downstream_dataset(
    urn: str, schema: Schema | None, outputs: Iterable[OutputColumn], *, may_have_changed: bool
) -> TableVersions:
    """The schemas of a downstream dataset before and after, given its changed columns."""
    columns: dict[str, FieldPair] = {}
    unknown_columns: set[str] = set()
    if schema is not None:
        columns = {field.name: (field, field) for field in schema.fields}
    for output in outputs:
        stored = find_field(schema, output.name)
        name = stored.name if stored is not None else output.name
        columns[name] = _changed_pair(name, output, stored)
        if output.is_unknown:
            unknown_columns.add(name)
    return TableVersions(
        key=urn,
        columns=columns,
        is_complete=schema is not None,
        may_have_changed=may_have_changed,
        unknown_columns=frozenset(unknown_columns),
    )


def with_stored_type(output: OutputColumn, stored: Field | None) -> OutputColumn:
    """Replace the computed types by the stored type of the column, if that can hold both.

    The analysis may be more exact than the engine: LAG of a DECIMAL(12,2) is a DECIMAL in
    PostgreSQL, so a change to DECIMAL(14,2) does not change the column.
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


def _changed_pair(name: str, output: OutputColumn, stored: Field | None) -> FieldPair:
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


def changed_columns(
    urn: str,
    versions: TableVersions,
    outputs: Iterable[OutputColumn],
    paths: dict[tuple[str, str], Path],
) -> tuple[ColumnImpact, ...]:
    """The changed columns with their paths, which are added to `paths`."""
    impacts = []
    for output in outputs:
        name = _stored_name(versions, output.name)
        if name not in versions.changed_columns and not versions.may_have_changed:
            continue
        origins = (column_origin(each, paths) for each in output.origins)
        origin = next((each for each in origins if each is not None), None)
        path = (*paths.get(origin, (origin,)), (urn, name)) if origin else ((urn, name),)
        paths.setdefault((urn, name), path)
        before, after = (
            None if each is None else ValueType.of(each)
            for each in versions.columns.get(name, (None, None))
        )
        impacts.append(ColumnImpact(name=name, before=before, after=after, path=path))
    return tuple(dict.fromkeys(impacts))


def column_origin(
    origin: tuple[str, str], paths: Mapping[tuple[str, str], Path]
) -> tuple[str, str] | None:
    """The changed column of an origin, which may be a nested field; None if it does not change."""
    if origin in paths:
        return origin
    column = origin[0], lineage_column(origin[1])
    return column if column in paths else None


def _stored_name(versions: TableVersions, name: str) -> str:
    """The name of a column in the case that the table uses."""
    if name in versions.columns:
        return name
    folded = name.casefold()
    return next((each for each in versions.columns if each.casefold() == folded), name)


class CurrentSchemas:
    """Caches current schemas, and infers missing ones from SQL."""

    def __init__(self, downstream: DownstreamGraph, analyze_sql: SqlAnalyzer | None) -> None:
        self._downstream = downstream
        self._analyze_sql = analyze_sql
        self._schemas: dict[str, Schema | None] = {}
        self._inferring: set[str] = set()

    def stored(self, urn: str) -> Schema | None:
        """The stored schema, or one inferred earlier."""
        if urn not in self._schemas:
            self._schemas[urn] = self._downstream.schema(urn)
        return self._schemas[urn]

    def stored_or_inferred(self, urn: str) -> Schema | None:
        """The stored schema, or one inferred from the SQL that writes the dataset."""
        schema = self.stored(urn)
        if schema is not None or self._analyze_sql is None or urn in self._inferring:
            return schema
        self._inferring.add(urn)
        for derivation in self._downstream.derivations(urn):
            if derivation.sql is None:
                continue
            effects = self._analyze_sql(derivation, urn, self._unchanged_versions, with_fields=True)
            if effects and effects[0].fields and not effects[0].may_write_other_columns:
                self._schemas[urn] = schema_of(effects[0])
                return self._schemas[urn]
        return None

    def _unchanged_versions(self, urn: str) -> TableVersions:
        return TableVersions.of(urn, self.stored_or_inferred(urn))


def schema_of(effect: StatementEffect) -> Schema:
    """The schema of a statement's result; the last of several columns with one name is used."""
    return Schema(fields=tuple({field.name: field for field in effect.fields}.values()))
