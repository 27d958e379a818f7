"""lumos changes"""

import sys
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.options import (
    BREAKING,
    CommonOptions,
    OptionalDatasets,
    ReadFrom,
    accept_old_options,
    limit_option,
    stop_printing,
    with_options,
)
from lumos.cli.schema import ExitCode
from lumos.cli.schema_text import STYLES
from lumos.cli.screen import Table, join_columns, stdout
from lumos.cli.text import Names, escape_line, print_line
from lumos.errors import MisuseError
from lumos.rendering.text import format_time, plural

if TYPE_CHECKING:
    from lumos.catalogs.reports import CatalogHistoryReport
    from lumos.schemas.changes import ChangesTally, EventReport

# The maximum number of lines on a terminal without --limit.
_TERMINAL_LIMIT: Final = 100
# The widths of the columns time, verdict, event and version, and the position of the verdict.
_WIDTHS: Final = (19, 13, 16, 14)
_VERDICT_START: Final = 21
_NAME_INDEX: Final = 4
_MAX_NAME_WIDTH: Final = 40
# The number of events whose names are looked up at once.
_BATCH_SIZE: Final = 200


app = typer.Typer()


@app.command(
    epilog="Examples:\n\n"
    "lumos changes --since 7d --breaking\n\n"
    "lumos changes 'sales/*' --type SCHEMA_CHANGED --limit 20\n\n"
    "lumos changes --since 2024-01-01 --until 2024-01-31 --json\n\n"
    "lumos changes orders --platform atlas",
    cls=accept_old_options(first=("--dataset",)),
)
@with_options
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
        int | None, limit_option("Only the newest ones. Default: 100 on a terminal.")
    ] = None,
    exit_code: ExitCode = False,
    platform: ReadFrom = None,
) -> None:
    """List what changed in datasets, newest first.

    With --platform, the changes of one dataset that a catalog recorded: when, by whom and what.
    """
    from lumos.schemas.changes import ChangesTally

    if platform is not None:
        if dataset is None or since or until or breaking or type or exit_code:
            raise MisuseError("--platform needs a DATASET, and of the other options only --limit.")
        report = options.lumos.catalog_history(dataset, catalog=platform, limit=limit)
        options.print(report, _print_history)
        return
    terminal_limit = (
        _TERMINAL_LIMIT if limit is None and not options.json and sys.stdout.isatty() else None
    )
    tally = ChangesTally(
        options.lumos.change_history.iterate(
            since=since,
            until=until,
            types=type or (),
            breaking=breaking,
            dataset=dataset,
            limit=limit or terminal_limit,
        )
    )
    try:
        if options.json:
            _print_json(tally)
        else:
            _print_events(tally, options.names)
    except BrokenPipeError:
        # Handled here, since Typer would exit with an error.
        stop_printing()
    if terminal_limit is not None and tally.summary.events == terminal_limit:
        print_line("There may be older changes: --limit and --since show them.")
    if exit_code and tally.summary.breaking:
        raise typer.Exit(BREAKING)


def _print_json(tally: "ChangesTally") -> None:
    """Print one JSON object event by event, since there may be millions."""
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


def _print_events(tally: "ChangesTally", names: Names) -> None:
    from rich.text import Text

    console = stdout()
    # Only use Rich on a terminal: for a million lines it would take minutes.
    in_colour = console.is_terminal
    width = 0
    events = iter(tally)
    while batch := list(islice(events, _BATCH_SIZE)):
        names.look_up(event.urn for event in batch)
        names.look_up(event.summary for event in batch)
        rows = [_cells(event, names) for event in batch]
        if not width:
            head = ("TIME (UTC)", "VERDICT", "EVENT", "VERSION", "DATASET", "WHAT")
            longest = max(len(escape_line(cells[_NAME_INDEX])) for cells in (head, *rows))
            width = min(_MAX_NAME_WIDTH, longest)
            print_line(_line(head, width))
        for cells in rows:
            if in_colour:
                line = Text(_line(cells, width))
                line.stylize(
                    STYLES.get(cells[1].lower(), ""), _VERDICT_START, _VERDICT_START + len(cells[1])
                )
                console.print(line)
            else:
                sys.stdout.write(f"{_line(cells, width)}\n")
    sums = tally.summary
    if sums.events:
        total, datasets = plural(sums.events, "event"), plural(sums.datasets, "dataset")
        breaking = plural(sums.breaking_changes, "breaking change")
        print_line(f"{total} in {datasets}; {breaking}.")
    else:
        print_line("No changes. Scan for some with: lumos ingest")


def _print_history(report: "CatalogHistoryReport") -> None:
    table = Table(
        "TIME (UTC)", "AUTHOR", "ACTION", "COLUMN", "WHAT", compact=True, empty="No changes."
    )
    for each in report.changes:
        table.add(format_time(each.at), each.author, each.action, each.column or "", each.details)
    stdout().print(table)


def line_of(event: "EventReport", names: Names) -> str:
    """The line of the list for an event."""
    return _line(_cells(event, names))


def _cells(event: "EventReport", names: Names) -> tuple[str, ...]:
    verdict = event.changes[0].consumer.value if event.changes else ""
    downstream = "" if event.affected is None else event.affected.summary
    summary = "; ".join(filter(None, (event.summary, downstream)))
    return (
        event.timestamp.isoformat(" ", "seconds")[:19],
        "BREAKING" if event.breaking else verdict,
        event.type.value,
        f"{event.cloud_version} {event.schema_version}",
        names(event.urn),
        # Summaries may contain line breaks.
        names(" ".join(summary.split())),
    )


def _line(cells: tuple[str, ...], width: int = 0) -> str:
    return join_columns([escape_line(cell) for cell in cells], (*_WIDTHS, width, 0))
