"""Schedules: each due time becomes one job, whatever workers and clocks do."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs.conftest import START, SetClock
from lumos import Lumos
from lumos.errors import MisuseError
from lumos.jobs.schedule_runs import fire_due
from lumos.jobs.schedules import Schedules
from lumos.jobs.service import Jobs
from lumos.store import Database, JobRegistry, Store


class Planner:
    """Schedules with a clock that tests set."""

    def __init__(self, database: Database, clock: SetClock) -> None:
        store = Store(database)
        store.jobs = self.registry = JobRegistry(database, clock)
        facts: dict[str, Any] = {"store": lambda: store, "make_store": lambda: store}
        self.jobs = Jobs(
            Lumos().settings, **facts, database=lambda: database, make_runner=lambda: None  # type: ignore[arg-type, return-value]
        )  # fmt: skip
        self.schedules = Schedules(self.jobs, **facts)

    def fire(self) -> int:
        return fire_due(self.registry, self.jobs._scheduled_request)

    def due_times(self, name: str = "s") -> list[str]:
        """The due times that were handled, oldest first."""
        runs = reversed(self.registry.schedules.runs(name))
        return [due.strftime("%m-%d %H:%M") + ("" if job else " skipped") for due, job in runs]


@pytest.fixture
def planner(database: Database, clock: SetClock, workplace: object) -> Planner:  # noqa: ARG001
    return Planner(database, clock)


def test_a_due_schedule_becomes_a_job(planner: Planner, clock: SetClock) -> None:
    added = planner.schedules.add("s", "0 * * * *", "version:scan", max_attempts=7, priority=3)
    assert added.next_due == datetime(2024, 1, 15, 11, 0, tzinfo=UTC)
    assert planner.fire() == 0
    clock.move(minutes=30)
    assert planner.fire() == 1
    assert planner.fire() == 0
    (job,) = planner.jobs.list().jobs
    assert (job.kind, job.state, job.priority, job.max_attempts) == ("version", "queued", 3, 7)
    assert job.requested_by == "schedule:s"
    shown = planner.schedules.show("s")
    assert (shown.last_job, shown.last_due) == (job.id, clock.now)
    assert shown.next_due == clock.now + timedelta(hours=1)


def test_several_steps_become_one_chain(planner: Planner, clock: SetClock) -> None:
    planner.schedules.add("s", "hourly", "version:auto", "cost-record")
    clock.move(hours=1)
    planner.fire()
    (job,) = planner.jobs.list().jobs
    assert (job.kind, job.steps) == ("chain", 2)


def test_many_workers_fire_each_due_time_once(planner: Planner, clock: SetClock) -> None:
    for number in range(5):
        planner.schedules.add(f"s{number}", "*/10 * * * *", "version:scan", catch_up="all")
    clock.move(hours=2)
    made: list[int] = []
    threads = [
        threading.Thread(target=lambda: made.append(planner.fire())) for _ in range(6)
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(made) == 5 * 12
    assert len(planner.jobs.list(limit=1_000).jobs) == 60
    assert len(planner.due_times("s3")) == len(set(planner.due_times("s3"))) == 12


def test_a_clock_that_is_set_back_neither_skips_nor_repeats(
    planner: Planner, clock: SetClock
) -> None:
    planner.schedules.add("s", "*/15 * * * *", "version:scan", catch_up="all")
    for _ in range(8):
        clock.move(minutes=15)
        planner.fire()
    clock.move(minutes=-60)
    for _ in range(8):
        clock.move(minutes=15)
        planner.fire()
    assert planner.due_times() == [
        "01-15 10:45", "01-15 11:00", "01-15 11:15", "01-15 11:30", "01-15 11:45", "01-15 12:00",
        "01-15 12:15", "01-15 12:30", "01-15 12:45", "01-15 13:00", "01-15 13:15", "01-15 13:30",
    ]  # fmt: skip


def test_a_clock_that_is_set_forward_catches_up(planner: Planner, clock: SetClock) -> None:
    planner.schedules.add("s", "*/15 * * * *", "version:scan", catch_up="all")
    clock.move(hours=1)
    assert planner.fire() == 4


@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [
        ("all", ["01-15 11:00", "01-15 12:00", "01-15 13:00"]),
        ("last", ["01-15 13:00"]),
        ("none", ["01-15 13:00 skipped"]),
    ],
)
def test_times_without_a_worker_are_caught_up_by_policy(
    planner: Planner, clock: SetClock, catch_up: str, expected: list[str]
) -> None:
    planner.schedules.add("s", "hourly", "version:scan", catch_up=catch_up)
    clock.move(hours=3)
    planner.fire()
    assert planner.due_times() == expected
    clock.move(minutes=30)
    planner.fire()
    assert planner.due_times()[-1] == "01-15 14:00"


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("2024-03-30T23:00", ["03-30 23:30", "03-31 00:30", "03-31 01:30", "03-31 02:30"]),
        ("2024-10-26T23:00", ["10-26 23:30", "10-27 00:30", "10-27 01:30", "10-27 02:30"]),
    ],
    ids=["spring", "autumn"],
)
def test_hourly_runs_go_on_through_both_switches(
    planner: Planner, clock: SetClock, start: str, expected: list[str]
) -> None:
    clock.now = datetime.fromisoformat(start).replace(tzinfo=UTC)
    planner.schedules.add("s", "30 * * * *", "version:scan", timezone="Europe/Oslo")
    while len(planner.due_times()) < len(expected):
        clock.move(minutes=10)
        planner.fire()
    assert planner.due_times() == expected


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("2024-03-30T12:00", ["03-31 01:00", "04-01 00:30"]),
        ("2024-10-26T12:00", ["10-27 00:30", "10-28 01:30"]),
    ],
    ids=["spring", "autumn"],
)
def test_daily_runs_happen_once_on_both_switches(
    planner: Planner, clock: SetClock, start: str, expected: list[str]
) -> None:
    clock.now = datetime.fromisoformat(start).replace(tzinfo=UTC)
    planner.schedules.add("s", "30 2 * * *", "version:scan", timezone="Europe/Oslo")
    for _ in range(4 * 40):
        clock.move(minutes=15)
        planner.fire()
    assert planner.due_times() == expected


def test_a_paused_schedule_makes_no_jobs_and_skips_the_pause(
    planner: Planner, clock: SetClock
) -> None:
    planner.schedules.add("s", "hourly", "version:scan", catch_up="all")
    assert planner.schedules.pause("s").next_due is None
    clock.move(hours=5)
    assert planner.fire() == 0
    resumed = planner.schedules.resume("s")
    assert resumed.next_due == datetime(2024, 1, 15, 16, 0, tzinfo=UTC)
    clock.move(minutes=30)
    planner.fire()
    assert planner.due_times() == ["01-15 16:00"]


def test_a_resume_after_the_clock_was_set_back_repeats_nothing(
    planner: Planner, clock: SetClock
) -> None:
    planner.schedules.add("s", "hourly", "version:scan")
    clock.move(minutes=30)
    planner.fire()
    clock.move(hours=-2)
    planner.schedules.pause("s")
    assert planner.schedules.resume("s").next_due == datetime(2024, 1, 15, 12, 0, tzinfo=UTC)


def test_jitter_delays_the_job_but_not_the_schedule(planner: Planner, clock: SetClock) -> None:
    planner.schedules.add("s", "hourly", "version:scan", jitter=600)
    clock.move(minutes=30)
    planner.fire()
    (job,) = planner.jobs.list().jobs
    assert clock.now < job.not_before <= clock.now + timedelta(seconds=600)
    assert planner.schedules.show("s").next_due == clock.now + timedelta(hours=1)


def test_a_run_by_hand_does_not_move_the_schedule(planner: Planner) -> None:
    planner.schedules.add("s", "hourly", "version:scan")
    before = planner.schedules.show("s")
    assert planner.schedules.run("s", requested_by="ann").requested_by == "ann"
    assert planner.schedules.show("s") == before


def test_a_removed_schedule_is_gone_and_its_jobs_stay(planner: Planner, clock: SetClock) -> None:
    planner.schedules.add("s", "hourly", "version:scan")
    clock.move(hours=1)
    planner.fire()
    planner.schedules.remove("s")
    clock.move(hours=1)
    assert planner.fire() == 0
    assert planner.schedules.list().schedules == ()
    assert len(planner.jobs.list().jobs) == 1
    planner.schedules.add("s", "hourly", "version:scan")
    clock.move(hours=1)
    assert planner.fire() == 1


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"name": ""}, "not a valid name of a schedule"),
        ({"name": "a b"}, "not a valid name of a schedule"),
        ({"name": "x" * 101}, "not a valid name of a schedule"),
        ({"cron": "often"}, "not a cron expression"),
        ({"timezone": "Mars"}, "Unknown time zone"),
        ({"catch_up": "some"}, "No catch-up policy named 'some'"),
        ({"jitter": -1}, "jitter must be"),
        ({"priority": 101}, "priority must be"),
        ({"max_attempts": 0}, "attempts must be"),
        ({"time_limit": 0}, "time limit in seconds must be"),
        ({"steps": ()}, "at least one step"),
        ({"steps": ("bake:cake",)}, "No kind of job named 'bake'"),
        ({"steps": ("version:scan", "export")}, "export:nightly.json"),
    ],
)
def test_bad_schedules_are_rejected(planner: Planner, facts: dict[str, Any], words: str) -> None:
    given = {"name": "s", "cron": "daily", "steps": ("version:scan",), **facts}
    steps = given.pop("steps")
    with pytest.raises(MisuseError, match=words):
        planner.schedules.add(given.pop("name"), given.pop("cron"), *steps, **given)
    assert planner.schedules.list().schedules == ()


def test_a_name_is_taken_once_and_unknown_ones_are_named(planner: Planner) -> None:
    planner.schedules.add("nightly", "daily", "version:scan")
    with pytest.raises(MisuseError, match="already"):
        planner.schedules.add("nightly", "daily", "version:scan")
    for call in ("remove", "pause", "resume", "run", "show"):
        with pytest.raises(MisuseError, match="Did you mean 'nightly'"):
            getattr(planner.schedules, call)("nigthly")


def test_a_schedule_that_this_version_cannot_run_does_not_stop_others(
    planner: Planner, clock: SetClock, caplog: pytest.LogCaptureFixture
) -> None:
    from msgspec.structs import replace

    planner.schedules.add("s", "hourly", "version:scan")
    other = planner.registry.schedules.schedule("s")
    assert other is not None
    planner.registry.schedules.add(replace(other, name="a", kind="later"))
    clock.move(hours=1)
    assert planner.fire() == 1
    assert "'a' cannot be run" in caplog.text
    assert clock.now > START


@pytest.mark.parametrize("name", ["idempotency_key", "concurrency_key"])
def test_keys_with_secrets_are_refused(planner: Planner, name: str) -> None:
    keys: dict[str, Any] = {name: "postgresql://u:hunter2@h/db"}
    with pytest.raises(MisuseError, match="jobs store no secrets") as refused:
        planner.jobs.submit("version", **keys)
    assert "hunter2" not in str(refused.value)
    assert planner.jobs.list().jobs == ()


@pytest.mark.parametrize("moment", [datetime.min, datetime.max])
def test_jobs_for_times_without_a_calendar_are_refused(planner: Planner, moment: datetime) -> None:
    with pytest.raises(MisuseError, match="not between the years"):
        planner.jobs.submit("version", not_before=moment.replace(tzinfo=UTC))
