"""lumos version: the cloud version and the schema version of datasets.

The cloud version counts all changes of a dataset.
"""

from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from lumos.cli.options import CommonOptions, Dataset, DryRun, OptionalDatasets, with_options
from lumos.cli.schema_text import verdict_text
from lumos.cli.screen import Table, stdout
from lumos.cli.text import Names, print_line
from lumos.rendering.text import few, format_time, plural

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from lumos.schemas.reports import (
        VersionBumpReport,
        VersionMapReport,
        VersionScanReport,
        VersionShowReport,
        VersionUpdateReport,
    )

_DIGITS: Final = "0123456789"
_MAX_LISTED: Final = 50

app = typer.Typer(help="Show and change the versions of datasets.", no_args_is_help=True)


@app.command(epilog="Example: lumos version show orders")
@with_options
def show(options: CommonOptions, dataset: Dataset) -> None:
    """Show a dataset's versions, its last change and its version history."""
    options.print(options.lumos.version.show(dataset), _print_show, options.names)


@app.command("map", epilog="Example: lumos version map orders --json")
@with_options
def map_(options: CommonOptions, dataset: Dataset) -> None:
    """Show the schema version of each cloud version (the counter of all changes of a dataset)."""
    options.print(options.lumos.version.map(dataset), _print_map, options.names)


@app.command(
    epilog="Examples:\n\n"
    "lumos version bump orders --type SCHEMA_CHANGE --level major --reason 'amounts in cents'\n\n"
    "lumos version bump orders --type DATA_UPDATE --key release-42"
)
@with_options
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
            metavar="LEVEL",
            help="Which part of the schema version to raise: major, minor, patch or none. "
            "Default: minor for SCHEMA_CHANGE, else patch.",
            show_default=False,
        ),
    ] = None,
    reason: Annotated[str, typer.Option(help="The reason, for the history.")] = "",
    key: Annotated[
        str | None, typer.Option(help="Raise the versions only once for this key.")
    ] = None,
) -> None:
    """Raise a dataset's versions by hand, for changes that no scan can detect."""
    report = options.lumos.version.bump(dataset, type, level=level, reason=reason, key=key)
    options.print(report, _print_bump, options.names)


@app.command(epilog="Examples:\n\nlumos version scan 'sales/*'\n\nlumos version scan --update")
@with_options
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
    report = options.lumos.version.scan(dataset, update=update)
    options.print(report, _print_scan, options.names, every=every)


@app.command(
    epilog="Examples:\n\n"
    "lumos version update --auto-increment\n\n"
    "lumos version update --auto-increment --create-git-tag --tag-prefix v --ref HEAD",
)
@with_options
def update(
    options: CommonOptions,
    auto_increment: Annotated[
        bool,
        typer.Option(
            "--auto-increment",
            help="Raise the versions of datasets whose schema changed since their last version.",
        ),
    ] = False,
    create_git_tag: Annotated[
        bool,
        typer.Option(
            "--create-git-tag", help="Tag the commit if versions changed since the last tag."
        ),
    ] = False,
    tag_prefix: Annotated[
        str,
        typer.Option(metavar="TEXT", help="The start of the tag name, before the cloud version."),
    ] = "v",
    ref: Annotated[
        str | None,
        typer.Option(metavar="REF", help="The commit to tag. Default: the head of the branch."),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Raise the versions of changed datasets, and record all versions in an annotated git tag.

    No tag is created if there are uncommitted changes, on a detached HEAD without --ref, or if the
    tag exists already. The versions are published to the configured catalog.
    """
    report = options.lumos.version.update(
        auto_increment=auto_increment,
        create_git_tag=create_git_tag,
        tag_prefix=tag_prefix,
        ref=ref,
        dry_run=dry_run,
    )
    options.print(report, _print_update, options.names)


def _print_show(report: "VersionShowReport", names: Names) -> None:
    console = stdout()
    console.print(names(report.urn), style="bold")
    before = f", {report.previous_version} before" if report.previous_version else ""
    details = Table("", "")
    details.add("cloud version", f"{report.cloud_version}{before}")
    details.add("schema version", report.schema_version)
    author = report.author or report.cause
    details.add("changed", format_time(report.timestamp) + (f" by {author}" if author else ""))
    details.add("", f"{report.change_type.value}: {names(report.change_details.summary)}")
    if report.state == "missing":
        details.add("state", "missing: the last scan did not find it")
    elif report.state == "split":
        details.add("state", "split into other datasets")
    console.print(details)
    console.print()
    table = Table("SCHEMA", "CLOUD", "SINCE (UTC)", "EVENT", "", "WHAT")
    for time, cells in sorted(_steps(report), key=lambda step: step[0], reverse=True):
        schema_version, cloud_version, event, verdict, summary = cells
        table.add(
            schema_version,
            cloud_version,
            format_time(time),
            event,
            verdict_text(verdict),
            names(summary),
        )
    console.print(table)


def _steps(report: "VersionShowReport") -> "Iterator[tuple[datetime, tuple[Any, ...]]]":
    for entry in report.version_history:
        summary = "; ".join(entry.changes) or "first seen"
        cells = (entry.schema_version, entry.version, entry.change_type, entry.verdict, summary)
        yield entry.timestamp, cells
    for each in report.milestones:
        yield each.timestamp, ("", each.cloud_version, each.event, None, each.summary)


def _print_map(report: "VersionMapReport", names: Names) -> None:
    console = stdout()
    console.print(names(report.urn), style="bold")
    table = Table("CLOUD", "SCHEMA")
    # Only group versions with the same prefix, so that a range such as S-1 ... S-4 is unambiguous.
    runs = groupby(report.versions.items(), key=lambda pair: (pair[1], pair[0].rstrip(_DIGITS)))
    for (schema_version, _), pairs in runs:
        cloud = [cloud_version for cloud_version, _ in pairs]
        table.add(cloud[0] if len(cloud) == 1 else f"{cloud[0]} ... {cloud[-1]}", schema_version)
    console.print(table)


def _print_bump(report: "VersionBumpReport", names: Names) -> None:
    before, after = report.before, report.after
    print_line(
        f"{names(report.urn)}: {before.cloud_version} {before.schema_version} -> "
        f"{after.cloud_version} {after.schema_version}"
        + ("" if report.applied else " (already done with this key; nothing changed)")
    )


def _print_update(report: "VersionUpdateReport", names: Names) -> None:
    since = f" since {report.previous_tag}" if report.previous_tag else ""
    if not report.datasets:
        print_line(f"No versions changed{since}.")
        return
    listed, more = few(report.datasets, _MAX_LISTED)
    names.look_up(each.urn for each in listed)
    table = Table("DATASET", "BEFORE", "AFTER", "CHANGE")
    for each in listed:
        before, after = (
            "-" if side is None else f"{side.cloud_version} {side.schema_version}"
            for side in (each.before, each.after)
        )
        table.add(names(each.urn), before, after, each.level)
    stdout().print(table)
    if more:
        print_line(f"... and {more:,} more datasets; --json lists them.")
    changed = f"{plural(report.changes_detected, 'dataset')} changed{since}"
    print_line(f"{changed}: {report.cloud_version} {report.schema_version}.")
    if report.git_tag is not None and report.commit is not None:
        verb = "Would create" if report.dry_run else "Created"
        print_line(f"{verb} the tag {report.git_tag} at {report.commit[:12]}.")
        if not report.dry_run:
            print_line(f"Push it: git push origin {report.git_tag}")


def _print_scan(report: "VersionScanReport", names: Names, *, every: bool) -> None:
    names.look_up(each.urn for each in report.datasets)
    table = Table("DATASET", "HAS", "NEEDS", "WHY", "WHAT")
    for each in report.datasets:
        has = f"{each.has.cloud_version} {each.has.schema_version}"
        if each.need != "none":
            needs = f"{each.needs.cloud_version} {each.needs.schema_version}"
            table.add(names(each.urn), has, needs, each.need, "; ".join(each.changes))
        elif every:
            table.add(names(each.urn), has, "", "", "")
    stdout().print(table)
    sums = report.summary
    verb = "needs" if sums.outdated == 1 else "need"
    summary_text = f"{sums.outdated:,} {verb} a new version" if sums.outdated else "all up to date"
    updated = f", {sums.updated:,} updated" if sums.updated else ""
    print_line(f"{plural(sums.datasets, 'dataset')}: {summary_text}{updated}.")
    if sums.outdated and not sums.updated:
        print_line("Update them with: lumos version scan --update")
