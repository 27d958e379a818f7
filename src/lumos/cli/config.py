"""lumos config"""

import os
from pathlib import Path
from typing import Annotated

import typer

from lumos.cli.lines import say
from lumos.cli.options import AsJson, ConfigFile, print_json

app = typer.Typer(help="Check the configuration.", no_args_is_help=True)


@app.command(epilog="Example: lumos config check sources.yaml")
def check(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="The same as --config.", show_default=False),
    ] = None,
    config: ConfigFile = None,
    json: AsJson = False,
) -> None:
    """Check the configuration and list settings that this version does not use yet.

    Errors are listed with their lines. With --json, also prints all settings, secrets masked.
    """
    from lumos.config import find_file, load
    from lumos.config.check import report as report_on

    file = file or config or find_file(Path.cwd(), os.environ)
    report = report_on(load(file, environment=os.environ), os.environ)
    if json:
        print_json(report)
        return
    say(f"{file} is valid." if file else "No configuration file; the defaults apply.")
    for note in report.notes:
        place = note.key if note.line is None else f"{note.key} (line {note.line})"
        say(f"  {note.level}: {place}: {note.text}")
