"""Recommended actions for an impact."""

from collections.abc import Iterator, Sequence
from typing import Final

from lumos.impact.rules.results import DatasetImpact
from lumos.impact.rules.type_uses import ClauseKind
from lumos.model.change import (
    FieldAdded,
    FieldRemoved,
    Finding,
    NullabilityChanged,
    Reordered,
    TypeChanged,
    Verdict,
)
from lumos.rendering.text import few

_MAX_LISTED: Final = 8


def recommendations(
    findings: Sequence[Finding],
    downstream: Sequence[DatasetImpact],
    order: Sequence[str],
    *,
    is_chain: bool,
) -> tuple[str, ...]:
    """Recommend whom to notify, compatible alternatives, and what to update in which order.

    `order` lists the breaking datasets; it is shown if one is derived from another (`is_chain`).
    """
    breaking = [each for each in downstream if each.verdict is Verdict.BREAKING]
    undetermined = [each for each in downstream if each.verdict is Verdict.UNDETERMINED]
    steps: list[str] = []
    owners = sorted({owner for each in breaking for owner in each.owners})
    if owners:
        steps.append(f"Notify {join_names(owners)} before deploying")
    ownerless = [each.urn for each in breaking if not each.owners]
    if ownerless:
        steps.append(f"Find an owner for {join_names(ownerless)}: none is known")
    if breaking:
        steps += _compatible_approaches(findings, breaking)
        noun = "pipeline" if len(breaking) == 1 else "pipelines"
        steps.append(f"Update {len(breaking)} downstream {noun} before schema change")
    if is_chain:
        steps.append(f"Update in this order: {', '.join(_shorten_list(order))}")
    if undetermined:
        names = join_names([each.urn for each in undetermined])
        steps.append(f"Review {names} manually: the impact could not be determined")
    return tuple(steps)


def _compatible_approaches(
    findings: Sequence[Finding], breaking: Sequence[DatasetImpact]
) -> Iterator[str]:
    """Recommend ways to make the same change without breaking consumers."""
    has_successor = any(isinstance(each.change, FieldAdded) for each in findings)
    if any(_could_be_added_first(each, has_successor=has_successor) for each in findings):
        yield "Consider backward-compatible approach: add new column first"
    nullable = [
        each.change.path
        for each in findings
        if isinstance(each.change, NullabilityChanged) and each.change.after
    ]
    if nullable:
        yield f"Make readers handle nulls in {join_names(nullable)} first"
    clauses = (ClauseKind.INSERT.value, ClauseKind.UNION.value)
    positional = [
        each.urn for each in breaking if any(reason.usage in clauses for reason in each.reasons)
    ]
    if positional and all(isinstance(each.change, FieldAdded | Reordered) for each in findings):
        names = join_names(positional)
        yield f"List columns by name in the SQL of {names} instead of relying on their positions"


def _could_be_added_first(finding: Finding, *, has_successor: bool) -> bool:
    """Whether adding a new column first would help: for a changed type, or for a rename."""
    is_replaced = isinstance(finding.change, TypeChanged) or (
        isinstance(finding.change, FieldRemoved) and has_successor
    )
    return is_replaced and finding.consumer in (Verdict.BREAKING, Verdict.UNDETERMINED)


def join_names(names: Sequence[str]) -> str:
    """Join names for a sentence: `a`, `a and b`, `a, b and 3 more`."""
    shown = _shorten_list(names)
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _shorten_list(names: Sequence[str]) -> list[str]:
    shown, more = few(names, _MAX_LISTED)
    return [*shown, *([f"{more} more"] if more else [])]
