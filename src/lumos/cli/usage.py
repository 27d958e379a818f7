"""lumos usage"""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.options import (
    CommonOptions,
    Dataset,
    add_command,
    argument,
    limit_option,
    with_options,
)
from lumos.cli.screen import Table, stdout, steps
from lumos.cli.text import Names, print_line, print_problem, print_remark
from lumos.errors import MisuseError
from lumos.rendering.text import format_number, format_size, format_time, join_names, plural

if TYPE_CHECKING:
    from lumos.usage.reports import (
        ForgottenReport,
        LogReport,
        LogsReport,
        UnreadReport,
        UsageIngestReport,
        UsageShowReport,
        UsageTopReport,
    )

_SKIP_REASONS: Final = {
    "failed": "failed",
    "no_statement": "without a statement",
    "no_time": "without a time",
    "unreadable": "unreadable",
    "part_of_others": "covered by other entries",
    "no_reads": "without a read",
    "odd_reads": "with an invalid read count",
    "future": "dated in the future",
}
_MAX_COLUMNS: Final = 8
_MAX_DAYS: Final = 10

app = typer.Typer(help="Show who reads which datasets, and which are unread.", no_args_is_help=True)

Since = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Only reads since then: 30d, or 2024-01-15."),
]


@app.command(
    epilog="Examples:\n\n"
    "lumos usage ingest query_history.csv\n\n"
    "lumos usage ingest logs/ --dialect trino --name warehouse\n\n"
    "lumos usage ingest mysql://reader@db.example.com\n\n"
    "lumos usage ingest export.csv --columns user=WHO,time=WHEN,statement=SQL_TEXT"
)
@with_options
def ingest(
    options: CommonOptions,
    paths: Annotated[
        list[str],
        argument("PATH...", "Query logs, folders of them, or one database: a source or address."),
    ],
    dialect: Annotated[
        str | None,
        typer.Option(
            metavar="DIALECT", help="SQL dialect of the statements. Default: that of the log."
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A name for these logs. Default: the name of each file."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD=COLUMN,...",
            help="The columns with user, time and statement, and optionally id, bytes, rows, "
            "database and schema.",
        ),
    ] = None,
) -> None:
    """Record reads from query logs, and the lineage of statements that write."""
    with steps() as progress:
        report = options.lumos.usage.ingest(
            *paths, dialect=dialect, name=name, columns=_parse_mapping(columns), progress=progress
        )
    options.print(report, _print_ingest, options.names)


@app.command(epilog="Example: lumos usage show orders --since 30d")
@with_options
def show(options: CommonOptions, dataset: Dataset, since: Since = None) -> None:
    """Show who read a dataset, when, how often and which columns."""
    report = options.lumos.usage.show(dataset, since=since)
    options.print(report, _print_show, options.names)


@app.command(
    epilog="Examples:\n\nlumos usage unread --since 180d\n\nlumos usage unread --columns --json"
)
@with_options
def unread(
    options: CommonOptions,
    since: Annotated[
        str, typer.Option(metavar="TIME", help="Not read since then: 90d, or 2024-01-15.")
    ] = "90d",
    columns: Annotated[
        bool, typer.Option("--columns", help="Also list unread columns of datasets that are read.")
    ] = False,
) -> None:
    """List datasets without reads in the period that query logs cover."""
    report = options.lumos.usage.unread(since=since, columns=columns)
    options.print(report, _print_unread, options.names)


@app.command(epilog="Example: lumos usage top --since 7d --limit 10")
@with_options
def top(
    options: CommonOptions,
    since: Since = None,
    limit: Annotated[int, limit_option("List at most this many.", maximum=10_000)] = 20,
) -> None:
    """List the datasets that are read most."""
    report = options.lumos.usage.top(since=since, limit=limit)
    options.print(report, _print_top, options.names)


@add_command(app, "list", "logs", epilog="Example: lumos usage list")
@with_options
def list_(options: CommonOptions) -> None:
    """List the query logs that were ingested."""
    options.print(options.lumos.usage.logs(), _print_logs)


@add_command(app, "remove", "forget", epilog="Example: lumos usage remove query_history")
@with_options
def remove(
    options: CommonOptions,
    log: Annotated[str, typer.Argument(metavar="LOG", help="A name from `lumos usage list`.")],
) -> None:
    """Remove the reads and lineage of a log, so that it can be ingested again."""
    options.print(options.lumos.usage.forget(log), _print_removed)


def _parse_mapping(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(field and equals and column for field, equals, column in pairs):
        raise MisuseError(
            f"'{text}' is not a list of FIELD=COLUMN. Write: --columns user=WHO,time=WHEN,..."
        )
    return {field.strip(): column.strip() for field, _, column in pairs}


def _print_ingest(report: "UsageIngestReport", names: Names) -> None:
    console = stdout()
    for log in report.logs:
        console.print(log.log.removeprefix("log:"), style="bold", end="  ")
        dialect = f", {log.dialect}" if log.dialect and log.dialect not in log.kind else ""
        console.print(f"{log.kind}{dialect}, {_format_period(log)}")
        console.print(f"  {_format_counts(log)}")
        console.print(
            f"  {plural(log.queries, 'distinct statement')}, {log.understood:,} parsed, "
            f"{plural(log.edges, 'lineage edge')}"
        )
    console.print(f"Reads of {plural(report.datasets, 'dataset')} recorded.")
    if report.found_again:
        tables_found = plural(report.found_again, "table")
        console.print(f"{tables_found} of earlier logs matched to datasets.")
    if report.unknown:
        verb = "matches" if report.unknown_tables == 1 else "match"
        tables = ", ".join(f"{each.name} ({each.reads:,})" for each in report.unknown[:5])
        print_remark(
            f"{plural(report.unknown_tables, 'table')} in the logs {verb} no dataset: {tables}. "
            "Map them with rules under sql_names; the next ingest assigns these reads."
        )
    for each in report.not_understood[:5]:
        times = plural(each.times, "time")
        reason = each.reason.removeprefix("not understood: ")
        print_problem(f"could not parse, {times}: {' '.join(each.statement.split())}: {reason}")
    for text in report.problems:
        print_problem(names(text))


def _format_period(log: "LogReport") -> str:
    if log.since is None:
        return "no reads"
    return f"{log.since}" if log.since == log.until else f"{log.since} to {log.until}"


def _format_counts(log: "LogReport") -> str:
    parts = [f"{log.statements:,} statements", f"{log.counted:,} counted"]
    if log.counted_before:
        parts.append(f"{log.counted_before:,} counted before")
    parts += [f"{count:,} {_SKIP_REASONS[reason]}" for reason, count in log.left_out.items()]
    return ", ".join(parts)


def _print_logs(report: "LogsReport") -> None:
    table = Table(
        "LOG", "SINCE", "UNTIL", ">COUNTED",
        empty="No query logs yet. Ingest some with: lumos usage ingest PATH",
    )  # fmt: skip
    for each in report.logs:
        table.add(each.log, str(each.since), str(each.until), f"{each.statements:,}")
    stdout().print(table)


def _print_removed(report: "ForgottenReport") -> None:
    print_line(f"Removed {report.log} with its reads of {plural(report.datasets, 'dataset')}.")


def _print_show(report: "UsageShowReport", names: Names) -> None:
    console = stdout()
    console.print(names(report.urn), style="bold")
    console.print(_evidence_text(report))
    if not report.readers:
        return
    console.print(f"{plural(report.reads, 'read')}, {plural(len(report.readers), 'reader')}")
    console.print()
    readers = Table("READER", ">READS", ">BYTES", ">ROWS", "LAST READ (UTC)", compact=True)
    for each in report.readers:
        last_read = format_time(each.last_read) if each.last_read else ""
        readers.add(each.name, f"{each.reads:,}", *_format_volume(each.bytes, each.rows), last_read)
    console.print(readers)
    if report.columns:
        console.print()
        columns = Table("COLUMN", ">READS", "LAST READ", compact=True)
        for name, column in sorted(
            report.columns.items(), key=lambda item: (-item[1].reads, item[0])
        ):
            label = "(unknown columns)" if name == "*" else name
            columns.add(label, f"{column.reads:,}", str(column.last_read or ""))
        console.print(columns)
    if report.unread_columns:
        console.print()
        console.print(f"Unread columns: {', '.join(report.unread_columns)}")
    if not report.days:
        return
    console.print()
    days = Table("DAY", ">READS", ">READERS", ">BYTES", ">ROWS", compact=True)
    for day in report.days[-_MAX_DAYS:]:
        days.add(
            str(day.day), f"{day.reads:,}", f"{day.readers:,}", *_format_volume(day.bytes, day.rows)
        )
    console.print(days)
    if len(report.days) > _MAX_DAYS:
        console.print(f"... the last {_MAX_DAYS} of {len(report.days):,} days; --json has all.")


def _format_volume(bytes: int | None, rows: int | None) -> tuple[str, str]:
    """The bytes and rows that were read; empty if unknown."""
    return (
        "" if bytes is None else format_size(bytes),
        "" if rows is None else format_number(rows),
    )


def _evidence_text(report: "UsageShowReport") -> str:
    if report.is_imported:
        last = (
            f" It was last read on {report.last_accessed:%Y-%m-%d}." if report.last_accessed else ""
        )
        return f"From a snapshot; no query log covers this dataset.{last}"
    if report.known_since is None:
        return "Unknown: no query log covers this dataset. Add one with: lumos usage ingest PATH"
    coverage = f"Query logs cover it from {report.known_since} on."
    if report.readers:
        return coverage
    return f"No reads{f' since {report.since}' if report.since else ''}. {coverage}"


def _print_unread(report: "UnreadReport", names: Names) -> None:
    console = stdout()
    if report.datasets:
        names.look_up(each.urn for each in report.datasets)
        table = Table("DATASET", "LAST READ", "LOGS SINCE")
        for each in report.datasets:
            table.add(names(each.urn), str(each.last_read or "never"), str(each.known_since))
        console.print(table)
        console.print()
    for unread in report.columns or ():
        columns = f"{len(unread.columns)} of {unread.of} columns unread"
        console.print(f"{names(unread.urn)}: {columns}: {join_names(unread.columns, _MAX_COLUMNS)}")
    through = f" ({report.read_through_views:,} through views)" if report.read_through_views else ""
    console.print(
        f"Since {report.since}: {plural(len(report.datasets), 'unread dataset')}, "
        f"{report.read:,} read{through}."
    )
    if report.columns is not None and report.columns_not_judged:
        count = plural(report.columns_not_judged, "dataset")
        print_remark(f"{count} had reads whose columns are unknown")
    for group in report.not_judged:
        count = plural(group.datasets, "dataset")
        advice = "" if group.known_since else ". Ingest one with: lumos usage ingest PATH"
        print_remark(f"{count} in {group.place} not judged: {group.reason}{advice}")


def _print_top(report: "UsageTopReport", names: Names) -> None:
    console = stdout()
    if not report.datasets:
        reason = "No query logs yet." if report.known_since is None else "No reads in this period."
        console.print(f"{reason} Ingest logs with: lumos usage ingest PATH")
        return
    names.look_up(each.urn for each in report.datasets)
    table = Table(
        "DATASET", ">READS", ">READERS", ">BYTES", ">ROWS", "LAST READ (UTC)", compact=True
    )
    for each in report.datasets:
        table.add(
            names(each.urn) if each.name else f"{names(each.urn)} (not scanned)",
            f"{each.reads:,}",
            f"{each.readers:,}",
            *_format_volume(each.bytes, each.rows),
            format_time(each.last_read),
        )
    console.print(table)
    console.print()
    tables = report.not_scanned
    others = f" and {plural(tables, 'table')} that no scan has found were" if tables else ""
    console.print(
        f"{plural(report.total - tables, 'dataset')}{others} read since {report.known_since}."
    )
