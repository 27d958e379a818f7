"""How values look on a screen."""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

from rich.console import Console
from rich.progress import (
    BarColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as ProgressBar
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from lumos.cli.lines import escaped, one_line
from lumos.cli.options import QUIET
from lumos.progress import Progress, no_progress
from lumos.schemas.renames import RENAME_NOTE

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderableType

    from lumos.model.change import Verdict
    from lumos.schemas.findings import ChangeRow, ChangeValue
    from lumos.schemas.report_parts import AffectedReport

# Tables of a lake may be empty, and yet are made of files.
_WITH_LOGS: Final = ("delta", "hudi", "iceberg")
STYLES: Final = {
    "breaking": "bold red",
    "undetermined": "yellow",
    "compatible": "green",
    "informational": "dim",
}
CHANGE_WORDS: Final = {
    "added": "added",
    "removed": "removed",
    "type_changed": "changed",
    "nullability": "nullable",
    "default": "default",
    "description": "comment",
    "tags": "tags",
    "key": "key",
    "partitioning": "partition",
    "reordered": "reordered",
}
# What a yes or no means for each kind of change.
_SWITCHES: Final = {
    "nullability": ("NOT NULL", "NULL"),
    "key": ("no key", "key"),
    "partitioning": ("no partition", "partition"),
}
_LONGEST_SIDE: Final = 120
_WIDTHS: Final = (10, 23, 27)
_BLANKS: Final = re.compile(r" +(?=\n)")


class _SafeConsole(Console):
    """Shows text as it is, and never does what it says; text that is not `Text` is one line."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*map(_in_line, objects), **options)

    def render(
        self, renderable: "RenderableType", options: "ConsoleOptions | None" = None
    ) -> "Iterable[Segment]":
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(escaped(segment.text), segment.style)


class _SafeTable(Table):
    """A table whose cells are lines, but for those that are `Text`."""

    def add_row(self, *cells: "RenderableType | None", **options: Any) -> None:
        super().add_row(*map(_in_line, cells), **options)


def _in_line(shown: Any) -> Any:
    return one_line(shown) if isinstance(shown, str) else shown


class _Trimmed:
    """A file or a pipe that gets no blanks at the ends of lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(_BLANKS.sub("", text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def stdout() -> Console:
    """The console for results; a file or a pipe gets lines as long as they need to be."""
    console = _console()
    if console.is_terminal:
        return console
    return _console(file=cast("TextIO", _Trimmed(sys.stdout)), width=1000)


def stderr() -> Console:
    """The console for progress and remarks."""
    return _console(stderr=True)


def _console(
    *, stderr: bool = False, width: int | None = None, file: TextIO | None = None
) -> Console:
    # Names of datasets and fields may look like markup; they are shown as they are.
    return _SafeConsole(
        file=file,
        stderr=stderr,
        width=width,
        highlight=False,
        soft_wrap=True,
        markup=False,
        emoji=False,
    )


@contextmanager
def steps() -> "Iterator[Progress]":
    """The one display of long work, on a terminal only: the step in hand, how far it is, how fast,
    and the time it took and will take."""
    console = stderr()
    if not console.is_terminal or os.environ.get(QUIET):
        yield no_progress
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with ProgressBar(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None, rate="")

        def show(
            step: str, *, files: int = 0, share: float | None = None, unit: str = "files"
        ) -> None:
            if share is None:
                progress.reset(task, description=one_line(step), total=None, rate="")
                return
            seconds = progress.tasks[task].elapsed or 0.0
            rate = f"{files:,} {unit}, {files / seconds:,.0f}/s" if files and seconds else ""
            progress.update(task, total=1.0, completed=share, rate=rate)

        yield show


def table(*columns: str, right: Iterable[str] = ()) -> Table:
    """A table without lines; columns named in `right` hold numbers."""
    built = _SafeTable(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        built.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return built


def compact_table(
    head: Sequence[str], rows: "Sequence[Sequence[RenderableType]]", right: Iterable[str] = ()
) -> Table:
    """A table without the columns that are empty in every row."""
    kept = [place for place in range(len(head)) if any(row[place] for row in rows)]
    built = table(*(head[place] for place in kept), right=right)
    for row in rows:
        built.add_row(*(row[place] for place in kept))
    return built


def aligned(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Rows in columns under their names, for more of them than a table can take."""
    if not rows:
        return
    lines = [tuple(map(one_line, row)) for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True))
        yield "  ".join(cells).rstrip()


def changes_table(changes: "Iterable[ChangeRow]", *, notes: bool = False) -> Table:
    """Judged changes, old and new side by side: removed  discount  DECIMAL(9,2)  BREAKING."""
    built = table("", "", "", "")
    built.show_header = False
    # Columns stay in line from one dataset to the next, unless a name is very long.
    for column, width in zip(built.columns, (*_WIDTHS, 0), strict=True):
        column.min_width = width
    for change in changes:
        judged = _judged(change)
        for note in change.notes if notes else filter(_is_rename, change.notes):
            judged.append(f"\n  {note}", style="dim")
        built.add_row(f"  {CHANGE_WORDS[change.kind]}", _place(change), _sides(change), judged)
    return built


def print_changes(
    changes: "Iterable[ChangeRow]", affected: "AffectedReport | None", *, most: int, rest: str
) -> None:
    """Judged changes, each with the datasets downstream that it breaks or may break.

    Of these, `most` are named for each change; `rest` is the command that names the others.
    """
    console = stdout()
    under: dict[str, list[tuple[str, str]]] = {}
    unnamed = 0
    if affected is not None:
        for each in affected.datasets:
            for use in each.uses:
                under.setdefault(use.path, []).append((use.sentence, STYLES[each.verdict.value]))
        unnamed = affected.breaking + affected.undetermined - len(affected.datasets)

    def print_affected(path: str) -> None:
        nonlocal unnamed
        lines = under.pop(path)
        for sentence, style in lines[:most]:
            console.print(f"    {sentence}", style=style)
        if (more := len(lines) - most + unnamed) > 0:
            console.print(f"    ... and {more:,} more: {rest}")
        unnamed = 0

    rows: list[ChangeRow] = []
    for change in changes:
        rows.append(change)
        if change.path in under:
            console.print(changes_table(rows))
            print_affected(change.path)
            rows.clear()
    if rows:
        console.print(changes_table(rows))
    for path in tuple(under):
        print_affected(path)
    if affected is not None and affected.problem is not None:
        console.print(f"    {affected.summary}: {affected.problem}", style=STYLES["undetermined"])


def change_lines(changes: "Iterable[ChangeRow]") -> Iterator[str]:
    """The same as plain lines, without notes beside likely renames."""
    for change in changes:
        cells = (f"  {CHANGE_WORDS[change.kind]}", _place(change), escaped(_sides(change).plain))
        padded = (f"{cell:<{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))
        renames = (f"  {note}" for note in filter(_is_rename, change.notes))
        yield "  ".join((*padded, _judged(change).plain, *renames))


def _is_rename(note: str) -> bool:
    return note.startswith(RENAME_NOTE)


def _judged(change: "ChangeRow") -> Text:
    verdict = change.consumer.value
    judged = Text(verdict.upper() if verdict == "breaking" else verdict, style=STYLES[verdict])
    if change.storage.value == "breaking" != verdict:
        judged.append(", old data BREAKING", style="red")
    if change.flags:
        judged.append(f"  [{', '.join(change.flags)}]", style="dim")
    return judged


def alarming(verdict: "Verdict | None") -> Text:
    """The verdicts that step the major version; others need no word."""
    words = {"breaking": "BREAKING", "undetermined": "undetermined"}
    return Text(words.get(verdict or "", ""), style=STYLES.get(verdict or "", ""))


def _place(change: "ChangeRow") -> str:
    if change.path:
        return one_line(change.path)
    return "columns" if change.kind == "reordered" else "(whole dataset)"


def _sides(change: "ChangeRow") -> Text:
    words = _SWITCHES.get(change.kind, ("no", "yes"))
    sides = [
        (_shown(side, words), style)
        for side, style in ((change.before, "red"), (change.after, "green"))
        if side is not None
    ]
    shown = Text()
    for text, style in sides:
        if shown:
            shown.append(" -> ", style="dim")
        shown.append(text, style=style)
    return shown


def _shown(side: "ChangeValue", words: tuple[str, str]) -> str:
    if isinstance(side, bool):
        return words[side]
    text = " ".join((", ".join(side) if isinstance(side, tuple) else str(side)).split())
    text = escaped(text)
    return text if len(text) <= _LONGEST_SIDE else f"{text[: _LONGEST_SIDE - 3]}..."


def size(count: int, *, exact: bool = True) -> str:
    """Bytes as people say them; an estimate carries a tilde."""
    if not exact:
        return f"~{size(count)}"
    value = float(count)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError("unreachable")


def number(count: int | None, *, exact: bool = True) -> str:
    """A count with thousands apart; an estimate carries a tilde."""
    if count is None:
        return "?"
    return f"{count:,}" if exact else f"~{count:,}"


def file_count(count: int, format: str | None) -> str:
    """How many files there are; nothing where a database keeps the data."""
    return f"{count:,}" if count or format in _WITH_LOGS else ""


def plural(count: int, word: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def files_and_tables(files: int, tables: int) -> str:
    """How much a scan looked at: `3 files and 2 tables`; nothing where there was nothing."""
    counted = ((files, "file"), (tables, "table"))
    return " and ".join(plural(count, what) for count, what in counted if count)


def when(moment: datetime) -> str:
    """A time to the second, in UTC."""
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def ago(moment: datetime, now: datetime) -> str:
    """How long ago something was, in its largest unit: 45min, 2h, 3d."""
    minutes = max(0, int((now - moment).total_seconds() // 60))
    if minutes < 60:
        return f"{minutes}min ago"
    hours = minutes // 60
    return f"{hours}h ago" if hours < 48 else f"{hours // 24}d ago"
