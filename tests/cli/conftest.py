"""Command lines, run in process."""

import json
from functools import cache
from typing import Any

import pytest
import typer.main

from lumos.cli import main as cli

# Typer makes all commands anew each time that one is run.
_made_once = cache(typer.main.get_command)


class Result:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def words(self) -> str:
        """What was printed, however it was aligned."""
        return " ".join(self.out.split())

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def lumos(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a command line as the installed script does."""

    monkeypatch.setattr(typer.main, "get_command", _made_once)

    def run(*words: object) -> Result:
        monkeypatch.setattr("sys.argv", ["lumos", *map(str, words)])
        monkeypatch.setenv("COLUMNS", "100")
        monkeypatch.delenv("LUMOS_QUIET", raising=False)
        capfd.readouterr()
        try:
            cli.main()
            code = 0
        except SystemExit as exit:
            code = int(exit.code or 0)
        out, err = capfd.readouterr()
        return Result(code, out, err)

    return run
