"""lumos db"""

from typing import Annotated

import typer

from lumos.cli.lines import say
from lumos.cli.options import AsJson, ConfigFile, StorePath, lumos_of, print_json

app = typer.Typer(help="Look after the store.", no_args_is_help=True)


@app.command(epilog="Example: lumos db upgrade")
def upgrade(config: ConfigFile = None, store: StorePath = None, json: AsJson = False) -> None:
    """Migrate the store to the revision that this Lumos needs."""
    report = lumos_of(config, store).upgrade_store()
    if json:
        print_json(report)
    elif report.before == report.after:
        say(f"{report.store} is at revision {report.after} already.")
    else:
        say(f"{report.store}: {report.before or 'empty'} -> {report.after}")


@app.command(epilog="Example: lumos db status --json")
def status(config: ConfigFile = None, store: StorePath = None, json: AsJson = False) -> None:
    """Show where the store lies, its revision and how much it holds."""
    report = lumos_of(config, store).store_status()
    if json:
        print_json(report)
        return
    say(f"{report.store}: revision {report.revision or 'none'}, newest is {report.newest_revision}")
    for name, count in report.rows.items():
        say(f"  {name:<16}{count:>10,}")


@app.command(epilog="Example: lumos db prune --older-than 30d")
def prune(
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="Such as 30d or 12h. Default: storage.modified_retention_days.",
            show_default=False,
        ),
    ] = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Let go of old events that only say that data is new (MODIFIED); all others stay."""
    report = lumos_of(config, store).forget_old_changes(older_than)
    if json:
        print_json(report)
    elif report.before is None:
        say("storage.modified_retention_days is 0: all events are kept.")
    else:
        from lumos.cli.screen import plural

        events = plural(report.removed, "MODIFIED event")
        say(f"Let go of {events} from before {report.before:%Y-%m-%d %H:%M:%S} UTC.")
