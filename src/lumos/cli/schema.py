"""lumos schema: comparing schemas, their history, predictions, and schemas as code."""

from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from lumos.cli.impact import Format, Output, Rehearse, answer, form_of
from lumos.cli.lines import say
from lumos.cli.options import (
    BREAKING,
    UNDETERMINED,
    AsJson,
    ConfigFile,
    FileKind,
    FileModel,
    StorePath,
    local_path,
    lumos_of,
    print_json,
)

if TYPE_CHECKING:
    from rich.console import Console

    from lumos.engine.impact.reports import ImpactsReport
    from lumos.engine.ingest import Announce
    from lumos.engine.schemas.reports import (
        DatasetDiff,
        DiffReport,
        EvolutionReport,
        ExportReport,
        HistoryReport,
        TimelineReport,
    )

_DIFF_FILE: Final = "schema_diff.json"
_STDOUT: Final = "-"
# Beyond so many changes colours and wrapped cells cost more than they tell.
_MOST_IN_TABLES: Final = 1_000

app = typer.Typer(help="Compare schemas and look into their history.", no_args_is_help=True)

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="A dataset's URN, or a name that only one dataset has.",
        show_default=False,
    ),
]  # fmt: skip
AsOf = Annotated[
    str | None,
    typer.Option(metavar="DATE", help="Only versions there were then: 2024-01-15, or 30d ago."),
]
ExitCode = Annotated[
    bool, typer.Option("--exit-code", help="Exit with 10 where anything is breaking.")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="With --exit-code: 11 where anything is undetermined.")
]


def add_to(application: typer.Typer) -> None:
    """Adds the commands to the application; `lumos history` is short for the most asked one."""
    application.add_typer(app, name="schema")
    application.command(epilog="Example: lumos history orders")(history)


@app.command(
    epilog="Examples:\n\n"
    "lumos schema diff old.schema new.schema\n\n"
    "lumos schema diff yesterday.json today.json\n\n"
    "lumos schema diff orders@1.0.0 orders@2024-01-15\n\n"
    "lumos schema diff --base main --head HEAD --dir schemas --exit-code"
)
def diff(
    before: Annotated[
        str | None,
        typer.Argument(
            metavar="[A]",
            help="A .schema file, a folder of them, a snapshot, or a dataset: NAME, NAME@2.1.0, "
            "NAME@S-312 or NAME@2024-01-15.",
            show_default=False,
        ),
    ] = None,
    after: Annotated[
        str | None,
        typer.Argument(metavar="[B]", help="The same, as it is now.", show_default=False),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(metavar="REF", help="Compare git revisions: what came since this one."),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(metavar="REF", help="The revision that has the changes. Default: HEAD."),
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
            metavar="FILE",
            help="Also write the JSON report there; - prints it instead. Default with --base: "
            "schema_diff.json.",
        ),
    ] = None,
    exit_code: ExitCode = False,
    strict: Strict = False,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Compare two schemas, and say for each change whether it breaks readers.

    A and B are files, folders or datasets at any version. With --base, two git revisions of a
    folder that 'lumos schema export' wrote are compared, from where they parted.
    """
    _check_strict(strict, exit_code=exit_code)
    json, target = json or output == _STDOUT, None if output == _STDOUT else output
    schemas = lumos_of(config, store).schema
    if base is not None:
        if before is not None:
            raise typer.BadParameter("give either A and B or --base and --head, not both")
        target = _DIFF_FILE if output is None else target
        head = "HEAD" if head is None else head
        report: DiffReport = schemas.diff_revisions(base, head, folder=dir, output=target)
    elif head is not None or dir is not None:
        raise typer.BadParameter("--head and --dir go with --base, which is missing")
    elif before is None or after is None:
        raise typer.BadParameter("give A and B, or --base and --head")
    else:
        report = schemas.diff(before, after, output=target)
    _show(report, as_json=json)
    _leave(report, exit_code=exit_code, strict=strict)


@app.command(
    epilog="Examples:\n\n"
    "lumos schema predict orders proposed.avsc\n\n"
    "lumos schema predict orders models/schema.yml --model stg_orders --exit-code"
)
def predict(
    name: Name,
    proposed: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="The proposed schema: JSON Schema, Avro, SQL (CREATE TABLE), a dbt schema.yml, a "
            "Parquet file, or Lumos text.",
            show_default=False,
        ),
    ],
    kind: FileKind = None,
    model: FileModel = None,
    dialect: Annotated[
        Literal["postgres", "snowflake", "bigquery", "hive"] | None,
        typer.Option(help="Whose SQL types they are. Default: the dataset's platform."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Also write the JSON report there; - prints it instead."),
    ] = None,
    exit_code: ExitCode = False,
    strict: Strict = False,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Say what would break if a dataset got a proposed schema."""
    _check_strict(strict, exit_code=exit_code)
    target = None if output == _STDOUT else output
    report = lumos_of(config, store).schema.predict(
        name, proposed, kind=kind, model=model, dialect=dialect, output=target
    )
    _show(report, as_json=json or output == _STDOUT)
    _leave(report, exit_code=exit_code, strict=strict)


@app.command(
    epilog="Examples:\n\n"
    "lumos schema diff --base main && lumos schema impact\n\n"
    "lumos schema impact --changes schema_diff.json -o impact.md --exit-code"
)
def impact(
    changes: Annotated[
        str,
        typer.Option(metavar="FILE", help="What lumos schema diff or lumos schema predict wrote."),
    ] = _DIFF_FILE,
    rehearse: Rehearse = False,
    format: Format = None,
    output: Output = None,
    exit_code: ExitCode = False,
    strict: Strict = False,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Say who breaks by the changes that a comparison of schemas found, where and why."""
    form = form_of(format, output, json=json)
    lumos = lumos_of(config, store)

    def ask(announce: "Announce") -> "ImpactsReport":
        return lumos.impact.of_changes(changes, rehearse=rehearse, announce=announce)

    answer(lumos, ask, form, output, exit_code=exit_code, strict=strict)


@app.command(epilog="Example: lumos schema history orders --as-of 2024-01-15")
def history(
    name: Name,
    as_of: AsOf = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Show every schema version of a dataset and what changed, newest first."""
    report = lumos_of(config, store).schema.history(name, as_of=as_of)
    if json:
        print_json(report)
    else:
        _print_history(report)


@app.command(epilog="Example: lumos schema timeline orders")
def timeline(
    name: Name,
    as_of: AsOf = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Show the schema versions of a dataset, a line for each, oldest first."""
    report = lumos_of(config, store).schema.timeline(name, as_of=as_of)
    if json:
        print_json(report)
    else:
        _print_timeline(report)


@app.command(epilog="Example: lumos schema evolution --since 90d")
def evolution(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="One dataset. Default: all.", show_default=False),
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="From when on: 90d, or 2024-01-15.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Until when. Default: now.")
    ] = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Report how much schemas changed over a period: versions, changes, breaking, how often."""
    report = lumos_of(config, store).schema.evolution(name, since=since, until=until)
    if json:
        print_json(report)
    else:
        _print_evolution(report)


@app.command(epilog="Example: lumos schema export schemas && git add schemas")
def export(
    folder: Annotated[
        str,
        typer.Argument(
            metavar="DIR",
            help="The folder to bring up to date.",
            show_default=False,
            callback=local_path,
        ),
    ],
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Write the schema of every dataset as a text file that can be reviewed and kept in git.

    Files of datasets that are gone are removed, if an export wrote them.
    """
    report = lumos_of(config, store).schema.export(folder)
    if json:
        print_json(report)
    else:
        _print_export(report)


def _leave(report: "DiffReport", *, exit_code: bool, strict: bool) -> None:
    if exit_code and report.summary.breaking:
        raise typer.Exit(BREAKING)
    if exit_code and strict and report.summary.undetermined:
        raise typer.Exit(UNDETERMINED)


def _check_strict(strict: bool, *, exit_code: bool) -> None:
    from lumos.cli.screen import stderr

    if strict and not exit_code:
        stderr().print("remark   --strict means nothing without --exit-code")


def _show(report: "DiffReport", *, as_json: bool) -> None:
    from lumos.cli.screen import stderr

    if as_json:
        print_json(report)
    else:
        _print_diff(report)
    for remark in getattr(report, "remarks", None) or ():
        stderr().print(f"remark   {remark}")


def _print_diff(report: "DiffReport") -> None:
    from lumos.cli.screen import plural, stdout

    console = stdout()
    summary = report.summary
    show = _print_plainly if summary.changes > _MOST_IN_TABLES else _print_dataset
    for dataset in sorted(report.datasets, key=_gravity):
        show(console, dataset)
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


def _print_dataset(console: "Console", dataset: "DatasetDiff") -> None:
    from lumos.cli.screen import changes_table

    versions = _versions(dataset)
    console.print(dataset.urn, style="bold", end="  " if versions else "")
    console.print(versions)
    console.print(changes_table(dataset.changes, notes=True))
    console.print()


def _print_plainly(console: "Console", dataset: "DatasetDiff") -> None:  # noqa: ARG001
    """Line by line, for more changes than tables can take."""
    from lumos.cli.screen import change_lines

    head = f"{dataset.urn}  {_versions(dataset)}".rstrip()
    for line in (head, *change_lines(dataset.changes), ""):
        say(line)


def _versions(dataset: "DatasetDiff") -> str:
    sides = (dataset.from_version or "", dataset.to_version or "")
    return " -> ".join(sides) if all(sides) else "".join(sides)


def _print_history(report: "HistoryReport") -> None:
    from lumos.cli.screen import STYLES, changes_table, plural, stdout, when

    console = stdout()
    console.print(report.name, style="bold", end="  ")
    console.print(report.urn)
    waiting = list(report.milestones)
    for version in report.versions:
        while waiting and waiting[0].timestamp > version.timestamp:
            told = waiting.pop(0)
            console.print()
            console.print(f"{told.cloud_version}  {when(told.timestamp)}  {told.summary}")
        console.print()
        console.print(f"{version.schema_version}", style="bold", end="  ")
        alert = version.breaking_change_alert
        facts = [version.cloud_version, when(version.timestamp), version.author or version.cause,
                 version.summary, f"[alert {alert.lower()}]" if alert else ""]  # fmt: skip
        console.print("  ".join(fact for fact in facts if fact))
        if version.breaking and not any(each.consumer == "breaking" for each in version.changes):
            console.print("  declared BREAKING", style=STYLES["breaking"])
        if version.affected is not None and version.affected.summary:
            style = STYLES["breaking" if version.affected.breaking else "undetermined"]
            console.print(f"  {version.affected.summary}", style=style)
        if version.changes:
            console.print(changes_table(version.changes))
        else:
            console.print(f"  {plural(len(version.schema.fields), 'field')}")


def _print_timeline(report: "TimelineReport") -> None:
    from lumos.cli.screen import alarming, stdout, table, when

    console = stdout()
    console.print(report.name, style="bold", end="  ")
    console.print(report.urn)
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


def _print_evolution(report: "EvolutionReport") -> None:
    from lumos.cli.screen import plural, stdout, table, when

    console = stdout()
    rows = table("DATASET", "VERSIONS", "CHANGES", "BREAKING", "PER DAY", "URN",
                 right=("VERSIONS", "CHANGES", "BREAKING", "PER DAY"))  # fmt: skip
    for dataset in report.datasets:
        rows.add_row(
            dataset.name,
            f"{dataset.total_versions:,}",
            f"{dataset.total_changes:,}",
            f"{dataset.breaking_changes:,}",
            f"{dataset.change_frequency:.2f}",
            dataset.urn,
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


def _print_export(report: "ExportReport") -> None:
    from lumos.cli.screen import plural, stderr, stdout

    stdout().print(
        f"{plural(report.datasets, 'dataset')} in {report.folder}: "
        f"{plural(len(report.written), 'file')} written, {len(report.removed):,} removed."
    )
    for file in report.replaced:
        stderr().print(f"remark   {file} was not written by an export, and is replaced")
