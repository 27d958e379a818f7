"""lumos discover"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.options import (
    AsJson,
    ConfigFile,
    Paths,
    earlier_options,
    local_path,
    lumos_of,
    print_json,
    start_spark_ahead,
)
from lumos.cli.similar import Folded, ShowAll, families_of, fold_similar, print_suggestions

if TYPE_CHECKING:
    from lumos.discovery.reports import DiscoverReport


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(
        epilog="Example: lumos discover s3://my-lake/raw -o sources.yaml",
        cls=earlier_options(write_config="--output"),
    )(discover)


def discover(
    paths: Paths = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write a configuration for what was found.",
            callback=local_path,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    config: ConfigFile = None,
    show_all: ShowAll = False,
    json: AsJson = False,
) -> None:
    """Show which datasets a scan would find, without recording anything.

    Scans the given paths, or else the configured sources.
    """
    from lumos.cli.ingest import complain_of, complain_of_nothing
    from lumos.cli.screen import steps

    start_spark_ahead(paths or (), config)
    lumos = lumos_of(config)
    with steps() as progress:
        report = lumos.discover(*(paths or ()), write_config=output, force=force, progress=progress)
    if json:
        print_json(report)
    else:
        _show(report, show_all=show_all)
    complain_of_nothing(report.datasets, report.roots)
    complain_of(report.problems)
    if not report.datasets:
        raise typer.Exit(1)


def _show(report: "DiscoverReport", *, show_all: bool) -> None:
    from lumos.cli.ingest import counts, print_skipped
    from lumos.cli.screen import files_and_tables, number, plural, stdout, table

    console = stdout()
    found = table("DATASET", "FORMAT", "FILES", "ROWS", "SIZE", "COLUMNS", "PARTITIONS",
                  right=("FILES", "ROWS", "SIZE", "COLUMNS"))  # fmt: skip
    for dataset in fold_similar(
        report.datasets, families_of(report.suggestions), lambda each: each.urn, show_all=show_all
    ):
        if isinstance(dataset, Folded):
            found.add_row(dataset.title, "", "", "", "", "", "--all shows them")
            continue
        location = dataset.location
        found.add_row(
            location.uri if location else dataset.urn,
            dataset.format,
            *counts(dataset),
            number(len(dataset.schema.fields)),
            (location.partitioning if location else None) or "",
        )
    if report.datasets:
        console.print(found)
        console.print()
    summary = report.summary
    looked_at = files_and_tables(summary.files_listed, summary.tables)
    files = f" in {looked_at}" if looked_at else ""
    console.print(
        f"{plural(summary.datasets, 'dataset')}{files}, {summary.seconds:.1f} s. "
        "Nothing was recorded."
    )
    print_skipped(summary.files_skipped)
    print_suggestions(report.suggestions)
    if report.config:
        console.print(f"Wrote {report.config}. Next: lumos ingest --config {report.config}")
