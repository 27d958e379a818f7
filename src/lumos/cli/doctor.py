"""lumos doctor"""

import typer

from lumos.cli.options import AsJson, ConfigFile, StorePath, lumos_of, print_json

_MARKS = {
    "ok": "[green]ok     [/green]",
    "warning": "[yellow]warning[/yellow]",
    "failed": "[red]failed [/red]",
}


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(epilog="Example: lumos doctor --config lumos.yaml")(doctor)


def doctor(config: ConfigFile = None, store: StorePath = None, json: AsJson = False) -> None:
    """Check Java, Spark, the store, sources and catalogs, and say what to do about the rest.

    Runs a tiny job on the configured Spark. Exits with 1 where something fails.
    """
    from lumos.cli.screen import stdout, steps

    lumos = lumos_of(config, store)
    with steps() as announce:
        report = lumos.doctor(announce=announce)
    if json:
        print_json(report)
    else:
        console = stdout()
        for check in report.checks:
            console.print(f"{_MARKS[check.status]}  [bold]{check.name}[/bold]: ", end="")
            console.print(check.found, markup=False)
            if check.next_step:
                console.print(f"         {check.next_step}", markup=False)
    if not report.healthy:
        raise typer.Exit(1)
