"""Starts the JVM of a local session directly, with an archive of its classes.

PySpark runs a shell script that starts one JVM to compute the command for starting the actual JVM.
For a local session this command never changes, so Lumos starts the JVM itself and passes its
address to PySpark. With a class-data-sharing archive, the JVM need not load and verify 10,000
classes, which halves the start-up time. The archive takes about 160 MB in the user's cache folder.
It is built in the background after the first use, and again when Java or Spark change. If it cannot
be written, Lumos works without it.
"""

import contextlib
import hashlib
import os
import shutil
import struct
import subprocess
import sys
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

# The options of Spark's launcher without the vector module, which only machine learning uses and
# for which Java prints a warning. A test compares them with the launcher.
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
# If one of these variables is set, Spark has a custom setup, so Spark's own launcher is used.
_CUSTOM_SETUP_VARIABLES: Final = (
    "PYSPARK_GATEWAY_PORT",
    "PYSPARK_SUBMIT_ARGS",
    "SPARK_CONF_DIR",
    "SPARK_HOME",
    "HADOOP_CONF_DIR",
    "YARN_CONF_DIR",
)
_START_SECONDS: Final = 120
# Signals such as Ctrl-C reach every process of the group, but the JVM must ignore them: Python
# handles them and ends the JVM. Signals that the shell ignores stay ignored after exec.
_IGNORE_SIGNALS: Final = ("sh", "-c", 'trap "" INT TERM; exec "$@"', "sh")
# Spark's library for sketches prints this whenever it is loaded.
_IGNORED_WARNING: Final = b"Warning: Java versions > Java 11 can only operate in restricted mode"


class JvmNotStarted(LumosError):
    """The JVM ended before Spark was ready."""


def is_default_setup(settings: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """Whether neither the settings nor the environment change how the JVM is started."""
    is_windows = os.name == "nt"
    customised = any(name.startswith("spark.driver.extra") for name in settings)
    return not (
        is_windows or customised or any(environment.get(name) for name in _CUSTOM_SETUP_VARIABLES)
    )


def start_jvm(settings: Mapping[str, str], *, short: bool, archive_to: Path | None = None) -> "Jvm":
    """Start a JVM with Spark's gateway; with `archive_to`, it writes a class archive when it ends.

    `short` disables Java's optimising compiler: faster for short jobs, slower for long ones.
    """
    home, java = spark_home(), java_command()
    logging = files("lumos.spark") / "log4j2.properties"
    command = [
        java,
        *MODULE_OPTIONS,
        f"-Xmx{settings.get('spark.driver.memory', '1g')}",
        f"-Dlog4j2.configurationFile={logging}",
        *(["-XX:TieredStopAtLevel=1"] if short else []),
        *archive_options(java, home, archive_to=archive_to),
        "-cp",
        f"{home}/jars/*",
        "org.apache.spark.deploy.SparkSubmit",
        *(word for item in settings.items() for word in ("--conf", "=".join(item))),
        "pyspark-shell",
    ]
    return Jvm(command, home)


class Jvm:
    """A JVM that starts in the background and ends with this process or earlier."""

    def __init__(self, command: Sequence[str], spark_home: Path) -> None:
        # Spark writes the port and the secret of its gateway into a file of this folder.
        self._folder = tempfile.TemporaryDirectory(prefix="lumos-")
        self._address_file = Path(self._folder.name) / "address"
        self._process = _start(command, spark_home, self._address_file)
        self._address: dict[str, str] = {}

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @contextmanager
    def used_by_pyspark(self) -> Iterator[None]:
        """Wait for the JVM, and let PySpark connect to it instead of starting its own."""
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
            while not self._address_file.exists():
                if not self.is_running:
                    raise JvmNotStarted(
                        f"Java ended with code {self._process.returncode} before Spark had "
                        "started. Check the installation with: lumos doctor"
                    )
                if time.monotonic() > deadline:
                    raise JvmNotStarted(
                        f"Spark did not start within {_START_SECONDS} seconds. Look for the cause "
                        "with: lumos doctor"
                    )
                time.sleep(0.01)
        except BaseException:
            # Also on Ctrl-C, since nothing else would end the JVM.
            self.end(seconds=0)
            raise
        data = self._address_file.read_bytes()
        self._folder.cleanup()
        port, length = struct.unpack_from(">ii", data)
        secret = data[8 : 8 + length].decode()
        return {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}

    def end(self, *, seconds: float = 10) -> None:
        """End the JVM; kill it if it does not end in time."""
        self._folder.cleanup()
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def java_command() -> str:
    """The java of JAVA_HOME, else on the PATH."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def spark_home() -> Path:
    """The folder of the installed PySpark, found without importing it."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _start(command: Sequence[str], home: Path, address_file: Path) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(address_file),
    }
    process = subprocess.Popen(
        [*_IGNORE_SIGNALS, *command],
        # The gateway ends when this pipe is closed, so it never outlives this process.
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert process.stderr is not None, "opened as a pipe"
    Thread(target=_forward_errors, args=(process.stderr,), name="jvm-errors", daemon=True).start()
    return process


def _forward_errors(errors: IO[bytes]) -> None:
    """Print the error output of the JVM, except for a warning that users can do nothing about."""
    for line in errors:
        if not line.startswith(_IGNORED_WARNING):
            with suppress(OSError):
                os.write(2, line)


ARCHIVE_SWITCH: Final = "LUMOS_CLASS_ARCHIVE"
_SILENT: Final = ("-Xlog:disable", "-Xlog:all=error:stderr")


def archive_options(java: str, spark_home: Path, *, archive_to: Path | None = None) -> list[str]:
    """The options of Java for using the archive, if it exists, or for writing it."""
    if archive_to is not None:
        return [*_SILENT, f"-XX:ArchiveClassesAtExit={archive_to}"]
    file = archive_file(java, spark_home)
    # Path.is_file raises an error if the folder is not readable.
    if file is None or not os.path.isfile(file):
        return []
    return [*_SILENT, "-Xshare:auto", f"-XX:SharedArchiveFile={file}"]


def archive_file(java: str, spark_home: Path) -> Path | None:
    """The path of the archive for this Java and Spark; None if it is switched off."""
    if os.environ.get(ARCHIVE_SWITCH, "").lower() in ("0", "off", "false"):
        return None
    java_path = shutil.which(java)
    if java_path is None:
        return None
    binary = Path(java_path).resolve()
    try:
        ages = [str(path.stat().st_mtime_ns) for path in (binary, spark_home / "jars")]
        folder = cache_folder()
    except (OSError, RuntimeError):
        # Python raises RuntimeError for users without a home folder, as in some containers.
        return None
    installation = _short_hash(str(spark_home))
    return folder / f"spark-{installation}-{_short_hash(str(binary), *ages)}.jsa"


def _short_hash(*facts: str) -> str:
    return hashlib.blake2b("\n".join(facts).encode(), digest_size=6).hexdigest()


def cache_folder() -> Path:
    """The user's cache folder for Lumos."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "lumos"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lumos"


def build_archive_if_missing(java: str, spark_home: Path) -> None:
    """Build the archive, unless it exists, in a process that may outlive this one."""
    file = archive_file(java, spark_home)
    if file is None or os.path.exists(file):
        return
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(file.parent, os.W_OK | os.X_OK):
            return
        subprocess.Popen(
            [sys.executable, "-m", "lumos.discovery.lake.class_archive", java, str(spark_home)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
