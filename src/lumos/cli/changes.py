"""lumos changes"""

import sys
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.lines import one_line, say
from lumos.cli.names import Names
from lumos.cli.options import (
    BREAKING,
    CommonOptions,
    OptionalDatasets,
    common_options,
    earlier_options,
    stop_printing,
)
from lumos.cli.schema import ExitCode

if TYPE_CHECKING:
    from lumos.schemas.changes import ChangesTally, EventReport

# As many lines as somebody may want to scroll back on a terminal.
_SCREENFUL: Final = 100
_VERDICT: Final = 21
_NAME: Final = 4
_WIDEST_NAME: Final = 40
# As many events as names are looked up for at once.
_TOGETHER: Final = 200


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(
        epilog="Examples:\n\n"
        "lumos changes --since 7d --breaking\n\n"
        "lumos changes 'sales/*' --type SCHEMA_CHANGED --limit 20\n\n"
        "lumos changes --since 2024-01-01 --until 2024-01-31 --json",
        cls=earlier_options(first=("--dataset",)),
    )(changes)


@common_options
def changes(
    options: CommonOptions,
    dataset: OptionalDatasets = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Since then: 7d, 12h, 30m, a date or a time (UTC)."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Until then; a date includes its whole day.")
    ] = None,
    breaking: Annotated[
        bool, typer.Option("--breaking", help="Only changes that break consumers.")
    ] = False,
    type: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE",
            help="Only these: CREATED, MODIFIED, SCHEMA_CHANGED, METADATA_CHANGED, DELETED, "
            "RESTORED, RENAMED, MERGED, SPLIT. Repeatable.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Only the newest ones. Default: 100 on a terminal."),
    ] = None,
    exit_code: ExitCode = False,
) -> None:
    """List what changed in datasets, newest first."""
    from lumos.schemas.changes import ChangesTally

    screenful = _SCREENFUL if limit is None and not options.json and sys.stdout.isatty() else None
    lumos = options.lumos
    tally = ChangesTally(
        lumos.iter_changes(
            since=since,
            until=until,
            types=type or (),
            breaking=breaking,
            dataset=dataset,
            limit=limit or screenful,
        )
    )
    try:
        if options.json:
            _print_json(tally)
        else:
            _print(tally, Names(lumos))
    except BrokenPipeError:
        # Typer would take it for a failure.
        stop_printing()
    if screenful is not None and tally.summary.events == screenful:
        say("There may be older changes: --limit and --since show them.")
    if exit_code and tally.summary.breaking:
        raise typer.Exit(BREAKING)


def _print_json(tally: "ChangesTally") -> None:
    """One object, written as the events come: there may be millions."""
    from lumos.model.json_codec import to_json
    from lumos.model.report import FORMAT_VERSION

    out = sys.stdout.buffer
    out.write(b'{"format_version":' + to_json(FORMAT_VERSION) + b',"events":[')
    separator = b"\n"
    for event in tally:
        out.write(separator + to_json(event))
        separator = b",\n"
    out.write(b'\n],"summary":' + to_json(tally.summary) + b"}\n")
    out.flush()


def _print(tally: "ChangesTally", names: Names) -> None:
    from rich.text import Text

    from lumos.cli.screen import STYLES, plural, stdout

    console = stdout()
    # A million lines are not worth colouring for a file.
    in_colour = console.is_terminal
    width = 0
    events = iter(tally)
    while some := list(islice(events, _TOGETHER)):
        names.learn(event.urn for event in some)
        names.learn(event.summary for event in some)
        rows = [_cells(event, names) for event in some]
        if not width:
            width = min(_WIDEST_NAME, max(len(one_line(cells[_NAME])) for cells in rows))
            head = ("TIME (UTC)", "VERDICT", "EVENT", "VERSION", "DATASET", "WHAT")
            say(_line(head, width))
        for cells in rows:
            if in_colour:
                line = Text(_line(cells, width))
                line.stylize(STYLES.get(cells[1].lower(), ""), _VERDICT, _VERDICT + len(cells[1]))
                console.print(line)
            else:
                sys.stdout.write(f"{_line(cells, width)}\n")
    sums = tally.summary
    if sums.events:
        changes, datasets = plural(sums.events, "change"), plural(sums.datasets, "dataset")
        say(f"{changes} in {datasets}, {sums.breaking:,} breaking.")
    else:
        say("No changes. Scan for some with: lumos ingest")


def line_of(event: "EventReport", names: Names) -> str:
    """An event as one line, as it stands in the list."""
    return _line(_cells(event, names))


def _cells(event: "EventReport", names: Names) -> tuple[str, ...]:
    verdict = event.changes[0].consumer.value if event.changes else ""
    downstream = "" if event.affected is None else event.affected.summary
    what = "; ".join(filter(None, (event.summary, downstream)))
    return (
        event.timestamp.isoformat(" ", "seconds")[:19],
        "BREAKING" if event.breaking else verdict,
        event.type.value,
        f"{event.cloud_version} {event.schema_version}",
        names(event.urn),
        # People and names of fields may bring lines of their own.
        names(" ".join(what.split())),
    )


def _line(cells: tuple[str, ...], width: int = 0) -> str:
    time, verdict, event, version, name, what = map(one_line, cells)
    start = f"{time:<19}  {verdict:<13}  {event:<16}  {version:<14}"
    return f"{start}  {name:<{width}}  {what}".rstrip()
