"""Parses times and durations in command arguments: `7d`, `12h`, `2024-01-15`."""

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from lumos.errors import MisuseError

_DURATION: Final = re.compile(r"(\d{1,9})(s|m|h|d|w)\Z", re.ASCII)
# Times beyond these overflow in time zones, schedules and lags.
_EARLIEST: Final = datetime(1900, 1, 1, tzinfo=UTC)
_AFTER: Final = datetime(3000, 1, 1, tzinfo=UTC)
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_time(text: str, *, now: datetime, end: bool = False) -> datetime:
    """Parse a time; UTC if no zone is given.

    A duration is subtracted from `now`. A date means its first moment or, with `end`, its last.
    """
    if length := parse_duration(text):
        try:
            return to_utc(now - length)
        except OverflowError:
            raise _invalid_time(text) from None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return _instant(text)
    start = datetime.combine(day, time(), UTC)
    start = to_utc(start)
    return start + timedelta(days=1, microseconds=-1) if end else start


def to_utc(moment: datetime) -> datetime:
    """A time in UTC, which is its zone if it has none; the years 1900 to 2999 are accepted."""
    try:
        instant = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        instant = None
    if instant is None or not _EARLIEST <= instant < _AFTER:
        raise MisuseError(
            f"The time {moment.isoformat()} is not between the years 1900 and 2999. "
            "Choose one between them."
        )
    return instant


def parse_duration(text: str) -> timedelta | None:
    """The duration of `45s`, `30m`, `12h`, `7d` or `2w`, or None for other text."""
    match = _DURATION.match(text.strip().lower())
    if match is None:
        return None
    try:
        return timedelta(**{_UNITS[match.group(2)]: int(match.group(1))})
    except OverflowError:
        raise _invalid_time(text) from None


def _instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text.strip())
    except ValueError:
        raise _invalid_time(text) from None
    return to_utc(instant)


def _invalid_time(text: str) -> MisuseError:
    return MisuseError(
        f"'{text}' is not a time. Use a duration such as 30m, 12h or 7d, a date such as "
        "2024-01-15, or a time such as 2024-01-15T10:30Z"
    )
