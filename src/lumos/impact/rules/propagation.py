"""Propagation of a change through all downstream datasets."""

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from lumos.impact.rules import edges
from lumos.impact.rules.edges import LocatedAssessment, assess_key_changes
from lumos.impact.rules.graph import DatasetDerivation, DownstreamGraph, RankedGraph, SqlAnalyzer
from lumos.impact.rules.recommendations import recommendations
from lumos.impact.rules.results import (
    ColumnImpact,
    DatasetImpact,
    Impact,
    ImpactCoverage,
    Reason,
    rank,
)
from lumos.impact.rules.sql_text import is_unmentioned, only_names_removed_columns, plain_effect
from lumos.impact.rules.type_uses import (
    ClauseKind,
    OutputColumn,
    StatementEffect,
    TableVersions,
    UseOperation,
)
from lumos.impact.rules.verdicts import (
    BREAKING,
    COMPATIBLE,
    UNDETERMINED,
    Assessment,
    assess_column_change,
    assess_use,
)
from lumos.impact.rules.versions import (
    DatasetSchemas,
    Path,
    as_stored,
    column_origin,
    columns_of,
    first_versions,
    next_versions,
    schema_of,
)
from lumos.model.change import Finding, Verdict
from lumos.model.schema import Field, Schema
from lumos.model.types import quoted_name

# How often a dataset in a cycle is visited at most.
_MAX_VISITS: Final = 4


def impact_of(
    urn: str,
    findings: Sequence[Finding],
    downstream: DownstreamGraph,
    reason: SqlAnalyzer | None = None,
    *,
    adapted: Collection[str] = (),
) -> Impact:
    """The impact of changes of a dataset on everything downstream.

    Without `reason`, only lineage edges are used. The SQL in `adapted` files was written for the
    schema after the change, so the columns that are added are not new to it.
    """
    return _Propagation(urn, findings, downstream, reason, adapted).impact()


class _DatasetResult:
    """Assessments and changed columns of one dataset."""

    def __init__(self) -> None:
        self.assessments: dict[LocatedAssessment, None] = {}
        self.outputs: dict[str, OutputColumn] = {}
        self.schema: Schema | None = None
        self.is_doubtful = False

    def add(self, assessments: Iterable[LocatedAssessment]) -> None:
        self.assessments.update(dict.fromkeys(assessments))

    def add_undetermined(
        self, text: str, *, line: int | None = None, file: str | None = None
    ) -> None:
        self.add([LocatedAssessment(Assessment(UNDETERMINED, text), line=line, file=file)])

    def add_outputs(self, outputs: Iterable[OutputColumn]) -> None:
        """Add changed columns; an unknown change takes precedence over a known one."""
        for output in outputs:
            known = self.outputs.get(output.name)
            if known is None or not known.is_unknown:
                self.outputs[output.name] = output

    @property
    def verdict(self) -> Verdict:
        return min(
            (each.assessment.verdict for each in self.assessments), key=rank, default=COMPATIBLE
        )


class _Propagation:
    def __init__(
        self, urn: str, findings: Sequence[Finding], downstream: DownstreamGraph,
        reason: SqlAnalyzer | None, adapted: Collection[str],
    ) -> None:  # fmt: skip
        self._urn = urn
        self._adapted = frozenset(adapted)
        self._findings = findings
        self._changes = tuple(finding.change for finding in findings)
        self._downstream = downstream
        self._reason = reason
        self._graph = RankedGraph(urn, downstream.links(urn))
        self._schemas = DatasetSchemas(downstream, reason)
        self._unchanged: dict[str, TableVersions] = {}
        start = first_versions(urn, self._changes, self._schemas.known(urn))
        self._changed: dict[str, TableVersions] = {} if start.is_same else {urn: start}
        self._paths: dict[tuple[str, str], Path] = {
            (urn, name): ((urn, name),) for name in start.changed
        }
        self._results: dict[str, DatasetImpact] = {}

    def impact(self) -> Impact:
        """Visit every dataset that the change reaches, upstream datasets first."""
        graph = self._graph
        queue = [(graph.rank[child], child) for child in graph.children.get(self._urn, ())]
        heapq.heapify(queue)
        visits: dict[str, int] = {}
        queued = {urn for _, urn in queue}
        while queue:
            _, urn = heapq.heappop(queue)
            queued.discard(urn)
            visits[urn] = visits.get(urn, 0) + 1
            if visits[urn] > _MAX_VISITS or not self._visit(urn):
                continue
            for child in graph.children.get(urn, ()):
                if child not in queued and child in graph.rank:
                    queued.add(child)
                    heapq.heappush(queue, (graph.rank[child], child))
        return self._result()

    def _visit(self, urn: str) -> bool:
        """Assess a dataset; return whether its own columns change in a new way."""
        before = self._changed.get(urn)
        found = self._assess_dataset(urn)
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
            reasons=tuple(_reasons(found.assessments, self._paths)),
            is_affected=bool(found.assessments),
        )
        return before != self._changed.get(urn)

    def _assess_dataset(self, urn: str) -> _DatasetResult:
        found = _DatasetResult()
        reached = [each for each in self._graph.parents[urn] if each in self._changed]
        seen: set[str] = set()
        for derivation in self._downstream.derivations(urn):
            for upstream in (each for each in reached if each in derivation.unparsed):
                seen.add(upstream)
                text = f"is written by a statement that could not be parsed and mentions {upstream}"
                found.add_undetermined(text, line=derivation.line, file=derivation.file)
                found.is_doubtful = True
            upstreams = [edge.upstream for edge in derivation.edges if edge.upstream in reached]
            seen.update(upstreams)
            if upstreams:
                self._assess_derivation(urn, derivation, upstreams, found)
            if any(edge.upstream == self._urn for edge in derivation.edges):
                found.add(
                    assess_key_changes(self._findings, derivation, self._schemas.known(self._urn))
                )
        for upstream in reached:
            if upstream not in seen:
                text = f"how it is derived from {upstream} is unknown"
                found.add_undetermined(text)
                found.is_doubtful = True
        return found

    def _assess_derivation(
        self,
        urn: str,
        derivation: DatasetDerivation,
        upstreams: Sequence[str],
        found: _DatasetResult,
    ) -> None:
        is_adapted = derivation.file in self._adapted
        versions = self._versions_for_adapted if is_adapted else self._versions
        changed = {each: versions(each) for each in upstreams}
        if derivation.sql is None or self._reason is None:
            self._assess_by_edges(urn, derivation, changed, found)
            return
        if is_unmentioned(derivation, changed):
            return
        if only_names_removed_columns(derivation, changed):
            self._assess_by_edges(urn, derivation, changed, found)
            return
        plain = plain_effect(derivation, changed, versions)
        if plain is not None:
            self._apply_effect(urn, plain, derivation, found)
            return
        schema = self._schemas.stored(urn)
        effects = self._reason(derivation, urn, versions, with_fields=schema is None)
        if not effects:
            text = "its SQL could not be parsed, or no longer writes it"
            found.add_undetermined(text, file=derivation.file)
            self._assess_by_edges(urn, derivation, changed, found)
            found.is_doubtful = True
            return
        for effect in effects:
            self._apply_effect(urn, effect, derivation, found)

    def _apply_effect(
        self,
        urn: str,
        effect: StatementEffect,
        derivation: DatasetDerivation,
        found: _DatasetResult,
    ) -> None:
        failing: set[int] = set()
        for number, use in enumerate(effect.type_uses):
            location = (use.clause_kind.value, use.clause, use.line, derivation.file,
                     use.origins)  # fmt: skip
            assessments = assess_use(use)
            found.add(LocatedAssessment(assessment, *location) for assessment in assessments)
            if any(assessment.fails for assessment in assessments):
                failing.add(number)
        for reason, line in effect.doubts:
            found.add_undetermined(reason, line=line, file=derivation.file)
        if effect.is_open and any(output.name == edges.ALL for output in effect.outputs):
            found.is_doubtful = True
        if effect.fields and found.schema is None and not effect.is_open:
            found.schema = schema_of(effect)
        is_reported = bool(failing) or any(
            each.operation is UseOperation.NAMED for each in effect.type_uses
        )
        schema = self._schemas.stored(urn)
        outputs = [_without_failing(as_stored(each, _field(schema, each.name)), failing)
                   for each in effect.outputs]  # fmt: skip
        outputs = [each for each in outputs if each.before != each.after or each.is_unknown]
        self._apply_outputs(urn, outputs, found, derivation.file, is_reported=is_reported)

    def _apply_outputs(
        self, urn: str, outputs: Sequence[OutputColumn], found: _DatasetResult, file: str | None,
        *, is_reported: bool = False,
    ) -> None:  # fmt: skip
        schema = self._schemas.stored(urn)
        for output in outputs:
            if output.after is None and is_reported and output.clause != edges.ALL:
                # The missing column is already reported.
                continue
            stored = _field(schema, output.name)
            is_key = stored is not None and stored.key
            location = (
                ClauseKind.PROJECTION.value,
                output.clause,
                output.line,
                file,
                output.origins,
            )
            found.add(
                LocatedAssessment(each, *location) for each in _assess_output(output, is_key=is_key)
            )
        found.add_outputs(outputs)

    def _assess_by_edges(
        self,
        urn: str,
        derivation: DatasetDerivation,
        changed: dict[str, TableVersions],
        found: _DatasetResult,
    ) -> None:
        for edge in derivation.edges:
            if edge.upstream in changed:
                read = edges.assess_edge(edge, changed[edge.upstream], self._schemas.known(urn))
                found.add(_with_file(each, derivation.file) for each in read.assessments)
                found.add_outputs(read.outputs)
                found.is_doubtful = found.is_doubtful or read.is_doubtful

    def _versions(self, urn: str) -> TableVersions:
        changed = self._changed.get(urn)
        if changed is not None:
            return changed
        if urn not in self._unchanged:
            self._unchanged[urn] = TableVersions.of(urn, self._schemas.known(urn))
        return self._unchanged[urn]

    def _versions_for_adapted(self, urn: str) -> TableVersions:
        return self._versions(urn).with_added_before()

    def _result(self) -> Impact:
        results = [self._results.get(urn) or self._unaffected(urn)
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
            coverage=ImpactCoverage(datasets=len(results), determined=determined),
            order=order,
        )

    def _unaffected(self, urn: str) -> DatasetImpact:
        text = "reads nothing that changes"
        return DatasetImpact(
            urn=urn,
            verdict=COMPATIBLE,
            distance=self._graph.distance[urn],
            owners=tuple(self._downstream.owners(urn)),
            reasons=(Reason(text=text, verdict=COMPATIBLE),),
            is_affected=False,
        )


def _field(schema: Schema | None, name: str) -> Field | None:
    return edges.field_named(schema, name) if schema is not None else None


def _assess_output(output: OutputColumn, *, is_key: bool) -> Iterator[Assessment]:
    if output.after is None:
        yield Assessment(BREAKING, f"no longer has {output.name}")
    elif output.before is None:
        yield Assessment(COMPATIBLE, f"gains {output.name}")
    else:
        yield from assess_column_change(
            output.name, output.before, output.after, is_key=is_key, is_unknown=output.is_unknown
        )


def _without_failing(output: OutputColumn, failing: set[int]) -> OutputColumn:
    """The column as removed, if an expression that computes it fails."""
    if output.before is None or not failing.intersection(output.type_uses):
        return output
    return msgspec.structs.replace(output, after=None, is_unknown=False)


def _reasons(
    assessments: Iterable[LocatedAssessment], paths: Mapping[tuple[str, str], Path]
) -> Iterator[Reason]:
    """Reasons, worst first and then by line; compatible ones only if nothing is worse."""
    by_assessment: dict[LocatedAssessment, list[tuple[tuple[str, str], ...]]] = {}
    for each in assessments:
        by_assessment.setdefault(each._replace(origins=()), []).append(each.origins)

    def severity(each: LocatedAssessment) -> tuple[int | bool | str, ...]:
        assessment = each.assessment
        is_clause = each.usage != ClauseKind.PROJECTION.value
        position = each.file or "", each.line or 0
        return rank(assessment.verdict), not assessment.fails, *position, is_clause

    ordered = sorted(by_assessment, key=severity)
    worst = rank(ordered[0].assessment.verdict) if ordered else rank(COMPATIBLE)
    if not ordered:
        yield Reason(text="does not use what changes", verdict=COMPATIBLE)
    for each in ordered:
        if rank(each.assessment.verdict) == rank(COMPATIBLE) != worst:
            continue
        named = [origin for some in by_assessment[each] for origin in some]
        origins = [column for origin in named if (column := column_origin(origin, paths))]
        last = (column_origin(origin, paths) for origin in by_assessment[each][-1])
        yield Reason(
            text=each.assessment.text,
            verdict=each.assessment.verdict,
            usage=each.usage,
            clause=each.clause,
            file=each.file,
            line=each.line,
            path=next((paths[origin] for origin in last if origin is not None), ()),
            columns=tuple(dict.fromkeys(paths[origin][0][1] for origin in origins)),
            fields=tuple(dict.fromkeys(_fields(named, paths))),
        )


def _fields(
    origins: Iterable[tuple[str, str]], paths: Mapping[tuple[str, str], Path]
) -> Iterator[str]:
    """The fields of the changed dataset that are read; the column if it is read by another one."""
    for origin in origins:
        column = column_origin(origin, paths)
        if column is not None:
            is_field = origin != column and len(paths[column]) == 1
            yield origin[1] if is_field else quoted_name(paths[column][0][1])


def _with_file(assessments: LocatedAssessment, file: str | None) -> LocatedAssessment:
    return assessments if assessments.file is not None else assessments._replace(file=file)


def impact_of_removal(urn: str, downstream: DownstreamGraph) -> Impact:
    """The impact of removing a dataset: everything derived from it breaks."""
    graph = RankedGraph(urn, downstream.links(urn))
    order = tuple(sorted(graph.rank.keys() - {urn}, key=graph.rank.__getitem__))
    found = [
        DatasetImpact(
            urn=each,
            verdict=BREAKING,
            distance=graph.distance[each],
            owners=tuple(downstream.owners(each)),
            reasons=(_reason(urn, graph, each),),
        )
        for each in order
    ]
    found.sort(key=lambda each: (each.distance, each.urn))
    return Impact(
        urn=urn,
        changes=(),
        downstream=tuple(found),
        recommendations=recommendations((), found, order, is_chain=graph.has_chain(order)),
        coverage=ImpactCoverage(datasets=len(found), determined=len(found)),
        order=order,
    )


def _reason(urn: str, graph: RankedGraph, dataset: str) -> Reason:
    if urn in graph.parents[dataset]:
        return Reason(text=f"reads {urn}, which is removed", verdict=BREAKING)
    parent = min(graph.parents[dataset], key=lambda each: graph.distance.get(each, len(graph.rank)))
    return Reason(text=f"is derived from {parent}, which breaks", verdict=BREAKING)
