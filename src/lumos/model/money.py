"""Amounts of money: integer micro-units internally, decimals in reports."""

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

from lumos.errors import MisuseError

MICRO: Final = 1_000_000
_DIGITS: Final = 6
_CENTS: Final = 2
_MAX_AMOUNT: Final = 2**62
# Rounding differences of less than one hundredth of an amount do not attract attention.
_HUNDREDTHS: Final = 100
_MAX_DIGITS: Final = 18
_TOO_LARGE: Final = "The amount {} is too large to be computed."
# Currency signs that are unambiguous.
_SIGNS: Final = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹", "KRW": "₩"}
_CURRENCIES_WITHOUT_CENTS: Final = frozenset({"JPY", "KRW", "CLP", "ISK", "VND", "XAF", "XOF"})


def micros(amount: Decimal | int | str) -> int:
    """An amount as whole micro-units, rounded to the nearest."""
    value = Decimal(amount)
    if not value.is_finite():
        raise MisuseError(f"Invalid amount '{amount}'. Write a number such as 12.50")
    # Check the exponent first, since converting a number with a million digits takes long.
    if value.adjusted() > _MAX_DIGITS or abs(value) * MICRO >= _MAX_AMOUNT:
        raise MisuseError(_TOO_LARGE.format(amount))
    return int((value * MICRO).to_integral_value(ROUND_HALF_EVEN))


def check_amount(units: int, what: str) -> int:
    """The amount, if it is small enough for sums in 64 bits; raises otherwise."""
    if abs(units) >= _MAX_AMOUNT:
        raise MisuseError(_TOO_LARGE.format(what))
    return units


def amount_of(units: int) -> Decimal:
    """Micro-units as a decimal without trailing zeros."""
    whole, rest = divmod(abs(units), MICRO)
    text = f"{whole}.{rest:06d}".rstrip("0").removesuffix(".")
    return Decimal(f"-{text}" if units < 0 else text)


def digits_of(currency: str) -> int:
    """The number of decimals of a currency."""
    return 0 if currency in _CURRENCIES_WITHOUT_CENTS else _CENTS


def round_amount(units: int, digits: int) -> int:
    """Micro-units rounded to a number of decimals, halves to even."""
    step: int = 10 ** (_DIGITS - digits)
    whole, rest = divmod(units, step)
    up = 2 * rest > step or (2 * rest == step and whole % 2)
    return (whole + 1 if up else whole) * step


def round_balanced(amounts: Sequence[int], digits: int) -> list[int]:
    """Round amounts so that they add up to their rounded sum.

    The amounts that lose most by rounding down are rounded up, larger amounts first.
    """
    step: int = 10 ** (_DIGITS - digits)
    floors = [amount // step * step for amount in amounts]
    missing = (round_amount(sum(amounts), digits) - sum(floors)) // step
    order = sorted(range(len(amounts)), key=lambda n: (floors[n] - amounts[n], -abs(amounts[n]), n))
    for number in order[:missing]:
        floors[number] += step
    return floors


def round_balanced_by(amounts: Sequence[int], digits: int, rest: int) -> list[int]:
    """Round amounts individually; the amount at `rest` absorbs the difference if it is large.

    Individually rounded amounts are the same in all reports.
    """
    rounded = [round_amount(amount, digits) for amount in amounts]
    missing = round_amount(sum(amounts), digits) - sum(rounded)
    rounded[rest] += missing
    is_visible = abs(missing) * _HUNDREDTHS > abs(amounts[rest])
    return round_balanced(amounts, digits) if is_visible else rounded


def format_money(units: int, currency: str, digits: int | None = None) -> str:
    """An amount for display: `$1,234.50`, `-€12.00`, `CHF 3.10`."""
    digits = digits_of(currency) if digits is None else digits
    value = amount_of(round_amount(units, digits))
    sign = "-" if value < 0 else ""
    mark = _SIGNS.get(currency, f"{currency} ")
    return f"{sign}{mark}{abs(value):,.{digits}f}"
