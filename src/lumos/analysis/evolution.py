"""How much the schemas of datasets changed over a period."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from lumos.analysis.fingerprints import kind_of
from lumos.model.change import ChangeEvent, Verdict

_DAY: Final = timedelta(days=1)


class Evolution(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in a period; `change_frequency` is changes per day."""

    total_versions: int
    breaking_versions: int
    total_changes: int
    breaking_changes: int
    changes_by_kind: dict[str, int]
    change_frequency: float


def evolution(events: Sequence[ChangeEvent], *, start: datetime, end: datetime) -> Evolution:
    """The sums over the events that began a schema version within the period."""
    findings = [finding for event in events for finding in event.findings]
    kinds = Counter(kind_of(finding.change) for finding in findings)
    days = max((end - start) / _DAY, 1.0)
    return Evolution(
        total_versions=len(events),
        breaking_versions=sum(event.breaking for event in events),
        total_changes=len(findings),
        breaking_changes=sum(finding.consumer is Verdict.BREAKING for finding in findings),
        changes_by_kind=dict(sorted(kinds.items())),
        change_frequency=round(len(findings) / days, 4),
    )
