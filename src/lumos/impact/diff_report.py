"""Impact cases from a report of `lumos schema diff`."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from lumos.errors import MisuseError
from lumos.impact.changes import ImpactCase, classify_changes, column_parts, last_name
from lumos.impact.context import ImpactContext
from lumos.model.change import (
    AnySchemaChange,
    DefaultChanged,
    DescriptionChanged,
    FieldAdded,
    FieldRemoved,
    KeyChanged,
    NullabilityChanged,
    PartitioningChanged,
    Reordered,
    TagsChanged,
    TypeChanged,
)
from lumos.model.json_codec import decode_json
from lumos.model.paths import parent_of
from lumos.model.schema import Field, Schema
from lumos.model.types import DataType, SchemaSyntaxError, parse_type
from lumos.schemas.apply import apply
from lumos.schemas.export import RecordedUrn, portable_urns
from lumos.schemas.findings import ChangeRow
from lumos.schemas.output import require_text
from lumos.schemas.reports import DatasetDiff, DiffReport
from lumos.store import Store

_NOT_NULL: Final = " NOT NULL"
# Columns are added at the end, since reports do not include positions.
_LAST_POSITION: Final = 1_000_000
_DATASET_PATH: Final = ""


def read_diff_report(file: str | Path) -> tuple[DatasetDiff, ...]:
    """The changed datasets in a report of `lumos schema diff` or `lumos schema predict`."""
    path = Path(require_text(str(file), "file of changes"))
    if not path.is_file():
        raise MisuseError(
            f"File not found: {path}. Create it with: lumos schema diff --base main. "
            "For a change of one dataset use: lumos impact DATASET --drop COLUMN"
        )
    try:
        return decode_json(path.read_bytes(), DiffReport).datasets
    except msgspec.MsgspecError as problem:
        raise MisuseError(
            f"{path} is not a report of lumos schema diff: {problem}. Create one with: "
            "lumos schema diff --base main"
        ) from None


def stored_urns(store: Store, urns: Collection[str]) -> dict[str, str]:
    """The stored URN of each URN, which may come from a schema export."""
    resolved = {urn: store.resolve(urn) for urn in urns}
    recorded = [RecordedUrn(*each) for each in store.schemas.sources()]
    stored = {each.urn for each in recorded}
    if stored.issuperset(resolved.values()):
        return resolved
    exported = {portable: urn for urn, portable in portable_urns(recorded).items()}
    return {
        urn: resolved_urn if resolved_urn in stored else exported.get(urn, resolved_urn)
        for urn, resolved_urn in resolved.items()
    }


def is_new(diff: DatasetDiff) -> bool:
    """Whether the dataset is new."""
    return any(row.path == _DATASET_PATH and row.kind == "added" for row in diff.changes)


def is_removed(diff: DatasetDiff) -> bool:
    """Whether the dataset is removed."""
    return any(row.path == _DATASET_PATH and row.kind == "removed" for row in diff.changes)


def case_from_diff(context: ImpactContext, diff: DatasetDiff) -> ImpactCase:
    """The impact case of a diff, which takes precedence over the stored schema."""
    changes = tuple(_parse_change(diff.urn, row) for row in diff.changes)
    stored = context.schema(context.urn)
    if stored is None:
        return ImpactCase(classify_changes(context, None, None, changes), None, None, {}, ())
    present = apply(_changes_to_restore(changes, stored), stored)
    remarks = []
    is_after_changes = not any(_changes_to_restore(map(_reverse, changes), stored))
    if present.shape != stored.shape and not is_after_changes:
        remarks.append(
            f"the stored schema of {diff.urn} matches neither the state before nor after these "
            "changes; the changes are assessed as the report lists them"
        )
    proposed = apply(_without_invalid_reorderings(changes, present), present)
    context.assume_schema(present)
    findings = classify_changes(context, present, proposed, changes)
    return ImpactCase(findings, present, proposed, {}, tuple(remarks))


def _reverse(change: AnySchemaChange) -> AnySchemaChange:
    """The reverse of a change of columns, types or nullability."""
    match change:
        case FieldAdded(path=path, after=field):
            return FieldRemoved(path=path, before=field)
        case FieldRemoved(path=path, before=field):
            return FieldAdded(path=path, after=field, position=_LAST_POSITION)
        case TypeChanged() | NullabilityChanged():
            return msgspec.structs.replace(change, before=change.after, after=change.before)
        case _:
            return change


def _changes_to_restore(
    changes: Iterable[AnySchemaChange], stored: Schema
) -> Iterator[AnySchemaChange]:
    """The changes that turn the stored schema into the schema before the given changes."""
    parts = column_parts(stored)
    for change in changes:
        part = parts.get(change.path)
        can_be_added = part is None and parent_of(change.path) in ("", *parts)
        match change:
            case FieldAdded(path=path) if part is not None:
                yield FieldRemoved(path=path, before=change.after)
            case FieldRemoved(path=path, before=field) if can_be_added:
                yield FieldAdded(path=path, after=field, position=_LAST_POSITION)
            case TypeChanged(path=path, before=before) if can_be_added:
                field = Field(name=last_name(path), type=before)
                yield FieldAdded(path=path, after=field, position=_LAST_POSITION)
            case TypeChanged(path=path, before=before) if part is not None:
                if part.type != before:
                    yield TypeChanged(path=path, before=part.type, after=before)
            case NullabilityChanged(path=path, before=nullable) if part is not None:
                if part.nullable != nullable:
                    yield NullabilityChanged(path=path, before=part.nullable, after=nullable)


def _without_invalid_reorderings(
    changes: Sequence[AnySchemaChange], present: Schema
) -> Iterator[AnySchemaChange]:
    """The changes, except reorderings that do not match the columns."""
    removed_paths = {change.path for change in changes if isinstance(change, FieldRemoved)}
    siblings: dict[str, set[str]] = {}
    for path in column_parts(present):
        if path not in removed_paths:
            siblings.setdefault(parent_of(path), set()).add(last_name(path))
    for change in changes:
        if not isinstance(change, Reordered) or set(change.after) == siblings.get(change.path):
            yield change


def _parse_change(urn: str, row: ChangeRow) -> AnySchemaChange:
    """The schema change that a row of the report describes."""
    path, before, after = row.path, row.before, row.after
    match row.kind, before, after:
        case "added", None, str():
            return FieldAdded(
                path=path, after=_parse_field(urn, path, after), position=_LAST_POSITION
            )
        case "removed", str(), None:
            return FieldRemoved(path=path, before=_parse_field(urn, path, before))
        case "type_changed", str(), str():
            types = (_parse_type(urn, path, side) for side in (before, after))
            return TypeChanged(path=path, before=next(types), after=next(types))
        case "nullability", bool(), bool():
            return NullabilityChanged(path=path, before=before, after=after)
        case "key", bool(), bool():
            return KeyChanged(path=path, before=before, after=after)
        case "partitioning", bool(), bool():
            return PartitioningChanged(path=path, before=before, after=after)
        case "reordered", tuple(), tuple():
            return Reordered(path=path, before=before, after=after)
        case "tags", tuple(), tuple():
            return TagsChanged(path=path, before=before, after=after)
        case "default", str() | None, str() | None:
            return DefaultChanged(path=path, before=before, after=after)
        case "description", str() | None, str() | None:
            return DescriptionChanged(path=path, before=before, after=after)
        case _:
            raise MisuseError(f"Unknown change of {urn}: {row.kind} of '{path}'.")


def _parse_field(urn: str, path: str, text: str) -> Field:
    is_required = text.endswith(_NOT_NULL)
    type = _parse_type(urn, path, text.removesuffix(_NOT_NULL))
    return Field(name=last_name(path), type=type, nullable=not is_required)


def _parse_type(urn: str, path: str, text: str) -> DataType:
    try:
        return parse_type(text)
    except SchemaSyntaxError as problem:
        raise MisuseError(f"Invalid type '{text}' of {path} in {urn}: {problem.problem}.") from None
