"""Impact analysis: the feature behind `Lumos().impact`."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from lumos.config import Settings
from lumos.errors import MisuseError
from lumos.impact.changes import ImpactCase, ProposedFile, RequestedChanges, case_from_options
from lumos.impact.context import ImpactContext, analyse_derivation
from lumos.impact.reports import (
    ChangeReport,
    ImpactReport,
    ImpactsReport,
    SparkCheckReport,
    UnparsedReport,
    change_reports,
    downstream_report,
    impact_report,
    impacts_report,
)
from lumos.impact.rules.propagation import impact_of, impact_of_removal
from lumos.impact.rules.recommendations import join_names, recommendations
from lumos.impact.rules.results import Impact
from lumos.model.change import Verdict
from lumos.model.json_codec import to_json
from lumos.model.urn import DisplayNames, display_names
from lumos.names import find_urn, has_lineage, split_field
from lumos.progress import Progress, no_progress
from lumos.rendering.text import plural
from lumos.schemas.wording import format_position
from lumos.store import Store
from lumos.store.garbage_collection import frozen_gc

if TYPE_CHECKING:
    from lumos.lineage.drawing.picture import Picture
    from lumos.model.change import Finding
    from lumos.model.conversions.sql_types import Dialect
    from lumos.model.schema import Schema
    from lumos.schemas.proposal_reader import ProposalKind
    from lumos.schemas.reports import DatasetDiff

# Limits the list of files in a remark.
_MAX_FILES: Final = 20
_PICTURE_FORMATS: Final = ("html", "dot", "mermaid")


class ImpactService:
    """Reports the impact of schema changes on downstream datasets."""

    def __init__(self, settings: Settings, open_store: Callable[[], Store]) -> None:
        self._settings = settings
        self._open_store = open_store

    def of(
        self,
        dataset: str,
        *,
        change: Sequence[str] = (),
        drop: Sequence[str] = (),
        rename: Sequence[str] = (),
        proposed: str | Path | None = None,
        kind: "ProposalKind | None" = None,
        model: str | None = None,
        dialect: "Dialect | None" = None,
        check_on_spark: bool = False,
        progress: Progress = no_progress,
    ) -> ImpactReport:
        """Report the impact of changing a dataset on everything downstream.

        Examples: `change` "user_id: STRING -> INT64", `drop` "discount", `rename` "a -> b".
        `proposed` is a schema file as for `schema.predict`; the other changes are applied to it.
        With `check_on_spark`, Spark also analyses the SQL downstream with both schemas.
        """
        requested = RequestedChanges(change=tuple(change), drop=tuple(drop), rename=tuple(rename))
        store = self._open_store()
        name, columns = split_field(store, dataset)
        urn = find_urn(store, name, with_lineage=True)
        if columns:
            name = dataset.removesuffix(f".{columns[0]}")
            raise MisuseError(
                f"'{columns[0]}' is a column of {name}. Say how it changes, for example: "
                f"lumos impact {quote(name)} --drop {quote(columns[0])}"
            )
        if requested.is_empty and proposed is None:
            raise MisuseError(
                "No changes given. Use --change 'user_id: STRING -> INT64', --drop COLUMN, "
                "--rename 'old -> new' or --proposed FILE: lumos impact DATASET --drop COLUMN"
            )
        progress("reading downstream datasets")
        context = ImpactContext(store, urn)
        proposed_file = None if proposed is None else ProposedFile(proposed, kind, model)
        case = case_from_options(context, requested, proposed_file, dialect=dialect)
        return self._analyse(context, case, check_on_spark=check_on_spark, progress=progress)

    def of_changes(
        self,
        file: str | Path,
        *,
        check_on_spark: bool = False,
        progress: Progress = no_progress,
    ) -> ImpactsReport:
        """Report the impact of the changes in a file written by `schema.diff`.

        The changes of each dataset are assessed independently.
        """
        from lumos.impact.diff_report import read_diff_report

        return self.of_diff(
            read_diff_report(file), check_on_spark=check_on_spark, progress=progress
        )

    def of_diff(
        self,
        differences: "Sequence[DatasetDiff]",
        *,
        adapted: Collection[str] = (),
        check_on_spark: bool = False,
        progress: Progress = no_progress,
    ) -> ImpactsReport:
        """Report the impact of the changed datasets of a schema diff.

        The SQL in `adapted` files is already written for the schemas after the change.
        """
        from lumos.impact.diff_report import case_from_diff, is_new, is_removed, stored_urns

        store = self._open_store()
        urn_of = stored_urns(store, [diff.urn for diff in differences])
        reports = []
        # Shared by all contexts, since statements downstream of many changes read the same tables.
        schemas: dict[str, Schema | None] = {}
        for diff in differences:
            if is_new(diff):
                continue
            context = ImpactContext(store, urn_of[diff.urn], schemas=schemas)
            if is_removed(diff):
                reports.append(self._analyse_removal(context))
            else:
                case = case_from_diff(context, diff)
                reports.append(
                    self._analyse(
                        context,
                        case,
                        adapted=adapted,
                        check_on_spark=check_on_spark,
                        progress=progress,
                    )
                )
        new = sum(map(is_new, differences))
        verb = "is" if new == 1 else "are"
        remark = f"{plural(new, 'dataset')} {verb} new; new datasets have no readers yet"
        return impacts_report(reports, [remark] if new else [])

    def drawn(self, report: ImpactReport | ImpactsReport, format: str) -> str:
        """A report rendered as json, markdown, html, dot or mermaid."""
        if format == "json":
            return to_json(report, indent=2).decode() + "\n"
        if format == "markdown":
            from lumos.impact.markdown import markdown

            return markdown(report, self._names())
        if format not in _PICTURE_FORMATS:
            raise MisuseError(
                f"Unknown format '{format}'. Use json, markdown, html, dot or mermaid."
            )
        from lumos.lineage import drawing

        picture = self.picture(report)
        if format == "dot":
            return drawing.dot(picture)
        if format == "mermaid":
            return drawing.mermaid(picture)
        return drawing.page(picture, title=self._names()(report.headline))

    def picture(self, report: ImpactReport | ImpactsReport) -> "Picture":
        """The lineage downstream of the changes, marked with verdicts."""
        from lumos.impact.picture import add_impact, merge_pictures
        from lumos.lineage.view import LineageViewer

        reports = report.datasets if isinstance(report, ImpactsReport) else (report,)
        if not reports:
            raise MisuseError("No schema changes, so there is nothing to draw.")
        viewer = LineageViewer(self._open_store)
        pictures = [viewer.picture(each.change.urn, side="downstream") for each in reports]
        return add_impact(merge_pictures(pictures), reports, self._names())

    def _names(self) -> DisplayNames:
        store = self._open_store()
        return DisplayNames(lambda urns: display_names(urns, store.names_like(urns)))

    def _analyse_removal(self, context: ImpactContext) -> ImpactReport:
        impact = impact_of_removal(context.urn, context)
        schema = context.schema(context.urn)
        fields = None if schema is None else plural(len(schema.fields), "field")
        removal = ChangeReport(urn=context.urn, path="", kind="removed", before=fields, after=None)
        return self._report(context, impact, (), (removal,), None, ())

    def _analyse(
        self, context: ImpactContext, case: ImpactCase, *, check_on_spark: bool,
        progress: Progress, adapted: Collection[str] = (),
    ) -> ImpactReport:  # fmt: skip
        progress("analysing the impact")
        # Exclude the loaded context from garbage collection; only parse trees need it.
        with frozen_gc():
            impact = impact_of(
                context.urn,
                case.findings,
                context,
                analyse_derivation,
                adapted_files=adapted,
                consumers=context.consumers,
            )
        spark_checks = None
        if check_on_spark and impact.downstream:
            from lumos.impact.spark_check import check_downstream_on_spark

            spark_checks = check_downstream_on_spark(
                self._settings, context, impact, case.present, case.proposed, progress
            )
        changes = change_reports(context.urn, case.findings, case.renamed)
        return self._report(context, impact, case.findings, changes, spark_checks, case.remarks)

    def _report(
        self,
        context: ImpactContext,
        impact: Impact,
        findings: "Sequence[Finding]",
        changes: tuple[ChangeReport, ...],
        spark_checks: "Mapping[str, tuple[SparkCheckReport, ...]] | None",
        remarks: Sequence[str],
    ) -> ImpactReport:
        rows = tuple(
            downstream_report(
                each,
                is_deleted=each.urn in context.deleted,
                consumer=context.consumers.get(each.urn),
                recommendations=recommendations(findings, (each,), (), is_chain=False),
                spark_check=UNSET if spark_checks is None else spark_checks.get(each.urn, ()),
            )
            for each in impact.downstream
        )
        unparsed = tuple(_unparsed_reports(context, impact))
        is_known = bool(rows or unparsed) or has_lineage(context.store, context.urn)
        all_remarks = (
            *remarks,
            *_remarks(context, unparsed, is_known=is_known),
            *_dialect_remarks(context, impact),
        )
        return impact_report(
            impact, changes, rows, has_lineage=is_known, remarks=all_remarks, unparsed=unparsed
        )


def _unparsed_reports(context: ImpactContext, impact: Impact) -> Iterator[UnparsedReport]:
    """The unparsable statements that mention a dataset affected by the change."""
    affected = {context.urn, *(each.urn for each in impact.downstream if each.is_affected)}
    for reporter, each in context.unparsed:
        if not affected.isdisjoint(each.reads):
            yield UnparsedReport(
                reporter=reporter, file=each.file, line=each.line, datasets=each.writes
            )


def _dialect_remarks(context: ImpactContext, impact: Impact) -> Iterator[str]:
    """A remark about SQL of unknown dialect: the types of its results depend on the dialect."""
    without_dialect = sum(
        any(each.sql is not None and each.dialect is None for each in context.derivations(row.urn))
        for row in impact.downstream
        if row.verdict is Verdict.UNDETERMINED
    )
    if without_dialect:
        datasets = plural(without_dialect, "undetermined dataset")
        yield (
            f"the SQL dialect of {datasets} is not known; more can be determined after "
            "lumos lineage ingest PATH --dialect DIALECT"
        )


def _remarks(
    context: ImpactContext, unparsed: Sequence[UnparsedReport], *, is_known: bool
) -> Iterator[str]:
    """Remarks about missing lineage, unparsable statements, deleted datasets and cycles."""
    if unparsed:
        files = list(dict.fromkeys(format_position(each.file or each.reporter, each.line)
                                   for each in unparsed))  # fmt: skip
        more = f" and {len(files) - _MAX_FILES:,} more" if len(files) > _MAX_FILES else ""
        yield (
            f"{plural(len(unparsed), 'statement')} that may read changed data could not be "
            f"parsed, so their impact is undetermined: "
            f"{', '.join(files[:_MAX_FILES])}{more}"
        )
    if not is_known:
        yield (
            f"no lineage of {context.urn} is known, so its readers are unknown: add SQL, dbt "
            "artifacts or OpenLineage events with lumos lineage ingest PATH"
        )
    elif not context.datasets and not unparsed:
        yield (
            f"no ingested lineage reads {context.urn}; there may be readers that Lumos does not "
            "know"
        )
    if context.deleted:
        names = join_names(sorted(context.deleted))
        yield f"deleted, but their pipelines may still run: {names}"
    for cycle in context.cycles:
        if len(cycle) > 1:
            names = join_names(cycle)
            yield f"the lineage has a cycle: {names}"
