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
from lumos.impact.rules.sql_text import (
    edges_cover_removed_columns,
    simple_statement_effect,
    uses_no_changed_column,
)
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
    CurrentSchemas,
    Path,
    changed_columns,
    column_origin,
    schema_of,
    versions_of_changed_dataset,
    versions_of_downstream_dataset,
    with_stored_type,
)
from lumos.model.change import Finding, Verdict
from lumos.model.schema import Schema
from lumos.model.types import quoted_name

# Datasets in a cycle are visited repeatedly, at most this often.
_MAX_VISITS: Final = 4


def impact_of(
    urn: str,
    findings: Sequence[Finding],
    downstream: DownstreamGraph,
    analyze_sql: SqlAnalyzer | None = None,
    *,
    adapted_files: Collection[str] = (),
    consumers: Collection[str] = (),
) -> Impact:
    """The impact of changes of a dataset on everything downstream.

    Without `analyze_sql`, only lineage edges are used. The SQL in `adapted_files` was written for
    the schema after the change and already expects the added columns. `consumers`, such as
    dashboards, store no data: if a consumer breaks, the consumers that read it break as well.
    """
    return _Propagation(urn, findings, downstream, analyze_sql, adapted_files, consumers).impact()


class _DatasetResult:
    """Assessments and changed columns of one dataset."""

    def __init__(self) -> None:
        self.assessments: dict[LocatedAssessment, None] = {}
        self.outputs: dict[str, OutputColumn] = {}
        self.schema: Schema | None = None
        self.may_have_changed = False

    def add(self, assessments: Iterable[LocatedAssessment]) -> None:
        self.assessments.update(dict.fromkeys(assessments))

    def add_undetermined(
        self, text: str, *, line: int | None = None, file: str | None = None
    ) -> None:
        self.add([LocatedAssessment(Assessment(UNDETERMINED, text), line=line, file=file)])

    def add_outputs(self, outputs: Iterable[OutputColumn]) -> None:
        """Add changed columns; an unknown change takes precedence over a known one."""
        for output in outputs:
            current = self.outputs.get(output.name)
            if current is None or not current.is_unknown:
                self.outputs[output.name] = output

    @property
    def verdict(self) -> Verdict:
        return min(
            (each.assessment.verdict for each in self.assessments), key=rank, default=COMPATIBLE
        )


class _Propagation:
    def __init__(
        self, urn: str, findings: Sequence[Finding], downstream: DownstreamGraph,
        analyze_sql: SqlAnalyzer | None, adapted_files: Collection[str],
        consumers: Collection[str],
    ) -> None:  # fmt: skip
        self._urn = urn
        self._consumers = frozenset(consumers)
        self._adapted_files = frozenset(adapted_files)
        self._findings = findings
        self._changes = tuple(finding.change for finding in findings)
        self._downstream = downstream
        self._analyze_sql = analyze_sql
        self._graph = RankedGraph(urn, downstream.links(urn))
        self._schemas = CurrentSchemas(downstream, analyze_sql)
        self._unchanged: dict[str, TableVersions] = {}
        start = versions_of_changed_dataset(
            urn, self._changes, self._schemas.stored_or_inferred(urn)
        )
        self._changed: dict[str, TableVersions] = {} if start.is_unchanged else {urn: start}
        self._paths: dict[tuple[str, str], Path] = {
            (urn, name): ((urn, name),) for name in start.changed_columns
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
        """Assess a dataset; return whether its readers have to be visited again."""
        versions_before = self._changed.get(urn)
        result_before = self._results.get(urn)
        result = self._assess_dataset(urn)
        columns: tuple[ColumnImpact, ...] = ()
        if result.outputs or result.may_have_changed:
            schema = result.schema or self._schemas.stored_or_inferred(urn)
            outputs = result.outputs.values()
            versions = versions_of_downstream_dataset(
                urn, schema, outputs, may_have_changed=result.may_have_changed
            )
            columns = changed_columns(urn, versions, outputs, self._paths)
            if not versions.is_unchanged:
                self._changed[urn] = versions
        self._results[urn] = DatasetImpact(
            urn=urn,
            verdict=result.verdict,
            distance=self._graph.distance[urn],
            owners=tuple(self._downstream.owners(urn)),
            columns=columns,
            reasons=tuple(_reasons(result.assessments, self._paths)),
            is_affected=bool(result.assessments),
        )
        verdict_before = COMPATIBLE if result_before is None else result_before.verdict
        has_other_verdict = urn in self._consumers and result.verdict is not verdict_before
        return has_other_verdict or versions_before != self._changed.get(urn)

    def _assess_dataset(self, urn: str) -> _DatasetResult:
        result = _DatasetResult()
        changed_upstreams = [each for each in self._graph.parents[urn] if each in self._changed]
        if urn in self._consumers:
            result.add(self._assess_upstream_consumers(urn))
            # Consumers without column lineage, such as the charts of a dashboard, are already
            # assessed by their verdict.
            consumers_without_columns = self._consumers - {
                edge.upstream
                for derivation in self._downstream.derivations(urn)
                for edge in derivation.edges
                if edge.columns or edge.uses
            }
            changed_upstreams = [
                each for each in changed_upstreams if each not in consumers_without_columns
            ]
        assessed: set[str] = set()
        for derivation in self._downstream.derivations(urn):
            for upstream in (each for each in changed_upstreams if each in derivation.unparsed):
                assessed.add(upstream)
                text = f"is written by a statement that could not be parsed and mentions {upstream}"
                result.add_undetermined(text, line=derivation.line, file=derivation.file)
                result.may_have_changed = True
            upstreams = [
                edge.upstream for edge in derivation.edges if edge.upstream in changed_upstreams
            ]
            assessed.update(upstreams)
            if upstreams:
                self._assess_derivation(urn, derivation, upstreams, result)
            if any(edge.upstream == self._urn for edge in derivation.edges):
                result.add(
                    assess_key_changes(
                        self._findings, derivation, self._schemas.stored_or_inferred(self._urn)
                    )
                )
        for upstream in changed_upstreams:
            if upstream not in assessed:
                text = f"how it is derived from {upstream} is unknown"
                result.add_undetermined(text)
                result.may_have_changed = True
        return result

    def _assess_upstream_consumers(self, urn: str) -> Iterator[LocatedAssessment]:
        for upstream in self._graph.parents[urn]:
            result = self._results.get(upstream)
            if upstream not in self._consumers or result is None:
                continue
            if result.verdict is BREAKING:
                text = f"reads {upstream}, which breaks"
                yield LocatedAssessment(Assessment(BREAKING, text))
            elif result.verdict is UNDETERMINED:
                text = f"reads {upstream}, which is undetermined"
                yield LocatedAssessment(Assessment(UNDETERMINED, text))

    def _assess_derivation(
        self,
        urn: str,
        derivation: DatasetDerivation,
        upstreams: Sequence[str],
        result: _DatasetResult,
    ) -> None:
        is_adapted = derivation.file in self._adapted_files
        versions_of = self._versions_for_adapted if is_adapted else self._versions
        changed = {each: versions_of(each) for each in upstreams}
        if derivation.sql is None or self._analyze_sql is None:
            self._assess_by_edges(urn, derivation, changed, result)
            return
        if uses_no_changed_column(derivation, changed):
            return
        if edges_cover_removed_columns(derivation, changed):
            self._assess_by_edges(urn, derivation, changed, result)
            return
        simple = simple_statement_effect(derivation, changed, versions_of)
        if simple is not None:
            self._apply_effect(urn, simple, derivation, result)
            return
        schema = self._schemas.stored(urn)
        effects = self._analyze_sql(derivation, urn, versions_of, with_fields=schema is None)
        if not effects:
            text = "its SQL could not be parsed, or no longer writes it"
            result.add_undetermined(text, file=derivation.file)
            self._assess_by_edges(urn, derivation, changed, result)
            result.may_have_changed = True
            return
        for effect in effects:
            self._apply_effect(urn, effect, derivation, result)

    def _apply_effect(
        self,
        urn: str,
        effect: StatementEffect,
        derivation: DatasetDerivation,
        result: _DatasetResult,
    ) -> None:
        failing_uses: set[int] = set()
        for index, use in enumerate(effect.type_uses):
            location = (use.clause_kind.value, use.clause, use.line, derivation.file,
                     use.origins)  # fmt: skip
            assessments = assess_use(use)
            result.add(LocatedAssessment(assessment, *location) for assessment in assessments)
            if any(assessment.fails for assessment in assessments):
                failing_uses.add(index)
        for reason, line in effect.unparsed:
            result.add_undetermined(reason, line=line, file=derivation.file)
        if effect.may_write_other_columns and any(
            output.name == edges.ALL for output in effect.outputs
        ):
            result.may_have_changed = True
        if effect.fields and result.schema is None and not effect.may_write_other_columns:
            result.schema = schema_of(effect)
        is_cause_reported = bool(failing_uses) or any(
            each.operation is UseOperation.MISSING for each in effect.type_uses
        )
        schema = self._schemas.stored(urn)
        outputs = [
            with_stored_type(each, edges.find_field(schema, each.name)) for each in effect.outputs
        ]
        outputs = [_removed_if_failing(each, failing_uses) for each in outputs]
        outputs = [each for each in outputs if each.before != each.after or each.is_unknown]
        self._apply_outputs(
            urn, outputs, result, derivation.file, is_cause_reported=is_cause_reported
        )

    def _apply_outputs(
        self, urn: str, outputs: Sequence[OutputColumn], result: _DatasetResult, file: str | None,
        *, is_cause_reported: bool = False,
    ) -> None:  # fmt: skip
        schema = self._schemas.stored(urn)
        for output in outputs:
            if output.after is None and is_cause_reported and output.clause != edges.ALL:
                # The missing column is already reported.
                continue
            stored = edges.find_field(schema, output.name)
            is_key = stored is not None and stored.key
            location = (
                ClauseKind.PROJECTION.value,
                output.clause,
                output.line,
                file,
                output.origins,
            )
            result.add(
                LocatedAssessment(each, *location) for each in _assess_output(output, is_key=is_key)
            )
        result.add_outputs(outputs)

    def _assess_by_edges(
        self,
        urn: str,
        derivation: DatasetDerivation,
        changed: dict[str, TableVersions],
        result: _DatasetResult,
    ) -> None:
        for edge in derivation.edges:
            if edge.upstream in changed:
                from_edge = edges.assess_edge(
                    edge, changed[edge.upstream], self._schemas.stored_or_inferred(urn)
                )
                result.add(
                    each if each.file is not None else each._replace(file=derivation.file)
                    for each in from_edge.assessments
                )
                result.add_outputs(from_edge.outputs)
                result.may_have_changed = result.may_have_changed or from_edge.may_have_changed

    def _versions(self, urn: str) -> TableVersions:
        changed = self._changed.get(urn)
        if changed is not None:
            return changed
        if urn not in self._unchanged:
            self._unchanged[urn] = TableVersions.of(urn, self._schemas.stored_or_inferred(urn))
        return self._unchanged[urn]

    def _versions_for_adapted(self, urn: str) -> TableVersions:
        return self._versions(urn).with_added_columns_as_existing()

    def _result(self) -> Impact:
        results = [self._results.get(urn) or self._unaffected_dataset(urn)
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

    def _unaffected_dataset(self, urn: str) -> DatasetImpact:
        text = "reads nothing that changes"
        return DatasetImpact(
            urn=urn,
            verdict=COMPATIBLE,
            distance=self._graph.distance[urn],
            owners=tuple(self._downstream.owners(urn)),
            reasons=(Reason(text=text, verdict=COMPATIBLE),),
            is_affected=False,
        )


def _assess_output(output: OutputColumn, *, is_key: bool) -> Iterator[Assessment]:
    if output.after is None:
        yield Assessment(BREAKING, f"no longer has {output.name}")
    elif output.before is None:
        yield Assessment(COMPATIBLE, f"gains {output.name}")
    else:
        yield from assess_column_change(
            output.name, output.before, output.after, is_key=is_key, is_unknown=output.is_unknown
        )


def _removed_if_failing(output: OutputColumn, failing_uses: set[int]) -> OutputColumn:
    """Mark a column as removed if an expression that computes it fails."""
    if output.before is None or not failing_uses.intersection(output.type_uses):
        return output
    return msgspec.structs.replace(output, after=None, is_unknown=False)


def _reasons(
    assessments: Iterable[LocatedAssessment], paths: Mapping[tuple[str, str], Path]
) -> Iterator[Reason]:
    """Reasons, worst first and then by line; without the compatible ones if any is worse."""
    by_assessment: dict[LocatedAssessment, list[tuple[tuple[str, str], ...]]] = {}
    for each in assessments:
        by_assessment.setdefault(each._replace(origins=()), []).append(each.origins)

    def severity(each: LocatedAssessment) -> tuple[int | bool | str, ...]:
        assessment = each.assessment
        is_outside_projection = each.usage != ClauseKind.PROJECTION.value
        position = each.file or "", each.line or 0
        return rank(assessment.verdict), not assessment.fails, *position, is_outside_projection

    sorted_assessments = sorted(by_assessment, key=severity)
    worst = (
        rank(sorted_assessments[0].assessment.verdict) if sorted_assessments else rank(COMPATIBLE)
    )
    if not sorted_assessments:
        yield Reason(text="does not use what changes", verdict=COMPATIBLE)
    for each in sorted_assessments:
        if rank(each.assessment.verdict) == rank(COMPATIBLE) != worst:
            continue
        origins = [origin for group in by_assessment[each] for origin in group]
        columns = [column for origin in origins if (column := column_origin(origin, paths))]
        last_columns = (column_origin(origin, paths) for origin in by_assessment[each][-1])
        yield Reason(
            text=each.assessment.text,
            verdict=each.assessment.verdict,
            usage=each.usage,
            clause=each.clause,
            file=each.file,
            line=each.line,
            path=next((paths[column] for column in last_columns if column is not None), ()),
            columns=tuple(dict.fromkeys(paths[column][0][1] for column in columns)),
            fields=tuple(dict.fromkeys(_fields(origins, paths))),
        )


def _fields(
    origins: Iterable[tuple[str, str]], paths: Mapping[tuple[str, str], Path]
) -> Iterator[str]:
    """The fields of the changed dataset that the origins are derived from.

    For an origin in another dataset, this is only the column at the start of its path.
    """
    for origin in origins:
        column = column_origin(origin, paths)
        if column is not None:
            is_field = origin != column and len(paths[column]) == 1
            yield origin[1] if is_field else quoted_name(paths[column][0][1])


def impact_of_removal(urn: str, downstream: DownstreamGraph) -> Impact:
    """The impact of removing a dataset: everything derived from it breaks."""
    graph = RankedGraph(urn, downstream.links(urn))
    order = tuple(sorted(graph.rank.keys() - {urn}, key=graph.rank.__getitem__))
    impacts = [
        DatasetImpact(
            urn=each,
            verdict=BREAKING,
            distance=graph.distance[each],
            owners=tuple(downstream.owners(each)),
            reasons=(_removal_reason(urn, graph, each),),
        )
        for each in order
    ]
    impacts.sort(key=lambda each: (each.distance, each.urn))
    return Impact(
        urn=urn,
        changes=(),
        downstream=tuple(impacts),
        recommendations=recommendations((), impacts, order, is_chain=graph.has_chain(order)),
        coverage=ImpactCoverage(datasets=len(impacts), determined=len(impacts)),
        order=order,
    )


def _removal_reason(removed: str, graph: RankedGraph, dataset: str) -> Reason:
    if removed in graph.parents[dataset]:
        return Reason(text=f"reads {removed}, which is removed", verdict=BREAKING)
    parent = min(graph.parents[dataset], key=lambda each: graph.distance.get(each, len(graph.rank)))
    return Reason(text=f"is derived from {parent}, which breaks", verdict=BREAKING)
