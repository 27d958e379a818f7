"""Quiet hours: a part of each day in which no messages are sent (pure)."""

import re
from datetime import UTC, datetime, time, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from lumos.errors import MisuseError

_PATTERN: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)\s*-\s*([01]\d|2[0-3]):([0-5]\d)")


class QuietHours(NamedTuple):
    """The part of a day from `start` to `end`, on the next day if `end` is earlier."""

    start: time
    end: time

    def next_end(self, at: datetime, timezone: str) -> datetime:
        """Return the end of the quiet hours that include a time, or the time itself if none do."""
        local = at.astimezone(ZoneInfo(timezone))
        now = local.time()
        if self.start < self.end:
            is_quiet, days = self.start <= now < self.end, 0
        else:
            is_quiet, days = now >= self.start or now < self.end, int(now >= self.start)
        if not is_quiet:
            return at
        end = datetime.combine(local.date() + timedelta(days=days), self.end, local.tzinfo)
        # If the clock is set back, the end occurs twice: messages wait for the later one.
        return max(end.replace(fold=0).astimezone(UTC), end.replace(fold=1).astimezone(UTC), at)


def parse_quiet_hours(text: str) -> QuietHours:
    """Quiet hours such as `22:00-07:00`."""
    match = _PATTERN.fullmatch(text.strip())
    if match is None:
        raise MisuseError(f"'{text[:100]}' are not quiet hours. Use times such as 22:00-07:00.")
    first, second, third, fourth = map(int, match.groups())
    start, end = time(first, second), time(third, fourth)
    if start == end:
        raise MisuseError(f"The quiet hours '{text}' have no end. Use times such as 22:00-07:00.")
    return QuietHours(start, end)
