"""lumos init"""

from pathlib import Path
from typing import Annotated

import typer

from lumos.cli.lines import say
from lumos.cli.options import AsJson, print_json


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(epilog="Example: lumos init && lumos config check")(init)


def init(
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help="Where to write it.")] = Path(
        "lumos.yaml"
    ),
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    json: AsJson = False,
) -> None:
    """Write a commented starter configuration."""
    from lumos.config import write_starter

    write_starter(file, force=force)
    if json:
        print_json({"format_version": "1.0", "file": str(file.absolute())})
        return
    say(f"Wrote {file}. Check it with: lumos config check --config {file}")
