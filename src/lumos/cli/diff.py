"""lumos diff"""

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from lumos.cli.options import BREAKING, AsJson, ConfigFile, StorePath, lumos_of, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from lumos.engine.snapshots.reports import Migrated, SnapshotDiffReport, SparkDiffReport
    from lumos.snapshot import Difference

DIFFERENT: Final = 3
_MOST: Final = 200
_LONGEST_SIDE: Final = 80


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(
        epilog="Examples:\n\n"
        "lumos diff --source yesterday.json --target today.json\n\n"
        "lumos diff --source datahub --target openmetadata\n\n"
        "lumos diff --source backup.json --target local --aspect schema --aspect cost\n\n"
        "lumos diff --source old.parquet --target new.parquet --spark differences"
    )(diff)


def diff(
    source: Annotated[
        str,
        typer.Option(
            metavar="A",
            help="A snapshot, or a platform: local, datahub-file:PATH, or a configured one.",
            show_default=False,
        ),
    ],
    target: Annotated[
        str, typer.Option(metavar="B", help="The same, as it is now.", show_default=False)
    ],
    aspect: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Compare only this one. Repeatable. Default: schema, lineage, ownership, "
            "documentation, governance, quality.",
        ),
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Names that are others in B, as they were given to lumos migrate."
        ),
    ] = None,
    spark: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Compare two Parquet snapshots on Spark, and write what differs into this new "
            "folder.",
        ),
    ] = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Compare two snapshots or platforms, and say what of it breaks somebody.

    Exit code 0 where nothing differs, 3 where something does, 10 where a difference is breaking.
    """
    from lumos.cli.screen import steps

    if spark is not None and mapping is not None:
        raise typer.BadParameter("--spark takes no --mapping")
    snapshots = lumos_of(config, store).snapshot
    if spark is not None:
        with steps() as announce:
            announce("comparing on Spark")
            sums = snapshots.diff_on_spark(source, target, to=spark, aspects=aspect or ())
        if json:
            print_json(sums)
        else:
            _show_sums(sums)
        is_different = sums.added or sums.removed or sums.changed
        raise typer.Exit(BREAKING if sums.breaking else DIFFERENT if is_different else 0)
    with steps() as announce:
        report = snapshots.diff(
            source, target, aspects=aspect or (), mapping=mapping, announce=announce
        )
    if json:
        print_json(report)
    else:
        _show(report)
    if report.summary.breaking:
        raise typer.Exit(BREAKING)
    if report.summary.differences:
        raise typer.Exit(DIFFERENT)


def _show(report: "SnapshotDiffReport") -> None:
    from lumos.cli.screen import plural, stdout

    console = stdout()
    shown = report.differences[:_MOST]
    for (kind, key), some in groupby(shown, key=lambda each: (each.kind, each.key)):
        console.print(key if kind == "dataset" else f"{kind} {key}", style="bold")
        _show_entry(console, list(some))
    summary = report.summary
    if rest := summary.differences - len(shown):
        console.print(f"... and {plural(rest, 'more difference')}; --json lists more.")
    if shown:
        console.print()
    show_migrated(console, report.datasets, "datasets")
    show_migrated(console, report.lineage_edges, "lineage edges")
    if tags := len(report.missing_tags):
        verb = "requires" if tags == 1 else "require"
        console.print("[warn]", style="yellow", end=" ")
        console.print(f"{plural(tags, 'tag')} {verb} manual mapping")
    if not summary.differences:
        console.print("Nothing differs.")
        return
    entries = "1 entry" if summary.entries == 1 else f"{summary.entries:,} entries"
    console.print(
        f"{plural(summary.differences, 'difference')} in {entries}: {summary.breaking:,} breaking, "
        f"{summary.non_breaking:,} non-breaking, {summary.informational:,} informational."
    )


def _show_sums(report: "SparkDiffReport") -> None:
    from lumos.cli.screen import plural, stdout

    differing = plural(report.added + report.removed + report.changed, "dataset")
    stdout().print(
        f"{differing}: {report.added:,} added, {report.removed:,} removed, {report.changed:,} "
        f"changed; {report.breaking:,} breaking, {report.non_breaking:,} non-breaking, "
        f"{report.informational:,} informational. Written to {report.folder}."
    )


def _show_entry(console: "Console", differences: "list[Difference]") -> None:
    from lumos.cli.screen import table

    built = table("", "", "", "", "")
    built.show_header = False
    for column, width in zip(built.columns, (15, 10, 24, 30, 0), strict=True):
        column.min_width = width
    for each in differences:
        impact = each.impact.upper() if each.impact == "breaking" else each.impact
        whole = f"(whole {each.kind})" if each.aspect == "entry" else ""
        aspect = "" if each.aspect == "entry" else each.aspect
        built.add_row(
            f"  {aspect}", each.change, each.path or whole, _told(each), impact,
            style=_STYLES[each.impact],
        )  # fmt: skip
    console.print(built)


_STYLES: Final = {"breaking": "red", "non-breaking": "", "informational": "dim"}


def _told(difference: "Difference") -> str:
    """Both sides of a difference, or why it is one where it has none."""
    return _sides(difference.before, difference.after) or _short("; ".join(difference.notes))


def _sides(before: Any, after: Any) -> str:
    return " -> ".join(_short(side) for side in (before, after) if side is not None)


def _short(side: Any) -> str:
    text = ", ".join(map(str, side)) if isinstance(side, list | tuple) else str(side)
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_SIDE else f"{text[: _LONGEST_SIDE - 3]}..."


def show_migrated(console: "Console", found: "Migrated", what: str) -> None:
    """How much of what the source has the target has as well."""
    is_whole = found.source == found.target
    console.print("[ok]" if is_whole else "[warn]", style="green" if is_whole else "yellow", end="")
    console.print(f" {found.target:,}/{found.source:,} {what} migrated")
