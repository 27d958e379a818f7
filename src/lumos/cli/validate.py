"""lumos validate"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.options import AsJson, ConfigFile, lumos_of, print_json

if TYPE_CHECKING:
    from lumos.engine.snapshots.reports import ValidateReport

_MOST: Final = 50
INVALID: Final = 1


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(
        epilog="Examples:\n\n"
        "lumos validate --input backup.json\n\n"
        "lumos validate --input estate.parquet --spark"
    )(validate)


def validate(
    input: Annotated[
        Path,
        typer.Option("--input", "-i", metavar="FILE", help="The snapshot.", show_default=False),
    ],
    spark: Annotated[
        bool, typer.Option("--spark", help="Check a Parquet snapshot on Spark.")
    ] = False,
    config: ConfigFile = None,
    json: AsJson = False,
) -> None:
    """Check that a snapshot is whole and sound: format, hashes, counts, references.

    Every problem is told with its place in the file. Exit code 1 where there is an error.
    """
    from lumos.cli.screen import steps

    with steps() as announce:
        announce(f"checking {input}")
        report = lumos_of(config).snapshot.validate(input, spark=spark)
    if json:
        print_json(report)
    else:
        _show(report)
    if not report.valid:
        raise typer.Exit(INVALID)


def _show(report: "ValidateReport") -> None:
    from lumos.cli.screen import plural, stdout

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
    for problem in report.problems[:_MOST]:
        mark, style = ("error", "bold red") if problem.severity == "error" else ("warn", "yellow")
        console.print(f"[{mark}]", style=style, end=" ")
        console.print(str(problem))
    rest = report.errors + report.warnings - min(len(report.problems), _MOST)
    if rest:
        console.print(f"... and {plural(rest, 'more problem')}; --json lists more.")
    verdict = "valid" if report.valid else "not valid"
    problems = f"{plural(report.errors, 'error')}, {plural(report.warnings, 'warning')}"
    console.print(f"{report.file} is {verdict}: {problems}.")


# Problems after which nobody can say that all has been counted.
_INCOMPLETE: Final = frozenset({"count", "truncated", "too_large"})
# Problems after which nobody can say that a snapshot is as it was written.
_UNSEALED: Final = frozenset({"hash", "count", "truncated", "format", "duplicate", "order"})
