"""The comment as Markdown: what it says, what fits, and what hostile names cannot do."""

import re

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from gate.gate_reports import HOSTILE, finding, hostile_report, report
from lumos.gate.comment import CommentStyle, render_comment, render_markdown
from lumos.gate.forges import FORGES

STYLES = {kind: forge.style for kind, forge in FORGES.items()}
OWN_HTML = re.compile(
    r"<!-- lumos gate -->|<details><summary>Details of \d+ findings?</summary>|</details>"
)


def tokens(markdown: str) -> list[Token]:
    """All tokens of a Markdown text, as a forge with tables parses it."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    found = []
    for token in parser.parse(markdown):
        found += [token, *(token.children or ())]
    return found


def test_the_comment_begins_with_the_marker_and_the_headline() -> None:
    text = render_comment(report(finding()), CommentStyle())
    assert text.startswith(
        "<!-- lumos gate -->\n\n**This PR changes 3 schemas, affecting 12 downstream datasets; "
        "1 breaking change.**\n"
    )


def test_owners_recommendations_picture_and_waiver_are_there() -> None:
    text = render_comment(
        report(finding(), finding(2, owners=(), level="warning"), finding(3)), CommentStyle()
    )
    assert "| growth | 2 | 0 | `report_1`, `report_3` |\n" in text
    assert "| no known owner | 0 | 1 | `report_2` |\n" in text
    assert text.count("Notify growth before deploying") == 1
    assert "`lumos gate waive FINGERPRINT --from-ci --reason TEXT --approver NAME`" in text
    assert "<details><summary>Details of 3 findings</summary>\n\n```mermaid\nflowchart LR\n" in text
    assert '  d0["users"] -->|"email"| d1["logins"]\n  d1 -->|"mail"| d2["report_1"]\n' in text
    assert "- **Breaking:** `users.email` was removed and breaks `report_1` (growth): " in text
    assert f"fingerprint `{1:016x}`" in text


def test_without_html_nothing_is_folded_or_drawn() -> None:
    text = render_comment(report(finding()), STYLES["bitbucket"])
    assert text.startswith("[//]: # (lumos gate)\n\n**This PR")
    assert "<" not in text.replace("where mail <> ''", "")
    assert "mermaid" not in text
    assert "**Details of 1 finding**" in text


@pytest.mark.parametrize("kind", STYLES)
def test_a_long_comment_is_shortened_and_says_so(kind: str) -> None:
    style = STYLES[kind]._replace(max_length=min(STYLES[kind].max_length, 40_000))
    many = report(*(finding(number, owners=(f"team-{number}",)) for number in range(1, 1001)))
    text = render_comment(many, style)
    assert 10_000 < len(text) <= style.max_length
    shown = text.count("- **Breaking:**")
    assert 0 < shown < 1000
    assert f"- {1000 - shown:,} more not shown\n" in text
    assert "more owners |" in text
    assert "All of them: `lumos gate --base main`" in text
    assert text.count("<details>") == text.count("</details>")


@pytest.mark.parametrize("kind", STYLES)
def test_the_largest_items_fit(kind: str) -> None:
    wide = dict.fromkeys(("message", "clause", "dataset", "affected", "path"), "x " * 20_000)
    many = report(
        *(finding(number, **wide, owners=("y" * 50_000,)) for number in range(1, 300)),
        remarks=("z" * 100_000,) * 300,
    )
    assert len(render_comment(many, STYLES[kind])) <= STYLES[kind].max_length


def test_a_comment_with_nothing_to_report_is_one_sentence() -> None:
    text = render_markdown(report())
    assert text.count("\n") == 1


@pytest.mark.parametrize("kind", STYLES)
def test_hostile_names_stay_in_code(kind: str) -> None:
    text = render_comment(hostile_report(), STYLES[kind])
    found = tokens(text)
    html = "".join(each.content for each in found if each.type.startswith("html"))
    assert OWN_HTML.sub("", html).strip() == ""
    kinds = {each.type for each in found}
    assert not kinds & {"link_open", "image", "heading_open", "hr", "em_open", "s_open"}
    outside = " ".join(each.content for each in found if each.type == "text")
    assert not re.search(r"[@#!<>`|\\/]|\w\.\w|GH-\d", outside)
    # Nothing but what Lumos writes starts a line: GitLab runs lines such as /close.
    starts = {line.lstrip()[:1] for line in text.splitlines() if line.strip()}
    assert starts <= set("<*|-`dflAT["), starts
    assert all(line.isprintable() for line in text.splitlines())
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {5}


@pytest.mark.parametrize(
    "name", ["a\\|@b", "`@b`", "a``", "\\", "`", "@{1:2}", "x\n/close", "www.e.x"]
)
def test_a_hostile_owner_cannot_leave_its_cell(name: str) -> None:
    text = render_markdown(report(finding(owners=(name,), affected=name)))
    found = tokens(text)
    (table,) = (each for each in found if each.type == "tbody_open")
    row = found[found.index(table) :]
    cells = [
        [part for part in token.children or () if part.content]
        for token in row[: next(n for n, each in enumerate(row) if each.type == "tbody_close")]
        if token.type == "inline"
    ]
    assert len(cells) == 4
    assert {part.type for part in (*cells[0], *cells[3])} <= {"code_inline", "text"}
    shown = "".join(part.content for part in cells[0] if part.type == "text")
    assert not re.search(r"[@#<>`]", shown)
    assert "@{" not in text


def test_labels_of_the_picture_are_harmless() -> None:
    text = render_markdown(report(finding(trail=(), dataset=HOSTILE, affected='"] --> x["')))
    (block,) = (each.content for each in tokens(text) if each.info == "mermaid")
    first, line = block.splitlines()
    assert first == "flowchart LR"
    assert re.fullmatch(r'  d0\["[\w ./-]*"\] -->\|"[\w ./-]*"\| d1\["[\w ./-]*"\]', line)


def test_secrets_in_sql_are_masked() -> None:
    clause = "where password = 'hunter2hunter2' and url = 'postgres://ann:s3cr3t@db/x'"
    text = render_markdown(report(finding(clause=clause, message=clause)))
    assert "hunter2" not in text
    assert "s3cr3t" not in text


def test_approved_findings_need_nobody() -> None:
    text = render_markdown(report(finding(waived_by="ann")))
    assert "- **Approved by** ann: `users.email` was removed" in text
    assert "To approve a finding" not in text
    assert "| owner |" not in text
