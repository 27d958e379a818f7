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
    common_options,
    earlier_options,
    print_json,
)

if TYPE_CHECKING:
    from rich.console import Console

    from lumos.cli.names import Names
    from lumos.snapshots.format.differences import Difference
    from lumos.snapshots.reports import SnapshotDiffReport, SparkDiffReport

DIFFERENT: Final = 3
_MOST: Final = 200
_LONGEST_SIDE: Final = 80
_NAMED: Final = 4
# What people look for first.
_ORDER: Final = (
    "entry", "schema", "lineage", "ownership", "documentation", "governance", "quality"
)  # fmt: skip
_MEASURED: Final = ("statistics", "timestamps", "usage", "runs")
_MEASURED_QUALITY: Final = ("profile.", "measured_at", "freshness")
# The key in a path such as profile.columns[amount].distinct.
_KEYS: Final = re.compile(r"\[.*\]")
_ASPECT_WORDS: Final = {"carried": "extras"}


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(
        epilog="Examples:\n\n"
        "lumos diff yesterday.json today.json\n\n"
        "lumos diff datahub openmetadata\n\n"
        "lumos diff backup.json local --aspect schema --aspect cost\n\n"
        "lumos diff old.parquet new.parquet --spark differences",
        cls=earlier_options(first=("--source",), last=("--target",)),
    )(diff)


@common_options
def diff(
    options: CommonOptions,
    source: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="A snapshot, or a catalog: local, a configured platform, or KIND:ADDRESS.",
            show_default=False,
        ),
    ],
    target: Annotated[
        str,
        typer.Argument(
            metavar="B", help="The snapshot or catalog to compare with.", show_default=False
        ),
    ],
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
        typer.Option(metavar="FILE", help="The mapping of names that was given to lumos migrate."),
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
    from lumos.cli.forms import write
    from lumos.cli.screen import steps
    from lumos.model.json_codec import to_json

    if spark is not None and (mapping is not None or output is not None):
        raise typer.BadParameter("--spark takes neither --mapping nor --output")
    lumos = options.lumos
    snapshots = lumos.snapshot
    if spark is not None:
        with steps() as progress:
            progress("comparing on Spark")
            sums = snapshots.diff_on_spark(source, target, to=spark, aspects=aspect or ())
        if options.json:
            print_json(sums)
        else:
            _show_sums(sums)
        is_different = sums.added or sums.removed or sums.changed
        raise typer.Exit(BREAKING if sums.breaking else DIFFERENT if is_different else 0)
    with steps() as progress:
        report = snapshots.diff(
            source, target, aspects=aspect or (), mapping=mapping, progress=progress
        )
    if output is not None and output != STDOUT:
        write(to_json(report, indent=2).decode() + "\n", Path(output))
    if options.json or output == STDOUT:
        print_json(report)
    else:
        from lumos.cli.names import Names

        _show(report, Names(lumos), aspects=aspect or ())
    if report.summary.breaking:
        raise typer.Exit(BREAKING)
    if report.summary.differences:
        raise typer.Exit(DIFFERENT)


def _show(report: "SnapshotDiffReport", names: "Names", *, aspects: Sequence[str]) -> None:
    from lumos.cli.screen import plural, stdout

    console = stdout()
    measured: list[Difference] = []
    others: list[Difference] = []
    for each in report.differences:
        is_summed = each.aspect not in aspects and not names.verbose and _is_measurement(each)
        (measured if is_summed else others).append(each)
    shown = sorted(others, key=lambda each: _rank(each.aspect))[:_MOST]
    entries: dict[tuple[str, str], list[Difference]] = {}
    for each in shown:
        entries.setdefault((each.kind, each.key), []).append(each)
    names.learn(each.key for each in shown)
    names.learn(each.path for each in shown)
    for (kind, key), some in entries.items():
        console.print(names(key) if kind == "dataset" else f"{kind} {key}", style="bold")
        _show_entry(console, some, names)
    summary = report.summary
    if rest := summary.differences - len(shown) - len(measured):
        console.print(f"... and {plural(rest, 'more difference')}; --json lists more.")
    if measured:
        console.print(_measurements(measured))
    if shown or measured:
        console.print()
    if not summary.differences:
        datasets = plural(report.datasets.source, "dataset")
        edges = plural(report.lineage_edges.source, "lineage edge")
        console.print(f"Nothing differs in {datasets} and {edges}.")
        return
    _show_missing(console, report)
    differing = "1 entry" if summary.entries == 1 else f"{summary.entries:,} entries"
    console.print(
        f"{plural(summary.differences, 'difference')} in {differing}: {summary.breaking:,} "
        f"breaking, {summary.non_breaking:,} non-breaking, {summary.informational:,} informational."
    )


def _rank(aspect: str) -> int:
    return _ORDER.index(aspect) if aspect in _ORDER else len(_ORDER)


def _is_measurement(difference: "Difference") -> bool:
    """Whether it only says that data was measured again: rows, sizes, times, profiles."""
    if difference.aspect == "quality":
        return difference.path.startswith(_MEASURED_QUALITY)
    return difference.aspect in _MEASURED


def _measurements(measured: "Sequence[Difference]") -> str:
    from lumos.cli.screen import plural

    entries = plural(len({(each.kind, each.key) for each in measured}), "dataset")
    parts = dict.fromkeys(_KEYS.sub("", each.path).rpartition(".")[2] for each in measured)
    words = [each.replace("_", " ") for each in parts if each]
    named = ", ".join(words[:_NAMED]) + (", ..." if len(words) > _NAMED else "")
    return (
        f"Measurements of {entries} differ ({plural(len(measured), 'value')}: {named}); "
        "--verbose lists them."
    )


def _show_missing(console: "Console", report: "SnapshotDiffReport") -> None:
    """How much of the one side the other one lacks."""
    from lumos.cli.screen import plural

    for found, what in ((report.datasets, "dataset"), (report.lineage_edges, "lineage edge")):
        if lost := found.source - found.target:
            missing = f"{lost:,} of {plural(found.source, what)}"
            verb = "is" if lost == 1 else "are"
            console.print(f"{missing} of {report.source} {verb} not in {report.target}.")
    if tags := report.missing_tags:
        console.print(f"Tags of {report.source} that {report.target} lacks: {', '.join(tags)}.")


def _show_sums(report: "SparkDiffReport") -> None:
    from lumos.cli.screen import plural, stdout

    differing = plural(report.added + report.removed + report.changed, "dataset")
    stdout().print(
        f"{differing}: {report.added:,} added, {report.removed:,} removed, {report.changed:,} "
        f"changed; {report.breaking:,} breaking, {report.non_breaking:,} non-breaking, "
        f"{report.informational:,} informational. Written to {report.folder}."
    )


def _show_entry(console: "Console", differences: "list[Difference]", names: "Names") -> None:
    from lumos.cli.screen import CHANGE_WORDS, table

    built = table("", "", "", "", "")
    built.show_header = False
    for column, width in zip(built.columns, (15, 10, 24, 30, 0), strict=True):
        column.min_width = width
    for each in differences:
        impact = each.impact.upper() if each.impact == "breaking" else each.impact
        whole = f"(whole {each.kind})" if each.aspect == "entry" else ""
        aspect = "" if each.aspect == "entry" else _ASPECT_WORDS.get(each.aspect, each.aspect)
        change = CHANGE_WORDS.get(each.change, each.change)
        built.add_row(
            f"  {aspect}", change, names(each.path) or whole, _sides_of(each), impact,
            style=_STYLES[each.impact],
        )  # fmt: skip
    console.print(built)


_STYLES: Final = {"breaking": "red", "non-breaking": "", "informational": "dim"}


def _sides_of(difference: "Difference") -> str:
    """Both sides of a difference, or why it is one where it has none."""
    return _sides(difference.before, difference.after) or _short("; ".join(difference.notes))


def _sides(before: Any, after: Any) -> str:
    return " -> ".join(_short(side) for side in (before, after) if side is not None)


def _short(side: Any) -> str:
    text = ", ".join(map(str, side)) if isinstance(side, list | tuple) else str(side)
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_SIDE else f"{text[: _LONGEST_SIDE - 3]}..."
