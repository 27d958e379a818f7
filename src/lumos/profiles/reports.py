"""Builds the profile of a dataset from its measurement, and the report of `lumos profile`."""

import math
import struct
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec.structs import replace

from lumos.model.dataset import ColumnProfile, Profile, Quality
from lumos.model.discovery import Problem
from lumos.model.privacy import select_frequent
from lumos.model.report import FORMAT_VERSION, Report
from lumos.model.types import FLOAT16, FLOAT32, DataType, Duration, Time, Timestamp
from lumos.profiles.columns import ProfiledColumn
from lumos.profiles.measurements import RANKS, ColumnTally, Estimates, ProfileResult


class ProfileReport(Report, frozen=True, kw_only=True):
    """A profile; `files_read` files were read now, and `files_known` files were measured before.

    `withheld` lists the columns whose values are not reported, because a label marks them as
    private. If no file could be read, the profile is not stored (`kept` is false), and the earlier
    profile stays valid.
    """

    format_version: str = FORMAT_VERSION
    urn: str
    name: str
    completeness: float | None
    profile: Profile
    kept: bool
    files_read: int
    files_known: int
    withheld: tuple[str, ...]
    problems: tuple[Problem, ...]
    seconds: float


_EPOCH: Final = datetime(1970, 1, 1)
_DAY: Final = 86_400_000_000
_DIGITS: Final = 12
# The digits to try for the shortest text of a float; nine digits distinguish all 32-bit floats.
_FLOAT_DIGITS: Final = (6, 7, 8, 9)
_STRUCT_FORMATS: Final[dict[DataType, str]] = {FLOAT16: "e", FLOAT32: "f"}


def build_profile(
    result: ProfileResult,
    leaves: Sequence[ProfiledColumn],
    *,
    at: datetime,
    sampled: float | None,
) -> Profile:
    """The profile of a dataset from the measurement of its columns."""
    columns = {
        leaf.path: _column_profile(leaf, tally, result.estimates.get(number))
        for number, (leaf, tally) in enumerate(zip(leaves, result.tallies, strict=True))
    }
    # Only the first problems are listed with their files; the others are only counted.
    problems = result.problems
    listed = {each.path for each in problems.listed if not each.remark}
    not_listed = sum(each.count for each in problems.not_listed() if not each.remark)
    return Profile(
        measured_at=at,
        rows=result.rows,
        files=result.files,
        unread=len(listed) + not_listed,
        sampled=sampled,
        columns=columns,
    )


def completeness(profile: Profile) -> float | None:
    """The share of cells with a value of the column's type."""
    cells = profile.rows * len(profile.columns)
    empty = sum(each.nulls + each.misfits for each in profile.columns.values())
    return None if not cells else 1 - empty / cells


def _column_profile(
    leaf: ProfiledColumn, tally: ColumnTally, estimates: Estimates | None
) -> ColumnProfile:
    mean: str | None = None
    if tally.measured_count and math.isfinite(tally.mean):
        is_time = leaf.kind in ("date", "timestamp", "time", "duration")
        mean = _text(leaf, round(tally.mean)) if is_time else f"{tally.mean:.{_DIGITS}g}"
    quantiles = estimates.quantiles if estimates is not None and leaf.values else ()
    is_number = leaf.kind in ("integer", "unsigned", "float", "decimal")
    ranked = sorted(tally.top, key=lambda pair: (-pair[1], pair[0]))
    counts = ((_text(leaf, value), count) for value, count in ranked)
    return ColumnProfile(
        nulls=tally.nulls,
        nans=tally.nans,
        misfits=tally.misfits,
        distinct=_distinct_count(leaf, tally, estimates),
        minimum=None if tally.low is None else _text(leaf, tally.low),
        maximum=None if tally.high is None else _text(leaf, tally.high),
        mean=mean,
        stddev=tally.stddev if is_number else None,
        quantiles={
            str(rank): _text(leaf, _clamp(value, tally)) if is_number else _text(leaf, value)
            for rank, value in zip(RANKS, quantiles, strict=False)
        },
        top=select_frequent(counts, rows=tally.rows) if leaf.top else (),
        shortest=tally.shortest,
        longest=tally.longest,
        mean_length=tally.total_length / tally.sized_count if tally.sized_count else None,
        elements=tally.elements if leaf.kind in ("list", "map") else None,
        null_elements=tally.null_elements if leaf.kind in ("list", "map") else None,
    )


def _distinct_count(
    leaf: ProfiledColumn, tally: ColumnTally, estimates: Estimates | None
) -> int | None:
    if leaf.kind == "boolean":
        return len(tally.top)
    if not tally.values:
        return 0 if leaf.kind not in ("list", "map", "opaque") else None
    if estimates is None or estimates.distinct is None:
        return None
    # Spark's sketches ignore empty values, so count them as one more value.
    has_empty = leaf.kind in ("text", "bytes") and tally.shortest == 0
    # The estimate may exceed the number of values.
    return min(estimates.distinct + has_empty, tally.values) or None


def _clamp(value: Any, tally: ColumnTally) -> Any:
    """Limit an estimate to the minimum and maximum, which are exact."""
    if isinstance(tally.low, str):
        return value
    return min(max(value, tally.low), tally.high)


def _text(leaf: ProfiledColumn, value: Any) -> str:
    match leaf.kind:
        case "date":
            return _iso_text(value * _DAY).partition("T")[0]
        case "timestamp":
            assert isinstance(leaf.type, Timestamp)
            text = _time_text(leaf.type.unit, value)
            return f"{text}Z" if leaf.type.zoned else text
        case "time":
            assert isinstance(leaf.type, Time)
            return _time_text(leaf.type.unit, value).partition("T")[2]
        case "duration":
            assert isinstance(leaf.type, Duration)
            return str(value / (1e9 if leaf.type.unit == "ns" else 1e6))
        case "boolean":
            return "true" if value else "false"
        case "unsigned":
            # Quantiles of unsigned integers are doubles.
            return str(int(value))
        case "float":
            return _shortest_text(value, _STRUCT_FORMATS.get(leaf.type, "d"))
        case "decimal" if isinstance(value, float):
            return f"{value:.{_DIGITS}g}"
        case _:
            return str(value)


def _time_text(unit: str, value: int) -> str:
    """The text of a time in microseconds or nanoseconds; nanoseconds have three more digits."""
    if unit != "ns":
        return _iso_text(value)
    microseconds, rest = divmod(value, 1000)
    if not rest:
        return _iso_text(microseconds)
    seconds_text = _iso_text(microseconds)
    return f"{seconds_text}{'' if '.' in seconds_text else '.000000'}{rest:03}"


def _iso_text(microseconds: int) -> str:
    """The time in ISO 8601; also for years before 1 and after 9999."""
    days, rest = divmod(microseconds, _DAY)
    # The Gregorian calendar repeats every 400 years.
    cycles, day = divmod(days, 146_097)
    shifted = _EPOCH + timedelta(days=day, microseconds=rest)
    year = shifted.year + 400 * cycles
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}{shifted.isoformat()[4:]}"


def _shortest_text(value: float, struct_format: str) -> str:
    """The shortest text that identifies a float of this struct format."""
    for digits in _FLOAT_DIGITS:
        rounded = float(f"{value:.{digits}g}")
        if _round_to(rounded, struct_format) == value:
            return repr(rounded).removesuffix(".0")
    return repr(float(value)).removesuffix(".0")


def _round_to(value: float, struct_format: str) -> float | None:
    try:
        (stored,) = struct.unpack(struct_format, struct.pack(struct_format, value))
    except OverflowError:
        return None
    return float(stored)


VALIDATOR: Final = "lumos"


def add_columns(before: Profile | None, profile: Profile) -> Profile:
    """Add the columns of an earlier profile, if both profiles measured the same rows completely."""
    if before is None or before.columns.keys() <= profile.columns.keys():
        return profile
    rows_before, rows = (
        (each.rows, each.files, each.unread, each.sampled) for each in (before, profile)
    )
    if rows_before != rows or profile.sampled is not None:
        return profile
    return replace(profile, columns={**before.columns, **profile.columns})


def with_profile(
    before: Quality | None, profile: Profile, *, completeness: float | None
) -> Quality:
    """The quality aspect with this profile; results of other validators are not replaced."""
    other_results = None if before is None else replace(before, profile=None)
    if before is not None and before.validator != VALIDATOR and other_results != Quality():
        return replace(before, profile=profile)
    return Quality(
        measured_at=profile.measured_at,
        validator=VALIDATOR,
        dimensions={} if completeness is None else {"completeness": round(completeness, 6)},
        profile=profile,
    )
