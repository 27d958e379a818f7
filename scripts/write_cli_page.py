"""Writes docs/cli.md from the commands' own --help."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

from typer.main import get_command

from lumos.cli.main import app

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
HEAD = """# The command line

The help text of every command. Results go to stdout; progress and errors go to stderr.
`--json` prints one object with a `format_version`. Exit codes: 0 success, 1 failure, 2 wrong usage;
with `--exit-code` also 10 breaking and 11 undetermined. `lumos diff`: 3 different, 10 breaking.
"""
PLAIN = {"COLUMNS": "90", "TERMINAL_WIDTH": "90", "NO_COLOR": "1", "TERM": "dumb"}


def page() -> str:
    """The whole page."""
    # Created once: typer's own test runner would create all commands again for each help text.
    root = get_command(app)

    def sections(command: Any, words: tuple[str, ...]) -> Iterator[str]:
        with redirect_stdout(io.StringIO()) as printed:
            root.main([*words, "--help"], prog_name="lumos", standalone_mode=False)
        lines = [line.rstrip() for line in printed.getvalue().strip("\n ").splitlines()]
        yield f"## {' '.join(('lumos', *words))}\n"
        yield "```text\n" + "\n".join(lines).strip() + "\n```\n"
        for name, below in getattr(command, "commands", {}).items():
            # Earlier names of commands stay valid, and are not shown.
            if not below.hidden:
                yield from sections(below, (*words, name))

    with patch.dict(os.environ, PLAIN):
        return "\n".join([HEAD, *sections(root, ())])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"Wrote {PAGE.name}\n")
