"""lumos impact"""

import enum
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from lumos.cli.forms import by_ending, write
from lumos.cli.lines import remark
from lumos.cli.names import Names
from lumos.cli.options import (
    BREAKING,
    UNDETERMINED,
    CommonOptions,
    Dataset,
    FileKind,
    FileModel,
    OutputFile,
    common_options,
    print_json,
)
from lumos.errors import MisuseError
from lumos.progress import Progress

if TYPE_CHECKING:
    from lumos.impact.reports import ImpactReport, ImpactsReport
    from lumos.sdk import Lumos


class ImpactForm(enum.StrEnum):
    """How an impact is shown."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"
    DOT = "dot"
    MERMAID = "mermaid"


_BY_ENDING: Final = {
    ".txt": ImpactForm.TEXT,
    ".json": ImpactForm.JSON,
    ".md": ImpactForm.MARKDOWN,
    ".html": ImpactForm.HTML,
    ".htm": ImpactForm.HTML,
    ".dot": ImpactForm.DOT,
    ".gv": ImpactForm.DOT,
    ".mmd": ImpactForm.MERMAID,
}
Format = Annotated[
    ImpactForm | None,
    typer.Option("--format", help="Default: text, or by the ending of --output."),
]
CheckOnSpark = Annotated[
    bool,
    typer.Option(
        "--check-on-spark",
        help="Also let Spark analyse the SQL downstream with both schemas, without data.",
    ),
]
# The earlier name of --check-on-spark.
Rehearse = Annotated[bool, typer.Option("--rehearse", hidden=True)]
ExitCode = Annotated[bool, typer.Option("--exit-code", help="Exit with 10 if anything breaks.")]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="With --exit-code: exit with 11 if any is undetermined."),
]


def add_to(application: typer.Typer) -> None:
    """Adds the command to the application."""
    application.command(
        epilog="Examples:\n\n"
        "lumos impact user_events --change 'user_id: STRING -> INT64'\n\n"
        "lumos impact orders --drop discount --rename 'amount -> total' --exit-code\n\n"
        "lumos impact orders --proposed orders.avsc -o impact.html"
    )(impact)


@common_options
def impact(
    options: CommonOptions,
    dataset: Dataset,
    change: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="A new type or nullability: 'user_id: STRING -> INT64', 'price: nullable'.",
        ),
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Drop a column.")] = None,
    rename: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="Rename a column: 'old -> new'.")
    ] = None,
    proposed: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="A file with the new schema, as for lumos schema predict."
        ),
    ] = None,
    kind: FileKind = None,
    model: FileModel = None,
    dialect: Annotated[
        Literal["postgres", "snowflake", "bigquery", "hive"] | None,
        typer.Option(help="The SQL dialect of types. Default: the platform's."),
    ] = None,
    check_on_spark: CheckOnSpark = False,
    rehearse: Rehearse = False,
    format: Format = None,
    output: OutputFile = None,
    exit_code: ExitCode = False,
    strict: Strict = False,
) -> None:
    """Show who breaks if a dataset changes, where and why.

    Every dataset downstream gets a verdict (BREAKING, UNDETERMINED or COMPATIBLE) with its owner
    and the SQL clause that decides. Changes can be combined.
    """
    form = form_of(format, output, json=options.json)
    lumos = options.lumos

    def ask(progress: Progress) -> "ImpactReport":
        return lumos.impact.of(
            dataset, change=change or (), drop=drop or (), rename=rename or (), proposed=proposed,
            kind=kind, model=model, dialect=dialect,
            check_on_spark=check_on_spark or rehearse, progress=progress,
        )  # fmt: skip

    answer(lumos, ask, form, output, exit_code=exit_code, strict=strict)


def form_of(format: ImpactForm | None, output: Path | None, *, json: bool) -> ImpactForm:
    """The form that options ask for."""
    if json and format not in (None, ImpactForm.JSON):
        raise MisuseError(f"--json and --format {format} contradict each other. Give one.")
    if json or format is not None:
        return format or ImpactForm.JSON
    if output is None:
        return ImpactForm.TEXT
    return by_ending(output, _BY_ENDING)


def answer(
    lumos: "Lumos",
    ask: "Callable[[Progress], ImpactReport | ImpactsReport]",
    form: ImpactForm,
    output: Path | None,
    *,
    exit_code: bool,
    strict: bool,
) -> None:
    """Asks, shows what is answered, and leaves with the code that it deserves."""
    from lumos.cli.screen import steps

    if strict and not exit_code:
        remark("--strict has no effect without --exit-code")
    with steps() as progress:
        report = ask(progress)
    names = Names(lumos)
    _show(lumos, report, form, output, names)
    for text in report.remarks:
        remark(names(text))
    if exit_code and report.summary.breaking:
        raise typer.Exit(BREAKING)
    if exit_code and strict and report.coverage < 1:
        raise typer.Exit(UNDETERMINED)


def _show(
    lumos: "Lumos",
    report: "ImpactReport | ImpactsReport",
    form: ImpactForm,
    output: Path | None,
    names: Names,
) -> None:
    if output is None and form is ImpactForm.JSON:
        print_json(report)
    elif output is None and form is ImpactForm.TEXT:
        from lumos.cli.impact_text import print_impact

        print_impact(report, names)
    else:
        text = _text(lumos, report, form, names)
        write(text, output, remark=names(f"{report.headline}."))


def _text(
    lumos: "Lumos", report: "ImpactReport | ImpactsReport", form: ImpactForm, names: Names
) -> str:
    if form is ImpactForm.TEXT:
        from lumos.cli.impact_text import plain_text

        return plain_text(report, names)
    return lumos.impact.drawn(report, form.value)
