"""lumos version: the cloud version and the schema version of datasets."""

from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from lumos.cli.lines import say
from lumos.cli.options import AsJson, ConfigFile, StorePath, lumos_of, print_json
from lumos.cli.schema import Name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from lumos.engine.versions.reports import (
        ScannedVersion,
        VersionBumpReport,
        VersionMapReport,
        VersionScanReport,
        VersionShowReport,
    )

_DIGITS: Final = "0123456789"

app = typer.Typer(help="See and move the versions of datasets.", no_args_is_help=True)


@app.command(epilog="Example: lumos version show orders")
def show(
    name: Name, config: ConfigFile = None, store: StorePath = None, json: AsJson = False
) -> None:
    """Show a dataset's versions, what the last step was about, and its history."""
    report = lumos_of(config, store).version.show(name)
    if json:
        print_json(report)
    else:
        _print_show(report)


@app.command("map", epilog="Example: lumos version map orders --json")
def map_(
    name: Name, config: ConfigFile = None, store: StorePath = None, json: AsJson = False
) -> None:
    """Show which schema version each cloud version of a dataset has."""
    report = lumos_of(config, store).version.map(name)
    if json:
        print_json(report)
    else:
        _print_map(report)


@app.command(
    epilog="Examples:\n\n"
    "lumos version bump orders --type SCHEMA_CHANGE --level major --reason 'amounts in cents'\n\n"
    "lumos version bump orders --type DATA_UPDATE --key release-42"
)
def bump(
    name: Name,
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
            help="How far the schema version moves. Default: minor for SCHEMA_CHANGE, else patch.",
            show_default=False,
        ),
    ] = None,
    reason: Annotated[str, typer.Option(help="Why, for those who come after.")] = "",
    key: Annotated[
        str | None,
        typer.Option(help="Move the versions once only, however often this key is used."),
    ] = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Move a dataset's versions by hand, for changes that no scan can see."""
    report = lumos_of(config, store).version.bump(name, type, level=level, reason=reason, key=key)
    if json:
        print_json(report)
    else:
        _print_bump(report)


@app.command(epilog="Examples:\n\nlumos version scan 'sales/*'\n\nlumos version scan --update")
def scan(
    pattern: Annotated[
        str | None,
        typer.Argument(
            metavar="[PATTERN]", help="Only datasets such as sales/* or lumos://s3/lake/*."
        ),
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Give each dataset the version that it needs.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Show datasets that need nothing, too.")
    ] = False,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Compare the schemas of many datasets with the last ones that have a version."""
    report = lumos_of(config, store).version.scan(pattern, update=update)
    if json:
        print_json(report)
    else:
        _print_scan(report, every=every)


def _print_show(report: "VersionShowReport") -> None:
    from lumos.cli.screen import alarming, stdout, table, when

    console = stdout()
    console.print(report.name, style="bold", end="  ")
    console.print(report.urn)
    before = f", {report.previous_version} before" if report.previous_version else ""
    facts = table("", "")
    facts.show_header = False
    facts.add_row("cloud version", f"{report.cloud_version}{before}")
    facts.add_row("schema version", report.schema_version)
    by = report.author or report.cause
    facts.add_row("changed", when(report.timestamp) + (f" by {by}" if by else ""))
    facts.add_row("", f"{report.change_type.value}: {report.change_details.summary}")
    if report.state == "missing":
        facts.add_row("state", "gone: it was not there at the last scan")
    elif report.state == "split":
        facts.add_row("state", "split into other datasets")
    console.print(facts)
    console.print()
    rows = table("SCHEMA", "CLOUD", "SINCE (UTC)", "EVENT", "", "WHAT")
    for moment, cells in sorted(_steps(report), key=lambda step: step[0], reverse=True):
        schema_version, cloud_version, event, verdict, what = cells
        rows.add_row(schema_version, cloud_version, when(moment), event, alarming(verdict), what)
    console.print(rows)


def _steps(report: "VersionShowReport") -> "Iterator[tuple[datetime, tuple[Any, ...]]]":
    for entry in report.version_history:
        what = "; ".join(entry.changes) or "first seen"
        cells = (entry.schema_version, entry.version, entry.change_type, entry.verdict, what)
        yield entry.timestamp, cells
    for each in report.milestones:
        yield each.timestamp, ("", each.cloud_version, each.event, None, each.summary)


def _print_map(report: "VersionMapReport") -> None:
    from lumos.cli.screen import stdout, table

    console = stdout()
    console.print(report.name, style="bold", end="  ")
    console.print(report.urn)
    rows = table("CLOUD", "SCHEMA")
    # A run of versions has one prefix, else its ends would not tell what lies between.
    runs = groupby(report.versions.items(), key=lambda pair: (pair[1], pair[0].rstrip(_DIGITS)))
    for (schema_version, _), pairs in runs:
        cloud = [cloud_version for cloud_version, _ in pairs]
        rows.add_row(cloud[0] if len(cloud) == 1 else f"{cloud[0]} ... {cloud[-1]}", schema_version)
    console.print(rows)


def _print_bump(report: "VersionBumpReport") -> None:
    before, after = report.before, report.after
    say(
        f"{report.name}: {before.cloud_version} {before.schema_version} -> "
        f"{after.cloud_version} {after.schema_version}"
        + ("" if report.applied else " (done before with this key; nothing was changed)")
    )


def _print_scan(report: "VersionScanReport", *, every: bool) -> None:
    from lumos.cli.screen import aligned, plural

    rows = [_scanned(each) for each in report.datasets if every or each.need != "none"]
    for line in aligned(("DATASET", "HAS", "NEEDS", "WHY", "URN", "WHAT"), rows):
        say(line)
    sums = report.summary
    verb = "needs" if sums.outdated == 1 else "need"
    needed = f"{sums.outdated:,} {verb} another version" if sums.outdated else "none needs another"
    updated = f", {sums.updated:,} got it" if sums.updated else ""
    say(f"{plural(sums.datasets, 'dataset')}: {needed}{updated}.")
    if sums.outdated and not sums.updated:
        say("Give them what they need with: lumos version scan --update")


def _scanned(each: "ScannedVersion") -> tuple[str, ...]:
    has = f"{each.has.cloud_version} {each.has.schema_version}"
    if each.need == "none":
        return (each.name, has, "", "", each.urn, "")
    needs = f"{each.needs.cloud_version} {each.needs.schema_version}"
    return (each.name, has, needs, each.need, each.urn, "; ".join(each.changes))
