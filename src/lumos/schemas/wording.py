"""Sentences about changes, for events, messages and screens."""

import re
from collections.abc import Iterable, Sequence
from typing import Final, assert_never

from lumos.model.change import (
    Affected,
    AffectedUse,
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
from lumos.model.urn import display_names
from lumos.rendering.text import cut, join_names, plural
from lumos.schemas.renames import RENAME_NOTE

_MAX_NAMES: Final = 3
_MAX_FIELD_NAMES: Final = 6
_MAX_TYPE_LENGTH: Final = 60
# A difference as scans record it for columns that differ in some files, such as
# `id INT64 instead of nothing`.
_DIFFERENCE: Final = re.compile(r"(.+?) instead of (.+)", re.DOTALL)
_FIELD: Final = re.compile(r"(`(?:[^`]|``)*`|\S+) (.+)", re.DOTALL)
_NOTHING: Final = "nothing"
_SUMMARY_WITHOUT_FINDINGS: Final = {
    EventType.CREATED: "first seen",
    EventType.MODIFIED: "new data, same schema",
    EventType.DELETED: "gone",
    EventType.RESTORED: "back again",
}


def summary_of(type: EventType, findings: Iterable[Finding], flags: tuple[str, ...] = ()) -> str:
    """A summary in one line, such as `1 field removed: discount; 2 fields added: city, zip`."""
    groups: dict[tuple[str, str], list[str]] = {}
    for finding in findings:
        groups.setdefault(_noun_forms(finding.change), []).append(_subject(finding.change))
    if not groups:
        return _SUMMARY_WITHOUT_FINDINGS.get(type, "")
    parts = ["back again"] if type is EventType.RESTORED else []
    parts += [_count_and_names(nouns, names) for nouns, names in groups.items()]
    if "reverted" in flags:
        parts.append("back to an earlier schema")
    return "; ".join(parts)


def drift_summary(file_count: int, differences: Iterable[str], *, are_older: bool) -> str:
    """How some files differ, such as `2 older files lack channel; they still have coupon`."""
    missing, extra, retyped, unparsed = [], [], [], []
    for text in differences:
        file_side, dataset_side = _parse_difference(text)
        if file_side is None and dataset_side is None:
            unparsed.append(text)
        elif file_side is None and dataset_side is not None:
            missing.append(dataset_side[0])
        elif dataset_side is None and file_side is not None:
            extra.append(file_side[0])
        elif file_side is not None and dataset_side is not None:
            retyped.append(
                f"{file_side[0]} as {_cut_type(file_side[1])} "
                f"instead of {_cut_type(dataset_side[1])}"
            )
    is_one_file = file_count == 1
    have, adverb = ("has" if is_one_file else "have"), (" still" if are_older else " also")
    clauses = [
        *(
            [f"lack{'s' if is_one_file else ''} {join_names(missing, _MAX_FIELD_NAMES)}"]
            if missing
            else []
        ),
        *([f"{have} {join_names(retyped, _MAX_NAMES)}"] if retyped else []),
        *([f"{adverb.strip()} {have} {join_names(extra, _MAX_FIELD_NAMES)}"] if extra else []),
        *(f"{have} {text}" for text in unparsed),
    ] or [f"{have} the columns in another order"]
    age = "older " if are_older else ""
    subject = f"{file_count:,} {age}file{'' if is_one_file else 's'}"
    pronoun = "it" if is_one_file else "they"
    return "; ".join([f"{subject} {clauses[0]}", *(f"{pronoun} {each}" for each in clauses[1:])])


def _parse_difference(difference: str) -> tuple[tuple[str, str] | None, tuple[str, str] | None]:
    """The column, as name and type, in the drifted files and in the dataset.

    None means that the column is missing there; both are None if the text cannot be parsed.
    """
    match = _DIFFERENCE.fullmatch(difference)
    if match is None:
        return None, None
    file_side, dataset_side = (
        None if side == _NOTHING else _FIELD.fullmatch(side) for side in match.groups()
    )
    return (file_side and (file_side[1], file_side[2])), (
        dataset_side and (dataset_side[1], dataset_side[2])
    )


def split_summary(names: list[str]) -> str:
    """A summary in one line: `split into 5 datasets: carts, checkouts, clicks and 2 more`."""
    return f"split into {_count_and_names(('dataset', 'datasets'), names)}"


def sentence_of(change: AnySchemaChange) -> str:
    """A change as a sentence, such as `Added email field`."""
    path = change.path
    match change:
        case FieldAdded():
            return f"Added {path} field"
        case FieldRemoved():
            return f"Removed {path} field"
        case TypeChanged(before=before, after=after):
            return (
                f"Changed type of {path} from {_cut_type(before.text)} to {_cut_type(after.text)}"
            )
        case NullabilityChanged(after=nullable):
            return f"Made {path} {'nullable' if nullable else 'required'}"
        case KeyChanged(after=is_key):
            return f"Made {path} part of the key" if is_key else f"Took {path} out of the key"
        case PartitioningChanged(after=is_partition):
            return f"{'Started' if is_partition else 'Stopped'} partitioning by {path}"
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


def clause_of(finding: Finding) -> str:
    """A change as the first half of a sentence, such as `user_id became INT64`."""
    change = finding.change
    path = change.path
    match change:
        case FieldAdded():
            return f"{path} was added"
        case FieldRemoved():
            renamed = next((each for each in finding.notes if each.startswith(RENAME_NOTE)), None)
            return f"{path} was removed" + (f", {renamed}" if renamed else "")
        case TypeChanged(after=after):
            return f"{path} became {_cut_type(after.text)}"
        case NullabilityChanged(after=nullable):
            return f"{path} became {'nullable' if nullable else 'required'}"
        case KeyChanged(after=is_key):
            return f"{path} {'joined' if is_key else 'left'} the key"
        case PartitioningChanged(after=is_partition):
            return f"{path} {'became' if is_partition else 'is no longer'} a partition column"
        case Reordered():
            return f"the fields of {path} were reordered" if path else "columns were reordered"
        case DefaultChanged():
            return f"the default of {path} changed"
        case DescriptionChanged():
            return f"the description of {path} changed"
        case TagsChanged():
            return f"the tags of {path} changed"
        case _ as unreachable:
            assert_never(unreachable)


def deletion_clause(urn: str) -> str:
    """The deletion of a dataset as the first half of a sentence, such as `orders is gone`."""
    return f"{display_names([urn], {})[urn]} is gone"


def format_position(file: str | None, line: int | None) -> str:
    """A file and line as text; without a file, the line is in the stored SQL."""
    if file is None:
        return "" if line is None else f"line {line} of its SQL"
    return file if line is None else f"{file}:{line}"


def breakage_of(affected: Affected, name: str, use: AffectedUse | None = None) -> str:
    """What breaks, such as `breaks customer_360 (analytics-team), customer_360.sql:7`."""
    use = use or next(iter(affected.uses), AffectedUse())
    parts = (_with_owners(affected, name), format_position(use.file, use.line))
    return f"{_verb(affected.verdict)} {', '.join(filter(None, parts))}"


def blast_radius_of(affected: BlastRadius) -> str:
    """The effect of a change downstream: `breaks 2 datasets: sessions (web), scores (ml)`."""
    if affected.problem is not None:
        return "what breaks downstream is not known"
    names = display_names([each.urn for each in affected.datasets], {})
    parts = []
    for verdict, count in (
        (Verdict.BREAKING, affected.breaking),
        (Verdict.UNDETERMINED, affected.undetermined),
    ):
        datasets = [each for each in affected.datasets if each.verdict is verdict]
        if count == len(datasets) == 1:
            parts.append(breakage_of(datasets[0], names[datasets[0].urn]))
        elif count:
            labels = [_with_owners(each, names[each.urn]) for each in datasets]
            parts.append(
                f"{_verb(verdict)} {_count_and_names(('dataset', 'datasets'), labels, count)}"
            )
    return "; ".join(parts)


def affected_sentence_of(affected: Affected) -> str:
    """An affected dataset: `lumos://... breaks (analytics-team), customer_360.sql:7`."""
    owners = _with_owners(affected, "").strip()
    use = next(iter(affected.uses), AffectedUse())
    clause = " ".join(filter(None, (affected.urn, _verb(affected.verdict), owners)))
    return ", ".join(filter(None, (clause, format_position(use.file, use.line))))


def _verb(verdict: Verdict) -> str:
    return "breaks" if verdict is Verdict.BREAKING else "may break"


def _with_owners(affected: Affected, name: str) -> str:
    owners = [*affected.owners[:_MAX_NAMES]]
    if (more := len(affected.owners) - len(owners)) > 0:
        owners.append(f"and {more} more")
    return f"{name} ({', '.join(owners)})" if owners else name


def _noun_forms(change: AnySchemaChange) -> tuple[str, str]:
    """The noun phrases for one change and for several changes of this kind."""
    match change:
        case FieldAdded():
            return "field added", "fields added"
        case FieldRemoved():
            return "field removed", "fields removed"
        case TypeChanged():
            return "type changed", "types changed"
        case NullabilityChanged(after=nullable):
            adjective = "nullable" if nullable else "required"
            return f"field made {adjective}", f"fields made {adjective}"
        case KeyChanged(after=is_key):
            verb = "put into" if is_key else "taken out of"
            return f"field {verb} the key", f"fields {verb} the key"
        case PartitioningChanged(after=is_partition):
            adjective = "new" if is_partition else "former"
            return f"{adjective} partition column", f"{adjective} partition columns"
        case Reordered():
            return "list of fields reordered", "lists of fields reordered"
        case DefaultChanged():
            return "default changed", "defaults changed"
        case DescriptionChanged():
            return "description changed", "descriptions changed"
        case TagsChanged():
            return "tags of a field changed", "tags of fields changed"
        case _ as unreachable:
            assert_never(unreachable)


def _subject(change: AnySchemaChange) -> str:
    if isinstance(change, TypeChanged):
        before, after = (_cut_type(type.text) for type in (change.before, change.after))
        return f"{change.path} {before} -> {after}"
    return change.path or "columns"


def _cut_type(type: str) -> str:
    return cut(type, _MAX_TYPE_LENGTH)


def _count_and_names(nouns: tuple[str, str], names: Sequence[str], total: int | None = None) -> str:
    singular, plural_noun = nouns
    total = len(names) if total is None else total
    count = plural(total, singular, plural_noun)
    return f"{count}: {join_names(names, _MAX_NAMES, total)}" if names else count
