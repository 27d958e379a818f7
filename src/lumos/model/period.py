"""Reporting periods: a month, a day, or a range of days."""

import calendar
import re
from datetime import date, timedelta
from fractions import Fraction
from typing import Final, Literal

import msgspec

from lumos.errors import MisuseError

PeriodKind = Literal["month", "day", "custom", "recent"]

_MONTH: Final = re.compile(r"(\d{4})-(\d{2})\Z", re.ASCII)
RECENT_DAYS: Final = 30
# The days before and after a period must be valid dates.
_EARLIEST: Final = date(1970, 1, 1)
_LATEST: Final = date(9998, 12, 31)
_FORMATS_TEXT: Final = (
    "Give a month such as 2024-01, a day such as 2024-01-15, or days such as 2024-01-01..2024-01-31"
)


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """A range of days, first and last included.

    `recent` is the last thirty complete days, which are treated as one month.
    """

    name: str
    kind: PeriodKind
    first: date
    last: date

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1

    @property
    def months(self) -> Fraction:
        """The length in months; each day is a fraction of its own month."""
        if self.kind == "recent":
            return Fraction(1)
        months, start = Fraction(0), self.first
        while start <= self.last:
            month = month_of(start)
            end = min(month.last, self.last)
            months += Fraction((end - start).days + 1, month.days)
            start = end + timedelta(days=1)
        return months

    def overlaps(self, other: "Period") -> bool:
        """Whether two periods have a day in common."""
        return self.first <= other.last and other.first <= self.last


def period_of(text: str, *, today: date) -> Period:
    """Parse a period; raises if it begins in the future."""
    period = _parse(text.strip())
    if period.first < _EARLIEST or period.last > _LATEST:
        raise MisuseError(f"The period {period.name} must be between {_EARLIEST} and {_LATEST}.")
    if period.first > today:
        raise MisuseError(
            f"The period {period.name} is in the future. The current month is "
            f"{month_of(today).name}."
        )
    return period


def recent(today: date) -> Period:
    """The last thirty complete days."""
    last = today - timedelta(days=1)
    first = last - timedelta(days=RECENT_DAYS - 1)
    return Period(name=f"{first}..{last}", kind="recent", first=first, last=last)


def month_of(day: date) -> Period:
    """The calendar month of a day."""
    first = day.replace(day=1)
    last = first.replace(day=calendar.monthrange(first.year, first.month)[1])
    return Period(name=f"{first:%Y-%m}", kind="month", first=first, last=last)


def month_before(period: Period) -> Period:
    """The calendar month before that of a period."""
    return month_of(_day_of(period).replace(day=1) - timedelta(days=1))


def quarter_before(period: Period) -> tuple[Period, Period, Period]:
    """The three months of the calendar quarter before that of a period."""
    day = _day_of(period)
    this_quarter = day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
    third = month_of(this_quarter - timedelta(days=1))
    second = month_before(third)
    return month_before(second), second, third


def _day_of(period: Period) -> date:
    """The day that determines the month: the last day of a `recent` period, else the first."""
    return period.last if period.kind == "recent" else period.first


def _parse(text: str) -> Period:
    if match := _MONTH.match(text):
        year, month = int(match.group(1)), int(match.group(2))
        if not (1 <= month <= 12 and year):
            raise MisuseError(f"There is no month '{text}'. {_FORMATS_TEXT}")
        return month_of(date(year, month, 1))
    start, dots, end = text.partition("..")
    first, last = _parse_day(start, text), _parse_day(end if dots else start, text)
    if last < first:
        raise MisuseError(f"The period '{text}' ends before it begins. Write {last}..{first}")
    if not dots:
        return Period(name=str(first), kind="day", first=first, last=last)
    full_month = month_of(first)
    if (full_month.first, full_month.last) == (first, last):
        return full_month
    return Period(name=f"{first}..{last}", kind="custom", first=first, last=last)


def _parse_day(text: str, whole: str) -> date:
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise MisuseError(f"Invalid period '{whole}'. {_FORMATS_TEXT}") from None
