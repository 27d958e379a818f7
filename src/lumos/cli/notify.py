"""lumos notify send, status and test"""

from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.options import AsJson, ConfigFile, StorePath, lumos_of, print_json

if TYPE_CHECKING:
    from lumos.engine.notifications import NotifySendReport, NotifyStatusReport

app = typer.Typer(help="Messages about changes: what waits, and sending it.", no_args_is_help=True)


@app.command(epilog="Example: lumos notify status --json")
def status(config: ConfigFile = None, store: StorePath = None, json: AsJson = False) -> None:
    """Show how many messages were sent, wait and were given up, by channel."""
    report = lumos_of(config, store).notifications.status()
    if json:
        print_json(report)
    else:
        _show(report)


@app.command(
    epilog="Example: lumos notify send    or, when a channel works again: lumos notify send --all"
)
def send(
    config: ConfigFile = None,
    store: StorePath = None,
    all: Annotated[
        bool, typer.Option("--all", help="Also those that wait for a later try or were given up.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Send the messages that are due. Those that fail are kept and tried again later."""
    _end_with(lumos_of(config, store).notifications.send(all=all), json=json)


@app.command(name="test", epilog="Example: lumos notify test team-chat")
def try_channel(
    channel: Annotated[str, typer.Argument(help="A channel of the configuration.")],
    config: ConfigFile = None,
    json: AsJson = False,
) -> None:
    """Send a trial message over a channel."""
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
        console.print("No channels are configured, and no messages wait.")
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
    from lumos.cli.screen import plural, stderr, stdout

    if json:
        print_json(report)
    else:
        given_up = f", {report.given_up} of them given up" if report.given_up else ""
        stdout().print(f"{plural(report.sent, 'message')} sent, {report.failed} failed{given_up}.")
        for channel, problem in report.problems.items():
            stderr().print(f"lumos: channel '{channel}': {problem}.")
    if report.failed:
        raise typer.Exit(1)
