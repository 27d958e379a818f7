"""lumos db: the store itself."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.options import CommonOptions, with_options
from lumos.cli.screen import Table, stdout
from lumos.cli.text import is_verbose, print_line
from lumos.rendering.text import format_time, plural

if TYPE_CHECKING:
    from lumos.schemas.changes import ForgetReport
    from lumos.store.administration import StoreReport, UpgradeReport

# Tables that are meaningful to users; --verbose lists all tables.
_LABELS: Final = {
    "dataset": "datasets and deleted ones",
    "schema_version": "schema versions",
    "change_event": "changes",
    "annotation": "annotations",
    "item": "terms, users and groups",
    "lineage_edge": "lineage edges",
    "lineage_job": "jobs in lineage",
    "job": "jobs of Lumos",
    "usage_reads": "daily reads by user",
    "cost_meter": "metered usage records",
    "cost_figure": "recorded costs",
    "notification": "notifications to send",
    "catalog_news": "changes to publish",
    "audit": "audit records",
}
app = typer.Typer(help="Maintain the store.", no_args_is_help=True)


@app.command(epilog="Example: lumos db upgrade")
@with_options
def upgrade(options: CommonOptions) -> None:
    """Upgrade the store to the revision that this version needs."""
    options.print(options.lumos.upgrade_store(), _print_upgrade)


@app.command(epilog="Example: lumos db status --json")
@with_options
def status(options: CommonOptions) -> None:
    """Show the location, revision and size of the store."""
    options.print(options.lumos.store_status(), _print_status)


@app.command(epilog="Example: lumos db prune --older-than 30d")
@with_options
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
    """Delete old MODIFIED events (new data, same schema); other events are never deleted."""
    options.print(options.lumos.change_history.forget_old(older_than), _print_prune)


def _print_upgrade(report: "UpgradeReport") -> None:
    if report.before == report.after:
        print_line(f"{report.store} is already at revision {report.after}.")
    else:
        print_line(f"{report.store}: {report.before or 'empty'} -> {report.after}")


def _print_status(report: "StoreReport") -> None:
    revisions = f"revision {report.revision or 'none'}, newest is {report.newest_revision}"
    print_line(f"{report.store}: {revisions}")
    table = Table("", ">", widths=(26, 8))
    labels = {name: name for name in report.rows} if is_verbose() else _LABELS
    for name, label in labels.items():
        if name in report.rows:
            table.add(f"  {label}", f"{report.rows[name]:,}")
    stdout().print(table)


def _print_prune(report: "ForgetReport") -> None:
    if report.before is None:
        print_line("storage.modified_retention_days is 0: all events are kept.")
        return
    events = plural(report.removed, "MODIFIED event")
    print_line(f"Deleted {events} from before {format_time(report.before)} UTC.")
