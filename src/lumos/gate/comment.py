"""The comment on a pull request, as Markdown.

Names, owners and SQL come from the change and may be malicious. Everything in them except plain
words and numbers is put into code spans, in which forges render neither Markdown nor HTML, resolve
no references and notify no users.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Final, NamedTuple

from lumos.config.secret import redact
from lumos.gate.reports import GateFinding, GateReport, title_of
from lumos.rendering.text import plural

# The maximum number of items per list, tried in this order until the comment is short enough.
_ITEM_LIMITS: Final = (200, 100, 50, 25, 12, 6, 3, 1, 0)
_MAX_LINKS: Final = 40
_MAX_NAMES: Final = 5
_MAX_TEXT_LENGTH: Final = 300
_MAX_REDACTED_LENGTH: Final = 2_000
_LEVELS: Final = ("error", "warning")
_PLAIN_WORD: Final = re.compile(r"[^\W\d_]+(?:[-'][^\W\d_]+)*|\d+")
_WITH_PUNCTUATION: Final = re.compile(r"(\(?)(.*?)([).,:;]*)", re.DOTALL)
_BACKTICKS: Final = re.compile(r"`+")
_INVALID_IN_LABELS: Final = re.compile(r"[^\w ./-]")


class CommentStyle(NamedTuple):
    """The limits of comments on a forge; if `has_html` is False, it renders no HTML or diagrams.

    The marker is not displayed. It identifies the comment to update.
    """

    marker: str = "<!-- lumos gate -->"
    max_length: int = 65_536
    has_html: bool = True


def render_comment(report: GateReport, style: CommentStyle) -> str:
    """The comment with its marker and as many items per list as fit; other items are counted."""
    texts = (f"{style.marker}\n\n{_render(report, style, items)}" for items in _ITEM_LIMITS)
    return next(text for text in texts if len(text) <= style.max_length)


def render_markdown(report: GateReport) -> str:
    """The comment without marker, for other uses of Markdown."""
    return _render(report, CommentStyle(), _ITEM_LIMITS[0])


def _render(report: GateReport, style: CommentStyle, items: int) -> str:
    open_findings = [each for each in report.findings if each.is_open and each.level != "note"]
    impact_findings = [each for each in open_findings if each.category != "documentation"]
    undocumented = [each for each in open_findings if each.category == "documentation"]
    lines = [f"**{report.headline.replace('This changes', 'This PR changes', 1)}.**", ""]
    if impact_findings:
        lines += [*_owner_table(impact_findings, items), ""]
        advice = dict.fromkeys(text for each in impact_findings for text in each.recommendations)
        if advice:
            lines += ["**Recommendations**", ""]
            lines += [
                *_limit_list((f"- {_escape_text(text)}" for text in advice), len(advice), items),
                "",
            ]
    if undocumented:
        lines += ["**Missing documentation**", ""]
        rows = (f"- {_escape_text(each.message)}" for each in undocumented)
        lines += [*_limit_list(rows, len(undocumented), items), ""]
    if open_findings:
        command = "`lumos gate waive FINGERPRINT --from-ci --reason TEXT --approver NAME`"
        lines += [
            f"To approve a finding, an owner runs {command} and commits the file.",
            "",
        ]
    if details := list(_details(report, style, items)):
        title = f"Details of {plural(len(report.findings), 'finding')}"
        if style.has_html:
            details = [f"<details><summary>{title}</summary>", "", *details, "</details>"]
        else:
            details = [f"**{title}**", "", *details]
    return "\n".join([*lines, *details]).rstrip() + "\n"


def _owner_table(findings: Sequence[GateFinding], items: int) -> Iterator[str]:
    by_owner: dict[str, list[GateFinding]] = {}
    for each in findings:
        for owner in each.owners or ("",):
            by_owner.setdefault(owner, []).append(each)
    yield "| owner | breaking | undetermined | affected datasets |"
    yield "|---|--:|--:|---|"
    # Findings without an owner come last.
    for owner in sorted(by_owner, key=lambda name: (not name, name))[:items]:
        count = [sum(each.level == level for each in by_owner[owner]) for level in _LEVELS]
        names = dict.fromkeys(
            "unknown readers" if each.affected is None else _code(each.affected, in_table=True)
            for each in by_owner[owner]
        )
        listed = ", ".join(list(names)[:_MAX_NAMES])
        suffix = f" and {unlisted:,} more" if (unlisted := len(names) - _MAX_NAMES) > 0 else ""
        title = _escape_text(owner, in_table=True) if owner else "no known owner"
        yield f"| {title} | {count[0]:,} | {count[1]:,} | {listed}{suffix} |"
    if (unlisted := len(by_owner) - items) > 0:
        yield f"| and {plural(unlisted, 'more owner')} | | | |"


def _details(report: GateReport, style: CommentStyle, items: int) -> Iterator[str]:
    if style.has_html and (links := _links(report.findings)):
        yield from _diagram(links, min(items, _MAX_LINKS))
    rows = chain(
        map(_describe, report.findings),
        (
            f"- Waiver `{each.fingerprint}` has no effect. {_escape_text(each.reason)}"
            for each in report.waivers
        ),
        (f"- {_escape_text(remark)}" for remark in report.remarks),
    )
    count = len(report.findings) + len(report.waivers) + len(report.remarks)
    yield from _limit_list(rows, count, items)
    if count > items:
        yield f"\nAll of them: {_code(f'lumos gate --base {report.base}')}"
    if count:
        yield ""


def _describe(finding: GateFinding) -> str:
    if finding.is_open:
        title = f"**{title_of(finding)}:**"
    else:
        title = f"**Approved by** {_escape_text(finding.waived_by or '')}:"
    lines = [f"- {title} {_escape_text(finding.message)}"]
    if finding.clause:
        lines.append(f"    - {_code(finding.clause)}")
    if finding.is_open and finding.level != "note":
        lines.append(f"    - fingerprint `{finding.fingerprint}`")
    return "\n".join(lines)


def _limit_list(rows: Iterable[str], count: int, items: int) -> Iterator[str]:
    yield from islice(rows, items)
    if (unlisted := count - items) > 0:
        yield f"- {unlisted:,} {'more ' if items else ''}not shown"


def _links(findings: Iterable[GateFinding]) -> list[tuple[str, str, str]]:
    """The links of all trails: source dataset, column and target dataset."""
    links: dict[tuple[str, str, str], None] = {}
    for each in findings:
        if each.affected is not None:
            steps = [(step.dataset, step.column) for step in each.trail]
            steps = steps or [(each.dataset, each.path)]
            targets = [*(dataset for dataset, _ in steps[1:]), each.affected]
            for (dataset, column), target in zip(steps, targets, strict=True):
                if dataset != target:
                    links[dataset, column, target] = None
    return list(links)


def _diagram(links: Sequence[tuple[str, str, str]], items: int) -> Iterator[str]:
    numbers: dict[str, int] = {}
    yield from ("```mermaid", "flowchart LR")
    for source, column, target in links[:items]:
        ends = []
        for name in (source, target):
            is_new = name not in numbers
            number = numbers.setdefault(name, len(numbers))
            ends.append(f'd{number}["{_label(name)}"]' if is_new else f"d{number}")
        arrow = f'-->|"{_label(column)}"|' if column else "-->"
        yield f"  {ends[0]} {arrow} {ends[1]}"
    yield from ("```", "")
    if (unlisted := len(links) - items) > 0:
        yield from (f"The diagram omits {plural(unlisted, 'link')}.", "")


def _label(text: str) -> str:
    """A Mermaid label, without the punctuation that Mermaid interprets."""
    return _INVALID_IN_LABELS.sub("_", _shorten(text))


def _escape_text(text: str, *, in_table: bool = False) -> str:
    """The text with everything except plain words and numbers in code spans."""
    return " ".join(_escape_word(each, in_table=in_table) for each in _shorten(text).split())


def _escape_word(text: str, *, in_table: bool) -> str:
    match = _WITH_PUNCTUATION.fullmatch(text)
    before, word, after = match.groups() if match else ("", text, "")
    if not word or _PLAIN_WORD.fullmatch(word):
        return text
    return f"{before}{_code(word, in_table=in_table)}{after}"


def _code(text: str, *, in_table: bool = False) -> str:
    """A code span; in tables, bars are replaced, since they separate cells even in code."""
    text = _shorten(text)
    if in_table:
        text = text.replace("|", "\N{BROKEN BAR}")
    # Bitbucket notifies users by @{ID}, perhaps even in code.
    text = text.replace("@{", "@ {")
    fence = "`" * (max(map(len, _BACKTICKS.findall(text)), default=0) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"


# Cached, since comments are rendered repeatedly until one is short enough.
@lru_cache(maxsize=4096)
def _shorten(text: str) -> str:
    """The start of a text on one line, without secrets and characters that are not displayed."""
    # Redact before shortening: a secret may only be recognized by the text around it.
    line = redact(" ".join(text[:_MAX_REDACTED_LENGTH].split()))
    if len(line) > _MAX_TEXT_LENGTH:
        line = f"{line[:_MAX_TEXT_LENGTH]}..."
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(each).startswith("C") else each
        for each in line
    )
