"""Due times: both daylight-saving switches, ends of months, leap days, clocks that are set."""

from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile

import pytest

from lumos.errors import MisuseError
from lumos.model.cron import (
    MAX_CAUGHT_UP,
    due_now,
    due_times,
    jitter_of,
    last_due,
    next_due,
    parse_cron,
    parse_timezone,
)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def times(cron: str, zone: str, after: str, count: int) -> list[str]:
    found = islice(due_times(cron, zone, at(after)), count)
    return [each.strftime("%Y-%m-%d %H:%M") for each in found]


OSLO = "Europe/Oslo"
# In Oslo, 2024-03-31 02:00 is 03:00, and 2024-10-27 03:00 is 02:00.
CASES = [
    pytest.param("30 2 * * *", OSLO, "2024-03-29T12:00", ["2024-03-30 01:30", "2024-03-31 01:00", "2024-04-01 00:30"], id="skipped time of day is due at the end of the gap"),
    pytest.param("0 3 * * *", OSLO, "2024-03-30T12:00", ["2024-03-31 01:00", "2024-04-01 01:00"], id="end of the gap"),
    pytest.param("0,30 2,3 * * *", OSLO, "2024-03-30T12:00", ["2024-03-31 01:00", "2024-03-31 01:30", "2024-04-01 00:00"], id="several times in the gap are one"),
    pytest.param("30 * * * *", OSLO, "2024-03-31T00:00", ["2024-03-31 00:30", "2024-03-31 01:30", "2024-03-31 02:30"], id="every real hour in spring"),
    pytest.param("30 2 * * *", OSLO, "2024-10-26T12:00", ["2024-10-27 00:30", "2024-10-28 01:30"], id="repeated time of day is due once"),
    pytest.param("30 2 * * *", OSLO, "2024-10-27T01:10", ["2024-10-28 01:30"], id="not again within the repeated hour"),
    pytest.param("0 3 * * *", OSLO, "2024-10-26T12:00", ["2024-10-27 02:00", "2024-10-28 02:00"], id="after the repeated hour"),
    pytest.param("30 * * * *", OSLO, "2024-10-27T00:00", ["2024-10-27 00:30", "2024-10-27 01:30", "2024-10-27 02:30"], id="every real hour in autumn"),
    pytest.param("*/30 * * * *", OSLO, "2024-10-27T00:00", ["2024-10-27 00:30", "2024-10-27 01:00", "2024-10-27 01:30"], id="every half hour in autumn"),
    pytest.param("30 2 * * *", "America/New_York", "2024-03-10T00:00", ["2024-03-10 07:00", "2024-03-11 06:30"], id="New York in spring"),
    pytest.param("30 1 * * *", "America/New_York", "2024-11-02T12:00", ["2024-11-03 05:30", "2024-11-04 06:30"], id="New York in autumn"),
    pytest.param("0 6 * * *", "Australia/Lord_Howe", "2024-04-06T00:00", ["2024-04-06 19:30", "2024-04-07 19:30"], id="half an hour of daylight saving"),
    pytest.param("0 6 L * *", "UTC", "2024-01-15T00:00", ["2024-01-31 06:00", "2024-02-29 06:00", "2024-03-31 06:00", "2024-04-30 06:00"], id="end of month"),
    pytest.param("0 6 31 * *", "UTC", "2024-01-15T00:00", ["2024-01-31 06:00", "2024-03-31 06:00", "2024-05-31 06:00"], id="31st only where there is one"),
    pytest.param("0 0 29 2 *", "UTC", "2024-03-01T00:00", ["2028-02-29 00:00", "2032-02-29 00:00"], id="leap day"),
    pytest.param("0 0 1 3 *", "UTC", "2099-12-01T00:00", ["2100-03-01 00:00"], id="no leap day in 2100"),
    pytest.param("0 0 * * 1-5", "UTC", "2024-01-12T00:00", ["2024-01-15 00:00", "2024-01-16 00:00"], id="weekdays"),
    pytest.param("0 0 1 1 *", "Pacific/Kiritimati", "2023-12-30T00:00", ["2023-12-31 10:00"], id="new year far in the east"),
]  # fmt: skip


@pytest.mark.parametrize(("cron", "zone", "after", "expected"), CASES)
def test_due_times(cron: str, zone: str, after: str, expected: list[str]) -> None:
    assert times(cron, zone, after, len(expected)) == expected


@pytest.mark.parametrize("cron", ["30 2 * * *", "*/20 1-3 * * *", "15 * * * *", "0,30 2,3 * * *"])
@pytest.mark.parametrize("zone", [OSLO, "America/New_York", "Australia/Lord_Howe", "UTC"])
def test_the_next_due_time_is_the_same_from_wherever_one_looks(cron: str, zone: str) -> None:
    start, end = at("2024-01-01T00:00"), at("2025-02-01T00:00")
    year = list(takewhile(lambda due: due < end, due_times(cron, zone, start)))
    assert year == sorted(set(year))
    # Every third day, and all days of the switches.
    for day in sorted({*range(0, 366, 3), *range(68, 72), *range(88, 100), *range(298, 310)}):
        for hour in (0, 1, 2, 5, 15):
            moment = start + timedelta(days=day, hours=hour, minutes=10)
            assert next_due(cron, zone, moment) == year[bisect_right(year, moment)]


@pytest.mark.parametrize(
    ("text", "expression"),
    [("daily", "0 0 * * *"), ("@hourly", "0 * * * *"), ("  0  6 * * MON ", "0 6 * * MON")],
)
def test_names_and_spaces_are_understood(text: str, expression: str) -> None:
    assert parse_cron(text) == expression


@pytest.mark.parametrize(
    "text",
    ["", "6", "* * * *", "* * * * * *", "61 * * * *", "0 24 * * *", "0 0 30 2 *", "0 0 31 4,6 *",
     "x y z a b", "0 0 * * 8", "*/0 * * * *", "0 0 1 1 *" * 99, "5-1 * * * *", "\x00 * * * *"],
)  # fmt: skip
def test_bad_expressions_are_rejected_with_advice(text: str) -> None:
    with pytest.raises(MisuseError, match="cron expression"):
        parse_cron(text)


@pytest.mark.parametrize(
    "name", ["", "Oslo", "Europe/Olso", "../../etc/passwd", "/etc/localtime", "UTC\x00"]
)
def test_unknown_time_zones_are_rejected(name: str) -> None:
    with pytest.raises(MisuseError, match="Unknown time zone"):
        parse_timezone(name)


def test_a_similar_time_zone_is_suggested() -> None:
    with pytest.raises(MisuseError, match="Did you mean 'Europe/Oslo'"):
        parse_timezone("Europe/Olso")


HOURLY = "0 * * * *"


@pytest.mark.parametrize(
    ("catch_up", "now", "expected", "upcoming"),
    [
        ("all", "2024-01-15T13:20", [("10:00", True), ("11:00", True), ("12:00", True), ("13:00", True)], "14:00"),
        ("last", "2024-01-15T13:20", [("13:00", True)], "14:00"),
        ("none", "2024-01-15T13:20", [("13:00", False)], "14:00"),
        ("none", "2024-01-15T13:04", [("13:00", True)], "14:00"),
        ("none", "2024-01-15T10:00", [("10:00", True)], "11:00"),
        ("last", "2024-01-15T10:00", [("10:00", True)], "11:00"),
    ],
)  # fmt: skip
def test_missed_times_are_caught_up_by_policy(
    catch_up: str, now: str, expected: list[tuple[str, bool]], upcoming: str
) -> None:
    times, following = due_now(
        HOURLY, "UTC", first=at("2024-01-15T10:00"), now=at(now), catch_up=catch_up,  # type: ignore[arg-type]
    )  # fmt: skip
    assert [(due.strftime("%H:%M"), is_run) for due, is_run in times] == expected
    assert following.strftime("%H:%M") == upcoming


@pytest.mark.parametrize("cron", ["* * * * *", "0 3 * * *", "0 0 1 * *", "0 0 1 1 *", "0 0 29 2 *"])
def test_the_last_due_time_after_years_is_found(cron: str) -> None:
    first = next_due(cron, OSLO, at("2016-01-01T00:00"))
    now = at("2024-06-01T00:30")
    ((due, is_run),), upcoming = due_now(cron, OSLO, first=first, now=now, catch_up="last")
    assert is_run
    assert due <= now < upcoming
    assert next_due(cron, OSLO, due) == upcoming


def test_very_many_missed_times_are_caught_up_in_portions() -> None:
    first = at("2024-01-01T00:00")
    times, upcoming = due_now(
        "* * * * *", "UTC", first=first, now=at("2024-01-02T00:00"), catch_up="all"
    )
    assert len(times) == MAX_CAUGHT_UP
    assert upcoming == times[-1][0] + timedelta(minutes=1)


def test_jitter_is_within_its_limit_and_the_same_for_all_workers() -> None:
    due = at("2024-01-15T10:00")
    delays = [jitter_of("nightly", due + timedelta(days=day), 600) for day in range(50)]
    assert delays == [jitter_of("nightly", due + timedelta(days=day), 600) for day in range(50)]
    assert all(timedelta() <= delay <= timedelta(seconds=600) for delay in delays)
    assert len(set(delays)) == 50
    assert jitter_of("nightly", due, 0) == timedelta()


@pytest.mark.parametrize(
    ("cron", "zone", "now", "expected"),
    [
        ("0 9 * * 1", "UTC", "2024-01-15T09:00", "2024-01-15T09:00"),
        ("0 9 * * 1", "UTC", "2024-01-15T08:59", "2024-01-08T09:00"),
        ("0 0 31 * *", "UTC", "2024-03-30T12:00", "2024-01-31T00:00"),
        ("0 0 29 2 *", "UTC", "2027-01-01T00:00", "2024-02-29T00:00"),
        ("30 2 * * *", "Europe/Oslo", "2024-03-31T12:00", "2024-03-31T01:00"),
        ("* * * * *", "UTC", "2024-01-15T09:00", "2024-01-15T09:00"),
    ],
)
def test_the_last_due_time(cron: str, zone: str, now: str, expected: str) -> None:
    at, wanted = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (now, expected))
    assert last_due(cron, zone, at) == wanted
