"""Names and words from outside, on a screen: each stays on its line and commands nothing."""

import logging
from pathlib import Path
from typing import Any

import pytest

from lumos import Lumos
from lumos.cli.logs import _LineFormatter
from lumos.cli.screen import Table, stdout
from lumos.cli.text import escape, escape_line
from recorded_lake import RecordedLake

HARM = "\x1b[31m\x07\u202e"
NAME = f"ne\tw\nline{HARM}.csv"
SHOWN = r"ne\tw\nline\x1b[31m\x07\u202e"
FIELD = f"`a{HARM}\nb`"


@pytest.fixture
def urn(workplace: Path) -> str:  # noqa: ARG001
    lumos = Lumos()
    RecordedLake(lumos).see_all(
        [f"sales/{NAME}"], f"{FIELD} INT64\nid INT64 COMMENT 'one\ntwo{HARM}'"
    )
    (found,) = lumos.list().datasets
    return found.urn


def test_no_name_breaks_a_line_or_reaches_the_terminal(lumos: Any, urn: str) -> None:
    word = f"two\nlines{HARM}"
    for words in (
        ("list",),
        ("show", urn),
        ("history", urn),
        ("changes",),
        ("search", "line"),
        ("explain", "nowhere\nat all"),
        ("lineage", "show", urn),
        ("tag", "set", urn, word),
        ("tag", "list", urn),
        ("doc", "set", urn, f"text{HARM}"),
        ("doc", "list", urn),
        ("owner", "add", word),
        ("owner", "assign", urn, word),
        ("owner", "list"),
        ("term", "define", word, "--definition", word),
        ("term", "list"),
        ("property", "set", urn, f"a={word}"),
        ("show", urn),
        ("version", "show", urn),
        ("version", "scan"),
        ("impact", urn, "--drop", "id"),
    ):
        result = lumos(*words)
        printed = result.out + result.err
        assert not {"\x1b", "\x07", "\u202e"} & set(printed), words
        starts = [line.lstrip()[:5] for line in printed.splitlines()]
        assert "lines" not in starts, words
        assert not any(start.startswith(("line\\", "b ", "b`")) for start in starts), words
    assert SHOWN in lumos("list").out
    assert r"a\x1b[31m\x07\u202e\nb" in lumos("show", urn).out


def test_json_is_exact(lumos: Any, urn: str) -> None:
    (dataset,) = lumos("list", "--json").json["datasets"]
    assert dataset["urn"] == urn
    field = lumos("show", urn, "--json").json["dataset"]["schema"]["fields"][0]
    assert field["name"] == FIELD.strip("`")


def test_what_people_wrote_keeps_its_lines_in_its_own_column(lumos: Any, urn: str) -> None:
    lumos("doc", "set", urn, "first\nsecond")
    lines = lumos("show", urn).out.splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith("description"))
    assert lines[at].index("first") == lines[at + 1].index("second") > 0


@pytest.mark.parametrize("character", [*map(chr, range(32)), "\x7f", "\x9b", "\u2028", "\ud800"])
def test_no_control_character_is_printed(
    character: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = Table("A", "B")
    table.add(f"x{character}y", "z")
    console = stdout()
    console.print(table)
    console.print(f"x{character}y  z")
    for line in table.lines():
        console.print(line)
    shown = escape_line(f"x{character}y")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert [line.split() for line in (lines[1], lines[2], lines[4])] == [[shown, "z"]] * 3
    assert lines[3].index("B") == lines[4].index("z")
    assert character not in shown
    is_break = character in "\n\t"
    assert escape(f"x{character}y") == (f"x{character}y" if is_break else shown)


def test_a_record_of_the_log_is_one_line() -> None:
    record = logging.LogRecord("lumos", logging.WARNING, "x", 1, "read %s", (f"a\nb{HARM}",), None)
    record.facts = {"path": "c\td"}
    (line,) = _LineFormatter().format(record).splitlines()
    assert line.endswith(r"warning read a\nb\x1b[31m\x07\u202e path=c\td")
