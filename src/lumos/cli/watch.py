"""lumos watch, and its setup, teardown and status"""

import os
import signal
import sys
import threading
from functools import partial
from time import monotonic, sleep
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.options import (
    CommonOptions,
    ConfigFile,
    ConfigOptions,
    StorePath,
    argument,
    open_lumos,
    stop_printing,
    with_options,
)
from lumos.cli.text import Names, is_quiet, print_line, print_remark
from lumos.rendering.text import format_number, format_time, plural

if TYPE_CHECKING:
    from lumos.discovery.watch_status import WatchStatusReport
    from lumos.schemas.changes import EventReport
    from lumos.sources.events.setup_report import EventSetupReport

_RESTART_DELAY: Final = 10.0
# Ignore a second signal within this time: programs such as `timeout` send signals twice.
_DUPLICATE_SECONDS: Final = 0.5


app = typer.Typer(
    invoke_without_command=True,
    help="Scan sources repeatedly or after events; print a line and send notifications for each "
    "change.\n\n"
    "Watches the sources of change_detection, or else all configured sources, until Ctrl-C or "
    "SIGTERM. A source is scanned every polling_interval, or after events of its storage if its "
    "watch_mode is events or hybrid. After the first signal, the running scan is finished; a "
    "second signal stops at once. A source that fails is tried again later and does not stop "
    "others.",
)
EventAddress = Annotated[
    str, argument("ADDRESS", "s3://bucket, s3://bucket/prefix/ or postgresql://host/database.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")
]
_EPILOG: Final = (
    "Examples:\n\n"
    "lumos watch --config lumos.yaml\n\n"
    "lumos watch --json | jq 'select(.breaking)'\n\n"
    "lumos watch --once\n\n"
    "lumos watch setup s3://my-bucket\n\n"
    "lumos watch status"
)


@app.callback(epilog=_EPILOG)
def watch(
    context: typer.Context,
    config: ConfigFile = None,
    store: StorePath = None,
    once: Annotated[
        bool, typer.Option("--once", help="Scan every source once; exit with 1 if any failed.")
    ] = False,
    interval: Annotated[
        int | None,
        typer.Option(min=1, metavar="SECONDS", help="Use instead of every polling_interval."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Watch sources until a signal arrives."""
    if context.invoked_subcommand is not None:
        return
    signals = _SignalHandler()
    signals.install()
    from lumos.spark.session import SparkLost

    lumos = open_lumos(config, store)
    printer = _Printer(signals.stop, Names(lumos), json=json)
    try:
        report = lumos.watch(
            once=once,
            interval=interval,
            on_event=printer.print_event,
            stop=signals.stop,
            begun=partial(_print_started, once=once),
            # Install the handlers again, since Spark replaces that of Ctrl-C when it starts.
            started=signals.install,
        )
    except KeyboardInterrupt:
        # Spark's own handler was active while Spark was starting.
        signals.handle(signal.SIGINT)
        return
    except SparkLost:
        if once or signals.received:
            raise
        print_line("The Spark JVM exited; watching starts again.", err=True)
        if signals.stop_after(_RESTART_DELAY):
            return
        _restart_process()
    if once and not is_quiet():
        print_line(
            f"{plural(report.scans, 'source')} scanned: "
            f"{plural(report.datasets, 'dataset')}, {plural(report.changes, 'change')}.",
            err=True,
        )
    if once and report.failures:
        raise typer.Exit(1)


@app.command(
    epilog="Examples:\n\n"
    "lumos watch setup s3://my-bucket --dry-run\n\n"
    "lumos watch setup s3://my-bucket/datasets/\n\n"
    "lumos watch setup postgresql://db.example.com/shop"
)
@with_options
def setup(options: ConfigOptions, address: EventAddress, dry_run: DryRun = False) -> None:
    """Configure an S3 bucket or a PostgreSQL database to send events.

    For a bucket, creates an SQS queue, a dead-letter queue, a policy that allows S3 to send, and a
    notification of the bucket. Other notifications of the bucket are not changed. For a database,
    creates an event trigger that notifies of changed schemas. The command can be repeated.
    """
    options.print(options.lumos.events.setup(address, dry_run=dry_run), _print_setup)


@app.command(
    epilog="Examples:\n\n"
    "lumos watch teardown s3://my-bucket --dry-run\n\n"
    "lumos watch teardown s3://my-bucket"
)
@with_options
def teardown(options: ConfigOptions, address: EventAddress, dry_run: DryRun = False) -> None:
    """Remove the queues, notification or event trigger that `lumos watch setup` has created.

    Only removes resources with the names and tags of the setup. Messages in the queues are lost.
    """
    options.print(options.lumos.events.teardown(address, dry_run=dry_run), _print_setup)


@app.command(epilog="Examples:\n\nlumos watch status\n\nlumos watch status --json")
@with_options
def status(options: CommonOptions) -> None:
    """Show how far watchers are behind the events of their sources, and the numbers of events.

    Watchers write their status every ten seconds and after each batch.
    """
    options.print(options.lumos.events.status(), _print_event_status)


def _print_setup(report: "EventSetupReport") -> None:
    from lumos.cli.screen import Table, stdout

    table = Table("STATUS", "WHAT", "NAME")
    for step in report.steps:
        table.add(step.status, step.kind, step.name)
    stdout().print(table)
    removed = {"deleted", "missing", "kept"}
    if report.dry_run:
        print_remark("Nothing was changed.")
    elif report.sqs_queue and not removed.issuperset(step.status for step in report.steps):
        print_remark(f"In lumos.yaml, set sqs_queue: {report.sqs_queue}")


def _print_event_status(report: "WatchStatusReport") -> None:
    from lumos.cli.screen import Table, stdout

    if not report.event_sources:
        stdout().print(
            "No source was watched by events yet. Set watch_mode to events or hybrid, and run: "
            "lumos watch"
        )
        return
    table = Table(
        "EVENT SOURCE", ">LAG P95", ">BUFFERED", ">WAITING", ">DEAD", ">EVENTS", ">FOREIGN",
        ">MALFORMED", ">MISSED", "UPDATED",
    )  # fmt: skip
    for each in report.event_sources:
        counts = each.counts
        table.add(
            each.name,
            "" if each.lag_p95_seconds is None else f"{each.lag_p95_seconds:.1f} s",
            format_number(each.buffered),
            "" if each.waiting is None else format_number(each.waiting),
            "" if each.dead is None else format_number(each.dead),
            format_number(counts.events),
            format_number(counts.foreign),
            format_number(counts.malformed),
            format_number(counts.missed),
            "" if each.updated_at is None else format_time(each.updated_at),
        )
    stdout().print(table)
    for each in report.event_sources:
        if each.problem:
            print_remark(f"{each.name} receives no events, and its sources are polled: "
                         f"{each.problem}")  # fmt: skip


def _print_started(source: str, interval: float, *, once: bool) -> None:
    if not once and not is_quiet():
        print_line(f"lumos: watching {source} every {interval:g} s.", err=True)


class _SignalHandler:
    """Stops after the running scan at the first signal, and immediately at the second."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.received = 0
        self._received_at = 0.0

    def install(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.handle)

    def stop_after(self, seconds: float) -> bool:
        """Wait; return whether a signal arrived."""
        deadline = monotonic() + seconds
        while not self.received and (remaining := deadline - monotonic()) > 0:
            sleep(min(remaining, 0.2))
        return self.received > 0

    def handle(self, number: int, _frame: FrameType | None = None) -> None:
        if self.received and monotonic() - self._received_at < _DUPLICATE_SECONDS:
            return
        self.received, self._received_at = self.received + 1, monotonic()
        if self.received > 1:
            # Exits without cleaning up: scans can be killed at any time without harm.
            os._exit(128 + number)
        self.stop.set()
        if not is_quiet():
            os.write(
                2, b"lumos: Stopping after the running scan; press Ctrl-C again to stop at once.\n"
            )


class _Printer:
    """Prints a line for each change; a closed pipe ends the watch."""

    def __init__(self, stop: threading.Event, names: Names, *, json: bool) -> None:
        self._stop = stop
        self._names = names
        self._json = json

    def print_event(self, event: "EventReport") -> None:
        try:
            sys.stdout.buffer.write(self._line(event) + b"\n")
            sys.stdout.flush()
        except BrokenPipeError:
            stop_printing()
            self._stop.set()

    def _line(self, event: "EventReport") -> bytes:
        from lumos.cli.changes import line_of
        from lumos.model.json_codec import to_json, to_plain
        from lumos.model.report import FORMAT_VERSION

        if self._json:
            return to_json({"format_version": FORMAT_VERSION, **to_plain(event)})
        return line_of(event, self._names).encode("utf-8", "replace")


def _restart_process() -> None:
    """Replace this process by a new one, since PySpark cannot recover from a lost JVM."""
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
