"""What a recorded change does down the stream, kept with the change itself."""

import logging
from collections.abc import Sequence

import msgspec

from lumos.errors import LumosError
from lumos.model.change import (
    DECLARED_BREAKING,
    BlastRadius,
    ChangeEvent,
    EventType,
    Finding,
    Verdict,
)
from lumos.store import Completer, Store, Transaction

_log = logging.getLogger(__name__)


class BlastRadiusTracker(Completer):
    """Tells with each change of a schema which datasets break by it, before it is committed.

    What cannot be found out is said so in the event; it keeps no change from being recorded.
    """

    def completed(
        self, transaction: Transaction, events: Sequence[ChangeEvent]
    ) -> Sequence[ChangeEvent]:
        weighty = {event.urn for event in events if _may_break(event)}
        if not weighty:
            return events
        # What is told must be written outside of the trial, which may be taken back.
        store = transaction.seen
        leading_on = store.lineage.leading_on(weighty)
        return [
            _completed(transaction, store, event)
            if event.urn in leading_on and _may_break(event)
            else event
            for event in events
        ]


def _may_break(event: ChangeEvent) -> bool:
    return (
        event.type is EventType.DELETED
        or DECLARED_BREAKING in event.flags
        or any(map(may_break, event.findings))
    )


def may_break(finding: Finding) -> bool:
    """Whether there is any use of a column that such a change could break."""
    return finding.consumer is not Verdict.INFORMATIONAL or bool(finding.breaks_if)


def _completed(transaction: Transaction, store: Store, event: ChangeEvent) -> ChangeEvent:
    # Most changes are of datasets on which nothing hangs.
    from lumos.engine.impact.blast_radius import blast_radius

    try:
        with transaction.trial():
            found = blast_radius(store, event)
    except Exception as problem:  # noqa: BLE001 - whatever it is, the change must be recorded
        _log.warning(
            "what %s does down the stream of %s is not known: %s",
            event.type.value,
            event.urn,
            problem,
            exc_info=None if isinstance(problem, LumosError) else problem,
        )
        found = BlastRadius(problem=str(problem) or type(problem).__name__)
    return event if found is None else msgspec.structs.replace(event, affected=found)
