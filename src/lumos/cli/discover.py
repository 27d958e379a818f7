"""lumos discover"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.options import (
    AsJson,
    CommonOptions,
    ConfigFile,
    Force,
    Paths,
    accept_old_options,
    local_path,
    output_option,
    start_spark_early,
)
from lumos.cli.scan_text import (
    DatasetFamily,
    ShowAll,
    families_of,
    fold_similar,
    format_scope,
    format_statistics,
    print_nothing_found,
    print_problems,
    print_skipped,
    print_suggestions,
)
from lumos.cli.screen import Table, stdout, steps
from lumos.rendering.text import format_number, plural

if TYPE_CHECKING:
    from lumos.discovery.reports import DiscoverReport


app = typer.Typer()


@app.command(
    epilog="Example: lumos discover s3://my-lake/raw -o sources.yaml",
    cls=accept_old_options(write_config="--output"),
)
def discover(
    paths: Paths = None,
    output: Annotated[
        Path | None,
        output_option(
            "Write a configuration with the sources and datasets that were found.",
            callback=local_path,
        ),
    ] = None,
    force: Force = False,
    config: ConfigFile = None,
    show_all: ShowAll = False,
    json: AsJson = False,
) -> None:
    """Show which datasets a scan would find, without recording anything.

    Scans the given paths, or else the configured sources.
    """
    start_spark_early(paths or (), config)
    options = CommonOptions(config=config, json=json)
    with steps() as progress:
        report = options.lumos.discover(
            *(paths or ()), write_config=output, force=force, progress=progress
        )
    options.print(report, _print_report, show_all=show_all)
    if not report.datasets:
        print_nothing_found(report.roots)
    print_problems(report.problems)
    if not report.datasets:
        raise typer.Exit(1)


def _print_report(report: "DiscoverReport", *, show_all: bool) -> None:
    console = stdout()
    table = Table("DATASET", "FORMAT", ">FILES", ">ROWS", ">SIZE", ">COLUMNS", "PARTITIONS")
    for dataset in fold_similar(
        report.datasets, families_of(report.suggestions), lambda each: each.urn, show_all=show_all
    ):
        if isinstance(dataset, DatasetFamily):
            table.add(dataset.title, "", "", "", "", "", "--all shows them")
            continue
        location = dataset.location
        table.add(
            location.uri if location else dataset.urn,
            dataset.format or "",
            *format_statistics(dataset),
            format_number(len(dataset.schema.fields)),
            (location.partitioning if location else None) or "",
        )
    if report.datasets:
        console.print(table)
        console.print()
    summary = report.summary
    scope = format_scope(summary.files_listed, summary.tables)
    files = f" in {scope}" if scope else ""
    console.print(
        f"{plural(summary.datasets, 'dataset')}{files}, {summary.seconds:.1f} s. "
        "Nothing was recorded."
    )
    print_skipped(summary.files_skipped)
    print_suggestions(report.suggestions)
    if report.config:
        console.print(f"Wrote {report.config}. Next: lumos ingest --config {report.config}")
