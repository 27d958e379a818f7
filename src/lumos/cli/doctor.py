"""lumos doctor"""

import typer

from lumos.cli.options import (
    CommonOptions,
    common_options,
    print_json,
)

_STYLES = {"ok": "green", "warning": "yellow", "failed": "bold red"}


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(epilog="Example: lumos doctor --config lumos.yaml")(doctor)


@common_options
def doctor(options: CommonOptions) -> None:
    """Check Java, Spark, the store, sources and catalogs, and suggest what to fix.

    Runs a small job on the configured Spark. Exits with 1 if a check fails.
    """
    from lumos.cli.screen import stdout, steps

    lumos = options.lumos
    with steps() as progress:
        report = lumos.doctor(progress=progress)
    if options.json:
        print_json(report)
    else:
        console = stdout()
        for check in report.checks:
            console.print(f"{check.status:<8}", style=_STYLES[check.status], end="")
            console.print(f"{check.name}: ", style="bold", end="")
            console.print(check.found)
            if check.next_step:
                console.print(f"         {check.next_step}")
    if not report.healthy:
        raise typer.Exit(1)
