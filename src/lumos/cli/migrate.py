"""lumos migrate"""

import enum
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.lines import problem, remark
from lumos.cli.options import (
    CommonOptions,
    DryRun,
    common_options,
    earlier_options,
    local_path,
    print_json,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lumos.catalogs.migration.reports import (
        AspectCount,
        MigrationReport,
        Need,
        Verification,
    )
    from lumos.cli.names import Names
    from lumos.snapshots.reports import MigratedCount

_MOST: Final = 20


class ErrorChoice(enum.StrEnum):
    """What to do about a dataset that cannot be migrated."""

    STOP = "stop"
    SKIP = "skip"


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(
        epilog="Examples:\n\n"
        "lumos migrate datahub openmetadata --dry-run\n\n"
        "lumos migrate datahub openmetadata --mapping mapping.yaml\n\n"
        "lumos migrate datahub-file:estate.json local --resume\n\n"
        "lumos migrate datahub openmetadata --rollback",
        cls=earlier_options(first=("--source",), last=("--target",), keep="--output"),
    )(migrate)


@common_options
def migrate(
    options: CommonOptions,
    source: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="The catalog to move from: local, a configured one, or KIND:ADDRESS.",
            show_default=False,
        ),
    ],
    target: Annotated[
        str, typer.Argument(metavar="B", help="The catalog to move to.", show_default=False)
    ],
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
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Keep the snapshot of the source in this file.",
            callback=local_path,
        ),
    ] = None,
) -> None:
    """Copy all metadata of one catalog to another, and verify every entry.

    Exports, validates, imports, and reads every entry back. A second run writes only what changed;
    edits in the target are kept. Exits with 1 if anything is missing.
    """
    from lumos.cli.names import Names
    from lumos.cli.screen import stdout, steps

    if sum((dry_run, resume, rollback)) > 1:
        raise typer.BadParameter("give only one of --dry-run, --resume and --rollback")
    if rollback and (mapping or output):
        raise typer.BadParameter("--rollback takes neither --mapping nor --output")
    lumos = options.lumos
    desk = lumos.migration
    with steps() as progress:
        if rollback:
            taken_back = desk.roll_back(source, target, progress=progress)
        elif dry_run:
            report = desk.try_migrate(
                source,
                target,
                mapping=mapping,
                keep=output,
                on_error="skip" if on_error is ErrorChoice.SKIP else "stop",
                progress=progress,
            )
        else:
            report = desk.migrate(
                source,
                target,
                resume=resume,
                mapping=mapping,
                keep=output,
                on_error="skip" if on_error is ErrorChoice.SKIP else "stop",
                progress=progress,
            )
    if options.json:
        print_json(taken_back if rollback else report)
    elif rollback:
        from lumos.cli.importing import show_rollback

        what = f"The migration from {source} to {target}"
        show_rollback(stdout(), taken_back, Names(lumos), what=what)
    else:
        _show(stdout(), report, Names(lumos))
    if not rollback and not report.is_whole:
        raise typer.Exit(1)


def _show(console: "Console", report: "MigrationReport", names: "Names") -> None:
    from lumos.cli.importing import show_import
    from lumos.cli.screen import plural

    counts = report.exported
    console.print("[ok]", style="green", end=" ")
    console.print(
        f"{plural(counts.datasets, 'dataset')} and {plural(counts.lineage_edges, 'lineage edge')} "
        f"exported from {report.source} and validated"
    )
    show_import(console, report.imported, names)
    for text in report.remarks:
        remark(names(text))
    for each in report.skipped:
        problem(f"{names(each.key)} was skipped: {each.problem}")
    if report.verified is not None:
        _show_verified(console, report.verified, names)
    _show_needs(console, report.needs)
    if report.snapshot is not None:
        console.print(f"The snapshot of {report.source} is kept in {report.snapshot}.")
    if report.dry_run:
        console.print(f"Nothing was written to {report.target}.")


def _show_verified(console: "Console", found: "Verification", names: "Names") -> None:
    from lumos.cli.screen import plural
    from lumos.schemas.wording import few

    _show_migrated(console, found.datasets, "datasets")
    _show_migrated(console, found.lineage_edges, "lineage edges")
    if found.items.source:
        _show_migrated(console, found.items, "terms, people, jobs and others")
    for name, count in found.aspects.items():
        if count.target < count.source:
            _show_migrated(console, count, f"entries with {name}")
    for keys, what in ((found.missing, "is missing"), (found.unlike, "differs from what was sent")):
        shown, rest = few(keys, _MOST)
        for key in shown:
            problem(f"{names(key)} {what}")
        if rest:
            problem(f"... and {rest:,} more; --json lists them")
    if found.is_whole and (differing := found.summary.entries):
        entries = "1 entry" if differing == 1 else f"{differing:,} entries"
        console.print(
            f"{plural(found.summary.differences, 'difference')} in {entries} from edits that were "
            "kept; lumos diff shows them."
        )


def _show_migrated(console: "Console", found: "MigratedCount | AspectCount", what: str) -> None:
    """How much of what the source has the target has as well."""
    is_whole = found.source == found.target
    console.print("[ok]" if is_whole else "[warn]", style="green" if is_whole else "yellow", end="")
    console.print(f" {found.target:,}/{found.source:,} {what} migrated")


_ASKED: Final = {
    "tag": ("tag", "tags"),
    "term": ("term", "terms"),
    "owner": ("owner", "owners"),
    "domain": ("domain", "domains"),
    "service": ("service", "services"),
    "dataset": ("dataset", "datasets"),
}


def _show_needs(console: "Console", needs: "Sequence[Need]") -> None:
    """What must be decided by hand, as lines to paste into a mapping."""
    from lumos.schemas.wording import few

    for kind, some in groupby(needs, key=lambda need: need.kind):
        found = list(some)
        one, many = _ASKED[kind]
        verb = f"{one} requires" if len(found) == 1 else f"{many} require"
        remark(f"{len(found):,} {verb} manual mapping")
    pasted = [need for need in needs if need.like]
    if not pasted:
        return
    if any(need.by_title for need in pasted):
        why = "Similar to names in the target, or named by ids in the source; to map them"
    else:
        why = "Similar to names in the target; to map them"
    console.print(f"{why}, give --mapping a file with:")
    for kind, some in groupby(pasted, key=lambda need: need.kind):
        found = list(some)
        console.print(f"  {_ASKED[kind][1]}:")
        shown, rest = few(found, _MOST)
        for need in shown:
            others = f"  # or {', '.join(need.like[1:])}" if need.like[1:] else ""
            console.print(f"    {_quoted(need.name)}: {_quoted(need.like[0])}{others}")
        if rest:
            console.print(f"    # and {rest:,} more; --json lists them")


def _quoted(name: str) -> str:
    """A name as YAML reads it again."""
    from lumos.model.json_codec import to_json

    is_plain = name.replace(".", "").replace("_", "").replace("-", "").isalnum()
    return name if is_plain and name[0].isalpha() else to_json(name).decode()
