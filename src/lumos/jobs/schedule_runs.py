"""Creates the jobs of schedules that are due."""

import logging
from collections.abc import Callable
from datetime import datetime

from lumos.errors import LumosError
from lumos.model.cron import due_now
from lumos.model.job import JobRequest, ScheduleRecord
from lumos.store import JobRegistry

_log = logging.getLogger(__name__)


def fire_due(
    registry: JobRegistry, request_for: Callable[[ScheduleRecord, datetime], JobRequest | None]
) -> int:
    """Make jobs of all schedules that are due, and return their number.

    A due time without a request is skipped.
    Any number of workers may do this at the same time: each due time becomes one job.
    """
    now = registry.now()
    made = 0
    for record in registry.schedules.due(now):
        try:
            times, upcoming = due_now(
                record.cron,
                record.timezone,
                first=record.next_due,
                now=now,
                catch_up=record.catch_up,
            )
            requests = [
                (due, request_for(record, due) if is_run else None) for due, is_run in times
            ]
        except LumosError as problem:
            # A schedule that another version of Lumos wrote must not stop the others.
            _log.warning("The schedule '%s' cannot be run: %s", record.name, problem)
            continue
        made += len(registry.schedules.fire(record, requests, next_due=upcoming))
    return made
