"""lumos schema: comparing schemas, their history, predictions, and schemas as code."""

import os
from functools import partial
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.gate import DryRun, Forge, PullRequest, Repository, print_comment
from lumos.cli.impact import ImpactOptions
from lumos.cli.options import (
    STDOUT,
    CommonOptions,
    Dataset,
    FileKind,
    FileModel,
    OptionalDataset,
    ReportFile,
    Strict,
    TypeDialect,
    accept_old_options,
    argument,
    check_strict,
    exit_by_verdict,
    local_path,
    output_option,
    with_options,
)
from lumos.cli.schema_text import STYLES, changes_table, print_changes, verdict_text
from lumos.cli.screen import Table, stdout, steps
from lumos.cli.switches import SwitchedGroup
from lumos.cli.text import Names, print_remark
from lumos.errors import MisuseError
from lumos.rendering.text import format_time, plural

if TYPE_CHECKING:
    from lumos.schemas.reports import (
        DatasetDiff,
        DiffReport,
        EvolutionReport,
        HistoryReport,
        SchemaExportReport,
        TimelineReport,
    )

_DIFF_FILE: Final = "schema_diff.json"
# The maximum number of downstream datasets that are listed for each change.
_MAX_AFFECTED: Final = 50

app = typer.Typer(
    cls=SwitchedGroup, help="Compare schemas and show their history.", no_args_is_help=True
)
# `lumos history` is short for `lumos schema history`.
history_app = typer.Typer()

AsOf = Annotated[
    str | None,
    typer.Option(metavar="DATE", help="Only versions up to this time: 2024-01-15, or 30d ago."),
]
ExitCode = Annotated[
    bool, typer.Option("--exit-code", help="Exit with 10 if any change is breaking.")
]


@app.command(
    epilog="Examples:\n\n"
    "lumos schema diff old.schema new.schema\n\n"
    "lumos schema diff yesterday.json today.json\n\n"
    "lumos schema diff orders@1.0.0 orders@2024-01-15\n\n"
    "lumos schema diff --base main --head HEAD --dir schemas --exit-code"
)
@with_options
def diff(
    options: CommonOptions,
    before: Annotated[
        str | None,
        argument(
            "[A]",
            "A .schema file, a folder of them, a snapshot, or a dataset: DATASET, "
            "DATASET@2.1.0, DATASET@S-312 or DATASET@2024-01-15.",
        ),
    ] = None,
    after: Annotated[str | None, argument("[B]", "The same, after the change.")] = None,
    base: Annotated[
        str | None,
        typer.Option(metavar="REF", help="Compare git revisions: show changes since this one."),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(metavar="REF", help="The revision with the changes. Default: HEAD."),
    ] = None,
    dir: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="The folder of schemas in the repository. Default: schemas, here or at its root.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        output_option(
            "Also write the JSON report to this file; - prints it. Default with --base: "
            "schema_diff.json."
        ),
    ] = None,
    exit_code: ExitCode = False,
    strict: Strict = False,
) -> None:
    """Compare two schemas and show for each change whether it breaks readers.

    A and B are files, folders or datasets at any version. With --base, two git revisions of a
    folder written by 'lumos schema export' are compared, starting at their merge base.
    """
    check_strict(strict=strict, exit_code=exit_code)
    target = None if output == STDOUT else output
    schemas = options.lumos.schema
    if base is not None:
        if before is not None:
            raise typer.BadParameter("give either A and B or --base and --head, not both")
        target = _DIFF_FILE if output is None else target
        head = "HEAD" if head is None else head
        report: DiffReport = schemas.diff_revisions(base, head, folder=dir, output=target)
    elif head is not None or dir is not None:
        raise typer.BadParameter("--head and --dir need --base")
    elif before is None or after is None:
        raise typer.BadParameter("give A and B, or --base and --head")
    else:
        report = schemas.diff(before, after, output=target)
    options.json |= output == STDOUT
    _print_and_exit(options, report, exit_code=exit_code, strict=strict)


@app.command(
    epilog="Examples:\n\n"
    "lumos schema predict orders proposed.avsc\n\n"
    "lumos schema predict orders models/schema.yml --model stg_orders --exit-code"
)
@with_options
def predict(
    options: CommonOptions,
    dataset: Dataset,
    proposed: Annotated[
        str,
        argument(
            "FILE",
            "The proposed schema: JSON Schema, Avro, SQL (CREATE TABLE), a dbt schema.yml, a "
            "Parquet file or a .schema file.",
        ),
    ],
    kind: FileKind = None,
    model: FileModel = None,
    dialect: TypeDialect = None,
    output: ReportFile = None,
    exit_code: ExitCode = False,
    strict: Strict = False,
) -> None:
    """Show what would break if a dataset had a proposed schema."""
    check_strict(strict=strict, exit_code=exit_code)
    if not Path(proposed).exists():
        if Path(dataset).exists():
            raise MisuseError(
                f"'{dataset}' is a file. The dataset comes first: "
                f"lumos schema predict {join([proposed, dataset])}"
            )
        raise MisuseError(
            f"{proposed}: there is no such file. To start from the current schemas, write them "
            "with: lumos schema export FOLDER"
        )
    target = None if output == STDOUT else output
    report = options.lumos.schema.predict(
        dataset, proposed, kind=kind, model=model, dialect=dialect, output=target
    )
    options.json |= output == STDOUT
    _print_and_exit(options, report, exit_code=exit_code, strict=strict)


@app.command(
    epilog="Examples:\n\n"
    "lumos schema diff --base main && lumos schema impact\n\n"
    "lumos schema impact schema_diff.json -o impact.md --exit-code",
    cls=accept_old_options(first=("--changes",)),
)
@with_options
def impact(
    options: ImpactOptions,
    changes: Annotated[
        str,
        typer.Argument(
            metavar="[FILE]", help="The report of lumos schema diff or lumos schema predict."
        ),
    ] = _DIFF_FILE,
) -> None:
    """Show which downstream datasets break because of a schema diff, where and why."""
    check_on_spark = options.check_on_spark or options.rehearse
    options.report(partial(options.lumos.impact.of_changes, changes, check_on_spark=check_on_spark))


@app.command(
    epilog="Examples:\n\n"
    "lumos schema comment --pr 12\n\n"
    "lumos schema comment --pr 12 --base origin/main --dry-run"
)
@with_options
def comment(
    options: CommonOptions,
    pr: PullRequest = None,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="REF",
            help="The target branch of the pull request. Default: that of the job, or main.",
        ),
    ] = None,
    head: Annotated[
        str, typer.Option(metavar="REF", help="The revision with the changes. Default: HEAD.")
    ] = "HEAD",
    repository: Repository = None,
    forge: Forge = None,
    dry_run: DryRun = False,
) -> None:
    """Create or update a comment on a pull request: what its schema changes break downstream.

    The token is taken from GITHUB_TOKEN, GITLAB_TOKEN or BITBUCKET_TOKEN. If the comment cannot be
    posted, the reason is printed, and the exit code is still 0. To fail on breaking changes, use
    'lumos gate'.
    """
    from lumos.gate.forges import base_branch

    gate = options.lumos.gate
    with steps() as progress:
        checked = gate.check(base or base_branch(os.environ), head, progress=progress)
    report = gate.comment(checked, pr=pr, repository=repository, forge=forge, dry_run=dry_run)
    options.print(report, print_comment)


@history_app.command(epilog="Example: lumos history orders")
@app.command(epilog="Example: lumos schema history orders --as-of 2024-01-15")
@with_options
def history(options: CommonOptions, dataset: Dataset, as_of: AsOf = None) -> None:
    """Show every schema version of a dataset and what changed, newest first."""
    report = options.lumos.schema.history(dataset, as_of=as_of)
    options.print(report, _print_history, options.names)


@app.command(epilog="Example: lumos schema timeline orders")
@with_options
def timeline(options: CommonOptions, dataset: Dataset, as_of: AsOf = None) -> None:
    """List the schema versions of a dataset, oldest first."""
    report = options.lumos.schema.timeline(dataset, as_of=as_of)
    options.print(report, _print_timeline, options.names)


@app.command(epilog="Example: lumos schema evolution --since 90d")
@with_options
def evolution(
    options: CommonOptions,
    dataset: OptionalDataset = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Since then: 90d, or 2024-01-15.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Until then. Default: now.")
    ] = None,
) -> None:
    """Count schema versions, changes and breaking changes over a period."""
    report = options.lumos.schema.evolution(dataset, since=since, until=until)
    options.print(report, _print_evolution, options.names)


@app.command(
    epilog="Example: lumos schema export schemas && git add schemas",
    cls=accept_old_options(first=("--output", "-o")),
)
@with_options
def export(
    options: CommonOptions,
    folder: Annotated[str, argument("DIR", "The folder to write to.", callback=local_path)],
) -> None:
    """Write the schema of every dataset to a text file, for reviews and version control.

    Files of datasets that no longer exist are removed if an earlier export wrote them.
    """
    if not Path(folder).exists() and options.lumos.annotations.is_dataset(folder):
        raise MisuseError(
            f"'{folder}' is a dataset. Name a folder for the schemas of all datasets: "
            "lumos schema export schemas"
        )
    report = options.lumos.schema.export(folder)
    options.print(report, _print_export)


def _print_and_exit(
    options: CommonOptions, report: "DiffReport", *, exit_code: bool, strict: bool
) -> None:
    options.print(report, _print_diff, options.names)
    for text in getattr(report, "remarks", None) or ():
        print_remark(options.names(text))
    exit_by_verdict(
        exit_code=exit_code,
        strict=strict,
        is_breaking=report.summary.breaking,
        is_undetermined=report.summary.undetermined,
    )


def _print_diff(report: "DiffReport", names: Names) -> None:
    console = stdout()
    summary = report.summary
    names.look_up(each.urn for each in report.datasets)
    for dataset in sorted(report.datasets, key=_severity):
        versions = _versions(dataset)
        console.print(names(dataset.urn), style="bold", end="  " if versions else "")
        console.print(versions)
        console.print(changes_table(dataset.changes, notes=True))
        console.print()
    if not summary.changes:
        console.print("Nothing differs.")
        return
    undetermined = f", {summary.undetermined:,} undetermined" if summary.undetermined else ""
    console.print(
        f"{plural(summary.changes, 'change')} in {plural(summary.datasets, 'dataset')}, "
        f"{summary.breaking:,} breaking{undetermined}."
    )


def _severity(dataset: "DatasetDiff") -> int:
    """Sort key of a dataset: the rank of its worst verdict for consumers."""
    ranks = list(STYLES)
    return min((ranks.index(change.consumer.value) for change in dataset.changes), default=0)


def _versions(dataset: "DatasetDiff") -> str:
    sides = (dataset.from_version or "", dataset.to_version or "")
    return " -> ".join(sides) if all(sides) else "".join(sides)


def _print_history(report: "HistoryReport", names: Names) -> None:
    console = stdout()
    console.print(names(report.urn), style="bold")
    milestones = list(report.milestones)
    for version in report.versions:
        while milestones and milestones[0].timestamp > version.timestamp:
            event = milestones.pop(0)
            console.print()
            summary = names(event.summary)
            console.print(f"{event.cloud_version}  {format_time(event.timestamp)}  {summary}")
        console.print()
        console.print(f"{version.schema_version}", style="bold", end="  ")
        level = version.breaking_change_alert
        details = (
            version.cloud_version,
            format_time(version.timestamp),
            version.author or version.cause,
            names(version.summary),
            f"[alert {level.lower()}]" if level else "",
        )
        console.print("  ".join(filter(None, details)))
        if version.breaking and not any(each.consumer == "breaking" for each in version.changes):
            console.print("  declared BREAKING", style=STYLES["breaking"])
        if not version.changes:
            console.print(f"  {plural(len(version.schema.fields), 'field')}")
        print_changes(
            version.changes,
            version.affected,
            limit=_MAX_AFFECTED,
            more_command=f"lumos history {report.urn} --json",
        )


def _print_timeline(report: "TimelineReport", names: Names) -> None:
    console = stdout()
    console.print(names(report.urn), style="bold")
    table = Table("VERSION", "", "TIME (UTC)", ">FIELDS", "CHANGED", "")
    for entry in report.versions:
        counts = (("+", entry.added), ("-", entry.removed), ("~", entry.changed))
        table.add(
            entry.schema_version,
            entry.cloud_version,
            format_time(entry.timestamp),
            str(entry.field_count),
            " ".join(f"{sign}{count}" for sign, count in counts if count),
            verdict_text(entry.verdict),
        )
    console.print(table)


def _print_evolution(report: "EvolutionReport", names: Names) -> None:
    console = stdout()
    names.look_up(each.urn for each in report.datasets)
    table = Table("DATASET", ">VERSIONS", ">CHANGES", ">BREAKING", ">PER DAY")
    for dataset in report.datasets:
        table.add(
            names(dataset.urn),
            f"{dataset.total_versions:,}",
            f"{dataset.total_changes:,}",
            f"{dataset.breaking_changes:,}",
            f"{dataset.change_frequency:.2f}",
        )
    console.print(table)
    summary = report.summary
    console.print(
        f"{format_time(report.period_start)} to {format_time(report.period_end)} UTC: "
        f"{plural(summary.total_versions, 'version')} of "
        f"{plural(len(report.datasets), 'dataset')}, {plural(summary.total_changes, 'change')}, "
        f"{summary.breaking_changes:,} breaking."
    )


def _print_export(report: "SchemaExportReport") -> None:
    stdout().print(
        f"{plural(report.datasets, 'dataset')} in {report.folder}: "
        f"{plural(len(report.written), 'file')} written, {len(report.removed):,} removed."
    )
    for file in report.replaced:
        print_remark(f"{file} was not written by an export and was replaced")
