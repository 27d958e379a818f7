"""What a recorded change does down the stream, kept with the change itself."""

import logging
from collections.abc import Iterator, Sequence

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
        weighty = [event for event in events if _may_break(event)]
        if not weighty:
            return events
        # What is told must be written outside of the trial, which may be taken back.
        store = transaction.seen
        leading_on = store.lineage.leading_on({event.urn for event in weighty})
        chosen = [event for event in weighty if event.urn in leading_on]
        completed = dict(_completed(transaction, store, chosen)) if chosen else {}
        return [completed.get(event.event_id, event) for event in events]

    def within(self, transaction: Transaction, event: ChangeEvent) -> None:
        """Nothing more."""

    def after(self, event: ChangeEvent) -> None:
        """Nothing more."""


def _may_break(event: ChangeEvent) -> bool:
    return (
        event.type is EventType.DELETED
        or DECLARED_BREAKING in event.flags
        or any(map(may_break, event.findings))
    )


def may_break(finding: Finding) -> bool:
    """Whether there is any use of a column that such a change could break."""
    return finding.consumer is not Verdict.INFORMATIONAL or bool(finding.breaks_if)


def _completed(
    transaction: Transaction, store: Store, events: Sequence[ChangeEvent]
) -> Iterator[tuple[str, ChangeEvent]]:
    # Most changes are of datasets on which nothing hangs.
    from lumos.engine.impact.blast_radius import Surroundings

    around: Surroundings | None = None
    for event in events:
        try:
            with transaction.trial():
                around = around or Surroundings(store, events)
                found = around.blast_radius(event)
        except Exception as problem:  # noqa: BLE001 - whatever it is, the change must be recorded
            found = _not_known(event, problem)
        if found is not None:
            yield event.event_id, msgspec.structs.replace(event, affected=found)


def _not_known(event: ChangeEvent, problem: Exception) -> BlastRadius:
    _log.warning(
        "what %s does down the stream of %s is not known: %s",
        event.type.value,
        event.urn,
        problem,
        exc_info=None if isinstance(problem, LumosError) else problem,
    )
    return BlastRadius(problem=str(problem) or type(problem).__name__)
