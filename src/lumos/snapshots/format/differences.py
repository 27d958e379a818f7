"""What differs between two states of an entry, aspect by aspect, and how much it matters.

Breaking is what others build on and is gone or worse: a dataset, a column, an edge of lineage, the
last owner, a compliance label, a check that passed. Non-breaking is what came, and what went
without taking others along. The rest is informational.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
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

Impact: TypeAlias = Literal["breaking", "non-breaking", "informational"]


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One difference: in which aspect of what, where in the aspect, and both sides of it.

    `kind` is the word for the entry and `key` its URN or name. The aspect is `entry` where the
    whole entry came or went. Types stand as their canonical text.
    """

    kind: str
    key: str
    aspect: str
    path: str
    change: str
    impact: Impact
    before: Any = None
    after: Any = None
    notes: tuple[str, ...] = ()


class JudgedChange(Protocol):
    """What a judge of schemas says of one change."""

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


# Gives the judged changes of a dataset, from its URN, both of its schemas and its format.
Judge: TypeAlias = Callable[[str, Schema, Schema, str | None], Iterable[JudgedChange]]

# What people and catalogs say of data: what a comparison looks at unless it is told otherwise.
COMPARED: Final = (
    *("schema", "lineage", "ownership", "documentation", "governance", "quality", "raw"),
)
# Where data lies, and what was measured and when.
OPTIONAL_ASPECTS: Final = (
    *("name", "format"),
    *(name for name in ASPECTS if name not in COMPARED),
    *("timestamps", "runs"),
)

_IMPACTS: Final[dict[Verdict, Impact]] = {
    Verdict.BREAKING: "breaking",
    # What cannot be determined is never called safe.
    Verdict.UNDETERMINED: "breaking",
    Verdict.COMPATIBLE: "non-breaking",
    Verdict.INFORMATIONAL: "informational",
}
_FIELDS_BESIDE: Final = ("properties", "schedule", "cost", "runs", "raw")
_OF_MAPPINGS: Final = ("derivation", "cast_to", "positional", "star", "file", "line")
_OF_USES: Final = ("cast_to", "negated", "file", "line")
_RANKS: Final = {"PASSED": 0, "WARNING": 1, "FAILED": 2}
# Which aspect of datasets the entries of another kind serve.
_SERVES: Final = {
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
    impact: Impact
    before: Any = None
    after: Any = None
    notes: tuple[str, ...] = ()


class ImpactRule(NamedTuple):
    """How much it matters that a part came, went or changed."""

    added: Impact
    removed: Impact
    changed: Impact = "informational"


_MINOR: Final = ImpactRule(added="informational", removed="non-breaking")
_RELIED_ON: Final = ImpactRule(added="non-breaking", removed="breaking")
# What only one catalog knows matters to that catalog.
_TOLD: Final = ImpactRule(added="informational", removed="informational")


def is_compared(kind: EntryKind, aspects: Iterable[str]) -> bool:
    """Whether entries of that kind are looked at where those aspects are."""
    return kind is DATASETS or _SERVES[kind] in aspects


def entry_difference(kind: EntryKind, key: str, *, added: bool) -> Difference:
    """That an entry came or went."""
    effect = _RELIED_ON if kind in (DATASETS, JOBS) else _TOLD if kind is OTHERS else _MINOR
    return Difference(
        kind=kind.singular,
        key=key,
        aspect="entry",
        path="",
        change="added" if added else "removed",
        impact=effect.added if added else effect.removed,
    )


def differences_of(
    kind: EntryKind, key: str, before: Any, after: Any, *, judge: Judge, aspects: Iterable[str]
) -> Iterator[Difference]:
    """What differs between two states of an entry that is there before and after."""
    parts = (
        _of_dataset(before, after, judge, aspects)
        if kind is DATASETS
        else _of_other_kind(kind, before, after, frozenset(aspects))
    )
    for aspect, found in parts:
        yield Difference(kind=kind.singular, key=key, aspect=aspect, **found._asdict())


def _of_dataset(
    before: CatalogEntry, after: CatalogEntry, judge: Judge, aspects: Iterable[str]
) -> Iterator[tuple[str, AspectDifference]]:
    for aspect in aspects:
        old, new = getattr(before, aspect, None), getattr(after, aspect, None)
        if old == new:
            continue
        if aspect == "schema":
            found = _schema(before, after, judge)
        elif aspect in _COMPARERS:
            empty, comparer = _COMPARERS[aspect]
            found = comparer(old or empty, new or empty)
        else:
            found = _parts(to_plain(old), to_plain(new), _EFFECTS.get(aspect, _MINOR))
        for each in found:
            yield aspect, each


def _of_other_kind(
    kind: EntryKind, before: Any, after: Any, aspects: frozenset[str]
) -> Iterator[tuple[str, AspectDifference]]:
    for name in kind.type.__struct_fields__:
        old, new = getattr(before, name), getattr(after, name)
        if old == new or (name in _FIELDS_BESIDE and name not in aspects):
            continue
        if name == "raw":
            yield from ((name, each) for each in _raw(old, new))
            continue
        if name == "owners" and kind is OTHERS:
            old, new = (tuple(f"{each.kind} {each.name}" for each in side) for side in (old, new))
        if isinstance(old, tuple) and name != "runs":
            effect = _RELIED_ON if kind is JOBS else _MINOR
            found = _labels(name, old, new, effect)
        else:
            found = _value(name, to_plain(old), to_plain(new), _MINOR)
        for each in found:
            yield _SERVES[kind], each


def _schema(before: CatalogEntry, after: CatalogEntry, judge: Judge) -> Iterator[AspectDifference]:
    old, new = before.schema, after.schema
    if old is None or new is None:
        yield from _value("", old and str(old), new and str(new), _RELIED_ON)
        return
    try:
        changes = tuple(judge(after.urn, old, new, after.format))
    except MisuseError as problem:
        yield AspectDifference("", "changed", "breaking", notes=(str(problem),))
        return
    for each in changes:
        notes = each.notes
        if each.consumer is Verdict.UNDETERMINED:
            notes = (*notes, "undetermined")
        impact = _IMPACTS[each.consumer]
        if each.kind == "tags" and _is_unmarked(each.before, each.after):
            impact = "breaking"
        yield AspectDifference(each.path, each.kind, impact, each.before, each.after, notes)
    labels = tuple(_field_labels(old, new))
    yield from labels
    if not changes and not labels:
        yield AspectDifference(
            "", "changed", "informational", notes=("native types or field ids differ",)
        )


def _field_labels(before: Schema, after: Schema) -> Iterator[AspectDifference]:
    """What is said of fields that both schemas have, beside descriptions and tags."""
    others = {field.name: field for field in after.fields}
    for field in before.fields:
        now = others.get(field.name)
        if now is None or field == now:
            continue
        yield from _labels_of(quoted_name(field.name), field, now)
        old, new = (_by(side.nested, _path) for side in (field, now))
        for path in dict.fromkeys((*old, *new)):
            nothing = NestedField(path=str(path))
            yield from _labels_of(str(path), old.get(path, nothing), new.get(path, nothing))


def _labels_of(
    path: str, before: Field | NestedField, after: Field | NestedField
) -> Iterator[AspectDifference]:
    yield from _labels(f"{path}.compliance", before.compliance, after.compliance, _RELIED_ON)
    yield from _labels(f"{path}.terms", before.terms, after.terms, _MINOR)
    sides = before.properties, after.properties
    for place, was, now in _paired(f"{path}.properties", *sides):
        yield from _value(place, was, now, _MINOR)


def _lineage(before: Lineage, after: Lineage) -> Iterator[AspectDifference]:
    for side in ("upstream", "downstream"):
        edges = _by(getattr(before, side), _urn), _by(getattr(after, side), _urn)
        for path, old, new in _paired(side, *edges):
            if old is None or new is None:
                yield from _value(path, old and old.type, new and new.type, _RELIED_ON)
            else:
                yield from _value(f"{path}.type", old.type, new.type, _MINOR)
                yield from _columns(path, old, new)


def _columns(path: str, before: UpstreamEdge, after: UpstreamEdge) -> Iterator[AspectDifference]:
    old, new = _by(before.columns, _mapped), _by(after.columns, _mapped)
    for place, was, now in _paired(f"{path}.columns", old, new):
        told = was and (was.transformation or ""), now and (now.transformation or "")
        yield from _value(place, *told, _RELIED_ON)
        yield from _facts(place, was, now, _OF_MAPPINGS)
    uses = _by(before.uses, _used), _by(after.uses, _used)
    for place, was, now in _paired(f"{path}.uses", *uses):
        yield from _value(place, was and was.usage, now and now.usage, _MINOR)
        yield from _facts(place, was, now, _OF_USES)


def _facts(path: str, before: Any, after: Any, names: Iterable[str]) -> Iterator[AspectDifference]:
    """What two values for the same say differently."""
    if before is not None and after is not None:
        for name in names:
            old, new = getattr(before, name), getattr(after, name)
            yield from _value(f"{path}.{name}", old, new, _MINOR)


def _ownership(before: Ownership, after: Ownership) -> Iterator[AspectDifference]:
    last = ImpactRule(added="non-breaking", removed="non-breaking" if after.owners else "breaking")
    old, new = _owners(before.owners), _owners(after.owners)
    for path, was, now in _paired("owners", old, new):
        yield from _value(path, was, now, last)


def _documentation(before: Documentation, after: Documentation) -> Iterator[AspectDifference]:
    for name in Documentation.__struct_fields__:
        # Rules and people find data by its domain.
        effect = _MINOR._replace(changed="non-breaking") if name == "domain" else _MINOR
        yield from _value(name, getattr(before, name), getattr(after, name), effect)


def _governance(before: Governance, after: Governance) -> Iterator[AspectDifference]:
    yield from _labels("compliance", before.compliance, after.compliance, _RELIED_ON)
    yield from _labels("terms", before.terms, after.terms, _MINOR)
    for found in _labels("tags", before.tags, after.tags, _MINOR):
        is_unmarked = found.change == "removed" and _is_unmarked((found.before,), ())
        yield found._replace(impact="breaking") if is_unmarked else found


def _is_unmarked(before: Iterable[Any] | None, after: Iterable[Any] | None) -> bool:
    """Whether the mark of private data is gone: the data stays as private as it was."""
    old, new = ({str(tag).casefold() for tag in tags or ()} for tags in (before, after))
    return "pii" in old - new


def _quality(before: Quality, after: Quality) -> Iterator[AspectDifference]:
    yield from _score("score", before.score, after.score)
    for path, old, new in _paired("dimensions", before.dimensions, after.dimensions):
        yield from _score(path, old, new)
    checks = _by(before.checks, _name), _by(after.checks, _name)
    for path, was, now in _paired("checks", *checks):
        if was is None or now is None:
            yield from _value(path, was and was.status, now and now.status, _MINOR)
        elif was.status != now.status:
            is_worse = _RANKS[now.status] > _RANKS[was.status]
            worse: Impact = "breaking" if now.status == "FAILED" else "non-breaking"
            impact = worse if is_worse else "informational"
            yield AspectDifference(path, "changed", impact, was.status, now.status)
        else:
            yield from _value(f"{path}.details", was.details, now.details, _MINOR)
    for name in ("measured_at", "freshness", "validator"):
        old, new = to_plain(getattr(before, name)), to_plain(getattr(after, name))
        yield from _value(name, old, new, _MINOR)
    yield from _profile(before.profile, after.profile)


def _profile(before: Profile | None, after: Profile | None) -> Iterator[AspectDifference]:
    """What was counted; values stay where they are, and so they are in no comparison."""
    for name in ("measured_at", "rows", "sampled"):
        old, new = (to_plain(getattr(each, name, None)) for each in (before, after))
        yield from _value(f"profile.{name}", old, new, _MINOR)
    columns = [{} if each is None else each.columns for each in (before, after)]
    for path, was, now in _paired("profile.columns", *columns):
        for name in ("nulls", "nans", "misfits", "distinct"):
            old, new = (None if each is None else getattr(each, name) for each in (was, now))
            yield from _value(f"{path}.{name}", old, new, _MINOR)


def _score(path: str, before: float | None, after: float | None) -> Iterator[AspectDifference]:
    is_lower = before is not None and after is not None and after < before
    changed: Impact = "non-breaking" if is_lower else "informational"
    yield from _value(path, before, after, ImpactRule("informational", "non-breaking", changed))


def _labels(
    path: str, before: Iterable[str], after: Iterable[str], effect: ImpactRule
) -> Iterator[AspectDifference]:
    """Names whose order says nothing."""
    old, new = dict.fromkeys(before), dict.fromkeys(after)
    for name in old:
        if name not in new:
            yield AspectDifference(path, "removed", effect.removed, before=name)
    for name in new:
        if name not in old:
            yield AspectDifference(path, "added", effect.added, after=name)


def _parts(before: Any, after: Any, effect: ImpactRule) -> Iterator[AspectDifference]:
    """The keys of a mapping one by one, and anything else as a whole."""
    if isinstance(before or {}, Mapping) and isinstance(after or {}, Mapping):
        for name in dict.fromkeys((*(before or {}), *(after or {}))):
            yield from _value(name, (before or {}).get(name), (after or {}).get(name), effect)
    else:
        yield from _value("", before, after, effect)


def _raw(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[AspectDifference]:
    """The records that each catalog has for itself, one by one."""
    old, new = _records(before), _records(after)
    for path in dict.fromkeys((*old, *new)):
        yield from _value(path, old.get(path), new.get(path), _TOLD)


def _records(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {
        f"{catalog}.{name}" if name else catalog: record
        for catalog, records in raw.items()
        for name, record in (records if isinstance(records, Mapping) else {"": records}).items()
    }


def _value(path: str, before: Any, after: Any, effect: ImpactRule) -> Iterator[AspectDifference]:
    if before == after:
        return
    if before is None:
        yield AspectDifference(path, "added", effect.added, after=after)
    elif after is None:
        yield AspectDifference(path, "removed", effect.removed, before=before)
    else:
        yield AspectDifference(path, "changed", effect.changed, before, after)


def _paired(
    path: str, before: Mapping[Any, Any], after: Mapping[Any, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Both sides of all that either side has, with the path of each."""
    for key in dict.fromkeys((*before, *after)):
        yield f"{path}[{key}]", before.get(key), after.get(key)


def _by(values: Iterable[Any], key: Callable[[Any], Hashable]) -> dict[Hashable, Any]:
    return {key(value): value for value in values}


def _urn(edge: UpstreamEdge) -> str:
    return edge.urn


def _path(note: NestedField) -> str:
    return note.path


def _mapped(column: ColumnMapping) -> str:
    return f"{column.upstream} -> {column.downstream}"


def _used(use: ColumnUse) -> str:
    about = "" if use.downstream is None else f" -> {use.downstream}"
    clause = "" if use.expression is None else f": {use.expression}"
    return f"{use.upstream} {use.usage}{about}{clause}"


def _name(named: Any) -> str:
    return str(named.name)


def _owners(owners: Iterable[Owner]) -> dict[str, list[str]]:
    """The kinds of responsibility of each owner."""
    types: dict[str, list[str]] = {}
    for owner in owners:
        types.setdefault(f"{owner.kind} {owner.name}", []).append(owner.type)
    return {name: sorted(held) for name, held in types.items()}


_COMPARERS: Final[dict[str, tuple[Any, Callable[[Any, Any], Iterator[AspectDifference]]]]] = {
    "lineage": (Lineage(), _lineage),
    "ownership": (Ownership(), _ownership),
    "documentation": (Documentation(), _documentation),
    "governance": (Governance(), _governance),
    "quality": (Quality(), _quality),
    "raw": ({}, _raw),
}
_EFFECTS: Final = {
    "format": ImpactRule("informational", "informational", "breaking"),
    "location": ImpactRule("informational", "non-breaking", "breaking"),
    "definition": ImpactRule("non-breaking", "non-breaking", "non-breaking"),
    "schedule": ImpactRule("non-breaking", "non-breaking", "non-breaking"),
}
