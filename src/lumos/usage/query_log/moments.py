"""Times as logs write them, as whole microseconds since 1970 in UTC."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_ZONE: Final = re.compile(r"\s+(?:UTC|GMT|Z|(?P<offset>[+-]\d\d:?\d\d?))\Z")
_OTHER_ZONE: Final = re.compile(r"\s+[A-Z]{3,5}\Z")
_NUMBER: Final = re.compile(r"\d{9,19}(?:\.\d+)?\Z")
A_SECOND: Final = 1_000_000
A_DAY: Final = 86_400 * A_SECOND
# Seconds, milliseconds, microseconds and nanoseconds of this century differ by a factor that no
# time of this century reaches.
_UNITS: Final = ((10**11, 1_000_000.0), (10**14, 1_000.0), (10**17, 1.0), (10**20, 0.001))


def microseconds(value: object) -> int | None:
    """The moment in UTC, which is also meant where no zone is given; nothing where it is none."""
    if isinstance(value, str):
        return _of_text(value.strip())
    if isinstance(value, datetime):
        return _of(value)
    if isinstance(value, date):
        return (value.toordinal() - _EPOCH.toordinal()) * A_DAY
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _of_number(value)
    return None


def _of_text(text: str) -> int | None:
    try:
        return _of(datetime.fromisoformat(text))
    except ValueError:
        pass
    if _NUMBER.match(text):
        return _of_number(float(text) if "." in text else int(text))
    try:
        if zone := _ZONE.search(text):
            return _of(datetime.fromisoformat(text[: zone.start()] + (zone["offset"] or "")))
        if zone := _OTHER_ZONE.search(text):
            # Names of zones are ambiguous; an hour's error is better than no reads at all.
            return _of(datetime.fromisoformat(text[: zone.start()]))
    except ValueError:
        pass
    return None


def _of(moment: datetime) -> int:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MICROSECOND


def _of_number(number: float) -> int | None:
    for limit, factor in _UNITS:
        if 0 < number < limit:
            return int(number * factor)
    return None


def moment_of(at: int) -> datetime:
    """The moment as a value."""
    return _EPOCH + timedelta(microseconds=at)


def day_of(at: int) -> int:
    """The day of a moment, counted from 1970."""
    return at // A_DAY
