"""What a recorded change does down the stream, kept with the change itself."""

import logging
from collections.abc import Sequence
from typing import Final

import msgspec

from lumos.errors import LumosError
from lumos.model.change import (
    DECLARED_BREAKING,
    Affected,
    BlastRadius,
    ChangeEvent,
    EventType,
    Finding,
    Verdict,
)
from lumos.model.schema import Schema
from lumos.store import Completer, Store, Transaction

MOST_NAMED: Final = 1_000
_AFFECTED: Final = (Verdict.BREAKING, Verdict.UNDETERMINED)
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


def _completed(transaction: Transaction, store: Store, event: ChangeEvent) -> ChangeEvent:
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


def _may_break(event: ChangeEvent) -> bool:
    return (
        event.type is EventType.DELETED
        or DECLARED_BREAKING in event.flags
        or any(map(_is_weighty, event.findings))
    )


def _is_weighty(finding: Finding) -> bool:
    """Whether there is any use of a column that such a change could break."""
    return finding.consumer is not Verdict.INFORMATIONAL or bool(finding.breaks_if)


def blast_radius(store: Store, event: ChangeEvent) -> BlastRadius | None:
    """Who breaks by a change that the store has; None where nothing that is there hangs on it."""
    # Most changes are of datasets on which nothing hangs.
    from lumos.analysis.impact import impact_of
    from lumos.engine.impact.world import StoredDownstream, reason

    class AsItWas(StoredDownstream):
        """The store has the dataset as it is already."""

        def schema(self, urn: str) -> Schema | None:
            return before if urn == self.urn else super().schema(urn)

    before = _schema_before(store, event)
    world = AsItWas(store, event.urn)
    there = world.datasets - world.gone
    if not there:
        return None
    if any(map(_is_weighty, event.findings)):
        impact = impact_of(world.urn, event.findings, world, reason)
        found = [
            Affected(urn=each.urn, verdict=each.verdict, owners=each.owners)
            for each in impact.downstream
            if each.urn in there and each.verdict in _AFFECTED
        ]
    else:
        # That it is gone breaks what reads it; a person who says so does not say what breaks.
        is_gone = event.type is EventType.DELETED
        verdict = Verdict.BREAKING if is_gone else Verdict.UNDETERMINED
        next_ones = {after for before, after in world.links(world.urn) if before == world.urn}
        found = [
            Affected(urn=urn, verdict=verdict, owners=tuple(world.owners(urn)))
            for urn in sorted(next_ones & there)
        ]
    breaking = sum(each.verdict is Verdict.BREAKING for each in found)
    return BlastRadius(
        breaking=breaking,
        undetermined=len(found) - breaking,
        datasets=tuple(found[:MOST_NAMED]),
    )


def _schema_before(store: Store, event: ChangeEvent) -> Schema | None:
    hash = event.old_schema
    return None if hash is None else store.change_log.schemas([hash]).get(hash)
