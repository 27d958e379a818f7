"""The columns that travel between the steps of discovery, as Arrow and as Spark know them."""

from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

_PARTITION: Final = pa.struct([("key", pa.string()), ("value", pa.string())])

# One row per listed file, or per place that could not be listed (`code` and `reason` are set).
LISTED: Final = pa.schema(
    [
        ("path", pa.string()),
        ("size", pa.int64()),
        ("modified", pa.int64()),
        ("etag", pa.string()),
        ("code", pa.string()),
        ("reason", pa.string()),
    ]
)

# A listed file with what its footer or header said, what its path says of its place, and the
# number of the scan that opened it. A file that is no data has no `format`. `body` is the schema
# as JSON, on the first row of each `full` fingerprint in a task only.
FILES: Final = pa.schema(
    [
        *LISTED,
        ("format", pa.string()),
        ("shape", pa.string()),
        ("full", pa.string()),
        ("body", pa.binary()),
        ("row_count", pa.int64()),
        ("row_count_exact", pa.bool_()),
        ("base", pa.string()),
        ("pattern", pa.string()),
        ("partitions", pa.list_(_PARTITION)),
        ("read_in", pa.int64()),
    ]
)

# How an earlier scan settled what a folder and name pattern mean.
SETTLED: Final = pa.schema(
    [
        ("base", pa.string()),
        ("pattern", pa.string()),
        ("format", pa.string()),
        ("was_folder", pa.bool_()),
        ("was_second", pa.bool_()),
    ]
)

LISTED_IN_SPARK: Final = from_arrow_schema(LISTED)
FILES_IN_SPARK: Final = from_arrow_schema(FILES)
SETTLED_IN_SPARK: Final = from_arrow_schema(SETTLED)
