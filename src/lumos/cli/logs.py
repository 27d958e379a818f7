"""Logging to stderr, as text or JSON."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Literal

from lumos.cli.text import escape, escape_line

LogFormat = Literal["text", "json"]


class _LineFormatter(logging.Formatter):
    """Formats a record as one line, with its fields."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = getattr(record, "facts", {})
        message = [f"{name}={value}" for name, value in fields.items()]
        message = [_time_of(record), record.levelname.lower(), record.getMessage(), *message]
        line = escape_line(" ".join(message))
        if not record.exc_info:
            return line
        return f"{line}\n{escape(self.formatException(record.exc_info))}"


class _JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": _time_of(record),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def _time_of(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def set_up(*, format: LogFormat, verbose: bool, quiet: bool) -> None:
    """Log to stderr: warnings, everything with `verbose` or as JSON, only errors with `quiet`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if format == "json" else _LineFormatter())
    logger = logging.getLogger("lumos")
    logger.handlers = [handler]
    logger.propagate = False
    # Discard logs of libraries: they repeat raised errors, and contain a traceback at Ctrl-C.
    logging.getLogger().addHandler(logging.NullHandler())
    is_verbose = verbose or format == "json"
    logger.setLevel(logging.ERROR if quiet else logging.INFO if is_verbose else logging.WARNING)
