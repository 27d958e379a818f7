"""lumos doctor"""

import typer

from lumos.cli.options import AsJson, ConfigFile, StorePath, lumos_of, print_json

_STYLES = {"ok": "green", "warning": "yellow", "failed": "bold red"}


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(epilog="Example: lumos doctor --config lumos.yaml")(doctor)


def doctor(config: ConfigFile = None, store: StorePath = None, json: AsJson = False) -> None:
    """Check Java, Spark, the store, sources and catalogs, and suggest what to fix.

    Runs a small job on the configured Spark. Exits with 1 if a check fails.
    """
    from lumos.cli.screen import stdout, steps

    lumos = lumos_of(config, store)
    with steps() as progress:
        report = lumos.doctor(progress=progress)
    if json:
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
