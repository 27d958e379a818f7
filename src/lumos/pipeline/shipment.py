"""Brings the package to executors that do not have it."""

import atexit
import shutil
import tempfile
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ship_package(spark: "SparkSession") -> None:
    """Makes `import lumos` work in the executors of a session, classic or through Connect."""
    # Executors may ask for the file as late as their first task, so it stays until we end.
    folder = tempfile.mkdtemp(prefix="lumos-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = Path(folder) / "lumos_package.zip"
    _pack(archive)
    spark.addArtifacts(str(archive), pyfile=True)


def _pack(archive: Path) -> None:
    package = Path(str(files("lumos")))
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in sorted(package.rglob("*.py")):
            packed.write(file, Path("lumos") / file.relative_to(package))
