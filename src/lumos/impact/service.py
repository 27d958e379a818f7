"""Who breaks when a dataset changes, as `Lumos().impact` tells it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from lumos.config import Settings
from lumos.errors import MisuseError
from lumos.impact.cases import Case, Proposing, case_of
from lumos.impact.changes import Wish
from lumos.impact.context import StoredDownstream, reason
from lumos.impact.reports import (
    ChangeReport,
    ImpactReport,
    ImpactsReport,
    UnparsedReport,
    change_reports,
    counted,
    downstream_report,
    impact_report,
    impacts_report,
)
from lumos.impact.rules import Impact, impact_of, impact_of_removal
from lumos.impact.rules.recommendations import listed, name_of, recommendations
from lumos.lineage.view import find_dataset, has_lineage
from lumos.model.json_codec import to_json
from lumos.progress import Progress, no_progress
from lumos.schemas.wording import position
from lumos.store import Store
from lumos.store.collecting import with_all_set_aside

if TYPE_CHECKING:
    from lumos.impact.spark_check import RehearsalReport
    from lumos.lineage.drawing.picture import Picture
    from lumos.model.change import Finding
    from lumos.model.conversions.sql_types import Dialect
    from lumos.schemas.proposal_reader import Kind

# How many files a remark names.
_MOST_FILES: Final = 20
_PICTURES: Final = ("html", "dot", "mermaid")


class ImpactService:
    """Tells what changes of schemas do down the stream."""

    def __init__(self, settings: Settings, store: Callable[[], Store]) -> None:
        self._settings = settings
        self._open = store

    def of(
        self,
        dataset: str,
        *,
        change: Sequence[str] = (),
        drop: Sequence[str] = (),
        rename: Sequence[str] = (),
        proposed: str | Path | None = None,
        kind: "Kind | None" = None,
        model: str | None = None,
        dialect: "Dialect | None" = None,
        rehearse: bool = False,
        progress: Progress = no_progress,
    ) -> ImpactReport:
        """What it does to everything downstream if a dataset changes.

        `change` is such as `user_id: STRING -> INT64`, `drop` a column, `rename` such as `a -> b`,
        `proposed` a file as for `schema.predict`; the others change what it proposes. With
        `rehearse`, Spark analyses the SQL downstream with both schemas as well.
        """
        wish = Wish(change=tuple(change), drop=tuple(drop), rename=tuple(rename))
        if wish.is_empty and proposed is None:
            raise MisuseError(
                "Say what changes: --change 'user_id: STRING -> INT64', --drop COLUMN, "
                "--rename 'old -> new' or --proposed FILE."
            )
        store = self._open()
        progress("reading what hangs on it")
        world = StoredDownstream(store, find_dataset(store, dataset))
        proposing = None if proposed is None else Proposing(proposed, kind, model)
        case = case_of(world, wish, proposing, dialect=dialect)
        return self._answer(world, case, rehearse=rehearse, progress=progress)

    def of_changes(
        self,
        file: str | Path,
        *,
        rehearse: bool = False,
        progress: Progress = no_progress,
    ) -> ImpactsReport:
        """What the changes do that `schema.diff` or `schema.diff_revisions` wrote into a file.

        The changes of each dataset are judged by themselves.
        """
        from lumos.impact.differences import (
            case_of_difference,
            is_new,
            is_removed,
            read_differences,
            stored_urns,
        )

        differences = read_differences(file)
        store = self._open()
        urn_of = stored_urns(store, [diff.urn for diff in differences])
        reports = []
        for diff in differences:
            if is_new(diff):
                continue
            world = StoredDownstream(store, urn_of[diff.urn])
            if is_removed(diff):
                reports.append(self._answer_removal(world))
            else:
                case = case_of_difference(world, diff)
                reports.append(self._answer(world, case, rehearse=rehearse, progress=progress))
        new = sum(map(is_new, differences))
        verb = "is" if new == 1 else "are"
        remark = f"{counted(new, 'dataset')} {verb} new; nobody reads what was not there"
        return impacts_report(reports, [remark] if new else [])

    def drawn(self, report: ImpactReport | ImpactsReport, format: str) -> str:
        """A report as a text in another language: json, markdown, html, dot or mermaid."""
        if format == "json":
            return to_json(report, indent=2).decode() + "\n"
        if format == "markdown":
            from lumos.impact.markdown import markdown

            return markdown(report)
        if format not in _PICTURES:
            raise MisuseError(
                f"'{format}' is no format of an impact. Use json, markdown, html, dot or mermaid."
            )
        from lumos.lineage import drawing

        picture = self.picture(report)
        if format == "dot":
            return drawing.dot(picture)
        if format == "mermaid":
            return drawing.mermaid(picture)
        return drawing.page(picture, title=report.headline)

    def picture(self, report: ImpactReport | ImpactsReport) -> "Picture":
        """All that lies downstream of what changes, with the verdicts painted."""
        from lumos.impact.picture import merged, painted
        from lumos.lineage.view import LineageViewer

        reports = report.datasets if isinstance(report, ImpactsReport) else (report,)
        if not reports:
            raise MisuseError("No schema changes, so there is no picture of it.")
        viewer = LineageViewer(self._open)
        pictures = [viewer.picture(each.change.urn, side="downstream") for each in reports]
        return painted(merged(pictures), reports)

    def _answer_removal(self, world: StoredDownstream) -> ImpactReport:
        impact = impact_of_removal(world.urn, world)
        schema = world.schema(world.urn)
        fields = None if schema is None else counted(len(schema.fields), "field")
        gone = ChangeReport(urn=world.urn, path="", kind="removed", before=fields, after=None)
        return self._told(world, impact, (), (gone,), None, ())

    def _answer(
        self, world: StoredDownstream, case: Case, *, rehearse: bool, progress: Progress
    ) -> ImpactReport:
        progress("following the change")
        # What was read stays to the end; what a parser makes of SQL must not.
        with with_all_set_aside():
            impact = impact_of(world.urn, case.findings, world, reason)
        rehearsed = None
        if rehearse and impact.downstream:
            from lumos.impact.spark_check import rehearse as rehearse_all

            rehearsed = rehearse_all(
                self._settings, world, impact, case.present, case.proposed, progress
            )
        changes = change_reports(world.urn, case.findings, case.renamed)
        return self._told(world, impact, case.findings, changes, rehearsed, case.remarks)

    def _told(
        self,
        world: StoredDownstream,
        impact: Impact,
        findings: "Sequence[Finding]",
        changes: tuple[ChangeReport, ...],
        rehearsed: "Mapping[str, tuple[RehearsalReport, ...]] | None",
        remarks: Sequence[str],
    ) -> ImpactReport:
        rows = tuple(
            downstream_report(
                each,
                is_gone=each.urn in world.gone,
                recommendations=recommendations(findings, (each,), (), is_chain=False),
                rehearsal=UNSET if rehearsed is None else rehearsed.get(each.urn, ()),
            )
            for each in impact.downstream
        )
        unparsed = tuple(_unparsed(world, impact))
        is_known = bool(rows or unparsed) or has_lineage(world.store, world.urn)
        every_remark = (*remarks, *_remarks(world, unparsed, is_known=is_known))
        return impact_report(
            impact, changes, rows, has_lineage=is_known, remarks=every_remark, unparsed=unparsed
        )


def _unparsed(world: StoredDownstream, impact: Impact) -> Iterator[UnparsedReport]:
    """The statements that name a dataset which the change reaches and could not be parsed."""
    reached = {world.urn, *(each.urn for each in impact.downstream if each.is_affected)}
    for reporter, each in world.unparsed:
        if not reached.isdisjoint(each.reads):
            yield UnparsedReport(
                reporter=reporter, file=each.file, line=each.line, datasets=each.writes
            )


def _remarks(
    world: StoredDownstream, unparsed: Sequence[UnparsedReport], *, is_known: bool
) -> Iterator[str]:
    """What is not known, and what is odd about what is."""
    if unparsed:
        files = list(dict.fromkeys(position(each.file or each.reporter, each.line)
                                   for each in unparsed))  # fmt: skip
        more = f" and {len(files) - _MOST_FILES:,} more" if len(files) > _MOST_FILES else ""
        yield (
            f"{counted(len(unparsed), 'statement')} that may read what changes could not be "
            f"parsed, so what happens there is undetermined: "
            f"{', '.join(files[:_MOST_FILES])}{more}"
        )
    if not is_known:
        yield (
            f"no lineage of {world.urn} is known, so nobody can be named who reads it: take in "
            "SQL, dbt artefacts or OpenLineage events with lumos lineage ingest PATH"
        )
    elif not world.datasets and not unparsed:
        yield (
            f"nothing that was taken in with lumos lineage ingest reads {world.urn}; who else may "
            "is not known"
        )
    if world.gone:
        names = listed([name_of(urn) for urn in sorted(world.gone)])
        yield f"no longer there, though what made it may still run: {names}"
    for cycle in world.cycles:
        if len(cycle) > 1:
            names = listed([name_of(urn) for urn in cycle])
            yield f"data flows in a circle between {names}"
