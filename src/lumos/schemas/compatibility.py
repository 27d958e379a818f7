"""Classifies changes by whether they break unchanged queries or the reading of old data.

The verdict on queries is called `consumer`, that on old data `storage`.
"""

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
from lumos.schemas.rules import BREAKING, RULES, CompatibilityRule
from lumos.schemas.type_rules import select_type_rule

# Formats that do not declare partition columns: their types are inferred from the values in paths.
_INFERRED_PARTITIONS: Final = frozenset({"parquet", "avro", "orc", "csv", "json"})
_SEVERITY: Final = {verdict: rank for rank, verdict in enumerate(Verdict)}
_CASE_ONLY_FLAG: Final = "case-only"
# The flag of changes after which queries may read more data, because fewer partitions are pruned.
_COST_FLAG: Final = "cost"


def classify(
    changes: Iterable[AnySchemaChange], *, format: str | None = None
) -> tuple[Finding, ...]:
    """Give each change its verdicts; the findings are sorted by consumer verdict, worst first."""
    changes = tuple(changes)
    related = _RelatedChanges.of(changes)
    findings = [_finding(change, format, related) for change in changes]
    return tuple(sorted(findings, key=lambda finding: _SEVERITY[finding.consumer]))


def worst_verdict(findings: Iterable[Finding]) -> Verdict | None:
    """The worst consumer verdict among the findings."""
    verdicts = {finding.consumer for finding in findings}
    return next((verdict for verdict in Verdict if verdict in verdicts), None)


class _RelatedChanges(NamedTuple):
    """The paths of changes that are related to other changes, and notes on likely renames.

    `case_only` are fields that were removed and added with another case, and `regrouped` are fields
    that were removed and added under another parent.
    """

    case_only: frozenset[str]
    regrouped: frozenset[str]
    rename_notes: dict[str, str]

    @classmethod
    def of(cls, changes: Sequence[AnySchemaChange]) -> "_RelatedChanges":
        notes: dict[str, str] = {}
        kinds = {type(change) for change in changes}
        if FieldAdded not in kinds or FieldRemoved not in kinds:
            # Only an added and a removed field can be related.
            return cls(frozenset(), frozenset(), notes)
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
    in_both = {path.casefold() for path in removed} & {path.casefold() for path in added}
    return frozenset(path for path in removed | added if path.casefold() in in_both)


def _finding(change: AnySchemaChange, format: str | None, related: _RelatedChanges) -> Finding:
    if isinstance(change, FieldRemoved) and change.path in related.regrouped:
        rule = RULES["fields-regrouped"]
    else:
        rule = _select_rule(change, format)
    flags, notes = rule.flags, rule.notes(format)
    if change.path in related.case_only:
        flags += (_CASE_ONLY_FLAG,)
    if change.path in related.rename_notes and isinstance(change, FieldAdded | FieldRemoved):
        notes = (related.rename_notes[change.path], *notes)
    return Finding(
        change=change,
        consumer=rule.consumer,
        storage=rule.storage(format),
        rule=rule.rule,
        flags=flags,
        notes=notes,
        breaks_if=rule.breaks_if,
        holds_if=rule.holds_if,
    )


def _select_rule(change: AnySchemaChange, format: str | None) -> CompatibilityRule:
    match change:
        case TypeChanged(partition=True):
            if format in _INFERRED_PARTITIONS:
                return RULES["partition-type"]
            return _with_cost_flag(select_type_rule(change.before, change.after))
        case TypeChanged(before=before, after=after, path=path, key=key):
            return _apply_key(select_type_rule(before, after, is_map_key=path.endswith(KEY)), key)
        case FieldAdded(after=field, path=path):
            return _rule_for_added_field(field, is_column=not parent_of(path))
        case FieldRemoved(before=field):
            rule = RULES["field-removed"]
            return _with_cost_flag(rule) if field.partition else rule
        case NullabilityChanged(after=nullable, key=key):
            name = "required-to-nullable" if nullable else "nullable-to-required"
            return _apply_key(RULES[name], key)
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


def _rule_for_added_field(field: Field, *, is_column: bool) -> CompatibilityRule:
    needs_value = not field.nullable and field.default is None
    rule = RULES["required-field-added" if needs_value else "field-added"]
    if field.key:
        key = RULES["key-field-added"]
        rule = key._replace(engines=rule.engines, any_engine=rule.any_engine)
    if not is_column:
        # Queries do not address struct members by position.
        rule = rule._replace(rule_notes=(), breaks_if=())
    return _with_cost_flag(rule) if field.partition else rule


def _with_cost_flag(rule: CompatibilityRule) -> CompatibilityRule:
    return rule._replace(flags=(*rule.flags, _COST_FLAG))


def _apply_key(rule: CompatibilityRule, key: bool) -> CompatibilityRule:
    """The rule for a key field: an undetermined change that may break keys is breaking."""
    if key and ConsumerUse.KEY in rule.breaks_if and rule.consumer is Verdict.UNDETERMINED:
        return rule._replace(consumer=BREAKING)
    return rule
