"""Who breaks by changes that are on record already."""

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

import msgspec

from lumos.errors import LumosError
from lumos.impact.context import Links, StoredDownstream, reason
from lumos.impact.rules import DatasetImpact, Making, Reasoner, impact_of
from lumos.impact.rules.downstream import Versions
from lumos.impact.rules.type_uses import StatementEffect
from lumos.model.change import (
    DECLARED_BREAKING,
    Affected,
    AffectedUse,
    BlastRadius,
    ChangeEvent,
    EventType,
    Finding,
    Verdict,
)
from lumos.model.schema import Schema
from lumos.model.types import quoted_name
from lumos.schemas.paths import column_of
from lumos.store import Completer, Store, Transaction

MOST_NAMED: Final = 1_000
# Of one dataset: one for each changed column that it uses.
_MOST_USES: Final = 10
# Characters of SQL; a short text is work as well. Some seconds, however fast the machine.
MOST_REASONED: Final = 400_000
_LEAST_FOR_A_TEXT: Final = 500
_AFFECTED: Final = (Verdict.BREAKING, Verdict.UNDETERMINED)
_log = logging.getLogger(__name__)


class Surroundings:
    """All that hangs on datasets that changed together, read from the store at once."""

    def __init__(self, store: Store, events: Sequence[ChangeEvent]) -> None:
        self._shared = _Shared(store, *dict.fromkeys(event.urn for event in events))
        hashes = {event.old_schema for event in events if event.old_schema is not None}
        self._schemas = store.change_log.schemas(hashes)
        self._patience = _Patience()

    def blast_radius(self, event: ChangeEvent) -> BlastRadius | None:
        """What a change does to what is there; None where nothing hangs on the dataset."""
        before = self._schemas.get(event.old_schema or "")
        world = _AsItWas(self._shared, event.urn, before)
        there = world.datasets - self._shared.gone
        if not there:
            return None
        found = [each for each in _affected(world, event, self._patience) if each.urn in there]
        breaking = sum(each.verdict is Verdict.BREAKING for each in found)
        return BlastRadius(
            breaking=breaking,
            undetermined=len(found) - breaking,
            datasets=tuple(found[:MOST_NAMED]),
        )


def _affected(world: "_AsItWas", event: ChangeEvent, reason: Reasoner) -> Iterator[Affected]:
    if any(map(may_break, event.findings)):
        for each in impact_of(world.urn, event.findings, world, reason).downstream:
            if each.verdict in _AFFECTED:
                yield Affected(
                    urn=each.urn,
                    verdict=each.verdict,
                    owners=each.owners,
                    uses=_uses(each, event.findings),
                )
        return
    # That it is gone breaks what reads it; a person who says so does not say what breaks.
    is_gone = event.type is EventType.DELETED
    verdict = Verdict.BREAKING if is_gone else Verdict.UNDETERMINED
    for urn in sorted(world.next_ones):
        yield Affected(
            urn=urn,
            verdict=verdict,
            owners=tuple(world.owners(urn)),
            uses=tuple(_read_in(world, urn)),
        )


def _uses(found: DatasetImpact, findings: Sequence[Finding]) -> tuple[AffectedUse, ...]:
    """The worst reason for each changed column; one that has a line rather than one without."""
    # Findings stand gravest first, so that a column with several is told of by the gravest.
    paths = {
        column_of(each.change.path): each.change.path
        for each in reversed(findings)
        if may_break(each)
    }
    only = next(iter(paths.values())) if len(paths) == 1 else ""
    uses: dict[str, AffectedUse] = {}
    for why in found.reasons:
        if why.verdict is not found.verdict:
            continue
        columns = [quoted_name(column) for column in why.columns]
        for path in {paths[column]: None for column in columns if column in paths} or (only,):
            if path not in uses or (uses[path].line is None and why.line is not None):
                uses[path] = AffectedUse(path=path, reason=why.text, file=why.file, line=why.line)
    # Reasons stand in no order of their own; a line to open comes first.
    ordered = sorted(
        uses.values(), key=lambda use: (use.line is None, use.file or "", use.line or 0, use.path)
    )
    return tuple(ordered[:_MOST_USES])


def _read_in(world: "_AsItWas", urn: str) -> Iterator[AffectedUse]:
    """The first line known to read the dataset that is gone."""
    edges = [edge for making in world.makings(urn) for edge in making.edges]
    reads = [edge for edge in edges if edge.upstream == world.urn]
    facts = [(fact.file, fact.line) for edge in reads for fact in edge.columns]
    facts += [(fact.file, fact.line) for edge in reads for fact in edge.uses]
    lines = [(file, line) for file, line in facts if file is not None and line is not None]
    if lines:
        file, line = min(lines)
        yield AffectedUse(file=file, line=line)


class _Patience:
    """Reasons through so much SQL and no more: other writers wait for the transaction to end.

    What is made by SQL that nobody looked at is not determined.
    """

    def __init__(self) -> None:
        self._left = MOST_REASONED

    def __call__(
        self, making: Making, dataset: str, versions: Versions, *, with_fields: bool
    ) -> Sequence[StatementEffect]:
        was_left = self._left
        self._left -= max(len(making.sql or ""), _LEAST_FOR_A_TEXT)
        if self._left < 0:
            if was_left >= 0:
                _log.warning(
                    "changes reach more than %d characters of SQL at once; what the rest of it "
                    "makes is not determined. Ask for it with: lumos impact",
                    MOST_REASONED,
                )
            return ()
        return reason(making, dataset, versions, with_fields=with_fields)


class _Shared(StoredDownstream):
    """Any of the datasets may hang on another one of them."""

    @cached_property
    def datasets(self) -> frozenset[str]:
        return frozenset({*super().datasets, self.urn})

    @cached_property
    def onward(self) -> dict[str, list[str]]:
        """Where data flows on to from each dataset."""
        found: dict[str, list[str]] = {}
        for before, after in self.all_links:
            found.setdefault(before, []).append(after)
        return found


class _AsItWas:
    """What hangs on one of the datasets, which the store has with its new schema already."""

    def __init__(self, shared: _Shared, urn: str, before: Schema | None) -> None:
        self.urn = urn
        self._shared = shared
        self._before = before

    @property
    def next_ones(self) -> Collection[str]:
        return {*self._shared.onward.get(self.urn, ())} - {self.urn}

    @cached_property
    def datasets(self) -> frozenset[str]:
        return frozenset(after for _, after in self._links) - {self.urn}

    def links(self, urn: str) -> Iterable[tuple[str, str]]:
        assert urn == self.urn
        return self._links

    @cached_property
    def _links(self) -> Links:
        found: list[tuple[str, str]] = []
        waiting, seen = [self.urn], {self.urn}
        while waiting:
            before = waiting.pop()
            for after in self._shared.onward.get(before, ()):
                found.append((before, after))
                if after not in seen:
                    seen.add(after)
                    waiting.append(after)
        return tuple(found)

    def makings(self, urn: str) -> Sequence[Making]:
        return self._shared.makings(urn)

    def schema(self, urn: str) -> Schema | None:
        return self._before if urn == self.urn else self._shared.schema(urn)

    def owners(self, urn: str) -> Sequence[str]:
        return self._shared.owners(urn)


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
