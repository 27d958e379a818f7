"""An impact as text: by owner, the worst verdicts first."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import typer
from msgspec import UNSET

from lumos.cli.schema_text import STYLES
from lumos.cli.screen import fold, stdout
from lumos.cli.text import Names, escape_line
from lumos.impact.reports import (
    WORST_FIRST,
    DownstreamReport,
    ImpactReport,
    ImpactsReport,
    ReasonReport,
)
from lumos.model.types import UNKNOWN
from lumos.rendering.text import few, join_names, plural, shorten
from lumos.schemas.wording import format_position

_MAX_REASONS: Final = 4
_MAX_COLUMNS: Final = 6
_MAX_NAMES: Final = 8
_NO_OWNER: Final = "no owner"
_MAX_CLAUSE_LENGTH: Final = 100
# With more datasets than this, printing in colour takes too long.
_MAX_COLOURED: Final = 1_000


class _Line(NamedTuple):
    text: str
    style: str = ""
    indent: int = 0


def print_impact(report: ImpactReport | ImpactsReport, names: Names) -> None:
    """Print an impact; on a terminal, lines are wrapped to its width."""
    console = stdout()
    if not console.is_terminal or report.summary.affected > _MAX_COLOURED:
        typer.echo(plain_text(report, names), nl=False)
        return
    for line in _lines(report, names):
        indent = " " * line.indent
        lines = fold(f"{indent}{line.text}", console.width, indent=f"{indent}  ")
        for text in lines or ("",):
            console.print(text, style=line.style or None)


def plain_text(report: ImpactReport | ImpactsReport, names: Names) -> str:
    """An impact as text for a file or a pipe."""
    lines = (" " * line.indent + escape_line(line.text) for line in _lines(report, names))
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _lines(report: ImpactReport | ImpactsReport, names: Names) -> Iterator[_Line]:
    reports = report.datasets if isinstance(report, ImpactsReport) else (report,)
    names.look_up(each.change.urn for each in reports)
    names.look_up(row.urn for each in reports for row in each.downstream)
    yield _Line(names(f"{report.headline}."), "bold")
    if isinstance(report, ImpactsReport):
        for each in report.datasets:
            yield _Line("")
            yield _Line(names(f"{each.headline}."), "bold")
            yield from _downstream_lines(each, names)
    else:
        yield from _downstream_lines(report, names)
    yield from _recommendation_lines([names(each) for each in report.recommendations])


def _downstream_lines(report: ImpactReport, names: Names) -> Iterator[_Line]:
    summary = report.summary
    if len(report.changes) > 1:
        for change in report.changes:
            yield _Line(_change_text(change.path, change.before, change.after), indent=2)
    if summary.undetermined:
        determined = summary.datasets - summary.undetermined
        share = int(100 * report.coverage)
        yield _Line(
            f"{determined:,} of {plural(summary.datasets, 'dataset')} determined ({share} %).",
            "dim",
        )
    affected = [row for row in report.downstream if row.is_listed]
    for owner, rows in _by_owner(affected):
        yield _Line("")
        yield _Line(owner or _NO_OWNER, "bold" if owner else "dim")
        for row in rows:
            yield from _dataset_lines(row, names)
    unaffected = [row.urn for row in report.downstream if not row.is_listed]
    if unaffected:
        yield _Line("")
        names_text = join_names([names(urn) for urn in unaffected], _MAX_NAMES)
        verb = "uses" if len(unaffected) == 1 else "use"
        yield _Line(
            f"{plural(len(unaffected), 'dataset')} {verb} nothing that changes: {names_text}.",
            "dim",
        )


def _by_owner(
    rows: Iterable[DownstreamReport],
) -> list[tuple[str | None, list[DownstreamReport]]]:
    """Group datasets by owner: first the owners with the worst verdicts, then with the most."""
    groups: dict[str | None, list[DownstreamReport]] = {}
    for row in rows:
        groups.setdefault(row.owner, []).append(row)

    def severity(group: tuple[str | None, list[DownstreamReport]]) -> tuple[object, ...]:
        counts = [-sum(row.verdict == word for row in group[1]) for word in WORST_FIRST]
        worst = next(number for number, count in enumerate(counts) if count)
        return worst, group[0] is None, *counts, group[0] or ""

    return sorted(groups.items(), key=severity)


def _dataset_lines(row: DownstreamReport, names: Names) -> Iterator[_Line]:
    word = row.verdict if row.verdict == "BREAKING" else row.verdict.lower()
    notes = [f"{row.distance} steps away"] if row.distance > 1 else []
    notes += [f"also {', '.join(row.owners[1:])}"] if len(row.owners) > 1 else []
    notes += ["gone"] if row.gone else []
    notes += [row.url] if row.url else []
    notes_text = f"  ({'; '.join(notes)})" if notes else ""
    yield _Line(f"{word:<12}  {names(row.urn)}{notes_text}", STYLES[row.verdict.lower()], 2)
    reasons, more = few(row.reasons, _MAX_REASONS)
    for reason in reasons:
        yield from _reason_lines(reason, names)
    if more:
        yield _Line(f"and {more:,} more reasons", "dim", 16)
    columns, more = few(row.changed, _MAX_COLUMNS)
    for column in columns:
        yield _Line(f"column {_change_text(column.name, column.before, column.after)}", "dim", 16)
    if more:
        yield _Line(f"and {more:,} more columns", "dim", 16)
    for path in _path_lines(row, names):
        yield _Line(f"via {path}", "dim", 16)
    yield from _spark_check_lines(row)


def _reason_lines(reason: ReasonReport, names: Names) -> Iterator[_Line]:
    parts = (names(reason.text), format_position(reason.file, reason.line))
    yield _Line(", ".join(filter(None, parts)), indent=16)
    clause = shorten(reason.clause or "", _MAX_CLAUSE_LENGTH)
    if clause and clause != "*":
        yield _Line(clause, "dim", 18)


def _path_lines(row: DownstreamReport, names: Names) -> Iterator[str]:
    """The paths on which a change reaches a dataset indirectly."""
    paths = [reason.path for reason in row.reasons[:_MAX_REASONS]]
    paths += [column.path[:-1] for column in row.changed[:_MAX_COLUMNS]]
    for path in dict.fromkeys(path for path in paths if len(path) > 1):
        ends = (step.partition("#") for step in path)
        yield " -> ".join(f"{names(urn)}.{column}" for urn, _, column in ends)


def _change_text(name: str, before: object, after: object) -> str:
    if after is None:
        return f"{name} is dropped"
    if before is None:
        return f"{name} is added: {after}"
    if str(before).startswith(UNKNOWN.text) and str(after).startswith(UNKNOWN.text):
        return f"{name} may change, its type is not known"
    return f"{name}: {before} -> {after}"


def _spark_check_lines(row: DownstreamReport) -> Iterator[_Line]:
    for check in () if row.spark_check is UNSET else row.spark_check:
        where = format_position(check.file, check.line)
        where = f" ({where})" if where else ""
        outcome = {"ok": "works", "fails": "fails", "cannot": "could not check"}[check.state]
        error = f": {' '.join(check.error.split())}" if check.error else ""
        contradicts = "" if check.agrees else " (contradicts the verdict)"
        yield _Line(f"Spark: {outcome}{contradicts}{error}{where}", "dim", 16)


def _recommendation_lines(texts: Sequence[str]) -> Iterator[_Line]:
    if texts:
        yield _Line("")
        yield _Line("Recommendations", "bold")
    for number, text in enumerate(texts, start=1):
        yield _Line(f"{number}. {text}", indent=2)
