"""lumos schema: comparing schemas, their history, predictions, and schemas as code."""

from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from lumos.cli.impact import CheckOnSpark, Format, Rehearse, answer, form_of
from lumos.cli.lines import remark, say
from lumos.cli.names import Names
from lumos.cli.options import (
    BREAKING,
    STDOUT,
    UNDETERMINED,
    CommonOptions,
    Dataset,
    FileKind,
    FileModel,
    OptionalDataset,
    OutputFile,
    ReportFile,
    common_options,
    earlier_options,
    local_path,
    print_json,
)
from lumos.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console

    from lumos.impact.reports import ImpactsReport
    from lumos.schemas.reports import (
        DatasetDiff,
        DiffReport,
        EvolutionReport,
        HistoryReport,
        SchemaExportReport,
        TimelineReport,
    )

_DIFF_FILE: Final = "schema_diff.json"
# Beyond so many changes colours and wrapped cells cost more than they tell.
_MOST_IN_TABLES: Final = 1_000
# Datasets that break downstream, for each change of a version.
_MOST_AFFECTED: Final = 50

app = typer.Typer(help="Compare schemas and show their history.", no_args_is_help=True)

AsOf = Annotated[
    str | None,
    typer.Option(metavar="DATE", help="The versions at that time: 2024-01-15, or 30d ago."),
]
ExitCode = Annotated[
    bool, typer.Option("--exit-code", help="Exit with 10 if any change is breaking.")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="With --exit-code: exit with 11 if any is undetermined.")
]


def add_to(application: typer.Typer) -> None:
    """Adds the commands to the application; `lumos history` is short for `schema history`."""
    application.add_typer(app, name="schema")
    application.command(epilog="Example: lumos history orders")(history)


@app.command(
    epilog="Examples:\n\n"
    "lumos schema diff old.schema new.schema\n\n"
    "lumos schema diff yesterday.json today.json\n\n"
    "lumos schema diff orders@1.0.0 orders@2024-01-15\n\n"
    "lumos schema diff --base main --head HEAD --dir schemas --exit-code"
)
@common_options
def diff(
    options: CommonOptions,
    before: Annotated[
        str | None,
        typer.Argument(
            metavar="[A]",
            help="A .schema file, a folder of them, a snapshot, or a dataset: DATASET, "
            "DATASET@2.1.0, DATASET@S-312 or DATASET@2024-01-15.",
            show_default=False,
        ),
    ] = None,
    after: Annotated[
        str | None,
        typer.Argument(metavar="[B]", help="The same, after the change.", show_default=False),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(metavar="REF", help="Compare git revisions: what changed since this one."),
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
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Also write the JSON report to this file; - prints it. Default with --base: "
            "schema_diff.json.",
        ),
    ] = None,
    exit_code: ExitCode = False,
    strict: Strict = False,
) -> None:
    """Compare two schemas and show for each change whether it breaks readers.

    A and B are files, folders or datasets at any version. With --base, two git revisions of a
    folder written by 'lumos schema export' are compared, starting at their merge base.
    """
    _check_strict(strict, exit_code=exit_code)
    target = None if output == STDOUT else output
    lumos = options.lumos
    schemas = lumos.schema
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
    _show(report, Names(lumos), as_json=options.json or output == STDOUT)
    _leave(report, exit_code=exit_code, strict=strict)


@app.command(
    epilog="Examples:\n\n"
    "lumos schema predict orders proposed.avsc\n\n"
    "lumos schema predict orders models/schema.yml --model stg_orders --exit-code"
)
@common_options
def predict(
    options: CommonOptions,
    dataset: Dataset,
    proposed: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="The proposed schema: JSON Schema, Avro, SQL (CREATE TABLE), a dbt schema.yml, a "
            "Parquet file or a .schema file.",
            show_default=False,
        ),
    ],
    kind: FileKind = None,
    model: FileModel = None,
    dialect: Annotated[
        Literal["postgres", "snowflake", "bigquery", "hive"] | None,
        typer.Option(help="The SQL dialect of the types. Default: the dataset's."),
    ] = None,
    output: ReportFile = None,
    exit_code: ExitCode = False,
    strict: Strict = False,
) -> None:
    """Show what would break if a dataset got a proposed schema."""
    _check_strict(strict, exit_code=exit_code)
    target = None if output == STDOUT else output
    lumos = options.lumos
    report = lumos.schema.predict(
        dataset, proposed, kind=kind, model=model, dialect=dialect, output=target
    )
    _show(report, Names(lumos), as_json=options.json or output == STDOUT)
    _leave(report, exit_code=exit_code, strict=strict)


@app.command(
    epilog="Examples:\n\n"
    "lumos schema diff --base main && lumos schema impact\n\n"
    "lumos schema impact schema_diff.json -o impact.md --exit-code",
    cls=earlier_options(first=("--changes",)),
)
@common_options
def impact(
    options: CommonOptions,
    changes: Annotated[
        str,
        typer.Argument(
            metavar="[FILE]", help="The report of lumos schema diff or lumos schema predict."
        ),
    ] = _DIFF_FILE,
    check_on_spark: CheckOnSpark = False,
    rehearse: Rehearse = False,
    format: Format = None,
    output: OutputFile = None,
    exit_code: ExitCode = False,
    strict: Strict = False,
) -> None:
    """Show which datasets downstream the changes of a schema diff break, where and why."""
    form = form_of(format, output, json=options.json)
    lumos = options.lumos

    def ask(progress: Progress) -> "ImpactsReport":
        return lumos.impact.of_changes(
            changes, check_on_spark=check_on_spark or rehearse, progress=progress
        )

    answer(lumos, ask, form, output, exit_code=exit_code, strict=strict)


@app.command(epilog="Example: lumos schema history orders --as-of 2024-01-15")
@common_options
def history(
    options: CommonOptions,
    dataset: Dataset,
    as_of: AsOf = None,
) -> None:
    """Show every schema version of a dataset and what changed, newest first."""
    lumos = options.lumos
    report = lumos.schema.history(dataset, as_of=as_of)
    if options.json:
        print_json(report)
    else:
        _print_history(report, Names(lumos))


@app.command(epilog="Example: lumos schema timeline orders")
@common_options
def timeline(
    options: CommonOptions,
    dataset: Dataset,
    as_of: AsOf = None,
) -> None:
    """List the schema versions of a dataset, oldest first."""
    lumos = options.lumos
    report = lumos.schema.timeline(dataset, as_of=as_of)
    if options.json:
        print_json(report)
    else:
        _print_timeline(report, Names(lumos))


@app.command(epilog="Example: lumos schema evolution --since 90d")
@common_options
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
    lumos = options.lumos
    report = lumos.schema.evolution(dataset, since=since, until=until)
    if options.json:
        print_json(report)
    else:
        _print_evolution(report, Names(lumos, (each.urn for each in report.datasets)))


@app.command(
    epilog="Example: lumos schema export schemas && git add schemas",
    cls=earlier_options(first=("--output", "-o")),
)
@common_options
def export(
    options: CommonOptions,
    folder: Annotated[
        str,
        typer.Argument(
            metavar="DIR",
            help="The folder to write to.",
            show_default=False,
            callback=local_path,
        ),
    ],
) -> None:
    """Write the schema of every dataset as a text file that can be reviewed and kept in git.

    Files of datasets that no longer exist are removed if an export wrote them.
    """
    report = options.lumos.schema.export(folder)
    if options.json:
        print_json(report)
    else:
        _print_export(report)


def _leave(report: "DiffReport", *, exit_code: bool, strict: bool) -> None:
    if exit_code and report.summary.breaking:
        raise typer.Exit(BREAKING)
    if exit_code and strict and report.summary.undetermined:
        raise typer.Exit(UNDETERMINED)


def _check_strict(strict: bool, *, exit_code: bool) -> None:
    if strict and not exit_code:
        remark("--strict has no effect without --exit-code")


def _show(report: "DiffReport", names: Names, *, as_json: bool) -> None:
    if as_json:
        print_json(report)
    else:
        _print_diff(report, names)
    for text in getattr(report, "remarks", None) or ():
        remark(names(text))


def _print_diff(report: "DiffReport", names: Names) -> None:
    from lumos.cli.screen import plural, stdout

    console = stdout()
    summary = report.summary
    show = _print_plainly if summary.changes > _MOST_IN_TABLES else _print_dataset
    names.learn(each.urn for each in report.datasets)
    for dataset in sorted(report.datasets, key=_gravity):
        show(console, dataset, names(dataset.urn))
    if not summary.changes:
        console.print("Nothing differs.")
        return
    counts = [f"{summary.breaking:,} breaking"]
    if summary.undetermined:
        counts.append(f"{summary.undetermined:,} undetermined")
    console.print(
        f"{plural(summary.changes, 'change')} in {plural(summary.datasets, 'dataset')}, "
        f"{', '.join(counts)}."
    )


def _gravity(dataset: "DatasetDiff") -> int:
    """Sorts datasets as their changes are sorted, by what is worst for consumers."""
    from lumos.cli.screen import STYLES

    ranks = list(STYLES)
    return min((ranks.index(change.consumer.value) for change in dataset.changes), default=0)


def _print_dataset(console: "Console", dataset: "DatasetDiff", name: str) -> None:
    from lumos.cli.screen import changes_table

    versions = _versions(dataset)
    console.print(name, style="bold", end="  " if versions else "")
    console.print(versions)
    console.print(changes_table(dataset.changes, notes=True))
    console.print()


def _print_plainly(console: "Console", dataset: "DatasetDiff", name: str) -> None:  # noqa: ARG001
    """Line by line, for more changes than tables can take."""
    from lumos.cli.screen import change_lines

    head = f"{name}  {_versions(dataset)}".rstrip()
    for line in (head, *change_lines(dataset.changes), ""):
        say(line)


def _versions(dataset: "DatasetDiff") -> str:
    sides = (dataset.from_version or "", dataset.to_version or "")
    return " -> ".join(sides) if all(sides) else "".join(sides)


def _print_history(report: "HistoryReport", names: Names) -> None:
    from lumos.cli.screen import STYLES, plural, print_changes, stdout, when

    console = stdout()
    console.print(names(report.urn), style="bold")
    waiting = list(report.milestones)
    for version in report.versions:
        while waiting and waiting[0].timestamp > version.timestamp:
            event = waiting.pop(0)
            console.print()
            what = names(event.summary)
            console.print(f"{event.cloud_version}  {when(event.timestamp)}  {what}")
        console.print()
        console.print(f"{version.schema_version}", style="bold", end="  ")
        alert = version.breaking_change_alert
        facts = [version.cloud_version, when(version.timestamp), version.author or version.cause,
                 names(version.summary), f"[alert {alert.lower()}]" if alert else ""]  # fmt: skip
        console.print("  ".join(fact for fact in facts if fact))
        if version.breaking and not any(each.consumer == "breaking" for each in version.changes):
            console.print("  declared BREAKING", style=STYLES["breaking"])
        if not version.changes:
            console.print(f"  {plural(len(version.schema.fields), 'field')}")
        print_changes(
            version.changes,
            version.affected,
            most=_MOST_AFFECTED,
            rest=f"lumos history {report.urn} --json",
        )


def _print_timeline(report: "TimelineReport", names: Names) -> None:
    from lumos.cli.screen import alarming, stdout, table, when

    console = stdout()
    console.print(names(report.urn), style="bold")
    rows = table("VERSION", "", "TIME (UTC)", "FIELDS", "CHANGED", "", right=("FIELDS",))
    for entry in report.versions:
        counts = (("+", entry.added), ("-", entry.removed), ("~", entry.changed))
        rows.add_row(
            entry.schema_version,
            entry.cloud_version,
            when(entry.timestamp),
            str(entry.field_count),
            " ".join(f"{sign}{count}" for sign, count in counts if count),
            alarming(entry.verdict),
        )
    console.print(rows)


def _print_evolution(report: "EvolutionReport", names: Names) -> None:
    from lumos.cli.screen import plural, stdout, table, when

    console = stdout()
    rows = table("DATASET", "VERSIONS", "CHANGES", "BREAKING", "PER DAY",
                 right=("VERSIONS", "CHANGES", "BREAKING", "PER DAY"))  # fmt: skip
    for dataset in report.datasets:
        rows.add_row(
            names(dataset.urn),
            f"{dataset.total_versions:,}",
            f"{dataset.total_changes:,}",
            f"{dataset.breaking_changes:,}",
            f"{dataset.change_frequency:.2f}",
        )
    if report.datasets:
        console.print(rows)
    summary = report.summary
    console.print(
        f"{when(report.period_start)} to {when(report.period_end)} UTC: "
        f"{plural(summary.total_versions, 'version')} of "
        f"{plural(len(report.datasets), 'dataset')}, {plural(summary.total_changes, 'change')}, "
        f"{summary.breaking_changes:,} breaking."
    )


def _print_export(report: "SchemaExportReport") -> None:
    from lumos.cli.screen import plural, stdout

    stdout().print(
        f"{plural(report.datasets, 'dataset')} in {report.folder}: "
        f"{plural(len(report.written), 'file')} written, {len(report.removed):,} removed."
    )
    for file in report.replaced:
        remark(f"{file} was not written by an export and was replaced")
