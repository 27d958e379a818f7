"""What to do about an impact, computed from the case."""

from collections.abc import Iterable, Sequence
from typing import Final

from lumos.analysis.impact.values import DatasetImpact
from lumos.model.change import FieldRemoved, Finding, TypeChanged, Verdict
from lumos.model.urn import Urn

_FEW: Final = 8


def recommendations(
    findings: Iterable[Finding],
    downstream: Sequence[DatasetImpact],
    order: Sequence[str],
) -> tuple[str, ...]:
    """Whom to tell, what to try, what to update and in which order."""
    by_urn = {each.urn: each for each in downstream}
    breaking = [by_urn[urn] for urn in order]
    affected = [each for each in downstream if each.verdict is Verdict.BREAKING]
    undetermined = [each for each in downstream if each.verdict is Verdict.UNDETERMINED]
    told: list[str] = []
    owners = list(dict.fromkeys(owner for each in affected for owner in each.owners))
    if owners:
        told.append(f"Notify {_listed(owners)} before deploying")
    ownerless = [each.urn for each in breaking if not each.owners]
    if ownerless:
        told.append(f"Find out who answers for {_listed(_names(ownerless))}: no owner is known")
    if affected and any(_could_come_beside(each) for each in findings):
        told.append("Consider backward-compatible approach: add new column first")
    if breaking:
        noun = "pipeline" if len(breaking) == 1 else "pipelines"
        told.append(f"Update {len(breaking)} downstream {noun} before schema change")
    if len(breaking) > 1:
        told.append(f"Update in this order: {', '.join(_names(order))}")
    if undetermined:
        names = _listed(_names([each.urn for each in undetermined]))
        told.append(f"Look at {names} by hand: what happens there was not determined")
    return tuple(told)


def _could_come_beside(finding: Finding) -> bool:
    """Whether a new column could stand beside the old one for a while."""
    is_replaced = isinstance(finding.change, TypeChanged | FieldRemoved)
    return is_replaced and finding.consumer in (Verdict.BREAKING, Verdict.UNDETERMINED)


def _names(urns: Sequence[str]) -> list[str]:
    return [name_of(urn) for urn in urns]


def name_of(urn: str) -> str:
    """A dataset's own name, as people call it."""
    return Urn.parse(urn).path[-1] if urn.startswith("lumos://") else urn


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _FEW
    shown = list(names[:_FEW]) + ([f"{more} more"] if more > 0 else [])
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
