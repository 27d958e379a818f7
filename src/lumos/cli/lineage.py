"""lumos lineage"""

import os
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from lumos.cli import lineage_show, lineage_sql
from lumos.cli.options import QUIET, AsJson, ConfigFile, StorePath, lumos_of, print_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lumos.engine.lineage.reports import (
        EdgeReport,
        LineageIngestReport,
        ReporterReport,
        TableReport,
    )
    from lumos.lineage.reported import Problem

_MOST: Final = 20
_MOST_PROBLEMS: Final = 20
_MOST_NOT_FOUND: Final = 5

app = typer.Typer(
    no_args_is_help=True, help="See where data comes from and where it goes, column by column."
)

Dialect = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The SQL dialect, such as postgres, snowflake, bigquery, spark or tsql.",
        show_default=False,
    ),
]


@app.command(
    epilog="Examples:\n\n"
    "lumos lineage ingest models/ --dialect snowflake\n\n"
    "lumos lineage ingest sql/ --name-from '{schema}/{table}/*.sql'\n\n"
    "lumos lineage ingest target/manifest.json events.ndjson lineage.yaml"
)
def ingest(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="SQL, dbt artefacts, OpenLineage events, declared edges in YAML, query logs, or "
            "folders of these.",
            show_default=False,
        ),
    ],
    dialect: Dialect = None,
    name_from: Annotated[
        str | None,
        typer.Option(
            metavar="TEMPLATE",
            help="Name the tables of files that hold only a query after their paths: "
            "{table}, {schema} and {database} are parts of the name, * is any text.",
            show_default="sql_name_from of the configuration, or the file's name; the folder's "
            "name if that is generic",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")
    ] = False,
    accept_removals: Annotated[
        bool,
        typer.Option(help="Believe that files are gone, also where a folder has none left."),
    ] = False,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Read files that tell of lineage, and record it with its columns.

    Each file is recognised by what is in it. What a file, project or job said before and no longer
    says goes; what others say of the same edge stays. Tables that match no dataset are reported
    with the nearest known name.
    """
    from lumos.cli.screen import steps

    desk = lumos_of(config, store).lineage
    with steps() as announce:
        report = desk.ingest(
            *paths,
            dialect=dialect,
            name_from=name_from,
            dry_run=dry_run,
            accept_removals=accept_removals,
            announce=announce,
        )
    if json:
        print_json(report)
    else:
        _show(report)
    _complain(report)
    if report.failed or not report.files:
        raise typer.Exit(1)


@app.command(epilog="Example: lumos lineage add raw/orders analytics/totals --column amount=total")
def add(
    upstream: Annotated[
        str, typer.Argument(metavar="UPSTREAM", help="Where data comes from: a URN, path or table.")
    ],
    downstream: Annotated[
        str, typer.Argument(metavar="DOWNSTREAM", help="Where it goes: a URN, path or table.")
    ],
    type: Annotated[
        Literal["TRANSFORMED", "COPIED", "VIEW"],
        typer.Option("--type", case_sensitive=False, help="What becomes of the data."),
    ] = "TRANSFORMED",
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="FROM=TO",
            help="A column and the one that is made from it. May be repeated.",
            show_default=False,
        ),
    ] = None,
    job: Annotated[
        str | None,
        typer.Option(
            metavar="URN",
            help="The job that moves the data, such as lumos://airflow/nightly/totals.",
            show_default=False,
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="How sure this is, from 0 to 1.")] = 1.0,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Record by hand that data flows from one dataset to another."""
    report = lumos_of(config, store).lineage.add(
        upstream,
        downstream,
        type=type,
        columns=[_pair(each) for each in column or ()],
        job=job,
        confidence=confidence,
    )
    _answer(report, as_json=json)


@app.command(epilog="Example: lumos lineage remove raw/orders analytics/totals")
def remove(
    upstream: Annotated[
        str, typer.Argument(metavar="UPSTREAM", help="Where data came from: a URN, path or table.")
    ],
    downstream: Annotated[
        str, typer.Argument(metavar="DOWNSTREAM", help="Where it went: a URN, path or table.")
    ],
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Take back what was recorded by hand with lumos lineage add.

    What files, projects and jobs say of the same edge stays; to change that, change these and
    ingest them again.
    """
    report = lumos_of(config, store).lineage.remove(upstream, downstream)
    _answer(report, as_json=json)
    if report.change == "not there":
        raise typer.Exit(1)


def _pair(text: str) -> tuple[str, str]:
    before, equals, after = text.partition("=")
    if not equals or not before.strip() or not after.strip():
        raise typer.BadParameter(f"'{text}' must be FROM=TO, such as amount=total")
    return before.strip(), after.strip()


def _answer(report: "EdgeReport", *, as_json: bool) -> None:
    from lumos.cli.screen import stdout

    if as_json:
        print_json(report)
        return
    console = stdout()
    console.print(f"{report.change}  {report.upstream.urn} -> {report.downstream.urn}")
    for end in (report.upstream, report.downstream):
        if not end.known:
            console.print(f"remark   no dataset {end.urn} is in the store")
    if report.still_told_by:
        console.print(f"remark   still told by {', '.join(report.still_told_by)}")


def _show(report: "LineageIngestReport") -> None:
    from lumos.cli.screen import plural, stdout

    console = stdout()
    if report.reporters:
        console.print(_reporters(report.reporters))
        if (rest := len(report.reporters) - _MOST) > 0:
            console.print(f"... and {plural(rest, 'more reporter')}; --json lists them all.")
        console.print()
    unsure = [each for each in report.tables if each.way in ("assumed", "ambiguous")]
    sure = [each for each in report.tables if each.way not in ("assumed", "ambiguous")]
    for tables in (sure, unsure):
        if tables:
            console.print(_tables(tables))
            if (rest := len(tables) - _MOST) > 0:
                console.print(f"... and {plural(rest, 'more name')}; --json lists them all.")
            console.print()
    for log in report.logs.logs if report.logs else ():
        console.print(
            f"{log.log}: {plural(log.counted, 'statement')} counted, {plural(log.edges, 'edge')}"
        )
    for name in report.gone:
        console.print(f"gone  {name}")
    edges = report.edges
    coverage = report.coverage
    if coverage.columns:
        console.print(
            f"{100 * coverage.resolved / coverage.columns:.0f} % of output columns resolved "
            f"({coverage.resolved:,} of {coverage.columns:,})."
        )
    if report.not_found:
        names = [
            f"{each.name} (nearest: {each.nearest})" if each.nearest else each.name
            for each in report.not_found[:_MOST_NOT_FOUND]
        ]
        rest = len(report.not_found) - _MOST_NOT_FOUND
        more = f" and {rest:,} more; --json lists all" if rest > 0 else ""
        console.print(
            f"{len(report.not_found):,} of {plural(coverage.tables, 'table')} "
            f"{'was' if len(report.not_found) == 1 else 'were'} not found: "
            f"{', '.join(names)}{more}."
        )
    told = f", {plural(report.runs, 'run')} of {plural(report.jobs, 'job')}" if report.jobs else ""
    described = f", {plural(report.described, 'dataset')} described" if report.described else ""
    console.print(
        f"{plural(edges.edges, 'edge')}: {edges.added:,} new, {edges.changed:,} changed, "
        f"{edges.unchanged:,} unchanged, {edges.removed:,} gone{told}{described}. "
        f"{report.seconds:.1f} s."
    )
    if report.dry_run:
        console.print("Nothing was written.")


def _reporters(reporters: "Iterable[ReporterReport]") -> object:
    from lumos.cli.screen import table

    shown = table("REPORTER", "EDGES", "NEW", "CHANGED", "GONE", "COLUMNS", "",
                  right=("EDGES", "NEW", "CHANGED", "GONE", "COLUMNS"))  # fmt: skip
    # What changed is what people look for.
    ordered = sorted(
        reporters,
        key=lambda each: each.edges.unchanged == each.edges.edges and not each.edges.removed,
    )
    for each in ordered[:_MOST]:
        columns = each.coverage
        share = f"{100 * columns.resolved / columns.columns:.0f} %" if columns.columns else ""
        shown.add_row(
            each.reporter,
            f"{each.edges.edges:,}",
            f"{each.edges.added:,}",
            f"{each.edges.changed:,}",
            f"{each.edges.removed:,}",
            share,
            f"a query, taken for table {each.model}" if each.model else "",
        )
    return shown


def _tables(tables: "list[TableReport]") -> object:
    from lumos.cli.screen import table

    shown = table("NAME", "FOUND BY", "DATASET")
    for each in tables[:_MOST]:
        shown.add_row(each.name, str(each.way), each.urn)
    return shown


def _complain(report: "LineageIngestReport") -> None:
    from lumos.cli.screen import plural, stderr

    console = stderr()
    if not report.files:
        console.print(
            "lumos: Nothing that tells of lineage was found. SQL, dbt artefacts, OpenLineage "
            "events, YAML with the key 'lineage' and query logs are looked for."
        )
    if os.environ.get(QUIET):
        return
    for problem in report.problems[:_MOST_PROBLEMS]:
        console.print(_problem(problem))
    if (rest := len(report.problems) - _MOST_PROBLEMS) > 0:
        console.print(f"... and {plural(rest, 'more problem')}; --json lists them all.")
    if report.unrecognised:
        some = ", ".join(report.unrecognised[:5])
        more = len(report.unrecognised) - 5
        rest_text = f" and {more:,} more" if more > 0 else ""
        console.print(
            f"remark   not read, since nothing in there tells of lineage: {some}{rest_text}"
        )
    if report.held:
        console.print(
            f"{plural(len(report.held), 'reporter')} of these folders could not be found, but "
            "nothing else is left there or not all could be read; nothing was removed. If they are "
            "really gone, run again with --accept-removals."
        )


def _problem(problem: "Problem") -> str:
    word = "remark" if problem.severity == "remark" else "problem"
    place = problem.place if problem.line is None else f"{problem.place}:{problem.line}"
    return f"{word:<7}  {place}: {problem.reason}"


lineage_show.add_to(app)
lineage_sql.add_to(app)
