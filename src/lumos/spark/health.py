"""Whether a Spark session really works, and what its executors have."""

import platform
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

_FACTS = (
    "python string, pyarrow string, msgspec string, obstore string, fastavro string, lumos string"
)


def executor_facts(spark: SparkSession) -> list[dict[str, str]]:
    """The distinct versions that executors run with, found by a tiny job."""
    frame = spark.range(0, 4, numPartitions=4).mapInArrow(_versions, schema=_FACTS)
    rows: list[dict[str, str]] = frame.distinct().toArrow().to_pylist()
    return rows


def _versions(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import fastavro
    import msgspec
    import obstore

    from lumos.version import __version__

    for _ in batches:
        facts = {
            "python": platform.python_version(),
            "pyarrow": pa.__version__,
            "msgspec": msgspec.__version__,
            "obstore": obstore.__version__,
            "fastavro": fastavro.__version__,
            "lumos": __version__,
        }
        yield pa.RecordBatch.from_pylist([facts])
