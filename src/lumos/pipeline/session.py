"""The one place that makes a Spark session."""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lumos.errors import LumosError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ALWAYS: Final = {"spark.sql.session.timeZone": "UTC"}
_LOCALLY: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


class SparkNotUsable(LumosError):
    """No Spark session can be had."""


class SparkFailed(LumosError):
    """Spark gave up in the middle of a job."""


@contextmanager
def spark_session(*, master: str, settings: Mapping[str, str]) -> Iterator["SparkSession"]:
    """A session on `master`; one that the process already has is used and left running."""
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        with _clear_errors():
            yield active
        return
    is_local = master.startswith("local")
    if is_local:
        _check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("lumos")
    for key, value in {**_ALWAYS, **(_locally() if is_local else {}), **settings}.items():
        builder = builder.config(key, value)
    with _clear_errors():
        session = builder.getOrCreate()
        try:
            yield session
        finally:
            session.stop()


@contextmanager
def _clear_errors() -> Iterator[None]:
    """Turns what Spark and its JVM raise into one sentence."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as problem:
        text = str(problem)
        if "No space left on device" in text:
            raise SparkFailed(
                "No room left on a disk that Spark writes to. Free some and run the command again."
            ) from problem
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        reason = lines[0] if lines else type(problem).__name__
        raise SparkFailed(f"Spark failed: {reason} (--debug shows everything)") from problem


def _locally() -> dict[str, str]:
    logging = files("lumos.pipeline") / "log4j2.properties"
    # Scans are short: compiling less thoroughly starts them sooner.
    options = f"-XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile={logging}"
    return {**_LOCALLY, "spark.driver.extraJavaOptions": options}


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home else None
    if java is not None and not java.exists():
        raise SparkNotUsable(
            f"JAVA_HOME points to {home}, which holds no Java. "
            "Point it to a Java 17 installation, or unset it to use the java on the PATH."
        )
    if java is None and shutil.which("java") is None:
        raise SparkNotUsable(
            "Spark needs Java 17 and none was found. Install it "
            "(Debian and Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install "
            "openjdk@17) or point JAVA_HOME to it."
        )
