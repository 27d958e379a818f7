"""How values look on a screen."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from lumos.cli.options import QUIET

if TYPE_CHECKING:
    from lumos.analysis.report import ChangeRow, Side
    from lumos.engine.ingest import Announce

STYLES: Final = {
    "breaking": "bold red",
    "undetermined": "yellow",
    "compatible": "green",
    "informational": "dim",
}
_KINDS: Final = {
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


def stdout() -> Console:
    """The console for results; a file or a pipe gets lines as long as they need to be."""
    console = _console(stderr=False)
    return console if console.is_terminal else _console(stderr=False, width=1000)


def stderr() -> Console:
    """The console for progress and remarks."""
    return _console(stderr=True)


def _console(*, stderr: bool, width: int | None = None) -> Console:
    # Names of datasets and fields may look like markup; they are shown as they are.
    return Console(
        stderr=stderr, width=width, highlight=False, soft_wrap=True, markup=False, emoji=False
    )


@contextmanager
def steps() -> "Iterator[Announce]":
    """The one display of long work, on a terminal only: the step in hand, how far it is, how fast,
    and the time it took and will take."""
    console = stderr()
    if not console.is_terminal or os.environ.get(QUIET):
        yield lambda _step, **_progress: None
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None, rate="")

        def show(
            step: str, *, files: int = 0, share: float | None = None, unit: str = "files"
        ) -> None:
            if share is None:
                progress.reset(task, description=step, total=None, rate="")
                return
            seconds = progress.tasks[task].elapsed or 0.0
            rate = f"{files:,} {unit}, {files / seconds:,.0f}/s" if files and seconds else ""
            progress.update(task, total=1.0, completed=share, rate=rate)

        yield show


def table(*columns: str, right: Iterable[str] = ()) -> Table:
    """A table without lines; columns named in `right` hold numbers."""
    built = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        built.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return built


def aligned(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Rows in columns under their names, for more of them than a table can take."""
    if not rows:
        return
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def changes_table(changes: "Iterable[ChangeRow]", *, notes: bool = False) -> Table:
    """Judged changes, old and new side by side: removed  discount  DECIMAL(9,2)  BREAKING."""
    built = table("", "", "", "")
    built.show_header = False
    # Columns stay in line from one dataset to the next, unless a name is very long.
    for column, width in zip(built.columns, (10, 23, 27, 0), strict=True):
        column.min_width = width
    for change in changes:
        verdict = change.consumer.value
        judged = Text(verdict.upper() if verdict == "breaking" else verdict, style=STYLES[verdict])
        if change.storage.value == "breaking" != verdict:
            judged.append(", old data BREAKING", style="red")
        if change.flags:
            judged.append(f"  [{', '.join(change.flags)}]", style="dim")
        for note in change.notes if notes else ():
            judged.append(f"\n  {note}", style="dim")
        built.add_row(f"  {_KINDS[change.kind]}", _place(change), _sides(change), judged)
    return built


def _place(change: "ChangeRow") -> str:
    if change.path:
        return change.path
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


def _shown(side: "Side", words: tuple[str, str]) -> str:
    if isinstance(side, bool):
        return words[side]
    text = " ".join((", ".join(side) if isinstance(side, tuple) else str(side)).split())
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


def plural(count: int, word: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


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
