"""Measurements of columns: exact counts, sketches and estimates.

The measurements of the parts of a dataset can be added up to those of the entire dataset.
"""

import decimal
import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lumos.profiles.columns import ORDERED_KINDS, SIZED_KINDS, ProfiledColumn
from lumos.profiles.values import ColumnValues, arrow_type, as_integers
from lumos.spark.problems import ProblemList

# The number of frequent values that are tracked. Their counts are too low by at most one in this
# many rows, and exact if a column has no more distinct values.
MAX_TRACKED_VALUES: Final = 4096


class ColumnTally(msgspec.Struct, array_like=True):
    """The counts of a column.

    `low` and `high` are the minimum and maximum: numbers, or decimals as text. `mean` and `spread`
    (the sum of squared deviations) cover `measured_count` values. `shortest`, `longest` and
    `total_length` cover `sized_count` values. `top` contains frequent values with their counts,
    each of which is too low by at most `slack`.
    """

    rows: int = 0
    nulls: int = 0
    nans: int = 0
    misfits: int = 0
    low: Any = None
    high: Any = None
    measured_count: int = 0
    mean: float = 0.0
    spread: float = 0.0
    sized_count: int = 0
    shortest: int | None = None
    longest: int | None = None
    total_length: int = 0
    elements: int = 0
    null_elements: int = 0
    top: list[tuple[Any, int]] = []
    slack: int = 0

    def add(self, leaf: ProfiledColumn, values: ColumnValues) -> pa.Array:
        """Add rows to the counts; returns the values of the rows for the sketches."""
        array = values.array
        self.rows += len(array)
        self.misfits += values.misfits
        self.nulls += array.null_count - values.misfits
        if values.opaque:
            return pa.nulls(len(array), arrow_type(leaf))
        if leaf.kind == "float":
            array = self._without_nans(array)
        if pa.types.is_map(array.type):
            # For a slice of a map array, Arrow would return the entries of the entire array.
            array = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
        if leaf.kind in SIZED_KINDS:
            self._add_lengths(leaf, array)
        if leaf.kind in ("list", "map"):
            self._add_elements(leaf, array)
        array = as_integers(leaf, array)
        if leaf.values and leaf.kind in ORDERED_KINDS:
            self._add_numbers(leaf, array)
        if leaf.top or leaf.kind == "boolean":
            self._add_top(array)
        return array

    def _without_nans(self, array: pa.Array) -> pa.Array:
        nans = pc.is_nan(array)
        nan_count = pc.sum(nans).as_py() or 0
        self.nans += nan_count
        # Adding 0.0 turns -0.0 into 0.0.
        array = pc.if_else(nans, pa.scalar(None, array.type), array) if nan_count else array
        return pc.add(array, 0.0)

    def _add_lengths(self, leaf: ProfiledColumn, array: pa.Array) -> None:
        measure = {"text": pc.utf8_length, "bytes": pc.binary_length}.get(
            leaf.kind, pc.list_value_length
        )
        if not pa.types.is_nested(array.type) and leaf.kind in ("list", "map"):
            return
        lengths = measure(array)
        bounds = pc.min_max(lengths).as_py()
        if bounds["min"] is None:
            return
        self.sized_count += len(lengths) - lengths.null_count
        self.total_length += pc.sum(lengths).as_py()
        self.shortest, self.longest = _merge_bounds(
            (self.shortest, self.longest), (bounds["min"], bounds["max"])
        )

    def _add_elements(self, leaf: ProfiledColumn, array: pa.Array) -> None:
        if not pa.types.is_nested(array.type):
            return
        elements = array.flatten()
        if leaf.kind == "map" and pa.types.is_struct(elements.type):
            _, elements = elements.flatten()
        self.elements += len(elements)
        self.null_elements += elements.null_count

    def _add_numbers(self, leaf: ProfiledColumn, array: pa.Array) -> None:
        bounds = pc.min_max(array).as_py()
        if bounds["min"] is None:
            return
        low, high = bounds["min"], bounds["max"]
        if leaf.kind == "decimal":
            low, high = _to_builtin(low), _to_builtin(high)
        self.low, self.high = _merge_bounds((self.low, self.high), (low, high))
        numbers = array.cast(pa.float64(), safe=False)
        count = len(numbers) - numbers.null_count
        mean = pc.mean(numbers).as_py()
        if math.isinf(mean):
            # The sum may overflow although the mean does not.
            mean = pc.sum(pc.divide(numbers, float(count))).as_py()
        spread = pc.variance(numbers).as_py() * count
        self._add_moments(count, mean, spread)

    def _add_moments(self, count: int, mean: float, spread: float) -> None:
        if not count:
            return
        total = self.measured_count + count
        difference = mean - self.mean
        self.spread += spread + difference * difference * (self.measured_count * count / total)
        self.mean += difference * (count / total)
        self.measured_count = total

    def _add_top(self, array: pa.Array) -> None:
        counts = pc.value_counts(array.drop_null())
        values, numbers = counts.field(0), counts.field(1)
        dropped_count = 0
        if len(numbers) > MAX_TRACKED_VALUES:
            most_frequent = pc.select_k_unstable(
                numbers, k=MAX_TRACKED_VALUES + 1, sort_keys=[("counts", "descending")]
            )
            values, numbers = values.take(most_frequent), numbers.take(most_frequent)
            dropped_count = numbers[MAX_TRACKED_VALUES].as_py()
        pairs = zip(map(_to_builtin, values.to_pylist()), numbers.to_pylist(), strict=True)
        self._add_counts(((value, count - dropped_count) for value, count in pairs), dropped_count)

    def _add_counts(self, more: Iterable[tuple[Any, int]], slack: int) -> None:
        """Add other frequent values and their counts; the errors of both add up in `slack`."""
        counts = dict(self.top)
        for value, count in more:
            if count > 0:
                counts[value] = counts.get(value, 0) + count
        pairs = sorted(counts.items(), key=lambda pair: pair[1], reverse=True)
        dropped_count = pairs[MAX_TRACKED_VALUES][1] if len(pairs) > MAX_TRACKED_VALUES else 0
        self.top = [
            (value, count - dropped_count)
            for value, count in pairs[:MAX_TRACKED_VALUES]
            if count > dropped_count
        ]
        self.slack += slack + dropped_count

    def join(self, other: "ColumnTally") -> None:
        """Add the counts of the same column in other rows."""
        self.rows += other.rows
        self.nulls += other.nulls
        self.nans += other.nans
        self.misfits += other.misfits
        self.low, self.high = _merge_bounds((self.low, self.high), (other.low, other.high))
        self._add_moments(other.measured_count, other.mean, other.spread)
        self.sized_count += other.sized_count
        self.shortest, self.longest = _merge_bounds(
            (self.shortest, self.longest), (other.shortest, other.longest)
        )
        self.total_length += other.total_length
        self.elements += other.elements
        self.null_elements += other.null_elements
        if other.top or other.slack:
            self._add_counts(other.top, other.slack)

    @property
    def values(self) -> int:
        """The number of rows with a value of the column's type."""
        return self.rows - self.nulls - self.nans - self.misfits

    @property
    def stddev(self) -> float | None:
        """The sample standard deviation of the measured values."""
        if self.measured_count < 2 or not math.isfinite(self.spread):
            return None
        return math.sqrt(self.spread / (self.measured_count - 1))


def _to_builtin(value: Any) -> Any:
    return f"{value:f}" if isinstance(value, decimal.Decimal) else value


def _merge_bounds(one: tuple[Any, Any], other: tuple[Any, Any]) -> tuple[Any, Any]:
    lows = [low for low, _ in (one, other) if low is not None]
    highs = [high for _, high in (one, other) if high is not None]
    return min(lows, key=_sort_key, default=None), max(highs, key=_sort_key, default=None)


def _sort_key(value: Any) -> Any:
    return decimal.Decimal(value) if isinstance(value, str) else value


class FileTotals(msgspec.Struct, array_like=True):
    """The totals of a set of files: a tally for each column, and the problems of unread files."""

    rows: int
    files: int
    tallies: list[ColumnTally]
    problems: ProblemList = msgspec.field(default_factory=ProblemList)

    def join(self, other: "FileTotals") -> None:
        """Add the counts of other files."""
        self.rows += other.rows
        self.files += other.files
        self.problems.join(other.problems)
        self.add_tallies(other.tallies)

    def add_tallies(self, others: Sequence[ColumnTally]) -> None:
        """Add the tallies of other files."""
        for tally, other in zip(self.tallies, others, strict=True):
            tally.join(other)


# The ranks of the quantiles that are estimated.
RANKS: Final = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


class Sketches(NamedTuple):
    """The sketches of a column in a set of rows."""

    distinct: bytes | None = None
    integers: bytes | None = None
    numbers: bytes | None = None


class Estimates(NamedTuple):
    """The estimates from the sketches of a column."""

    distinct: int | None = None
    quantiles: tuple[float, ...] = ()


class UnitMeasurement(msgspec.Struct, array_like=True):
    """The measurement of a unit of files; `sketches` are by the number of the leaf column."""

    totals: FileTotals
    sketches: dict[int, Sketches]


class ProfileResult(NamedTuple):
    """The measurement of all files, of which `read` files were read now; the others were cached."""

    rows: int
    files: int
    read: int
    tallies: list[ColumnTally]
    estimates: dict[int, Estimates]
    problems: ProblemList
