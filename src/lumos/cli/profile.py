"""lumos profile"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumos.cli.names import Names
from lumos.cli.options import (
    CommonOptions,
    Dataset,
    common_options,
    print_json,
)

if TYPE_CHECKING:
    from rich.table import Table

    from lumos.profiles.reports import ProfileReport

_MEDIAN = "0.5"
_LONGEST = 24


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(epilog="Example: lumos profile orders --sample 0.1")(profile)


@common_options
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
        bool, typer.Option("--full", help="Read every file again, also unchanged ones.")
    ] = False,
) -> None:
    """Profile the columns of a dataset: completeness, distinct values, ranges, frequent values.

    Reads the files that the last scan found. Files that have not changed since the last profile
    are not read again.
    """
    from lumos.cli.screen import steps

    lumos = options.lumos
    with steps() as progress:
        report = lumos.profiles.profile(
            dataset,
            sample=sample,
            rows=rows,
            columns=[name.strip() for name in columns.split(",") if name.strip()]
            if columns
            else (),
            full=full,
            progress=progress,
        )
    if options.json:
        print_json(report)
    else:
        _print(report, Names(lumos))
    _complain(report)
    if not report.kept:
        raise typer.Exit(1)


def _print(report: "ProfileReport", names: Names) -> None:
    from lumos.cli.screen import plural, stdout
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
    known = f", {report.files_known:,} known before" if report.files_known else ""
    whole = "" if report.completeness is None else f", {report.completeness:.2%} complete"
    console.print(
        f"{plural(report.profile.rows, 'row')}{sampled(plain)}{whole}. "
        f"{plural(report.files_read, 'file')} read{known}, in {report.seconds:.1f} s."
    )
    if report.withheld:
        withheld = ", ".join(report.withheld)
        console.print(f"Values of columns labelled as private are not kept: {withheld}.")


def sampled(profile: dict[str, Any]) -> str:
    """In brackets, how much of the data a profile is of; nothing where it is of all."""
    share = profile.get("sampled")
    return "" if share is None else f" (a sample of {share:.2%})"


def profile_table(profile: dict[str, Any]) -> "Table":
    """What was measured, a row for each column."""
    from lumos.cli.screen import compact_table, number

    heads = ("COLUMN", "FILLED", "DISTINCT", "MINIMUM", "MEDIAN", "MAXIMUM", "MEAN", "LENGTH", "")
    rows = []
    for path, column in profile.get("columns", {}).items():
        distinct = column.get("distinct")
        rows.append(
            (
                path,
                _filled(column, profile["rows"]),
                "" if distinct is None else number(distinct, exact=distinct <= 1),
                _short(column.get("minimum")),
                _short(column.get("quantiles", {}).get(_MEDIAN)),
                _short(column.get("maximum")),
                _mean(column),
                _length(column),
                _remarks(column),
            )
        )
    return compact_table(heads, rows, right=("FILLED", "DISTINCT"))


def frequent_lines(profile: dict[str, Any]) -> list[str]:
    """The frequent values of each column that has some."""
    rows = max(1, profile["rows"])
    lines = []
    for path, column in profile.get("columns", {}).items():
        if top := column.get("top"):
            some = ", ".join(
                f"{_short(each['value'])} {each['count'] / rows:.1%}" for each in top[:5]
            )
            lines.append(f"frequent in {path}: {some}")
    return lines


def _filled(column: dict[str, Any], rows: int) -> str:
    if not rows:
        return ""
    return f"{1 - (column.get('nulls', 0) + column.get('misfits', 0)) / rows:.2%}"


def _mean(column: dict[str, Any]) -> str:
    mean, spread = column.get("mean"), column.get("stddev")
    if mean is None:
        return ""
    if spread is None:
        return _short(mean)
    return f"{float(mean):.6g} ± {spread:.4g}"


def _length(column: dict[str, Any]) -> str:
    if column.get("shortest") is None:
        return ""
    return f"{column['shortest']:,} to {column['longest']:,}"


def _remarks(column: dict[str, Any]) -> str:
    words = [
        f"{column[name]:,} {word}"
        for name, word in (("nans", "NaN"), ("misfits", "of another type"))
        if column.get(name)
    ]
    if elements := column.get("elements"):
        words.append(f"{elements:,} elements, {column.get('null_elements', 0):,} null")
    return ", ".join(words)


def _short(text: str | None) -> str:
    if text is None:
        return ""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _complain(report: "ProfileReport") -> None:
    from lumos.cli.ingest import complain_of

    complain_of(report.problems)
