"""Times as people write them."""

from datetime import UTC, datetime, timedelta

import pytest

from lumos.errors import MisuseError
from lumos.model.time_expression import parse_duration, parse_time, to_utc

NOW = datetime(2024, 3, 10, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7d", datetime(2024, 3, 3, 12, 0, tzinfo=UTC)),
        ("12h", datetime(2024, 3, 10, 0, 0, tzinfo=UTC)),
        ("30m", datetime(2024, 3, 10, 11, 30, tzinfo=UTC)),
        ("90S", datetime(2024, 3, 10, 11, 58, 30, tzinfo=UTC)),
        ("2w", datetime(2024, 2, 25, 12, 0, tzinfo=UTC)),
        ("2024-01-15", datetime(2024, 1, 15, tzinfo=UTC)),
        ("2024-01-15T10:30", datetime(2024, 1, 15, 10, 30, tzinfo=UTC)),
        ("2024-01-15 10:30:05", datetime(2024, 1, 15, 10, 30, 5, tzinfo=UTC)),
        ("2024-01-15T10:30Z", datetime(2024, 1, 15, 10, 30, tzinfo=UTC)),
        ("2024-01-15T10:30+02:00", datetime(2024, 1, 15, 8, 30, tzinfo=UTC)),
    ],
)
def test_lengths_dates_and_times_are_understood(text: str, expected: datetime) -> None:
    assert parse_time(text, now=NOW) == expected


def test_a_date_as_an_end_holds_the_whole_day() -> None:
    end = parse_time("2024-01-15", now=NOW, end=True)
    assert end == datetime(2024, 1, 15, 23, 59, 59, 999999, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["", "soon", "7", "d", "7 days", "2024-13-01", "999999999w", "-7d"]
)
def test_anything_else_is_refused_with_examples(text: str) -> None:
    with pytest.raises(MisuseError, match="Use a duration such as 30m"):
        parse_time(text, now=NOW)


def test_a_length_alone() -> None:
    assert parse_duration("90d") == timedelta(days=90)
    assert parse_duration("2024-01-15") is None


@pytest.mark.parametrize(
    "text",
    [
        "9999-12-31",
        "0001-01-01",
        "9999-12-31T23:59:59Z",
        "0001-01-01T00:00:00+14:00",
        "1899-12-31",
        "3000-01-01",
        "100000d",
    ],
)
@pytest.mark.parametrize("end", [False, True])
def test_times_at_which_calculations_overflow_are_refused(text: str, end: bool) -> None:
    with pytest.raises(MisuseError, match="not between the years 1900 and 2999"):
        parse_time(text, now=NOW, end=end)


@pytest.mark.parametrize("moment", [datetime.min, datetime.max, datetime.max.replace(tzinfo=UTC)])
def test_times_of_programs_have_the_same_limits(moment: datetime) -> None:
    with pytest.raises(MisuseError, match="not between the years 1900 and 2999"):
        to_utc(moment)
