"""Updates the schedules of reminders, which come from the configuration."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lumos.config import Settings
from lumos.jobs.kinds import plan_job
from lumos.model.cron import next_due, parse_cron
from lumos.model.job import ScheduleRecord
from lumos.store import JobRegistry

# The prefix of their names; names of other schedules cannot contain a colon.
CONFIGURED: Final = "reminder:"


def update_configured(registry: JobRegistry, settings: Settings) -> None:
    """Add, change and remove schedules to match the configuration; paused ones stay paused."""
    schedules = registry.schedules
    wanted = {each.name: each for each in _configured(settings, registry.now())}
    for record in schedules.list():
        if not record.name.startswith(CONFIGURED):
            continue
        if (new := wanted.pop(record.name, None)) is None:
            schedules.remove(record.name)
        elif (new.cron, new.timezone) != (record.cron, record.timezone):
            schedules.reschedule(new)
    for new in wanted.values():
        schedules.add(new)


def _configured(settings: Settings, now: datetime) -> Iterator[ScheduleRecord]:
    if not settings.switches.is_on("notifications"):
        return
    for name, reminder in settings.notifications.reminders.items():
        plan = plan_job("remind", {"name": name})
        cron = parse_cron(reminder.schedule)
        yield ScheduleRecord(
            name=f"{CONFIGURED}{name}",
            kind=plan.kind,
            arguments=plan.arguments,
            cron=cron,
            timezone=reminder.timezone,
            jitter=0,
            catch_up="last",
            paused=False,
            next_due=next_due(cron, reminder.timezone, now),
            last_due=None,
            last_job=None,
            priority=0,
            max_attempts=settings.jobs.max_attempts,
            time_limit=settings.jobs.time_limit,
            created_by="lumos.yaml",
            created_at=now,
        )
