"""Writes docs/cli.md from the commands' own --help."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

from lumos.cli.main import app

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
HEAD = """# The command line

Every command, as its `--help` tells it. Results go to stdout, progress and complaints to stderr.
`--json` prints one object with a `format_version`. Exit codes: 0 done, 1 failed, 2 misused;
with `--exit-code` also 10 breaking, 11 undetermined. `lumos diff`: 3 different, 10 breaking.
"""
PLAIN = {"COLUMNS": "90", "TERMINAL_WIDTH": "90", "NO_COLOR": "1", "TERM": "dumb"}


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *_sections(get_command(app), ())])


def _sections(command: Any, words: tuple[str, ...]) -> Iterator[str]:
    done = CliRunner().invoke(app, [*words, "--help"], prog_name="lumos", env=PLAIN)
    lines = [line.rstrip() for line in done.stdout.strip("\n ").splitlines()]
    yield f"## {' '.join(('lumos', *words))}\n"
    yield "```text\n" + "\n".join(lines).strip() + "\n```\n"
    for name, below in getattr(command, "commands", {}).items():
        # Earlier names of commands stay valid, and are not shown.
        if not below.hidden:
            yield from _sections(below, (*words, name))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"Wrote {PAGE.name}\n")
