"""lumos migrate"""

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.options import AsJson, ConfigFile, StorePath, lumos_of, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lumos.engine.migration.reports import MigrationReport, Need, Verification

_MOST: Final = 20


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(
        epilog="Examples:\n\n"
        "lumos migrate --source datahub --target openmetadata --dry-run\n\n"
        "lumos migrate --source datahub --target openmetadata --mapping mapping.yaml\n\n"
        "lumos migrate --source datahub-file:estate.json --target local --resume\n\n"
        "lumos migrate --source datahub --target openmetadata --rollback"
    )(migrate)


def migrate(
    source: Annotated[
        str,
        typer.Option(
            metavar="A",
            help="The catalog to move from: local, a configured platform, or KIND:ADDRESS.",
            show_default=False,
        ),
    ],
    target: Annotated[
        str, typer.Option(metavar="B", help="The catalog to move into.", show_default=False)
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be written, and write nothing.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a migration that was broken off.")
    ] = False,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Restore what the target held before the last one.")
    ] = False,
    mapping: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="YAML with names of tags, terms, owners, domains, services and datasets in the "
            "target.",
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep the snapshot of the source as this file."),
    ] = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Move all that a catalog holds into another one, and prove that it is there.

    Exports, validates, imports, and reads every entry back by its name. A second run writes only
    what changed since; what people edited in the target stays. Exit code 0 where all is there, 1
    where something is missing.
    """
    from lumos.cli.screen import stdout, steps

    if sum((dry_run, resume, rollback)) > 1:
        raise typer.BadParameter("give only one of --dry-run, --resume and --rollback")
    if rollback and (mapping or keep):
        raise typer.BadParameter("--rollback takes neither --mapping nor --keep")
    desk = lumos_of(config, store).migration
    with steps() as announce:
        if rollback:
            taken_back = desk.roll_back(source, target, announce=announce)
        elif dry_run:
            report = desk.try_migrate(source, target, mapping=mapping, keep=keep, announce=announce)
        else:
            report = desk.migrate(
                source, target, resume=resume, mapping=mapping, keep=keep, announce=announce
            )
    if json:
        print_json(taken_back if rollback else report)
    elif rollback:
        from lumos.cli.importing import show_rollback

        what = f"The migration from {source} to {target}"
        show_rollback(stdout(), taken_back, what=what)
    else:
        _show(stdout(), report)
    if not rollback and not report.is_whole:
        raise typer.Exit(1)


def _show(console: "Console", report: "MigrationReport") -> None:
    from lumos.cli.importing import show_import
    from lumos.cli.screen import plural

    counts = report.exported
    console.print("[ok]", style="green", end=" ")
    console.print(
        f"{plural(counts.datasets, 'dataset')} and {plural(counts.lineage_edges, 'lineage edge')} "
        f"exported from {report.source} and found valid"
    )
    show_import(console, report.imported)
    for remark in report.remarks:
        _warn(console, remark)
    if report.verified is not None:
        _show_verified(console, report.verified)
    _show_needs(console, report.needs)
    if report.snapshot is not None:
        console.print(f"What was exported is kept in {report.snapshot}.")
    if report.dry_run:
        console.print(f"Nothing was written to {report.target}.")


def _show_verified(console: "Console", found: "Verification") -> None:
    from lumos.cli.diff import show_migrated
    from lumos.cli.screen import plural

    show_migrated(console, found.datasets, "datasets")
    show_migrated(console, found.lineage_edges, "lineage edges")
    if found.items.source:
        show_migrated(console, found.items, "terms, people, jobs and others")
    for names, what in ((found.missing, "is not there"), (found.unlike, "is not as written")):
        for name in names[:_MOST]:
            console.print("[error]", style="red", end=" ")
            console.print(f"{name} {what}")
        if (rest := len(names) - _MOST) > 0:
            console.print(f"... and {rest:,} more; --json lists them.")
    if found.is_whole and (differing := found.summary.entries):
        entries = "1 entry" if differing == 1 else f"{differing:,} entries"
        console.print(
            f"{plural(found.summary.differences, 'difference')} in {entries}, by edits that were "
            "kept: lumos diff shows them."
        )


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
    for kind, some in groupby(needs, key=lambda need: need.kind):
        found = list(some)
        one, many = _ASKED[kind]
        verb = f"{one} requires" if len(found) == 1 else f"{many} require"
        _warn(console, f"{len(found):,} {verb} manual mapping")
    pasted = [need for need in needs if need.like]
    if not pasted:
        return
    if any(need.by_title for need in pasted):
        why = "Like others in the target, or known by ids in the source; to name them"
    else:
        why = "Like others in the target; to join them"
    console.print(f"{why}, give --mapping a file with:")
    for kind, some in groupby(pasted, key=lambda need: need.kind):
        found = list(some)
        console.print(f"  {_ASKED[kind][1]}:")
        for need in found[:_MOST]:
            others = f"  # or {', '.join(need.like[1:])}" if need.like[1:] else ""
            console.print(f"    {_quoted(need.name)}: {_quoted(need.like[0])}{others}")
        if (rest := len(found) - _MOST) > 0:
            console.print(f"    # and {rest:,} more; --json lists them")


def _quoted(name: str) -> str:
    """A name as YAML reads it again."""
    from lumos.model.codec import to_json

    is_plain = name.replace(".", "").replace("_", "").replace("-", "").isalnum()
    return name if is_plain and name[0].isalpha() else to_json(name).decode()


def _warn(console: "Console", remark: str) -> None:
    console.print("[warn]", style="yellow", end=" ")
    console.print(remark)
