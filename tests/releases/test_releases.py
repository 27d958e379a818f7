"""Releases end to end: a lake with daily partitions, a release, late data, and what changed."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from lumos.errors import MisuseError
from lumos.model.release import ReleaseRefresh
from lumos.sdk import Lumos

NOW = datetime(2026, 11, 17, 14, 0, tzinfo=UTC)
LAG = timedelta(hours=6)


class Lake:
    """Orders by day; each partition arrives six hours after the end of its day."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def add(self, day: datetime, **columns: list[object]) -> None:
        folder = self.root / "orders" / f"dt={day:%Y-%m-%d}"
        folder.mkdir(parents=True)
        file = folder / "part-0.parquet"
        parquet.write_table(pa.table({"id": [1, 2], **columns}), file)
        arrived = (day + timedelta(days=1) + LAG).timestamp()
        os.utime(file, (arrived, arrived))


class At:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def lake(workplace: Path) -> Lake:
    made = Lake(workplace / "lake")
    for number in range(20, 0, -1):
        made.add(datetime(2026, 11, 17, tzinfo=UTC) - timedelta(days=number))
    return made


@pytest.fixture
def clock() -> At:
    return At()


@pytest.fixture
def lumos(lake: Lake, workplace: Path, spark: SparkSession, clock: At) -> Lumos:  # noqa: ARG001
    made = Lumos(overrides={"storage.path": str(workplace / ".lumos" / "lumos.db")})
    made.ingest(lake.root)
    made.releases._clock = clock
    return made


def only(lumos: Lumos, name: str = "2026.11") -> ReleaseRefresh:
    (refresh,) = lumos.releases.show(name).refreshes
    return refresh


def test_a_schedule_is_learnt_set_and_listed(lumos: Lumos) -> None:
    (learnt,) = lumos.releases.learn("orders", apply=True).datasets
    assert learnt.schedule is not None
    assert (learnt.schedule.cron, learnt.schedule.availability_lag_minutes) == ("0 0 * * *", 360)
    assert learnt.confidence > 0.8
    assert learnt.applied
    (listed,) = lumos.releases.schedules().datasets
    assert listed.schedule == learnt.schedule
    assert listed.next_available == datetime(2026, 11, 18, 6, tzinfo=UTC)


def test_data_after_a_release_is_looked_for_until_it_is_there(
    lumos: Lumos, lake: Lake, clock: At
) -> None:
    lumos.annotations.schedules.set("orders", "daily", lag="6h")
    lumos.releases.notify("2026.11")
    waiting = only(lumos)
    assert (waiting.state, waiting.partition) == ("waiting", "2026-11-17")
    assert waiting.available == datetime(2026, 11, 18, 6, tzinfo=UTC)
    (job,) = lumos.jobs.list().jobs
    assert job.kind == "release-refresh"
    assert job.not_before == waiting.available

    clock.now = datetime(2026, 11, 18, 6, 1, tzinfo=UTC)
    lumos.releases.refresh("2026.11", due_only=True)
    late = only(lumos)
    assert (late.state, late.attempts, late.reason) == ("waiting", 1, "2026-11-17 has not arrived")
    assert late.next_look == datetime(2026, 11, 18, 6, 7, tzinfo=UTC)
    assert sorted(job.not_before for job in lumos.jobs.list().jobs) == [
        waiting.available,
        late.next_look,
    ]

    lumos.releases.refresh("2026.11", due_only=True)
    assert only(lumos).attempts == 1, "it is not due yet"

    lake.add(datetime(2026, 11, 17, tzinfo=UTC), amount=[1.5, 2.5])
    clock.now = datetime(2026, 11, 18, 6, 7, tzinfo=UTC)
    lumos.releases.refresh("2026.11", due_only=True)
    refreshed = only(lumos)
    assert refreshed.state == "refreshed"
    assert refreshed.after is not None
    assert refreshed.after.columns == refreshed.before.columns + 1
    assert refreshed.after.schema_version != refreshed.before.schema_version
    assert any("amount" in text for text in refreshed.changes)


def test_what_never_arrives_is_given_up_with_the_reason(lumos: Lumos, clock: At) -> None:
    lumos.annotations.schedules.set("orders", "daily", lag="6h")
    lumos.releases.notify("2026.11")
    give_up = only(lumos).give_up
    assert give_up is not None
    clock.now = give_up
    lumos.releases.refresh("2026.11")
    refresh = only(lumos)
    assert (refresh.state, refresh.reason) == ("given up", "2026-11-17 has not arrived")
    (summary,) = lumos.releases.list().releases
    assert summary.states == {"given up": 1}


def test_a_source_that_cannot_be_scanned_is_tried_again(
    lumos: Lumos, lake: Lake, clock: At
) -> None:
    lumos.annotations.schedules.set("orders", "daily", lag="6h")
    lumos.releases.notify("2026.11")
    away = lake.root.rename(lake.root.with_name("away"))
    clock.now = datetime(2026, 11, 18, 6, 1, tzinfo=UTC)
    lumos.releases.refresh("2026.11", due_only=True)
    refresh = only(lumos)
    assert (refresh.state, refresh.attempts) == ("waiting", 1)
    assert refresh.reason is not None
    assert "nothing at" in refresh.reason
    assert len(lumos.jobs.list().jobs) == 2
    away.rename(lake.root)
    lake.add(datetime(2026, 11, 17, tzinfo=UTC))
    lumos.releases.refresh("2026.11")
    assert only(lumos).state == "refreshed"


def test_to_announce_a_release_again_changes_nothing(lumos: Lumos) -> None:
    lumos.annotations.schedules.set("orders", "daily", lag="6h")
    first = lumos.releases.notify("2026.11")
    lumos.releases._clock = lambda: NOW + timedelta(hours=1)
    assert lumos.releases.notify("2026.11") == first
    assert len(lumos.jobs.list().jobs) == 1
    with pytest.raises(MisuseError, match="was announced for 2026-11-17 14:00 UTC"):
        lumos.releases.notify("2026.11", at="2026-11-18")


def test_a_backfill_names_the_partitions_that_are_missing(lumos: Lumos, lake: Lake) -> None:
    lumos.annotations.schedules.set("orders", "daily", lag="6h")
    removed = lake.root / "orders" / "dt=2026-11-12"
    (removed / "part-0.parquet").unlink()
    removed.rmdir()
    report = lumos.releases.backfill("orders", first="2026-11-10", last="2026-11-16")
    assert [each.partition for each in report.partitions] == [
        f"2026-11-{day}" for day in range(10, 17)
    ]
    assert report.missing == ("2026-11-12",)
    (day,) = (each for each in report.partitions if each.partition == "2026-11-11")
    assert day.arrived == datetime(2026, 11, 12, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda lumos: lumos.releases.notify(" "), "Give the release a name"),
        (lambda lumos: lumos.releases.notify("1.0"), "No dataset has a schedule. Set one with"),
        (lambda lumos: lumos.releases.show("1.0"), "Announce it with: lumos release notify 1.0"),
        (lambda lumos: lumos.releases.backfill("orders", first="7d"), "orders has no schedule"),
        (lambda lumos: lumos.annotations.schedules.set("orders", "x"), "is not a cron expression"),
        (
            lambda lumos: lumos.annotations.schedules.set("orders", "daily", lag="soon"),
            "'soon' is not an availability lag",
        ),
        (
            lambda lumos: lumos.annotations.schedules.set(
                "orders", "daily", timezone="Europe/Olso"
            ),
            "Did you mean",
        ),
    ],
)
def test_mistakes_end_with_the_next_command(
    lumos: Lumos, act: Callable[[Lumos], object], message: str
) -> None:
    with pytest.raises(MisuseError, match=message):
        act(lumos)


def test_a_dataset_without_a_schedule_is_named_if_it_was_asked_for(lumos: Lumos) -> None:
    lumos.releases.notify("2026.11", datasets="orders")
    refresh = only(lumos)
    assert refresh.state == "unscheduled"
    assert refresh.reason is not None
    assert "lumos release schedule set orders" in refresh.reason


def test_schedules_come_from_reviewed_files_too(lumos: Lumos, workplace: Path) -> None:
    file = workplace / "schedules.yaml"
    file.write_text(
        "datasets:\n"
        "  - dataset: orders\n"
        "    schedule:\n"
        "      cron: 0 2 * * 1\n"
        "      timezone: Europe/Oslo\n"
        "      availability_lag: +24h\n"
    )
    lumos.annotations.enrich(file)
    (listed,) = lumos.releases.schedules().datasets
    assert listed.schedule.timezone == "Europe/Oslo"
    assert listed.schedule.availability_lag_minutes == 24 * 60
