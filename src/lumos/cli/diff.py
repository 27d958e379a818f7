"""lumos diff"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from lumos.cli.options import (
    BREAKING,
    STDOUT,
    CommonOptions,
    ReportFile,
    accept_old_options,
    argument,
    with_options,
    write,
)
from lumos.cli.schema_text import CHANGE_LABELS
from lumos.cli.screen import Table, stdout, steps
from lumos.cli.text import Names
from lumos.rendering.text import plural, shorten

if TYPE_CHECKING:
    from rich.console import Console

    from lumos.snapshots.format.differences import Difference
    from lumos.snapshots.reports import SnapshotDiffReport, SparkDiffReport

DIFFERENT: Final = 3
_MAX_LISTED: Final = 200
_MAX_VALUE_LENGTH: Final = 80
_MAX_NAMES: Final = 4
# The order of aspects in the output; other aspects follow.
_ASPECT_ORDER: Final = (
    "entry", "schema", "lineage", "ownership", "documentation", "governance", "properties",
    "quality",
)  # fmt: skip
_MEASURED_ASPECTS: Final = ("statistics", "timestamps", "usage", "runs")
_MEASURED_QUALITY: Final = ("profile.", "measured_at", "freshness")
# The key in a path such as profile.columns[amount].distinct.
_KEY_IN_BRACKETS: Final = re.compile(r"\[.*\]")
_ASPECT_LABELS: Final = {"raw": "extras"}
# The same labels as in other commands; the JSON report has `non-breaking`.
_IMPACT_LABELS: Final = {"breaking": "BREAKING", "non-breaking": "compatible"}
_STYLES: Final = {"breaking": "red", "non-breaking": "", "informational": "dim"}


app = typer.Typer()


@app.command(
    epilog="Examples:\n\n"
    "lumos diff yesterday.json today.json\n\n"
    "lumos diff datahub openmetadata\n\n"
    "lumos diff backup.json local --aspect schema --aspect cost\n\n"
    "lumos diff old.parquet new.parquet --spark differences",
    cls=accept_old_options(first=("--source",), last=("--target",)),
)
@with_options
def diff(
    options: CommonOptions,
    source: Annotated[
        str,
        argument("A", "A snapshot, or a catalog: local, a configured platform, or KIND:ADDRESS."),
    ],
    target: Annotated[str, argument("B", "The snapshot or catalog to compare with.")],
    aspect: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ASPECT",
            help="Compare only this aspect. Repeatable. Default: schema, lineage, ownership, "
            "documentation, governance, quality.",
        ),
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The mapping of names that lumos migrate used."),
    ] = None,
    spark: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Compare two Parquet snapshots on Spark, and write the differences to this new "
            "folder.",
        ),
    ] = None,
    output: ReportFile = None,
) -> None:
    """Compare two snapshots or platforms, and show which differences are breaking.

    Exits with 0 if nothing differs, 3 if something does, and 10 if a difference is breaking.
    """
    from lumos.model.json_codec import to_json

    if spark is not None and (mapping is not None or output is not None):
        raise typer.BadParameter("--spark takes neither --mapping nor --output")
    snapshots = options.lumos.snapshot
    if spark is not None:
        with steps() as progress:
            progress("comparing on Spark")
            spark_report = snapshots.diff_on_spark(source, target, to=spark, aspects=aspect or ())
        options.print(spark_report, _print_spark_report)
        is_different = spark_report.added or spark_report.removed or spark_report.changed
        raise typer.Exit(BREAKING if spark_report.breaking else DIFFERENT if is_different else 0)
    with steps() as progress:
        report = snapshots.diff(
            source, target, aspects=aspect or (), mapping=mapping, progress=progress
        )
    if output is not None and output != STDOUT:
        write(to_json(report, indent=2).decode() + "\n", Path(output))
    options.json |= output == STDOUT
    options.print(report, _print_report, options.names, aspects=aspect or ())
    if report.summary.breaking:
        raise typer.Exit(BREAKING)
    if report.summary.differences:
        raise typer.Exit(DIFFERENT)


def _print_report(report: "SnapshotDiffReport", names: Names, *, aspects: Sequence[str]) -> None:
    console = stdout()
    measured: list[Difference] = []
    others: list[Difference] = []
    for each in report.differences:
        is_summarized = each.aspect not in aspects and not names.verbose and _is_measurement(each)
        (measured if is_summarized else others).append(each)
    listed = sorted(others, key=lambda each: _rank(each.aspect))[:_MAX_LISTED]
    entries: dict[tuple[str, str], list[Difference]] = {}
    for each in listed:
        entries.setdefault((each.kind, each.key), []).append(each)
    names.look_up(each.key for each in listed)
    names.look_up(each.path for each in listed)
    for (kind, key), group in entries.items():
        console.print(names(key) if kind == "dataset" else f"{kind} {key}", style="bold")
        console.print(_differences_table(group, names))
    summary = report.summary
    if more := summary.differences - len(listed) - len(measured):
        console.print(f"... and {plural(more, 'more difference')}; --json lists more.")
    if measured:
        console.print(_summarize_measurements(measured))
    if listed or measured:
        console.print()
    if not summary.differences:
        datasets = plural(report.datasets.source, "dataset")
        edges = plural(report.lineage_edges.source, "lineage edge")
        console.print(f"Nothing differs in {datasets} and {edges}.")
        return
    _print_missing(console, report)
    console.print(
        f"{plural(summary.differences, 'difference')} in "
        f"{plural(summary.entries, 'entry', 'entries')}: {summary.breaking:,} "
        f"breaking, {summary.non_breaking:,} compatible, {summary.informational:,} informational."
    )


def _rank(aspect: str) -> int:
    return _ASPECT_ORDER.index(aspect) if aspect in _ASPECT_ORDER else len(_ASPECT_ORDER)


def _is_measurement(difference: "Difference") -> bool:
    """Whether a difference is only about measurements: rows, sizes, times, profiles."""
    if difference.aspect == "quality":
        return difference.path.startswith(_MEASURED_QUALITY)
    return difference.aspect in _MEASURED_ASPECTS


def _summarize_measurements(measured: "Sequence[Difference]") -> str:
    entries = plural(len({(each.kind, each.key) for each in measured}), "dataset")
    parts = dict.fromkeys(
        _KEY_IN_BRACKETS.sub("", each.path).rpartition(".")[2] for each in measured
    )
    value_names = [each.replace("_", " ") for each in parts if each]
    listed_names = ", ".join(value_names[:_MAX_NAMES]) + (
        ", ..." if len(value_names) > _MAX_NAMES else ""
    )
    return (
        f"Measurements of {entries} differ ({plural(len(measured), 'value')}: {listed_names}); "
        "--verbose lists them."
    )


def _print_missing(console: "Console", report: "SnapshotDiffReport") -> None:
    """Print the numbers of datasets and edges, and the tags, that the target lacks."""
    for count, noun in ((report.datasets, "dataset"), (report.lineage_edges, "lineage edge")):
        if missing_count := count.source - count.target:
            missing = f"{missing_count:,} of {plural(count.source, noun)}"
            verb = "is" if missing_count == 1 else "are"
            console.print(f"{missing} of {report.source} {verb} not in {report.target}.")
    if tags := report.missing_tags:
        console.print(f"Tags of {report.source} that {report.target} lacks: {', '.join(tags)}.")


def _print_spark_report(report: "SparkDiffReport") -> None:
    differing = plural(report.added + report.removed + report.changed, "dataset")
    stdout().print(
        f"{differing}: {report.added:,} added, {report.removed:,} removed, {report.changed:,} "
        f"changed; {report.breaking:,} breaking, {report.non_breaking:,} compatible, "
        f"{report.informational:,} informational. Written to {report.folder}."
    )


def _differences_table(differences: "list[Difference]", names: Names) -> Table:
    table = Table("", "", "", "", "", widths=(15, 10, 24, 30))
    for each in differences:
        entry_text = f"(whole {each.kind})" if each.aspect == "entry" else ""
        aspect = "" if each.aspect == "entry" else _ASPECT_LABELS.get(each.aspect, each.aspect)
        values = " -> ".join(
            _value_text(value) for value in (each.before, each.after) if value is not None
        )
        table.add(
            f"  {aspect}",
            CHANGE_LABELS.get(each.change, each.change),
            names(each.path) or entry_text,
            values or _value_text("; ".join(each.notes)),
            _IMPACT_LABELS.get(each.impact, each.impact),
            style=_STYLES[each.impact],
        )
    return table


def _value_text(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return shorten(text, _MAX_VALUE_LENGTH)
