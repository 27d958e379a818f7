"""lumos ingest"""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.lines import problem, remark, say
from lumos.cli.names import Names
from lumos.cli.options import (
    BREAKING,
    QUIET,
    UNDETERMINED,
    AsJson,
    ConfigFile,
    Paths,
    StorePath,
    lumos_of,
    print_json,
    start_spark_ahead,
)
from lumos.cli.similar import Folded, ShowAll, families_of, fold_similar, print_suggestions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lumos.catalogs.reports import PublishReport
    from lumos.discovery.reports import DatasetReport, IngestReport, Measurement
    from lumos.model.discovery import Problem

_MOST_PROBLEMS = 20
_MOST_DATASETS = 50
# Under one change.
_MOST_AFFECTED = 5
_NO_LINEAGE = (
    "Who reads this data is not known: lumos lineage ingest PATH takes in SQL, dbt or OpenLineage."
)
# What is told though no field changed; that new data came goes without saying.
_TOLD = ("METADATA_CHANGED", "RESTORED", "RENAMED", "MERGED")


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(
        epilog="Examples:\n\n"
        "lumos ingest ./lake\n\n"
        "lumos ingest --config sources.yaml\n\n"
        "lumos ingest --exit-code"
    )(ingest)


def ingest(
    paths: Paths = None,
    config: ConfigFile = None,
    store: StorePath = None,
    accept_removals: Annotated[
        bool,
        typer.Option("--accept-removals", help="Remove datasets that are gone, however many."),
    ] = False,
    keep_removals: Annotated[bool, typer.Option("--no-accept-removals", hidden=True)] = False,
    column_stats: Annotated[
        bool,
        typer.Option(
            "--column-stats",
            help="Also record nulls, bytes and ranges of each column.",
        ),
    ] = False,
    profile: Annotated[
        bool,
        typer.Option(
            "--profile", help="Also profile datasets that are new, changed or not profiled yet."
        ),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Exit with 1 if a dataset could not be published; with --exit-code also with 11 "
            "if anything is undetermined.",
        ),
    ] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 10 if anything that changed is breaking.")
    ] = False,
    show_all: ShowAll = False,
    json: AsJson = False,
) -> None:
    """Find every dataset, record its schema, and show what changed since the last scan.

    Scans the given paths, or else the configured sources. A rescan reads only new and changed
    files.
    """
    from lumos.cli.screen import steps

    start_spark_ahead(paths or (), config, short=not profile)
    lumos = lumos_of(config, store)
    with steps() as progress:
        report = lumos.ingest(
            *(paths or ()),
            accept_removals=accept_removals and not keep_removals,
            column_stats=column_stats,
            profile=profile,
            progress=progress,
        )
    if json:
        print_json(report)
    else:
        _show(report, Names(lumos), show_all=show_all)
    _complain(report)
    from lumos.discovery.targets import SOURCE_FAILED
    from lumos.model.change import Verdict

    # Before failures: the next scan finds these again, but no change a second time.
    if exit_code and report.verdict is Verdict.BREAKING:
        raise typer.Exit(BREAKING)
    if exit_code and strict and report.verdict is Verdict.UNDETERMINED:
        raise typer.Exit(UNDETERMINED)
    is_told = report.catalog is None or report.catalog.is_complete
    is_failed = any(each.code == SOURCE_FAILED for each in report.problems)
    if not report.datasets or is_failed or (strict and not is_told):
        raise typer.Exit(1)


def _show(report: "IngestReport", names: Names, *, show_all: bool) -> None:
    from lumos.cli.screen import files_and_tables, plural, print_changes, stdout, table
    from lumos.schemas.wording import few

    console = stdout()
    found = table("DATASET", "FORMAT", "FILES", "ROWS", "SIZE", "VERSION", "CHANGE",
                  right=("FILES", "ROWS", "SIZE"))  # fmt: skip
    rows = fold_similar(
        report.datasets, families_of(report.suggestions), lambda each: each.urn, show_all=show_all
    )
    shown: Sequence[DatasetReport | Folded] = rows
    rest = 0
    if len(rows) > _MOST_DATASETS and not show_all:
        news_first = sorted(
            rows, key=lambda each: not isinstance(each, Folded) and each.change == "unchanged"
        )
        shown, rest = few(news_first, _MOST_DATASETS)
    names.learn(each.urn for each in shown if not isinstance(each, Folded))
    for dataset in shown:
        if isinstance(dataset, Folded):
            found.add_row(dataset.title, "", "", "", "", "", "--all shows them")
            continue
        found.add_row(
            names(dataset.urn),
            dataset.format,
            *counts(dataset),
            _versions(dataset),
            dataset.change,
        )
    if report.datasets:
        console.print(found)
        if rest:
            console.print(f"... and {rest:,} more datasets; lumos list shows them all.")
        console.print()
    for dataset in report.datasets:
        if dataset.changes or dataset.event in _TOLD:
            console.print(names(dataset.urn), style="bold", end="  ")
            console.print(_versions(dataset))
            if not dataset.changes:
                console.print(f"  {names(dataset.summary)}")
            print_changes(
                dataset.changes,
                dataset.affected,
                most=_MOST_AFFECTED,
                rest=f"lumos history {names(dataset.urn)}",
            )
            console.print()
    for split in report.splits:
        console.print(names(split.urn), style="bold", end="  ")
        console.print(names(split.summary))
    if report.splits:
        console.print()
    gone = {each.urn: each.affected for each in report.gone}
    names.learn(report.missing)
    for urn in report.missing:
        console.print(f"gone  {names(urn)}")
        print_changes(
            (),
            gone.get(urn),
            most=_MOST_AFFECTED,
            rest=f"lumos changes {names(urn)} --json",
        )
    summary = report.summary
    looked_at = files_and_tables(summary.files_listed, summary.tables)
    read = summary.files_read + summary.tables_read
    files = f"{looked_at}, {read:,} read, in " if looked_at else ""
    console.print(
        f"{plural(len(report.datasets), 'dataset')}: {summary.datasets_new} new, "
        f"{summary.datasets_changed} changed, {summary.datasets_unchanged} unchanged, "
        f"{summary.datasets_missing} missing; "
        f"{plural(summary.breaking_changes, 'breaking change')}. {files}{summary.seconds:.1f} s."
    )
    if summary.breaking_changes > len(report.missing) and not report.affected:
        console.print(_NO_LINEAGE)
    print_skipped(summary.files_skipped)
    for each in report.measured:
        console.print(_measured(each, names))
    if report.catalog is not None:
        console.print(_published(report.catalog))
    print_suggestions(report.suggestions)


def _measured(each: "Measurement", names: Names) -> str:
    from lumos.cli.screen import plural

    whole = "" if each.completeness is None else f", {each.completeness:.2%} complete"
    return f"profiled  {names(each.urn)}: {plural(each.rows, 'row')}{whole}, {each.seconds:.1f} s"


def _published(catalog: "PublishReport") -> str:
    from lumos.cli.screen import plural

    hidden = f", {catalog.hidden:,} hidden" if catalog.hidden else ""
    return f"Published {plural(catalog.told, 'dataset')} to {catalog.kind}{hidden}."


def print_skipped(files: int) -> None:
    """Says how many files belong to no dataset."""
    from lumos.cli.screen import plural, stdout

    if files:
        were = "was" if files == 1 else "were"
        stdout().print(
            f"{plural(files, 'file')} {were} skipped as not data; lumos explain PATH shows why."
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
    if not datasets:
        wanted = (
            "Lumos finds tables, views and collections; check the names and patterns."
            if all(root.startswith(("postgresql://", "mongodb")) for root in roots)
            else "Lumos finds Parquet, Avro, ORC, CSV and JSON files and Delta, Iceberg and Hudi "
            "tables; check the path and patterns."
        )
        say(f"lumos: No dataset was found in {', '.join(roots)}. {wanted}", err=True)


def complain_of(problems: "Sequence[Problem]") -> None:
    """Names the first problems on stderr, unless --quiet was given."""
    from lumos.schemas.wording import few

    if os.environ.get(QUIET):
        return
    shown, rest = few(problems, _MOST_PROBLEMS)
    for each in shown:
        note = remark if each.remark else problem
        note(f"{each.path}: {each.reason} ({each.code})")
    if rest:
        problem(f"... and {rest:,} more; --json lists them")


def _complain(report: "IngestReport") -> None:
    from lumos.cli.screen import plural

    complain_of_nothing(report.datasets, report.roots)
    complain_of(report.problems)
    if report.held and not os.environ.get(QUIET):
        problem(
            f"{plural(len(report.held), 'dataset')} could not be found, but too much is missing or "
            "unreadable to be sure; nothing was removed. Check the source; if they are really "
            "gone, run again with --accept-removals."
        )
