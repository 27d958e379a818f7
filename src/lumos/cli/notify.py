"""lumos notify send, status and test"""

from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.options import (
    AsJson,
    CommonOptions,
    ConfigFile,
    ConfigOptions,
    StorePath,
    with_options,
)
from lumos.cli.screen import Table, stdout
from lumos.cli.text import print_problem
from lumos.rendering.text import format_number, format_time, plural

if TYPE_CHECKING:
    from lumos.notifications.service import NotifySendReport, NotifyStatusReport

app = typer.Typer(help="Show and send notifications about changes.", no_args_is_help=True)


@app.command(epilog="Example: lumos notify status --json")
@with_options
def status(options: CommonOptions) -> None:
    """Show sent, pending and failed messages by channel."""
    report = options.lumos.notifications.status()
    options.print(report, _print_status)


@app.command(epilog="Examples:\n\nlumos notify send\n\nlumos notify send --all")
def send(
    config: ConfigFile = None,
    store: StorePath = None,
    all: Annotated[
        bool, typer.Option("--all", help="Also messages that wait for a retry or were given up.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Send pending messages. Those that fail are kept and retried later."""
    options = CommonOptions(config=config, store=store, json=json)
    _finish(options, options.lumos.notifications.send(all=all))


@app.command(name="test", epilog="Example: lumos notify test team-chat")
@with_options
def try_channel(
    options: ConfigOptions,
    channel: Annotated[str, typer.Argument(metavar="CHANNEL", help="A configured channel.")],
) -> None:
    """Send a test message to a channel."""
    _finish(options, options.lumos.notifications.test(channel))


def _print_status(report: "NotifyStatusReport") -> None:
    console = stdout()
    table = Table(
        "CHANNEL", ">PENDING", ">DEAD", ">SENT", "OLDEST PENDING", "",
        empty="No channels are configured. Add some under notifications in lumos.yaml.",
    )  # fmt: skip
    for row in report.channels:
        table.add(
            row.channel,
            format_number(row.pending),
            format_number(row.dead),
            format_number(row.sent),
            format_time(row.oldest_pending) if row.oldest_pending else "",
            "" if row.configured else "not configured here",
        )
    console.print(table)
    for message in report.unsent:
        tried = (
            f"tried {plural(message.tries, 'time')}: {message.problem}"
            if message.problem
            else "not tried"
        )
        console.print(f"{message.state:<8}{message.channel}  {message.title}  ({tried})")


def _finish(options: CommonOptions | ConfigOptions, report: "NotifySendReport") -> None:
    options.print(report, _print_sent)
    if report.failed:
        raise typer.Exit(1)


def _print_sent(report: "NotifySendReport") -> None:
    given_up = f", {report.given_up} of them given up" if report.given_up else ""
    stdout().print(f"{plural(report.sent, 'message')} sent, {report.failed} failed{given_up}.")
    for channel, reason in report.problems.items():
        print_problem(f"channel '{channel}': {reason}")
