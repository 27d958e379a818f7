"""Lineage pictures marked with the impact of changes."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from lumos.impact.reports import (
    WORST_FIRST,
    ChangeReport,
    DownstreamReport,
    ImpactReport,
    ReasonReport,
    VerdictName,
)
from lumos.lineage.drawing.picture import Arrow, Box, BoxImpact, BoxReason, Mark, Picture
from lumos.model.types import quoted_name
from lumos.model.urn import DisplayNames
from lumos.schemas.wording import format_position

_MARKS: Final[dict[VerdictName, Mark]] = {
    "BREAKING": "breaking",
    "UNDETERMINED": "undetermined",
    "COMPATIBLE": "compatible",
}
_MARKS_BY_SEVERITY: Final = tuple(_MARKS[word] for word in WORST_FIRST)


class _ArrowImpact(NamedTuple):
    """The impact of a change along an arrow, with the columns if known."""

    verdict: VerdictName
    columns: frozenset[str]


def add_impact(
    picture: Picture, reports: Iterable[ImpactReport], replace_urns: DisplayNames
) -> Picture:
    """Add verdicts and reasons to boxes, and mark the arrows along which changes propagate."""
    impacts: dict[str, BoxImpact] = {}
    owners: dict[str, tuple[str, ...]] = {}
    arrow_impacts: dict[tuple[str, str], _ArrowImpact] = {}
    for report in reports:
        for urn, box_impact in _box_impacts(report, replace_urns):
            earlier = impacts.get(urn)
            impacts[urn] = box_impact if earlier is None else _combine(earlier, box_impact)
        # Reports include owners from SQL files and dbt.
        owners |= {row.urn: row.owners for row in report.downstream}
        changing = {report.change.urn, *(row.urn for row in report.downstream if row.changed)}
        for row in (row for row in report.downstream if row.affected):
            for link, impact in _arrow_impacts(row, changing, picture.arrows):
                before = arrow_impacts.get(link, impact)
                arrow_impacts[link] = _ArrowImpact(
                    min(before.verdict, impact.verdict, key=WORST_FIRST.index),
                    before.columns | impact.columns,
                )
    return msgspec.structs.replace(
        picture,
        boxes=tuple(
            _box(box, impacts.get(box.urn), owners.get(box.urn, ())) for box in picture.boxes
        ),
        arrows=tuple(_arrow(arrow, arrow_impacts) for arrow in picture.arrows),
    )


def merge_pictures(pictures: Iterable[Picture]) -> Picture:
    """Merge pictures into one, which starts at the dataset of the first."""
    all_pictures = list(pictures)
    boxes = {box.urn: box for picture in all_pictures for box in picture.boxes}
    arrows = {
        (arrow.upstream, arrow.downstream): arrow
        for picture in all_pictures
        for arrow in picture.arrows
    }
    return msgspec.structs.replace(
        all_pictures[0],
        boxes=tuple(boxes.values()),
        arrows=tuple(arrows.values()),
        cycles=tuple(dict.fromkeys(cycle for picture in all_pictures for cycle in picture.cycles)),
        total=len(boxes),
        truncated=any(picture.truncated for picture in all_pictures),
    )


def _box_impacts(
    report: ImpactReport, replace_urns: DisplayNames
) -> Iterator[tuple[str, BoxImpact]]:
    """The impact on the changed dataset and on each downstream dataset."""
    yield (
        report.change.urn,
        BoxImpact(
            changes=tuple(map(_change, report.changes)),
            recommendations=tuple(map(replace_urns, report.recommendations)),
        ),
    )
    for row in report.downstream:
        yield (
            row.urn,
            BoxImpact(
                verdict=_MARKS[row.verdict],
                affected=row.affected,
                reasons=tuple(_reason(each, replace_urns) for each in row.reasons),
                columns=tuple(
                    f"{each.name}: {each.before or 'none'} → {each.after or 'removed'}"
                    for each in row.changed
                ),
                recommendations=tuple(map(replace_urns, row.recommendations)),
            ),
        )


def _change(change: ChangeReport) -> str:
    sides = [str(side) for side in (change.before, change.after) if side is not None]
    return f"{change.path or 'dataset'} {change.kind.replace('_', ' ')}: {' → '.join(sides)}"


def _reason(reason: ReasonReport, replace_urns: DisplayNames) -> BoxReason:
    steps = [step.partition("#") for step in reason.path]
    return BoxReason(
        text=replace_urns(reason.text),
        verdict=_MARKS[reason.verdict],
        clause=reason.clause or "",
        where=format_position(reason.file, reason.line),
        path=tuple(f"{replace_urns(urn)}.{column}" for urn, _, column in steps),
    )


def _combine(first: BoxImpact, second: BoxImpact) -> BoxImpact:
    """The combined impact of two changes on a dataset, with the worse verdict."""
    verdicts = [each.verdict for each in (first, second) if each.verdict is not None]
    affected_impacts = [each for each in (first, second) if each.affected] or [first, second]
    return BoxImpact(
        verdict=min(verdicts, key=_MARKS_BY_SEVERITY.index, default=None),
        affected=first.affected or second.affected,
        changes=(*first.changes, *second.changes),
        reasons=tuple(
            dict.fromkeys(reason for each in affected_impacts for reason in each.reasons)
        ),
        columns=tuple(dict.fromkeys((*first.columns, *second.columns))),
        recommendations=tuple(dict.fromkeys((*first.recommendations, *second.recommendations))),
    )


def _arrow_impacts(
    row: DownstreamReport, changing: set[str], arrows: Iterable[Arrow]
) -> Iterator[tuple[tuple[str, str], _ArrowImpact]]:
    """The arrows along which a change reaches a dataset: those in its reasons, or else all."""
    reasons_with_path = [reason for reason in row.reasons if reason.path]
    for reason in reasons_with_path:
        urn, _, column = reason.path[-1].partition("#")
        yield (urn, row.urn), _ArrowImpact(reason.verdict, frozenset({column.casefold()}))
    if not reasons_with_path:
        for arrow in arrows:
            if arrow.downstream == row.urn and arrow.upstream in changing:
                yield (arrow.upstream, row.urn), _ArrowImpact(row.verdict, frozenset())


def _box(box: Box, impact: BoxImpact | None, owners: tuple[str, ...]) -> Box:
    if impact is None:
        return box
    mark = impact.verdict if impact.affected else None
    all_owners = tuple(dict.fromkeys((*box.owners, *owners)))
    return msgspec.structs.replace(box, owners=all_owners, mark=mark, impact=impact)


def _arrow(arrow: Arrow, arrow_impacts: Mapping[tuple[str, str], _ArrowImpact]) -> Arrow:
    impact = arrow_impacts.get((arrow.upstream, arrow.downstream))
    if impact is None:
        return arrow
    upstream_columns = [
        *(each.upstream for each in arrow.columns),
        *(each.upstream for each in arrow.uses),
    ]
    changed_columns = dict.fromkeys(
        each for each in upstream_columns if quoted_name(each).casefold() in impact.columns
    )
    return msgspec.structs.replace(
        arrow, mark=_MARKS[impact.verdict], marked=tuple(changed_columns)
    )
