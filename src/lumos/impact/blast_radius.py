"""Blast radius: which downstream datasets recorded changes break."""

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

import msgspec

from lumos.errors import LumosError
from lumos.impact.context import ImpactContext, Links, analyse_derivation
from lumos.impact.rules.graph import DatasetDerivation, SqlAnalyzer, Versions
from lumos.impact.rules.propagation import impact_of
from lumos.impact.rules.results import DatasetImpact, Reason
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
from lumos.model.paths import column_of, overlap
from lumos.model.schema import Schema
from lumos.store import Completer, Store, Transaction

MAX_LISTED: Final = 1_000
# Per dataset: one use for each changed column.
_MAX_USES: Final = 10
# Characters of SQL analysed per transaction: a few seconds of work.
MAX_ANALYSED_CHARACTERS: Final = 400_000
_MIN_CHARACTERS_PER_SCRIPT: Final = 500
_AFFECTED_VERDICTS: Final = (Verdict.BREAKING, Verdict.UNDETERMINED)
_log = logging.getLogger(__name__)


class BlastRadiusAnalysis:
    """Blast radius of datasets that changed together, with one read of the store."""

    def __init__(self, store: Store, events: Sequence[ChangeEvent]) -> None:
        self._shared = _SharedContext(store, *dict.fromkeys(event.urn for event in events))
        hashes = {event.old_schema for event in events if event.old_schema is not None}
        self._schemas = store.change_log.schemas(hashes)
        self._analyse = _LimitedAnalyzer()

    def blast_radius(self, event: ChangeEvent) -> BlastRadius | None:
        """The blast radius of a change; None if there are no downstream datasets."""
        old_schema = self._schemas.get(event.old_schema or "")
        context = _ContextBeforeChange(self._shared, event.urn, old_schema)
        live_datasets = context.datasets - self._shared.deleted
        if not live_datasets:
            return None
        affected = [
            each
            for each in _affected_datasets(context, event, self._analyse)
            if each.urn in live_datasets
        ]
        breaking = sum(each.verdict is Verdict.BREAKING for each in affected)
        return BlastRadius(
            breaking=breaking,
            undetermined=len(affected) - breaking,
            datasets=tuple(affected[:MAX_LISTED]),
        )


def _affected_datasets(
    context: "_ContextBeforeChange", event: ChangeEvent, analyze_sql: SqlAnalyzer
) -> Iterator[Affected]:
    if any(map(may_break, event.findings)):
        impact = impact_of(
            context.urn, event.findings, context, analyze_sql, consumers=context.consumers
        )
        for each in impact.downstream:
            if each.verdict in _AFFECTED_VERDICTS:
                yield Affected(
                    urn=each.urn,
                    verdict=each.verdict,
                    owners=each.owners,
                    uses=_affected_uses(each, event.findings),
                )
        return
    # A deletion breaks all readers; a declared breaking change may break any of them.
    is_deleted = event.type is EventType.DELETED
    verdict = Verdict.BREAKING if is_deleted else Verdict.UNDETERMINED
    for urn in sorted(context.direct_downstream):
        yield Affected(
            urn=urn,
            verdict=verdict,
            owners=tuple(context.owners(urn)),
            uses=tuple(_first_read(context, urn)),
        )


def _affected_uses(impact: DatasetImpact, findings: Sequence[Finding]) -> tuple[AffectedUse, ...]:
    """The worst reason for each changed column, preferably one with a line."""
    paths = dict.fromkeys(each.change.path for each in findings if may_break(each))
    single_path = next(iter(paths)) if len(paths) == 1 else ""
    uses: dict[str, AffectedUse] = {}
    for reason in impact.reasons:
        if reason.verdict is not impact.verdict:
            continue
        for path in _changed_fields(paths, reason) or [single_path]:
            if path not in uses or (uses[path].line is None and reason.line is not None):
                uses[path] = AffectedUse(
                    path=path, reason=reason.text, file=reason.file, line=reason.line
                )
    # Uses with a line come first.
    sorted_uses = sorted(
        uses.values(), key=lambda use: (use.line is None, use.file or "", use.line or 0, use.path)
    )
    return tuple(sorted_uses[:_MAX_USES])


def _changed_fields(paths: Iterable[str], reason: Reason) -> list[str]:
    """The first, most severe change of each column that a reason refers to."""
    by_column: dict[str, str] = {}
    for field in reason.fields:
        for path in paths:
            if overlap(field, path):
                by_column.setdefault(column_of(path), path)
    return list(by_column.values())


def _first_read(context: "_ContextBeforeChange", urn: str) -> Iterator[AffectedUse]:
    """The first known line that reads the changed dataset."""
    edges = [
        edge
        for derivation in context.derivations(urn)
        for edge in derivation.edges
        if edge.upstream == context.urn
    ]
    positions = [(reference.file, reference.line) for edge in edges for reference in edge.columns]
    positions += [(reference.file, reference.line) for edge in edges for reference in edge.uses]
    known_positions = [
        (file, line) for file, line in positions if file is not None and line is not None
    ]
    if known_positions:
        file, line = min(known_positions)
        yield AffectedUse(file=file, line=line)


class _LimitedAnalyzer:
    """Analyses a limited amount of SQL, since other writers wait for the transaction.

    The impact on the remaining datasets is undetermined.
    """

    def __init__(self) -> None:
        self._remaining_characters = MAX_ANALYSED_CHARACTERS

    def __call__(
        self,
        derivation: DatasetDerivation,
        dataset: str,
        versions_of: Versions,
        *,
        with_fields: bool,
    ) -> Sequence[StatementEffect]:
        remaining_before = self._remaining_characters
        self._remaining_characters -= max(len(derivation.sql or ""), _MIN_CHARACTERS_PER_SCRIPT)
        if self._remaining_characters < 0:
            if remaining_before >= 0:
                _log.warning(
                    "changes affect more than %d characters of SQL; the impact on the rest is "
                    "undetermined. Analyse it with: lumos impact",
                    MAX_ANALYSED_CHARACTERS,
                )
            return ()
        return analyse_derivation(derivation, dataset, versions_of, with_fields=with_fields)


class _SharedContext(ImpactContext):
    """A context shared by several changed datasets, which may depend on each other."""

    @cached_property
    def datasets(self) -> frozenset[str]:
        return frozenset({*super().datasets, self.urn})

    @cached_property
    def children(self) -> dict[str, list[str]]:
        """Direct downstream datasets of each dataset."""
        children_of: dict[str, list[str]] = {}
        for upstream, downstream in self.all_links:
            children_of.setdefault(upstream, []).append(downstream)
        return children_of


class _ContextBeforeChange:
    """The context of one changed dataset with its old schema; the store already has the new one."""

    def __init__(self, shared: _SharedContext, urn: str, old_schema: Schema | None) -> None:
        self.urn = urn
        self._shared = shared
        self._old_schema = old_schema

    @property
    def consumers(self) -> Collection[str]:
        return self._shared.consumers

    @property
    def direct_downstream(self) -> Collection[str]:
        return {*self._shared.children.get(self.urn, ())} - {self.urn}

    @cached_property
    def datasets(self) -> frozenset[str]:
        return frozenset(downstream for _, downstream in self._links) - {self.urn}

    def links(self, urn: str) -> Iterable[tuple[str, str]]:
        assert urn == self.urn
        return self._links

    @cached_property
    def _links(self) -> Links:
        links: list[tuple[str, str]] = []
        stack, seen = [self.urn], {self.urn}
        while stack:
            upstream = stack.pop()
            for downstream in self._shared.children.get(upstream, ()):
                links.append((upstream, downstream))
                if downstream not in seen:
                    seen.add(downstream)
                    stack.append(downstream)
        return tuple(links)

    def derivations(self, urn: str) -> Sequence[DatasetDerivation]:
        return self._shared.derivations(urn)

    def schema(self, urn: str) -> Schema | None:
        return self._old_schema if urn == self.urn else self._shared.schema(urn)

    def owners(self, urn: str) -> Sequence[str]:
        return self._shared.owners(urn)


class BlastRadiusTracker(Completer):
    """Adds the blast radius to change events before they are committed.

    If the analysis fails, the event contains the error; the change is recorded in any case.
    """

    def complete_events(
        self, transaction: Transaction, events: Sequence[ChangeEvent]
    ) -> Sequence[ChangeEvent]:
        relevant = [event for event in events if _event_may_break(event)]
        if not relevant:
            return events
        # Read before the savepoints, which may be rolled back.
        store = Store(transaction.view())
        with_readers = store.lineage.with_downstream({event.urn for event in relevant})
        with_impact = [event for event in relevant if event.urn in with_readers]
        completed = dict(_add_blast_radius(transaction, store, with_impact)) if with_impact else {}
        return [completed.get(event.event_id, event) for event in events]

    def before_commit(self, transaction: Transaction, event: ChangeEvent) -> None:
        """Do nothing: the events are already completed."""

    def after_commit(self, event: ChangeEvent) -> None:
        """Do nothing: the events are already completed."""


def _event_may_break(event: ChangeEvent) -> bool:
    return (
        event.type is EventType.DELETED
        or DECLARED_BREAKING in event.flags
        or any(map(may_break, event.findings))
    )


def may_break(finding: Finding) -> bool:
    """Whether a change could break any use of its column."""
    return finding.consumer is not Verdict.INFORMATIONAL or bool(finding.breaks_if)


def _add_blast_radius(
    transaction: Transaction, store: Store, events: Sequence[ChangeEvent]
) -> Iterator[tuple[str, ChangeEvent]]:
    analysis: BlastRadiusAnalysis | None = None
    for event in events:
        try:
            with transaction.savepoint():
                analysis = analysis or BlastRadiusAnalysis(store, events)
                radius = analysis.blast_radius(event)
        except Exception as problem:  # noqa: BLE001 - whatever it is, the change must be recorded
            radius = _failed_blast_radius(event, problem)
        if radius is not None:
            yield event.event_id, msgspec.structs.replace(event, affected=radius)


def _failed_blast_radius(event: ChangeEvent, problem: Exception) -> BlastRadius:
    _log.warning(
        "blast radius of %s on %s could not be computed: %s",
        event.type.value,
        event.urn,
        problem,
        exc_info=None if isinstance(problem, LumosError) else problem,
    )
    return BlastRadius(problem=str(problem) or type(problem).__name__)
