"""The differences between two states of an entry by aspect, with their impact.

A difference is breaking if something that others rely on was removed or became worse, such as a
dataset, a column, a lineage edge, the last owner, a compliance label, or a passed check. Additions,
and removals that do not affect others, are non-breaking. Everything else is informational.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from lumos.errors import MisuseError
from lumos.model.catalog import CatalogEntry
from lumos.model.change import Verdict
from lumos.model.dataset import (
    ASPECTS,
    Documentation,
    Governance,
    Lineage,
    Owner,
    Ownership,
    Profile,
    Quality,
    UpstreamEdge,
)
from lumos.model.json_codec import to_plain
from lumos.model.lineage import ColumnMapping, ColumnUse
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.types import quoted_name
from lumos.snapshots.format.document import (
    DATASETS,
    GLOSSARY,
    GROUPS,
    JOBS,
    OTHERS,
    USERS,
    EntryKind,
)

DifferenceImpact: TypeAlias = Literal["breaking", "non-breaking", "informational"]


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A difference: the entry, the aspect, the path inside the aspect, and both values.

    `kind` is the kind of the entry, and `key` its URN or name. The aspect is `entry` if the entire
    entry was added or removed. Data types are values in their canonical text form.
    """

    kind: str
    key: str
    aspect: str
    path: str
    change: str
    impact: DifferenceImpact
    before: Any = None
    after: Any = None
    notes: tuple[str, ...] = ()


class ClassifiedChange(Protocol):
    """A change between two schemas, with its verdict for consumers."""

    @property
    def path(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def before(self) -> Any: ...
    @property
    def after(self) -> Any: ...
    @property
    def consumer(self) -> Verdict: ...
    @property
    def notes(self) -> tuple[str, ...]: ...


# Compares two schemas of a dataset, given its URN, both schemas and its format; returns the changes
# with their verdicts.
CompareSchemas: TypeAlias = Callable[[str, Schema, Schema, str | None], Iterable[ClassifiedChange]]

# The aspects that are compared by default: what users and catalogs record about data.
COMPARED: Final = (
    *("schema", "lineage", "ownership", "documentation", "governance", "properties", "quality"),
    "raw",
)
# The aspects that are compared on request: locations and measurements.
OPTIONAL_ASPECTS: Final = (
    *("name", "format"),
    *(name for name in ASPECTS if name not in COMPARED),
    *("timestamps", "runs"),
)

_IMPACTS: Final[dict[Verdict, DifferenceImpact]] = {
    Verdict.BREAKING: "breaking",
    # An undetermined change may be breaking.
    Verdict.UNDETERMINED: "breaking",
    Verdict.COMPATIBLE: "non-breaking",
    Verdict.INFORMATIONAL: "informational",
}
_OPTIONAL_FIELDS: Final = ("properties", "schedule", "cost", "runs", "raw")
_MAPPING_FIELDS: Final = ("derivation", "cast_to", "positional", "star", "file", "line")
_USE_FIELDS: Final = ("cast_to", "negated", "file", "line")
_STATUS_RANKS: Final = {"PASSED": 0, "WARNING": 1, "FAILED": 2}
# For entries of other kinds, the aspect of datasets to which they belong.
_ASPECT_OF_KIND: Final = {
    GLOSSARY: "governance",
    USERS: "ownership",
    GROUPS: "ownership",
    JOBS: "lineage",
    OTHERS: "raw",
}


class AspectDifference(NamedTuple):
    """A difference inside an aspect."""

    path: str
    change: str
    impact: DifferenceImpact
    before: Any = None
    after: Any = None
    notes: tuple[str, ...] = ()


class ImpactRule(NamedTuple):
    """The impact of adding, removing or changing a value."""

    added: DifferenceImpact
    removed: DifferenceImpact
    changed: DifferenceImpact = "informational"


_MINOR: Final = ImpactRule(added="informational", removed="non-breaking")
_REQUIRED: Final = ImpactRule(added="non-breaking", removed="breaking")
# Values that are specific to one catalog do not affect others.
_CATALOG_SPECIFIC: Final = ImpactRule(added="informational", removed="informational")


def is_compared(kind: EntryKind, aspects: Iterable[str]) -> bool:
    """Whether entries of this kind are compared if these aspects are."""
    return kind is DATASETS or _ASPECT_OF_KIND[kind] in aspects


def entry_difference(kind: EntryKind, key: str, *, added: bool) -> Difference:
    """The difference for an added or removed entry."""
    rule = (
        _REQUIRED if kind in (DATASETS, JOBS) else _CATALOG_SPECIFIC if kind is OTHERS else _MINOR
    )
    return Difference(
        kind=kind.singular,
        key=key,
        aspect="entry",
        path="",
        change="added" if added else "removed",
        impact=rule.added if added else rule.removed,
    )


def differences_of(
    kind: EntryKind,
    key: str,
    before: Any,
    after: Any,
    *,
    compare_schemas: CompareSchemas,
    aspects: Iterable[str],
) -> Iterator[Difference]:
    """The differences between two states of an existing entry."""
    differences = (
        _dataset_differences(before, after, compare_schemas, aspects)
        if kind is DATASETS
        else _item_differences(kind, before, after, frozenset(aspects))
    )
    for aspect, difference in differences:
        yield Difference(kind=kind.singular, key=key, aspect=aspect, **difference._asdict())


def _dataset_differences(
    before: CatalogEntry,
    after: CatalogEntry,
    compare_schemas: CompareSchemas,
    aspects: Iterable[str],
) -> Iterator[tuple[str, AspectDifference]]:
    for aspect in aspects:
        old, new = getattr(before, aspect, None), getattr(after, aspect, None)
        if old == new:
            continue
        if aspect == "schema":
            differences = _compare_schema(before, after, compare_schemas)
        elif aspect in _COMPARERS:
            empty, comparer = _COMPARERS[aspect]
            differences = comparer(old or empty, new or empty)
        else:
            differences = _compare_keys(to_plain(old), to_plain(new), _RULES.get(aspect, _MINOR))
        for each in differences:
            yield aspect, each


def _item_differences(
    kind: EntryKind, before: Any, after: Any, aspects: frozenset[str]
) -> Iterator[tuple[str, AspectDifference]]:
    for name in kind.type.__struct_fields__:
        old, new = getattr(before, name), getattr(after, name)
        if old == new or (name in _OPTIONAL_FIELDS and name not in aspects):
            continue
        if name == "raw":
            yield from ((name, each) for each in _raw(old, new))
            continue
        if name == "owners" and kind is OTHERS:
            old, new = (
                tuple(f"{owner.kind} {owner.name}" for owner in owners) for owners in (old, new)
            )
        if isinstance(old, tuple) and name != "runs":
            rule = _REQUIRED if kind is JOBS else _MINOR
            differences = _compare_labels(name, old, new, rule)
        else:
            differences = _compare_values(name, to_plain(old), to_plain(new), _MINOR)
        for each in differences:
            yield _ASPECT_OF_KIND[kind], each


def _compare_schema(
    before: CatalogEntry, after: CatalogEntry, compare_schemas: CompareSchemas
) -> Iterator[AspectDifference]:
    old, new = before.schema, after.schema
    if old is None or new is None:
        yield from _compare_values("", old and str(old), new and str(new), _REQUIRED)
        return
    try:
        changes = tuple(compare_schemas(after.urn, old, new, after.format))
    except MisuseError as problem:
        yield AspectDifference("", "changed", "breaking", notes=(str(problem),))
        return
    for each in changes:
        notes = each.notes
        if each.consumer is Verdict.UNDETERMINED:
            notes = (*notes, "undetermined")
        impact = _IMPACTS[each.consumer]
        if each.kind == "tags" and _has_lost_pii_tag(each.before, each.after):
            impact = "breaking"
        yield AspectDifference(each.path, each.kind, impact, each.before, each.after, notes)
    labels = tuple(_compare_common_fields(old, new))
    yield from labels
    if not changes and not labels:
        yield AspectDifference(
            "", "changed", "informational", notes=("native types or field ids differ",)
        )


def _compare_common_fields(before: Schema, after: Schema) -> Iterator[AspectDifference]:
    """Differences in the annotations of fields that both schemas have.

    Descriptions and tags are not compared here, because they are changes of the schema.
    """
    after_by_name = {field.name: field for field in after.fields}
    for field in before.fields:
        new_field = after_by_name.get(field.name)
        if new_field is None or field == new_field:
            continue
        yield from _compare_field_labels(quoted_name(field.name), field, new_field)
        old, new = (_index(side.nested, attrgetter("path")) for side in (field, new_field))
        for path in dict.fromkeys((*old, *new)):
            empty = NestedField(path=str(path))
            yield from _compare_field_labels(str(path), old.get(path, empty), new.get(path, empty))


def _compare_field_labels(
    path: str, before: Field | NestedField, after: Field | NestedField
) -> Iterator[AspectDifference]:
    yield from _compare_labels(f"{path}.compliance", before.compliance, after.compliance, _REQUIRED)
    yield from _compare_labels(f"{path}.terms", before.terms, after.terms, _MINOR)
    sides = before.properties, after.properties
    for item_path, old_value, new_value in _pairs(f"{path}.properties", *sides):
        yield from _compare_values(item_path, old_value, new_value, _MINOR)


def _lineage(before: Lineage, after: Lineage) -> Iterator[AspectDifference]:
    for side in ("upstream", "downstream"):
        edges = (_index(getattr(lineage, side), attrgetter("urn")) for lineage in (before, after))
        for path, old, new in _pairs(side, *edges):
            if old is None or new is None:
                yield from _compare_values(path, old and old.type, new and new.type, _REQUIRED)
            else:
                yield from _compare_values(f"{path}.type", old.type, new.type, _MINOR)
                yield from _columns(path, old, new)


def _columns(path: str, before: UpstreamEdge, after: UpstreamEdge) -> Iterator[AspectDifference]:
    old, new = _index(before.columns, _mapping_key), _index(after.columns, _mapping_key)
    for item_path, was, now in _pairs(f"{path}.columns", old, new):
        transformations = was and (was.transformation or ""), now and (now.transformation or "")
        yield from _compare_values(item_path, *transformations, _REQUIRED)
        yield from _compare_fields(item_path, was, now, _MAPPING_FIELDS)
    uses = _index(before.uses, _use_key), _index(after.uses, _use_key)
    for item_path, was, now in _pairs(f"{path}.uses", *uses):
        yield from _compare_values(item_path, was and was.usage, now and now.usage, _MINOR)
        yield from _compare_fields(item_path, was, now, _USE_FIELDS)


def _compare_fields(
    path: str, before: Any, after: Any, names: Iterable[str]
) -> Iterator[AspectDifference]:
    """Differences between two values in these fields."""
    if before is not None and after is not None:
        for name in names:
            old, new = getattr(before, name), getattr(after, name)
            yield from _compare_values(f"{path}.{name}", old, new, _MINOR)


def _ownership(before: Ownership, after: Ownership) -> Iterator[AspectDifference]:
    # Removing the last owner is breaking.
    rule = ImpactRule(added="non-breaking", removed="non-breaking" if after.owners else "breaking")
    old, new = _owners(before.owners), _owners(after.owners)
    for path, was, now in _pairs("owners", old, new):
        yield from _compare_values(path, was, now, rule)


def _documentation(before: Documentation, after: Documentation) -> Iterator[AspectDifference]:
    for name in Documentation.__struct_fields__:
        # Rules and searches refer to domains.
        rule = _MINOR._replace(changed="non-breaking") if name == "domain" else _MINOR
        yield from _compare_values(name, getattr(before, name), getattr(after, name), rule)


def _governance(before: Governance, after: Governance) -> Iterator[AspectDifference]:
    yield from _compare_labels("compliance", before.compliance, after.compliance, _REQUIRED)
    yield from _compare_labels("terms", before.terms, after.terms, _MINOR)
    for difference in _compare_labels("tags", before.tags, after.tags, _MINOR):
        is_lost_pii_tag = difference.change == "removed" and _has_lost_pii_tag(
            (difference.before,), ()
        )
        yield difference._replace(impact="breaking") if is_lost_pii_tag else difference


def _has_lost_pii_tag(before: Iterable[Any] | None, after: Iterable[Any] | None) -> bool:
    """Whether the tag `PII` was removed; this is breaking, since the data may still be personal."""
    old, new = ({str(tag).casefold() for tag in tags or ()} for tags in (before, after))
    return "pii" in old - new


def _quality(before: Quality, after: Quality) -> Iterator[AspectDifference]:
    yield from _score("score", before.score, after.score)
    for path, old, new in _pairs("dimensions", before.dimensions, after.dimensions):
        yield from _score(path, old, new)
    checks = (_index(each.checks, attrgetter("name")) for each in (before, after))
    for path, was, now in _pairs("checks", *checks):
        if was is None or now is None:
            yield from _compare_values(path, was and was.status, now and now.status, _MINOR)
        elif was.status != now.status:
            is_worse = _STATUS_RANKS[now.status] > _STATUS_RANKS[was.status]
            worse: DifferenceImpact = "breaking" if now.status == "FAILED" else "non-breaking"
            impact = worse if is_worse else "informational"
            yield AspectDifference(path, "changed", impact, was.status, now.status)
        else:
            yield from _compare_values(f"{path}.details", was.details, now.details, _MINOR)
    for name in ("measured_at", "freshness", "validator"):
        old, new = to_plain(getattr(before, name)), to_plain(getattr(after, name))
        yield from _compare_values(name, old, new, _MINOR)
    yield from _profile(before.profile, after.profile)


def _profile(before: Profile | None, after: Profile | None) -> Iterator[AspectDifference]:
    """Differences in the counts of a profile; values are not compared, because they are data."""
    for name in ("measured_at", "rows", "sampled"):
        old, new = (to_plain(getattr(each, name, None)) for each in (before, after))
        yield from _compare_values(f"profile.{name}", old, new, _MINOR)
    columns = [{} if each is None else each.columns for each in (before, after)]
    for path, was, now in _pairs("profile.columns", *columns):
        for name in ("nulls", "nans", "misfits", "distinct"):
            old, new = (None if each is None else getattr(each, name) for each in (was, now))
            yield from _compare_values(f"{path}.{name}", old, new, _MINOR)


def _score(path: str, before: float | None, after: float | None) -> Iterator[AspectDifference]:
    is_lower = before is not None and after is not None and after < before
    changed: DifferenceImpact = "non-breaking" if is_lower else "informational"
    yield from _compare_values(
        path, before, after, ImpactRule("informational", "non-breaking", changed)
    )


def _compare_labels(
    path: str, before: Iterable[str], after: Iterable[str], rule: ImpactRule
) -> Iterator[AspectDifference]:
    """Differences between two lists of names; their order does not matter."""
    old, new = dict.fromkeys(before), dict.fromkeys(after)
    for name in old:
        if name not in new:
            yield AspectDifference(path, "removed", rule.removed, before=name)
    for name in new:
        if name not in old:
            yield AspectDifference(path, "added", rule.added, after=name)


def _compare_keys(before: Any, after: Any, rule: ImpactRule) -> Iterator[AspectDifference]:
    """Compare mappings by key, and other values entirely."""
    if isinstance(before or {}, Mapping) and isinstance(after or {}, Mapping):
        for name in dict.fromkeys((*(before or {}), *(after or {}))):
            yield from _compare_values(
                name, (before or {}).get(name), (after or {}).get(name), rule
            )
    else:
        yield from _compare_values("", before, after, rule)


def _raw(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[AspectDifference]:
    """Compare the records of each catalog one by one."""
    old, new = _records(before), _records(after)
    for path in dict.fromkeys((*old, *new)):
        yield from _compare_values(path, old.get(path), new.get(path), _CATALOG_SPECIFIC)


def _records(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {
        f"{catalog}.{name}" if name else catalog: record
        for catalog, records in raw.items()
        for name, record in (records if isinstance(records, Mapping) else {"": records}).items()
    }


def _compare_values(
    path: str, before: Any, after: Any, rule: ImpactRule
) -> Iterator[AspectDifference]:
    if before == after:
        return
    if before is None:
        yield AspectDifference(path, "added", rule.added, after=after)
    elif after is None:
        yield AspectDifference(path, "removed", rule.removed, before=before)
    else:
        yield AspectDifference(path, "changed", rule.changed, before, after)


def _pairs(
    path: str, before: Mapping[Any, Any], after: Mapping[Any, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """For each key in either mapping, its path and the values in both mappings."""
    for key in dict.fromkeys((*before, *after)):
        yield f"{path}[{key}]", before.get(key), after.get(key)


def _index(values: Iterable[Any], key: Callable[[Any], Hashable]) -> dict[Hashable, Any]:
    return {key(value): value for value in values}


def _mapping_key(column: ColumnMapping) -> str:
    return f"{column.upstream} -> {column.downstream}"


def _use_key(use: ColumnUse) -> str:
    downstream = "" if use.downstream is None else f" -> {use.downstream}"
    expression = "" if use.expression is None else f": {use.expression}"
    return f"{use.upstream} {use.usage}{downstream}{expression}"


def _owners(owners: Iterable[Owner]) -> dict[str, list[str]]:
    """The ownership types of each owner."""
    types: dict[str, list[str]] = {}
    for owner in owners:
        types.setdefault(f"{owner.kind} {owner.name}", []).append(owner.type)
    return {name: sorted(owner_types) for name, owner_types in types.items()}


_COMPARERS: Final[dict[str, tuple[Any, Callable[[Any, Any], Iterator[AspectDifference]]]]] = {
    "lineage": (Lineage(), _lineage),
    "ownership": (Ownership(), _ownership),
    "documentation": (Documentation(), _documentation),
    "governance": (Governance(), _governance),
    "quality": (Quality(), _quality),
    "raw": ({}, _raw),
}
_RULES: Final = {
    "format": ImpactRule("informational", "informational", "breaking"),
    "location": ImpactRule("informational", "non-breaking", "breaking"),
    "definition": ImpactRule("non-breaking", "non-breaking", "non-breaking"),
    "schedule": ImpactRule("non-breaking", "non-breaking", "non-breaking"),
}
