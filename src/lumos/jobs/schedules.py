"""The service behind `lumos schedule`."""

import re
from collections.abc import Callable
from typing import Final, get_args

from lumos.actor import current_actor
from lumos.errors import MisuseError, UnknownName
from lumos.jobs.configured_schedules import CONFIGURED
from lumos.jobs.kinds import plan_steps
from lumos.jobs.reports import (
    JobReport,
    ScheduleListReport,
    ScheduleRemovedReport,
    ScheduleReport,
    ScheduleSummary,
)
from lumos.jobs.service import Jobs
from lumos.model.cron import next_due, parse_cron, parse_timezone
from lumos.model.job import CatchUp, ScheduleRecord
from lumos.store import Store

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MAX_JITTER: Final = 24 * 3600


class Schedules:
    """Adds, pauses and removes schedules; workers create jobs when they are due."""

    def __init__(
        self,
        jobs: Jobs,
        *,
        store: Callable[[], Store],
        make_store: Callable[[], Store],
    ) -> None:
        self._jobs = jobs
        self._store = store
        self._make_store = make_store

    def add(
        self,
        name: str,
        cron: str,
        *steps: str,
        timezone: str = "UTC",
        jitter: int = 0,
        catch_up: CatchUp | str = "last",
        priority: int = 0,
        max_attempts: int | None = None,
        time_limit: int | None = None,
        created_by: str | None = None,
    ) -> ScheduleReport:
        """Run steps such as `ingest:sources.yaml` at the times of a cron expression.

        `jitter` is the maximum random delay of a run in seconds. `catch_up` says what to do about
        runs that were missed while no worker was running: `none` skips them, `last` runs the
        schedule once, `all` runs it once for each.
        """
        if not _NAME.fullmatch(name):
            raise MisuseError(
                f"'{name[:100]}' is not a valid name of a schedule. Use up to 100 letters, digits, "
                "dots, hyphens and underscores."
            )
        if catch_up not in get_args(CatchUp):
            raise UnknownName("catch-up policy", catch_up, get_args(CatchUp))
        if not 0 <= jitter <= _MAX_JITTER:
            raise MisuseError(f"The jitter must be 0 to {_MAX_JITTER:,} seconds, not {jitter:,}.")
        plan = plan_steps(steps)
        expression, zone = parse_cron(cron), parse_timezone(timezone)
        # Checks the remaining values like those of a job.
        request = self._jobs.request(
            plan, priority=priority, max_attempts=max_attempts, time_limit=time_limit
        )
        registry = self._make_store().jobs
        now = registry.now()
        policy: CatchUp = "none" if catch_up == "none" else "all" if catch_up == "all" else "last"
        record = ScheduleRecord(
            name=name,
            kind=plan.kind,
            arguments=plan.arguments,
            cron=expression,
            timezone=zone,
            jitter=jitter,
            catch_up=policy,
            paused=False,
            next_due=next_due(expression, zone, now),
            last_due=None,
            last_job=None,
            priority=priority,
            max_attempts=request.max_attempts,
            time_limit=request.time_limit,
            created_by=created_by or current_actor().name,
            created_at=now,
        )
        if not registry.schedules.add(record):
            raise MisuseError(
                f"There is a schedule named '{name}' already. Remove it first with: "
                f"lumos schedule remove {name}"
            )
        return ScheduleReport.of(record)

    def list(self) -> ScheduleListReport:
        """All schedules by name."""
        records = self._store().jobs.schedules.list()
        return ScheduleListReport(schedules=tuple(map(ScheduleSummary.of, records)))

    def show(self, name: str) -> ScheduleReport:
        """One schedule."""
        return ScheduleReport.of(self._find(name))

    def remove(self, name: str) -> ScheduleRemovedReport:
        """Remove a schedule; jobs that were created from it are not removed."""
        self._find(name)
        if name.startswith(CONFIGURED):
            reminder = name.removeprefix(CONFIGURED)
            raise MisuseError(
                f"The schedule '{name}' comes from lumos.yaml. Remove notifications.{reminder} "
                f"there, or pause it with: lumos schedule pause {name}"
            )
        self._store().jobs.schedules.remove(name)
        return ScheduleRemovedReport(name=name)

    def pause(self, name: str) -> ScheduleReport:
        """Pause a schedule: no jobs are created from it until it is resumed."""
        self._find(name)
        self._store().jobs.schedules.pause(name, paused=True)
        return self.show(name)

    def resume(self, name: str) -> ScheduleReport:
        """Resume a paused schedule; due times during the pause are skipped."""
        record = self._find(name)
        registry = self._store().jobs
        if record.paused:
            # Start at the last due time if the clock was set back, so that no run is repeated.
            now = registry.now()
            start = now if record.last_due is None else max(now, record.last_due)
            due = next_due(record.cron, record.timezone, start)
            registry.schedules.pause(name, paused=False, next_due=due)
        return self.show(name)

    def run(self, name: str, *, requested_by: str | None = None) -> JobReport:
        """Put the job of a schedule into the queue now, in addition to its due times."""
        record = self._find(name)
        return self._jobs.submit(
            record.kind,
            record.arguments,
            priority=record.priority,
            max_attempts=record.max_attempts,
            time_limit=record.time_limit,
            requested_by=requested_by,
        )

    def _find(self, name: str) -> ScheduleRecord:
        schedules = self._store().jobs.schedules
        record = schedules.schedule(name)
        if record is None:
            known = [each.name for each in schedules.list()]
            raise UnknownName("schedule", name, known, next="See all with: lumos schedule list")
        return record
