"""Lists a root on the executors."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lumos.pipeline.columns import LISTED, LISTED_IN_SPARK
from lumos.storage import Listing, Selection, Stretch, Unlisted, storage_of

_BATCH = 10_000
_STRETCH = "folder string, after string, until string, deep boolean"


def list_files(spark: SparkSession, selection: Selection, *, parts: int) -> DataFrame:
    """Every file of the selection that may be data, listed in about `parts` tasks."""
    storage = storage_of(selection.root, selection.access)
    met, stretches = storage.split(selection.root, parts=parts, deep=selection.recursive)
    at_the_top = spark.createDataFrame(_batch(met, selection), schema=LISTED_IN_SPARK)
    if not stretches:
        return at_the_top
    rows = [stretch._asdict() for stretch in stretches]
    below = spark.createDataFrame(pa.Table.from_pylist(rows), schema=_STRETCH)
    spread = below.repartition(min(len(stretches), parts))
    listed = spread.mapInArrow(_walker(selection), schema=LISTED_IN_SPARK)
    return at_the_top.unionByName(listed)


def _walker(
    selection: Selection,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def walk(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        storage = storage_of(selection.root, selection.access)
        stretches = (Stretch(**row) for batch in batches for row in batch.to_pylist())
        listings = chain.from_iterable(map(storage.walk, stretches))
        while some := list(islice(listings, _BATCH)):
            yield from _batch(some, selection).to_batches()

    return walk


def _batch(listings: list[Listing], selection: Selection) -> pa.Table:
    rows = [
        (listing.path, None, None, None, listing.code, listing.reason)
        if isinstance(listing, Unlisted)
        else (*listing, None, None)
        for listing in listings
        if isinstance(listing, Unlisted) or listing.path in selection
    ]
    return pa.Table.from_pylist([dict(zip(LISTED.names, row, strict=True)) for row in rows], LISTED)
