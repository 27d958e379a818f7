"""Three-way merge of the entry last written (base), the one in the catalog (theirs) and ours.

Edits of users are preserved, and values that Lumos no longer has are removed. Measured aspects are
always ours. If both sides changed the same value, theirs wins and the conflict is reported.

Objects are merged key by key, also in raw records. Lists are merged by the keys of their members if
these have any, and as sets otherwise: the result has the members that either side added, and lacks
those that either side removed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import (
    ASPECTS,
    Documentation,
    Governance,
    Lineage,
    Ownership,
    UpstreamEdge,
)
from lumos.model.lineage import ColumnMapping, ColumnUse
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.type_path import nested_parts

Value = TypeVar("Value")
_Annotated: TypeAlias = Field | NestedField

MEASURED: Final = frozenset(
    {"location", "statistics", "drift", "definition", "versioning", "usage", "quality", "cost"}
)
"""Aspects that only tools set; ours replace theirs."""
_MEASURED_ITEM_FIELDS: Final = frozenset({"runs", "cost"})
_ANNOTATIONS: Final = ("description", "tags", "terms", "compliance", "properties")
# Lists with members that have keys; all other lists are merged as sets.
_KEYS: Final[dict[type[Any], Callable[[Any], Any]]] = {
    UpstreamEdge: attrgetter("urn"),
    ColumnMapping: attrgetter("upstream", "downstream"),
    ColumnUse: attrgetter("upstream", "usage", "downstream", "expression"),
}
# The keys that identify members of lists in raw records, the most specific first.
_IDENTIFYING_KEYS: Final = (
    ("fieldPath",),
    ("propertyUrn",),
    ("owner", "type", "typeUrn"),
    ("tag",),
    ("tagFQN",),
    ("dataset",),
    ("urn",),
    ("fullyQualifiedName",),
    ("id",),
    ("key",),
    ("name",),
)
_RAW: Final = "raw"
# Audit stamps in raw records are not reported as conflicts.
_AUDIT_STAMPS: Final = ".beside."


class Missing:
    """The value of a key that a side does not have."""

    def __repr__(self) -> str:
        return "nothing"


MISSING: Final = Missing()


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """A value that both users and Lumos changed since the last write; the users' value wins."""

    path: str
    theirs: str
    ours: str


class MergedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The entry to write, and the conflicts in which edits of users won."""

    entry: CatalogEntry
    conflicts: tuple[Conflict, ...] = ()


class MergedItem(NamedTuple):
    item: Any
    conflicts: tuple[Conflict, ...] = ()


def merge(
    base: CatalogEntry | None, theirs: CatalogEntry | None, ours: CatalogEntry
) -> MergedEntry:
    """Merge an entry; aspects that `ours` does not have do not change in the catalog."""
    if theirs is None:
        return MergedEntry(entry=ours)
    merging = _Merge()
    aspects = {
        name: merging.merge_aspect(name, getattr(base, name, None), getattr(theirs, name), mine)
        for name in ASPECTS
        if (mine := getattr(ours, name)) is not None
    }
    name = merging.merge_value("name", None if base is None else base.name, theirs.name, ours.name)
    entry = msgspec.structs.replace(
        theirs,
        urn=ours.urn,
        platform=ours.platform,
        name=name,
        format=ours.format or theirs.format,
        timestamps=ours.timestamps or theirs.timestamps,
        deleted=merging.merge_deleted(base, theirs, ours),
        raw=merging.merge_raw(base, theirs, ours) if ours.raw else theirs.raw,
        **aspects,
    )
    return MergedEntry(entry=entry, conflicts=tuple(merging.conflicts))


def merge_aspect(name: str, base: Any, theirs: Any, ours: Any) -> Any:
    return _Merge().merge_aspect(name, base, theirs, ours)


def merge_raw(base: Any, theirs: Any, ours: Any | None) -> dict[str, Any]:
    """Merge raw records of entries or items."""
    return _Merge().merge_raw(base, theirs, ours)


def merge_json(base: Any, theirs: Any, ours: Any) -> Any:
    """Merge values of raw records, without reporting conflicts."""
    return _Merge().merge_value(_RAW, base, theirs, ours)


def merge_item(base: Any | None, theirs: Any | None, ours: Any) -> MergedItem:
    if theirs is None:
        return MergedItem(ours)
    merging = _Merge()
    fields = {
        field.name: merging.merge_field(field, base, theirs, ours)
        for field in msgspec.structs.fields(type(ours))
    }
    return MergedItem(type(ours)(**fields), tuple(merging.conflicts))


class _Merge:
    """Merges values and collects conflicts."""

    def __init__(self) -> None:
        self.conflicts: list[Conflict] = []

    def merge_aspect(self, name: str, base: Any, theirs: Any, ours: Any) -> Any:
        if ours is None:
            return theirs
        if name == "quality":
            # Our results of validators, with the newer profile.
            profiles = [each.profile for each in (theirs, ours) if each and each.profile]
            newest = max(profiles, key=lambda profile: profile.measured_at, default=None)
            return msgspec.structs.replace(ours, profile=newest)
        if name in MEASURED:
            return ours
        if name == "schema":
            return self._merge_schema(base, theirs, ours)
        if name == "properties" and theirs is None and ours != base:
            theirs = {}
        return self.merge_value(name, base, theirs, ours)

    def merge_raw(self, base: Any, theirs: Any, ours: Any) -> dict[str, Any]:
        """Merge raw records, down to single values."""
        sides = ({} if side is None else side.raw for side in (base, theirs, ours))
        return self._merge_maps(_RAW, *sides)

    def merge_field(
        self, field: msgspec.structs.FieldInfo, base: Any, theirs: Any, ours: Any
    ) -> Any:
        name, mine = field.name, getattr(ours, field.name)
        if name in _MEASURED_ITEM_FIELDS:
            return mine
        if name == "raw":
            return self.merge_raw(base, theirs, ours)
        before = default_of(field) if base is None else getattr(base, name)
        return self.merge_value(name, before, getattr(theirs, name), mine)

    def merge_deleted(
        self, base: CatalogEntry | None, theirs: CatalogEntry, ours: CatalogEntry
    ) -> bool:
        """Whether a dataset is deleted; an edit wins until Lumos's own value changes."""
        was_deleted = False if base is None else base.deleted
        if base is None and theirs.deleted and not ours.deleted:
            self.conflicts.append(Conflict(path="deleted", theirs="hidden", ours="visible"))
        return theirs.deleted if ours.deleted == was_deleted else ours.deleted

    def merge_value(self, path: str, base: Any, theirs: Any, ours: Any) -> Any:
        """Merge a value, which may be missing on any side; of two changes, theirs wins."""
        # Equal maps may differ in order: raw records have the order of theirs, all others of ours.
        if theirs == base and not path.startswith(_RAW):
            return ours
        if ours in (base, theirs):
            return theirs
        if theirs == base:
            return ours
        if theirs is not MISSING:
            known = None if base is MISSING else base
            match ours:
                case Ownership() | Governance() | Documentation() | Lineage() | UpstreamEdge():
                    return self._merge_fields(path, known, theirs, ours)
                case dict() if isinstance(theirs, dict):
                    known = known if isinstance(known, dict) else {}
                    return self._merge_maps(path, known, theirs, ours)
                case tuple():
                    return self._merge_members(path, known or (), theirs, ours)
                case list() if isinstance(theirs, list):
                    known = known if isinstance(known, list) else []
                    return self._merge_lists(path, known, theirs, ours)
        self._add_conflict(Conflict(path=path, theirs=_text(theirs), ours=_text(ours)))
        return theirs

    def _merge_maps(
        self, path: str, base: Mapping[Any, Any], theirs: Mapping[Any, Any], ours: Mapping[Any, Any]
    ) -> dict[Any, Any]:
        """Merge maps key by key, in the order of theirs."""
        merged = {}
        for key in {**theirs, **ours}:
            # Tuples are numbered or compound keys.
            step = key[0] if isinstance(key, tuple) else key
            sides = (side.get(key, MISSING) for side in (base, theirs, ours))
            if (value := self.merge_value(f"{path}.{step}", *sides)) is not MISSING:
                merged[key] = value
        return merged

    def _merge_fields(self, path: str, base: Any, theirs: Any, ours: Any) -> Any:
        fields = msgspec.structs.fields(ours)
        unset = type(ours)(
            **{each.name: getattr(ours, each.name) for each in fields if each.required}
        )
        sides = [unset if side is None else side for side in (base, theirs, ours)]
        return type(ours)(
            **{
                each.name: self.merge_value(
                    f"{path}.{each.name}", *(getattr(side, each.name) for side in sides)
                )
                for each in fields
            }
        )

    def _merge_members(self, path: str, *sides: Sequence[Value]) -> tuple[Value, ...]:
        """Merge lists by the keys of their members if these have any, and otherwise as sets."""
        key = _KEYS.get(type(next(chain(*sides), None)))
        if key is None:
            return _merge_sets(*sides)
        by_key = (_by_key(key, side) for side in sides)
        return tuple(self._merge_maps(path, *by_key).values())

    def _merge_lists(
        self, path: str, base: list[Any], theirs: list[Any], ours: list[Any]
    ) -> list[Any]:
        """Merge lists of raw records."""
        sides = (base, theirs, ours)
        for keys in _IDENTIFYING_KEYS:
            by_key = [
                members for side in sides if (members := _members_by_key(side, keys)) is not None
            ]
            if len(by_key) == len(sides):
                return list(self._merge_maps(path, *by_key).values())
        is_single = all(len(side) < 2 and isinstance(next(iter(side), {}), dict) for side in sides)
        if is_single and theirs and ours:
            # A single member without a key is the same one on all sides.
            return [self.merge_value(path, base[0] if base else {}, theirs[0], ours[0])]
        # As sets: start with ours, remove what they removed, append what they added.
        return [
            *(member for member in ours if member in theirs or member not in base),
            *(member for member in theirs if member not in base and member not in ours),
        ]

    def _add_conflict(self, conflict: Conflict) -> None:
        """Record a conflict; in a raw record, only if no field has one with the same values."""
        if conflict.path.startswith(f"{_RAW}."):
            texts = conflict.theirs, conflict.ours
            is_known = any((each.theirs, each.ours) == texts for each in self.conflicts)
            if is_known or _AUDIT_STAMPS in conflict.path:
                return
        self.conflicts.append(conflict)

    def _merge_schema(self, base: Schema | None, theirs: Schema | None, ours: Schema) -> Schema:
        """Merge the annotations of our columns."""
        if theirs is None or theirs == base:
            return ours
        in_base, in_theirs, in_ours = (
            _by_key(lambda field: field.name, side.fields if side else ())
            for side in (base, theirs, ours)
        )
        fields = [
            self._merge_column(in_base.get(key), in_theirs.get(key), field)
            for key, field in in_ours.items()
        ]
        return Schema(fields=tuple(fields))

    def _merge_column(self, base: Field | None, theirs: Field | None, ours: Field) -> Field:
        if theirs is None or theirs == base:
            return ours
        path = f"schema.{ours.name}"
        own = self._merge_annotations(path, base, theirs, ours)
        in_base, in_theirs, in_ours = (
            {nested.path: nested for nested in (side.nested if side else ())}
            for side in (base, theirs, ours)
        )
        # Annotations of removed nested fields are dropped.
        existing = {part.path for part in nested_parts(ours)} | set(in_ours)
        merged = []
        for nested in {**in_ours, **in_theirs}:
            if nested not in existing:
                continue
            empty = NestedField(path=nested)
            mine = in_ours.get(nested, empty)
            annotations = self._merge_annotations(
                f"{path}.{nested}", in_base.get(nested), in_theirs.get(nested, empty), mine
            )
            both = msgspec.structs.replace(mine, **annotations)
            if nested in in_ours or both != empty:
                merged.append(both)
        return msgspec.structs.replace(ours, **own, nested=tuple(merged))

    def _merge_annotations(
        self, path: str, base: _Annotated | None, theirs: _Annotated, ours: _Annotated
    ) -> dict[str, Any]:
        before = NestedField(path="") if base is None else base
        return {
            name: self.merge_value(
                f"{path}.{name}", *(getattr(side, name) for side in (before, theirs, ours))
            )
            for name in _ANNOTATIONS
        }


def default_of(field: msgspec.structs.FieldInfo) -> Any:
    if field.required:
        return None
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def _merge_sets(
    base: Sequence[Value], theirs: Sequence[Value], ours: Sequence[Value]
) -> tuple[Value, ...]:
    """Merge ordered sets: start with theirs, remove what we removed, append what we added.

    If that leaves exactly our members, the result has our order: some catalogs do not store an
    order and return members in a different one, for example after an interrupted write.
    """
    removed = set(base) - set(ours)
    known = set(theirs) | set(base)
    merged = (
        *(member for member in theirs if member not in removed),
        *(member for member in ours if member not in known),
    )
    return tuple(ours) if set(merged) == set(ours) else merged


def _by_key(key: Callable[[Value], Any], values: Iterable[Value]) -> dict[Any, Value]:
    """The values by key; repeated keys are numbered."""
    values_by_key: dict[Any, Value] = {}
    for value in values:
        number = 0
        while (name := (key(value), number)) in values_by_key:
            number += 1
        values_by_key[name] = value
    return values_by_key


def _text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _members_by_key(items: list[Any], keys: tuple[str, ...]) -> dict[Any, Any] | None:
    """The members of a list by the values of `keys`, or None if these do not identify them."""
    members = {}
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get(keys[0]), str):
            return None
        members[tuple(str(item.get(key)) for key in keys)] = item
    return members if len(members) == len(items) else None
