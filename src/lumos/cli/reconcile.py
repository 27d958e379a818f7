"""lumos reconcile"""

from functools import partial
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.options import (
    CommonOptions,
    accept_old_options,
    argument,
    output_option,
    with_options,
    write,
)
from lumos.cli.screen import Table, stdout
from lumos.cli.text import print_remark
from lumos.rendering.text import format_time, plural

if TYPE_CHECKING:
    from lumos.reconcile.reports import ReconcileReport

_MAX_ROWS: Final = 20

app = typer.Typer()


@app.command(
    epilog="Examples:\n\nlumos reconcile hive\n\nlumos reconcile hive --fix-plan > repair.sql\n\n"
    "lumos reconcile glue -o reconcile.html",
    cls=accept_old_options(html="--output"),
)
@with_options
def reconcile(
    options: CommonOptions,
    source: Annotated[
        str | None,
        argument("SOURCE", "The name or type of a metastore. Default: the only one."),
    ] = None,
    fix_plan: Annotated[
        bool,
        typer.Option(
            "--fix-plan",
            help="Print statements that would repair the metastore, without executing them.",
        ),
    ] = False,
    output: Annotated[Path | None, output_option("Also write an HTML page.")] = None,
) -> None:
    """Compare a metastore with the data in storage, from their last scans.

    Lists tables without data, data without tables, columns or formats that differ from the declared
    ones, partitions that are missing or not registered, stale statistics and shared locations.
    """
    report = options.lumos.reconciliation.compare(source, fix_plan=fix_plan)
    if output is not None:
        from lumos.reconcile.page import render_page

        write(render_page(report), output)
    if fix_plan:
        options.print(report, _print_plan)
    else:
        options.print(report, partial(_print_report, source=source))


def _print_plan(report: "ReconcileReport") -> None:
    console = stdout()
    for statement in report.statements or ():
        console.print(statement)
    if not report.statements:
        print_remark("Nothing to repair.")
    _print_remarks(report)


def _print_report(report: "ReconcileReport", *, source: str | None) -> None:
    from lumos.reconcile.reports import KIND_TITLES

    console = stdout()
    for kind in report.counts:
        findings = [each for each in report.findings if each.kind == kind]
        console.print(f"{KIND_TITLES[kind]}: {len(findings):,}", style="bold")
        table = Table("", "", "")
        for each in findings[:_MAX_ROWS]:
            verdict = "" if each.verdict is None else each.verdict.value
            table.add(f"  {each.table or each.location}", each.details, verdict)
        console.print(table)
        if len(findings) > _MAX_ROWS:
            console.print(f"  ... {len(findings) - _MAX_ROWS:,} more; --json has all.")
        console.print()
    tables = f"{report.compared:,} of {plural(report.tables, 'table')} compared"
    console.print(
        f"{tables}, {plural(report.partitions, 'partition')}: "
        f"{plural(len(report.findings), 'difference')}. "
        f"Metastore scanned {format_time(report.scanned_at)} UTC."
    )
    if report.findings:
        command = join(["lumos", "reconcile", *([source] if source else []), "--fix-plan"])
        console.print(f"See how to repair them with: {command}")
    _print_remarks(report)


def _print_remarks(report: "ReconcileReport") -> None:
    for each in report.not_scanned:
        count = plural(each.tables, "table")
        print_remark(
            f"{count} in {each.location} not compared, since it has not been scanned: "
            f"{', '.join(each.examples)}{', ...' if each.tables > len(each.examples) else ''}. "
            f"Run: lumos ingest {each.location}"
        )
