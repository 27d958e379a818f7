"""Output on a terminal: consoles, tables and progress.

Functions import Rich when they need it, since help and JSON do not use it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from lumos.cli.text import escape, escape_line, is_quiet
from lumos.progress import Progress, no_progress

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table as RichTable
    from rich.text import Text

# Longer tables are printed without colours and folding, which would take seconds.
_MAX_STYLED_ROWS: Final = 1_000
_STATUS_STYLES: Final = {
    "ok": "green", "kept": "yellow", "warn": "yellow", "error": "bold red"
}  # fmt: skip
_RIGHT: Final = ">"
_GAP: Final = "  "


def stdout() -> "Console":
    """The console for results."""
    from lumos.cli.console import create_console

    return create_console()


def stderr() -> "Console":
    """The console for progress and remarks."""
    from lumos.cli.console import create_console

    return create_console(stderr=True)


@contextmanager
def steps() -> "Iterator[Progress]":
    """Show the progress of long work on a terminal, unless --quiet was given."""
    console = stderr()
    if not console.is_terminal or is_quiet():
        yield no_progress
        return
    from lumos.cli.console import show_progress

    with show_progress(console) as progress:
        yield progress


def print_status(console: "Console", status: str, text: str) -> None:
    """Print a line that starts with `[ok]`, `[kept]`, `[warn]` or `[error]` in its colour."""
    console.print(f"[{status}]", style=_STATUS_STYLES[status], end=" ")
    console.print(text)


class Table:
    """Rows in columns: styled and folded to the width of a terminal, plain lines elsewhere.

    A column whose name starts with `>` is right-aligned. If all names are empty, there is no
    header. `empty` is printed instead of a table without rows. `widths` are the minimum widths of
    the first columns. `compact` omits columns without content. With `fold_at`, the last column is
    folded so that no line is longer than this, even if the output is not a terminal.
    """

    def __init__(
        self,
        *columns: str,
        empty: str = "",
        widths: Sequence[int] = (),
        compact: bool = False,
        fold_at: int | None = None,
    ) -> None:
        self._names = [name.removeprefix(_RIGHT) for name in columns]
        self._is_right = [name.startswith(_RIGHT) for name in columns]
        self._widths = [*widths, *([0] * (len(columns) - len(widths)))]
        self._empty = empty
        self._compact = compact
        self._fold_at = fold_at
        self._rows: list[tuple[tuple[str | Text, ...], str]] = []

    def add(self, *cells: "str | Text", style: str = "") -> None:
        """Add a row; strings are printed on one line, `Text` keeps its lines."""
        self._rows.append((cells, style))

    def lines(self) -> Iterator[str]:
        """The table as plain lines."""
        return (line for line, _ in self._styled_lines())

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        from rich.segment import Segment

        if not self._rows:
            if self._empty:
                yield escape_line(self._empty)
        elif console.is_terminal and self._fold_at is None and len(self._rows) <= _MAX_STYLED_ROWS:
            yield self._rich_table()
        else:
            for line, style in self._styled_lines():
                yield Segment(line, console.get_style(style))
                yield Segment.line()

    def _rich_table(self) -> "RichTable":
        from rich.table import Table as RichTable

        visible = self._visible_columns()
        table = RichTable(
            box=None, pad_edge=False, header_style="bold", padding=(0, len(_GAP), 0, 0),
            show_header=any(self._names),
        )  # fmt: skip
        for column in visible:
            table.add_column(
                self._names[column],
                justify="right" if self._is_right[column] else "left",
                overflow="fold",
                min_width=self._widths[column],
            )
        for cells, style in self._rows:
            row = (cells[column] for column in visible)
            table.add_row(
                *(escape_line(cell) if isinstance(cell, str) else cell for cell in row), style=style
            )
        return table

    def _visible_columns(self) -> list[int]:
        columns = range(len(self._names))
        if not self._compact:
            return list(columns)
        return [column for column in columns if any(cells[column] for cells, _ in self._rows)]

    def _styled_lines(self) -> Iterator[tuple[str, str]]:
        visible = self._visible_columns()
        rows = [([[self._names[column]] for column in visible], "bold")] if any(self._names) else []
        rows += [
            ([_lines_of(cells[column]) for column in visible], style) for cells, style in self._rows
        ]
        is_right = [self._is_right[column] for column in visible]
        widths = [
            max(
                self._widths[column],
                *(width_of(line) for cells, _ in rows for line in cells[index]),
            )
            for index, column in enumerate(visible)
        ]
        if self._fold_at is not None:
            width = self._fold_at - sum(widths[:-1]) - len(_GAP) * (len(visible) - 1)
            for cells, _ in rows:
                cells[-1] = [part for line in cells[-1] for part in fold(line, width)] or [""]
        for cells, style in rows:
            for line in zip_longest(*cells, fillvalue=""):
                yield join_columns(line, widths, is_right), style


def fold(text: str, width: int, *, indent: str = "") -> list[str]:
    """Wrap a text at `width` characters, without breaking words, so that names can be copied."""
    return wrap(
        text,
        max(1, width),
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def join_columns(
    cells: Sequence[str], widths: Sequence[int], is_right: Sequence[bool] | None = None
) -> str:
    """One line of a table; a cell that is wider than its column moves the cells after it."""
    padded = []
    for number, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        blanks = " " * (width - width_of(cell))
        padded.append(f"{blanks}{cell}" if is_right and is_right[number] else f"{cell}{blanks}")
    return _GAP.join(padded).rstrip()


def width_of(text: str) -> int:
    """The width of a text on a terminal; some characters are two columns wide."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _lines_of(cell: "str | Text") -> list[str]:
    return [escape_line(cell)] if isinstance(cell, str) else escape(cell.plain).split("\n")
