"""lumos impact"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from lumos.cli.options import (
    AsJson,
    ConfigFile,
    Dataset,
    FileKind,
    FileModel,
    OutputFile,
    SharedOptions,
    StorePath,
    Strict,
    TypeDialect,
    check_strict,
    choose_format,
    exit_by_verdict,
    print_json,
    with_options,
    write,
)
from lumos.cli.screen import steps
from lumos.cli.text import print_remark

if TYPE_CHECKING:
    from lumos.impact.reports import ImpactReport, ImpactsReport


_FORMATS: Final = {
    ".txt": "text",
    ".json": "json",
    ".md": "markdown",
    ".html": "html",
    ".htm": "html",
    ".dot": "dot",
    ".gv": "dot",
    ".mmd": "mermaid",
}
app = typer.Typer()


@dataclass(kw_only=True)
class ImpactOptions(SharedOptions):
    """The options of commands that show an impact."""

    check_on_spark: Annotated[
        bool,
        typer.Option(
            "--check-on-spark",
            help="Also let Spark analyse the SQL downstream with both schemas, without data.",
        ),
    ] = False
    # The earlier name of --check-on-spark.
    rehearse: Annotated[bool, typer.Option("--rehearse", hidden=True)] = False
    format: Annotated[
        Literal["text", "json", "markdown", "html", "dot", "mermaid"] | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="text, json, markdown, html, dot or mermaid. Default: text, or by the extension "
            "of --output.",
        ),
    ] = None
    output: OutputFile = None
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 10 if anything breaks.")
    ] = False
    strict: Strict = False
    config: ConfigFile = None
    store: StorePath = None
    json: AsJson = False

    def report(self, compute: "Callable[..., ImpactReport | ImpactsReport]") -> None:
        """Compute an impact, print or write it, and exit by its verdict."""
        format = choose_format(self.format, self.output, _FORMATS, default="text", json=self.json)
        check_strict(strict=self.strict, exit_code=self.exit_code)
        with steps() as progress:
            report = compute(progress=progress)
        if self.output is None and format == "json":
            print_json(report)
        elif self.output is None and format == "text":
            from lumos.cli.impact_text import print_impact

            print_impact(report, self.names)
        else:
            if format == "text":
                from lumos.cli.impact_text import plain_text

                text = plain_text(report, self.names)
            else:
                text = self.lumos.impact.drawn(report, format)
            write(text, self.output, remark=self.names(f"{report.headline}."))
        for remark in report.remarks:
            print_remark(self.names(remark))
        exit_by_verdict(
            exit_code=self.exit_code,
            strict=self.strict,
            is_breaking=report.summary.breaking,
            is_undetermined=report.coverage < 1,
        )


@app.command(
    epilog="Examples:\n\n"
    "lumos impact user_events --change 'user_id: STRING -> INT64'\n\n"
    "lumos impact orders --drop discount --rename 'amount -> total' --exit-code\n\n"
    "lumos impact orders --proposed orders.avsc -o impact.html"
)
@with_options
def impact(
    options: ImpactOptions,
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
    dialect: TypeDialect = None,
) -> None:
    """Show which downstream datasets break if a dataset changes, where and why.

    Every downstream dataset gets a verdict (BREAKING, UNDETERMINED or COMPATIBLE) with its owner
    and the SQL clause that causes it. Changes can be combined.
    """
    compute = partial(
        options.lumos.impact.of,
        dataset,
        change=change or (),
        drop=drop or (),
        rename=rename or (),
        proposed=proposed,
        kind=kind,
        model=model,
        dialect=dialect,
        check_on_spark=options.check_on_spark or options.rehearse,
    )
    options.report(compute)
