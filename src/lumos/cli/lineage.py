"""lumos lineage"""

import os
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from lumos.cli import lineage_show, lineage_sql
from lumos.cli.lines import problem, remark, say
from lumos.cli.names import Names
from lumos.cli.options import (
    QUIET,
    CommonOptions,
    DryRun,
    common_options,
    print_json,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lumos.lineage.reports import EdgeReport, LineageIngestReport, ReporterReport, TableReport

_MOST: Final = 20
_MOST_PROBLEMS: Final = 20
_MOST_NOT_FOUND: Final = 5

app = typer.Typer(
    no_args_is_help=True, help="Show and record where data comes from and goes, by column."
)

Dialect = Annotated[
    str | None,
    typer.Option(
        metavar="DIALECT",
        help="SQL dialect: postgres, snowflake, bigquery, spark, tsql, ...",
        show_default=False,
    ),
]


@app.command(
    epilog="Examples:\n\n"
    "lumos lineage ingest models/ --dialect snowflake\n\n"
    "lumos lineage ingest sql/ --name-from '{schema}/{table}/*.sql'\n\n"
    "lumos lineage ingest target/manifest.json events.ndjson lineage.yaml"
)
@common_options
def ingest(
    options: CommonOptions,
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="SQL, dbt artefacts, OpenLineage events, lineage in YAML, query logs, or folders "
            "of these.",
            show_default=False,
        ),
    ],
    dialect: Dialect = None,
    name_from: Annotated[
        str | None,
        typer.Option(
            metavar="TEMPLATE",
            help="Names the tables of files with only a query by their paths: {table}, {schema} "
            "and {database} are parts of the name, * is any text. Default: sql_name_from of the "
            "configuration, else the name of the file or its folder.",
            show_default=False,
        ),
    ] = None,
    dry_run: DryRun = False,
    accept_removals: Annotated[
        bool,
        typer.Option(
            "--accept-removals", help="Remove lineage of deleted files, even if none are left."
        ),
    ] = False,
    keep_removals: Annotated[bool, typer.Option("--no-accept-removals", hidden=True)] = False,
) -> None:
    """Record the lineage in files, by column.

    The kind of each file is recognised by its content. Edges that a file, project or job no longer
    contains are removed, unless other sources report them too. Tables that match no dataset are
    listed with the nearest known name.
    """
    from lumos.cli.screen import steps

    lumos = options.lumos
    with steps() as progress:
        report = lumos.lineage.ingest(
            *paths,
            dialect=dialect,
            name_from=name_from,
            dry_run=dry_run,
            accept_removals=accept_removals and not keep_removals,
            progress=progress,
        )
    if options.json:
        print_json(report)
    else:
        _show(report, Names(lumos))
    _complain(report)
    if report.failed or not report.files:
        raise typer.Exit(1)


@app.command(epilog="Example: lumos lineage add raw/orders analytics/totals --column amount=total")
@common_options
def add(
    options: CommonOptions,
    upstream: Annotated[
        str,
        typer.Argument(metavar="UPSTREAM", help="The source dataset: a name, path, table or URN."),
    ],
    downstream: Annotated[
        str,
        typer.Argument(
            metavar="DOWNSTREAM", help="The target dataset: a name, path, table or URN."
        ),
    ],
    type: Annotated[
        Literal["TRANSFORMED", "COPIED", "VIEW"],
        typer.Option("--type", case_sensitive=False, help="How the target is made."),
    ] = "TRANSFORMED",
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="FROM=TO",
            help="A source column and the target column made from it. Repeatable.",
            show_default=False,
        ),
    ] = None,
    job: Annotated[
        str | None,
        typer.Option(
            metavar="JOB",
            help="The job between them: lumos://airflow/nightly/x.",
            show_default=False,
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Confidence, from 0 to 1.")] = 1.0,
) -> None:
    """Record an edge between two datasets by hand."""
    lumos = options.lumos
    report = lumos.lineage.add(
        upstream,
        downstream,
        type=type,
        columns=[_pair(each) for each in column or ()],
        job=job,
        confidence=confidence,
    )
    _answer(report, Names(lumos), as_json=options.json)


@app.command(epilog="Example: lumos lineage remove raw/orders analytics/totals")
@common_options
def remove(
    options: CommonOptions,
    upstream: Annotated[
        str,
        typer.Argument(metavar="UPSTREAM", help="The source dataset: a name, path, table or URN."),
    ],
    downstream: Annotated[
        str,
        typer.Argument(
            metavar="DOWNSTREAM", help="The target dataset: a name, path, table or URN."
        ),
    ],
) -> None:
    """Remove an edge that was recorded with lumos lineage add.

    The same edge stays if files, projects or jobs report it; change these and ingest them again.
    """
    lumos = options.lumos
    report = lumos.lineage.remove(upstream, downstream)
    _answer(report, Names(lumos), as_json=options.json)
    if report.change == "not there":
        raise typer.Exit(1)


def _pair(text: str) -> tuple[str, str]:
    before, equals, after = text.partition("=")
    if not equals or not before.strip() or not after.strip():
        raise typer.BadParameter(f"'{text}' must be FROM=TO, such as amount=total")
    return before.strip(), after.strip()


def _answer(report: "EdgeReport", names: Names, *, as_json: bool) -> None:
    from lumos.cli.screen import stdout

    if as_json:
        print_json(report)
        return
    stdout().print(
        f"{report.change}  {names(report.upstream.urn)} -> {names(report.downstream.urn)}"
    )
    for end in (report.upstream, report.downstream):
        if not end.known:
            remark(f"{names(end.urn)} is not in the store; scan it with: lumos ingest PATH")
    if report.still_told_by:
        remark(f"still reported by {', '.join(report.still_told_by)}")


def _show(report: "LineageIngestReport", names: Names) -> None:
    from lumos.cli.screen import plural, stdout
    from lumos.schemas.wording import few

    console = stdout()
    if report.reporters:
        # What changed is what people look for.
        ordered = sorted(
            report.reporters,
            key=lambda each: each.edges.unchanged == each.edges.edges and not each.edges.removed,
        )
        reporters, rest = few(ordered, _MOST)
        console.print(_reporters(reporters))
        if rest:
            console.print(f"... and {rest:,} more reporters; --json lists them all.")
        console.print()
    unsure = [each for each in report.tables if each.way in ("assumed", "ambiguous")]
    sure = [each for each in report.tables if each.way not in ("assumed", "ambiguous")]
    for tables in (sure, unsure):
        if tables:
            shown, rest = few(tables, _MOST)
            console.print(_tables(shown, names))
            if rest:
                console.print(f"... and {rest:,} more names; --json lists them all.")
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
        missing, rest = few(report.not_found, _MOST_NOT_FOUND)
        listed = ", ".join(
            f"{each.name} (nearest: {names(each.nearest)})" if each.nearest else each.name
            for each in missing
        )
        more = f" and {rest:,} more; --json lists all" if rest else ""
        console.print(
            f"{len(report.not_found):,} of {plural(coverage.tables, 'table')} "
            f"{'was' if len(report.not_found) == 1 else 'were'} not found: {listed}{more}."
        )
    jobs = f", {plural(report.runs, 'run')} of {plural(report.jobs, 'job')}" if report.jobs else ""
    annotated = f", {plural(report.described, 'dataset')} annotated" if report.described else ""
    console.print(
        f"{plural(edges.edges, 'edge')}: {edges.added:,} new, {edges.changed:,} changed, "
        f"{edges.unchanged:,} unchanged, {edges.removed:,} removed{jobs}{annotated}. "
        f"{report.seconds:.1f} s."
    )
    if report.dry_run:
        console.print("Nothing was written.")


def _reporters(reporters: "Iterable[ReporterReport]") -> object:
    from lumos.cli.screen import table

    shown = table("REPORTER", "EDGES", "NEW", "CHANGED", "REMOVED", "COLUMNS", "",
                  right=("EDGES", "NEW", "CHANGED", "REMOVED", "COLUMNS"))  # fmt: skip
    for each in reporters:
        columns = each.coverage
        share = f"{100 * columns.resolved / columns.columns:.0f} %" if columns.columns else ""
        shown.add_row(
            each.reporter,
            f"{each.edges.edges:,}",
            f"{each.edges.added:,}",
            f"{each.edges.changed:,}",
            f"{each.edges.removed:,}",
            share,
            f"query, read as table {each.model}" if each.model else "",
        )
    return shown


def _tables(tables: "Sequence[TableReport]", names: Names) -> object:
    from lumos.cli.screen import table

    names.learn(each.urn for each in tables)
    shown = table("NAME", "FOUND BY", "DATASET")
    for each in tables:
        shown.add_row(each.name, str(each.way), names(each.urn))
    return shown


def _complain(report: "LineageIngestReport") -> None:
    from lumos.cli.screen import plural
    from lumos.schemas.wording import few, join_names

    if not report.files:
        say(
            "lumos: No file with lineage was found. Lumos reads SQL, dbt artefacts, OpenLineage "
            "events, YAML with the key 'lineage' and query logs.",
            err=True,
        )
    if os.environ.get(QUIET):
        return
    shown, rest = few(report.problems, _MOST_PROBLEMS)
    for each in shown:
        note = remark if each.severity == "remark" else problem
        position = each.place if each.line is None else f"{each.place}:{each.line}"
        note(f"{position}: {each.reason}")
    if rest:
        problem(f"... and {rest:,} more; --json lists them all")
    if report.unrecognised:
        files = join_names(report.unrecognised, _MOST_NOT_FOUND)
        remark(f"skipped, no lineage in there: {files}")
    if report.held:
        problem(
            f"{plural(len(report.held), 'reporter')} of these folders could not be found, but "
            "nothing else is left there or not all could be read; nothing was removed. If they are "
            "really gone, run again with --accept-removals."
        )


lineage_show.add_to(app)
lineage_sql.add_to(app)
