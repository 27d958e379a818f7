"""How often a job would run instead."""

import re
from fractions import Fraction
from typing import Final

from lumos.errors import MisuseError

_TIMES: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*x?\Z", re.ASCII)
_PER_DAY: Final = {
    "hourly": Fraction(24),
    "daily": Fraction(1),
    "weekly": Fraction(1, 7),
    "monthly": Fraction(1200, 36525),
    "never": Fraction(0),
}


def factor_of(pace: str, *, runs: int, days: int, name: str) -> Fraction:
    """By what a job's cost changes: `0.5x` is half of it, `weekly` depends on how often it ran."""
    plain = pace.strip().lower()
    if match := _TIMES.match(plain):
        return Fraction(match.group(1))
    if plain not in _PER_DAY:
        raise MisuseError(
            f"Unknown schedule '{pace}' for {name}. Use {', '.join(_PER_DAY)}, or a factor such as "
            "0.5x."
        )
    if plain != "never" and not runs:
        raise MisuseError(
            f"{name} did not run in this period, so the effect of '{pace}' is unknown. Use a "
            "factor such as 0.5x."
        )
    return _PER_DAY[plain] * days / runs if runs else Fraction(0)
