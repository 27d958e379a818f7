"""lumos ingest"""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.options import (
    QUIET,
    AsJson,
    ConfigFile,
    StorePath,
    lumos_of,
    print_json,
    start_spark_ahead,
)
from lumos.cli.similar import Folded, ShowAll, families_of, fold_similar, print_suggestions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lumos.engine.reports import DatasetReport, IngestReport, Measurement, TellingReport
    from lumos.model.discovery import Problem

_MOST_PROBLEMS = 20
_MOST_DATASETS = 50
# What is told though no field changed; that new data came goes without saying.
_TOLD = ("METADATA_CHANGED", "RESTORED", "RENAMED", "MERGED")


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(
        epilog="Example: lumos ingest ./lake    or, with sources in a file: "
        "lumos ingest --config sources.yaml"
    )(ingest)


def ingest(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH]...",
            help="Folders, files or addresses (s3://bucket/folder, gs://, abfss://, hdfs://, postgresql://).",
            show_default=False,
        ),
    ] = None,
    config: ConfigFile = None,
    store: StorePath = None,
    accept_removals: Annotated[
        bool, typer.Option(help="Believe that datasets are gone, however many they are.")
    ] = False,
    column_stats: Annotated[
        bool,
        typer.Option(
            "--column-stats",
            help="Also record nulls, bytes and, of numbers and times, the range of each column.",
        ),
    ] = False,
    profile: Annotated[
        bool,
        typer.Option(
            "--profile", help="Also measure the rows of what is new, changed or not measured yet."
        ),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail where a catalog could not be told of all.")
    ] = False,
    show_all: ShowAll = False,
    json: AsJson = False,
) -> None:
    """Find every dataset, record its schema, and say what changed since the last time.

    Scans the given paths, or else the sources of the configuration.

    Running it again on unchanged data opens no file and changes nothing.
    """
    from lumos.cli.screen import steps

    start_spark_ahead(paths or (), config, short=not profile)
    lumos = lumos_of(config, store)
    with steps() as announce:
        report = lumos.ingest(
            *(paths or ()),
            accept_removals=accept_removals,
            column_stats=column_stats,
            profile=profile,
            announce=announce,
        )
    if json:
        print_json(report)
    else:
        _show(report, show_all=show_all)
    _complain(report)
    from lumos.engine.scanning import SOURCE_FAILED

    is_told = report.catalog is None or report.catalog.is_complete
    is_failed = any(each.code == SOURCE_FAILED for each in report.problems)
    if not report.datasets or is_failed or (strict and not is_told):
        raise typer.Exit(1)


def _show(report: "IngestReport", *, show_all: bool) -> None:
    from lumos.cli.screen import changes_table, files_and_tables, plural, stdout, table

    console = stdout()
    found = table("DATASET", "FORMAT", "FILES", "ROWS", "SIZE", "VERSION", "CHANGE",
                  right=("FILES", "ROWS", "SIZE"))  # fmt: skip
    rows = fold_similar(
        report.datasets, families_of(report.suggestions), lambda each: each.urn, show_all=show_all
    )
    shown = rows
    if len(rows) > _MOST_DATASETS and not show_all:
        news_first = sorted(
            rows, key=lambda each: not isinstance(each, Folded) and each.change == "unchanged"
        )
        shown = news_first[:_MOST_DATASETS]
    for dataset in shown:
        if isinstance(dataset, Folded):
            found.add_row(dataset.title, "", "", "", "", "", "--all shows them")
            continue
        found.add_row(
            dataset.name,
            dataset.format,
            *counts(dataset),
            _versions(dataset),
            dataset.change,
        )
    if report.datasets:
        console.print(found)
        if rest := len(rows) - len(shown):
            console.print(f"... and {plural(rest, 'more dataset')}; lumos list shows them all.")
        console.print()
    for dataset in report.datasets:
        if dataset.changes or dataset.event in _TOLD:
            console.print(dataset.urn, style="bold", end="  ")
            console.print(_versions(dataset))
            console.print(
                changes_table(dataset.changes) if dataset.changes else f"  {dataset.summary}"
            )
            console.print()
    for split in report.splits:
        console.print(split.urn, style="bold", end="  ")
        console.print(split.summary)
    if report.splits:
        console.print()
    for urn in report.missing:
        console.print(f"gone  {urn}")
    summary = report.summary
    breaking = sum(
        change.consumer == "breaking" for dataset in report.datasets for change in dataset.changes
    )
    looked_at = files_and_tables(summary.files_listed, summary.tables)
    read = summary.files_read + summary.tables_read
    files = f"{looked_at}, {read:,} read, in " if looked_at else ""
    console.print(
        f"{plural(len(report.datasets), 'dataset')}: {summary.datasets_new} new, "
        f"{summary.datasets_changed} changed, {summary.datasets_unchanged} unchanged, "
        f"{summary.datasets_missing} missing; {plural(breaking, 'breaking change')}. "
        f"{files}{summary.seconds:.1f} s."
    )
    print_skipped(summary.files_skipped)
    for each in report.measured:
        console.print(_measured(each))
    if report.catalog is not None:
        console.print(_told(report.catalog))
    print_suggestions(report.suggestions)


def _measured(each: "Measurement") -> str:
    from lumos.cli.screen import plural

    whole = "" if each.completeness is None else f", {each.completeness:.2%} complete"
    return f"profiled  {each.urn}: {plural(each.rows, 'row')}{whole}, {each.seconds:.1f} s"


def _told(catalog: "TellingReport") -> str:
    from lumos.cli.screen import plural

    hidden = f", {catalog.hidden:,} hidden" if catalog.hidden else ""
    return f"{catalog.kind}: {plural(catalog.told, 'dataset')} told{hidden}."


def print_skipped(files: int) -> None:
    """Says how many files belong to no dataset."""
    from lumos.cli.screen import plural, stdout

    if files:
        were = "was" if files == 1 else "were"
        stdout().print(
            f"{plural(files, 'file')} {were} skipped as not data; lumos explain PATH says why."
        )


def counts(dataset: "DatasetReport") -> tuple[str, str, str]:
    """Files, rows and bytes; tables have no files, and views nothing of their own."""
    from lumos.cli.screen import file_count, number, size

    facts = dataset.statistics
    if facts is None:
        return "?", "?", "?"
    if dataset.format == "view":
        return "", "", ""
    return (
        file_count(facts.file_count, dataset.format),
        number(facts.row_count, exact=facts.row_count_exact),
        size(facts.total_size_bytes, exact=facts.total_size_exact),
    )


def _versions(dataset: "DatasetReport") -> str:
    versioning = dataset.versioning
    return f"{versioning.cloud_version} {versioning.schema_version}" if versioning else ""


def complain_of_nothing(datasets: "Sequence[object]", roots: "Sequence[str]") -> None:
    """Says so where no dataset was found at all."""
    from lumos.cli.screen import stderr

    if not datasets:
        wanted = (
            "Tables, views and collections are looked for; check the names, the patterns and the "
            "problems."
            if all(root.startswith(("postgresql://", "mongodb")) for root in roots)
            else "Parquet, Avro, ORC, CSV and JSON files and Delta, Iceberg and Hudi tables are "
            "looked for; check the path, the patterns and the problems."
        )
        stderr().print(f"lumos: No dataset was found in {', '.join(roots)}. {wanted}")


def complain_of(problems: "Sequence[Problem]") -> None:
    """Names the first problems, unless nobody wants to hear of them."""
    from lumos.cli.screen import plural, stderr

    if os.environ.get(QUIET):
        return
    console = stderr()
    for problem in problems[:_MOST_PROBLEMS]:
        word = "remark" if problem.remark else "problem"
        console.print(f"{word:<7}  {problem.path}: {problem.reason} ({problem.code})")
    rest = len(problems) - _MOST_PROBLEMS
    if rest > 0:
        console.print(f"... and {plural(rest, 'more problem')}; --json lists them.")


def _complain(report: "IngestReport") -> None:
    from lumos.cli.screen import plural, stderr

    complain_of_nothing(report.datasets, report.roots)
    complain_of(report.problems)
    if report.held and not os.environ.get(QUIET):
        stderr().print(
            f"{plural(len(report.held), 'dataset')} could not be found, but too much is missing or "
            "unreadable to believe it; nothing was removed. Check the source; if they are really "
            "gone, run again with --accept-removals."
        )
