"""lumos validate"""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.options import ConfigOptions, Snapshot, accept_old_options, with_options
from lumos.cli.screen import print_status, stdout, steps
from lumos.rendering.text import few, plural

if TYPE_CHECKING:
    from lumos.snapshots.reports import ValidateReport

_MAX_LISTED: Final = 50
# Codes of problems that may make counts incomplete.
_COUNT_CODES: Final = frozenset({"count", "truncated", "too_large"})
# Codes of problems that show that the snapshot may have been changed after it was written.
_INTEGRITY_CODES: Final = frozenset({"hash", "count", "truncated", "format", "duplicate", "order"})


app = typer.Typer()


@app.command(
    epilog="Examples:\n\nlumos validate backup.json\n\nlumos validate backup.parquet --spark",
    cls=accept_old_options(first=("--input", "-i")),
)
@with_options
def validate(
    options: ConfigOptions,
    file: Snapshot,
    spark: Annotated[
        bool, typer.Option("--spark", help="Check a Parquet snapshot on Spark.")
    ] = False,
) -> None:
    """Check a snapshot: format, hashes, counts and references.

    Every problem is listed with its position in the file. Exits with 1 if there is an error.
    """
    with steps() as progress:
        progress(f"checking {file}")
        report = options.lumos.snapshot.validate(file, spark=spark)
    options.print(report, _print_report)
    if not report.valid:
        raise typer.Exit(1)


def _print_report(report: "ValidateReport") -> None:
    console = stdout()
    codes = {problem.code for problem in report.problems}
    if report.scope is not None:
        counts = report.counts
        failed = {problem.code for problem in report.problems if problem.severity == "error"}
        if not failed & _COUNT_CODES:
            console.print(f"[ok] {plural(counts.live, 'dataset')}")
            if counts.deleted:
                console.print(f"[ok] {plural(counts.deleted, 'deleted dataset')}, with history")
            console.print(f"[ok] {plural(counts.lineage_edges, 'lineage edge')}")
        if "reference" not in codes:
            console.print("[ok] All references resolved")
        if report.hash is not None and not codes & _INTEGRITY_CODES:
            console.print("[ok] Counts and hashes match")
    listed, _ = few(report.problems, _MAX_LISTED)
    for problem in listed:
        status = "error" if problem.severity == "error" else "warn"
        print_status(console, status, str(problem))
    more = report.errors + report.warnings - len(listed)
    if more:
        console.print(f"... and {plural(more, 'more problem')}; --json lists more.")
    if report.errors and codes == {"reference"}:
        console.print(f"To import it anyway: lumos import {report.file} --allow-dangling")
    elif not report.valid:
        console.print("Write another one with: lumos export FILE")
    verdict = "valid" if report.valid else "not valid"
    problems = f"{plural(report.errors, 'error')}, {plural(report.warnings, 'warning')}"
    console.print(f"{report.file} is {verdict}: {problems}.")
