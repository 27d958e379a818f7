"""How much the schemas of datasets changed over a period."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from lumos.model.change import DECLARED_BREAKING, ChangeEvent, Verdict
from lumos.schemas.fingerprints import kind_of

_DAY: Final = timedelta(days=1)
_DECLARED: Final = "declared"


class Evolution(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in a period; `change_frequency` is changes per day."""

    total_versions: int
    breaking_versions: int
    total_changes: int
    breaking_changes: int
    changes_by_kind: dict[str, int]
    change_frequency: float


def changes_in(event: ChangeEvent) -> int:
    """How many changes an event tells; one that a person declares to break is one more."""
    return len(event.findings) + (DECLARED_BREAKING in event.flags)


def evolution(events: Sequence[ChangeEvent], *, start: datetime, end: datetime) -> Evolution:
    """The sums over the events that began a schema version within the period."""
    findings = [finding for event in events for finding in event.findings]
    declared = sum(DECLARED_BREAKING in event.flags for event in events)
    kinds = Counter(kind_of(finding.change) for finding in findings)
    if declared:
        kinds[_DECLARED] = declared
    total = sum(map(changes_in, events))
    days = max((end - start) / _DAY, 1.0)
    return Evolution(
        total_versions=len(events),
        breaking_versions=sum(event.breaking for event in events),
        total_changes=total,
        breaking_changes=declared
        + sum(finding.consumer is Verdict.BREAKING for finding in findings),
        changes_by_kind=dict(sorted(kinds.items())),
        change_frequency=round(total / days, 4),
    )
