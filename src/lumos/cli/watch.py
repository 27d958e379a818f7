"""lumos watch"""

import os
import signal
import sys
import threading
from functools import partial
from time import monotonic, sleep
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.lines import say
from lumos.cli.names import Names
from lumos.cli.options import QUIET, ConfigFile, StorePath, lumos_of

if TYPE_CHECKING:
    from lumos.schemas.changes import EventReport

_BEFORE_RESTART: Final = 10.0
# `timeout` and the like send one and the same signal twice; nobody's fingers are that quick.
_ONE_AND_THE_SAME: Final = 0.5


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(
        epilog="Examples:\n\n"
        "lumos watch --config lumos.yaml\n\n"
        "lumos watch --json | jq 'select(.breaking)'\n\n"
        "lumos watch --once"
    )(watch)


def watch(
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
    """Scan the sources repeatedly; print a line and send notifications for each change.

    Watches the sources of change_detection, or else all configured sources, each at its
    polling_interval, until Ctrl-C or SIGTERM. The first signal lets the running scan finish, a
    second one stops at once. A source that fails is tried again later and does not stop others.
    """
    signals = _Signals()
    signals.take()
    from lumos.spark.session import SparkLost

    lumos = lumos_of(config, store)
    printer = _Printer(signals.stop, Names(lumos), json=json)
    try:
        report = lumos.watch(
            once=once,
            interval=interval,
            on_event=printer.print_event,
            stop=signals.stop,
            begun=partial(_say_begun, once=once),
            # Spark takes Ctrl-C for itself when it starts.
            started=signals.take,
        )
    except KeyboardInterrupt:
        # While Spark starts, Ctrl-C is its own for a moment.
        signals.hear(signal.SIGINT)
        return
    except SparkLost:
        if once or signals.received:
            raise
        say("lumos: The Spark JVM exited; watching starts again.", err=True)
        if signals.stop_after(_BEFORE_RESTART):
            return
        _start_again()
    if once and report.failures:
        raise typer.Exit(1)


def _say_begun(source: str, interval: float, *, once: bool) -> None:
    if not once and not os.environ.get(QUIET):
        say(f"lumos: watching {source} every {interval:g} s.", err=True)


class _Signals:
    """Lets the first signal end the watch in good order, and the second one at once."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.received = 0
        self._heard_at = 0.0

    def take(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.hear)

    def stop_after(self, seconds: float) -> bool:
        """Waits, and says whether a signal came meanwhile."""
        deadline = monotonic() + seconds
        while not self.received and (left := deadline - monotonic()) > 0:
            sleep(min(left, 0.2))
        return self.received > 0

    def hear(self, number: int, _frame: FrameType | None = None) -> None:
        """Takes a signal."""
        if self.received and monotonic() - self._heard_at < _ONE_AND_THE_SAME:
            return
        self.received, self._heard_at = self.received + 1, monotonic()
        if self.received > 1:
            # Whatever is in hand is abandoned: scans may be killed at any moment without harm.
            os._exit(128 + number)
        self.stop.set()
        if not os.environ.get(QUIET):
            os.write(
                2, b"lumos: Stopping after the running scan; press Ctrl-C again to stop at once.\n"
            )


class _Printer:
    """One line a change; when nobody reads them any more, watching ends."""

    def __init__(self, stop: threading.Event, names: Names, *, json: bool) -> None:
        self._stop = stop
        self._names = names
        self._json = json

    def print_event(self, event: "EventReport") -> None:
        try:
            sys.stdout.buffer.write(self._line(event) + b"\n")
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            self._stop.set()

    def _line(self, event: "EventReport") -> bytes:
        from lumos.cli.changes import line_of
        from lumos.model.json_codec import to_json, to_plain
        from lumos.model.report import FORMAT_VERSION

        if self._json:
            return to_json({"format_version": FORMAT_VERSION, **to_plain(event)})
        return line_of(event, self._names).encode("utf-8", "replace")


def _start_again() -> None:
    """Begins anew as a fresh process: PySpark cannot let go of a JVM that died."""
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
