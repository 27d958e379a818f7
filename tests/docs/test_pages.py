"""What pages show is what commands print; `make docs` writes it anew from a run."""

import os
from difflib import unified_diff
from pathlib import Path

import pytest

from docs.markdown import Block, Page, Step
from docs.pages import SET_UPS
from docs.set_up import SetUp
from docs.terminal import Terminal

PROJECT = Path(__file__).parents[2]
# Pages that scripts write from code.
GENERATED = {PROJECT / "docs/cli.md", PROJECT / "docs/API_REFERENCE.md"}
FILES = [PROJECT / "README.md", *sorted(set(PROJECT.glob("docs/*.md")) - GENERATED)]
PAGES = {file.stem: Page(file) for file in FILES}
NOT_RUN_AT_MOST = 6
# Pages whose commands start a JVM or a database server each.
SLOW = {"JOBS", "MONGODB"}


def run(page: Page, set_up: SetUp, terminal: Terminal) -> dict[Block, list[str]]:
    """The outputs of all blocks of a page that are run, in its order."""
    outputs = {}
    for part in page.parts:
        if isinstance(part, Step):
            getattr(set_up, part.name)()
        elif "file" in part.marks:
            file = terminal.folder / part.marks["file"]
            file.parent.mkdir(parents=True, exist_ok=True)
            text = terminal.with_addresses("\n".join(part.lines) + "\n")
            file.write_text(text, encoding="utf-8")
        elif "output left out" in part.marks:
            lines = [command.line for command in part.commands]
            if part.language == "python":
                (terminal.folder / "program.py").write_text("\n".join(part.lines), encoding="utf-8")
                lines = ["python program.py"]
            for line in lines:
                output = terminal.run(line)
                assert terminal.code == 0, f"{line}\n{output}"
        elif part.shows_output and "not run" not in part.marks:
            outputs[part] = [terminal.run(command.line) for command in part.commands]
    return outputs


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW))
        for name, page in PAGES.items()
        if page.is_run
    ],
)
@pytest.mark.usefixtures("spark", "workplace")
def test_a_page_shows_what_its_commands_print(
    name: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> None:
    page = PAGES[name]
    place = tmp_path_factory.mktemp("page")
    (place / "data").mkdir()
    terminal = Terminal(place / "data", commands=place / "bin")
    with SET_UPS.get(name, SetUp)(terminal, request) as set_up:
        text = page.with_outputs(run(page, set_up, terminal))
    if os.environ.get("WRITE_DOCS"):
        page.file.write_text(text, encoding="utf-8")
        return
    before = page.file.read_text(encoding="utf-8")
    both = before.splitlines(), text.splitlines()
    differences = list(unified_diff(*both, "shown", "printed", n=1, lineterm=""))
    assert differences == [], "\n".join(["run: make docs", *differences])


def test_blocks_that_are_not_run_are_few_and_give_a_reason() -> None:
    reasons = [
        f"{page.file.name}:{block.first}: {block.marks['not run']}"
        for page in PAGES.values()
        for block in page.blocks
        if "not run" in block.marks
    ]
    assert all(reason.rpartition(": ")[2] for reason in reasons)
    assert len(reasons) <= NOT_RUN_AT_MOST, "\n".join(reasons)


def test_every_block_that_shows_output_says_which_command_printed_it() -> None:
    without = [
        f"{page.file.name}:{block.first}"
        for page in PAGES.values()
        for block in page.blocks
        if block.shows_output and not (block.commands or "not run" in block.marks)
    ]
    assert without == []
