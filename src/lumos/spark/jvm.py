"""Starts the JVM of a local session: directly, with what Java learned the last time.

PySpark starts a shell script that starts a JVM that works out how to start the JVM. For a local
session the answer never changes, so Lumos starts that last JVM itself and hands PySpark its
address. A class-data-sharing archive spares it loading and verifying ten thousand classes.
"""

import os
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import IO, Final

from lumos.errors import LumosError
from lumos.spark import class_archive

# What Spark's own launcher passes, without the vector module, which only machine learning uses
# and which makes Java print a warning. A test compares this with the launcher.
MODULE_OPTIONS: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(
        f"--add-opens={package}=ALL-UNNAMED"
        for package in (
            "java.base/java.lang",
            "java.base/java.lang.invoke",
            "java.base/java.lang.reflect",
            "java.base/java.io",
            "java.base/java.net",
            "java.base/java.nio",
            "java.base/java.util",
            "java.base/java.util.concurrent",
            "java.base/java.util.concurrent.atomic",
            "java.base/jdk.internal.ref",
            "java.base/sun.nio.ch",
            "java.base/sun.nio.cs",
            "java.base/sun.security.action",
            "java.base/sun.util.calendar",
            "java.security.jgss/sun.security.krb5",
        )
    ),
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--enable-native-access=ALL-UNNAMED",
)
# Any of these says that somebody set Spark up with care; then Spark's own way is taken.
_OWN_SETUP: Final = (
    "PYSPARK_GATEWAY_PORT",
    "PYSPARK_SUBMIT_ARGS",
    "SPARK_CONF_DIR",
    "SPARK_HOME",
    "HADOOP_CONF_DIR",
    "YARN_CONF_DIR",
)
_START_SECONDS: Final = 120
# Ctrl-C, and what service managers and `timeout` send to every process, is for Python, which ends
# what it has in hand and then the JVM in good order. Ignored signals stay ignored across exec.
_IGNORE_SIGNALS: Final = ("sh", "-c", 'trap "" INT TERM; exec "$@"', "sh")
# What the library of Spark's sketches says whenever it is loaded.
_NO_NEWS: Final = b"Warning: Java versions > Java 11 can only operate in restricted mode"


class JvmNotStarted(LumosError):
    """Java ended before Spark answered."""


def is_plain(settings: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """Whether nothing but Lumos decides how the JVM starts."""
    is_windows = os.name == "nt"
    customised = any(name.startswith("spark.driver.extra") for name in settings)
    return not (is_windows or customised or any(environment.get(name) for name in _OWN_SETUP))


def start_jvm(settings: Mapping[str, str], *, short: bool, archive_to: Path | None = None) -> "Jvm":
    """A JVM with Spark's gateway in it; `archive_to` makes it leave a class archive when it ends.

    `short` compiles less thoroughly, which starts a short job sooner and slows a long one.
    """
    home, java = spark_home(), java_command()
    logging = files("lumos.spark") / "log4j2.properties"
    command = [
        java,
        *MODULE_OPTIONS,
        f"-Xmx{settings.get('spark.driver.memory', '1g')}",
        f"-Dlog4j2.configurationFile={logging}",
        *(["-XX:TieredStopAtLevel=1"] if short else []),
        *class_archive.options(java, home, archive_to=archive_to),
        "-cp",
        f"{home}/jars/*",
        "org.apache.spark.deploy.SparkSubmit",
        *(word for item in settings.items() for word in ("--conf", "=".join(item))),
        "pyspark-shell",
    ]
    return Jvm(command, home)


class Jvm:
    """A JVM that starts in the background. It ends when told to, or with this process."""

    def __init__(self, command: Sequence[str], spark_home: Path) -> None:
        # Spark writes the port and the secret of its gateway into a file of this folder.
        self._folder = tempfile.TemporaryDirectory(prefix="lumos-")
        self._answer = Path(self._folder.name) / "answer"
        self._process = _start(command, spark_home, self._answer)
        self._address: dict[str, str] = {}

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @contextmanager
    def found_by_pyspark(self) -> Iterator[None]:
        """While this lasts, PySpark connects to this JVM, once it answers, and starts none."""
        if not self._address:
            self._address = self._wait_for_address()
        os.environ.update(self._address)
        try:
            yield
        finally:
            for name in self._address:
                os.environ.pop(name, None)

    def _wait_for_address(self) -> dict[str, str]:
        deadline = time.monotonic() + _START_SECONDS
        try:
            while not self._answer.exists():
                if not self.is_running:
                    raise JvmNotStarted(
                        f"Java ended with code {self._process.returncode} before Spark had "
                        "started. Check the installation with: lumos doctor"
                    )
                if time.monotonic() > deadline:
                    raise JvmNotStarted(f"Spark did not start within {_START_SECONDS} seconds.")
                time.sleep(0.01)
        except BaseException:
            # Ctrl-C above all: nobody else would end it.
            self.end(seconds=0)
            raise
        data = self._answer.read_bytes()
        self._folder.cleanup()
        port, length = struct.unpack_from(">ii", data)
        secret = data[8 : 8 + length].decode()
        return {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}

    def end(self, *, seconds: float = 10) -> None:
        """Ends the JVM, kindly at first."""
        self._folder.cleanup()
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def java_command() -> str:
    """The java that JAVA_HOME or the PATH names."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def spark_home() -> Path:
    """Where the installed PySpark keeps its jars; it is found without being imported."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def _start(command: Sequence[str], home: Path, answer: Path) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(answer),
    }
    process = subprocess.Popen(
        [*_IGNORE_SIGNALS, *command],
        # The gateway ends when this pipe closes, so that it never outlives us.
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert process.stderr is not None, "it was asked for"
    Thread(target=_pass_on, args=(process.stderr,), name="jvm-errors", daemon=True).start()
    return process


def _pass_on(errors: IO[bytes]) -> None:
    """Lets what the JVM says be seen, but for what nobody can do anything about."""
    for line in errors:
        if not line.startswith(_NO_NEWS):
            with suppress(OSError):
                os.write(2, line)
