"""lumos db"""

from typing import Annotated

import typer

from lumos.cli.lines import say
from lumos.cli.options import (
    CommonOptions,
    common_options,
    print_json,
)

app = typer.Typer(help="Maintain the store.", no_args_is_help=True)


@app.command(epilog="Example: lumos db upgrade")
@common_options
def upgrade(options: CommonOptions) -> None:
    """Upgrade the store to the revision that this version needs."""
    report = options.lumos.upgrade_store()
    if options.json:
        print_json(report)
    elif report.before == report.after:
        say(f"{report.store} is already at revision {report.after}.")
    else:
        say(f"{report.store}: {report.before or 'empty'} -> {report.after}")


@app.command(epilog="Example: lumos db status --json")
@common_options
def status(options: CommonOptions) -> None:
    """Show the location, revision and size of the store."""
    report = options.lumos.store_status()
    if options.json:
        print_json(report)
        return
    say(f"{report.store}: revision {report.revision or 'none'}, newest is {report.newest_revision}")
    for name, count in report.rows.items():
        say(f"  {name:<16}{count:>10,}")


@app.command(epilog="Example: lumos db prune --older-than 30d")
@common_options
def prune(
    options: CommonOptions,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="30d, 12h, ... Default: storage.modified_retention_days.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Delete old MODIFIED events (new data, same schema); all other events stay."""
    report = options.lumos.forget_old_changes(older_than)
    if options.json:
        print_json(report)
    elif report.before is None:
        say("storage.modified_retention_days is 0: all events are kept.")
    else:
        from lumos.cli.screen import plural

        events = plural(report.removed, "MODIFIED event")
        say(f"Deleted {events} from before {report.before:%Y-%m-%d %H:%M:%S} UTC.")
