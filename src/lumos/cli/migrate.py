"""lumos migrate"""

import enum
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.import_ import STORAGE_TEXT, print_import, print_rollback
from lumos.cli.options import (
    CommonOptions,
    DryRun,
    accept_old_options,
    argument,
    local_path,
    output_option,
    with_options,
)
from lumos.cli.screen import Table, print_status, stdout, steps
from lumos.cli.text import Names, print_problem, print_remark
from lumos.rendering.text import few, format_duration, format_time, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lumos.catalogs.migration.reports import (
        AspectCount,
        CertificateCheck,
        MigrationPlan,
        MigrationReport,
        UnmappedName,
        Verification,
    )
    from lumos.catalogs.migration.service import OnError
    from lumos.snapshots.format.document import SnapshotCounts
    from lumos.snapshots.reports import MigratedCount

_MAX_LISTED: Final = 20
_STORAGE_TEXT: Final = {
    **STORAGE_TEXT,
    "native": "native",
    "store": "only in the store and the snapshot",
}


class ErrorChoice(enum.StrEnum):
    """What to do if a dataset cannot be migrated: stop the migration, or skip the dataset."""

    STOP = "stop"
    SKIP = "skip"


app = typer.Typer()


@app.command(
    epilog="Examples:\n\n"
    "lumos migrate datahub openmetadata --plan\n\n"
    "lumos migrate datahub openmetadata --dry-run\n\n"
    "lumos migrate datahub openmetadata --mapping mapping.yaml\n\n"
    "lumos migrate datahub-file:estate.json local --resume\n\n"
    "lumos migrate datahub openmetadata --rollback\n\n"
    "lumos migrate verify certificate.json",
    cls=accept_old_options(first=("--source",), last=("--target",), keep="--output"),
)
@with_options
def migrate(
    options: CommonOptions,
    source: Annotated[
        str, argument("A", "The catalog to move from: local, a configured one, or KIND:ADDRESS.")
    ],
    target: Annotated[
        str, argument("B", "The catalog to move to; after 'verify', the file of a certificate.")
    ],
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            help="Write nothing; print counts by aspect, what would be lost and why, the number of "
            "requests, an estimated time and a runbook.",
        ),
    ] = False,
    dry_run: DryRun = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted migration.")
    ] = False,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Restore the target as it was before the last one.")
    ] = False,
    mapping: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="YAML that maps tags, terms, owners, domains, services and datasets to names in "
            "the target.",
        ),
    ] = None,
    on_error: Annotated[
        ErrorChoice,
        typer.Option(help="Stop at a dataset that cannot be migrated, or skip and report it."),
    ] = ErrorChoice.STOP,
    output: Annotated[
        Path | None,
        output_option(
            "Also write the snapshot of the source to this file.",
            callback=local_path,
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the certificate to this file. Default: next to the store.",
            callback=local_path,
        ),
    ] = None,
) -> None:
    """Copy all metadata of one catalog to another, and verify every entry.

    Exports, validates, imports, and reads every entry back. A second run only writes changes, and
    does not overwrite edits in the target. Exits with 1 if anything is missing. Each migration
    writes a certificate with hashes and counts; lumos migrate verify CERTIFICATE compares the
    target with it later.
    """
    if sum((plan, dry_run, resume, rollback)) > 1:
        raise typer.BadParameter("give only one of --plan, --dry-run, --resume and --rollback")
    if rollback and (mapping or output):
        raise typer.BadParameter("--rollback takes neither --mapping nor --output")
    migration = options.lumos.migration
    if source == "verify":
        with steps() as progress:
            check = migration.verify(target, progress=progress)
        options.print(check, _print_check, options.names)
        if not check.is_unchanged:
            raise typer.Exit(1)
        return
    error_policy: OnError = "skip" if on_error is ErrorChoice.SKIP else "stop"
    if plan:
        with steps() as progress:
            planned = migration.plan(
                source, target, mapping=mapping, on_error=error_policy, progress=progress
            )
        options.print(planned, _print_plan, options.names)
        return
    with steps() as progress:
        if rollback:
            rolled_back = migration.roll_back(source, target, progress=progress)
        elif dry_run:
            report = migration.try_migrate(
                source,
                target,
                mapping=mapping,
                keep=output,
                on_error=error_policy,
                progress=progress,
            )
        else:
            report = migration.migrate(
                source,
                target,
                resume=resume,
                mapping=mapping,
                keep=output,
                certificate=certificate,
                on_error=error_policy,
                progress=progress,
            )
    if rollback:
        subject = f"The migration from {source} to {target}"
        options.print(rolled_back, print_rollback, options.names, subject=subject)
        return
    options.print(report, _print_report, options.names)
    if not report.is_whole:
        raise typer.Exit(1)


def _print_report(report: "MigrationReport", names: Names) -> None:
    console = stdout()
    contents = _count_text(report.exported)
    print_status(console, "ok", f"{contents} exported from {report.source} and validated")
    _print_left_out(console, report)
    print_import(report.imported, names)
    for text in report.remarks:
        print_remark(names(text))
    for each in report.skipped:
        print_problem(f"{names(each.key)} was skipped: {each.problem}")
    if report.verified is not None:
        _print_verified(console, report.verified, names)
    _print_needs(console, report.needs)
    if report.snapshot is not None:
        console.print(f"The snapshot of {report.source} is kept in {report.snapshot}.")
    if report.certificate is not None:
        console.print(f"Certificate: {report.certificate}")
    if report.dry_run:
        console.print(f"Nothing was written to {report.target}.")


def _count_text(counts: "SnapshotCounts") -> str:
    deleted = f", {plural(counts.deleted, 'deleted dataset')}" if counts.deleted else ""
    edges = plural(counts.lineage_edges, "lineage edge")
    return f"{plural(counts.live, 'dataset')}{deleted} and {edges}"


def _print_left_out(console: "Console", report: "MigrationReport") -> None:
    if report.lineage_left_out:
        edges = plural(report.lineage_left_out, "lineage edge")
        text = f"{edges} from or to tables that only SQL mentions are not part of the migration"
        print_status(console, "warn", text)


def _print_plan(plan: "MigrationPlan", names: Names) -> None:
    console = stdout()
    console.print(f"Migrating {plan.source} to {plan.target}", style="bold")
    console.print(_count_text(plan.dry_run.exported))
    _print_left_out(console, plan.dry_run)
    console.print()
    table = Table("ASPECT", ">ENTRIES", "IN THE TARGET")
    for name, aspect in plan.aspects.items():
        for storage, count in sorted(aspect.counts.items()):
            table.add(name, f"{count:,}", _STORAGE_TEXT[storage])
    console.print(table)
    console.print()
    if plan.lossy:
        console.print("Not stored exactly", style="bold")
        for loss in plan.lossy:
            entries = plural(loss.entries, "entry", "entries")
            such_as = ", ".join(names(each) for each in loss.examples)
            console.print(f"  {loss.aspect} of {entries}: {loss.why} ({such_as})")
        console.print()
    for each in plan.dry_run.skipped:
        print_problem(f"{names(each.key)} cannot be migrated: {each.problem}")
    _print_needs(console, plan.dry_run.needs)
    calls = plan.calls
    calls_text = (
        f"At least {calls.read:,} reads and {calls.write:,} writes, measured at "
        f"{plan.round_trip * 1000:.0f} ms each"
        if calls.total
        else "No calls of a server"
    )
    console.print(f"{calls_text}; about {format_duration(plan.seconds)} in all.")
    console.print()
    console.print("Runbook", style="bold")
    for number, step in enumerate(plan.runbook, start=1):
        console.print(f"  {number}. {step}")
    console.print()
    console.print(f"Nothing was written to {plan.target}.")


def _print_check(check: "CertificateCheck", names: Names) -> None:
    console = stdout()
    time = format_time(check.finished_at)
    migrated = f"{check.source} to {check.target}, {time} UTC"
    status = "ok" if check.was_whole else "warn"
    exceptions = plural(check.exceptions, "exception")
    print_status(console, status, f"The certificate is intact: {migrated}, {exceptions}")
    for keys, problem in ((check.missing, "is missing now"), (check.changed, "was changed since")):
        listed, more = few(keys, _MAX_LISTED)
        names.look_up(listed)
        for key in listed:
            print_problem(f"{names(key)} {problem}")
        if more:
            print_problem(f"... and {more:,} more; --json lists them")
    unchanged = check.entries - len(check.missing) - len(check.changed)
    status = "ok" if check.is_unchanged else "warn"
    print_status(
        console, status, f"{unchanged:,}/{check.entries:,} entries are as they were migrated"
    )


def _print_verified(console: "Console", verified: "Verification", names: Names) -> None:
    _print_migrated(console, verified.datasets, "datasets")
    _print_migrated(console, verified.lineage_edges, "lineage edges")
    if verified.items.source:
        _print_migrated(console, verified.items, "terms, people, jobs and others")
    for name, aspect in verified.aspects.items():
        if aspect.target < aspect.source:
            _print_migrated(console, aspect, f"entries with {name}")
    for keys, problem in (
        (verified.missing, "is missing"),
        (verified.unlike, "differs from what was sent"),
    ):
        listed, more = few(keys, _MAX_LISTED)
        for key in listed:
            print_problem(f"{names(key)} {problem}")
        if more:
            print_problem(f"... and {more:,} more; --json lists them")
    if verified.is_whole and (differing := verified.summary.entries):
        entries = plural(differing, "entry", "entries")
        differences = plural(verified.summary.differences, "difference")
        console.print(
            f"{differences} in {entries} from edits that were kept; lumos diff shows them."
        )


def _print_migrated(console: "Console", count: "MigratedCount | AspectCount", nouns: str) -> None:
    """Print the number of entries of the source that are in the target."""
    status = "ok" if count.source == count.target else "warn"
    print_status(console, status, f"{count.target:,}/{count.source:,} {nouns} migrated")


def _print_needs(console: "Console", needs: "Sequence[UnmappedName]") -> None:
    """Print the names that need a manual mapping, as lines to paste into a mapping file."""
    for kind, needs_of_kind in groupby(needs, key=lambda need: need.kind):
        count = len(list(needs_of_kind))
        verb = "requires" if count == 1 else "require"
        print_remark(f"{plural(count, kind)} {verb} manual mapping")
    suggested = [need for need in needs if need.like]
    if not suggested:
        return
    if any(need.by_title for need in suggested):
        reason = "Similar to names in the target, or named by ids in the source; to map them"
    else:
        reason = "Similar to names in the target; to map them"
    console.print(f"{reason}, give --mapping a file with:")
    for kind, needs_of_kind in groupby(suggested, key=lambda need: need.kind):
        console.print(f"  {kind}s:")
        listed, more = few(list(needs_of_kind), _MAX_LISTED)
        for need in listed:
            others = f"  # or {', '.join(need.like[1:])}" if need.like[1:] else ""
            console.print(f"    {_quote_yaml(need.name)}: {_quote_yaml(need.like[0])}{others}")
        if more:
            console.print(f"    # and {more:,} more; --json lists them")


def _quote_yaml(name: str) -> str:
    """A name as a YAML scalar, quoted if needed."""
    from lumos.model.json_codec import to_json

    is_plain = name.replace(".", "").replace("_", "").replace("-", "").isalnum()
    return name if is_plain and name[0].isalpha() else to_json(name).decode()
