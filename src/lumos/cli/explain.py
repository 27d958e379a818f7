"""lumos explain"""

from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.names import Names
from lumos.cli.options import (
    CommonOptions,
    common_options,
    print_json,
)
from lumos.cli.similar import print_suggestions

if TYPE_CHECKING:
    from rich.table import Table

    from lumos.discovery.reports import ExplainedDataset, ExplainReport

_VERDICTS = {
    "hidden": "skipped",
    "excluded": "skipped",
    "not_data": "not data",
    "accompanies": "not data",
    "unreadable": "unreadable",
    "log": "not data",
    "not_live": "no longer data",
}


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(
        epilog="Examples:\n\nlumos explain lake/events/dt=2024-01-01/part-0.parquet\n\n"
        "lumos explain events"
    )(explain)


@common_options
def explain(
    options: CommonOptions,
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH|DATASET",
            help="A file or folder, its URL in a store, or a dataset by name or URN.",
            show_default=False,
        ),
    ],
) -> None:
    """Explain which dataset a file or folder belongs to, by which rule, and why.

    Shows the decision of the last scan. Files that no scan has seen are examined now. An argument
    that is not a path is taken as the name of a dataset.
    """
    lumos = options.lumos
    report = lumos.explain(path)
    if options.json:
        print_json(report)
    else:
        _print(report, Names(lumos, (each.urn for each in report.datasets)))


def _print(report: "ExplainReport", names: Names) -> None:
    from lumos.cli.screen import plural, stdout, table, when

    console = stdout()
    console.print(report.path, style="bold")
    facts = table("", "")
    facts.show_header = False
    if report.kind == "file" and report.verdict in _VERDICTS:
        code = f" ({report.code})" if report.code else ""
        facts.add_row(_VERDICTS[report.verdict], f"{report.reason}{code}")
    for dataset in report.datasets:
        _add_dataset(facts, report, dataset, names)
    if report.partitions:
        values = (
            each.value if each.key.startswith("{") else f"{each.key}={each.value}"
            for each in report.partitions
        )
        facts.add_row("partition", "/".join(values))
    if report.shape is not None:
        other = "differs from the dataset's (drift)"
        facts.add_row("schema", other if report.drifts else "same as the dataset's")
    if report.kind == "file" and report.verdict == "dataset" and report.code:
        facts.add_row("remark", report.code)
    for each in report.others:
        counted = f"{plural(each.files, 'file')}: " if each.files else ""
        facts.add_row("no dataset", f"{counted}{each.reason}")
    if report.kind == "folder" and not report.datasets and not report.others:
        facts.add_row("no dataset", "it contains no data files")
    if report.scanned_at is None:
        facts.add_row("decided", f"now, by examining {report.root}")
    else:
        new = "; the file is new since then and would be added" if report.is_new else ""
        facts.add_row("decided", f"by the scan of {when(report.scanned_at)} UTC{new}")
    console.print(facts)
    print_suggestions(report.suggestions)


def _add_dataset(
    facts: "Table", report: "ExplainReport", dataset: "ExplainedDataset", names: Names
) -> None:
    from lumos.cli.screen import number, plural

    verb = "belongs to" if report.kind == "file" else "contains"
    facts.add_row(verb, names(dataset.urn))
    facts.add_row("because", f"{dataset.reason} (rule: {dataset.rule})")
    if report.kind == "folder":
        whole = plural(dataset.files, "file")
        here = "all" if dataset.files == dataset.files_here else number(dataset.files_here)
        facts.add_row("files", f"{here} of its {whole}, {dataset.format}")
