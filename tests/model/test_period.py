"""Periods as people name them."""

from datetime import date
from fractions import Fraction

import pytest

from lumos.errors import MisuseError
from lumos.model.period import month_before, month_of, period_of, quarter_before, recent

TODAY = date(2024, 3, 10)


@pytest.mark.parametrize(
    ("text", "name", "first", "last", "months"),
    [
        pytest.param("2024-02", "2024-02", (2024, 2, 1), (2024, 2, 29), Fraction(1), id="month"),
        pytest.param(
            "2024-01-15", "2024-01-15", (2024, 1, 15), (2024, 1, 15), Fraction(1, 31), id="day"
        ),
        pytest.param(
            "2024-01-31..2024-02-01", "2024-01-31..2024-02-01", (2024, 1, 31), (2024, 2, 1),
            Fraction(1, 31) + Fraction(1, 29), id="days of two months",
        ),
        pytest.param(
            "2024-01-01..2024-01-31", "2024-01", (2024, 1, 1), (2024, 1, 31), Fraction(1),
            id="a whole month by its days",
        ),
        pytest.param(
            "2023-11-01..2024-02-29", "2023-11-01..2024-02-29", (2023, 11, 1), (2024, 2, 29),
            Fraction(4), id="four months",
        ),
    ],
)  # fmt: skip
def test_a_period_is_read(text, name, first, last, months) -> None:
    period = period_of(text, today=TODAY)
    assert (period.name, period.first, period.last) == (name, date(*first), date(*last))
    assert period.months == months


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2024-13", "There is no month '2024-13'"),
        ("0000-01", "There is no month"),
        ("last week", "Invalid period 'last week'"),
        ("", "Invalid period ''"),
        ("2024-01-01..", "Invalid period"),
        ("2024-02-01..2024-01-01", "ends before it begins. Write 2024-01-01..2024-02-01"),
        ("2024-04", "is in the future. The current month is 2024-03"),
        ("2024-03-11", "is in the future"),
    ],
)
def test_what_is_no_period_is_refused_with_what_would_be(text: str, words: str) -> None:
    with pytest.raises(MisuseError, match=words.replace("(", r"\(")):
        period_of(text, today=TODAY)


def test_the_last_thirty_days_count_as_one_month() -> None:
    period = recent(TODAY)
    assert (period.first, period.last) == (date(2024, 2, 9), date(2024, 3, 9))
    assert (period.days, period.months) == (30, 1)


def test_what_came_before() -> None:
    march = month_of(TODAY)
    assert month_before(march).name == "2024-02"
    assert [each.name for each in quarter_before(march)] == ["2023-10", "2023-11", "2023-12"]
    april = month_of(date(2024, 4, 1))
    assert [each.name for each in quarter_before(april)] == ["2024-01", "2024-02", "2024-03"]


def test_what_came_before_several_months_is_no_part_of_them() -> None:
    winter = period_of("2023-12-10..2024-02-20", today=TODAY)
    assert month_before(winter).name == "2023-11"
    assert [each.name for each in quarter_before(winter)] == ["2023-07", "2023-08", "2023-09"]
    assert month_before(recent(date(2024, 3, 2))).name == "2024-02"


def test_periods_overlap_where_they_share_a_day() -> None:
    january = month_of(date(2024, 1, 1))
    assert january.overlaps(period_of("2024-01-31..2024-02-05", today=TODAY))
    assert not january.overlaps(month_of(date(2024, 2, 1)))
