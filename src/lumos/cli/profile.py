"""lumos profile"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumos.cli.options import CommonOptions, Dataset, with_options
from lumos.cli.scan_text import print_problems
from lumos.cli.screen import Table, stdout, steps
from lumos.cli.text import Names
from lumos.rendering.text import cut, format_number, plural

if TYPE_CHECKING:
    from lumos.profiles.reports import ProfileReport

_MEDIAN = "0.5"
_MAX_VALUE_LENGTH = 24


app = typer.Typer()


@app.command(epilog="Example: lumos profile orders --sample 0.1")
@with_options
def profile(
    options: CommonOptions,
    dataset: Dataset,
    sample: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Read about this share of the rows: 0.1 is 10%."),
    ] = None,
    rows: Annotated[
        int | None, typer.Option(metavar="N", help="Read about this many rows.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="COLUMN,...", help="Only these columns, separated by commas."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Read every file again, including unchanged ones.")
    ] = False,
) -> None:
    """Profile the columns of a dataset: completeness, distinct values, ranges, frequent values.

    Reads the files that the last scan found. Files that have not changed since the last profile
    are not read again.
    """
    with steps() as progress:
        report = options.lumos.profiles.profile(
            dataset,
            sample=sample,
            rows=rows,
            columns=[name.strip() for name in columns.split(",") if name.strip()]
            if columns
            else (),
            full=full,
            progress=progress,
        )
    options.print(report, _print_report, options.names)
    print_problems(report.problems)
    if not report.kept:
        raise typer.Exit(1)


def _print_report(report: "ProfileReport", names: Names) -> None:
    from lumos.model.json_codec import to_plain

    console = stdout()
    console.print(names(report.urn), style="bold")
    if not report.kept:
        console.print("Nothing could be read; the last profile was kept.")
        return
    plain = to_plain(report.profile)
    console.print(profile_table(plain))
    console.print()
    for line in frequent_lines(plain):
        console.print(line)
    reused = f", {report.files_known:,} known before" if report.files_known else ""
    completeness = "" if report.completeness is None else f", {report.completeness:.2%} complete"
    console.print(
        f"{plural(report.profile.rows, 'row')}{format_sample(plain)}{completeness}. "
        f"{plural(report.files_read, 'file')} read{reused}, in {report.seconds:.1f} s."
    )
    if report.withheld:
        withheld = ", ".join(report.withheld)
        console.print(f"Values of private columns are not kept: {withheld}.")


def format_sample(profile: dict[str, Any]) -> str:
    """The share of rows that a profile was computed from; empty if it is all rows."""
    share = profile.get("sampled")
    return "" if share is None else f" (a sample of {share:.2%})"


def profile_table(profile: dict[str, Any]) -> Table:
    """The measurements of a profile, with a row for each column."""
    table = Table(
        "COLUMN", ">FILLED", ">DISTINCT", "MINIMUM", "MEDIAN", "MAXIMUM", "MEAN", "LENGTH", "",
        compact=True,
    )  # fmt: skip
    for path, column in profile.get("columns", {}).items():
        distinct = column.get("distinct")
        table.add(
            path,
            _completeness(column, profile["rows"]),
            "" if distinct is None else format_number(distinct, exact=distinct <= 1),
            _value(column.get("minimum")),
            _value(column.get("quantiles", {}).get(_MEDIAN)),
            _value(column.get("maximum")),
            _mean(column),
            _length(column),
            _remarks(column),
        )
    return table


def frequent_lines(profile: dict[str, Any]) -> list[str]:
    """A line with the frequent values of each column, if any are known."""
    rows = max(1, profile["rows"])
    lines = []
    for path, column in profile.get("columns", {}).items():
        if top := column.get("top"):
            values = ", ".join(
                f"{_value(each['value'])} {each['count'] / rows:.1%}" for each in top[:5]
            )
            lines.append(f"frequent in {path}: {values}")
    return lines


def _completeness(column: dict[str, Any], rows: int) -> str:
    if not rows:
        return ""
    return f"{1 - (column.get('nulls', 0) + column.get('misfits', 0)) / rows:.2%}"


def _mean(column: dict[str, Any]) -> str:
    mean, spread = column.get("mean"), column.get("stddev")
    if mean is None:
        return ""
    if spread is None:
        return _value(mean)
    return f"{float(mean):.6g} ± {spread:.4g}"


def _length(column: dict[str, Any]) -> str:
    if column.get("shortest") is None:
        return ""
    return f"{column['shortest']:,} to {column['longest']:,}"


def _remarks(column: dict[str, Any]) -> str:
    remarks = [
        f"{column[name]:,} {word}"
        for name, word in (("nans", "NaN"), ("misfits", "of another type"))
        if column.get(name)
    ]
    if elements := column.get("elements"):
        remarks.append(f"{elements:,} elements, {column.get('null_elements', 0):,} null")
    return ", ".join(remarks)


def _value(text: str | None) -> str:
    return cut(text or "", _MAX_VALUE_LENGTH)
