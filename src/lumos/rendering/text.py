"""Formats values as human-readable text: counts, sizes, times, lists and long texts."""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

T = TypeVar("T")


def plural(count: int, noun: str, several: str | None = None) -> str:
    """`1 file`, `2 files`; `several` is the plural of an irregular noun."""
    return f"{count:,} {noun if count == 1 else several or f'{noun}s'}"


def few(items: Sequence[T], limit: int) -> tuple[Sequence[T], int]:
    """The first `limit` items, or all if there is only one more, and the number of the rest."""
    return (items, 0) if len(items) <= limit + 1 else (items[:limit], len(items) - limit)


def join_names(names: Sequence[str], limit: int, total: int | None = None) -> str:
    """`a`, `a, b`, `a, b and 3 more`; `total` is the number of names if `names` is incomplete."""
    shown, more = few(names, limit)
    more += max(0, (total or 0) - len(names))
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def cut(text: str, limit: int) -> str:
    """Shorten a text to `limit` characters, with dots at the end if it was longer."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def shorten(text: str, limit: int) -> str:
    """Return the text on one line, with single spaces, cut at `limit` characters."""
    return cut(" ".join(text.split()), limit)


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


def format_duration(seconds: float) -> str:
    """`20 s`, `5 min` or `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 1 else "1 s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def format_age(moment: datetime, now: datetime) -> str:
    """The age of a time in its largest unit: `45min ago`, `2h ago`, `3d ago`."""
    minutes = max(0, int((now - moment).total_seconds() // 60))
    if minutes < 60:
        return f"{minutes}min ago"
    hours = minutes // 60
    return f"{hours}h ago" if hours < 48 else f"{hours // 24}d ago"
