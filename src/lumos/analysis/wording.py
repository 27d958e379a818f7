"""What happened to a dataset, in words for people."""

from collections.abc import Iterable
from typing import Final, assert_never

from lumos.model.change import (
    Affected,
    AnySchemaChange,
    BlastRadius,
    DefaultChanged,
    DescriptionChanged,
    EventType,
    FieldAdded,
    FieldRemoved,
    Finding,
    KeyChanged,
    NullabilityChanged,
    PartitioningChanged,
    Reordered,
    TagsChanged,
    TypeChanged,
    Verdict,
)

_NAMED: Final = 3
_NAMED_OWNERS: Final = 5
_LONGEST_TYPE: Final = 60
_WITHOUT_FINDINGS: Final = {
    EventType.CREATED: "first seen",
    EventType.MODIFIED: "new data, same schema",
    EventType.DELETED: "gone",
    EventType.RESTORED: "back again",
}


def summary_of(type: EventType, findings: Iterable[Finding], flags: tuple[str, ...] = ()) -> str:
    """One line: `1 field removed: discount; 2 fields added: city, zip`."""
    groups: dict[tuple[str, str], list[str]] = {}
    for finding in findings:
        groups.setdefault(_kind(finding.change), []).append(_place(finding.change))
    if not groups:
        return _WITHOUT_FINDINGS.get(type, "")
    parts = ["back again"] if type is EventType.RESTORED else []
    parts += [_counted(words, places) for words, places in groups.items()]
    if "reverted" in flags:
        parts.append("back to an earlier schema")
    return "; ".join(parts)


def split_summary(names: list[str]) -> str:
    """One line: `split into 5 datasets: carts, checkouts, clicks and 2 more`."""
    return f"split into {_counted(('dataset', 'datasets'), names)}"


def sentence_of(change: AnySchemaChange) -> str:
    """One change as somebody would tell it: `Added email field`."""
    path = change.path
    match change:
        case FieldAdded():
            return f"Added {path} field"
        case FieldRemoved():
            return f"Removed {path} field"
        case TypeChanged(before=before, after=after):
            return f"Changed type of {path} from {_short(before.text)} to {_short(after.text)}"
        case NullabilityChanged(after=nullable):
            return f"Made {path} {'nullable' if nullable else 'required'}"
        case KeyChanged(after=is_key):
            return f"Made {path} part of the key" if is_key else f"Took {path} out of the key"
        case PartitioningChanged(after=is_partition):
            return f"{'Began' if is_partition else 'Ceased'} to partition by {path}"
        case Reordered():
            return f"Reordered fields of {path}" if path else "Reordered fields"
        case DefaultChanged():
            return f"Changed default of {path}"
        case DescriptionChanged():
            return f"Changed description of {path}"
        case TagsChanged():
            return f"Changed tags of {path}"
        case _ as unreachable:
            assert_never(unreachable)


def blast_radius_of(affected: BlastRadius) -> str:
    """What a change does down the stream: `3 downstream break (analytics-team, ml-platform)`."""
    if affected.problem is not None:
        return "what breaks downstream is not known"
    parts = []
    if affected.breaking:
        parts.append(f"{affected.breaking:,} downstream break{_s(affected.breaking)}")
    if affected.undetermined:
        what = "undetermined" if parts else "downstream undetermined"
        parts.append(f"{affected.undetermined:,} {what}")
    if not parts:
        return ""
    owners = [*affected.owners[:_NAMED_OWNERS]]
    if (more := len(affected.owners) - len(owners)) > 0:
        owners.append(f"and {more} more")
    return ", ".join(parts) + (f" ({', '.join(owners)})" if owners else "")


def _s(count: int) -> str:
    """One breaks, two break."""
    return "s" if count == 1 else ""


def affected_sentence_of(affected: Affected) -> str:
    """One dataset down the stream: `lumos://... breaks (analytics-team)`."""
    what = "breaks" if affected.verdict is Verdict.BREAKING else "may break"
    owners = f" ({', '.join(affected.owners)})" if affected.owners else ""
    return f"{affected.urn} {what}{owners}"


def _kind(change: AnySchemaChange) -> tuple[str, str]:
    """What one such change is called, and what several are."""
    match change:
        case FieldAdded():
            return "field added", "fields added"
        case FieldRemoved():
            return "field removed", "fields removed"
        case TypeChanged():
            return "type changed", "types changed"
        case NullabilityChanged(after=nullable):
            word = "nullable" if nullable else "required"
            return f"field made {word}", f"fields made {word}"
        case KeyChanged(after=is_key):
            where = "put into" if is_key else "taken out of"
            return f"field {where} the key", f"fields {where} the key"
        case PartitioningChanged(after=is_partition):
            word = "new" if is_partition else "former"
            return f"{word} partition column", f"{word} partition columns"
        case Reordered():
            return "list of fields reordered", "lists of fields reordered"
        case DefaultChanged():
            return "default changed", "defaults changed"
        case DescriptionChanged():
            return "description changed", "descriptions changed"
        case TagsChanged():
            return "field tagged otherwise", "fields tagged otherwise"
        case _ as unreachable:
            assert_never(unreachable)


def _place(change: AnySchemaChange) -> str:
    if isinstance(change, TypeChanged):
        before, after = (_short(type.text) for type in (change.before, change.after))
        return f"{change.path} {before} -> {after}"
    return change.path or "columns"


def _short(type: str) -> str:
    return type if len(type) <= _LONGEST_TYPE else f"{type[: _LONGEST_TYPE - 3]}..."


def _counted(words: tuple[str, str], places: list[str]) -> str:
    one, several = words
    count = f"1 {one}" if len(places) == 1 else f"{len(places)} {several}"
    named = ", ".join(places[:_NAMED])
    more = len(places) - _NAMED
    return f"{count}: {named} and {more} more" if more > 0 else f"{count}: {named}"
