"""Money: decimals at the edges, integer micro-units of one currency inside."""

from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from typing import Final

import numpy as np
from numpy.typing import NDArray

MICROS: Final = 1_000_000
# Beyond this, loaded costs inside tight cycles no longer fit into 64 bits.
LARGEST: Final = 4_000_000_000_000
_EXPONENT: Final = Decimal("0.000001")
# Thirteen digits before the point and six behind it, with room for amounts to be refused.
_DIGITS: Final = 60


def micros(amount: Decimal | int) -> int:
    """The amount in micro-units, rounded half to even; it must be finite and within LARGEST."""
    with localcontext(prec=_DIGITS):
        exact = Decimal(amount)
        if not exact.is_finite() or abs(exact) > LARGEST:
            raise ValueError(f"{amount} is not an amount from -{LARGEST} to {LARGEST}")
        return int((exact * MICROS).to_integral_value(ROUND_HALF_EVEN))


def decimal(micro_units: int) -> Decimal:
    """The amount with no more decimals than it needs, at most six."""
    with localcontext(prec=_DIGITS):
        amount = (Decimal(int(micro_units)) * _EXPONENT).normalize()
        return amount.quantize(Decimal(1)) if amount == amount.to_integral_value() else amount


def balanced(amounts: NDArray[np.int64], *, digits: int = 2) -> NDArray[np.int64]:
    """The amounts rounded to so many decimals, such that they add up to their rounded sum.

    What rounding leaves over goes to the amounts that were rounded away from it the furthest.
    """
    unit = 10 ** (6 - digits)
    total = _rounded(int(amounts.sum()), unit)
    floors: NDArray[np.int64] = np.floor_divide(amounts, unit)
    missing = total - int(floors.sum())
    behind = amounts - floors * unit
    raised = np.argsort(-behind, kind="stable")[:missing]
    floors[raised] += 1
    floors *= unit
    return floors


def _rounded(amount: int, unit: int) -> int:
    whole, rest = divmod(amount, unit)
    return whole + (2 * rest > unit or (2 * rest == unit and whole % 2 == 1))
