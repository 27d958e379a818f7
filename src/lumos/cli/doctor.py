"""lumos doctor"""

from typing import TYPE_CHECKING

import typer

from lumos.cli.options import CommonOptions, with_options
from lumos.cli.screen import stdout, steps

if TYPE_CHECKING:
    from lumos.doctor import DoctorReport

_STYLES = {"ok": "green", "warning": "yellow", "failed": "bold red"}


app = typer.Typer()


@app.command(epilog="Example: lumos doctor --config lumos.yaml")
@with_options
def doctor(options: CommonOptions) -> None:
    """Check Java, Spark, the store, sources and catalogs, and say how to fix problems.

    Runs a small job on the configured Spark. Exits with 1 if a check fails.
    """
    with steps() as progress:
        report = options.lumos.doctor(progress=progress)
    options.print(report, _print_checks)
    if not report.healthy:
        raise typer.Exit(1)


def _print_checks(report: "DoctorReport") -> None:
    console = stdout()
    for check in report.checks:
        console.print(f"{check.status:<8}", style=_STYLES[check.status], end="")
        console.print(f"{check.name}: ", style="bold", end="")
        console.print(check.found)
        if check.next_step:
            console.print(f"         {check.next_step}")
