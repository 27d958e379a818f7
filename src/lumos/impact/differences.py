"""Reads what `lumos schema diff` wrote: which schemas change, and how."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from lumos.errors import MisuseError
from lumos.impact.cases import Case, judged
from lumos.impact.changes import last_name, places_of
from lumos.impact.context import StoredDownstream
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
from lumos.model.schema import Field, Schema
from lumos.model.types import DataType, SchemaSyntaxError, parse_type
from lumos.schemas.apply import apply
from lumos.schemas.findings import ChangeRow
from lumos.schemas.output import given
from lumos.schemas.paths import parent_of
from lumos.schemas.portable import Recorded, portable_urns
from lumos.schemas.reports import DatasetDiff, DiffReport
from lumos.store import Store

_NOT_NULL: Final = " NOT NULL"
# Reports do not say at which place among the others a column comes.
_LAST: Final = 1_000_000
_DATASET: Final = ""


def read_differences(file: str | Path) -> tuple[DatasetDiff, ...]:
    """The datasets that differ by a report of `lumos schema diff` or `lumos schema predict`."""
    path = Path(given(str(file), "file of changes"))
    if not path.is_file():
        raise MisuseError(f"There is no file {path}. Write one with: lumos schema diff --base main")
    try:
        return decode_json(path.read_bytes(), DiffReport).datasets
    except msgspec.MsgspecError as problem:
        raise MisuseError(
            f"{path} is no report of lumos schema diff: {problem}. Write one with: lumos schema "
            "diff --base main, or with --output"
        ) from None


def stored_urns(store: Store, urns: Collection[str]) -> dict[str, str]:
    """The URN in the store of each URN, which may stand in an export of schemas."""
    resolved = {urn: store.resolve(urn) for urn in urns}
    recorded = [Recorded(*each) for each in store.archive.sources()]
    known = {each.urn for each in recorded}
    if known.issuperset(resolved.values()):
        return resolved
    exported = {portable: urn for urn, portable in portable_urns(recorded).items()}
    return {
        urn: found if found in known else exported.get(urn, found)
        for urn, found in resolved.items()
    }


def is_new(diff: DatasetDiff) -> bool:
    """Whether the dataset was not there before."""
    return any(row.path == _DATASET and row.kind == "added" for row in diff.changes)


def is_removed(diff: DatasetDiff) -> bool:
    """Whether the dataset goes as a whole."""
    return any(row.path == _DATASET and row.kind == "removed" for row in diff.changes)


def case_of_difference(world: StoredDownstream, diff: DatasetDiff) -> Case:
    """The case that a report tells of; what the report says counts before what the store has."""
    changes = tuple(_change(diff.urn, row) for row in diff.changes)
    stored = world.schema(world.urn)
    if stored is None:
        return Case(judged(world, None, None, changes), None, None, {}, ())
    present = apply(_imposed(changes, stored), stored)
    remarks = []
    is_done = not any(_imposed(map(_undoing, changes), stored))
    if present.shape != stored.shape and not is_done:
        remarks.append(
            f"the store has {diff.urn} otherwise than it was before these changes, and than it is "
            "after them; they are judged as they are told"
        )
    proposed = apply(_fitting(changes, present), present)
    world.suppose(present)
    findings = judged(world, present, proposed, changes)
    return Case(findings, present, proposed, {}, tuple(remarks))


def _undoing(change: AnySchemaChange) -> AnySchemaChange:
    """The change back, of those that change what a schema is made of."""
    match change:
        case FieldAdded(path=path, after=field):
            return FieldRemoved(path=path, before=field)
        case FieldRemoved(path=path, before=field):
            return FieldAdded(path=path, after=field, position=_LAST)
        case TypeChanged() | NullabilityChanged():
            return msgspec.structs.replace(change, before=change.after, after=change.before)
        case _:
            return change


def _imposed(changes: Iterable[AnySchemaChange], stored: Schema) -> Iterator[AnySchemaChange]:
    """What must be done to a schema for it to be as it was before the changes."""
    known = places_of(stored)
    for change in changes:
        place = known.get(change.path)
        can_be_added = place is None and parent_of(change.path) in ("", *known)
        match change:
            case FieldAdded(path=path) if place is not None:
                yield FieldRemoved(path=path, before=change.after)
            case FieldRemoved(path=path, before=field) if can_be_added:
                yield FieldAdded(path=path, after=field, position=_LAST)
            case TypeChanged(path=path, before=before) if can_be_added:
                field = Field(name=last_name(path), type=before)
                yield FieldAdded(path=path, after=field, position=_LAST)
            case TypeChanged(path=path, before=before) if place is not None:
                if place.type != before:
                    yield TypeChanged(path=path, before=place.type, after=before)
            case NullabilityChanged(path=path, before=nullable) if place is not None:
                if place.nullable != nullable:
                    yield NullabilityChanged(path=path, before=place.nullable, after=nullable)


def _fitting(changes: Sequence[AnySchemaChange], present: Schema) -> Iterator[AnySchemaChange]:
    """The changes but for an order of other columns than there are."""
    gone = {change.path for change in changes if isinstance(change, FieldRemoved)}
    siblings: dict[str, set[str]] = {}
    for path in places_of(present):
        if path not in gone:
            siblings.setdefault(parent_of(path), set()).add(last_name(path))
    for change in changes:
        if not isinstance(change, Reordered) or set(change.after) == siblings.get(change.path):
            yield change


def _change(urn: str, row: ChangeRow) -> AnySchemaChange:
    """The change that a row tells of."""
    path, before, after = row.path, row.before, row.after
    match row.kind, before, after:
        case "added", None, str():
            return FieldAdded(path=path, after=_field(urn, path, after), position=_LAST)
        case "removed", str(), None:
            return FieldRemoved(path=path, before=_field(urn, path, before))
        case "type_changed", str(), str():
            types = (_type(urn, path, side) for side in (before, after))
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
            raise MisuseError(f"A change of {urn} cannot be understood: {row.kind} of '{path}'.")


def _field(urn: str, path: str, text: str) -> Field:
    is_required = text.endswith(_NOT_NULL)
    type = _type(urn, path, text.removesuffix(_NOT_NULL))
    return Field(name=last_name(path), type=type, nullable=not is_required)


def _type(urn: str, path: str, text: str) -> DataType:
    try:
        return parse_type(text)
    except SchemaSyntaxError as problem:
        raise MisuseError(
            f"A change of {path} in {urn} names no type: '{text}', {problem.problem}."
        ) from None
