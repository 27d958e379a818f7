"""lumos version: the cloud version and the schema version of datasets."""

from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from lumos.cli.lines import say
from lumos.cli.names import Names
from lumos.cli.options import (
    AsJson,
    CommonOptions,
    ConfigFile,
    Dataset,
    OptionalDatasets,
    StorePath,
    common_options,
    lumos_of,
    print_json,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from lumos.schemas.reports import (
        ScannedVersion,
        VersionBumpReport,
        VersionMapReport,
        VersionScanReport,
        VersionShowReport,
    )

_DIGITS: Final = "0123456789"

app = typer.Typer(help="Show and change the versions of datasets.", no_args_is_help=True)


@app.command(epilog="Example: lumos version show orders")
def show(
    dataset: Dataset, config: ConfigFile = None, store: StorePath = None, json: AsJson = False
) -> None:
    """Show a dataset's versions, its last change and its version history."""
    lumos = lumos_of(config, store)
    report = lumos.version.show(dataset)
    if json:
        print_json(report)
    else:
        _print_show(report, Names(lumos))


@app.command("map", epilog="Example: lumos version map orders --json")
def map_(
    dataset: Dataset, config: ConfigFile = None, store: StorePath = None, json: AsJson = False
) -> None:
    """Show the schema version of each cloud version of a dataset."""
    lumos = lumos_of(config, store)
    report = lumos.version.map(dataset)
    if json:
        print_json(report)
    else:
        _print_map(report, Names(lumos))


@app.command(
    epilog="Examples:\n\n"
    "lumos version bump orders --type SCHEMA_CHANGE --level major --reason 'amounts in cents'\n\n"
    "lumos version bump orders --type DATA_UPDATE --key release-42"
)
@common_options
def bump(
    options: CommonOptions,
    dataset: Dataset,
    type: Annotated[
        str,
        typer.Option(
            metavar="TYPE",
            help="SCHEMA_CHANGE, DATA_UPDATE or METADATA_UPDATE.",
            show_default=False,
        ),
    ],
    level: Annotated[
        Literal["major", "minor", "patch", "none"] | None,
        typer.Option(
            help="Which part of the schema version to raise. Default: minor for "
            "SCHEMA_CHANGE, else patch.",
            show_default=False,
        ),
    ] = None,
    reason: Annotated[str, typer.Option(help="Why, for the history.")] = "",
    key: Annotated[
        str | None,
        typer.Option(help="Raise the versions only once for this key."),
    ] = None,
) -> None:
    """Raise a dataset's versions by hand, for changes that no scan can detect."""
    lumos = options.lumos
    report = lumos.version.bump(dataset, type, level=level, reason=reason, key=key)
    if options.json:
        print_json(report)
    else:
        _print_bump(report, Names(lumos))


@app.command(epilog="Examples:\n\nlumos version scan 'sales/*'\n\nlumos version scan --update")
@common_options
def scan(
    options: CommonOptions,
    dataset: OptionalDatasets = None,
    update: Annotated[
        bool, typer.Option("--update", help="Raise the versions that are outdated.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Also list datasets that are up to date.")
    ] = False,
) -> None:
    """Find datasets whose schema changed since their last version."""
    lumos = options.lumos
    report = lumos.version.scan(dataset, update=update)
    if options.json:
        print_json(report)
    else:
        names = Names(lumos, (each.urn for each in report.datasets))
        _print_scan(report, names, every=every)


def _print_show(report: "VersionShowReport", names: Names) -> None:
    from lumos.cli.screen import alarming, stdout, table, when

    console = stdout()
    console.print(names(report.urn), style="bold")
    before = f", {report.previous_version} before" if report.previous_version else ""
    facts = table("", "")
    facts.show_header = False
    facts.add_row("cloud version", f"{report.cloud_version}{before}")
    facts.add_row("schema version", report.schema_version)
    by = report.author or report.cause
    facts.add_row("changed", when(report.timestamp) + (f" by {by}" if by else ""))
    facts.add_row("", f"{report.change_type.value}: {names(report.change_details.summary)}")
    if report.state == "missing":
        facts.add_row("state", "gone: the last scan did not find it")
    elif report.state == "split":
        facts.add_row("state", "split into other datasets")
    console.print(facts)
    console.print()
    rows = table("SCHEMA", "CLOUD", "SINCE (UTC)", "EVENT", "", "WHAT")
    for moment, cells in sorted(_steps(report), key=lambda step: step[0], reverse=True):
        schema_version, cloud_version, event, verdict, what = cells
        rows.add_row(
            schema_version, cloud_version, when(moment), event, alarming(verdict), names(what)
        )
    console.print(rows)


def _steps(report: "VersionShowReport") -> "Iterator[tuple[datetime, tuple[Any, ...]]]":
    for entry in report.version_history:
        what = "; ".join(entry.changes) or "first seen"
        cells = (entry.schema_version, entry.version, entry.change_type, entry.verdict, what)
        yield entry.timestamp, cells
    for each in report.milestones:
        yield each.timestamp, ("", each.cloud_version, each.event, None, each.summary)


def _print_map(report: "VersionMapReport", names: Names) -> None:
    from lumos.cli.screen import stdout, table

    console = stdout()
    console.print(names(report.urn), style="bold")
    rows = table("CLOUD", "SCHEMA")
    # A run of versions has one prefix, else its ends would not tell what lies between.
    runs = groupby(report.versions.items(), key=lambda pair: (pair[1], pair[0].rstrip(_DIGITS)))
    for (schema_version, _), pairs in runs:
        cloud = [cloud_version for cloud_version, _ in pairs]
        rows.add_row(cloud[0] if len(cloud) == 1 else f"{cloud[0]} ... {cloud[-1]}", schema_version)
    console.print(rows)


def _print_bump(report: "VersionBumpReport", names: Names) -> None:
    before, after = report.before, report.after
    say(
        f"{names(report.urn)}: {before.cloud_version} {before.schema_version} -> "
        f"{after.cloud_version} {after.schema_version}"
        + ("" if report.applied else " (already done with this key; nothing changed)")
    )


def _print_scan(report: "VersionScanReport", names: Names, *, every: bool) -> None:
    from lumos.cli.screen import aligned, plural

    rows = [_scanned(each, names) for each in report.datasets if every or each.need != "none"]
    for line in aligned(("DATASET", "HAS", "NEEDS", "WHY", "WHAT"), rows):
        say(line)
    sums = report.summary
    verb = "needs" if sums.outdated == 1 else "need"
    needed = f"{sums.outdated:,} {verb} a new version" if sums.outdated else "all up to date"
    updated = f", {sums.updated:,} updated" if sums.updated else ""
    say(f"{plural(sums.datasets, 'dataset')}: {needed}{updated}.")
    if sums.outdated and not sums.updated:
        say("Update them with: lumos version scan --update")


def _scanned(each: "ScannedVersion", names: Names) -> tuple[str, ...]:
    has = f"{each.has.cloud_version} {each.has.schema_version}"
    if each.need == "none":
        return (names(each.urn), has, "", "", "")
    needs = f"{each.needs.cloud_version} {each.needs.schema_version}"
    return (names(each.urn), has, needs, each.need, "; ".join(each.changes))
