"""What PostgreSQL's server writes about statements: its log, and the messages in it."""

import re
from collections.abc import Iterator
from typing import Any, Final

SESSION: Final = re.compile(r"[0-9a-f]{8,16}\.[0-9a-f]+")
_ENTRY: Final = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: [A-Z]{3,5}|[+-]\d\d(?::?\d\d)?)?)"
    r"(?P<prefix>.*?)\b(?P<level>LOG|ERROR|FATAL|PANIC|WARNING|NOTICE|INFO|DETAIL|HINT|STATEMENT"
    r"|CONTEXT|QUERY|LOCATION|DEBUG[1-5]):\s\s?(?P<message>.*)\Z",
    re.DOTALL,
)
_STATEMENT: Final = re.compile(
    r"(?:duration: [\d.]+ ms\s+)?(?:statement|execute [^:]+): (?P<statement>.*)", re.DOTALL
)
_PROCESS: Final = re.compile(r"\[(\d+)(?:-\d+)?\]")
_USER: Final = re.compile(
    r"\b(?:user|usr|u)=(?P<user>[^,\s]+)|(?P<name>[^\s,\[\]=@]+)@(?P<db>[^\s,]+)"
)
_DATABASE: Final = re.compile(r"\b(?:db|database|dbname)=(?P<db>[^,\s]+)")


def statement_in(message: str) -> str | None:
    """The statement that a message of the server tells was run, if it tells of one."""
    match = _STATEMENT.match(message)
    return None if match is None else match["statement"].strip()


def is_one(text: str) -> bool:
    """Whether text begins like a log of the server."""
    return any(_ENTRY.match(line) for line in text.splitlines()[:20])


def entries(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """What was logged of statements; further lines of a message begin with a tab, or anyhow."""
    entry: dict[str, Any] | None = None
    more: list[str] = []
    for line in lines:
        # Only a line that begins with a date can begin an entry.
        match = _ENTRY.match(line) if line[:4].isdigit() else None
        if match is None:
            more.append(line)
            continue
        if entry is not None:
            yield {**entry, "message": "".join((entry["message"], *more))}
        more = []
        entry = _entry(match) if match["level"] == "LOG" else None
    if entry is not None:
        yield {**entry, "message": "".join((entry["message"], *more))}


def _entry(match: re.Match[str]) -> dict[str, Any]:
    prefix = match["prefix"]
    process, user, database = (each.search(prefix) for each in (_PROCESS, _USER, _DATABASE))
    return {
        "time": match["time"].replace(",", "."),
        "line": process[1] if process else None,
        "user": (user["user"] or user["name"]) if user else None,
        "database": database["db"] if database else user["db"] if user else None,
        "message": match["message"],
    }
