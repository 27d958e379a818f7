"""What Lumos says while it works: on stderr, for people or for machines."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Literal

from lumos.cli.lines import escaped, one_line

LogFormat = Literal["text", "json"]


class _Lines(logging.Formatter):
    """One line a record, with the facts that came along."""

    def format(self, record: logging.LogRecord) -> str:
        facts: dict[str, Any] = getattr(record, "facts", {})
        words = [f"{name}={value}" for name, value in facts.items()]
        words = [_moment(record), record.levelname.lower(), record.getMessage(), *words]
        line = one_line(" ".join(words))
        if not record.exc_info:
            return line
        return f"{line}\n{escaped(self.formatException(record.exc_info))}"


class _Json(logging.Formatter):
    """One JSON object a record."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def _moment(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def set_up(*, format: LogFormat, verbose: bool, quiet: bool) -> None:
    """Sends records to stderr: warnings by default, all with `verbose`, errors with `quiet`.

    Asking for JSON asks for the log: it then holds every step.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if format == "json" else _Lines())
    logger = logging.getLogger("lumos")
    logger.handlers = [handler]
    logger.propagate = False
    # Libraries log what they raise as well, and a traceback at every Ctrl-C.
    logging.getLogger().addHandler(logging.NullHandler())
    wordy = verbose or format == "json"
    logger.setLevel(logging.ERROR if quiet else logging.INFO if wordy else logging.WARNING)
