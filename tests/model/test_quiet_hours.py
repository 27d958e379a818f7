"""Quiet hours: when a message that would disturb is due."""

from datetime import UTC, datetime

import pytest

from lumos.errors import MisuseError
from lumos.model.quiet_hours import parse_quiet_hours


@pytest.mark.parametrize(
    ("hours", "zone", "at", "expected"),
    [
        ("22:00-07:00", "UTC", "2024-01-15T21:59", "2024-01-15T21:59"),
        ("22:00-07:00", "UTC", "2024-01-15T22:00", "2024-01-16T07:00"),
        ("22:00-07:00", "UTC", "2024-01-16T00:00", "2024-01-16T07:00"),
        ("22:00-07:00", "UTC", "2024-01-16T06:59", "2024-01-16T07:00"),
        ("22:00-07:00", "UTC", "2024-01-16T07:00", "2024-01-16T07:00"),
        ("22:00-07:00", "UTC", "2024-02-29T23:00", "2024-03-01T07:00"),
        ("12:00-13:30", "UTC", "2024-01-15T12:15", "2024-01-15T13:30"),
        ("12:00-13:30", "UTC", "2024-01-15T13:30", "2024-01-15T13:30"),
        ("22:00-07:00", "Asia/Tokyo", "2024-01-15T14:00", "2024-01-15T22:00"),
        # The nights in which clocks change: 07:00 is UTC+1 before, and UTC+2 after.
        ("22:00-07:00", "Europe/Oslo", "2024-03-30T22:30", "2024-03-31T05:00"),
        ("22:00-07:00", "Europe/Oslo", "2024-10-26T21:30", "2024-10-27T06:00"),
        # 02:30 does not exist in the first of them and occurs twice in the second.
        ("22:00-02:30", "Europe/Oslo", "2024-03-30T22:30", "2024-03-31T01:30"),
        ("22:00-02:30", "Europe/Oslo", "2024-10-26T21:30", "2024-10-27T01:30"),
    ],
)
def test_a_message_in_quiet_hours_waits_for_their_end(
    hours: str, zone: str, at: str, expected: str
) -> None:
    given, wanted = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (at, expected))
    assert parse_quiet_hours(hours).next_end(given, zone) == wanted


@pytest.mark.parametrize("text", ["22-7", "22:00", "24:00-07:00", "22:00-22:00", "22:00-07:60"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(MisuseError, match="22:00-07:00"):
        parse_quiet_hours(text)
