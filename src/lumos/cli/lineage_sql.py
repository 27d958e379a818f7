"""lumos lineage sql"""

import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.lines import problem, remark
from lumos.cli.options import AsJson, print_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from lumos.lineage.sql_report import SqlEdgeReport, SqlLineageReport

_STDIN: Final = "-"
_LONGEST: Final = 80


def add_to(app: typer.Typer) -> None:
    """Adds the command to the group."""
    app.command(
        epilog="Examples:\n\n"
        "lumos lineage sql models/sessions.sql --dialect snowflake\n\n"
        "lumos lineage sql load.sql --dialect tsql --schema columns.yaml --json\n\n"
        "echo 'select a + b as c from t' | lumos lineage sql -"
    )(sql)


def sql(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A SQL file, or - for stdin.", show_default=False),
    ],
    dialect: Annotated[
        str | None,
        typer.Option(
            metavar="DIALECT",
            help="SQL dialect: postgres, snowflake, bigquery, spark, tsql, ...",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            metavar="SCHEMA.yaml",
            help="The columns of tables, as schema.table: [a, b].",
            show_default=False,
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Show the column lineage of a SQL file, without recording it.

    No store is needed. To record lineage, use: lumos lineage ingest
    """
    from lumos.lineage.sql_report import sql_file_lineage, sql_lineage

    if file == _STDIN:
        text = sys.stdin.buffer.read().decode("utf-8-sig", errors="replace")
        report = sql_lineage(text, dialect=dialect, schema=schema)
    else:
        report = sql_file_lineage(Path(file), dialect=dialect, schema=schema)
    if json:
        print_json(report)
    else:
        _show(report)


def _show(report: "SqlLineageReport") -> None:
    from lumos.cli.screen import plural, stdout

    console = stdout()
    kinds = {each.number: each for each in report.statements}
    for number, edges in groupby(report.edges, key=lambda edge: edge.statement):
        statement = kinds.get(number)
        if statement is not None:
            written = ", ".join(each.table for each in statement.writes) or "(query only)"
            console.print(f"{written}", style="bold", end="  ")
            console.print(f"{statement.kind.replace('_', ' ')}, line {statement.line}", style="dim")
        _show_edges(console, list(edges))
        console.print()
    for each in report.unresolved:
        note = remark if each.severity == "remark" else problem
        note(f"line {each.line}: {each.reason}")
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


def _show_edges(console: "Console", edges: "Iterable[SqlEdgeReport]") -> None:
    from lumos.cli.screen import table

    built = table("", "", "", "")
    built.show_header = False
    for edge in edges:
        usage = edge.derivation if edge.kind == "DIRECT" else edge.usage
        built.add_row(
            f"  {edge.source}", f"-> {edge.target}", usage or "", _short(edge),
            style="" if edge.kind == "DIRECT" else "dim",
        )  # fmt: skip
    console.print(built)


def _short(edge: "SqlEdgeReport") -> str:
    text = " ".join((edge.expression or "").split())
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    cast = f" (cast to {edge.cast_to})" if edge.cast_to else ""
    return f"{text}{cast}  :{edge.line}"
