"""lumos explain"""

from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.options import CommonOptions, argument, with_options
from lumos.cli.scan_text import print_suggestions
from lumos.cli.screen import Table, stdout
from lumos.cli.text import Names
from lumos.rendering.text import format_number, format_time, plural

if TYPE_CHECKING:
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


app = typer.Typer()


@app.command(
    epilog="Examples:\n\nlumos explain lake/events/dt=2024-01-01/part-0.parquet\n\n"
    "lumos explain events"
)
@with_options
def explain(
    options: CommonOptions,
    path: Annotated[
        str,
        argument(
            "PATH|DATASET", "A file or folder, its URL in a store, or a dataset by name or URN."
        ),
    ],
) -> None:
    """Explain which dataset a file or folder belongs to, by which rule, and why.

    Shows the decision of the last scan; files that are newer are examined now. An argument that is
    not a path is treated as the name of a dataset.
    """
    options.print(options.lumos.explain(path), _print_report, options.names)


def _print_report(report: "ExplainReport", names: Names) -> None:
    console = stdout()
    console.print(report.path, style="bold")
    details = Table("", "")
    if report.kind == "file" and report.verdict in _VERDICTS:
        code = f" ({report.code})" if report.code else ""
        details.add(_VERDICTS[report.verdict], f"{report.reason}{code}")
    names.look_up(each.urn for each in report.datasets)
    for dataset in report.datasets:
        _add_dataset(details, report, dataset, names)
    if report.partitions:
        values = (
            each.value if each.key.startswith("{") else f"{each.key}={each.value}"
            for each in report.partitions
        )
        details.add("partition", "/".join(values))
    if report.shape is not None:
        drift = "differs from the dataset's (drift)"
        details.add("schema", drift if report.drifts else "same as the dataset's")
    if report.kind == "file" and report.verdict == "dataset" and report.code:
        details.add("remark", report.code)
    for each in report.others:
        files = f"{plural(each.files, 'file')}: " if each.files else ""
        details.add("no dataset", f"{files}{each.reason}")
    if report.kind == "folder" and not report.datasets and not report.others:
        details.add("no dataset", "it contains no data files")
    if report.scanned_at is None:
        details.add("decided", f"now, by examining {report.root}")
    else:
        new = "; the file is new since then and would be added" if report.is_new else ""
        details.add("decided", f"by the scan of {format_time(report.scanned_at)} UTC{new}")
    console.print(details)
    print_suggestions(report.suggestions)


def _add_dataset(
    details: Table, report: "ExplainReport", dataset: "ExplainedDataset", names: Names
) -> None:
    relation = "belongs to" if report.kind == "file" else "contains"
    details.add(relation, names(dataset.urn))
    details.add("because", f"{dataset.reason} (rule: {dataset.rule})")
    if report.kind == "folder":
        total = plural(dataset.files, "file")
        count = "all" if dataset.files == dataset.files_here else format_number(dataset.files_here)
        details.add("files", f"{count} of its {total}, {dataset.format}")
