"""Impact reports as Markdown for pull requests: headline, table and collapsed details."""

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
    VerdictName,
)
from lumos.model.urn import DisplayNames
from lumos.rendering.text import plural
from lumos.schemas.wording import format_position

_MAX_ROWS: Final = 100
_MAX_REASONS: Final = 10
_MARKS: Final[dict[VerdictName, str]] = {
    "BREAKING": "❌ BREAKING",
    "UNDETERMINED": "❔ undetermined",
    "COMPATIBLE": "✅ compatible",
}
# Characters with a meaning in Markdown or HTML; names and comments are untrusted input.
_SPECIAL_CHARACTER: Final = re.compile(r"[\\`*_{}\[\]<>()#+\-!|~@&:./]")
_INNER_PUNCTUATION: Final = re.compile(r"(?<=\w)[-_./:](?=\w)")
_BACKTICKS: Final = re.compile(r"`+")


def markdown(report: ImpactReport | ImpactsReport, replace_urns: DisplayNames) -> str:
    """The report as Markdown for GitHub, GitLab and others."""
    return "\n".join(_lines(report, replace_urns)) + "\n"


def _lines(report: ImpactReport | ImpactsReport, replace_urns: DisplayNames) -> Iterator[str]:
    reports = report.datasets if isinstance(report, ImpactsReport) else (report,)
    replace_urns.look_up(row.urn for each in reports for row in each.downstream)
    yield f"### {escape(replace_urns(report.headline))}"
    yield ""
    if isinstance(report, ImpactsReport):
        for each in report.datasets:
            yield f"#### {escape(replace_urns(each.headline))}"
            yield ""
            yield from _dataset(each, replace_urns)
    else:
        yield from _dataset(report, replace_urns)
    if report.recommendations:
        yield "**Recommendations**"
        yield ""
        yield from (
            f"{n}. {escape(replace_urns(each))}" for n, each in enumerate(report.recommendations, 1)
        )
        yield ""
    for remark in report.remarks:
        yield f"> {escape(replace_urns(remark))}"
        yield ">"


def _dataset(report: ImpactReport, replace_urns: DisplayNames) -> Iterator[str]:
    if len(report.changes) > 1:
        yield from (f"- {_change(each)}" for each in report.changes)
        yield ""
    listed_rows = [row for row in report.downstream if row.is_listed]
    if listed_rows:
        yield "| Dataset | Verdict | Owner | Why |"
        yield "|---|---|---|---|"
        yield from (_row(each, replace_urns) for each in listed_rows[:_MAX_ROWS])
        yield ""
    if len(listed_rows) > _MAX_ROWS:
        yield f"and {plural(len(listed_rows) - _MAX_ROWS, 'more dataset')}."
        yield ""
    unaffected = len(report.downstream) - len(listed_rows)
    if report.downstream:
        share = int(100 * report.coverage)
        unused = (
            f" {plural(unaffected, 'dataset')} downstream "
            f"{'uses' if unaffected == 1 else 'use'} nothing that changes."
        )
        yield (
            f"The impact on {share} % of the downstream datasets was determined."
            f"{unused if unaffected else ''}"
        )
        yield ""
    detailed_rows = [
        row
        for row in listed_rows[:_MAX_ROWS]
        if row.verdict != "COMPATIBLE" or row.changed or row.is_contradicted
    ]
    if detailed_rows:
        yield "<details><summary>Details</summary>"
        yield ""
        for row in detailed_rows:
            yield from _details(row, replace_urns)
        yield "</details>"
        yield ""


def _row(row: DownstreamReport, replace_urns: DisplayNames) -> str:
    first_reason = _reason(row.reasons[0], replace_urns) if row.reasons else ""
    more = f" (and {len(row.reasons) - 1} more)" if len(row.reasons) > 1 else ""
    owners = ", ".join(map(escape, row.owners)) or "unknown"
    name = escape(replace_urns(row.urn))
    return f"| {name} | {_MARKS[row.verdict]} | {owners} | {first_reason}{more} |"


def _details(row: DownstreamReport, replace_urns: DisplayNames) -> Iterator[str]:
    steps = plural(row.distance, "step")
    yield f"**{escape(replace_urns(row.urn))}**: {_MARKS[row.verdict]}, {steps} away"
    yield ""
    for reason in row.reasons[:_MAX_REASONS]:
        clause = " ".join((reason.clause or "").split())
        yield f"- {_reason(reason, replace_urns)}" + (
            f": {_code(clause)}" if clause not in ("", "*") else ""
        )
        if len(reason.path) > 1:
            yield f"  via {' → '.join(_step(each, replace_urns) for each in reason.path)}"
    for column in row.changed[:_MAX_REASONS]:
        before, after = column.before or "nothing", column.after or "nothing"
        yield f"- column {_code(column.name)}: {_code(before)} → {_code(after)}"
    for check in () if row.spark_check is UNSET else row.spark_check:
        error = f": {_code(' '.join(check.error.split()))}" if check.error else ""
        contradiction = "" if check.agrees else " (contradicts the verdict)"
        label = {"ok": "works", "fails": "fails", "cannot": "cannot be checked"}[check.state]
        yield f"- Spark: {label}{contradiction}{error}"
    yield ""


def _reason(reason: ReasonReport, replace_urns: DisplayNames) -> str:
    location = format_position(reason.file, reason.line)
    if reason.file is not None:
        location = _code(location)
    return ", ".join(filter(None, (escape(replace_urns(reason.text)), location)))


def _change(change: ChangeReport) -> str:
    sides = [_code(str(side)) for side in (change.before, change.after) if side is not None]
    return f"{_code(change.path or 'columns')} {change.kind.replace('_', ' ')}: {' → '.join(sides)}"


def _step(step: str, replace_urns: DisplayNames) -> str:
    urn, _, column = step.partition("#")
    return _code(f"{replace_urns(urn)}.{column}")


def escape(text: str) -> str:
    """Escape text for Markdown, on one line."""
    printable = "".join(each if each.isprintable() else " " for each in " ".join(text.split()))
    unescaped_positions = {match.start() for match in _INNER_PUNCTUATION.finditer(printable)}
    return "".join(
        _escape_character(each)
        if _SPECIAL_CHARACTER.match(each) and position not in unescaped_positions
        else each
        for position, each in enumerate(printable)
    )


def _escape_character(character: str) -> str:
    """Escape a character; a zero-width space after @ prevents notifications of users."""
    entities = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "@": "@\u200b", "|": "\\|"}
    if character in ".,:/":
        return character
    return entities.get(character, f"\\{character}")


def _code(text: str) -> str:
    """Format text as inline code; a bar is escaped, since it would end a table cell."""
    printable = "".join(each if each.isprintable() else " " for each in text).replace("|", "\\|")
    longest_run = max((len(match) for match in _BACKTICKS.findall(printable)), default=0)
    fence = "`" * (longest_run + 1)
    space = " " if printable.startswith("`") or printable.endswith("`") else ""
    return f"{fence}{space}{printable}{space}{fence}"
