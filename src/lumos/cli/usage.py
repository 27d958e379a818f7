"""lumos usage"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.datasets import Name
from lumos.cli.lines import say
from lumos.cli.options import AsJson, ConfigFile, StorePath, lumos_of, print_json
from lumos.errors import MisuseError

if TYPE_CHECKING:
    from lumos.engine.usage.reports import (
        LogReport,
        TopReport,
        UnreadReport,
        UsageIngestReport,
        UsageShowReport,
    )

_LEFT_OUT: Final = {
    "failed": "failed",
    "no_statement": "without a statement",
    "no_time": "without a time",
    "unreadable": "unreadable",
    "part_of_others": "parts of others",
    "no_reads": "without a read",
    "odd_reads": "whose reads are no number",
    "future": "dated in the future",
}
_COLUMNS_SHOWN: Final = 8
_DAYS_SHOWN: Final = 10
_NUMBERS: Final = ("READS", "READERS", "BYTES", "ROWS")

app = typer.Typer(help="See who reads what, and what nobody reads.", no_args_is_help=True)

Since = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Only reads since then, as in 30d or 2024-01-15."),
]


@app.command(
    epilog="Examples:\n\n"
    "lumos usage ingest query_history.csv\n\n"
    "lumos usage ingest logs/ --dialect trino --name warehouse\n\n"
    "lumos usage ingest export.csv --columns user=WHO,time=WHEN,statement=SQL_TEXT"
)
def ingest(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...", help="Query logs, or folders of them.", show_default=False
        ),
    ],
    dialect: Annotated[
        str | None,
        typer.Option(help="The SQL dialect of the statements. Default: what the log tells."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="What these logs are known by. Default: the name of each file."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD=COLUMN,...",
            help="Which columns of the log say what: user, time, statement, and where there are "
            "any: id, bytes, rows, database, schema.",
        ),
    ] = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Count who read what from query logs, and keep the lineage of what they wrote."""
    from lumos.cli.screen import steps

    with steps() as announce:
        report = lumos_of(config, store).usage.ingest(
            *paths, dialect=dialect, name=name, columns=_mapping(columns), announce=announce
        )
    if json:
        print_json(report)
    else:
        _print_ingest(report)


@app.command(epilog="Example: lumos usage show orders --since 30d")
def show(
    name: Name,
    since: Since = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Show who read a dataset, when, how often and which columns."""
    report = lumos_of(config, store).usage.show(name, since=since)
    if json:
        print_json(report)
    else:
        _print_show(report)


@app.command(
    epilog="Examples:\n\nlumos usage unread --since 180d\n\nlumos usage unread --columns --json"
)
def unread(
    since: Annotated[
        str, typer.Option(metavar="TIME", help="Nobody read it since then: 90d, 2024-01-15.")
    ] = "90d",
    columns: Annotated[
        bool, typer.Option("--columns", help="Also unread columns of datasets that are read.")
    ] = False,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """List datasets that nobody read, of places whose reads are known that long."""
    report = lumos_of(config, store).usage.unread(since=since, columns=columns)
    if json:
        print_json(report)
    else:
        _print_unread(report)


@app.command(epilog="Example: lumos usage top --since 7d --limit 10")
def top(
    since: Since = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")] = 20,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """List what is read most."""
    report = lumos_of(config, store).usage.top(since=since, limit=limit)
    if json:
        print_json(report)
    else:
        _print_top(report)


@app.command(epilog="Example: lumos usage logs")
def logs(config: ConfigFile = None, store: StorePath = None, json: AsJson = False) -> None:
    """List the logs that were taken in."""
    from lumos.cli.screen import stdout, table

    report = lumos_of(config, store).usage.logs()
    if json:
        print_json(report)
        return
    rows = table("LOG", "SINCE", "UNTIL", "COUNTED", right=("COUNTED",))
    for each in report.logs:
        rows.add_row(each.log, str(each.since), str(each.until), f"{each.statements:,}")
    stdout().print(rows if report.logs else "No logs were taken in yet: lumos usage ingest PATH")


@app.command(epilog="Example: lumos usage forget query_history")
def forget(
    log: Annotated[str, typer.Argument(metavar="LOG", help="As `lumos usage logs` lists it.")],
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Take back all reads and lineage that a log told of, so that it can be taken in anew."""
    from lumos.cli.screen import plural

    report = lumos_of(config, store).usage.forget(log)
    if json:
        print_json(report)
    else:
        say(f"Forgot {report.log}, which told of {plural(report.datasets, 'dataset')}.")


def _mapping(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(field and mark and column for field, mark, column in pairs):
        raise MisuseError(f"'{text}' names no columns. Write --columns user=WHO,time=WHEN,...")
    return {field.strip(): column.strip() for field, _, column in pairs}


def _print_ingest(report: "UsageIngestReport") -> None:
    from lumos.cli.screen import plural, stderr, stdout

    console, remarks = stdout(), stderr()
    for log in report.logs:
        console.print(log.log.removeprefix("log:"), style="bold", end="  ")
        dialect = f", {log.dialect}" if log.dialect and log.dialect not in log.kind else ""
        console.print(f"{log.kind}{dialect}, {_period(log)}")
        console.print(f"  {_counts(log)}")
        console.print(
            f"  {plural(log.queries, 'kind')} of statements, {log.understood:,} understood, "
            f"{plural(log.edges, 'edge')} of lineage"
        )
    console.print(f"Reads of {plural(report.datasets, 'dataset')} recorded.")
    if report.found_again:
        homes = plural(report.found_again, "table")
        console.print(f"{homes} of earlier logs turned out to be datasets.")
    if report.unknown:
        one = report.unknown_tables == 1
        remarks.print(
            f"{plural(report.unknown_tables, 'table')} {'was' if one else 'were'} read and "
            f"{'is no dataset' if one else 'are no datasets'} here: "
            + ", ".join(f"{each.name} ({each.reads:,})" for each in report.unknown[:5])
            + ". Rules under sql_names tell which they are; the next ingest places these reads."
        )
    for each in report.not_understood[:5]:
        remarks.print(f"not understood, {each.times:,} times: {each.statement}")
        remarks.print(f"  {each.reason}")
    for problem in report.problems:
        remarks.print(problem, style="yellow")


def _period(log: "LogReport") -> str:
    if log.since is None:
        return "nothing in it counts"
    return f"{log.since}" if log.since == log.until else f"{log.since} to {log.until}"


def _counts(log: "LogReport") -> str:
    parts = [f"{log.statements:,} statements", f"{log.counted:,} counted"]
    if log.counted_before:
        parts.append(f"{log.counted_before:,} counted before")
    parts += [f"{count:,} {_LEFT_OUT[reason]}" for reason, count in log.left_out.items()]
    return ", ".join(parts)


def _print_show(report: "UsageShowReport") -> None:
    from lumos.cli.screen import number, plural, size, stdout, table, when

    console = stdout()
    console.print(report.name, style="bold", end="  ")
    console.print(report.urn)
    console.print(_evidence(report))
    if not report.readers:
        return
    console.print(f"{plural(report.reads, 'read')}, {plural(len(report.readers), 'reader')}")
    console.print()
    rows = table("READER", "READS", "BYTES", "ROWS", "LAST READ (UTC)", right=_NUMBERS)
    for each in report.readers:
        rows.add_row(
            each.name,
            f"{each.reads:,}",
            "" if each.bytes is None else size(each.bytes),
            "" if each.rows is None else number(each.rows),
            when(each.last_read) if each.last_read else "",
        )
    console.print(rows)
    if report.columns:
        console.print()
        rows = table("COLUMN", "READS", "LAST READ", right=("READS",))
        ordered = sorted(report.columns.items(), key=lambda item: (-item[1].reads, item[0]))
        for name, column in ordered:
            shown = "(columns not known)" if name == "*" else name
            rows.add_row(shown, f"{column.reads:,}", str(column.last_read or ""))
        console.print(rows)
    if report.unread_columns:
        console.print()
        console.print(f"Nobody read: {', '.join(report.unread_columns)}")
    if not report.days:
        return
    console.print()
    rows = table("DAY", "READS", "READERS", "BYTES", "ROWS", right=_NUMBERS)
    for day in report.days[-_DAYS_SHOWN:]:
        rows.add_row(
            str(day.day),
            f"{day.reads:,}",
            f"{day.readers:,}",
            "" if day.bytes is None else size(day.bytes),
            "" if day.rows is None else number(day.rows),
        )
    console.print(rows)
    if len(report.days) > _DAYS_SHOWN:
        console.print(f"... the last {_DAYS_SHOWN} of {len(report.days):,} days; --json has all.")


def _evidence(report: "UsageShowReport") -> str:
    if report.told:
        last = (
            f" It was last read on {report.last_accessed:%Y-%m-%d}." if report.last_accessed else ""
        )
        return f"This is what a snapshot told; no log tells of reads of it.{last}"
    if report.known_since is None:
        return "No log tells of reads there: whether anybody reads it is not known."
    known = f"Reads there are known from {report.known_since} on."
    if report.readers:
        return known
    return f"Nobody read it{f' since {report.since}' if report.since else ''}. {known}"


def _print_unread(report: "UnreadReport") -> None:
    from lumos.cli.screen import plural, stderr, stdout, table

    console, remarks = stdout(), stderr()
    if report.datasets:
        rows = table("DATASET", "LAST READ", "READS KNOWN FROM", "URN")
        for each in report.datasets:
            rows.add_row(
                each.name, str(each.last_read or "never seen"), str(each.known_since), each.urn
            )
        console.print(rows)
        console.print()
    for unread in report.columns or ():
        named = ", ".join(unread.columns[:_COLUMNS_SHOWN])
        more = len(unread.columns) - _COLUMNS_SHOWN
        console.print(
            f"{unread.name}: {len(unread.columns)} of {unread.of} columns: {named}"
            + (f" and {more} more" if more > 0 else "")
        )
    through = f", {report.read_through_views:,} through views" if report.read_through_views else ""
    nobody = "was" if len(report.datasets) == 1 else "were"
    console.print(
        f"Since {report.since} {plural(len(report.datasets), 'dataset')} {nobody} not read, "
        f"{report.read:,} {'was' if report.read == 1 else 'were'}{through}."
    )
    if report.columns is not None and report.columns_not_judged:
        remarks.print(
            f"{plural(report.columns_not_judged, 'dataset')} had reads whose columns are not known."
        )
    for group in report.not_judged:
        many = plural(group.datasets, "dataset")
        remarks.print(f"Nothing is said of {many} in {group.place}: {group.reason}.")


def _print_top(report: "TopReport") -> None:
    from lumos.cli.screen import number, plural, size, stdout, table, when

    console = stdout()
    if not report.datasets:
        known = "No reads are known." if report.known_since is None else "Nothing was read."
        console.print(f"{known} Take logs in with: lumos usage ingest PATH")
        return
    head = ("DATASET", "READS", "READERS", "BYTES", "ROWS", "LAST READ (UTC)")
    rows = table(*head, right=_NUMBERS)
    for each in report.datasets:
        rows.add_row(
            each.name or each.urn,
            f"{each.reads:,}",
            f"{each.readers:,}",
            "" if each.bytes is None else size(each.bytes),
            "" if each.rows is None else number(each.rows),
            when(each.last_read),
        )
    console.print(rows)
    console.print()
    console.print(f"{plural(report.total, 'dataset')} read, as known from {report.known_since} on.")
