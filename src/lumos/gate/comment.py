"""The comment on a pull request, as Markdown.

Names, owners and SQL come from the change and may be hostile. Outside of code spans, only plain
words and numbers of them appear: in code spans, forges render neither Markdown nor HTML, follow
no references and notify nobody.
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

# The numbers of items per list to try until a comment fits.
_ITEMS: Final = (200, 100, 50, 25, 12, 6, 3, 1, 0)
_MAX_LINKS: Final = 40
_MAX_NAMES: Final = 5
_MAX_TEXT: Final = 300
_MAX_READ: Final = 2_000
_LEVELS: Final = ("error", "warning")
_WORD: Final = re.compile(r"[^\W\d_]+(?:[-'][^\W\d_]+)*|\d+")
_PUNCTUATED: Final = re.compile(r"(\(?)(.*?)([).,:;]*)", re.DOTALL)
_BACKTICKS: Final = re.compile(r"`+")
_NOT_IN_LABELS: Final = re.compile(r"[^\w ./-]")


class CommentStyle(NamedTuple):
    """What comments of a forge can hold; without `has_html`, nothing is folded or drawn.

    The marker is not displayed. A comment that starts with it is updated.
    """

    marker: str = "<!-- lumos gate -->"
    max_length: int = 65_536
    has_html: bool = True


def render_comment(report: GateReport, style: CommentStyle) -> str:
    """The comment with its marker, with as many items per list as fit; the rest is counted."""
    texts = (f"{style.marker}\n\n{_render(report, style, items)}" for items in _ITEMS)
    return next(text for text in texts if len(text) <= style.max_length)


def render_markdown(report: GateReport) -> str:
    """The comment without marker, for any place that renders Markdown."""
    return _render(report, CommentStyle(), _ITEMS[0])


def _render(report: GateReport, style: CommentStyle, items: int) -> str:
    open_findings = [each for each in report.findings if each.is_open and each.level != "note"]
    judged = [each for each in open_findings if each.category != "documentation"]
    undocumented = [each for each in open_findings if each.category == "documentation"]
    lines = [f"**{report.headline.replace('This changes', 'This PR changes', 1)}.**", ""]
    if judged:
        lines += [*_owner_table(judged, items), ""]
        advice = dict.fromkeys(text for each in judged for text in each.recommendations)
        if advice:
            lines += ["**Recommendations**", ""]
            lines += [*_list((f"- {_words(text)}" for text in advice), len(advice), items), ""]
    if undocumented:
        lines += ["**Missing documentation**", ""]
        rows = (f"- {_words(each.message)}" for each in undocumented)
        lines += [*_list(rows, len(undocumented), items), ""]
    if open_findings:
        command = "`lumos gate waive FINGERPRINT --reason TEXT --approver NAME`"
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
    # Those without an owner come last.
    for owner in sorted(by_owner, key=lambda name: (not name, name))[:items]:
        count = [sum(each.level == level for each in by_owner[owner]) for level in _LEVELS]
        names = dict.fromkeys(
            "unknown readers" if each.affected is None else _code(each.affected, in_table=True)
            for each in by_owner[owner]
        )
        shown = ", ".join(list(names)[:_MAX_NAMES])
        more = f" and {rest:,} more" if (rest := len(names) - _MAX_NAMES) > 0 else ""
        title = _words(owner, in_table=True) if owner else "no known owner"
        yield f"| {title} | {count[0]:,} | {count[1]:,} | {shown}{more} |"
    if (rest := len(by_owner) - items) > 0:
        yield f"| and {plural(rest, 'more owner')} | | | |"


def _details(report: GateReport, style: CommentStyle, items: int) -> Iterator[str]:
    if style.has_html and (links := _links(report.findings)):
        yield from _picture(links, min(items, _MAX_LINKS))
    rows = chain(
        map(_describe, report.findings),
        (
            f"- Waiver `{each.fingerprint}` has no effect. {_words(each.reason)}"
            for each in report.waivers
        ),
        (f"- {_words(remark)}" for remark in report.remarks),
    )
    count = len(report.findings) + len(report.waivers) + len(report.remarks)
    yield from _list(rows, count, items)
    if count > items:
        yield f"\nAll of them: {_code(f'lumos gate --base {report.base}')}"
    if count:
        yield ""


def _describe(finding: GateFinding) -> str:
    if finding.is_open:
        title = f"**{title_of(finding)}:**"
    else:
        title = f"**Approved by** {_words(finding.waived_by or '')}:"
    lines = [f"- {title} {_words(finding.message)}"]
    if finding.clause:
        lines.append(f"    - {_code(finding.clause)}")
    if finding.is_open and finding.level != "note":
        lines.append(f"    - fingerprint `{finding.fingerprint}`")
    return "\n".join(lines)


def _list(rows: Iterable[str], count: int, items: int) -> Iterator[str]:
    yield from islice(rows, items)
    if (rest := count - items) > 0:
        yield f"- {rest:,} {'more ' if items else ''}not shown"


def _links(findings: Iterable[GateFinding]) -> list[tuple[str, str, str]]:
    """The datasets and columns that changes pass through: from, column, to."""
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


def _picture(links: Sequence[tuple[str, str, str]], items: int) -> Iterator[str]:
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
    if (rest := len(links) - items) > 0:
        yield from (f"The picture leaves out {plural(rest, 'link')}.", "")


def _label(text: str) -> str:
    """A label of Mermaid, which interprets most punctuation."""
    return _NOT_IN_LABELS.sub("_", _shorten(text))


def _words(text: str, *, in_table: bool = False) -> str:
    """A text, with everything that is not a word or number in code spans."""
    return " ".join(_word(each, in_table=in_table) for each in _shorten(text).split())


def _word(text: str, *, in_table: bool) -> str:
    match = _PUNCTUATED.fullmatch(text)
    before, word, after = match.groups() if match else ("", text, "")
    if not word or _WORD.fullmatch(word):
        return text
    return f"{before}{_code(word, in_table=in_table)}{after}"


def _code(text: str, *, in_table: bool = False) -> str:
    """A code span; in tables with another bar, since bars divide cells even in code."""
    text = _shorten(text)
    if in_table:
        text = text.replace("|", "\N{BROKEN BAR}")
    # Bitbucket notifies users by @{ID}, and it is not documented whether code is excepted.
    text = text.replace("@{", "@ {")
    fence = "`" * (max(map(len, _BACKTICKS.findall(text)), default=0) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"


# Comments are rendered until one fits.
@lru_cache(maxsize=4096)
def _shorten(text: str) -> str:
    """The start of a text on one line, without secrets and characters that are not displayed."""
    # More than is shown, since patterns find a secret only with what is around it.
    line = redact(" ".join(text[:_MAX_READ].split()))
    if len(line) > _MAX_TEXT:
        line = f"{line[:_MAX_TEXT]}..."
    return "".join("\N{REPLACEMENT CHARACTER}" if _is_hidden(each) else each for each in line)


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character).startswith("C")
