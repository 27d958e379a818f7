"""The picture of lineage with what breaks painted into it."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from lumos.engine.impact.reports import WORST_FIRST, DownstreamReport, ImpactReport, VerdictWord
from lumos.lineage.drawing.picture import Arrow, Box, Mark, Picture

_MARKS: Final[dict[VerdictWord, Mark]] = {
    "BREAKING": "breaking",
    "UNDETERMINED": "undetermined",
    "COMPATIBLE": "compatible",
}


def painted(picture: Picture, reports: Iterable[ImpactReport]) -> Picture:
    """The picture with the verdicts on all that a change touches, and the ways by which it does."""
    rows: dict[str, DownstreamReport] = {}
    arrows: dict[tuple[str, str], VerdictWord] = {}
    for report in reports:
        changing = {report.change.urn, *(row.urn for row in report.downstream if row.changed)}
        for row in report.downstream:
            if not row.affected:
                continue
            known = rows.get(row.urn)
            if known is None or _gravity(row.verdict) < _gravity(known.verdict):
                rows[row.urn] = row
            _add_ways(row, changing, picture.arrows, arrows)
    return msgspec.structs.replace(
        picture,
        boxes=tuple(_box(box, rows) for box in picture.boxes),
        arrows=tuple(_arrow(arrow, arrows) for arrow in picture.arrows),
    )


def merged(pictures: Iterable[Picture]) -> Picture:
    """Several pictures as one, seen from where the first is seen from."""
    some = list(pictures)
    boxes = {box.urn: box for picture in some for box in picture.boxes}
    arrows = {
        (arrow.upstream, arrow.downstream): arrow for picture in some for arrow in picture.arrows
    }
    return msgspec.structs.replace(
        some[0],
        boxes=tuple(boxes.values()),
        arrows=tuple(arrows.values()),
        cycles=tuple(dict.fromkeys(cycle for picture in some for cycle in picture.cycles)),
        total=len(boxes),
        truncated=any(picture.truncated for picture in some),
    )


def _add_ways(
    row: DownstreamReport,
    changing: set[str],
    drawn: Iterable[Arrow],
    arrows: dict[tuple[str, str], VerdictWord],
) -> None:
    """Along which arrows the change comes: those that reasons name, or else all that may."""
    ways: dict[tuple[str, str], VerdictWord] = {}
    for reason in row.reasons:
        if reason.path:
            way = reason.path[-1].partition("#")[0], row.urn
            ways[way] = min(ways.get(way, reason.verdict), reason.verdict, key=_gravity)
    if not ways:
        ways = {
            (arrow.upstream, arrow.downstream): row.verdict
            for arrow in drawn
            if arrow.downstream == row.urn and arrow.upstream in changing
        }
    for way, verdict in ways.items():
        arrows[way] = min(arrows.get(way, verdict), verdict, key=_gravity)


def _box(box: Box, rows: Mapping[str, DownstreamReport]) -> Box:
    row = rows.get(box.urn)
    return box if row is None else msgspec.structs.replace(box, mark=_MARKS[row.verdict])


def _arrow(arrow: Arrow, verdicts: Mapping[tuple[str, str], VerdictWord]) -> Arrow:
    verdict = verdicts.get((arrow.upstream, arrow.downstream))
    return arrow if verdict is None else msgspec.structs.replace(arrow, mark=_MARKS[verdict])


def _gravity(verdict: VerdictWord) -> int:
    return WORST_FIRST.index(verdict)
