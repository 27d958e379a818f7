"""lumos changes"""

import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.lines import one_line, say
from lumos.cli.options import BREAKING, AsJson, ConfigFile, StorePath, lumos_of, stop_printing
from lumos.cli.schema import ExitCode

if TYPE_CHECKING:
    from lumos.engine.changes import EventReport, Tally

# As many lines as somebody may want to scroll back on a terminal.
_SCREENFUL: Final = 100
_VERDICT: Final = 21


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(
        epilog="Examples:\n\n"
        "lumos changes --since 7d --breaking\n\n"
        "lumos changes --dataset 'sales/*' --type SCHEMA_CHANGED --limit 20\n\n"
        "lumos changes --since 2024-01-01 --until 2024-01-31 --json"
    )(changes)


def changes(
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="From then on: 7d, 12h, 30m, a date or a time (UTC)."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Up to then; a date holds its whole day.")
    ] = None,
    breaking: Annotated[
        bool, typer.Option("--breaking", help="Only changes that break consumers.")
    ] = False,
    type: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE",
            help="Only these: CREATED, MODIFIED, SCHEMA_CHANGED, METADATA_CHANGED, DELETED, "
            "RESTORED, RENAMED, MERGED, SPLIT. May be repeated.",
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(metavar="PATTERN", help="Only datasets such as orders, sales/* or a URN."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="At most so many, the newest. Default: 100 on a terminal."),
    ] = None,
    exit_code: ExitCode = False,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Tell what happened to datasets, newest first."""
    from lumos.engine.changes import Tally

    screenful = _SCREENFUL if limit is None and not json and sys.stdout.isatty() else None
    tally = Tally(
        lumos_of(config, store).changes(
            since=since,
            until=until,
            types=type or (),
            breaking=breaking,
            dataset=dataset,
            limit=limit or screenful,
        )
    )
    try:
        if json:
            _print_json(tally)
        else:
            _print(tally)
    except BrokenPipeError:
        # Typer would take it for a failure.
        stop_printing()
    if screenful is not None and tally.summary.events == screenful:
        say("There may be older ones: --limit and --since show them.")
    if exit_code and tally.summary.breaking:
        raise typer.Exit(BREAKING)


def _print_json(tally: "Tally") -> None:
    """One object, written as the events come: there may be millions."""
    from lumos.engine.reports import FORMAT_VERSION
    from lumos.model.codec import to_json

    out = sys.stdout.buffer
    out.write(b'{"format_version":' + to_json(FORMAT_VERSION) + b',"events":[')
    separator = b"\n"
    for event in tally:
        out.write(separator + to_json(event))
        separator = b",\n"
    out.write(b'\n],"summary":' + to_json(tally.summary) + b"}\n")
    out.flush()


def _print(tally: "Tally") -> None:
    from rich.text import Text

    from lumos.cli.screen import STYLES, plural, stdout

    console = stdout()
    # A million lines are not worth colouring for a file.
    in_colour = console.is_terminal
    for number, event in enumerate(tally):
        if number == 0:
            say(_line(("TIME (UTC)", "VERDICT", "EVENT", "VERSION", "DATASET", "WHAT")))
        cells = _cells(event)
        if in_colour:
            line = Text(_line(cells))
            line.stylize(STYLES.get(cells[1].lower(), ""), _VERDICT, _VERDICT + len(cells[1]))
            console.print(line)
        else:
            sys.stdout.write(f"{_line(cells)}\n")
    sums = tally.summary
    if sums.events:
        changes, datasets = plural(sums.events, "change"), plural(sums.datasets, "dataset")
        say(f"{changes} in {datasets}, {sums.breaking:,} breaking.")
    else:
        say("No changes.")


def line_of(event: "EventReport") -> str:
    """An event as one line, as it stands in the list."""
    return _line(_cells(event))


def _cells(event: "EventReport") -> tuple[str, ...]:
    verdict = event.changes[0].consumer.value if event.changes else ""
    downstream = "" if event.affected is None else event.affected.summary
    what = "; ".join(filter(None, (event.summary, downstream)))
    return (
        event.timestamp.isoformat(" ", "seconds")[:19],
        "BREAKING" if event.breaking else verdict,
        event.type.value,
        f"{event.cloud_version} {event.schema_version}",
        event.urn,
        # People and names of fields may bring lines of their own.
        " ".join(what.split()),
    )


def _line(cells: tuple[str, ...]) -> str:
    time, verdict, event, version, urn, what = map(one_line, cells)
    return f"{time:<19}  {verdict:<13}  {event:<16}  {version:<14}  {urn}  {what}".rstrip()
