"""Three-way merge of what Lumos wrote last (base), what the catalog has now (theirs), and ours.

Edits of people stay, and values that Lumos no longer has are removed. Measured aspects are always
ours. If both sides changed the same value, theirs wins and the conflict is reported.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from lumos.catalogs.plain_merge import MISSING, merged_objects
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import (
    ASPECTS,
    Documentation,
    Governance,
    Lineage,
    Ownership,
    Quality,
    UpstreamEdge,
)
from lumos.model.lineage import ColumnMapping, ColumnUse
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.type_path import nested_parts

Value = TypeVar("Value")
Key = TypeVar("Key")

MEASURED: Final = frozenset(
    {"location", "statistics", "drift", "definition", "versioning", "usage", "quality", "cost"}
)
"""Aspects that nobody edits by hand."""
_MEASURED_OF_ITEMS: Final = frozenset({"runs", "cost"})
# Audit stamps in raw records are not reported as conflicts.
_BOOKKEEPING: Final = ".beside."


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """A value that both people and Lumos changed since the last write; theirs was kept."""

    path: str
    theirs: str
    ours: str


class MergedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The entry to write, and the conflicts in which edits of people won."""

    entry: CatalogEntry
    conflicts: tuple[Conflict, ...] = ()


class MergedItem(NamedTuple):
    """The item to write, and its conflicts."""

    item: Any
    conflicts: tuple[Conflict, ...] = ()


def merge(
    base: CatalogEntry | None, theirs: CatalogEntry | None, ours: CatalogEntry
) -> MergedEntry:
    """Merge an entry; aspects that `ours` does not have stay as they are in the catalog."""
    if theirs is None:
        return MergedEntry(entry=ours)
    merging = _Merging()
    aspects = {
        name: merging.aspect(name, getattr(base, name, None), getattr(theirs, name), mine)
        for name in ASPECTS
        if (mine := getattr(ours, name)) is not None
    }
    name = merging.scalar("name", None if base is None else base.name, theirs.name, ours.name)
    entry = msgspec.structs.replace(
        theirs,
        urn=ours.urn,
        platform=ours.platform,
        name=name,
        format=ours.format or theirs.format,
        timestamps=ours.timestamps or theirs.timestamps,
        deleted=merging.deleted(base, theirs, ours),
        raw=merging.raw(base, theirs, ours) if ours.raw else theirs.raw,
        **aspects,
    )
    return MergedEntry(entry=entry, conflicts=tuple(merging.conflicts))


def merged_aspect(name: str, base: Any, theirs: Any, ours: Any) -> Any:
    """Merge one aspect."""
    return _Merging().aspect(name, base, theirs, ours)


def merged_raw(base: Any, theirs: Any, ours: Any | None) -> dict[str, Any]:
    """Merge raw records of entries or items."""
    return _Merging().raw(base, theirs, ours)


def merged_item(base: Any | None, theirs: Any | None, ours: Any) -> MergedItem:
    """Merge an item with all its fields."""
    if theirs is None:
        return MergedItem(ours)
    merging = _Merging()
    fields = {
        field.name: merging.fact(field, base, theirs, ours)
        for field in msgspec.structs.fields(type(ours))
    }
    return MergedItem(type(ours)(**fields), tuple(merging.conflicts))


def _quality(theirs: Quality | None, ours: Quality) -> Quality:
    """Our results of validators, with the newer profile."""
    profiles = [each.profile for each in (theirs, ours) if each is not None and each.profile]
    newest = max(profiles, key=lambda profile: profile.measured_at, default=None)
    return msgspec.structs.replace(ours, profile=newest)


class _Merging:
    """One merge, which collects conflicts."""

    def __init__(self) -> None:
        self.conflicts: list[Conflict] = []

    def aspect(self, name: str, base: Any, theirs: Any, ours: Any) -> Any:
        if ours is None:
            return theirs
        if name == "quality":
            return _quality(theirs, ours)
        if name in MEASURED:
            return ours
        if name == "schema":
            return self._schema(base, theirs, ours)
        if theirs == base:
            return ours
        if ours in (base, theirs):
            return theirs
        match ours:
            case Ownership():
                empty = Ownership()
                return Ownership(owners=_members(*_each("owners", base, theirs, ours, empty)))
            case Governance():
                return self._governance(base, theirs, ours)
            case Documentation():
                return self._fieldwise(name, base, theirs, ours, Documentation())
            case Lineage():
                return self._lineage(base, theirs, ours)
            case dict():
                return self._mapping(name, self.scalar, base or {}, theirs or {}, ours)
            case _:
                return self.scalar(name, base, theirs, ours)

    def raw(self, base: Any, theirs: Any, ours: Any) -> dict[str, Any]:
        """Raw records, merged as deeply as both sides changed them."""
        old, now, new = ({} if side is None else side.raw for side in (base, theirs, ours))
        return merged_objects("raw", old, now, new, self._add_conflict_once)

    def fact(self, field: msgspec.structs.FieldInfo, base: Any, theirs: Any, ours: Any) -> Any:
        """One field of an item."""
        name, mine = field.name, getattr(ours, field.name)
        if name in _MEASURED_OF_ITEMS:
            return mine
        if name == "raw":
            return self.raw(base, theirs, ours)
        before = default_of(field) if base is None else getattr(base, name)
        sides = (before, getattr(theirs, name), mine)
        match mine:
            case tuple():
                return _members(*sides)
            case dict():
                return self._mapping(name, self.scalar, *sides)
            case _:
                return self.scalar(name, *sides)

    def deleted(self, base: CatalogEntry | None, theirs: CatalogEntry, ours: CatalogEntry) -> bool:
        """Whether a dataset is deleted; an edit stays until Lumos's own value changes."""
        was = False if base is None else base.deleted
        if base is None and theirs.deleted and not ours.deleted:
            self.conflicts.append(Conflict(path="deleted", theirs="hidden", ours="there"))
        return theirs.deleted if ours.deleted == was else ours.deleted

    def _add_conflict_once(self, path: str, theirs: Any, ours: Any) -> None:
        """Record a conflict, unless the same values conflict elsewhere already."""
        conflict = Conflict(path=path, theirs=_text(theirs), ours=_text(ours))
        is_known = any(
            (each.theirs, each.ours) == (conflict.theirs, conflict.ours) for each in self.conflicts
        )
        if not is_known and _BOOKKEEPING not in path:
            self.conflicts.append(conflict)

    def scalar(self, path: str, base: Any, theirs: Any, ours: Any) -> Any:
        """One value; if both sides changed it, theirs wins."""
        if ours in (base, theirs):
            return theirs
        if theirs == base:
            return ours
        self.conflicts.append(Conflict(path=path, theirs=_text(theirs), ours=_text(ours)))
        return theirs

    def _fieldwise(self, path: str, base: Any, theirs: Any, ours: Any, empty: Any) -> Any:
        return type(ours)(
            **{
                field: self.scalar(f"{path}.{field}", *_each(field, base, theirs, ours, empty))
                for field in ours.__struct_fields__
            }
        )

    @staticmethod
    def _governance(base: Governance | None, theirs: Governance | None, ours: Governance) -> Any:
        return Governance(
            **{
                field: _members(*_each(field, base, theirs, ours, Governance()))
                for field in Governance.__struct_fields__
            }
        )

    def _mapping(
        self,
        path: str,
        leaf: Callable[[str, Any, Any, Any], Any],
        base: Mapping[Key, Value],
        theirs: Mapping[Key, Value],
        ours: Mapping[Key, Value],
    ) -> dict[Key, Value]:
        if theirs == base:
            return dict(ours)
        merged: dict[Key, Value] = {}
        for key in {**theirs, **ours}:
            sides = (side.get(key, MISSING) for side in (base, theirs, ours))
            value = leaf(f"{path}.{_shown(key)}", *sides)
            if value is not MISSING:
                merged[key] = value
        return merged

    def _lineage(self, base: Lineage | None, theirs: Lineage | None, ours: Lineage) -> Lineage:
        return Lineage(
            **{
                side: self._edges(f"lineage.{side}", *_each(side, base, theirs, ours, Lineage()))
                for side in Lineage.__struct_fields__
            }
        )

    def _edges(
        self, path: str, base: Sequence[UpstreamEdge], theirs: Any, ours: Any
    ) -> tuple[UpstreamEdge, ...]:
        sides = (_by(lambda edge: edge.urn, edges) for edges in (base, theirs, ours))
        return tuple(self._mapping(path, self._edge, *sides).values())

    def _edge(self, path: str, base: Any, theirs: Any, ours: Any) -> Any:
        if MISSING in (theirs, ours) or theirs == base:
            return self.scalar(path, base, theirs, ours)
        nothing = UpstreamEdge(urn=ours.urn)
        base = nothing if base is MISSING else base
        columns = (
            _by(lambda column: (column.upstream, column.downstream), edge.columns)
            for edge in (base, theirs, ours)
        )
        mapped: dict[Any, ColumnMapping] = self._mapping(f"{path}.columns", self.scalar, *columns)
        uses = (_by(_used, edge.uses) for edge in (base, theirs, ours))
        used: dict[Any, ColumnUse] = self._mapping(f"{path}.uses", self.scalar, *uses)
        return UpstreamEdge(
            urn=ours.urn,
            type=self.scalar(f"{path}.type", base.type, theirs.type, ours.type),
            columns=tuple(mapped.values()),
            uses=tuple(used.values()),
        )

    def _schema(self, base: Schema | None, theirs: Schema | None, ours: Schema) -> Schema:
        """Our columns, with the annotations of both sides."""
        if theirs is None or theirs == base:
            return ours
        old, now = (
            _by(lambda field: field.name, side.fields if side else ()) for side in (base, theirs)
        )
        fields = [
            self._field(old.get(key), now.get(key), field)
            for key, field in _by(lambda field: field.name, ours.fields).items()
        ]
        return Schema(fields=tuple(fields))

    def _field(self, base: Field | None, theirs: Field | None, ours: Field) -> Field:
        if theirs is None or theirs == base:
            return ours
        path = f"schema.{ours.name}"
        sides = (
            {note.path: note for note in (side.nested if side else ())}
            for side in (base, theirs, ours)
        )
        return msgspec.structs.replace(
            ours,
            **self._annotations(path, base, theirs, ours),
            nested=self._nested_fields(path, ours, *sides),
        )

    def _nested_fields(
        self,
        path: str,
        field: Field,
        base: Mapping[str, NestedField],
        theirs: Mapping[str, NestedField],
        ours: Mapping[str, NestedField],
    ) -> tuple[NestedField, ...]:
        """Annotations of nested fields; those of fields that are gone are removed."""
        there = {part.path for part in nested_parts(field)} | set(ours)
        notes = []
        for place in {**ours, **theirs}:
            if place not in there:
                continue
            nothing = NestedField(path=place)
            mine = ours.get(place, nothing)
            words = self._annotations(
                f"{path}.{place}", base.get(place), theirs.get(place, nothing), mine
            )
            notes.append(msgspec.structs.replace(mine, **words))
        return tuple(
            note for note in notes if note.path in ours or note != NestedField(path=note.path)
        )

    def _annotations(
        self,
        path: str,
        base: Field | NestedField | None,
        theirs: Field | NestedField,
        ours: Field | NestedField,
    ) -> dict[str, Any]:
        """The annotations of a field: description, labels and properties."""
        before = NestedField(path="") if base is None else base
        words: dict[str, Any] = {
            name: _members(*(getattr(side, name) for side in (before, theirs, ours)))
            for name in ("tags", "terms", "compliance")
        }
        words["description"] = self.scalar(
            f"{path}.description", before.description, theirs.description, ours.description
        )
        sides = (side.properties for side in (before, theirs, ours))
        words["properties"] = self._mapping(f"{path}.properties", self.scalar, *sides)
        return words


def default_of(field: msgspec.structs.FieldInfo) -> Any:
    """The default value of a field."""
    if field.required:
        return None
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def _members(
    base: Sequence[Value], theirs: Sequence[Value], ours: Sequence[Value]
) -> tuple[Value, ...]:
    """Merge ordered sets: theirs without members that we removed, followed by those we added."""
    if theirs == base:
        return tuple(ours)
    claimed = set(ours)
    gone = set(base) - claimed
    there = set(theirs) | set(base)
    return (
        *(member for member in theirs if member not in gone),
        *(member for member in ours if member not in there),
    )


def _each(field: str, base: Any, theirs: Any, ours: Any, empty: Any) -> tuple[Any, Any, Any]:
    base, theirs = (empty if side is None else side for side in (base, theirs))
    return getattr(base, field), getattr(theirs, field), getattr(ours, field)


def _by(key: Callable[[Value], Any], values: Iterable[Value]) -> dict[Any, Value]:
    """The values by key; repeated keys are numbered."""
    found: dict[Any, Value] = {}
    for value in values:
        number = 0
        while (name := (key(value), number)) in found:
            number += 1
        found[name] = value
    return found


def _used(use: ColumnUse) -> tuple[str | None, ...]:
    return use.upstream, use.usage, use.downstream, use.expression


def _shown(key: Any) -> str:
    """The text of a key, or of one that `_by` numbered."""
    return str(key[0] if isinstance(key, tuple) else key)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)
