"""A change on its way down the stream, dataset by dataset."""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from lumos.impact.rules import facts
from lumos.impact.rules.changing import Path, as_stored, columns_of, first_versions, next_versions
from lumos.impact.rules.downstream import Downstream, Making, Reasoner
from lumos.impact.rules.facts import Told
from lumos.impact.rules.keys import told_of_keys
from lumos.impact.rules.ordering import Graph
from lumos.impact.rules.recommendations import recommendations
from lumos.impact.rules.schemas import Schemas, schema_of
from lumos.impact.rules.shortcuts import is_unmentioned, names_what_goes, plain_effect
from lumos.impact.rules.type_uses import (
    ClauseKind,
    OutputColumn,
    StatementEffect,
    TableVersions,
    UseOperation,
)
from lumos.impact.rules.values import ColumnImpact, Coverage, DatasetImpact, Impact, Reason, rank
from lumos.impact.rules.verdicts import (
    BREAKING,
    COMPATIBLE,
    UNDETERMINED,
    Decision,
    decide,
    passed_on,
)
from lumos.model.change import Finding, Verdict
from lumos.model.schema import Field, Schema

# How often a dataset is looked at again when data flows in a circle.
_MOST_ROUNDS: Final = 4


def impact_of(
    urn: str, findings: Sequence[Finding], downstream: Downstream, reason: Reasoner | None = None
) -> Impact:
    """What changes of a dataset do to everything down its stream.

    Without somebody to reason through SQL, the facts of edges decide alone.
    """
    return _Propagation(urn, findings, downstream, reason).impact()


class _Found:
    """What is found out about one dataset."""

    def __init__(self) -> None:
        self.told: dict[Told, None] = {}
        self.outputs: dict[str, OutputColumn] = {}
        self.schema: Schema | None = None
        self.is_doubtful = False

    def tell(self, told: Iterable[Told]) -> None:
        self.told.update(dict.fromkeys(told))

    def take(self, outputs: Iterable[OutputColumn]) -> None:
        """Keeps columns that change; what nobody can tell of outweighs what somebody can."""
        for output in outputs:
            known = self.outputs.get(output.name)
            if known is None or not known.is_lost:
                self.outputs[output.name] = output

    @property
    def verdict(self) -> Verdict:
        return min((each.decision.verdict for each in self.told), key=rank, default=COMPATIBLE)


class _Propagation:
    def __init__(
        self, urn: str, findings: Sequence[Finding], downstream: Downstream,
        reason: Reasoner | None,
    ) -> None:  # fmt: skip
        self._urn = urn
        self._findings = findings
        self._changes = tuple(finding.change for finding in findings)
        self._downstream = downstream
        self._reason = reason
        self._graph = Graph(urn, downstream.links(urn))
        self._schemas = Schemas(downstream, reason)
        self._plain: dict[str, TableVersions] = {}
        start = first_versions(urn, self._changes, self._schemas.known(urn))
        self._changed: dict[str, TableVersions] = {} if start.is_same else {urn: start}
        self._paths: dict[tuple[str, str], Path] = {
            (urn, name): ((urn, name),) for name in start.changed
        }
        self._results: dict[str, DatasetImpact] = {}

    def impact(self) -> Impact:
        """Looks at every dataset that the change reaches, each behind all that it is made from."""
        graph = self._graph
        waiting = [(graph.rank[child], child) for child in graph.children.get(self._urn, ())]
        heapq.heapify(waiting)
        rounds: dict[str, int] = {}
        queued = {urn for _, urn in waiting}
        while waiting:
            _, urn = heapq.heappop(waiting)
            queued.discard(urn)
            rounds[urn] = rounds.get(urn, 0) + 1
            if rounds[urn] > _MOST_ROUNDS or not self._look_at(urn):
                continue
            for child in graph.children.get(urn, ()):
                if child not in queued and child in graph.rank:
                    queued.add(child)
                    heapq.heappush(waiting, (graph.rank[child], child))
        return self._summed_up()

    def _look_at(self, urn: str) -> bool:
        """Whether something is found that those behind the dataset should know."""
        before = self._changed.get(urn)
        found = self._found(urn)
        columns: tuple[ColumnImpact, ...] = ()
        if found.outputs or found.is_doubtful:
            schema = found.schema or self._schemas.known(urn)
            outputs = found.outputs.values()
            versions = next_versions(urn, schema, outputs, is_doubtful=found.is_doubtful)
            columns = columns_of(urn, versions, outputs, self._paths)
            if not versions.is_same:
                self._changed[urn] = versions
        self._results[urn] = DatasetImpact(
            urn=urn,
            verdict=found.verdict,
            distance=self._graph.distance[urn],
            owners=tuple(self._downstream.owners(urn)),
            columns=columns,
            reasons=tuple(_reasons(found.told, self._paths)),
            is_affected=bool(found.told),
        )
        return before != self._changed.get(urn)

    def _found(self, urn: str) -> _Found:
        found = _Found()
        reached = [each for each in self._graph.parents[urn] if each in self._changed]
        seen: set[str] = set()
        for making in self._downstream.makings(urn):
            for upstream in (each for each in reached if each in making.unparsed):
                seen.add(upstream)
                text = f"is made by a statement that could not be parsed and names {upstream}"
                found.tell([Told(Decision(UNDETERMINED, text), line=making.line, file=making.file)])
                found.is_doubtful = True
            upstreams = [edge.upstream for edge in making.edges if edge.upstream in reached]
            seen.update(upstreams)
            if upstreams:
                self._making(urn, making, upstreams, found)
            if any(edge.upstream == self._urn for edge in making.edges):
                found.tell(told_of_keys(self._findings, making, self._schemas.known(self._urn)))
        for upstream in reached:
            if upstream not in seen:
                text = f"how it is made from {upstream} is not known"
                found.tell([Told(Decision(UNDETERMINED, text))])
                found.is_doubtful = True
        return found

    def _making(self, urn: str, making: Making, upstreams: Sequence[str], found: _Found) -> None:
        changed = {each: self._changed[each] for each in upstreams}
        if making.sql is None or self._reason is None:
            self._by_facts(urn, making, changed, found)
            return
        if is_unmentioned(making, changed):
            return
        if names_what_goes(making, changed):
            self._by_facts(urn, making, changed, found)
            return
        plain = plain_effect(making, changed, self._versions)
        if plain is not None:
            self._effect(urn, plain, making, found)
            return
        schema = self._schemas.stored(urn)
        effects = self._reason(making, urn, self._versions, with_fields=schema is None)
        if not effects:
            text = "its SQL was not understood, or does not make it any more"
            found.tell([Told(Decision(UNDETERMINED, text), file=making.file)])
            self._by_facts(urn, making, changed, found)
            found.is_doubtful = True
            return
        for effect in effects:
            self._effect(urn, effect, making, found)

    def _effect(self, urn: str, effect: StatementEffect, making: Making, found: _Found) -> None:
        failing: set[int] = set()
        for number, meeting in enumerate(effect.meetings):
            place = (meeting.place.value, meeting.clause, meeting.line, making.file,
                     meeting.origins)  # fmt: skip
            decisions = decide(meeting)
            found.tell(Told(decision, *place) for decision in decisions)
            if any(decision.fails for decision in decisions):
                failing.add(number)
        for reason, line in effect.doubts:
            found.tell([Told(Decision(UNDETERMINED, reason), None, None, line, making.file)])
        if effect.is_open and any(output.name == facts.ALL for output in effect.outputs):
            found.is_doubtful = True
        if effect.fields and found.schema is None and not effect.is_open:
            found.schema = schema_of(effect)
        is_told = bool(failing) or any(each.act is UseOperation.NAMED for each in effect.meetings)
        schema = self._schemas.stored(urn)
        outputs = [_without_value(as_stored(each, _field(schema, each.name)), failing)
                   for each in effect.outputs]  # fmt: skip
        outputs = [each for each in outputs if each.before != each.after or each.is_lost]
        self._pass_on(urn, outputs, found, making.file, is_told=is_told)

    def _pass_on(
        self, urn: str, outputs: Sequence[OutputColumn], found: _Found, file: str | None,
        *, is_told: bool = False,
    ) -> None:  # fmt: skip
        schema = self._schemas.stored(urn)
        for output in outputs:
            if output.after is None and is_told and output.clause != facts.ALL:
                # That the column is needed says it all.
                continue
            stored = _field(schema, output.name)
            is_key = stored is not None and stored.key
            place = (ClauseKind.PROJECTION.value, output.clause, output.line, file, output.origins)
            found.tell(Told(each, *place) for each in _of_output(output, is_key=is_key))
        found.take(outputs)

    def _by_facts(
        self, urn: str, making: Making, changed: dict[str, TableVersions], found: _Found
    ) -> None:
        for edge in making.edges:
            if edge.upstream in changed:
                read = facts.read(edge, changed[edge.upstream], self._schemas.known(urn))
                found.tell(_with_file(each, making.file) for each in read.told)
                found.take(read.outputs)
                found.is_doubtful = found.is_doubtful or read.is_doubtful

    def _versions(self, urn: str) -> TableVersions:
        changed = self._changed.get(urn)
        if changed is not None:
            return changed
        if urn not in self._plain:
            self._plain[urn] = TableVersions.of(urn, self._schemas.known(urn))
        return self._plain[urn]

    def _summed_up(self) -> Impact:
        results = [self._results.get(urn) or self._untouched(urn)
                   for urn in self._graph.distance if urn != self._urn]  # fmt: skip
        results.sort(key=lambda each: (rank(each.verdict), each.distance, each.urn))
        ranks = self._graph.rank
        breaking = [each.urn for each in results if each.verdict is BREAKING]
        order = tuple(sorted(breaking, key=ranks.__getitem__))
        determined = sum(each.verdict is not UNDETERMINED for each in results)
        return Impact(
            urn=self._urn,
            changes=self._changes,
            downstream=tuple(results),
            recommendations=recommendations(
                self._findings, results, order, is_chain=self._graph.has_chain(breaking)
            ),
            coverage=Coverage(datasets=len(results), determined=determined),
            order=order,
        )

    def _untouched(self, urn: str) -> DatasetImpact:
        text = "nothing that it reads changes"
        return DatasetImpact(
            urn=urn,
            verdict=COMPATIBLE,
            distance=self._graph.distance[urn],
            owners=tuple(self._downstream.owners(urn)),
            reasons=(Reason(text=text, verdict=COMPATIBLE),),
            is_affected=False,
        )


def _field(schema: Schema | None, name: str) -> Field | None:
    return facts.field_named(schema, name) if schema is not None else None


def _of_output(output: OutputColumn, *, is_key: bool) -> Iterator[Decision]:
    if output.after is None:
        yield Decision(BREAKING, f"no longer has {output.name}")
    elif output.before is None:
        yield Decision(COMPATIBLE, f"gets {output.name} as well")
    else:
        yield from passed_on(
            output.name, output.before, output.after, is_key=is_key, is_lost=output.is_lost
        )


def _without_value(output: OutputColumn, failing: set[int]) -> OutputColumn:
    """What cannot be computed any more is gone."""
    if output.before is None or not failing.intersection(output.meetings):
        return output
    return msgspec.structs.replace(output, after=None, is_lost=False)


def _reasons(told: Iterable[Told], paths: Mapping[tuple[str, str], Path]) -> Iterator[Reason]:
    """Worst first, of these what fails outright; what works is told where nothing does not."""
    once: dict[Told, list[tuple[tuple[str, str], ...]]] = {}
    for each in told:
        once.setdefault(each._replace(origins=()), []).append(each.origins)
    ordered = sorted(once, key=lambda each: (rank(each.decision.verdict), not each.decision.fails))
    worst = rank(ordered[0].decision.verdict) if ordered else rank(COMPATIBLE)
    if not ordered:
        yield Reason(text="does not use what changes", verdict=COMPATIBLE)
    for each in ordered:
        if rank(each.decision.verdict) == rank(COMPATIBLE) != worst:
            continue
        origins = [origin for some in once[each] for origin in some if origin in paths]
        yield Reason(
            text=each.decision.text,
            verdict=each.decision.verdict,
            usage=each.usage,
            clause=each.clause,
            file=each.file,
            line=each.line,
            path=next((paths[origin] for origin in once[each][-1] if origin in paths), ()),
            columns=tuple(dict.fromkeys(paths[origin][0][1] for origin in origins)),
        )


def _with_file(told: Told, file: str | None) -> Told:
    return told if told.file is not None else told._replace(file=file)
