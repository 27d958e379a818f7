"""Parses the schedule of a dataset: when its runs start, and when their data is available."""

from datetime import timedelta
from typing import Final

from lumos.errors import MisuseError
from lumos.model.cron import parse_cron, parse_timezone
from lumos.model.dataset import Schedule
from lumos.model.time_expression import parse_duration

_MAX_LAG: Final = timedelta(days=31)


def parse_schedule(cron: str, *, timezone: str, lag: str | timedelta) -> Schedule:
    """A schedule of valid parts; `lag` is a duration such as `6h` or `+24h`."""
    duration = lag if isinstance(lag, timedelta) else parse_duration(lag.removeprefix("+"))
    if duration is None or not timedelta() <= duration <= _MAX_LAG:
        raise MisuseError(
            f"'{lag}' is not an availability lag. Use a duration of at most 31 days, such as 6h."
        )
    return Schedule(
        cron=parse_cron(cron),
        timezone=parse_timezone(timezone),
        availability_lag_minutes=int(duration.total_seconds()) // 60,
    )
