"""lumos db"""

from typing import Annotated

import typer

from lumos.cli.lines import say
from lumos.cli.options import AsJson, ConfigFile, StorePath, lumos_of, print_json

app = typer.Typer(help="Maintain the store.", no_args_is_help=True)


@app.command(epilog="Example: lumos db upgrade")
def upgrade(config: ConfigFile = None, store: StorePath = None, json: AsJson = False) -> None:
    """Upgrade the store to the revision that this version needs."""
    report = lumos_of(config, store).upgrade_store()
    if json:
        print_json(report)
    elif report.before == report.after:
        say(f"{report.store} is already at revision {report.after}.")
    else:
        say(f"{report.store}: {report.before or 'empty'} -> {report.after}")


@app.command(epilog="Example: lumos db status --json")
def status(config: ConfigFile = None, store: StorePath = None, json: AsJson = False) -> None:
    """Show the location, revision and size of the store."""
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
            help="30d, 12h, ... Default: storage.modified_retention_days.",
            show_default=False,
        ),
    ] = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Delete old MODIFIED events (new data, same schema); all other events stay."""
    report = lumos_of(config, store).forget_old_changes(older_than)
    if json:
        print_json(report)
    elif report.before is None:
        say("storage.modified_retention_days is 0: all events are kept.")
    else:
        from lumos.cli.screen import plural

        events = plural(report.removed, "MODIFIED event")
        say(f"Deleted {events} from before {report.before:%Y-%m-%d %H:%M:%S} UTC.")
