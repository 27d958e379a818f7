"""lumos config"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.options import ConfigOptions, argument, with_options
from lumos.cli.text import print_line

if TYPE_CHECKING:
    from lumos.config.check import ConfigReport

app = typer.Typer(help="Check the configuration.", no_args_is_help=True)


@app.command(epilog="Example: lumos config check sources.yaml")
@with_options
def check(
    options: ConfigOptions,
    file: Annotated[Path | None, argument("[FILE]", "The same as --config.")] = None,
) -> None:
    """Check the configuration, and list settings that have no effect or need attention.

    Errors are listed with their lines. With --json, also prints all settings, secrets masked.
    """
    from lumos.config import find_file, load
    from lumos.config.check import report as check_settings

    file = file or options.config or find_file(Path.cwd(), os.environ)
    report = check_settings(load(file, environment=os.environ), os.environ)
    options.print(report, _print_report, file)


def _print_report(report: "ConfigReport", file: Path | None) -> None:
    print_line(f"{file} is valid." if file else "No configuration file; the defaults apply.")
    for note in report.notes:
        setting = note.key if note.line is None else f"{note.key} (line {note.line})"
        print_line(f"  {note.level}: {setting}: {note.text}")
