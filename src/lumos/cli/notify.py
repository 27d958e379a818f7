"""lumos notify send, status, remind and test"""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.options import (
    AsJson,
    CommonOptions,
    ConfigFile,
    ConfigOptions,
    StorePath,
    argument,
    with_options,
)
from lumos.cli.screen import Table, stdout
from lumos.cli.text import print_problem
from lumos.rendering.text import format_number, format_time, join_names, plural

if TYPE_CHECKING:
    from lumos.notifications.reminders import ReminderReport, RemindReport
    from lumos.notifications.service import NotifySendReport, NotifyStatusReport

_MAX_NAMES: Final = 10

app = typer.Typer(
    help="Show and send notifications about changes, and remind owners.", no_args_is_help=True
)


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
        bool,
        typer.Option("--all", help="Also send messages that wait for a retry or were given up."),
    ] = False,
    json: AsJson = False,
) -> None:
    """Send pending messages. Failed messages are retried later."""
    options = CommonOptions(config=config, store=store, json=json)
    _print_and_exit(options, options.lumos.notifications.send(all=all))


@app.command(
    epilog="Examples:\n\nlumos notify remind --dry-run\n\nlumos notify remind missing_docs_reminder"
)
@with_options
def remind(
    options: CommonOptions,
    name: Annotated[
        str | None, argument("[NAME]", "A configured reminder. Default: all of them.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the messages without writing or sending any.")
    ] = False,
) -> None:
    """Remind owners of missing documentation, and send digests of changes.

    Each due time of a reminder is handled once, however often this command runs. A worker does the
    same on the schedules of the reminders: lumos worker
    """
    report = options.lumos.notifications.remind(name, dry_run=dry_run)
    options.print(report, _print_reminders)
    if report.failed:
        raise typer.Exit(1)


@app.command(
    name="test",
    epilog="Examples:\n\nlumos notify test team-chat\n\nlumos notify test mailbox --owner ann"
    "\n\nlumos notify test subscriber:orders-service",
)
@with_options
def try_channel(
    options: ConfigOptions,
    channel: Annotated[
        str, typer.Argument(metavar="CHANNEL", help="A configured channel, or subscriber:NAME.")
    ],
    owner: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The recipient, if the address depends on an owner."),
    ] = None,
) -> None:
    """Send a test message to a channel or subscriber."""
    _print_and_exit(options, options.lumos.notifications.test(channel, owner=owner))


def _print_status(report: "NotifyStatusReport") -> None:
    console = stdout()
    table = Table(
        "CHANNEL", ">PENDING", ">DEAD", ">SENT", "OLDEST PENDING", "",
        empty="No channels are configured. Add some under notifications in lumos.yaml, "
        "then run: lumos config check",
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


def _print_and_exit(options: CommonOptions | ConfigOptions, report: "NotifySendReport") -> None:
    options.print(report, _print_sent)
    if report.failed:
        raise typer.Exit(1)


def _print_sent(report: "NotifySendReport") -> None:
    given_up = f", {report.given_up} of them given up" if report.given_up else ""
    stdout().print(f"{plural(report.sent, 'message')} sent, {report.failed} failed{given_up}.")
    for channel, reason in report.problems.items():
        print_problem(f"channel '{channel}': {reason}")


def _print_reminders(report: "RemindReport") -> None:
    console = stdout()
    if not report.reminders:
        console.print(
            "No reminders are configured. Add one with a schedule under notifications in "
            "lumos.yaml, then run: lumos config check"
        )
    for each in report.reminders:
        _print_reminder(each, is_dry_run=report.dry_run)
    if not report.dry_run:
        console.print(f"{plural(report.sent, 'message')} sent, {report.failed} failed.")
    for channel, reason in report.problems.items():
        print_problem(f"channel '{channel}': {reason}")


def _print_reminder(report: "ReminderReport", *, is_dry_run: bool) -> None:
    console = stdout()
    due = "" if report.due_at is None else f"  due {format_time(report.due_at)} UTC"
    console.print(f"{report.name}{due}{'  handled before' if report.repeated else ''}")
    if report.send_at is not None and report.messages:
        console.print(f"  quiet hours: messages wait until {format_time(report.send_at)} UTC")
    noun = "change" if report.kind == "digest" else "dataset"
    for message in report.messages:
        recipient = message.recipient or "(no owner)"
        channels = ", ".join(message.channels)
        console.print(f"  {recipient}  {plural(message.count, noun)}  {channels}".rstrip())
        if is_dry_run:
            for line in (message.title, "", *(message.body or "").splitlines(), ""):
                console.print(f"    {line}".rstrip())
    for label, names in (
        ("opted out", report.opted_out),
        ("not reached", report.unreached),
        ("flagged", report.flagged),
        ("no longer flagged", report.unflagged),
    ):
        if names:
            console.print(f"  {label}: {join_names(names, _MAX_NAMES)}")
