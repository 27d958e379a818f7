"""Who breaks by a change that is on record already."""

from collections.abc import Iterator
from typing import Final

from lumos.analysis.impact import impact_of
from lumos.engine.impact.tracking import may_break
from lumos.engine.impact.world import StoredDownstream, reason
from lumos.model.change import Affected, BlastRadius, ChangeEvent, EventType, Verdict
from lumos.model.schema import Schema
from lumos.store import Store

MOST_NAMED: Final = 1_000
_AFFECTED: Final = (Verdict.BREAKING, Verdict.UNDETERMINED)


def blast_radius(store: Store, event: ChangeEvent) -> BlastRadius | None:
    """What a change does to what is there; None where nothing hangs on the dataset."""
    world = _AsItWas(store, event)
    there = world.datasets - world.gone
    if not there:
        return None
    found = [each for each in _affected(world, event) if each.urn in there]
    breaking = sum(each.verdict is Verdict.BREAKING for each in found)
    return BlastRadius(
        breaking=breaking,
        undetermined=len(found) - breaking,
        datasets=tuple(found[:MOST_NAMED]),
    )


def _affected(world: StoredDownstream, event: ChangeEvent) -> Iterator[Affected]:
    if any(map(may_break, event.findings)):
        for each in impact_of(world.urn, event.findings, world, reason).downstream:
            if each.verdict in _AFFECTED:
                yield Affected(urn=each.urn, verdict=each.verdict, owners=each.owners)
        return
    # That it is gone breaks what reads it; a person who says so does not say what breaks.
    is_gone = event.type is EventType.DELETED
    verdict = Verdict.BREAKING if is_gone else Verdict.UNDETERMINED
    for urn in sorted({after for before, after in world.links(world.urn) if before == world.urn}):
        yield Affected(urn=urn, verdict=verdict, owners=tuple(world.owners(urn)))


class _AsItWas(StoredDownstream):
    """The store has the changed dataset with its new schema already."""

    def __init__(self, store: Store, event: ChangeEvent) -> None:
        super().__init__(store, event.urn)
        hash = event.old_schema
        self._before = None if hash is None else store.change_log.schemas([hash]).get(hash)

    def schema(self, urn: str) -> Schema | None:
        return self._before if urn == self.urn else super().schema(urn)
