"""The help of every command fits a terminal of 80 columns, and wrong use gets one line."""

import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import Any

import pytest
import typer.main

from lumos.cli.main import app

ROOT: Any = typer.main.get_command(app)


def _commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, each in getattr(command, "commands", {}).items():
        yield from _commands(each, (*path, name))


def test_help_fits_80_columns_and_truncates_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # Read from TERMINAL_WIDTH when the module is imported, whichever test does that first.
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", None)
    monkeypatch.setenv("COLUMNS", "80")
    paths = list(_commands(ROOT))
    assert len(paths) > 80
    too_wide = []
    for path in paths:
        with redirect_stdout(io.StringIO()) as shown:
            ROOT.main([*path, "--help"], prog_name="lumos", standalone_mode=False)
        assert "Usage:" in shown.getvalue(), path
        too_wide += [
            f"{' '.join(path)}: {line}"
            for line in shown.getvalue().splitlines()
            if len(line) > 80 or "…" in line
        ]
    assert not too_wide, "\n".join(too_wide)


def test_every_command_is_in_a_section() -> None:
    missing = [
        name
        for name, command in ROOT.commands.items()
        if command.rich_help_panel is None and not command.hidden
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        pytest.param(("show",), "Missing argument", id="argument"),
        pytest.param(("shw",), "No such command 'shw'. Did you mean 'show'?", id="command"),
        pytest.param(("list", "--bogus"), "No such option: --bogus.", id="option"),
        pytest.param(("list", "--limit", "0"), "Invalid value for '--limit': 0 is", id="value"),
        pytest.param(("schema", "diff"), "Give A and B, or --base and --head.", id="combination"),
    ],
)
def test_wrong_use_is_one_line_that_names_the_help(
    lumos: Any, words: tuple[str, ...], complaint: str
) -> None:
    done = lumos(*words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"lumos: {complaint}")
    assert done.err.count("\n") == 1
    assert re.search(r" See: lumos [a-z ]*--help(\. Example: lumos .+)?$", done.err)


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize("flag", ["--include-cost", "--no-include-cost"])
def test_flags_whose_other_form_is_hidden_keep_it(lumos: Any, flag: str) -> None:
    assert "No such option" not in lumos("export", "-o", "all.json", flag).err
    assert "No such option" not in lumos("ingest", "nowhere", "--no-accept-removals").err
