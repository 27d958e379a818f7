"""Readers that a recorded change affects, as reports show them."""

from collections.abc import Mapping, Sequence

import msgspec

from lumos.model.change import (
    Affected,
    AffectedUse,
    BlastRadius,
    ChangeEvent,
    EventType,
    Verdict,
)
from lumos.model.report import Report
from lumos.model.urn import display_names
from lumos.schemas.wording import blast_radius_of, breakage_of, clause_of, gone_clause


class AffectedUseReport(Report, frozen=True, kw_only=True):
    """Where a dataset uses what changed, why that breaks it, and all of it in one sentence.

    `path` is that of the change, '' where the dataset as a whole changed or nobody knows more.
    """

    path: str
    change: str
    reason: str
    file: str | None
    line: int | None
    sentence: str


class AffectedDataset(Report, frozen=True, kw_only=True):
    """A dataset down the stream that breaks or may break, whose it was then, and where."""

    urn: str
    name: str
    verdict: Verdict
    owners: tuple[str, ...]
    uses: tuple[AffectedUseReport, ...]

    @classmethod
    def of(cls, found: Affected, *, name: str, clauses: Mapping[str, str]) -> "AffectedDataset":
        uses = found.uses or (AffectedUse(),)
        return cls(
            urn=found.urn,
            name=name,
            verdict=found.verdict,
            owners=found.owners,
            uses=tuple(
                AffectedUseReport(
                    path=use.path,
                    change=(clause := clauses.get(use.path, "")),
                    reason=use.reason,
                    file=use.file,
                    line=use.line,
                    sentence=": ".join(filter(None, (clause, breakage_of(found, name, use)))),
                )
                for use in uses
            ),
        )


def _taken_together(known: Sequence[BlastRadius]) -> BlastRadius:
    """What several changes of one dataset do: each dataset once, by the worst verdict."""
    datasets: dict[str, Affected] = {}
    for each in (affected for found in known for affected in found.datasets):
        before = datasets.get(each.urn, each)
        # Of one place that several changes reach, the first says it all.
        uses = {use.path: use for use in (*each.uses, *before.uses)}
        is_breaking = Verdict.BREAKING in (each.verdict, before.verdict)
        datasets[each.urn] = msgspec.structs.replace(
            each,
            verdict=Verdict.BREAKING if is_breaking else each.verdict,
            uses=tuple(uses.values()),
        )
    worst_first = sorted(datasets.values(), key=lambda each: each.verdict is not Verdict.BREAKING)
    breaking = sum(each.verdict is Verdict.BREAKING for each in worst_first)
    return BlastRadius(
        # Counts may be of more than are named.
        breaking=max(breaking, *(each.breaking for each in known)),
        undetermined=max(
            len(worst_first) - breaking,
            *(each.undetermined for each in known if each.count > len(each.datasets)),
            0,
        ),
        datasets=tuple(worst_first),
        problem=next((each.problem for each in known if each.problem is not None), None),
    )


class AffectedReport(Report, frozen=True, kw_only=True):
    """What a change does down the stream; the worst are named first, 1,000 at most.

    `problem` says why it is not known, and `summary` all of it in a few words.
    """

    summary: str
    breaking: int
    undetermined: int
    owners: tuple[str, ...]
    datasets: tuple[AffectedDataset, ...]
    problem: str | None

    @classmethod
    def of(cls, *events: ChangeEvent) -> "AffectedReport | None":
        """What events of one dataset do; None where nothing was known to be downstream."""
        known = [each.affected for each in events if each.affected is not None]
        if not known:
            return None
        found = known[0] if len(known) == 1 else _taken_together(known)
        names = display_names([each.urn for each in found.datasets], {})
        clauses: dict[str, str] = {}
        for event in events:
            if event.type is EventType.DELETED:
                clauses[""] = gone_clause(event.urn)
            for finding in event.findings:
                clauses.setdefault(finding.change.path, clause_of(finding))
        return cls(
            summary=blast_radius_of(found),
            breaking=found.breaking,
            undetermined=found.undetermined,
            owners=found.owners,
            datasets=tuple(
                AffectedDataset.of(each, name=names[each.urn], clauses=clauses)
                for each in found.datasets
            ),
            problem=found.problem,
        )
