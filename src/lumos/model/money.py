"""Amounts of money: whole micro-units of one currency inside, decimals where they come and go."""

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

from lumos.errors import MisuseError

MICRO: Final = 1_000_000
_DIGITS: Final = 6
_CENTS: Final = 2
_MOST: Final = 2**62
# A difference of one in so many is not seen.
_UNSEEN: Final = 100
_MOST_DIGITS: Final = 18
_TOO_LARGE: Final = "The amount {} is too large to be computed."
# Where a currency is commonly written with a sign of its own, and nobody takes it for another.
_SIGNS: Final = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹", "KRW": "₩"}
_WITHOUT_CENTS: Final = frozenset({"JPY", "KRW", "CLP", "ISK", "VND", "XAF", "XOF"})


def micros(amount: Decimal | int | str) -> int:
    """An amount as whole micro-units, rounded to the nearest."""
    value = Decimal(amount)
    if not value.is_finite():
        raise MisuseError(f"Invalid amount '{amount}'. Write a number such as 12.50")
    # By its exponent first: the digits of one with a million of them take long to write out.
    if value.adjusted() > _MOST_DIGITS or abs(value) * MICRO >= _MOST:
        raise MisuseError(_TOO_LARGE.format(amount))
    return int((value * MICRO).to_integral_value(ROUND_HALF_EVEN))


def reckonable(units: int, what: str) -> int:
    """Micro-units that can be added up with others; more of them are refused."""
    if abs(units) >= _MOST:
        raise MisuseError(_TOO_LARGE.format(what))
    return units


def amount_of(units: int) -> Decimal:
    """Micro-units as a decimal without idle zeros."""
    whole, rest = divmod(abs(units), MICRO)
    text = f"{whole}.{rest:06d}".rstrip("0").removesuffix(".")
    return Decimal(f"-{text}" if units < 0 else text)


def digits_of(currency: str) -> int:
    """How many digits after the point a currency is written with."""
    return 0 if currency in _WITHOUT_CENTS else _CENTS


def rounded(units: int, digits: int) -> int:
    """Micro-units to so many digits after the point, halves to the even side."""
    step: int = 10 ** (_DIGITS - digits)
    whole, rest = divmod(units, step)
    up = 2 * rest > step or (2 * rest == step and whole % 2)
    return (whole + 1 if up else whole) * step


def balanced(amounts: Sequence[int], digits: int) -> list[int]:
    """Amounts rounded so that together they give their rounded sum.

    Those that lost most by rounding make up for the rest, and of these the largest first.
    """
    step: int = 10 ** (_DIGITS - digits)
    floors = [amount // step * step for amount in amounts]
    missing = (rounded(sum(amounts), digits) - sum(floors)) // step
    order = sorted(range(len(amounts)), key=lambda n: (floors[n] - amounts[n], -abs(amounts[n]), n))
    for number in order[:missing]:
        floors[number] += step
    return floors


def balanced_by(amounts: Sequence[int], digits: int, rest: int) -> list[int]:
    """The same, but for one amount that makes up for all others, where it is large enough.

    An amount that is shown in several reports is then the same in all of them.
    """
    shown = [rounded(amount, digits) for amount in amounts]
    missing = rounded(sum(amounts), digits) - sum(shown)
    shown[rest] += missing
    is_seen = abs(missing) * _UNSEEN > abs(amounts[rest])
    return balanced(amounts, digits) if is_seen else shown


def written(units: int, currency: str, digits: int | None = None) -> str:
    """An amount for people: `$1,234.50`, `-€12.00`, `CHF 3.10`."""
    digits = digits_of(currency) if digits is None else digits
    value = amount_of(rounded(units, digits))
    sign = "-" if value < 0 else ""
    mark = _SIGNS.get(currency, f"{currency} ")
    return f"{sign}{mark}{abs(value):,.{digits}f}"
