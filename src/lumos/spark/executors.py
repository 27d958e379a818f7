"""The Python packages of executors: ships Lumos to them, and reports their versions."""

import atexit
import platform
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

# Imported late: the JVM of a session starts before pyspark and pyarrow are imported.
if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_VERSIONS = (
    "python string, pyarrow string, msgspec string, obstore string, fastavro string, lumos string"
)


def ship_package(spark: "SparkSession", *libraries: str) -> None:
    """Ship Lumos and other pure Python libraries to the executors of a session."""
    # Delete the files at the end, since an executor may fetch them as late as its first task.
    folder = tempfile.mkdtemp(prefix="lumos-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in ("lumos", *libraries):
        archive = Path(folder) / f"{name}_package.zip"
        package = Path(str(files(name)))
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
            for file in sorted(package.rglob("*.py")):
                target.write(file, Path(name) / file.relative_to(package))
        spark.addArtifacts(str(archive), pyfile=True)


def executor_facts(spark: "SparkSession") -> list[dict[str, str]]:
    """The distinct versions of packages on the executors, found by a small job."""
    frame = spark.range(0, 4, numPartitions=4).mapInArrow(_versions, schema=_VERSIONS)
    rows: list[dict[str, str]] = frame.distinct().toArrow().to_pylist()
    return rows


def _versions(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    import fastavro
    import msgspec
    import obstore
    import pyarrow as pa

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
