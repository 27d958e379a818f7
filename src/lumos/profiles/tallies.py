"""What is counted exactly of a column, batch by batch; tallies of parts add up to the whole's."""

import decimal
import math
from collections.abc import Iterable
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lumos.profiles.columns import ORDERED, SIZED, Leaf
from lumos.profiles.values import Values, counted, target_of

# So many of the most frequent values are followed. What is said of them is wrong by one in so many
# rows at worst, and by nothing where a column has no more values than that.
FOLLOWED: Final = 4096


class Tally(msgspec.Struct, array_like=True):
    """The rows of a column so far.

    `low` and `high` are numbers, or texts of decimals. `mean` and `spread`, the sum of squared
    distances from it, are of `measured` values. `top` counts frequent values, each at most `slack`
    too low.
    """

    rows: int = 0
    nulls: int = 0
    nans: int = 0
    misfits: int = 0
    low: Any = None
    high: Any = None
    measured: int = 0
    mean: float = 0.0
    spread: float = 0.0
    sized: int = 0
    shortest: int | None = None
    longest: int | None = None
    length: int = 0
    elements: int = 0
    null_elements: int = 0
    top: list[tuple[Any, int]] = []
    slack: int = 0

    def add(self, leaf: Leaf, values: Values) -> pa.Array:
        """Counts some more rows, and gives what is left of their values to be sketched."""
        array = values.array
        self.rows += len(array)
        self.misfits += values.misfits
        self.nulls += array.null_count - values.misfits
        if values.opaque:
            return pa.nulls(len(array), target_of(leaf))
        if leaf.kind == "float":
            array = self._without_nans(array)
        if pa.types.is_map(array.type):
            # Of a slice, Arrow tells the entries of all of the map.
            array = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
        if leaf.kind in SIZED:
            self._add_lengths(leaf, array)
        if leaf.kind in ("list", "map"):
            self._add_elements(leaf, array)
        array = counted(leaf, array)
        if leaf.values and leaf.kind in ORDERED:
            self._add_numbers(leaf, array)
        if leaf.top or leaf.kind == "boolean":
            self._add_top(array)
        return array

    def _without_nans(self, array: pa.Array) -> pa.Array:
        nans = pc.is_nan(array)
        found = pc.sum(nans).as_py() or 0
        self.nans += found
        # Of zero there is one, whatever its sign.
        array = pc.if_else(nans, pa.scalar(None, array.type), array) if found else array
        return pc.add(array, 0.0)

    def _add_lengths(self, leaf: Leaf, array: pa.Array) -> None:
        measure = {"text": pc.utf8_length, "bytes": pc.binary_length}.get(
            leaf.kind, pc.list_value_length
        )
        if not pa.types.is_nested(array.type) and leaf.kind in ("list", "map"):
            return
        lengths = measure(array)
        bounds = pc.min_max(lengths).as_py()
        if bounds["min"] is None:
            return
        self.sized += len(lengths) - lengths.null_count
        self.length += pc.sum(lengths).as_py()
        self.shortest, self.longest = _wider(
            (self.shortest, self.longest), (bounds["min"], bounds["max"])
        )

    def _add_elements(self, leaf: Leaf, array: pa.Array) -> None:
        if not pa.types.is_nested(array.type):
            return
        elements = array.flatten()
        if leaf.kind == "map" and pa.types.is_struct(elements.type):
            _, elements = elements.flatten()
        self.elements += len(elements)
        self.null_elements += elements.null_count

    def _add_numbers(self, leaf: Leaf, array: pa.Array) -> None:
        bounds = pc.min_max(array).as_py()
        if bounds["min"] is None:
            return
        low, high = bounds["min"], bounds["max"]
        if leaf.kind == "decimal":
            low, high = _plain(low), _plain(high)
        self.low, self.high = _wider((self.low, self.high), (low, high))
        numbers = array.cast(pa.float64(), safe=False)
        count = len(numbers) - numbers.null_count
        mean = pc.mean(numbers).as_py()
        if math.isinf(mean):
            # Only their sum may be too large.
            mean = pc.sum(pc.divide(numbers, float(count))).as_py()
        spread = pc.variance(numbers).as_py() * count
        self._add_moments(count, mean, spread)

    def _add_moments(self, count: int, mean: float, spread: float) -> None:
        if not count:
            return
        total = self.measured + count
        step = mean - self.mean
        self.spread += spread + step * step * (self.measured * count / total)
        self.mean += step * (count / total)
        self.measured = total

    def _add_top(self, array: pa.Array) -> None:
        counts = pc.value_counts(array.drop_null())
        values, numbers = counts.field(0), counts.field(1)
        lost = 0
        if len(numbers) > FOLLOWED:
            kept = pc.select_k_unstable(
                numbers, k=FOLLOWED + 1, sort_keys=[("counts", "descending")]
            )
            values, numbers = values.take(kept), numbers.take(kept)
            lost = numbers[FOLLOWED].as_py()
        pairs = zip(map(_plain, values.to_pylist()), numbers.to_pylist(), strict=True)
        self._add_counts(((value, count - lost) for value, count in pairs), lost)

    def _add_counts(self, more: Iterable[tuple[Any, int]], slack: int) -> None:
        """Joins two summaries of frequent values, so that the errors of both add up and no more."""
        joined = dict(self.top)
        for value, count in more:
            if count > 0:
                joined[value] = joined.get(value, 0) + count
        pairs = sorted(joined.items(), key=lambda pair: pair[1], reverse=True)
        lost = pairs[FOLLOWED][1] if len(pairs) > FOLLOWED else 0
        self.top = [(value, count - lost) for value, count in pairs[:FOLLOWED] if count > lost]
        self.slack += slack + lost

    def join(self, other: "Tally") -> None:
        """Takes in what was counted of other rows."""
        self.rows += other.rows
        self.nulls += other.nulls
        self.nans += other.nans
        self.misfits += other.misfits
        self.low, self.high = _wider((self.low, self.high), (other.low, other.high))
        self._add_moments(other.measured, other.mean, other.spread)
        self.sized += other.sized
        self.shortest, self.longest = _wider(
            (self.shortest, self.longest), (other.shortest, other.longest)
        )
        self.length += other.length
        self.elements += other.elements
        self.null_elements += other.null_elements
        if other.top or other.slack:
            self._add_counts(other.top, other.slack)

    @property
    def values(self) -> int:
        """How many rows have a value of the column's type."""
        return self.rows - self.nulls - self.nans - self.misfits

    @property
    def stddev(self) -> float | None:
        """The standard deviation of the measured values, taken as a sample."""
        if self.measured < 2 or not math.isfinite(self.spread):
            return None
        return math.sqrt(self.spread / (self.measured - 1))


def _plain(value: Any) -> Any:
    return f"{value:f}" if isinstance(value, decimal.Decimal) else value


def _wider(one: tuple[Any, Any], other: tuple[Any, Any]) -> tuple[Any, Any]:
    lows = [low for low, _ in (one, other) if low is not None]
    highs = [high for _, high in (one, other) if high is not None]
    return min(lows, key=_order, default=None), max(highs, key=_order, default=None)


def _order(value: Any) -> Any:
    return decimal.Decimal(value) if isinstance(value, str) else value
