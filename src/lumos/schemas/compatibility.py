"""Judges changes: do they break unchanged queries (consumer), or reading old data (storage)?"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, assert_never

from lumos.model.change import (
    AnySchemaChange,
    ConsumerUse,
    DefaultChanged,
    DescriptionChanged,
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
from lumos.model.paths import KEY, parent_of
from lumos.model.schema import Field
from lumos.schemas.renames import RENAME_NOTE, regrouped_paths, suggest_renames
from lumos.schemas.rules import BREAKING, RULES, Judgement
from lumos.schemas.type_rules import judge_types

# Formats without declared partition columns: their types are inferred from values in paths.
_INFERRED_PARTITIONS: Final = frozenset({"parquet", "avro", "orc", "csv", "json"})
_SEVERITY: Final = {verdict: rank for rank, verdict in enumerate(Verdict)}
_CASE_ONLY_FLAG: Final = "case-only"
# Queries may read more data, as fewer partitions are pruned.
_COST_FLAG: Final = "cost"


def classify(
    changes: Iterable[AnySchemaChange], *, format: str | None = None
) -> tuple[Finding, ...]:
    """Judge each change; the findings are sorted by consumer verdict, worst first."""
    changes = tuple(changes)
    related = _RelatedChanges.of(changes)
    findings = [_finding(change, format, related) for change in changes]
    return tuple(sorted(findings, key=lambda finding: _SEVERITY[finding.consumer]))


def worst_verdict(findings: Iterable[Finding]) -> Verdict | None:
    """The worst consumer verdict among the findings."""
    verdicts = {finding.consumer for finding in findings}
    return next((verdict for verdict in Verdict if verdict in verdicts), None)


class _RelatedChanges(NamedTuple):
    """What changes imply for each other, by path: case-only, regrouped, or renamed fields."""

    case_only: frozenset[str]
    regrouped: frozenset[str]
    renames: dict[str, str]

    @classmethod
    def of(cls, changes: Sequence[AnySchemaChange]) -> "_RelatedChanges":
        notes: dict[str, str] = {}
        renames = suggest_renames(changes)
        for rename in renames:
            evidence = f"(same {rename.evidence})"
            notes[rename.before] = f"{RENAME_NOTE} to {rename.after} {evidence}"
            notes[rename.after] = f"{RENAME_NOTE} from {rename.before} {evidence}"
        pairs = {(rename.before, rename.after) for rename in renames}
        return cls(_case_only(changes), regrouped_paths(changes, pairs), notes)


def _case_only(changes: Sequence[AnySchemaChange]) -> frozenset[str]:
    removed = {change.path for change in changes if isinstance(change, FieldRemoved)}
    added = {change.path for change in changes if isinstance(change, FieldAdded)}
    both = {path.casefold() for path in removed} & {path.casefold() for path in added}
    return frozenset(path for path in removed | added if path.casefold() in both)


def _finding(change: AnySchemaChange, format: str | None, related: _RelatedChanges) -> Finding:
    if isinstance(change, FieldRemoved) and change.path in related.regrouped:
        judgement = RULES["fields-regrouped"]
    else:
        judgement = _judge_change(change, format)
    flags, notes = judgement.flags, judgement.notes(format)
    if change.path in related.case_only:
        flags += (_CASE_ONLY_FLAG,)
    if change.path in related.renames and isinstance(change, FieldAdded | FieldRemoved):
        notes = (related.renames[change.path], *notes)
    return Finding(
        change=change,
        consumer=judgement.consumer,
        storage=judgement.storage(format),
        rule=judgement.rule,
        flags=flags,
        notes=notes,
        breaks_if=judgement.breaks_if,
        holds_if=judgement.holds_if,
    )


def _judge_change(change: AnySchemaChange, format: str | None) -> Judgement:
    match change:
        case TypeChanged(partition=True):
            if format in _INFERRED_PARTITIONS:
                return RULES["partition-type"]
            return _with_cost_flag(judge_types(change.before, change.after))
        case TypeChanged(before=before, after=after, path=path, key=key):
            return _judge_as_key(judge_types(before, after, is_map_key=path.endswith(KEY)), key)
        case FieldAdded(after=field, path=path):
            return _judge_added_field(field, is_column=not parent_of(path))
        case FieldRemoved(before=field):
            judgement = RULES["field-removed"]
            return _with_cost_flag(judgement) if field.partition else judgement
        case NullabilityChanged(after=nullable, key=key):
            rule = "required-to-nullable" if nullable else "nullable-to-required"
            return _judge_as_key(RULES[rule], key)
        case Reordered():
            return RULES["reordered"]
        case PartitioningChanged():
            return RULES["partitioning"]
        case KeyChanged():
            return RULES["key"]
        case DefaultChanged():
            return RULES["default"]
        case DescriptionChanged():
            return RULES["description"]
        case TagsChanged():
            return RULES["tags"]
        case _ as unreachable:
            assert_never(unreachable)


def _judge_added_field(field: Field, *, is_column: bool) -> Judgement:
    needs_value = not field.nullable and field.default is None
    judgement = RULES["required-field-added" if needs_value else "field-added"]
    if field.key:
        key = RULES["key-field-added"]
        judgement = key._replace(engines=judgement.engines, any_engine=judgement.any_engine)
    if not is_column:
        # Queries do not address struct members by position.
        judgement = judgement._replace(rule_notes=(), breaks_if=())
    return _with_cost_flag(judgement) if field.partition else judgement


def _with_cost_flag(judgement: Judgement) -> Judgement:
    return judgement._replace(flags=(*judgement.flags, _COST_FLAG))


def _judge_as_key(judgement: Judgement, key: bool) -> Judgement:
    """Turn an undetermined change of a key field into a breaking one if it may break keys."""
    if (
        key
        and ConsumerUse.KEY in judgement.breaks_if
        and judgement.consumer is Verdict.UNDETERMINED
    ):
        return judgement._replace(consumer=BREAKING)
    return judgement
