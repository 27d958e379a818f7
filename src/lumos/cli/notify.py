"""lumos notify send, status and test"""

from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.lines import problem
from lumos.cli.options import (
    AsJson,
    CommonOptions,
    ConfigFile,
    StorePath,
    common_options,
    lumos_of,
    print_json,
)

if TYPE_CHECKING:
    from lumos.notifications.service import NotifySendReport, NotifyStatusReport

app = typer.Typer(help="Show and send notifications about changes.", no_args_is_help=True)


@app.command(epilog="Example: lumos notify status --json")
@common_options
def status(options: CommonOptions) -> None:
    """Show sent, pending and failed messages by channel."""
    report = options.lumos.notifications.status()
    if options.json:
        print_json(report)
    else:
        _show(report)


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
    _end_with(lumos_of(config, store).notifications.send(all=all), json=json)


@app.command(name="test", epilog="Example: lumos notify test team-chat")
def try_channel(
    channel: Annotated[str, typer.Argument(metavar="CHANNEL", help="A configured channel.")],
    config: ConfigFile = None,
    json: AsJson = False,
) -> None:
    """Send a test message to a channel."""
    _end_with(lumos_of(config).notifications.test(channel), json=json)


def _show(report: "NotifyStatusReport") -> None:
    from lumos.cli.screen import number, plural, stdout, table, when

    console = stdout()
    found = table("CHANNEL", "PENDING", "DEAD", "SENT", "OLDEST PENDING", "",
                  right=("PENDING", "DEAD", "SENT"))  # fmt: skip
    for row in report.channels:
        found.add_row(
            row.channel,
            number(row.pending),
            number(row.dead),
            number(row.sent),
            when(row.oldest_pending) if row.oldest_pending else "",
            "" if row.configured else "not configured here",
        )
    if not report.channels:
        console.print("No channels are configured. Add some under notifications in lumos.yaml.")
        return
    console.print(found)
    for message in report.unsent:
        tried = (
            f"tried {plural(message.tries, 'time')}: {message.problem}"
            if message.problem
            else "not tried"
        )
        console.print(f"{message.state:<8}{message.channel}  {message.title}  ({tried})")


def _end_with(report: "NotifySendReport", *, json: bool) -> None:
    from lumos.cli.screen import plural, stdout

    if json:
        print_json(report)
    else:
        given_up = f", {report.given_up} of them given up" if report.given_up else ""
        stdout().print(f"{plural(report.sent, 'message')} sent, {report.failed} failed{given_up}.")
        for channel, reason in report.problems.items():
            problem(f"channel '{channel}': {reason}")
    if report.failed:
        raise typer.Exit(1)
