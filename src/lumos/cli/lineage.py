"""lumos lineage"""

from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from lumos.cli import lineage_show, lineage_sql
from lumos.cli.options import (
    CommonOptions,
    Dialect,
    DryRun,
    NoAcceptRemovals,
    argument,
    with_options,
)
from lumos.cli.screen import Table, stdout, steps
from lumos.cli.text import Names, is_quiet, print_line, print_problem, print_remark
from lumos.rendering.text import few, join_names, plural

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from lumos.lineage.reports import (
        EdgeReport,
        LineageIngestReport,
        ReporterReport,
        TableReport,
    )

_MAX_LISTED: Final = 20
_MAX_PROBLEMS: Final = 20
_MAX_NOT_FOUND: Final = 5
_MAX_MISSING: Final = 3
_UNCERTAIN_METHODS: Final = ("assumed", "ambiguous")

app = typer.Typer(
    no_args_is_help=True, help="Show and record where data comes from and goes, by column."
)

Upstream = Annotated[
    str, typer.Argument(metavar="UPSTREAM", help="The source dataset: a name, path, table or URN.")
]
Downstream = Annotated[
    str,
    typer.Argument(metavar="DOWNSTREAM", help="The target dataset: a name, path, table or URN."),
]


@app.command(
    epilog="Examples:\n\n"
    "lumos lineage ingest models/ --dialect snowflake\n\n"
    "lumos lineage ingest sql/ --name-from '{schema}/{table}/*.sql'\n\n"
    "lumos lineage ingest target/manifest.json events.ndjson lineage.yaml"
)
@with_options
def ingest(
    options: CommonOptions,
    paths: Annotated[
        list[str] | None,
        argument(
            "[PATH]...",
            "SQL, dbt artefacts, OpenLineage events, lineage in YAML, exports of Metabase and "
            "Superset, query logs, or folders of these; or the URL of an Airflow server in the "
            "configuration. Default: all of these servers.",
        ),
    ] = None,
    dialect: Dialect = None,
    name_from: Annotated[
        str | None,
        typer.Option(
            metavar="TEMPLATE",
            help="For files with only a query: derive the table name from the path. {table}, "
            "{schema} and {database} are parts of the name, * is any text. Default: sql_name_from "
            "of the configuration, else the name of the file or its folder.",
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
    no_accept_removals: NoAcceptRemovals = False,
) -> None:
    """Record the lineage in files, by column, and the DAGs of Airflow servers.

    The kind of a file is recognised by its content. Edges that a file, project or job no longer
    contains are removed, unless other sources report them too. Tables that match no dataset are
    listed with the nearest known name.
    """
    with steps() as progress:
        report = options.lumos.lineage.ingest(
            *(paths or ()),
            dialect=dialect,
            name_from=name_from,
            dry_run=dry_run,
            accept_removals=accept_removals and not no_accept_removals,
            progress=progress,
        )
    options.print(report, _print_report, options.names)
    _print_warnings(report)
    if report.failed or not report.files:
        raise typer.Exit(1)


@app.command(epilog="Example: lumos lineage add raw/orders analytics/totals --column amount=total")
@with_options
def add(
    options: CommonOptions,
    upstream: Upstream,
    downstream: Downstream,
    type: Annotated[
        Literal["TRANSFORMED", "COPIED", "VIEW"],
        typer.Option(
            "--type",
            metavar="TYPE",
            case_sensitive=False,
            help="How the target is derived: transformed, copied or view.",
        ),
    ] = "TRANSFORMED",
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="FROM=TO",
            help="A source column and the target column derived from it. Repeatable.",
            show_default=False,
        ),
    ] = None,
    job: Annotated[
        str | None,
        typer.Option(
            metavar="JOB",
            help="The URN of the job between them.",
            show_default=False,
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Confidence, from 0 to 1.")] = 1.0,
    allow_dangling: Annotated[
        bool,
        typer.Option(
            "--allow-dangling", help="Accept datasets that are neither scanned nor in lineage."
        ),
    ] = False,
) -> None:
    """Record an edge between two datasets by hand."""
    report = options.lumos.lineage.add(
        upstream,
        downstream,
        type=type,
        columns=[_pair(each) for each in column or ()],
        job=job,
        confidence=confidence,
        allow_dangling=allow_dangling,
    )
    options.print(report, _print_edge, options.names)


@app.command(epilog="Example: lumos lineage remove raw/orders analytics/totals")
@with_options
def remove(options: CommonOptions, upstream: Upstream, downstream: Downstream) -> None:
    """Remove an edge that was recorded with lumos lineage add.

    An edge that files, projects or jobs report too is kept: change these and ingest them again.
    """
    report = options.lumos.lineage.remove(upstream, downstream)
    options.print(report, _print_edge, options.names)
    if report.change == "not there":
        raise typer.Exit(1)


def _pair(text: str) -> tuple[str, str]:
    before, equals, after = text.partition("=")
    if not equals or not before.strip() or not after.strip():
        raise typer.BadParameter(f"'{text}' must be FROM=TO, such as amount=total")
    return before.strip(), after.strip()


def _print_edge(report: "EdgeReport", names: Names) -> None:
    stdout().print(
        f"{report.change}  {names(report.upstream.urn)} -> {names(report.downstream.urn)}"
    )
    for end in (report.upstream, report.downstream):
        if not end.known and report.change not in ("removed", "not there"):
            print_remark(f"{names(end.urn)} is not in the store; scan it with: lumos ingest PATH")
    if report.still_told_by:
        print_remark(f"still reported by {', '.join(report.still_told_by)}")


def _print_report(report: "LineageIngestReport", names: Names) -> None:
    console = stdout()
    if report.reporters:
        changed_first = sorted(
            report.reporters,
            key=lambda each: each.edges.unchanged == each.edges.edges and not each.edges.removed,
        )
        reporters, more = few(changed_first, _MAX_LISTED)
        console.print(_reporters_table(reporters))
        if more:
            console.print(f"... and {more:,} more reporters; --json lists them all.")
        console.print()
    if report.tables:
        not_found = {each.urn for each in report.not_found}
        uncertain_first = sorted(
            report.tables,
            key=lambda each: (each.urn not in not_found, each.way not in _UNCERTAIN_METHODS),
        )
        listed, more = few(uncertain_first, _MAX_LISTED)
        console.print(_names_table(listed, names, not_found))
        if more:
            console.print(f"... and {more:,} more names; --json lists them all.")
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
        missing, more = few(report.not_found, _MAX_NOT_FOUND)
        examples = ", ".join(
            f"{each.name} (nearest: {names(each.nearest)})" if each.nearest else each.name
            for each in missing
        )
        suffix = f" and {more:,} more; --json lists all" if more else ""
        has_nearest = any(each.nearest for each in report.not_found)
        mapping = ", or map them to datasets under sql_names in lumos.yaml" if has_nearest else ""
        console.print(
            f"{len(report.not_found):,} of {plural(coverage.tables, 'table')} that the files read "
            f"{'was' if len(report.not_found) == 1 else 'were'} not found: {examples}{suffix}. "
            f"Scan them with: lumos ingest PATH{mapping}"
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


def _reporters_table(reporters: "Iterable[ReporterReport]") -> Table:
    table = Table("REPORTER", ">EDGES", ">NEW", ">CHANGED", ">REMOVED", ">COLUMNS", "")
    for each in reporters:
        edges, columns = each.edges, each.coverage
        table.add(
            each.reporter,
            *(f"{count:,}" for count in (edges.edges, edges.added, edges.changed, edges.removed)),
            f"{100 * columns.resolved / columns.columns:.0f} %" if columns.columns else "",
            f"query, read as table {each.model}" if each.model else "",
        )
    return table


def _names_table(
    tables: "Sequence[TableReport]", names: Names, not_found: "Collection[str]"
) -> Table:
    names.look_up(each.urn for each in tables)
    table = Table("NAME", "FOUND BY", "DATASET")
    for each in tables:
        method = "not found" if each.urn in not_found else str(each.way)
        table.add(each.name, method, names(each.urn))
    return table


def _print_warnings(report: "LineageIngestReport") -> None:
    if not report.files:
        print_line(
            "lumos: No file with lineage was found. Lumos reads SQL, dbt artefacts, OpenLineage "
            "events, YAML with the key 'lineage' and query logs.",
            err=True,
        )
    if is_quiet():
        return
    listed, more = few(report.problems, _MAX_PROBLEMS)
    for each in listed:
        print_note = print_remark if each.severity == "remark" else print_problem
        position = each.place if each.line is None else f"{each.place}:{each.line}"
        print_note(f"{position}: {each.reason}")
    if more:
        print_problem(f"... and {more:,} more; --json lists them all")
    if report.unrecognised:
        files = join_names(report.unrecognised, _MAX_NOT_FOUND)
        print_remark(f"skipped, no lineage in there: {files}")
    if report.held:
        is_one = len(report.held) == 1
        print_problem(
            f"{plural(len(report.held), 'reporter')} of these folders could not be found: "
            f"{join_names(report.held, _MAX_MISSING)}. Nothing else is left there or not all could "
            f"be read, so nothing was removed. If {'it is' if is_one else 'they are'} really gone, "
            "run again with --accept-removals."
        )


app.add_typer(lineage_show.app)
app.add_typer(lineage_sql.app)
