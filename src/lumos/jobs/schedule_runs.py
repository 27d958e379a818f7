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
    """Create jobs for all schedules that are due, and return the number of jobs.

    Due times for which `request_for` returns None are skipped. Any number of workers may call this
    at the same time: only one job is created for each due time.
    """
    now = registry.now()
    created = 0
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
                (due, request_for(record, due) if should_run else None) for due, should_run in times
            ]
        except LumosError as problem:
            # An invalid schedule, for example of another version, must not stop the others.
            _log.warning("The schedule '%s' cannot be run: %s", record.name, problem)
            continue
        created += len(registry.schedules.fire(record, requests, next_due=upcoming))
    return created
