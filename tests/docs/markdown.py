"""Blocks of a Markdown page: which are run, what they show, and the page with other outputs.

A page is marked with comments that a browser does not show:

    <!-- file: lumos.yaml -->           the next block is a file of the working folder
    <!-- step: a_day_passes -->         something that the text tells of and no command shows
    <!-- output of: python story.py --> the next block shows what this command prints
    <!-- output left out -->            the next block lists commands, or is a Python program; they
                                        only have to succeed
    <!-- not run: why -->               the next block is not run
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path
from typing import Final

ELISION: Final = "..."
_FENCE: Final = re.compile(r"```(\w*)\s*$")
_MARK: Final = re.compile(r"<!-- (file|step|output of|output left out|not run)(?:: (.+?))? -->\s*$")
# What differs from run to run, or from machine to machine.
_CHANGING: Final = (
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)?"), "TIME"),
    # Files of the examples are dated 2024 and earlier; what is later is the day of a run.
    (re.compile(r"20(2[5-9]|[3-9]\d)-\d\d(-\d\d)?"), "DAY"),
    (re.compile(r"(?<![\w.])[\d,]+(\.\d+)? m?s\b"), "DURATION"),
    (re.compile(r"certificate-\d{8}T\d{6}Z"), "CERTIFICATE"),
    (re.compile(r"\b\d+(s|min|h|d|w|mo|y) ago\b|\bjust now\b"), "AGE"),
    (re.compile(r"~?\b[\d,]+(\.\d+)? ([kMGT]?B)\b"), "SIZE"),
    (re.compile(r'("(?:bytes|seconds)": ?)[\d.]+'), r"\1NUMBER"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?=\w*\d)[0-9a-f]{12,}\b"), "ID"),
    (re.compile(r"(127\.0\.0\.1|localhost):\d+"), r"\1:PORT"),
    (re.compile(r"\b([Pp]ython|Lumos|lumos|pyarrow|msgspec|obstore|Spark) \d+\.\d+\.\d+"), r"\1 N"),
    (re.compile(r'openjdk version .*'), "JAVA"),
    (re.compile(r"\S*/bin/python\S*"), "PYTHON"),
    (re.compile(r"-{4,}"), "RULE"),
)  # fmt: skip
_BLANKS: Final = re.compile(r"\s+")


def masked(line: str) -> str:
    """The line without what differs from run to run; columns are as wide as what stands in them."""
    return _BLANKS.sub(" ", _aligned(line)).strip()


def _aligned(line: str) -> str:
    for pattern, word in _CHANGING:
        line = pattern.sub(word, line)
    return line.rstrip()


@dataclass(frozen=True)
class Command:
    """A command of a block, and the lines that are shown below it."""

    line: str
    written: tuple[str, ...]
    shown: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Block:
    """A fenced block, the marks above it, and where it stands in the page."""

    first: int
    lines: tuple[str, ...]
    language: str
    marks: dict[str, str]

    @property
    def commands(self) -> list[Command]:
        """The commands of the block, or the one whose output it is."""
        if "output of" in self.marks:
            return [Command(self.marks["output of"], (), self.lines)]
        starts = [n for n, line in enumerate(self.lines) if line.startswith("$ ")]
        return [self._command(*ends) for ends in pairwise([*starts, len(self.lines)])]

    def _command(self, start: int, end: int) -> Command:
        stop = start + 1
        while self.lines[stop - 1].endswith("\\"):
            stop += 1
        written = self.lines[start:stop]
        line = "\n".join(written).removeprefix("$ ")
        return Command(line, written, self.lines[stop:end])

    @property
    def shows_output(self) -> bool:
        """Whether it shows commands, or what a command printed."""
        return bool(self.commands) or self.language == "text"


@dataclass(frozen=True)
class Step:
    """Something that happens between two blocks."""

    name: str


class Page:
    """A page with its blocks and steps in order."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.lines = file.read_text(encoding="utf-8").splitlines()
        self.parts = tuple(self._parts())

    @property
    def blocks(self) -> list[Block]:
        return [part for part in self.parts if isinstance(part, Block)]

    @property
    def is_run(self) -> bool:
        """Whether anything on it is run."""
        return any(block.shows_output and "not run" not in block.marks for block in self.blocks)

    def _parts(self) -> Iterator[Block | Step]:
        marks: dict[str, str] = {}
        start, language = 0, ""
        for number, line in enumerate(self.lines):
            if start:
                if line.rstrip() == "```":
                    yield Block(start, tuple(self.lines[start:number]), language, marks)
                    marks, start = {}, 0
            elif fence := _FENCE.match(line):
                start, language = number + 1, fence[1]
            elif mark := _MARK.match(line):
                if mark[1] == "step":
                    yield Step(mark[2])
                else:
                    marks[mark[1]] = mark[2] or ""
        assert not start, f"{self.file.name} ends inside of a block"
        assert not marks, f"{self.file.name} has no block below {marks}"

    def with_outputs(self, outputs: dict[Block, list[str]]) -> str:
        """The page as it reads with these outputs; what a block shows already stays."""
        lines = list(self.lines)
        for block in sorted(outputs, key=lambda block: -block.first):
            new: list[str] = []
            for command, output in zip(block.commands, outputs[block], strict=True):
                new += [*command.written, *updated(command.shown, output)]
            lines[block.first : block.first + len(block.lines)] = new
        return "\n".join(lines) + "\n"


def updated(shown: tuple[str, ...], output: str) -> tuple[str, ...]:
    """The lines to show for an output: those shown already where they fit, with their elisions."""
    # An empty line before the next command is for the eye.
    spaced = shown[:-1] if shown and not shown[-1] else shown
    printed = tuple(line.rstrip() for line in output.rstrip("\n").split("\n")) if output else ()
    fitting = spaced if _fits(spaced, printed) else _merged(spaced, printed)
    return fitting + shown[len(spaced) :]


def _fits(shown: tuple[str, ...], printed: tuple[str, ...]) -> bool:
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == ELISION else _line_pattern(line) + r"\n" for line in shown
    )
    text = "".join(f"{masked(line)}\n" for line in printed)
    return re.fullmatch(pattern, text) is not None


def _line_pattern(line: str) -> str:
    return ".*".join(re.escape(part) for part in masked(line).split(ELISION))


def _merged(shown: tuple[str, ...], printed: tuple[str, ...]) -> tuple[str, ...]:
    """The printed lines, with lines and elisions of what was shown wherever they still fit."""
    keys = [masked(line) for line in printed]
    for line in shown:
        if ELISION in line and line.strip() != ELISION:
            pattern = re.compile(_line_pattern(line))
            keys = [masked(line) if pattern.fullmatch(key) else key for key in keys]
    merged: list[str] = []
    matcher = SequenceMatcher(None, [masked(line) for line in shown], keys, autojunk=False)
    for kind, left, right, low, high in matcher.get_opcodes():
        old, new = shown[left:right], printed[low:high]
        if kind == "equal":
            # Rows of one table come from one run, or they would not stand below each other.
            same = (
                _aligned(one) == _aligned(two) or ELISION in one
                for one, two in zip(old, new, strict=True)
            )
            merged += (
                old
                if all(same)
                else [one if ELISION in one else two for one, two in zip(old, new, strict=True)]
            )
        elif any(line.strip() == ELISION for line in old):
            before = [line.strip() for line in old].index(ELISION)
            after = min(len(old) - before - 1, max(0, len(new) - before))
            merged += [*new[:before], old[before], *new[len(new) - after :]]
        else:
            merged += new
    return tuple(merged)
