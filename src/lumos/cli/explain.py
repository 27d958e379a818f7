"""lumos explain"""

from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.options import AsJson, ConfigFile, StorePath, lumos_of, print_json
from lumos.cli.similar import print_suggestions

if TYPE_CHECKING:
    from rich.table import Table

    from lumos.engine.reports import ExplainedDataset, ExplainReport

_VERDICTS = {
    "hidden": "is passed over",
    "excluded": "is passed over",
    "not_data": "is no data",
    "accompanies": "is no data",
    "unreadable": "cannot be read",
    "log": "is no data",
    "not_live": "is no data now",
}


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(epilog="Example: lumos explain lake/events/dt=2024-01-01/part-0.parquet")(explain)


def explain(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH", help="A file, a folder or an address in a store.", show_default=False
        ),
    ],
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Say what was decided about a file or folder, by which rule, and why.

    Tells what the last scan of the place decided. Where none saw it, the folder is looked at now.
    """
    report = lumos_of(config, store).explain(path)
    if json:
        print_json(report)
    else:
        _print(report)


def _print(report: "ExplainReport") -> None:
    from lumos.cli.screen import plural, stdout, table, when

    console = stdout()
    console.print(report.path, style="bold")
    facts = table("", "")
    facts.show_header = False
    if report.kind == "file" and report.verdict in _VERDICTS:
        code = f" ({report.code})" if report.code else ""
        facts.add_row(_VERDICTS[report.verdict], f"{report.reason}{code}")
    for dataset in report.datasets:
        _add_dataset(facts, report, dataset)
    if report.partitions:
        values = (
            each.value if each.key.startswith("{") else f"{each.key}={each.value}"
            for each in report.partitions
        )
        facts.add_row("partition", "/".join(values))
    if report.shape is not None:
        other = "other than the dataset's: drift"
        facts.add_row("schema", other if report.drifts else "that of the dataset")
    if report.kind == "file" and report.verdict == "dataset" and report.code:
        facts.add_row("remark", report.code)
    for each in report.others:
        counted = f"{plural(each.files, 'file')}: " if each.files else ""
        facts.add_row("no dataset", f"{counted}{each.reason}")
    if report.kind == "folder" and not report.datasets and not report.others:
        facts.add_row("no dataset", "no file in it may be data")
    if report.scanned_at is None:
        facts.add_row("decided", f"now, by looking at {report.root}")
    else:
        new = "; the file is new since, and would join" if report.is_new else ""
        facts.add_row("decided", f"by the scan of {when(report.scanned_at)} UTC{new}")
    console.print(facts)
    print_suggestions(report.suggestions)


def _add_dataset(facts: "Table", report: "ExplainReport", dataset: "ExplainedDataset") -> None:
    from lumos.cli.screen import number, plural

    verb = "belongs to" if report.kind == "file" else "holds"
    facts.add_row(verb, dataset.urn)
    facts.add_row("because", f"{dataset.reason} (rule: {dataset.rule})")
    if report.kind == "folder":
        whole = plural(dataset.files, "file")
        here = "all" if dataset.files == dataset.files_here else number(dataset.files_here)
        facts.add_row("files", f"{here} of its {whole}, {dataset.format}")
