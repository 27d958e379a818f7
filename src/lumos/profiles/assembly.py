"""Tallies and estimates in the words of the model."""

import math
import struct
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from lumos.model.dataset import ColumnProfile, Profile
from lumos.model.privacy import frequent
from lumos.model.types import FLOAT16, FLOAT32, DataType, Duration, Time, Timestamp

if TYPE_CHECKING:
    from lumos.profiles.columns import Leaf
    from lumos.profiles.measurement import Profiled
    from lumos.profiles.sketches import Estimates
    from lumos.profiles.tallies import Tally
    from lumos.spark.problems import ProblemList

_EPOCH: Final = datetime(1970, 1, 1)
_DAY: Final = 86_400_000_000
_DIGITS: Final = 12
# With the last, all numbers of 32 bits are told apart.
_DIGITS_OF_SINGLES: Final = (6, 7, 8, 9)
_LAYOUTS: Final[dict[DataType, str]] = {FLOAT16: "e", FLOAT32: "f"}


def profile_of(
    profiled: "Profiled", leaves: "Sequence[Leaf]", *, at: datetime, sampled: float | None
) -> Profile:
    """What was measured, as a dataset has it."""
    columns = {
        leaf.path: _column(leaf, tally, profiled.estimates.get(number))
        for number, (leaf, tally) in enumerate(zip(leaves, profiled.tallies, strict=True))
    }
    return Profile(
        measured_at=at,
        rows=profiled.rows,
        files=profiled.files,
        unread=_unread(profiled.problems),
        sampled=sampled,
        columns=columns,
    )


def _unread(problems: "ProblemList") -> int:
    """How many files could not be read; those that are not listed count once for each portion."""
    listed = {each.path for each in problems.listed if not each.remark}
    return len(listed) + sum(each.count for each in problems.not_listed() if not each.remark)


def completeness(profile: Profile) -> float | None:
    """The share of cells with a value of their column's type."""
    cells = profile.rows * len(profile.columns)
    empty = sum(each.nulls + each.misfits for each in profile.columns.values())
    return None if not cells else 1 - empty / cells


def _column(leaf: "Leaf", tally: "Tally", estimates: "Estimates | None") -> ColumnProfile:
    from lumos.profiles.sketches import RANKS

    mean = tally.mean if tally.measured and math.isfinite(tally.mean) else None
    quantiles = estimates.quantiles if estimates is not None and leaf.values else ()
    is_number = leaf.kind in ("integer", "unsigned", "float", "decimal")
    ranked = sorted(tally.top, key=lambda pair: (-pair[1], pair[0]))
    counts = ((_text(leaf, value), count) for value, count in ranked)
    return ColumnProfile(
        nulls=tally.nulls,
        nans=tally.nans,
        misfits=tally.misfits,
        distinct=_distinct(leaf, tally, estimates),
        minimum=None if tally.low is None else _text(leaf, tally.low),
        maximum=None if tally.high is None else _text(leaf, tally.high),
        mean=None if mean is None else _mean(leaf, mean),
        stddev=tally.stddev if is_number else None,
        quantiles={
            str(rank): _text(leaf, _within(value, tally)) if is_number else _text(leaf, value)
            for rank, value in zip(RANKS, quantiles, strict=False)
        },
        top=frequent(counts, rows=tally.rows) if leaf.top else (),
        shortest=tally.shortest,
        longest=tally.longest,
        mean_length=tally.length / tally.sized if tally.sized else None,
        elements=tally.elements if leaf.kind in ("list", "map") else None,
        null_elements=tally.null_elements if leaf.kind in ("list", "map") else None,
    )


def _distinct(leaf: "Leaf", tally: "Tally", estimates: "Estimates | None") -> int | None:
    if leaf.kind == "boolean":
        return len(tally.top)
    if not tally.values:
        return 0 if leaf.kind not in ("list", "map", "opaque") else None
    if estimates is None or estimates.distinct is None:
        return None
    # Spark's sketches pass over what is empty.
    empty = leaf.kind in ("text", "bytes") and tally.shortest == 0
    # An estimate is never more than there are values.
    return min(estimates.distinct + empty, tally.values) or None


def _within(value: Any, tally: "Tally") -> Any:
    """An estimate inside of the bounds, which are exact."""
    if isinstance(tally.low, str):
        return value
    return min(max(value, tally.low), tally.high)


def _mean(leaf: "Leaf", mean: float) -> str:
    if leaf.kind in ("date", "timestamp", "time", "duration"):
        return _text(leaf, round(mean))
    return f"{mean:.{_DIGITS}g}"


def _text(leaf: "Leaf", value: Any) -> str:
    match leaf.kind:
        case "date":
            return _moment(value * _DAY).partition("T")[0]
        case "timestamp":
            assert isinstance(leaf.type, Timestamp)
            text = _moment_in(leaf.type.unit, value)
            return f"{text}Z" if leaf.type.zoned else text
        case "time":
            assert isinstance(leaf.type, Time)
            return _moment_in(leaf.type.unit, value).partition("T")[2]
        case "duration":
            assert isinstance(leaf.type, Duration)
            return str(value / (1e9 if leaf.type.unit == "ns" else 1e6))
        case "boolean":
            return "true" if value else "false"
        case "unsigned":
            # Quantiles of them are estimated as doubles.
            return str(int(value))
        case "float":
            return _shortest(value, _LAYOUTS.get(leaf.type, "d"))
        case "decimal" if isinstance(value, float):
            return f"{value:.{_DIGITS}g}"
        case _:
            return str(value)


def _moment_in(unit: str, value: int) -> str:
    """A moment in parts of seconds, of which nanoseconds have three digits more."""
    if unit != "ns":
        return _moment(value)
    microseconds, rest = divmod(value, 1000)
    if not rest:
        return _moment(microseconds)
    whole = _moment(microseconds)
    return f"{whole}{'' if '.' in whole else '.000000'}{rest:03}"


def _moment(microseconds: int) -> str:
    """In the calendar of today, before year 1 and after year 9999 too."""
    days, rest = divmod(microseconds, _DAY)
    # The calendar is the same every 400 years.
    cycles, day = divmod(days, 146_097)
    near = _EPOCH + timedelta(days=day, microseconds=rest)
    year = near.year + 400 * cycles
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}{near.isoformat()[4:]}"


def _shortest(value: float, layout: str) -> str:
    """As few digits as tell a number from all others of its size."""
    for digits in _DIGITS_OF_SINGLES:
        rounded = float(f"{value:.{digits}g}")
        if _stored(rounded, layout) == value:
            return repr(rounded).removesuffix(".0")
    return repr(float(value)).removesuffix(".0")


def _stored(value: float, layout: str) -> float | None:
    try:
        (stored,) = struct.unpack(layout, struct.pack(layout, value))
    except OverflowError:
        return None
    return float(stored)
