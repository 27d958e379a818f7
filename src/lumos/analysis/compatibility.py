"""Whether a schema change breaks readers of old data (storage) or unchanged queries (consumer)."""

from collections.abc import Iterable
from typing import Final, assert_never

from lumos.analysis.type_rules import Judgement, judge_types
from lumos.model.change import (
    AnySchemaChange,
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

# Which engine's rules decide whether files of a format stay readable; text formats have no
# engine of their own and follow their consumers.
_ENGINE_OF_FORMAT: Final = {
    "avro": "avro",
    "iceberg": "iceberg",
    "delta": "delta",
    "csv": "consumer",
    "json": "consumer",
}


def judge(changes: Iterable[AnySchemaChange], *, format: str | None = None) -> tuple[Finding, ...]:
    """Each change with its verdicts, worst for consumers first."""
    changes = tuple(changes)
    case_only = _case_only_paths(changes)
    findings = [_finding(change, format, case_only) for change in changes]
    order = list(Verdict)
    return tuple(sorted(findings, key=lambda finding: order.index(finding.consumer)))


def worst(findings: Iterable[Finding]) -> Verdict | None:
    """The gravest consumer verdict among the findings."""
    verdicts = {finding.consumer for finding in findings}
    return next((verdict for verdict in Verdict if verdict in verdicts), None)


def _finding(change: AnySchemaChange, format: str | None, case_only: set[str]) -> Finding:
    judgement = _judgement(change)
    flags = (*judgement.flags, "case-only") if change.path in case_only else judgement.flags
    engine = _ENGINE_OF_FORMAT.get(format or "", "spark")
    return Finding(
        change=change,
        consumer=judgement.consumer,
        storage=judgement.storage(engine),
        rule=judgement.rule,
        flags=flags,
        notes=judgement.notes,
    )


def _judgement(change: AnySchemaChange) -> Judgement:
    match change:
        case TypeChanged(partition=True):
            # The type was only ever guessed from the values in the paths.
            return Judgement("partition-type", Verdict.COMPATIBLE, flags=("cost",))
        case TypeChanged(before=before, after=after, path=path):
            return judge_types(before, after, is_map_key=path.endswith("{key}"))
        case FieldAdded(after=field):
            if field.nullable or field.default is not None:
                return Judgement("field-added", Verdict.COMPATIBLE)
            return Judgement(
                "required-field-added", Verdict.COMPATIBLE, any_storage=Verdict.BREAKING
            )
        case FieldRemoved():
            return Judgement("field-removed", Verdict.BREAKING, any_storage=Verdict.COMPATIBLE)
        case NullabilityChanged(after=nullable):
            if nullable:
                return Judgement(
                    "required-to-nullable", Verdict.UNDETERMINED, any_storage=Verdict.COMPATIBLE
                )
            return Judgement(
                "nullable-to-required", Verdict.COMPATIBLE, any_storage=Verdict.BREAKING
            )
        case Reordered():
            return Judgement("reordered", Verdict.INFORMATIONAL, flags=("positional",))
        case PartitioningChanged():
            return Judgement("partitioning", Verdict.COMPATIBLE, flags=("cost",))
        case KeyChanged():
            return Judgement("key", Verdict.UNDETERMINED, any_storage=Verdict.COMPATIBLE)
        case DefaultChanged():
            return Judgement("default", Verdict.INFORMATIONAL)
        case DescriptionChanged():
            return Judgement("description", Verdict.INFORMATIONAL)
        case TagsChanged():
            return Judgement("tags", Verdict.INFORMATIONAL)
        case _ as unreachable:
            assert_never(unreachable)


def _case_only_paths(changes: tuple[AnySchemaChange, ...]) -> set[str]:
    removed = {change.path.casefold(): change.path for change in changes
               if isinstance(change, FieldRemoved)}  # fmt: skip
    added = {change.path.casefold(): change.path for change in changes
             if isinstance(change, FieldAdded)}  # fmt: skip
    both = removed.keys() & added.keys()
    return {paths[folded] for folded in both for paths in (removed, added)}
