"""lumos validate"""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.options import (
    AsJson,
    ConfigFile,
    Snapshot,
    earlier_options,
    lumos_of,
    print_json,
)

if TYPE_CHECKING:
    from lumos.snapshots.reports import ValidateReport

_MOST: Final = 50
INVALID: Final = 1


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(
        epilog="Examples:\n\nlumos validate backup.json\n\nlumos validate estate.parquet --spark",
        cls=earlier_options(first=("--input", "-i")),
    )(validate)


def validate(
    file: Snapshot,
    spark: Annotated[
        bool, typer.Option("--spark", help="Check a Parquet snapshot on Spark.")
    ] = False,
    config: ConfigFile = None,
    json: AsJson = False,
) -> None:
    """Check a snapshot: format, hashes, counts and references.

    Every problem is listed with its position in the file. Exits with 1 if there is an error.
    """
    from lumos.cli.screen import steps

    with steps() as progress:
        progress(f"checking {file}")
        report = lumos_of(config).snapshot.validate(file, spark=spark)
    if json:
        print_json(report)
    else:
        _show(report)
    if not report.valid:
        raise typer.Exit(INVALID)


def _show(report: "ValidateReport") -> None:
    from lumos.cli.screen import plural, stdout
    from lumos.schemas.wording import few

    console = stdout()
    codes = {problem.code for problem in report.problems}
    if report.scope is not None:
        counts = report.counts
        failed = {problem.code for problem in report.problems if problem.severity == "error"}
        if not failed & _INCOMPLETE:
            console.print(f"[ok] {plural(counts.datasets, 'dataset')}")
            console.print(f"[ok] {plural(counts.lineage_edges, 'lineage edge')}")
        if "reference" not in codes:
            console.print("[ok] All references resolved")
        if report.hash is not None and not codes & _UNSEALED:
            console.print("[ok] Counts and hashes match")
    shown, _ = few(report.problems, _MOST)
    for problem in shown:
        mark, style = ("error", "bold red") if problem.severity == "error" else ("warn", "yellow")
        console.print(f"[{mark}]", style=style, end=" ")
        console.print(str(problem))
    rest = report.errors + report.warnings - len(shown)
    if rest:
        console.print(f"... and {plural(rest, 'more problem')}; --json lists more.")
    if report.errors and codes == {"reference"}:
        console.print(f"To import it anyway: lumos import {report.file} --allow-dangling")
    verdict = "valid" if report.valid else "not valid"
    problems = f"{plural(report.errors, 'error')}, {plural(report.warnings, 'warning')}"
    console.print(f"{report.file} is {verdict}: {problems}.")


# Problems after which nobody can say that all has been counted.
_INCOMPLETE: Final = frozenset({"count", "truncated", "too_large"})
# Problems after which nobody can say that a snapshot is as it was written.
_UNSEALED: Final = frozenset({"hash", "count", "truncated", "format", "duplicate", "order"})
