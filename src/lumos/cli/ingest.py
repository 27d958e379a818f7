"""lumos ingest"""

from heapq import nsmallest
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.options import (
    AsJson,
    CommonOptions,
    ConfigFile,
    NoAcceptRemovals,
    Paths,
    StorePath,
    exit_by_verdict,
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
from lumos.cli.schema_text import print_changes
from lumos.cli.screen import Table, stdout, steps
from lumos.cli.text import Names, is_quiet, print_problem
from lumos.rendering.text import join_names, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lumos.catalogs.reports import PublishReport
    from lumos.discovery.reports import DatasetReport, IngestReport, Measurement

_MAX_DATASETS = 50
_MAX_MISSING = 3
# The maximum number of affected datasets listed for one change.
_MAX_AFFECTED = 5
_UNKNOWN_READERS = (
    "Readers of this data are unknown. Record SQL, dbt or OpenLineage with: "
    "lumos lineage ingest PATH"
)
# Events that are reported even if no field changed.
_REPORTED_EVENTS = frozenset(("METADATA_CHANGED", "RESTORED", "RENAMED", "MERGED"))


app = typer.Typer()


@app.command(
    epilog="Examples:\n\n"
    "lumos ingest ./lake\n\n"
    "lumos ingest --config sources.yaml\n\n"
    "lumos ingest --exit-code"
)
def ingest(
    paths: Paths = None,
    config: ConfigFile = None,
    store: StorePath = None,
    accept_removals: Annotated[
        bool, typer.Option("--accept-removals", help="Remove datasets that are gone, however many.")
    ] = False,
    no_accept_removals: NoAcceptRemovals = False,
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
    start_spark_early(paths or (), config, short=not profile)
    options = CommonOptions(config=config, store=store, json=json)
    with steps() as progress:
        report = options.lumos.ingest(
            *(paths or ()),
            accept_removals=accept_removals and not no_accept_removals,
            column_stats=column_stats,
            profile=profile,
            progress=progress,
        )
    options.print(report, _print_report, options.names, show_all=show_all)
    _print_warnings(report, options.names)
    from lumos.discovery.targets import SOURCE_FAILED
    from lumos.model.change import Verdict

    # Changes take precedence over failures: the next scan reports failures again, but not changes.
    verdict = report.verdict
    exit_by_verdict(
        exit_code=exit_code,
        strict=strict,
        is_breaking=verdict is Verdict.BREAKING,
        is_undetermined=verdict is Verdict.UNDETERMINED,
    )
    is_published = report.catalog is None or report.catalog.is_complete
    is_failed = any(each.code == SOURCE_FAILED for each in report.problems)
    if not report.datasets or is_failed or (strict and not is_published):
        raise typer.Exit(1)


def _print_report(report: "IngestReport", names: Names, *, show_all: bool) -> None:
    console = stdout()
    table = Table("DATASET", "FORMAT", ">FILES", ">ROWS", ">SIZE", "VERSION", "CHANGE")
    rows = fold_similar(
        report.datasets, families_of(report.suggestions), lambda each: each.urn, show_all=show_all
    )
    listed, more = (list(rows), 0) if show_all else _changed_first(rows)
    names.look_up(each.urn for each in listed if not isinstance(each, DatasetFamily))
    for dataset in listed:
        if isinstance(dataset, DatasetFamily):
            table.add(dataset.title, "", "", "", "", "", "--all shows them")
            continue
        table.add(
            names(dataset.urn),
            dataset.format or "",
            *format_statistics(dataset),
            _versions(dataset),
            dataset.change,
        )
    if report.datasets:
        console.print(table)
        if more:
            console.print(f"... and {more:,} more datasets; lumos list shows them all.")
        console.print()
    for dataset in report.datasets:
        if dataset.changes or _REPORTED_EVENTS.intersection(dataset.events):
            console.print(names(dataset.urn), style="bold", end="  ")
            console.print(_versions(dataset))
            if not dataset.changes:
                console.print(f"  {names(dataset.summary)}")
            print_changes(
                dataset.changes,
                dataset.affected,
                limit=_MAX_AFFECTED,
                more_command=f"lumos history {names(dataset.urn)}",
            )
            console.print()
    for split in report.splits:
        console.print(names(split.urn), style="bold", end="  ")
        console.print(names(split.summary))
    if report.splits:
        console.print()
    affected_by_removed = {each.urn: each.affected for each in report.gone}
    names.look_up(report.missing)
    for urn in report.missing:
        console.print(f"gone  {names(urn)}")
        print_changes(
            (),
            affected_by_removed.get(urn),
            limit=_MAX_AFFECTED,
            more_command=f"lumos changes {names(urn)} --json",
        )
    summary = report.summary
    scanned = format_scope(summary.files_listed, summary.tables)
    read = summary.files_read + summary.tables_read
    files = f"{scanned}, {read:,} read, in " if scanned else ""
    console.print(
        f"{plural(len(report.datasets), 'dataset')}: {summary.datasets_new} new, "
        f"{summary.datasets_changed} changed, {summary.datasets_unchanged} unchanged, "
        f"{summary.datasets_missing} missing; "
        f"{plural(summary.breaking_changes, 'breaking change')}. {files}{summary.seconds:.1f} s."
    )
    if summary.breaking_changes > len(report.missing) and not report.affected:
        console.print(_UNKNOWN_READERS)
    print_skipped(summary.files_skipped)
    for each in report.measured:
        console.print(_profile_text(each, names))
    if report.catalog is not None:
        console.print(_publish_text(report.catalog))
    print_suggestions(report.suggestions)


def _changed_first(
    rows: "Iterator[DatasetReport | DatasetFamily]",
) -> "tuple[list[DatasetReport | DatasetFamily], int]":
    """The rows to show, and the number of the others; of many rows, those that changed are first.

    Not all rows are in memory at once.
    """
    listed = list(islice(rows, _MAX_DATASETS + 1))
    if len(listed) <= _MAX_DATASETS:
        return listed, 0
    numbers = count()
    numbered = zip(chain(listed, rows), numbers, strict=False)
    first = nsmallest(
        _MAX_DATASETS + 1,
        numbered,
        key=lambda row: not isinstance(row[0], DatasetFamily) and row[0].change == "unchanged",
    )
    shown, total = [row for row, _ in first], next(numbers)
    # A single other row is shown as well.
    return (shown, 0) if total == len(shown) else (shown[:-1], total - len(shown) + 1)


def _profile_text(measured: "Measurement", names: Names) -> str:
    share = measured.completeness
    completeness = "" if share is None else f", {share:.2%} complete"
    rows = plural(measured.rows, "row")
    return f"profiled  {names(measured.urn)}: {rows}{completeness}, {measured.seconds:.1f} s"


def _publish_text(catalog: "PublishReport") -> str:
    hidden = f", {catalog.hidden:,} hidden" if catalog.hidden else ""
    return f"Published {plural(catalog.published, 'dataset')} to {catalog.kind}{hidden}."


def _versions(dataset: "DatasetReport") -> str:
    versioning = dataset.versioning
    return f"{versioning.cloud_version} {versioning.schema_version}" if versioning else ""


def _print_warnings(report: "IngestReport", names: Names) -> None:
    if not report.datasets:
        print_nothing_found(report.roots)
    print_problems(report.problems)
    if report.held and not is_quiet():
        names.look_up(report.held)
        listed = join_names([names(urn) for urn in report.held], _MAX_MISSING)
        is_one = len(report.held) == 1
        print_problem(
            f"{plural(len(report.held), 'dataset')} could not be found: {listed}. Too much is "
            "missing or unreadable to be sure, so nothing was removed. Check the source; if "
            f"{'it is' if is_one else 'they are'} really gone, run again with --accept-removals."
        )
