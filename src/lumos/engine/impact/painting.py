"""The picture of lineage with what breaks painted into it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from lumos.engine.impact.reports import WORST_FIRST, DownstreamReport, ImpactReport, VerdictWord
from lumos.lineage.drawing.picture import Arrow, Box, Mark, Picture
from lumos.model.types import quoted_name

_MARKS: Final[dict[VerdictWord, Mark]] = {
    "BREAKING": "breaking",
    "UNDETERMINED": "undetermined",
    "COMPATIBLE": "compatible",
}


class _Way(NamedTuple):
    """How a change comes along an arrow: what it does, and by which columns, if that is known."""

    verdict: VerdictWord
    columns: frozenset[str]


def painted(picture: Picture, reports: Iterable[ImpactReport]) -> Picture:
    """The picture with the verdicts on all that a change touches, and the ways by which it does."""
    boxes: dict[str, VerdictWord] = {}
    ways: dict[tuple[str, str], _Way] = {}
    for report in reports:
        changing = {report.change.urn, *(row.urn for row in report.downstream if row.changed)}
        for row in (row for row in report.downstream if row.affected):
            boxes[row.urn] = _worse(boxes.get(row.urn, row.verdict), row.verdict)
            for link, way in _ways(row, changing, picture.arrows):
                known = ways.get(link, way)
                ways[link] = _Way(_worse(known.verdict, way.verdict), known.columns | way.columns)
    return msgspec.structs.replace(
        picture,
        boxes=tuple(_box(box, boxes) for box in picture.boxes),
        arrows=tuple(_arrow(arrow, ways) for arrow in picture.arrows),
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


def _ways(
    row: DownstreamReport, changing: set[str], drawn: Iterable[Arrow]
) -> Iterator[tuple[tuple[str, str], _Way]]:
    """Along which arrows the change comes: those that reasons name, or else all that may."""
    named = [reason for reason in row.reasons if reason.path]
    for reason in named:
        urn, _, column = reason.path[-1].partition("#")
        yield (urn, row.urn), _Way(reason.verdict, frozenset({column.casefold()}))
    if not named:
        for arrow in drawn:
            if arrow.downstream == row.urn and arrow.upstream in changing:
                yield (arrow.upstream, row.urn), _Way(row.verdict, frozenset())


def _box(box: Box, verdicts: Mapping[str, VerdictWord]) -> Box:
    verdict = verdicts.get(box.urn)
    return box if verdict is None else msgspec.structs.replace(box, mark=_MARKS[verdict])


def _arrow(arrow: Arrow, ways: Mapping[tuple[str, str], _Way]) -> Arrow:
    way = ways.get((arrow.upstream, arrow.downstream))
    if way is None:
        return arrow
    told = [*(each.upstream for each in arrow.columns), *(each.upstream for each in arrow.uses)]
    marked = dict.fromkeys(each for each in told if quoted_name(each).casefold() in way.columns)
    return msgspec.structs.replace(arrow, mark=_MARKS[way.verdict], marked=tuple(marked))


def _worse(one: VerdictWord, other: VerdictWord) -> VerdictWord:
    return min(one, other, key=WORST_FIRST.index)
