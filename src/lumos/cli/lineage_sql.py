"""lumos lineage sql"""

import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.options import STDIN, Dialect, JsonOptions, argument, with_options
from lumos.cli.screen import Table, stdout
from lumos.cli.text import print_problem, print_remark
from lumos.rendering.text import plural, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lumos.lineage.sql_report import SqlEdgeReport, SqlLineageReport

_MAX_EXPRESSION_LENGTH: Final = 80


app = typer.Typer()


@app.command(
    epilog="Examples:\n\n"
    "lumos lineage sql models/sessions.sql --dialect snowflake\n\n"
    "lumos lineage sql load.sql --dialect tsql --schema columns.yaml --json\n\n"
    "echo 'select a + b as c from t' | lumos lineage sql -"
)
@with_options
def sql(
    options: JsonOptions,
    file: Annotated[str, argument("FILE", "A SQL file, or - for stdin.")],
    dialect: Dialect = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            metavar="SCHEMA.yaml",
            help="The columns of tables, as schema.table: [a, b].",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show the column lineage of a SQL file, without recording it.

    No store is needed. To record lineage, use: lumos lineage ingest
    """
    from lumos.lineage.sql_report import sql_file_lineage, sql_lineage

    if file == STDIN:
        text = sys.stdin.buffer.read().decode("utf-8-sig", errors="replace")
        report = sql_lineage(text, dialect=dialect, schema=schema)
    else:
        report = sql_file_lineage(Path(file), dialect=dialect, schema=schema)
    options.print(report, _print_report)


def _print_report(report: "SqlLineageReport") -> None:
    console = stdout()
    statements = {each.number: each for each in report.statements}
    for number, edges in groupby(report.edges, key=lambda edge: edge.statement):
        statement = statements.get(number)
        if statement is not None:
            tables = ", ".join(each.table for each in statement.writes) or "(query only)"
            console.print(tables, style="bold", end="  ")
            console.print(f"{statement.kind.replace('_', ' ')}, line {statement.line}", style="dim")
        console.print(_edges_table(edges))
        console.print()
    for each in report.unresolved:
        print_note = print_remark if each.severity == "remark" else print_problem
        print_note(f"line {each.line}: {each.reason}")
    read = {each.table for statement in report.statements for each in statement.reads}
    console.print(
        f"{plural(len(report.edges), 'edge')} from {plural(len(read), 'table')} in "
        f"{plural(len(report.statements), 'statement')}. {_coverage(report)}"
    )


def _coverage(report: "SqlLineageReport") -> str:
    if not report.columns:
        return "No output columns."
    return (
        f"{report.resolved:,} of {report.columns:,} output columns resolved "
        f"({report.coverage:.0%})."
    )


def _edges_table(edges: "Iterable[SqlEdgeReport]") -> Table:
    table = Table("", "", "", "")
    for edge in edges:
        is_direct = edge.kind == "DIRECT"
        cast = f" (cast to {edge.cast_to})" if edge.cast_to else ""
        table.add(
            f"  {edge.source}",
            f"-> {edge.target}",
            (edge.derivation if is_direct else edge.usage) or "",
            f"{shorten(edge.expression or '', _MAX_EXPRESSION_LENGTH)}{cast}  :{edge.line}",
            style="" if is_direct else "dim",
        )
    return table
