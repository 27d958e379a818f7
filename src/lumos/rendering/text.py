"""Values as text for people: counts, sizes, times, lists and long texts."""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

T = TypeVar("T")


def plural(count: int, noun: str, several: str | None = None) -> str:
    """`1 file`, `2 files`; `several` is the plural of an irregular noun."""
    return f"{count:,} {noun if count == 1 else several or f'{noun}s'}"


def few(items: Sequence[T], most: int) -> tuple[Sequence[T], int]:
    """The first items and how many more there are; never just one, which is shown instead."""
    return (items, 0) if len(items) <= most + 1 else (items[:most], len(items) - most)


def join_names(names: Sequence[str], most: int, total: int | None = None) -> str:
    """`a`, `a, b`, `a, b and 3 more`; `total` may be more than the names."""
    shown, more = few(names, most)
    more += max(0, (total or 0) - len(names))
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def cut(text: str, most: int) -> str:
    """The first `most` characters of a text; dots mark that there is more."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def shorten(text: str, most: int) -> str:
    """The same with all white space as single blanks, so that it fits on one line."""
    return cut(" ".join(text.split()), most)


def format_number(count: int | None, *, exact: bool = True) -> str:
    """`1,234`, or `~1,234` for an estimate and `?` for an unknown number."""
    if count is None:
        return "?"
    return f"{count:,}" if exact else f"~{count:,}"


def format_size(count: int, *, exact: bool = True) -> str:
    """Bytes in their largest unit: `1.2 MB`, or `~1.2 MB` for an estimate."""
    mark = "" if exact else "~"
    if count < 1000:
        return f"{mark}{count} B"
    value = float(count)
    for unit in ("kB", "MB", "GB"):
        value /= 1000
        if value < 1000:
            return f"{mark}{value:.1f} {unit}"
    return f"{mark}{value / 1000:.1f} TB"


def format_time(moment: datetime) -> str:
    """A time to the second, in UTC."""
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def format_age(moment: datetime, now: datetime) -> str:
    """How long ago a time was, in its largest unit: `45min ago`, `2h ago`, `3d ago`."""
    minutes = max(0, int((now - moment).total_seconds() // 60))
    if minutes < 60:
        return f"{minutes}min ago"
    hours = minutes // 60
    return f"{hours}h ago" if hours < 48 else f"{hours // 24}d ago"
