"""Due times of cron expressions in a time zone (pure).

Daylight saving time is handled as in Debian's cron: a skipped time of day is due at the end of the
gap, a repeated time of day is due the first time, and expressions with `*` as minute or hour are
due in every hour that passes.
"""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from lumos.errors import MisuseError, did_you_mean
from lumos.model.dataset import Schedule
from lumos.model.job import CatchUp
from lumos.model.time_expression import parse_duration

_NAMES: Final = {
    "hourly": "0 * * * *",
    "daily": "0 0 * * *",
    "weekly": "0 0 * * 0",
    "monthly": "0 0 1 * *",
    "yearly": "0 0 1 1 *",
}
_FIELD_COUNT: Final = 5
_MAX_LAG: Final = timedelta(days=31)
_MAX_LENGTH: Final = 200
# With `catch_up: none`, a due time is missed if no worker has noticed it for this long.
_GRACE_PERIOD: Final = timedelta(minutes=5)
# The maximum number of due times to catch up at once.
MAX_CAUGHT_UP: Final = 1_000
_LOOK_BACK_DAYS: Final = (0.05, 2, 62)
# The 29th of February occurs at least once in eight years.
_LONG_LOOK_BACK_DAYS: Final = (400, 8 * 366)


def parse_schedule(cron: str, *, timezone: str, lag: str | timedelta) -> Schedule:
    """Parse the schedule of a dataset; `lag` is a duration such as `6h` or `+24h`."""
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


def parse_cron(text: str) -> str:
    """Parse a cron expression of five fields, or a name such as `daily`."""
    expression = _NAMES.get(text.strip().removeprefix("@").lower(), text.strip())
    advice = "Use minute, hour, day, month and weekday, as in '0 6 * * 1-5', or daily, hourly, ..."
    if len(expression) > _MAX_LENGTH or len(expression.split()) != _FIELD_COUNT:
        raise MisuseError(f"'{text[:_MAX_LENGTH]}' is not a cron expression. {advice}")
    try:
        next(CronSim(expression, datetime(2024, 1, 1, tzinfo=UTC)))
    except CronSimError as problem:
        raise MisuseError(f"'{text}' is not a cron expression ({problem}). {advice}") from None
    except StopIteration:
        raise MisuseError(f"The cron expression '{text}' is never due. {advice}") from None
    return " ".join(expression.split())


def parse_timezone(name: str) -> str:
    """Check the name of a time zone."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        from zoneinfo import available_timezones

        nearest = did_you_mean(name, available_timezones())
        raise MisuseError(
            f"Unknown time zone '{name}'.{nearest} Use a name such as Europe/Oslo or UTC."
        ) from None
    return name


def next_due(expression: str, timezone: str, after: datetime) -> datetime:
    """The first due time after a time, in UTC."""
    return next(due_times(expression, timezone, after))


def due_times(expression: str, timezone: str, after: datetime) -> Iterator[datetime]:
    """The due times after a time, in UTC and ascending."""
    last = after.astimezone(UTC)
    for local in CronSim(expression, last.astimezone(ZoneInfo(timezone))):
        due = local.astimezone(UTC)
        # Skip repetitions, which occur in a repeated hour and at the end of a skipped hour.
        if due > last:
            last = due
            yield due


def due_now(
    expression: str, timezone: str, *, first: datetime, now: datetime, catch_up: CatchUp
) -> tuple[list[tuple[datetime, bool]], datetime]:
    """The due times from `first` to `now`, each with whether to run it, and the next due time.

    With the policy `all`, every due time is run. With `last`, only the last one is run, however
    late it is. With `none`, the last one is only run if it is at most five minutes late.
    """
    if catch_up == "all":
        later = takewhile(lambda due: due <= now, due_times(expression, timezone, first))
        times = [first, *islice(later, MAX_CAUGHT_UP - 1)]
    else:
        times = [_last_due(expression, timezone, first=first, now=now)]
    is_run = catch_up != "none" or now - times[-1] <= _GRACE_PERIOD
    return [(due, is_run) for due in times], next_due(expression, timezone, times[-1])


def last_due(expression: str, timezone: str, now: datetime) -> datetime | None:
    """The last due time that is not after `now`, or None if there was none in eight years."""
    for days in (*_LOOK_BACK_DAYS, *_LONG_LOOK_BACK_DAYS):
        start = now - timedelta(days=days)
        times = takewhile(lambda due: due <= now, due_times(expression, timezone, start))
        if (last := max(times, default=None)) is not None:
            return last
    return None


def _last_due(expression: str, timezone: str, *, first: datetime, now: datetime) -> datetime:
    """The last due time that is not after `now`."""
    # Look back step by step, since after a long outage there are very many due times.
    for days in _LOOK_BACK_DAYS:
        start = now - timedelta(days=days)
        if start <= first:
            break
        times = list(takewhile(lambda due: due <= now, due_times(expression, timezone, start)))
        if times:
            return times[-1]
    later = takewhile(lambda due: due <= now, due_times(expression, timezone, first))
    return max(later, default=first)


def jitter_of(name: str, due: datetime, jitter: int) -> timedelta:
    """The delay of a job after its due time: up to `jitter` seconds, the same for all workers."""
    if not jitter:
        return timedelta()
    digest = hashlib.blake2b(f"{name} {due.isoformat()}".encode(), digest_size=8).digest()
    return timedelta(seconds=jitter * (int.from_bytes(digest, "big") / 2**64))
