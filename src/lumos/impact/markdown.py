"""An impact as Markdown, for a pull request: the headline, a table, and details to unfold."""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import UNSET

from lumos.impact.reports import (
    ChangeReport,
    DownstreamReport,
    ImpactReport,
    ImpactsReport,
    ReasonReport,
    VerdictWord,
    counted,
)
from lumos.impact.rules.recommendations import name_of
from lumos.schemas.wording import position

_MOST_ROWS: Final = 100
_MOST_REASONS: Final = 10
_MARKS: Final[dict[VerdictWord, str]] = {
    "BREAKING": "❌ BREAKING",
    "UNDETERMINED": "❔ undetermined",
    "COMPATIBLE": "✅ compatible",
}
# Whatever Markdown or HTML would take for itself; names and comments come from anywhere.
_ACTIVE: Final = re.compile(r"[\\`*_{}\[\]<>()#+\-!|~@&:./]")
_HARMLESS: Final = re.compile(r"(?<=\w)[-_./:](?=\w)")
_FENCE: Final = re.compile(r"`+")


def markdown(report: ImpactReport | ImpactsReport) -> str:
    """The report as a comment that GitHub, GitLab and others show."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: ImpactReport | ImpactsReport) -> Iterator[str]:
    yield f"### {escaped(report.headline)}"
    yield ""
    if isinstance(report, ImpactsReport):
        for each in report.datasets:
            yield f"#### {escaped(each.headline)}"
            yield ""
            yield from _dataset(each)
    else:
        yield from _dataset(report)
    if report.recommendations:
        yield "**Recommendations**"
        yield ""
        yield from (f"{n}. {escaped(each)}" for n, each in enumerate(report.recommendations, 1))
        yield ""
    for remark in report.remarks:
        yield f"> {escaped(remark)}"
        yield ">"


def _dataset(report: ImpactReport) -> Iterator[str]:
    if len(report.changes) > 1:
        yield from (f"- {_change(each)}" for each in report.changes)
        yield ""
    affected = [row for row in report.downstream if row.worth_telling]
    if affected:
        yield "| Dataset | Verdict | Owner | Why |"
        yield "|---|---|---|---|"
        yield from map(_row, affected[:_MOST_ROWS])
        yield ""
    if len(affected) > _MOST_ROWS:
        yield f"and {counted(len(affected) - _MOST_ROWS, 'more dataset')}."
        yield ""
    untouched = len(report.downstream) - len(affected)
    if report.downstream:
        share = int(100 * report.coverage)
        unused = (
            f" {counted(untouched, 'dataset')} downstream "
            f"{'uses' if untouched == 1 else 'use'} nothing that changes."
        )
        yield f"{share} % of the downstream was determined.{unused if untouched else ''}"
        yield ""
    detailed = [row for row in affected[:_MOST_ROWS] if _has_details(row)]
    if detailed:
        yield "<details><summary>Details</summary>"
        yield ""
        for row in detailed:
            yield from _details(row)
        yield "</details>"
        yield ""


def _has_details(row: DownstreamReport) -> bool:
    return row.verdict != "COMPATIBLE" or bool(row.changed) or row.is_contradicted


def _row(row: DownstreamReport) -> str:
    why = _reason(row.reasons[0]) if row.reasons else ""
    more = f" (and {len(row.reasons) - 1} more)" if len(row.reasons) > 1 else ""
    owners = ", ".join(map(escaped, row.owners)) or "nobody known"
    return f"| {escaped(name_of(row.urn))} | {_MARKS[row.verdict]} | {owners} | {why}{more} |"


def _details(row: DownstreamReport) -> Iterator[str]:
    steps = counted(row.distance, "step")
    yield f"**{escaped(row.urn)}**: {_MARKS[row.verdict]}, {steps} away"
    yield ""
    for reason in row.reasons[:_MOST_REASONS]:
        clause = " ".join((reason.clause or "").split())
        yield f"- {_reason(reason)}" + (f": {_code(clause)}" if clause not in ("", "*") else "")
        if len(reason.path) > 1:
            yield f"  by way of {' → '.join(map(_step, reason.path))}"
    for column in row.changed[:_MOST_REASONS]:
        before, after = column.before or "nothing", column.after or "nothing"
        yield f"- column {_code(column.name)}: {_code(before)} → {_code(after)}"
    for told in () if row.rehearsal is UNSET else row.rehearsal:
        error = f": {_code(' '.join(told.error.split()))}" if told.error else ""
        against = "" if told.agrees else ", against the verdict"
        words = {"ok": "works", "fails": "fails", "cannot": "cannot be asked"}[told.state]
        yield f"- Spark: {words}{against}{error}"
    yield ""


def _reason(reason: ReasonReport) -> str:
    where = position(reason.file, reason.line)
    if reason.file is not None:
        where = _code(where)
    return ", ".join(filter(None, (escaped(reason.text), where)))


def _change(change: ChangeReport) -> str:
    sides = [_code(str(side)) for side in (change.before, change.after) if side is not None]
    return f"{_code(change.path or 'columns')} {change.kind.replace('_', ' ')}: {' → '.join(sides)}"


def _step(step: str) -> str:
    urn, _, column = step.partition("#")
    return _code(f"{name_of(urn)}.{column}")


def escaped(text: str) -> str:
    """Text that is shown as it is, on one line."""
    plain = "".join(each if each.isprintable() else " " for each in " ".join(text.split()))
    safe = {match.start() for match in _HARMLESS.finditer(plain)}
    return "".join(
        _neutral(each) if _ACTIVE.match(each) and at not in safe else each
        for at, each in enumerate(plain)
    )


def _neutral(character: str) -> str:
    """A character that means nothing; a mention of somebody must not call them."""
    entities = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "@": "@\u200b", "|": "\\|"}
    if character in ".,:/":
        return character
    return entities.get(character, f"\\{character}")


def _code(text: str) -> str:
    """Text in as many backticks as it takes; a bar would end a cell of a table even there."""
    plain = "".join(each if each.isprintable() else " " for each in text).replace("|", "\\|")
    longest = max((len(match) for match in _FENCE.findall(plain)), default=0)
    fence = "`" * (longest + 1)
    space = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{fence}{space}{plain}{space}{fence}"
