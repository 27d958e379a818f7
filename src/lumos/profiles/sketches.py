"""Sketches of columns: what is handed to Spark to be sketched, and what sketches tell.

Distinct values are estimated by HLL sketches, quantiles by KLL sketches, both Spark's own. A KLL
sketch holds some of the values themselves, so that there is none of what must not be kept.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lumos.profiles.columns import ORDERED, WHOLE, Leaf

RANKS: Final = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_HLL_BITS: Final = 12
# Quantiles are off by about 0.45 % of the rows; with Spark's own 200 by 1.3 %, which is too much
# at the ends.
_KLL_SIZE: Final = 1000
_SQL_TYPES: Final = {
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
}


class Sketches(NamedTuple):
    """The sketches of one column in some rows."""

    distinct: bytes | None = None
    integers: bytes | None = None
    numbers: bytes | None = None


class Estimates(NamedTuple):
    """What the sketches of one column tell."""

    distinct: int | None = None
    quantiles: tuple[float, ...] = ()


class Sent(NamedTuple):
    """A leaf's columns on the way to Spark: its values and, beside them, doubles of these."""

    leaf: int
    name: str
    type: pa.DataType
    doubles: str | None
    quantiles: bool

    @property
    def fields(self) -> list[tuple[str, pa.DataType]]:
        """Names and types of the columns."""
        doubles = [(self.doubles, pa.float64())] if self.doubles else []
        return [(self.name, self.type), *doubles]

    def arrays(self, values: pa.Array) -> list[pa.Array]:
        """A tally's values as the columns."""
        array = values
        if pa.types.is_uint64(array.type):
            array = array.view(pa.int64())
        arrays = [array if array.type == self.type else array.cast(self.type)]
        if self.doubles:
            arrays.append(values.cast(pa.float64(), safe=False))
        return arrays

    def aggregates(self) -> list[Column]:
        """The sketches of the columns; a double is hashed before, since HLL takes none."""
        values = F.col(self.name)
        hashed = F.xxhash64(values) if self.type == pa.float64() else values
        present = F.when(values.isNotNull(), hashed) if hashed is not values else values
        sketches = [F.hll_sketch_agg(present, F.lit(_HLL_BITS)).alias(f"{self.name}_distinct")]
        if self.quantiles:
            of_integers = self.type == pa.int64() and self.doubles is None
            sketch = F.kll_sketch_agg_bigint if of_integers else F.kll_sketch_agg_double
            quantiles = sketch(F.col(self.doubles or self.name), F.lit(_KLL_SIZE))
            kind = "integers" if of_integers else "numbers"
            sketches.append(quantiles.alias(f"{self.name}_{kind}"))
        return sketches


def sent(leaves: Sequence[Leaf]) -> list[Sent]:
    """What of the leaves goes to Spark; of others nothing is estimated."""
    found: list[Sent] = []
    for number, leaf in enumerate(leaves):
        name = f"v{number}"
        quantiles = leaf.values and leaf.kind in ORDERED
        if leaf.kind in WHOLE:
            found.append(Sent(number, name, pa.int64(), None, quantiles))
        elif leaf.kind in ("unsigned", "decimal"):
            type = pa.int64() if leaf.kind == "unsigned" else pa.string()
            found.append(Sent(number, name, type, f"d{number}" if quantiles else None, quantiles))
        elif leaf.kind == "float":
            found.append(Sent(number, name, pa.float64(), None, quantiles))
        elif leaf.kind in ("text", "bytes"):
            type = pa.string() if leaf.kind == "text" else pa.binary()
            found.append(Sent(number, name, type, None, False))
    return found


def sql_schema(fields: Iterable[tuple[str, pa.DataType]]) -> str:
    """Names and types as Spark writes a schema."""
    return ", ".join(f"{name} {_SQL_TYPES[type]}" for name, type in fields)


_KEPT: Final = pa.schema(
    [
        ("leaf", pa.int64()),
        ("distinct", pa.binary()),
        ("integers", pa.binary()),
        ("numbers", pa.binary()),
    ]
)


def estimates(
    spark: SparkSession, sketches: Iterable[tuple[int, Sketches]]
) -> dict[int, Estimates]:
    """What all sketches of each leaf tell together."""
    rows = list(sketches)
    if not rows:
        return {}
    columns: list[Sequence[Any]] = [[leaf for leaf, _ in rows]]
    columns += zip(*(each for _, each in rows), strict=True)
    arrays = [pa.array(values, each.type) for values, each in zip(columns, _KEPT, strict=True)]
    frame = spark.createDataFrame(pa.Table.from_arrays(arrays, schema=_KEPT))
    told = _joined(frame).toArrow()
    return {row["leaf"]: _estimates(row) for row in told.to_pylist()}


def _joined(frame: DataFrame) -> DataFrame:
    """One row for each leaf: the estimates of its sketches, taken together."""
    ranks = F.array(*map(F.lit, RANKS))
    integers = _merged("integers", F.kll_sketch_merge_bigint)
    numbers = _merged("numbers", F.kll_sketch_merge_double)
    return (
        frame.groupBy("leaf")
        .agg(
            F.hll_union_agg("distinct").alias("distinct"),
            F.collect_list("integers").alias("integers"),
            F.collect_list("numbers").alias("numbers"),
        )
        .select(
            "leaf",
            F.hll_sketch_estimate("distinct").alias("distinct"),
            F.when(F.size("integers") > 0, F.kll_sketch_get_quantile_bigint(integers, ranks)).alias(
                "integers"
            ),
            F.when(F.size("numbers") > 0, F.kll_sketch_get_quantile_double(numbers, ranks)).alias(
                "numbers"
            ),
        )
    )


def _merged(name: str, merge: Any) -> Column:
    """All sketches of a list as one; Spark has an aggregate for it only since 4.1.2."""
    listed = F.col(name)
    rest = F.slice(listed, F.lit(2), F.greatest(F.size(listed) - 1, F.lit(0)))
    return F.reduce(rest, F.get(listed, F.lit(0)), lambda one, other: merge(one, other))


def _estimates(row: dict[str, Any]) -> Estimates:
    return Estimates(row["distinct"], tuple(row["integers"] or row["numbers"] or ()))
