"""Rich consoles and the progress bar; imported late, since importing Rich is slow."""

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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

from lumos.cli.text import escape, escape_line

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderableType

    from lumos.progress import Progress

_TRAILING_BLANKS: Final = re.compile(r" +(?=\n)")


class SafeConsole(Console):
    """Escapes control characters; strings, unlike `Text`, are printed on one line."""

    def print(self, *objects: Any, **options: Any) -> None:
        lines = (escape_line(each) if isinstance(each, str) else each for each in objects)
        # Do not crop long lines, which would cut off the ends of names: terminals wrap them.
        super().print(*lines, **{"crop": False, **options})

    def render(
        self, renderable: "RenderableType", options: "ConsoleOptions | None" = None
    ) -> "Iterable[Segment]":
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(escape(segment.text), segment.style)


class _TrimmedStream:
    """A stream that removes trailing spaces from lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(_TRAILING_BLANKS.sub("", text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def create_console(*, stderr: bool = False) -> Console:
    """Create a console; lines in files and pipes are not wrapped."""
    # Names of datasets and fields may look like markup, but must be printed unchanged.
    settings: dict[str, Any] = {
        "highlight": False, "soft_wrap": True, "markup": False, "emoji": False
    }  # fmt: skip
    console = SafeConsole(stderr=stderr, **settings)
    if stderr or console.is_terminal:
        return console
    return SafeConsole(file=cast("TextIO", _TrimmedStream(sys.stdout)), width=1000, **settings)


@contextmanager
def show_progress(console: Console) -> "Iterator[Progress]":
    """Show a bar with the current step, files per second, elapsed and remaining time."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with ProgressBar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None, rate="")

        def update(
            step: str, *, files: int = 0, share: float | None = None, unit: str = "files"
        ) -> None:
            if share is None:
                bar.reset(task, description=escape_line(step), total=None, rate="")
                return
            seconds = bar.tasks[task].elapsed or 0.0
            rate = f"{files:,} {unit}, {files / seconds:,.0f}/s" if files and seconds else ""
            bar.update(task, total=1.0, completed=share, rate=rate)

        yield update
