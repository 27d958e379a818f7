"""Brings the package, and libraries that are Python alone, to executors that do not have them."""

import atexit
import shutil
import tempfile
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ship_package(spark: "SparkSession", *libraries: str) -> None:
    """Makes `import lumos` work in the executors of a session, classic or through Connect.

    The same goes for libraries that need nothing but Python.
    """
    # Executors may ask for the file as late as their first task, so it stays until we end.
    folder = tempfile.mkdtemp(prefix="lumos-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in ("lumos", *libraries):
        archive = Path(folder) / f"{name}_package.zip"
        _pack(name, archive)
        spark.addArtifacts(str(archive), pyfile=True)


def _pack(name: str, archive: Path) -> None:
    package = Path(str(files(name)))
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in sorted(package.rglob("*.py")):
            packed.write(file, Path(name) / file.relative_to(package))
