"""lumos init"""

from pathlib import Path
from typing import Annotated

import typer

from lumos.cli.lines import say
from lumos.cli.options import AsJson, earlier_options, local_path, print_json


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(
        epilog="Example: lumos init && lumos config check",
        cls=earlier_options(first=("--output", "-o")),
    )(init)


def init(
    file: Annotated[
        Path, typer.Argument(metavar="[FILE]", help="The file to write.", callback=local_path)
    ] = Path("lumos.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    json: AsJson = False,
) -> None:
    """Write a commented starter configuration."""
    from lumos.config import write_starter

    report = write_starter(file, force=force)
    if json:
        print_json(report)
        return
    say(f"Wrote {file}. Check it with: lumos config check {file}")
